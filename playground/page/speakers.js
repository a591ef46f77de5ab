// The person as whom the page speaks: one radio button each, so arrow keys switch; Alt+1, Alt+2, … work anywhere.

import { avatar, byId, h, syncList } from "./dom.js";

export function setUpSpeakers(page) {
  const { store } = page;
  const box = byId("speakers");
  box.addEventListener("change", (event) => store.speakAs(event.target.value));
  // After a click (unlike an arrow key) people type.
  box.addEventListener("click", (event) => event.detail > 0 && page.composer.focus());
  document.addEventListener("keydown", (event) => {
    const index = /^Digit([1-9])$/.exec(event.code)?.[1] - 1;
    const person = event.altKey && speakersOf(store)[index];
    if (!person) return;
    event.preventDefault();
    store.speakAs(person.id);
  });
}

/** Another bot has no direct messages with the bot. */
const speakersOf = ({ people, bots, channel }) => [...people.values(), ...(channel.recipient_id ? [] : bots.values())];

export function renderSpeakers({ store }) {
  const items = speakersOf(store).map((person, index) => ({ key: person.id, index, isApp: store.bots.has(person.id), ...person }));
  syncList(byId("speaker-list"), items, create, (label, person) => {
    const standing = store.standing(person);
    label.firstChild.checked = person.id === store.speakerId;
    label.lastChild.textContent = standing;
    label.lastChild.hidden = !standing;
  });
}

function create(person) {
  const radio = h("input", { type: "radio", name: "speaker", value: person.id, "aria-label": person.name });
  const hint = person.index < 9 ? `Speak as ${person.name} (Alt+${person.index + 1})` : `Speak as ${person.name}`;
  return h(
    "label",
    { class: "speaker", "data-person-id": person.id, title: hint },
    radio,
    avatar(person, "avatar tiny"),
    person.name,
    person.isApp && h("span", { class: "app-tag" }, "APP"),
    h("small", { class: "standing" }),
  );
}
