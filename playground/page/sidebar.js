// Everything around the conversation: guild bar, channels, members, header.

import * as api from "./api.js";
import { avatar, byId, h, initials, part, syncList } from "./dom.js";
import { icon } from "./icons.js";
import { start } from "./start.js";
import { askForBot, FORUMS } from "./threads.js";

const CATEGORY = 4; // channel types
const PRIVATE_THREAD = 12;
const DRAWERS = { menu: "sidebar", people: "members" }; // the buttons that open these on a narrow screen

export function setUpSidebar(page) {
  const { store } = page;
  const open = (id) => {
    store.openChannel(id);
    page.composer.focus();
  };
  for (const name of Object.keys(DRAWERS)) {
    byId(name).append(icon(name));
    byId(name).addEventListener("click", () => openDrawer(name));
  }
  document.querySelector("#sidebar .close").append(icon("close"));
  // Before the clicked element acts, which may move the focus out of the drawer.
  document.addEventListener("click", ({ target }) => leavesDrawer(target) && closeDrawer(), { capture: true });
  document.addEventListener("keydown", (event) => event.key === "Escape" && closeDrawer());
  addEventListener("resize", closeDrawer);
  byId("channels").addEventListener("click", (event) => {
    const id = event.target.closest("[data-channel-id]")?.dataset.channelId;
    if (id) open(id);
  });
  byId("direct").addEventListener("click", () => open(store.directMessages()?.id ?? directOfFirst(store)));
  byId("decisions").addEventListener("change", (event) => store.choose({ showDecisions: event.target.checked }));
}

/** Another bot has no direct messages with the bot: those of the first person, then. */
const directOfFirst = (store) => store.channels.find((channel) => channel.recipient_id).id;

const SIGNS = { 2: "♪", 5: "!", 13: "♪", 15: "≡", 16: "≡" }; // by channel type

/** The sign before a channel's name. */
function signOf(channel) {
  if (channel.recipient_id) return "@";
  return channel.parent_id ? "›" : (SIGNS[channel.type] ?? "#");
}

/** A channel's name as it is shown. */
export const nameOfChannel = (store, channel) => (channel.recipient_id ? store.bot.name : channel.name);

let drawer = null; // name of the button whose list is open over the messages, on a narrow screen

function openDrawer(name) {
  drawer = name;
  showDrawer(name, true);
  const list = byId(DRAWERS[name]);
  (list.querySelector("[aria-current=page]") ?? list.querySelector("button")).focus();
}

function closeDrawer() {
  if (!drawer) return;
  const name = drawer;
  drawer = null;
  showDrawer(name, false);
  byId(name).focus();
}

/** While a drawer is open, nothing outside of it can be reached. */
function showDrawer(name, isOpen) {
  document.body.classList.toggle(`${name}-open`, isOpen);
  byId(name).ariaExpanded = String(isOpen);
  for (const part of document.querySelectorAll("body > :is(nav, aside, main)"))
    part.inert = isOpen && part.id !== DRAWERS[name];
}

/** Whether a click on this closes the open drawer: it is outside of it, or chooses something in it. */
function leavesDrawer(target) {
  const inside = drawer && target.closest(`#${DRAWERS[drawer]}`);
  return !inside || target.closest(".channel, .member, .membership, .close");
}

export function renderSidebar(page) {
  const { store } = page;
  const unread = store.unread.size > 0 ? "• " : "";
  const { channel } = store;
  document.title = `${unread}${signOf(channel)}${nameOfChannel(store, channel)} | ${store.guild.name}`;
  byId("guild-icon").textContent = initials(store.guild.name);
  byId("guild-name").textContent = store.guild.name;
  byId("decisions").checked = store.showDecisions;
  byId("decisions").parentNode.hidden = !store.hasDecisions;
  renderChannels(store);
  renderMembers(page);
  renderHeader(store, channel);
  const posts = FORUMS.includes(channel.type) && [store.threadsOf(channel.id), store.speakerId];
  part(byId("start"), [channel.id, channel.name, store.bot.name, posts], () => start(page));
}

function renderChannels(store) {
  const shown = (thread) => !thread.archived || thread.id === store.channelId;
  const inside = (category) =>
    store.channels
      .filter((channel) => !channel.parent_id && !channel.recipient_id && channel.category_id === category?.id)
      .filter((channel) => store.sees(channel) || channel.id === store.channelId)
      .flatMap((channel) => [channel, ...store.threadsOf(channel.id).filter(shown).reverse()]);
  const listed = [...inside(null), ...store.categories.flatMap((category) => [category, ...inside(category)])];
  const items = listed.map((channel) => ({ key: channel.id, ...channel }));
  const create = (channel) =>
    channel.type === CATEGORY ? h("li", {}, h("h3", { class: "category" })) :
    h(
      "li",
      {},
      h(
        "button",
        { class: channel.parent_id ? "channel thread" : "channel", "data-channel-id": channel.id },
        h("span", { class: "hash", "aria-hidden": "true" }, signOf(channel)),
        h("span", { class: "channel-label" }, channel.name),
      ),
    );
  const direct = store.directMessages();
  byId("direct").setAttribute("aria-current", store.channel.recipient_id ? "page" : "false");
  byId("direct").classList.toggle("unread", store.unread.has(direct?.id));
  byId("direct").lastElementChild.textContent = store.bot.name;
  syncList(byId("channels"), items, create, (node, { id, name, type }) => {
    const button = node.firstChild;
    if (type === CATEGORY) return (button.textContent = name);
    button.lastChild.textContent = name;
    const unread = store.unread.has(id);
    button.classList.toggle("unread", unread);
    button.setAttribute("aria-label", unread ? `${name}, unread` : name);
    button.setAttribute("aria-current", id === store.channelId ? "page" : "false");
  });
}

function renderMembers(page) {
  const { bot, bots, people, channel, speakerId } = page.store;
  const inside = channel.recipient_id ? [channel.recipient_id, bot.id] : (channel.parent_id && channel.members);
  const here = (person) => !inside || inside.includes(person.id);
  const listed = [...people.values()].filter(here);
  const others = [...bots.values()].filter(here);
  const isHere = bot.member && here(bot);
  const addable = channel.parent_id ? page.store.everyone().filter((one) => !here(one)) : [];
  part(byId("members"), [bot, others, listed, channel.id, addable, speakerId, page.store.guild.roles], () => [
    h("button", { class: "icon close", "aria-label": "Close" }, icon("close")),
    h("h2", {}, `App — ${Number(isHere) + others.length}`),
    isHere && member(bot, page, bot.connected),
    others.map((other) => member(other, page, true)),
    !inside && membership(bot, page),
    !inside && h("button", { class: "membership text", onclick: () => askForBot(page) }, "Add another bot"),
    h("h2", {}, `${channel.parent_id ? "In this thread" : "People"} — ${listed.length}`),
    listed.map((person) => member(person, page, true)),
    addable.map((one) => adder(one, channel, page)),
  ]);
}

function adder(person, channel, page) {
  const add = () => page.attempt(api.joinThread(channel.id, person.id, page.store.speakerId));
  return h("button", { class: "membership text", onclick: add }, `Add ${person.name} to the thread`);
}

function member(person, page, online) {
  const tag = !page.store.people.has(person.id) && h("span", { class: "app-tag" }, "APP");
  const label = `Mention ${person.name}${online ? "" : " (offline)"}`;
  const standing = page.store.people.has(person.id) && page.store.standing(person);
  const face = h("span", { class: online ? "presence online" : "presence" }, avatar(person));
  const mention = () => page.composer.mention(person);
  return h(
    "button",
    { class: online ? "member" : "member away", title: label, "aria-label": label, onclick: mention },
    face,
    h("span", { class: "member-name" }, person.name, standing && h("small", { class: "standing" }, standing)),
    tag,
  );
}

function membership(bot, page) {
  const label = bot.member ? `Remove ${bot.name} from this server` : `Add ${bot.name} to this server`;
  const change = () => (bot.member ? askToRemove(bot, page) : page.attempt(api.inviteBot()));
  return h("button", { class: "membership text", onclick: change }, label);
}

function askToRemove(bot, page) {
  const dialog = byId("removal");
  byId("removal-title").textContent = `Remove ${bot.name} from this server?`;
  dialog.returnValue = "";
  dialog.onclose = () => dialog.returnValue === "remove" && page.attempt(api.removeBot());
  dialog.showModal();
}

function renderHeader(store, channel) {
  const { bot } = store;
  byId("channel-name").textContent = nameOfChannel(store, channel);
  byId("channel-name").dataset.sign = signOf(channel);
  byId("channel-topic").textContent = topicOf(store, channel);
  const state = byId("bot-state");
  const { className, short, long } = presence(bot);
  state.className = className;
  state.title = `${bot.name} ${long}`;
  part(state, [bot], () => [h("span", { class: "dot" }), h("span", { class: "bot-name" }, bot.name), h("span", { class: "bot-word" }, short)]);
}

function topicOf(store, channel) {
  if (channel.recipient_id) return `Direct messages of ${store.person(channel.recipient_id).name}`;
  if (!channel.parent_id) return channel.topic ?? "";
  const parent = store.channels.find((one) => one.id === channel.parent_id);
  const state = [channel.type === PRIVATE_THREAD && "private", channel.archived && "archived", channel.locked && "locked"];
  return [`in #${parent.name}`, ...state, ...channel.tags].filter(Boolean).join(", ");
}

function presence({ connected, member }) {
  if (!member) return { className: "", short: "not here", long: "is not in this server" };
  if (connected) return { className: "online", short: "online", long: "is connected" };
  return { className: "", short: "offline", long: "is not connected: it cannot read or answer now" };
}
