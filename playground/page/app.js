// The page: connects its parts, and redraws them when the store has changed.

import * as api from "./api.js";
import { Composer } from "./composer.js";
import { byId } from "./dom.js";
import { Form } from "./form.js";
import { MessageList } from "./messages.js";
import { renderScenes, setUpScenes } from "./scenes.js";
import { renderSidebar, setUpSidebar } from "./sidebar.js";
import { renderSpeakers, setUpSpeakers } from "./speakers.js";
import { Store } from "./state.js";
import { renderThreadsButton, setUpThreads } from "./threads.js";
import { Uploads } from "./uploads.js";

const ERROR_MS = 6000;
const DRAW_MS = 16;

const store = new Store();

/** Context shared by the parts. */
const page = {
  store,
  attempt,
  names: {
    user: (id) => store.everyone().find((one) => one.id === id)?.name ?? null,
    channel: (id) => store.channels.find((channel) => channel.id === id)?.name ?? null,
    role: (id) => store.guild.roles?.find((role) => role.id === id)?.name ?? "role",
  },
  show: (messageId) => page.messages.show(messageId),
};
page.messages = new MessageList(page);
page.uploads = new Uploads(page);
page.composer = new Composer(page);
page.form = new Form(page);

/** Wait for a request. Returns true if it succeeded; else shows the server's error. */
async function attempt(request) {
  try {
    await request;
    return true;
  } catch (error) {
    if (!(error instanceof api.Refused)) throw error;
    showError(error.message);
    return false;
  }
}

let errorTimer = 0;

function showError(text) {
  const box = byId("error");
  box.textContent = text;
  box.hidden = false;
  clearTimeout(errorTimer);
  errorTimer = setTimeout(() => (box.hidden = true), ERROR_MS);
}

let drawing = false;

// A timer, not an animation frame: a tab in the background must still show what is unread.
function drawSoon() {
  if (drawing) return;
  drawing = true;
  setTimeout(draw, DRAW_MS);
}

function draw() {
  drawing = false;
  byId("offline").hidden = store.online;
  if (!store.guild || !store.channel) return;
  renderSidebar(page);
  renderSpeakers(page);
  renderScenes(page);
  renderThreadsButton(page);
  page.messages.render();
  page.composer.render();
  page.form.render();
  byId("typing").textContent = typingText(store.whoTypes().map((id) => store.person(id).name));
}

function typingText(names) {
  if (names.length > 3) return "Several people are typing…";
  const list = new Intl.ListFormat("en").format(names);
  return list && `${list} ${names.length > 1 ? "are" : "is"} typing…`;
}

// Typing anywhere goes into the message box, as in Discord.
document.addEventListener("keydown", (event) => {
  const idle = document.activeElement === document.body || document.activeElement.matches(".message");
  if (idle && event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) page.composer.focus();
});

setUpSidebar(page);
setUpSpeakers(page);
setUpScenes(page);
setUpThreads(page);
store.subscribe(drawSoon);
api.listen(
  (frame) => store.apply(frame),
  (online) => store.choose({ online }),
);
page.composer.focus();
