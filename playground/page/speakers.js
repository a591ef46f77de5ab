// Who the page speaks as: one radio button a person, so arrow keys switch; Alt+1, Alt+2, … switch from anywhere.

import { avatar, byId, h, syncList } from "./dom.js";

export function setUpSpeakers(page) {
  const { store } = page;
  const box = byId("speakers");
  box.addEventListener("change", (event) => speakAs(store, event.target.value));
  // A click (unlike an arrow key) is followed by typing.
  box.addEventListener("click", (event) => event.detail > 0 && page.composer.focus());
  document.addEventListener("keydown", (event) => {
    const index = /^Digit([1-9])$/.exec(event.code)?.[1] - 1;
    const person = event.altKey && [...store.people.values()][index];
    if (!person) return;
    event.preventDefault();
    speakAs(store, person.id);
  });
}

function speakAs(store, speakerId) {
  store.choose({ speakerId, editingId: null });
}

export function renderSpeakers({ store }) {
  const items = [...store.people.values()].map((person, index) => ({ key: person.id, index, ...person }));
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
  );
}
