// Inputs for choices: menus of options, people, roles and channels, radio buttons and checkboxes.

import { h } from "./dom.js";

const STRING = 3; // component types
const RADIO = 21;
const CHECKBOXES = 22;
const OBJECTS = { 5: "users", 6: "roles", 7: "mentionables", 8: "channels" };
const CATEGORY = 4; // channel type
const SEARCHED_FROM = 9; // options from which on there is a search box

export const isChoice = ({ type }) => type in OBJECTS || [STRING, RADIO, CHECKBOXES].includes(type);

/** The options of a menu, [{value, label, description, chosen}]. */
function offered(part, store) {
  if (part.options)
    return part.options.map(({ value, label, description, default: chosen }) => ({ value, label, description, chosen }));
  const chosen = new Set((part.default_values ?? []).map(({ id }) => String(id)));
  return objects(OBJECTS[part.type], store, part.channel_types).map(([value, label]) => ({
    value,
    label,
    chosen: chosen.has(value),
  }));
}

/** The users, roles, mentionables or channels of a menu, [id, name]; of channels those that the speaker sees. */
export function objects(kind, store, channelTypes = []) {
  const users = store.everyone().map(({ id, name }) => [id, name]);
  const roles = store.guild.roles.map(({ id, name }) => [id, name.startsWith("@") ? name : `@${name}`]);
  const seen = store.channels.filter((channel) => !channel.recipient_id && store.sees(channel));
  const channels = [...store.categories, ...seen]
    .filter(({ type }) => !channelTypes.length || channelTypes.includes(type))
    .map(({ id, name, type }) => [id, type === CATEGORY ? `${name} (category)` : `#${name}`]);
  return { users, roles, mentionables: [...roles, ...users], channels }[kind];
}

/** The least and the greatest number of values to choose. `inForm`: in forms a part may be required. */
function counts(part, inForm) {
  const every = part.type === CHECKBOXES ? part.options.length : 1;
  const [least, most] = [part.min_values ?? 1, part.max_values ?? every];
  if (!inForm) return [least, most];
  return part.required === false ? [0, most] : [Math.max(least, 1), most];
}

/**
 * An input for a choice, {node, values(), problem()}. `problem()`: why the choice is not valid, in words; "": it is.
 * `onChange` is called if a single choice completes it; without it, or for several values, the caller decides.
 */
export function chooser(part, store, { label, inForm = false, onChange = null }) {
  const [least, most] = counts(part, inForm);
  const found = offered(part, store);
  const single = part.type === RADIO || (most === 1 && part.type !== CHECKBOXES);
  if (part.type === RADIO) return radios(part, found, label, least);
  return single ? menu(part, found, { label, least, onChange, inForm }) : checklist(part, found, { label, least, most });
}

const words = ({ label, description }) => (description ? `${label}: ${description}` : label);

function menu(part, found, { label, least, onChange, inForm }) {
  const anyChosen = found.some((one) => one.chosen);
  const hint = h(
    "option",
    { value: "", disabled: least > 0 && !inForm, hidden: least > 0, selected: !anyChosen },
    least > 0 ? (part.placeholder ?? "Make a selection") : (part.placeholder ?? "Nothing"),
  );
  const attributes = { "aria-label": label, disabled: part.disabled, "data-custom-id": part.custom_id };
  const node = h(
    "select",
    { class: "select", required: inForm && least > 0, ...attributes },
    hint,
    found.map((one) => h("option", { value: one.value, selected: one.chosen }, words(one))),
  );
  const values = () => (node.value ? [node.value] : []);
  if (onChange) node.addEventListener("change", () => onChange(values()));
  return { node, values, problem: () => "" };
}

function radios(part, found, label, least) {
  const all = least > 0 ? found : [...found, { value: "", label: "None of these", chosen: !found.some((one) => one.chosen) }];
  const box = (one) =>
    h("input", { type: "radio", name: part.custom_id, value: one.value, checked: one.chosen, required: least > 0 });
  const node = h("fieldset", { class: "choices" }, h("legend", {}, label), all.map((one) => choice(one, box(one))));
  const values = () => [...node.querySelectorAll(":checked")].map((one) => one.value).filter(Boolean);
  return { node, values, problem: () => "" };
}

function checklist(part, found, { label, least, most }) {
  const rows = found.map((one) =>
    choice(one, h("input", { type: "checkbox", value: one.value, checked: one.chosen, disabled: part.disabled })),
  );
  const list = h("div", { class: "choice-list" }, rows);
  const node = h(
    "fieldset",
    { class: "choices", "data-custom-id": part.custom_id },
    h("legend", {}, label),
    rows.length >= SEARCHED_FROM && search(label, rows),
    list,
  );
  const boxes = [...list.querySelectorAll("input")];
  const values = () => boxes.filter((box) => box.checked).map((box) => box.value);
  const limit = () => {
    const full = values().length >= most;
    for (const box of boxes) box.disabled = part.disabled || (full && !box.checked);
  };
  list.addEventListener("change", limit);
  limit();
  const problem = () => {
    const few = values().length < least && (part.required !== false || values().length > 0);
    return few ? `${label}: choose ${least === most ? least : `at least ${least}`}.` : "";
  };
  return { node, values, problem };
}

function choice(one, box) {
  const text = h("span", {}, one.label, one.description && h("small", {}, one.description));
  return h("label", { class: "choice" }, box, text);
}

function search(label, rows) {
  const show = ({ target }) => {
    const wanted = target.value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  };
  const attributes = { type: "search", placeholder: "Search", "aria-label": `Search in ${label}`, autocomplete: "off" };
  return h("input", { class: "choice-search", ...attributes, oninput: show });
}
