// "Try it": a menu of scripted conversations that the server plays in the open channel (or a thread's parent), and a line that names the one playing.

import * as api from "./api.js";
import { byId, h, part } from "./dom.js";
import { icon } from "./icons.js";
import { openPopover } from "./popover.js";
import { STARTS_THREADS } from "./threads.js";

export function setUpScenes(page) {
  const button = byId("try");
  button.prepend(icon("play"));
  button.addEventListener("click", () => openScenes(button, page));
  byId("scene-stop").addEventListener("click", () => page.attempt(api.stopScene(page.store.channelId)));
}

/** The menu, at `anchor`. */
export function openScenes(anchor, page) {
  const { store } = page;
  const play = async (title) => {
    const { id } = stageOf(store);
    if (await page.attempt(api.playScene(id, title))) store.openChannel(id);
  };
  const buttonOf = ({ title, look }) => ({
    label: `${title}: ${look}`,
    content: [h("strong", {}, title), h("span", {}, look)],
    run: () => play(title),
  });
  openPopover(anchor, "Scenes to try", "menu scenes", store.scenes.map(buttonOf));
}

/** The channel in which everybody can speak and start threads: no direct messages, no forum, no thread. */
function stageOf({ channel, channels }) {
  const around = channels.find(({ id }) => id === channel.parent_id) ?? channel;
  return STARTS_THREADS.includes(around.type) ? around : (channels.find(({ type }) => type === 0) ?? channel);
}

export function renderScenes({ store }) {
  const { scene } = store.channel;
  const look = store.scenes.find((one) => one.title === scene)?.look;
  byId("scene").hidden = !scene;
  byId("try").hidden = store.scenes.length === 0;
  part(byId("scene-text"), [scene], () => scene && [h("strong", {}, `${scene}. `), look]);
}
