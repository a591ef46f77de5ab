// What is shown below a message's text: embeds, attachments, stickers, a forwarded message, a poll, the pinned mark.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { isWeb, link } from "./inline.js";
import { markdown } from "./markdown.js";

/** Nodes for everything in `message` except text, buttons and reactions. */
export function extras(message, names) {
  return [
    ...(message.message_snapshots ?? []).map((snapshot) => forwarded(snapshot.message, names)),
    ...(message.attachments ?? []).map(attachment),
    ...(message.sticker_items ?? []).map((sticker) => h("div", { class: "sticker" }, `Sticker: ${sticker.name}`)),
    ...(message.embeds ?? []).map((embed) => embedded(embed, names)),
    message.poll && poll(message.poll),
    message.pinned && h("div", { class: "subtext" }, "Pinned"),
  ];
}

/** A poll without results: nobody can vote here. */
function poll({ question, answers, allow_multiselect: several, expiry }) {
  const rule = `${several ? "Several answers" : "One answer"} each, until ${new Date(expiry).toLocaleString()}`;
  return h(
    "article",
    { class: "embed poll" },
    h("div", { class: "embed-title" }, question.text),
    h(
      "ol",
      {},
      answers.map((answer) => h("li", {}, answer.poll_media.text)),
    ),
    h("div", { class: "embed-footer" }, rule),
  );
}

function forwarded(message, names) {
  const content = [markdown(message.content ?? "", names), extras(message, names)];
  return h("blockquote", { class: "forwarded" }, h("div", { class: "subtext" }, "Forwarded"), content);
}

function attachment(file) {
  if (isPicture(file) && isWeb(file.url)) {
    const image = h("img", {
      src: file.url,
      alt: file.description ?? file.filename,
      width: file.width,
      height: file.height,
    });
    return h("div", { class: "attachment" }, link(file.url, image));
  }
  if ((file.content_type ?? "").startsWith("audio/") && isWeb(file.url)) {
    const player = h("audio", { controls: true, src: file.url, "aria-label": file.filename });
    return h("div", { class: "attachment file" }, player, h("span", {}, link(file.url, file.filename)));
  }
  const label = isWeb(file.url) ? link(file.url, file.filename) : file.filename;
  return h("div", { class: "attachment file" }, icon("file"), h("span", {}, label), h("small", {}, size(file.size)));
}

const isPicture = (file) => (file.content_type ?? "").startsWith("image/");

function size(bytes) {
  return bytes < 1024 ? `${bytes} B` : `${(bytes / 1024).toFixed(bytes < 10_240 ? 1 : 0)} KB`;
}

function embedded(embed, names) {
  const node = h("article", { class: "embed" }, embedParts(embed, names));
  if (embed.color) node.style.borderLeftColor = `#${embed.color.toString(16).padStart(6, "0")}`;
  return node;
}

function embedParts(embed, names) {
  const title = embed.title && ((embed.url && link(embed.url, embed.title)) || embed.title);
  return [
    embed.author && h("div", { class: "embed-author" }, embed.author.name),
    title && h("div", { class: "embed-title" }, title),
    embed.description && h("div", { class: "embed-text" }, markdown(embed.description, names)),
    embed.fields?.length > 0 &&
      h(
        "div",
        { class: "embed-fields" },
        embed.fields.map((field) => embedField(field, names)),
      ),
    picture(embed.image ?? embed.thumbnail),
    embed.footer && h("div", { class: "embed-footer" }, embed.footer.text),
  ];
}

function embedField(field, names) {
  const name = h("div", { class: "embed-field-name" }, field.name);
  return h("div", { class: field.inline ? "inline" : null }, name, markdown(field.value, names));
}

function picture(image) {
  return image && isWeb(image.url) && h("img", { src: image.url, alt: "", class: "embed-image" });
}
