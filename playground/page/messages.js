// The list of messages: its rows (days, groups of one author), and keeping it scrolled to the bottom.

import { byId, h, part, syncList } from "./dom.js";
import { isOurs } from "./inline.js";
import { createRow, isSilent, updateRow } from "./message.js";
import { attachToolbar, refreshToolbar } from "./toolbar.js";

const GROUP_MS = 7 * 60_000; // Discord groups an author's messages within seven minutes
const NEAR_PX = 40;
const FLASH_MS = 1500;
const THREAD_CREATED = 18; // message types
const THREAD_STARTER = 21; // it shows the channel's message from which the thread was started
const FORWARD = 1; // message reference type
const MESSAGE_LINK = /^(https?:\/\/[^\/]+)\/channels\/(\d+)\/(\d+)\/(\d+)$/;

export class MessageList {
  constructor(page) {
    this.page = page;
    this.scroller = byId("scroller");
    this.list = byId("messages");
    this.toPresent = byId("to-present");
    this.pinned = true;
    this.lastTop = 0;
    this.shown = null;
    this.wanted = null;
    this.followGrowth();
    this.followFocus();
    this.followLinks();
    this.toPresent.addEventListener("click", () => this.pin());
  }

  /** Scroll to the newest messages, and stay there. Where there are none yet, the welcome is read from its top. */
  pin() {
    this.pinned = true;
    this.scroller.scrollTop = this.list.childElementCount ? this.scroller.scrollHeight : 0;
    this.toPresent.hidden = true;
  }

  isNear() {
    const { scrollHeight, clientHeight, scrollTop } = this.scroller;
    return scrollHeight - clientHeight - scrollTop < NEAR_PX;
  }

  // Only scrolling up by a person leaves the bottom, not content that grew since the last frame.
  followGrowth() {
    const { scroller } = this;
    scroller.addEventListener("scroll", () => {
      this.pinned = this.isNear() || (this.pinned && scroller.scrollTop >= this.lastTop);
      this.lastTop = scroller.scrollTop;
      this.toPresent.hidden = this.pinned;
    });
    const observer = new ResizeObserver(() => this.pinned && this.pin());
    observer.observe(scroller);
    observer.observe(byId("scrolled"));
  }

  // The list is one tab stop. Arrow keys move from message to message, and the toolbar moves along.
  followFocus() {
    const attach = (event) => {
      const row = event.target.closest(".message");
      if (row) attachToolbar(row, this.page);
    };
    this.list.addEventListener("mouseover", attach);
    this.list.addEventListener("focusin", attach);
    this.list.addEventListener("keydown", (event) => {
      const step = { ArrowUp: "previousElementSibling", ArrowDown: "nextElementSibling" }[event.key];
      if (!step || !event.target.matches(".message")) return;
      let row = event.target[step];
      while (row && !row.matches(".message")) row = row[step];
      row?.focus();
      event.preventDefault();
    });
  }

  // Links to messages of this guild lead to them on the page, as in Discord.
  followLinks() {
    this.list.addEventListener("click", (event) => {
      const { guild, channels } = this.page.store;
      const [, site, guildId, channelId, messageId] = MESSAGE_LINK.exec(event.target.closest("a")?.href) ?? [];
      if (!isOurs(site) || guildId !== guild.id || !channels.some((channel) => channel.id === channelId)) return;
      event.preventDefault();
      this.show(messageId, channelId);
    });
  }

  render() {
    const { store } = this.page;
    this.list.classList.toggle("no-decisions", !store.showDecisions);
    this.list.setAttribute("aria-label", `Messages in ${store.channel.name}`);
    syncList(this.list, listItems(store), createItem, (node, item) => updateItem(node, item, this.page));
    for (const row of this.list.querySelectorAll('.message[tabindex="0"]')) row.tabIndex = -1;
    const last = this.list.querySelector(".message:last-child");
    if (last) last.tabIndex = 0;
    refreshToolbar(this.page);
    if (this.shown !== store.channelId) this.pin();
    this.shown = store.channelId;
    if (this.wanted) this.show(this.wanted);
    this.wanted = null;
  }

  /** Scroll to a message and highlight it briefly; in another channel after that is drawn. */
  show(messageId, channelId = this.page.store.channelId) {
    if (channelId !== this.page.store.channelId) {
      this.wanted = messageId;
      this.page.store.openChannel(channelId);
      return;
    }
    const row = this.list.querySelector(`[data-message-id="${messageId}"]`);
    if (!row) return;
    row.scrollIntoView({ block: "center" });
    this.pinned = this.isNear();
    row.classList.add("flash");
    setTimeout(() => row.classList.remove("flash"), FLASH_MS);
  }
}

const createItem = (item) => (item.kind === "day" ? h("li", { class: "day" }) : createRow(item));

function updateItem(node, item, page) {
  if (item.kind === "day") part(node, [item.key], () => h("span", {}, item.label));
  else updateRow(node, item, page);
}

function listItems(store) {
  const items = [];
  let previous = null;
  for (const message of store.visibleMessages()) {
    const day = new Date(message.timestamp).toDateString();
    const newDay = !previous || day !== new Date(previous.timestamp).toDateString();
    if (newDay) items.push({ kind: "day", key: `day ${day}`, label: dayLabel(message.timestamp) });
    items.push(messageItem(store, message, newDay ? null : previous));
    previous = message;
  }
  return items;
}

const dayLabel = (iso) => new Date(iso).toLocaleDateString([], { dateStyle: "long" });

function messageItem(store, message, previous) {
  const isStarter = message.type === THREAD_STARTER;
  const replied = original(store, message);
  const author = (isStarter && replied?.author) || message.author;
  const item = {
    kind: "message",
    key: message.id,
    message,
    author: store.person(author.id, author),
    reference: isStarter && replied ? undefined : replied,
    starter: isStarter ? replied : null,
    thread: store.channels.find(({ id, parent_id }) => parent_id === message.channel_id && id === threadOf(message)),
    reactions: store.reactionsTo(message),
    annotation: store.annotations.get(message.id),
    ephemeral: store.isEphemeral(message.id),
    failed: store.hasFailed(message.id),
    editing: store.editingId === message.id,
    replying: store.replyTo?.id === message.id,
    mentionsMe: message.mention_everyone || (message.mentions ?? []).some((user) => user.id === store.speakerId),
  };
  item.grouped = previous !== null && isGrouped(store, item, previous);
  item.inputs = [...Object.values(item), store.speakerId, store.guild];
  return item;
}

function isGrouped(store, { message, reference, ephemeral }, previous) {
  const sameAuthor = previous.author.id === message.author.id && ephemeral === store.isEphemeral(previous.id);
  const sameSound = isSilent(previous) === isSilent(message);
  const soon = new Date(message.timestamp) - new Date(previous.timestamp) < GROUP_MS;
  const talk = previous.type !== THREAD_STARTER;
  return talk && sameAuthor && sameSound && soon && reference === undefined && !message.interaction_metadata;
}

/** Id of the thread that was started from a message, or that a system message is about. */
const threadOf = ({ id, type, message_reference: reference }) => (type === THREAD_CREATED ? reference.channel_id : id);

/** The message that this one replies to. undefined: it is no reply; null: that message was deleted. */
function original(store, { message_reference: reference, referenced_message: sent }) {
  if (!reference?.message_id || reference.type === FORWARD) return undefined;
  const kept = store.messages.get(reference.channel_id)?.get(reference.message_id);
  return kept ?? sent ?? null;
}
