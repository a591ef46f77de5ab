// Discord's inline markdown as DOM nodes: emphasis, code, spoilers, links, mentions, timestamps.
// Text is hostile: it becomes text nodes only, and links are http or https.

import { h } from "./dom.js";

const DEPTH = 8; // emphasis nested deeper than this stays plain text

/** Nodes for `text`. `names` = {user, channel, role} are functions from an id to a name, or null if it is unknown. */
export function inline(text, names, depth = 0) {
  const nodes = [];
  let at = 0;
  while (at < text.length) {
    const [node, end] = match(text, at, names, depth);
    nodes.push(node);
    at = end;
  }
  return nodes;
}

function match(text, at, names, depth) {
  for (const [pattern, build] of depth < DEPTH ? RULES : []) {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (!found) continue;
    const end = pattern.lastIndex;
    const node = build(found, (inner) => inline(inner, names, depth + 1), names);
    if (node !== null) return [node, end];
  }
  PLAIN.lastIndex = at;
  PLAIN.exec(text);
  return [text.slice(at, PLAIN.lastIndex), PLAIN.lastIndex];
}

// One character, and all following ones with which no rule can begin.
const PLAIN = /[\s\S][^\\`*_~|<@[h]*/uy;

const wrap =
  (tag, attributes = {}) =>
  ([, inner], nest) =>
    h(tag, attributes, nest(inner));

const RULES = [
  [/\\([^0-9A-Za-z\s])/uy, ([, character]) => character],
  [/(?<!`)(`+)(?!`)([\s\S]*?[^`])\1(?!`)/y, ([, , code]) => h("code", {}, code.replace(/^ (.*) $/, "$1"))],
  [/\*\*((?:\\[\s\S]|[^\\])+?)\*\*(?!\*)/y, wrap("strong")],
  [/__((?:\\[\s\S]|[^\\])+?)__(?!_)/y, wrap("u")],
  [/\*(?![\s*])((?:\*\*|\\[\s\S]|[^*\\])+?)(?<!\s)\*(?!\*)/y, wrap("em")],
  [/(?<!\w)_((?:__|\\[\s\S]|[^_\\])+?)_(?!\w)/y, wrap("em")],
  [/~~(?=\S)((?:\\[\s\S]|[^\\])+?)~~/y, wrap("s")],
  [/\|\|((?:\\[\s\S]|[^\\])+?)\|\|/y, ([, inner], nest) => spoiler(nest(inner))],
  [/\[([^\]\n]+)\]\(<?((?:[^\s()<>]|\([^\s()<>]*\))+)>?\)/y, ([, label, url], nest) => masked(label, url, nest)],
  [/<(https?:\/\/[^\s<>]+)>/y, ([, url]) => link(url, url)],
  [/(https?:\/\/[^\s\/<>]+)\/channels\/\d+\/(\d+)\/\d+/y, ([url, site, id], _, names) => jump(url, site, names.channel(id))],
  [/https?:\/\/[^\s<]*[^\s<.,:;"'\])!?]/y, ([url]) => link(url, url)],
  [/<@!?(\d+)>/y, ([raw, id], _, names) => mention(raw, "@", names.user(id))],
  [/<@&(\d+)>/y, ([raw, id], _, names) => mention(raw, "@", names.role(id))],
  [/<#(\d+)>/y, ([raw, id], _, names) => mention(raw, "#", names.channel(id))],
  [/@(everyone|here)\b/y, ([raw, name]) => mention(raw, "@", name)],
  [/<\/([^:>\n]+):\d+>/y, ([raw, name]) => mention(raw, "/", name)],
  [/<a?(:\w+:)\d+>/y, ([, name]) => name],
  [/<t:(-?\d{1,12})(?::([tTdDfFR]))?>/y, ([, seconds, style]) => timestamp(Number(seconds), style ?? "f")],
];

const mention = (raw, sign, name) => h("span", { class: "pill", title: raw }, name === null ? raw : sign + name);

const LINK = { target: "_blank", rel: "noopener noreferrer" };

/** Whether an address begins as links to messages of this server do. */
export const isOurs = (site) => site === "https://discord.com" || site === location.origin;

/** A link to a message, with the text of Discord's client. null: its channel is not in the guild. */
const jump = (url, site, name) =>
  isOurs(site) && name ? h("a", { class: "pill", href: url, title: url, ...LINK }, `#${name} › 💬`) : null;

/** A link; null if the address is not http or https (javascript:, data:, nonsense). */
export function link(url, label) {
  if (!isWeb(url)) return null;
  return h("a", { href: url, title: url, ...LINK }, label);
}

/** A link with a label. A label that looks like an address is refused, since it could lie about the target. */
const masked = (label, url, nest) => (label.includes("://") ? null : link(url, nest(label)));

export function isWeb(url) {
  return /^https?:\/\//i.test(url) && URL.canParse(url);
}

function spoiler(content) {
  const reveal = (event) => {
    if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.currentTarget.classList.add("shown");
    event.currentTarget.removeAttribute("aria-label");
  };
  const attributes = { class: "spoiler", role: "button", tabindex: "0", "aria-label": "Spoiler, press to show" };
  return h("span", { ...attributes, onclick: reveal, onkeydown: reveal }, h("span", {}, content));
}

const TIME_STYLES = {
  t: { timeStyle: "short" },
  T: { timeStyle: "medium" },
  d: { dateStyle: "short" },
  D: { dateStyle: "long" },
  f: { dateStyle: "long", timeStyle: "short" },
  F: { dateStyle: "full", timeStyle: "short" },
};

function timestamp(seconds, style) {
  const date = new Date(seconds * 1000);
  const full = date.toLocaleString([], TIME_STYLES.F);
  const text = style === "R" ? relative(seconds - Date.now() / 1000) : date.toLocaleString([], TIME_STYLES[style]);
  return h("time", { class: "stamp", datetime: date.toISOString(), title: full }, text);
}

const UNITS = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

function relative(seconds) {
  const [unit, size] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? UNITS.at(-1);
  return new Intl.RelativeTimeFormat([], { numeric: "auto" }).format(Math.round(seconds / size), unit);
}
