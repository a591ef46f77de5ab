// Buttons and select menus below a message.

import { h } from "./dom.js";
import { isWeb } from "./inline.js";

const ROW = 1;
const BUTTON = 2;
const STRING_SELECT = 3;
const LINK_STYLE = 5;
const STYLES = { 1: "primary", 2: "secondary", 3: "success", 4: "danger", 5: "link" };

/** Nodes for a message's component rows; `use(customId, values?)` is called when one is used. */
export function components(rows, use) {
  return (rows ?? [])
    .filter((row) => row.type === ROW)
    .map((row) =>
      h(
        "div",
        { class: "row" },
        row.components.map((one) => component(one, use)),
      ),
    );
}

function component(one, use) {
  if (one.type === BUTTON) return one.style === LINK_STYLE ? linkButton(one) : button(one, use);
  if (one.type === STRING_SELECT) return select(one, use);
  return null;
}

const face = (one) => [one.emoji?.name && h("span", { class: "emoji" }, one.emoji.name), one.label];

function button(one, use) {
  const attributes = { class: `button ${STYLES[one.style]}`, disabled: one.disabled, "data-custom-id": one.custom_id };
  return h("button", { ...attributes, onclick: () => use(one.custom_id) }, face(one));
}

function linkButton(one) {
  if (one.disabled || !isWeb(one.url)) return h("button", { class: "button link", disabled: true }, face(one));
  return h("a", { class: "button link", href: one.url, target: "_blank", rel: "noopener noreferrer" }, face(one), " ↗");
}

function select(one, use) {
  const many = (one.max_values ?? 1) > 1;
  const label = one.placeholder ?? "Make a selection";
  const attributes = { "aria-label": label, disabled: one.disabled, multiple: many, "data-custom-id": one.custom_id };
  const options = one.options.map((option) => optionOf(option));
  const hint = h(
    "option",
    { value: "", disabled: true, hidden: true, selected: !one.options.some((option) => option.default) },
    label,
  );
  const node = h("select", { class: "select", ...attributes }, many ? options : [hint, ...options]);
  const send = () =>
    use(
      one.custom_id,
      [...node.selectedOptions].map((option) => option.value),
    );
  if (!many) node.addEventListener("change", send);
  return many
    ? [node, h("button", { class: "button secondary", disabled: one.disabled, onclick: send }, "Choose")]
    : node;
}

function optionOf(option) {
  const text = option.description ? `${option.label}: ${option.description}` : option.label;
  return h("option", { value: option.value, selected: option.default }, text);
}
