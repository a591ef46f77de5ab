// One message in the list. Its parts are replaced one by one, only when what they show has changed,
// so a streamed edit neither flickers nor takes the focus from a button.

import * as api from "./api.js";
import { avatar, colored, h, part } from "./dom.js";
import { components } from "./components.js";
import { editor } from "./editor.js";
import { extras } from "./embeds.js";
import { icon } from "./icons.js";
import { inline } from "./inline.js";
import { markdown } from "./markdown.js";
import { showReactions } from "./reactions.js";

const COMMAND = 2; // interaction type
const SLASH_ANSWER = 20; // message type
const REPLY = 19; // message type
// Texts of Discord's system messages, by message type.
const SYSTEM = {
  1: ({ mentions }, page) => `Added ${page.store.person(mentions[0].id).name} to the thread.`,
  2: ({ mentions }, page) => `Removed ${page.store.person(mentions[0].id).name} from the thread.`,
  4: ({ content }) => `Renamed the thread to ${content}.`,
  6: () => "Pinned a message in this channel.",
  18: ({ content }) => `Started a thread: ${content}`,
};
const LOADING = 128; // message flag: the bot has deferred its answer
const SILENT = 4096; // message flag: nobody was notified
const PARTS = [
  "reference",
  "face",
  "head",
  "content",
  "extras",
  "components",
  "thread",
  "failed",
  "reactions",
  "private",
  "decision",
];

export const canStartThread = ({ type, thread }) => [0, REPLY].includes(type) && !thread;
export const isSilent = (message) => Boolean(message.flags & SILENT);

export function createRow(item) {
  const parts = PARTS.map((name) => h("div", { class: name }));
  const row = h("li", { class: "message", "data-message-id": item.key, tabindex: "-1" }, parts);
  row.parts = Object.fromEntries(PARTS.map((name, index) => [name, parts[index]]));
  return row;
}

/** Update `row` to `item`. It depends only on `item.inputs`; unchanged ones cost nothing. */
export function updateRow(row, item, page) {
  if (row.inputs?.every((input, index) => input === item.inputs[index])) return;
  row.inputs = item.inputs;
  row.classList.toggle("grouped", item.grouped);
  row.classList.toggle("mentioned", item.mentionsMe);
  row.classList.toggle("ephemeral", item.ephemeral);
  row.classList.toggle("editing", item.editing);
  row.classList.toggle("replying", item.replying);
  const { message } = item;
  const { parts } = row;
  part(parts.reference, [item.reference?.id, item.reference?.content, message.interaction_metadata], () =>
    reference(item, page),
  );
  part(parts.face, [item.grouped, item.author, message.timestamp], () => face(item));
  part(parts.head, [item.grouped, item.author, message.timestamp], () => (item.grouped ? null : head(item, page)));
  const words = [message.content, message.edited_timestamp, message.flags, item.starter?.content];
  part(parts.content, [item.editing || words], () => content(item, page));
  const shown = item.starter ?? message;
  const { embeds, attachments, sticker_items: stickers, message_snapshots: snapshots, poll, pinned } = shown;
  part(parts.extras, [embeds, attachments, stickers, snapshots, poll, pinned], () => extras(shown, page.names));
  const { guild, categories, channels } = page.store;
  const known = message.components?.length && [guild.roles, [...categories, ...channels].map(({ id, name }) => [id, name])];
  part(parts.components, [message.components, known], () =>
    components(message.components, page.store, (id, values) => use(message, id, values, page)),
  );
  part(parts.thread, [item.thread?.id, item.thread?.name], () => item.thread && threadButton(item.thread, page));
  part(parts.failed, [item.failed], () => item.failed && "This interaction failed");
  showReactions(parts.reactions, item, page);
  part(parts.private, [item.ephemeral], () => item.ephemeral && onlyYou(message, page));
  part(parts.decision, [item.annotation], () => item.annotation && decision(item.annotation, page.names));
}

function reference({ reference: original, message }, page) {
  if (message.interaction_metadata?.type === COMMAND) return commandLine(message, page);
  if (original === undefined) return null;
  if (original === null) return h("span", { class: "gone" }, "Original message was deleted");
  const author = page.store.person(original.author.id, original.author);
  const text = inline(original.content.slice(0, 200).replace(/\s+/g, " "), page.names);
  const label = `Reply to ${author.name}, go to that message`;
  const jump = () => page.show(original.id);
  const preview = h(
    "button",
    { class: "reference-text", "aria-label": label, onclick: jump },
    original.content ? text : "Click to see attachment",
  );
  // Within a button nothing else can be clicked: links are shown as text, and spoilers stay covered.
  for (const one of preview.querySelectorAll("a, .spoiler"))
    one.replaceWith(h("span", { class: one.className }, [...one.childNodes]));
  return [avatar(author, "avatar tiny"), nameOf(author), preview];
}

function commandLine({ type, interaction_metadata: { user, name } }, page) {
  const person = page.store.person(user.id, user);
  const shown = name && (type === SLASH_ANSWER ? `/${name}` : name);
  return [
    avatar(person, "avatar tiny"),
    nameOf(person),
    h("span", {}, "used ", shown ? h("span", { class: "pill" }, shown) : "a command"),
  ];
}

const nameOf = (person) => colored(h("span", { class: "reference-name" }, person.name), person);

const time = (iso, options) => new Date(iso).toLocaleTimeString([], options);

function face({ grouped, author, message }) {
  if (!grouped) return avatar(author);
  return h(
    "time",
    { class: "gutter", datetime: message.timestamp },
    time(message.timestamp, { hour: "numeric", minute: "2-digit" }),
  );
}

function head({ author, message }, page) {
  const name = h(
    "button",
    { class: "name", title: `Mention ${author.name}`, onclick: () => page.composer.mention(author) },
    author.name,
  );
  const tag = message.author.bot && h("span", { class: "app-tag" }, "APP");
  return [
    colored(name, author),
    tag,
    h(
      "time",
      { class: "when", datetime: message.timestamp, title: new Date(message.timestamp).toLocaleString() },
      when(message.timestamp),
    ),
    isSilent(message) && silentMark(),
  ];
}

function silentMark() {
  const title = "This was a silent message";
  return h("span", { class: "silent-mark", role: "img", title, "aria-label": title }, icon("silent"));
}

function when(iso) {
  const date = new Date(iso);
  const clock = time(iso, { timeStyle: "short" });
  return date.toDateString() === new Date().toDateString() ? clock : `${date.toLocaleDateString()} ${clock}`;
}

function content(item, page) {
  const { message } = item;
  if (item.editing) return editor(message, page);
  if (message.flags & LOADING && !message.content)
    return h("span", { class: "thinking" }, `${item.author.name} is thinking…`);
  if (SYSTEM[message.type]) return h("span", { class: "subtext" }, SYSTEM[message.type](message, page));
  if (item.starter) return markdown(item.starter.content, page.names);
  const nodes = markdown(message.content ?? "", page.names);
  if (message.edited_timestamp) markEdited(nodes, message.edited_timestamp);
  return nodes;
}

/** "(edited)" stands at the end of the text, or below a code block, quote or list. */
function markEdited(nodes, timestamp) {
  const mark = h("span", { class: "edited", title: new Date(timestamp).toLocaleString() }, " (edited)");
  if (nodes.at(-1)?.matches("div, .jumbo")) nodes.at(-1).append(mark);
  else nodes.push(h("div", {}, mark));
}

function use(message, customId, values, page) {
  const body = {
    author_id: page.store.speakerId,
    message_id: message.id,
    custom_id: customId,
    ...(values && { values }),
  };
  page.store.retry(message.id);
  page.attempt(api.useComponent(message.channel_id, body));
}

function onlyYou(message, page) {
  return [
    "Only you can see this · ",
    h("button", { class: "text", onclick: () => page.store.dismiss(message.id) }, "Dismiss message"),
  ];
}

function threadButton({ id, name }, page) {
  return h("button", { class: "thread-link", onclick: () => page.store.openChannel(id) }, icon("thread"), name);
}

function decision({ respond, reason, text }, names) {
  const attributes = {
    class: `chip ${respond ? "answered" : "silent"}`,
    "data-annotation": reason,
    title: `Decision: ${reason}`,
  };
  return h("span", attributes, h("span", {}, text ? inline(text, names) : reason));
}
