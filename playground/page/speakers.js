// Who the page speaks as: one radio button a person, so arrow keys switch; Alt+1, Alt+2, … switch from anywhere.

import { avatar, byId, h, syncList } from "./dom.js";

export function setUpSpeakers(page) {
  const { store } = page;
  const box = byId("speakers");
  box.addEventListener("change", (event) => store.speakAs(event.target.value));
  // A click (unlike an arrow key) is followed by typing.
  box.addEventListener("click", (event) => event.detail > 0 && page.composer.focus());
  document.addEventListener("keydown", (event) => {
    const index = /^Digit([1-9])$/.exec(event.code)?.[1] - 1;
    const person = event.altKey && [...store.people.values(), ...store.bots.values()][index];
    if (!person) return;
    event.preventDefault();
    store.speakAs(person.id);
  });
}

export function renderSpeakers({ store }) {
  const people = [...store.people.values(), ...(store.channel.recipient_id ? [] : store.bots.values())];
  const items = people.map((person, index) => ({ key: person.id, index, isApp: store.bots.has(person.id), ...person }));
  syncList(byId("speaker-list"), items, create, (label, { id }) => (label.firstChild.checked = id === store.speakerId));
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
  );
}
