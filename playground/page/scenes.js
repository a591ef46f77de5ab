// "Try it": a menu of scripted talks that the server plays in the open channel, and a line that says which one is on.

import * as api from "./api.js";
import { byId, h, part } from "./dom.js";
import { icon } from "./icons.js";
import { openPopover } from "./popover.js";

export function setUpScenes(page) {
  const button = byId("try");
  button.prepend(icon("play"));
  button.addEventListener("click", () => openScenes(button, page));
  byId("scene-stop").addEventListener("click", () => page.attempt(api.stopScene(page.store.channelId)));
}

/** The menu, at `anchor`. */
export function openScenes(anchor, page) {
  const { store } = page;
  const play = (title) => page.attempt(api.playScene(store.channelId, title));
  const buttonOf = ({ title, look }) => ({
    label: `${title}: ${look}`,
    content: [h("strong", {}, title), h("span", {}, look)],
    run: () => play(title),
  });
  openPopover(anchor, "Scenes to try", "menu scenes", store.scenes.map(buttonOf));
}

export function renderScenes({ store }) {
  const { scene } = store.channel;
  const look = store.scenes.find((one) => one.title === scene)?.look;
  byId("scene").hidden = !scene;
  byId("try").hidden = store.scenes.length === 0;
  part(byId("scene-text"), [scene], () => scene && [h("strong", {}, `${scene}. `), look]);
}
