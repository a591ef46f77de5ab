// The head above a channel's first message; in the first channel, a welcome with things to try.

import { h } from "./dom.js";
import { openScenes } from "./scenes.js";
import { FORUMS, posts } from "./threads.js";

const TEXT = 0; // channel type

export function start(page) {
  const { channel, channels } = page.store;
  if (channel.id === channels[0].id) return welcome(page);
  if (FORUMS.includes(channel.type)) return posts(page);
  if (channel.recipient_id) return direct(page.store);
  if (channel.parent_id) return h("h2", {}, channel.name);
  return [
    h("span", { class: "big-hash", "aria-hidden": "true" }, "#"),
    h("h2", {}, `Welcome to #${channel.name}!`),
    h("p", {}, `This is the start of the #${channel.name} channel.`),
  ];
}

const direct = (store) => [
  h("h2", {}, store.bot.name),
  h("p", {}, `What ${store.person(store.channel.recipient_id).name} and ${store.bot.name} say to each other, nobody else sees.`),
];

function welcome(page) {
  const { bot, people, guild, hasDecisions, channel, channels } = page.store;
  const [first, second, third = first] = [...people.values()];
  // The steps before it are talk with the bot, after which it offers nothing in that channel for a while.
  const quiet = channels.find((one) => one.type === TEXT && one.id !== channel.id) ?? channel;
  const watch = (event) => openScenes(event.currentTarget, page);
  const steps = [
    [`Mention ${bot.name}`, "Click its name, or type @. It answers at once.", first, `@${bot.name} what can you do?`],
    ["Go on without a mention", "It follows the conversation it is in.", first, "and what did I ask you just now?"],
    [
      "Let two people talk to each other",
      "It keeps silent; /why tells why.",
      second ?? first,
      `@${third.name} shall we have lunch at noon?`,
    ],
    ["Let it ask", "Click its answer, or type yours.", first, `@${bot.name} add shake shack`],
    [
      "Let it offer help",
      `Where nobody has talked to it yet, as in #${quiet.name}: switch it on as ${first.name}, say something, then ask something as ${(second ?? first).name}, and wait a minute and a half.`,
      first,
      "/offers on",
      quiet,
    ],
  ];
  return h(
    "div",
    { class: "welcome" },
    h("h2", {}, `Welcome to ${guild.name}`),
    h(
      "p",
      {},
      hasDecisions
        ? `This is a Discord on your own machine, with the real ${bot.name} connected to it.`
        : "This is a Discord on your own machine, to practise the set-up of your bot.",
      " You speak for everybody: choose who right above the message box, where their roles stand too. ",
      hasDecisions
        ? "The line under each message shows what the bot decided, and why."
        : "As on Discord, messages do not show what the bot decided: use /why to see it.",
    ),
    h(
      "ol",
      {},
      step("Watch a scene", "See what it answers where several people talk.", "Choose a scene", watch),
      steps.map(([title, text, speaker, words, where = channel]) => {
        const attempt = () => {
          page.store.openChannel(where.id);
          page.composer.turnTo(where.id);
          page.store.choose({ speakerId: speaker.id });
          page.composer.suggest(words);
        };
        return step(title, text, `Write as ${speaker.name}: ${words}`, attempt);
      }),
    ),
  );
}

function step(title, text, label, run) {
  return h(
    "li",
    {},
    h("div", {}, h("strong", {}, title), h("p", {}, text)),
    h("button", { class: "button secondary", title: label, onclick: run }, "Try it"),
  );
}
