// Everything around the conversation: guild bar, channels, members, header.

import * as api from "./api.js";
import { avatar, byId, h, initials, part, syncList } from "./dom.js";
import { icon } from "./icons.js";
import { start } from "./start.js";

const DRAWERS = ["menu", "people"]; // the buttons that open channels and members on a narrow screen

export function setUpSidebar(page) {
  const { store } = page;
  for (const name of DRAWERS) {
    byId(name).append(icon(name));
    byId(name).addEventListener("click", () => openDrawer(byId(name).ariaExpanded === "false" && name));
  }
  byId("scroller").addEventListener("click", () => openDrawer(null));
  byId("members").addEventListener("click", (event) => event.target.closest("button") && openDrawer(null));
  document.addEventListener("keydown", (event) => event.key === "Escape" && openDrawer(null));
  byId("channels").addEventListener("click", (event) => {
    const id = event.target.closest("[data-channel-id]")?.dataset.channelId;
    if (!id) return;
    openDrawer(null);
    store.openChannel(id);
    page.composer.focus();
  });
  byId("decisions").addEventListener("change", (event) => store.choose({ showDecisions: event.target.checked }));
}

/** Where there is no room for channels or members, this button's list lies over the messages; null: none does. */
function openDrawer(open) {
  for (const name of DRAWERS) {
    document.body.classList.toggle(`${name}-open`, name === open);
    byId(name).ariaExpanded = String(name === open);
  }
}

export function renderSidebar(page) {
  const { store } = page;
  const unread = store.unread.size > 0 ? "• " : "";
  document.title = `${unread}#${store.channel.name} | ${store.guild.name}`;
  byId("guild-icon").textContent = initials(store.guild.name);
  byId("guild-name").textContent = store.guild.name;
  byId("decisions").checked = store.showDecisions;
  renderChannels(store);
  renderMembers(page);
  renderHeader(store);
  part(byId("start"), [store.channel.id, store.channel.name, store.bot.name], () => start(page));
}

function renderChannels(store) {
  const items = store.channels.map((channel) => ({ key: channel.id, ...channel }));
  const create = ({ id, name }) =>
    h(
      "li",
      {},
      h(
        "button",
        { class: "channel", "data-channel-id": id },
        h("span", { class: "hash", "aria-hidden": "true" }, "#"),
        name,
      ),
    );
  syncList(byId("channels"), items, create, (node, { id, name }) => {
    const button = node.firstChild;
    const unread = store.unread.has(id);
    button.classList.toggle("unread", unread);
    button.setAttribute("aria-label", unread ? `${name}, unread` : name);
    button.setAttribute("aria-current", id === store.channelId ? "page" : "false");
  });
}

function renderMembers(page) {
  const { bot, people } = page.store;
  const listed = [...people.values()];
  part(byId("members"), [bot, listed], () => [
    h("h2", {}, `App — ${Number(bot.member)}`),
    bot.member && member(bot, page, bot.connected),
    membership(bot, page),
    h("h2", {}, `People — ${listed.length}`),
    listed.map((person) => member(person, page, true)),
  ]);
}

function member(person, page, online) {
  const tag = person.id === page.store.bot.id && h("span", { class: "app-tag" }, "APP");
  const label = `Mention ${person.name}${online ? "" : " (offline)"}`;
  const face = h("span", { class: online ? "presence online" : "presence" }, avatar(person));
  const mention = () => page.composer.mention(person);
  return h(
    "button",
    { class: online ? "member" : "member away", title: label, "aria-label": label, onclick: mention },
    face,
    h("span", { class: "member-name" }, person.name),
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

function renderHeader({ channel, bot }) {
  byId("channel-name").textContent = channel.name;
  byId("channel-topic").textContent = channel.topic ?? "";
  const state = byId("bot-state");
  const { className, short, long } = presence(bot);
  state.className = className;
  state.title = `${bot.name} ${long}`;
  part(state, [bot], () => [h("span", { class: "dot" }), h("span", { class: "bot-name" }, bot.name), h("span", { class: "bot-word" }, short)]);
}

function presence({ connected, member }) {
  if (!member) return { className: "", short: "not here", long: "is not in this server" };
  if (connected) return { className: "online", short: "online", long: "is connected" };
  return { className: "", short: "offline", long: "is not connected: it cannot read or answer now" };
}
