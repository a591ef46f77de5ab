// The message box: its text, sending, the message replied to, and the bot's slash commands.

import * as api from "./api.js";
import { byId, h, part } from "./dom.js";
import { CommandForm } from "./commandform.js";
import { icon } from "./icons.js";
import { toRaw } from "./mentions.js";
import { Picker } from "./picker.js";
import { nameOfChannel } from "./sidebar.js";
import { FORUMS } from "./threads.js";

const TYPING_EVERY_MS = 8000;
const LIMIT = 4000; // Discord: characters a person may send
const NEAR_LIMIT = 200;
const REPLY = 19; // message types: a plain message, a reply
const PLAIN = 0;

export class Composer {
  constructor(page) {
    this.page = page;
    this.box = byId("composer");
    this.typedAt = -Infinity;
    this.channelId = null;
    this.drafts = new Map(); // unsent texts, by channel id
    this.form = new CommandForm(page);
    this.picker = new Picker(
      page,
      this.box,
      () => this.changed(),
      (entry, typed) => this.choose(entry, typed),
    );
    this.box.addEventListener("input", () => this.changed());
    this.box.addEventListener("click", () => this.picker.update());
    this.box.addEventListener("blur", () => this.picker.close());
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.button("mention", "at", () => this.insert("@"));
    this.button("send", "send", () => this.send());
  }

  button(id, picture, run) {
    byId(id).append(icon(picture));
    byId(id).addEventListener("mousedown", (event) => event.preventDefault()); // keeps the box focused
    byId(id).addEventListener("click", run);
  }

  focus() {
    this.box.focus();
  }

  mention(person) {
    this.insert(`@${person.name} `);
  }

  suggest(text) {
    this.box.value = text;
    this.focus();
    this.changed();
  }

  reply(message) {
    this.page.store.startReply(message);
    this.focus();
  }

  insert(text) {
    const before = this.box.value.slice(0, this.box.selectionStart);
    const space = before && !/\s$/.test(before) ? " " : "";
    this.focus();
    this.box.setRangeText(space + text, this.box.selectionStart, this.box.selectionEnd, "end");
    this.changed();
  }

  /** After each change of the text: update what depends on it, and send the typing notice. */
  changed() {
    this.fit();
    this.noticeTyping();
  }

  /** Update the height, the suggestions, and the number of characters left. */
  fit() {
    this.box.style.height = "auto";
    this.box.style.height = `${this.box.scrollHeight}px`;
    this.picker.update();
    const left = LIMIT - Array.from(this.box.value).length;
    const remaining = byId("remaining");
    remaining.hidden = left > NEAR_LIMIT;
    remaining.textContent = String(left);
    remaining.classList.toggle("over", left < 0);
  }

  noticeTyping() {
    const { store } = this.page;
    const text = this.box.value;
    const now = store.clock();
    if (!text.trim() || text.startsWith("/") || now - this.typedAt < TYPING_EVERY_MS) return;
    this.typedAt = now;
    this.page.attempt(api.typing(store.channelId, store.speakerId));
  }

  key(event) {
    if (event.isComposing) return;
    if (this.picker.key(event)) event.preventDefault();
    else if (event.key === "Enter" && !event.shiftKey) this.prevented(event, () => this.send());
    else if (event.key === "Escape") this.page.store.choose({ replyTo: null });
    else if (event.key === "ArrowUp" && !this.box.value) this.prevented(event, () => this.editLast());
  }

  prevented(event, run) {
    event.preventDefault();
    run();
  }

  editLast() {
    const { store } = this.page;
    const own = [...store.messagesIn(store.channelId).values()].filter(
      (message) => message.author.id === store.speakerId,
    );
    const last = own.findLast((message) => [PLAIN, REPLY].includes(message.type ?? PLAIN));
    if (last) store.choose({ editingId: last.id, replyTo: null });
  }

  async send() {
    const { store } = this.page;
    const typed = this.box.value;
    if (!typed.trim() && !this.page.uploads.files.length) return;
    const files = this.page.uploads.take();
    const { channelId, replyTo } = store;
    const body = { author_id: store.speakerId, content: toRaw(typed.trim(), store.everyone()) };
    if (replyTo) Object.assign(body, { reply_to: replyTo.id, ping: store.ping });
    this.clear();
    store.choose({ replyTo: null });
    this.page.messages.pin();
    if (await this.page.attempt(api.post(channelId, body, files))) return;
    if (store.channelId !== channelId) return void this.drafts.set(channelId, typed);
    this.page.uploads.add(files);
    if (!this.box.value) this.suggest(typed);
    store.choose({ replyTo });
  }

  /** Each channel has a draft of its own. */
  turnTo(channelId) {
    this.drafts.set(this.channelId, this.box.value);
    this.channelId = channelId;
    this.box.value = this.drafts.get(channelId) ?? "";
    this.typedAt = -Infinity;
    this.fit();
  }

  clear() {
    this.box.value = "";
    this.typedAt = -Infinity; // so that typing the next message sends a notice at once
    this.changed();
  }

  /** Run a slash command, after asking for its options, if any. `typed`: those typed already. */
  choose(entry, typed) {
    this.clear();
    this.form.open(entry, typed, () => this.focus());
  }

  render() {
    this.form.render();
    const { store } = this.page;
    const { channel } = store;
    if (store.channelId !== this.channelId) this.turnTo(store.channelId);
    const name = nameOfChannel(store, channel);
    const place = channel.parent_id ? name : `${channel.recipient_id ? "@" : "#"}${name}`;
    byId("compose-row").hidden = this.form.isOpen || FORUMS.includes(channel.type);
    this.box.placeholder = `Message ${place}`;
    this.box.setAttribute("aria-label", `Message ${place} as ${store.person(store.speakerId).name}`);
    const bar = byId("reply-bar");
    const { replyTo } = store;
    bar.hidden = !replyTo;
    part(bar, [replyTo?.id, store.ping], () => replyTo && this.replyBar(replyTo));
  }

  replyBar(message) {
    const { store } = this.page;
    const author = store.person(message.author.id, message.author);
    const ping = h(
      "button",
      {
        class: "text ping",
        "aria-pressed": String(store.ping),
        title: "Whether the reply pings its author",
        onclick: () => store.choose({ ping: !store.ping }),
      },
      `@ ${store.ping ? "ON" : "OFF"}`,
    );
    const close = h(
      "button",
      { class: "icon", "aria-label": "Cancel the reply", onclick: () => store.choose({ replyTo: null }) },
      icon("close"),
    );
    return [h("span", {}, "Replying to ", h("strong", {}, author.name)), ping, close];
  }
}
