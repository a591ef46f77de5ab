// Threads and forum posts: the menus of the header, the dialog that names a new one, and the list of a forum's posts.

import * as api from "./api.js";
import { byId, h } from "./dom.js";
import { icon } from "./icons.js";
import { toRaw } from "./mentions.js";
import { openPopover } from "./popover.js";

export const FORUMS = [15, 16]; // channel types: forum, media
export const STARTS_THREADS = [0, 5]; // text, announcement
const ANNOUNCEMENT = 5;
const LONGEST_NAME = 100;

export function setUpThreads(page) {
  const button = byId("threads");
  button.prepend(icon("thread"));
  button.addEventListener("click", () => openThreads(button, page));
  byId("naming").addEventListener("close", () => byId("naming").replaceChildren());
}

export const holdsThreads = ({ type }) => STARTS_THREADS.includes(type) || FORUMS.includes(type);

export function renderThreadsButton({ store }) {
  const { channel } = store;
  byId("threads").hidden = !channel.parent_id && !holdsThreads(channel);
  byId("threads").lastElementChild.textContent = channel.parent_id ? "Thread" : "Threads";
}

function openThreads(anchor, page) {
  const { channel } = page.store;
  const entries = channel.parent_id ? ofThread(channel, page) : ofChannel(channel, page);
  openPopover(anchor, "Threads", "menu", entries);
}

const entry = (label, run, content = label) => ({ label, content, run });

function ofChannel(channel, page) {
  const { store } = page;
  const threads = store.threadsOf(channel.id);
  return [
    entry(FORUMS.includes(channel.type) ? "New post" : "New thread", () => askForThread(page)),
    ...threads.map((thread) => entry(`${thread.name}${state(thread)}`, () => store.openChannel(thread.id))),
  ];
}

const state = ({ archived, locked }) =>
  [archived && ", archived", locked && ", locked"].filter(Boolean).join("");

function ofThread(thread, page) {
  const { store } = page;
  const change = (changes) => () =>
    page.attempt(api.changeThread(thread.id, { author_id: store.speakerId, ...changes }));
  const isMember = thread.members.includes(store.speakerId);
  const join = isMember ? api.leaveThread : api.joinThread;
  const parent = store.channels.find((channel) => channel.id === thread.parent_id);
  return [
    entry(`Go to #${parent.name}`, () => store.openChannel(parent.id)),
    entry(isMember ? "Leave" : "Join", () => page.attempt(join(thread.id, store.speakerId, store.speakerId))),
    entry("Rename", () => ask(page, "Rename the thread", { name: thread.name }, (given) => api.changeThread(thread.id, given))),
    entry(thread.archived ? "Take out of the archive" : "Archive", change({ archived: !thread.archived })),
    entry(thread.locked ? "Unlock" : "Lock", change({ locked: !thread.locked })),
    entry("Delete", () => deleteThread(thread, page)),
  ];
}

function deleteThread(thread, page) {
  const { speakerId } = page.store;
  askToDelete("thread", () => page.attempt(api.removeChannel(thread.id, speakerId)));
}

/** Ask whether to delete a message or thread, `what`; `run()` does it. */
export function askToDelete(what, run) {
  const dialog = byId("deletion");
  byId("deletion-title").textContent = `Delete this ${what}?`;
  dialog.returnValue = "";
  dialog.onclose = () => dialog.returnValue === "delete" && run();
  dialog.showModal();
}

/** Ask for a new thread of the open channel, from `message` if given, or for a new post in a forum. */
export function askForThread(page, message = null) {
  const { channel } = page.store;
  const isForum = FORUMS.includes(channel.type);
  const fields = {
    name: "",
    content: isForum,
    tags: isForum ? channel.tags : [],
    private: !isForum && !message && channel.type !== ANNOUNCEMENT,
  };
  ask(page, isForum ? "New post" : "New thread", fields, async (given) => {
    const body = message ? { ...given, message_id: message.id } : given;
    const { id } = await api.openThread(channel.id, body);
    page.store.openWhenKnown(id);
  });
}

/** Ask for another bot's name, and add it. */
export function askForBot(page) {
  ask(page, "Add another bot", { name: "CI" }, api.addBot);
}

/** A dialog with these fields. `send(given)` is called with their values, in the speaker's name. */
function ask(page, title, fields, send) {
  const dialog = byId("naming");
  const name = h("input", { name: "name", required: true, maxlength: String(LONGEST_NAME), value: fields.name });
  const submit = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const given = { author_id: page.store.speakerId, name: form.get("name") };
    if (fields.content) Object.assign(given, { content: toRaw(form.get("content"), page.store.everyone()), tags: form.getAll("tags") });
    if (fields.private) given.private = form.has("private");
    if (await page.attempt(send(given))) dialog.close();
  };
  dialog.replaceChildren(
    h(
      "form",
      { onsubmit: submit },
      h("h2", { id: "naming-title" }, title),
      labelled(fields.content ? "Title" : "Name", name),
      fields.content && labelled("Message", h("textarea", { name: "content", rows: "4", required: true })),
      fields.tags?.length > 0 && tagBoxes(fields.tags),
      fields.private && checkbox("private", "on", "Private: only who is added can see it"),
      h(
        "div",
        { class: "form-buttons" },
        h("button", { class: "button secondary", type: "button", onclick: () => dialog.close() }, "Cancel"),
        h("button", { class: "button primary" }, title),
      ),
    ),
  );
  dialog.showModal();
  name.focus();
}

const labelled = (text, box) => h("label", {}, h("span", { class: "form-label" }, text), box);

const checkbox = (name, value, text) =>
  h("label", { class: "form-check" }, h("input", { type: "checkbox", name, value }), text);

const tagBoxes = (tags) =>
  h(
    "fieldset",
    { class: "form-tags" },
    h("legend", { class: "form-label" }, "Tags"),
    tags.map((tag) => checkbox("tags", tag, tag)),
  );

/** The list of posts that a forum shows instead of messages. */
export function posts(page) {
  const { store } = page;
  const { channel } = store;
  const shown = store.threadsOf(channel.id);
  const buttonOf = (thread) =>
    h(
      "li",
      {},
      h(
        "button",
        { class: "post", onclick: () => store.openChannel(thread.id) },
        h("strong", {}, thread.name),
        thread.tags.map((tag) => h("span", { class: "pill" }, tag)),
        h("span", { class: "post-state" }, `by ${store.person(thread.owner_id).name}${state(thread)}`),
      ),
    );
  return [
    h("h2", {}, channel.name),
    h("p", {}, shown.length ? "Each post is a thread of its own." : "Nothing is posted here yet."),
    h("button", { class: "button primary", onclick: () => askForThread(page) }, "New post"),
    h("ul", { class: "posts", "aria-label": "Posts" }, shown.map(buttonOf)),
  ];
}
