// The reactions below a message: one button for each emoji, which adds or removes the speaker's reaction.

import * as api from "./api.js";
import { h, syncList } from "./dom.js";

/** Update the buttons in `node` to `reactions`. Remaining buttons are kept, so that the one pressed keeps the focus. */
export function showReactions(node, { reactions, message }, page) {
  const items = reactions.map((reaction) => ({ key: reaction.emoji, ...reaction }));
  const create = ({ emoji }) => button(emoji, message, page);
  syncList(node, items, create, (shown, item) => update(shown, item, page.store));
}

function button(emoji, message, page) {
  const toggle = (event) => {
    const change = event.currentTarget.getAttribute("aria-pressed") === "true" ? api.unreact : api.react;
    page.attempt(change(message, emoji, page.store.speakerId));
  };
  return h("button", { class: "reaction", onclick: toggle }, h("span", { class: "emoji" }, emoji), h("span"));
}

function update(shown, { emoji, users, count }, store) {
  const who = users.map((id) => store.person(id).name).join(", ");
  shown.setAttribute("aria-pressed", String(users.includes(store.speakerId)));
  shown.setAttribute("aria-label", `${emoji}, ${count} ${who}`);
  shown.title = who;
  shown.lastChild.textContent = String(count);
}
