// Buttons and select menus below a message.

import { chooser, isChoice } from "./choices.js";
import { h } from "./dom.js";
import { isWeb } from "./inline.js";

const ROW = 1;
const BUTTON = 2;
const LINK_STYLE = 5;
const STYLES = { 1: "primary", 2: "secondary", 3: "success", 4: "danger", 5: "link" };

/** Nodes for a message's component rows; `use(customId, values?)` is called when one is used. */
export function components(rows, store, use) {
  return (rows ?? [])
    .filter((row) => row.type === ROW)
    .map((row) =>
      h(
        "div",
        { class: "row" },
        row.components.map((one) => component(one, store, use)),
      ),
    );
}

function component(one, store, use) {
  if (one.type === BUTTON) return one.style === LINK_STYLE ? linkButton(one) : button(one, use);
  return isChoice(one) ? select(one, store, use) : null;
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

function select(one, store, use) {
  const label = one.placeholder ?? "Make a selection";
  const { node, values } = chooser(one, store, { label, onChange: (chosen) => use(one.custom_id, chosen) });
  if (node.matches("select")) return node;
  const send = () => use(one.custom_id, values());
  const count = values().length;
  return h(
    "details",
    { class: "menu-of-many" },
    h("summary", { class: "select" }, count ? `${label} (${count} chosen)` : label),
    node,
    h("button", { class: "button secondary", disabled: one.disabled, onclick: send }, "Choose"),
  );
}
