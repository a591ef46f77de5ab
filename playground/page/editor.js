// Editing a message in place: Enter saves, Escape discards.

import * as api from "./api.js";
import { h } from "./dom.js";
import { toRaw, toTyped } from "./mentions.js";

export function editor(message, page) {
  const { store } = page;
  const box = h("textarea", {
    class: "edit-box",
    "aria-label": "Edit message",
    rows: String(message.content.split("\n").length),
  });
  box.value = toTyped(message.content, store.everyone());
  const leave = () => {
    store.choose({ editingId: null });
    page.composer.focus();
  };
  const save = async () => {
    const text = toRaw(box.value.trim(), store.everyone());
    if (text && text !== message.content && !(await page.attempt(api.edit(message, store.speakerId, text)))) return;
    leave();
  };
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
    else if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    else save();
    event.preventDefault();
    event.stopPropagation();
  });
  queueMicrotask(() => box.focus());
  const hint = [
    "escape to ",
    h("button", { class: "text", onclick: leave }, "cancel"),
    " · enter to ",
    h("button", { class: "text", onclick: save }, "save"),
  ];
  return [box, h("div", { class: "edit-hint" }, hint)];
}
