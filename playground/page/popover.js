// The floating box: a menu or a grid of buttons beside the clicked element. Escape and clicks elsewhere close it.

import { byId, h } from "./dom.js";

const MARGIN = 8;

/** Open at `anchor` with `buttons` = [{label, content, run, title?}], laid out by `className`. */
export function openPopover(anchor, label, className, buttons) {
  const box = byId("popover");
  box.replaceChildren(...buttons.map((button) => item(button)));
  box.className = className;
  box.setAttribute("role", "menu");
  box.setAttribute("aria-label", label);
  box.showPopover();
  place(box, anchor.getBoundingClientRect());
  box.firstElementChild?.focus();
  box.ontoggle = (event) => event.newState === "closed" && refocus(anchor.closest("[tabindex]"));
}

// The browser would return the focus to the button that opened the box, which is hidden with its toolbar.
function refocus(owner) {
  if (byId("popover").contains(document.activeElement)) owner?.focus();
}

function item({ label, content, run, title }) {
  const choose = () => {
    byId("popover").hidePopover();
    run();
  };
  return h("button", { role: "menuitem", "aria-label": label, title, onclick: choose, onkeydown: moveFocus }, content);
}

const STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };

function moveFocus(event) {
  const items = [...byId("popover").children];
  const step = STEPS[event.key];
  if (!step) return;
  event.preventDefault();
  items.at((items.indexOf(event.currentTarget) + step) % items.length).focus();
}

function place(box, anchor) {
  const left = Math.min(anchor.left, innerWidth - box.offsetWidth - MARGIN);
  const above = anchor.top - box.offsetHeight - MARGIN;
  box.style.left = `${Math.max(MARGIN, left)}px`;
  box.style.top = `${above > MARGIN ? above : Math.min(anchor.bottom + MARGIN, innerHeight - box.offsetHeight - MARGIN)}px`;
}
