// The toolbar on the message that is hovered or focused: react, reply, edit, delete, and the bot's message commands.

import * as api from "./api.js";
import { byId, h, part } from "./dom.js";
import { icon } from "./icons.js";
import { canStartThread } from "./message.js";
import { openPopover } from "./popover.js";
import { askForThread, askToDelete, FORUMS, holdsThreads } from "./threads.js";

const MESSAGE_COMMAND = 3;
const QUICK = ["👍", "👎", "❤️"];
const EMOJI = [..."👍👎😀😂😍😮😢😡🎉🔥👀🙏💯✅❌🤔👏🚀", "❤️"];

const toolbar = h("div", { class: "toolbar", role: "toolbar", "aria-label": "Message actions" });

export function attachToolbar(row, page) {
  if (toolbar.parentNode !== row) row.append(toolbar);
  refreshToolbar(page);
}

/** Show the actions that the speaker may do with the toolbar's message. */
export function refreshToolbar(page) {
  const id = toolbar.parentNode?.dataset.messageId;
  const message = page.store.messagesIn(page.store.channelId).get(id);
  toolbar.hidden = !message;
  if (!message) return;
  const commands = page.store.commandsOf(MESSAGE_COMMAND);
  const own = message.author.id === page.store.speakerId;
  const { channel } = page.store;
  const threads = holdsThreads(channel) && !FORUMS.includes(channel.type) && canStartThread(message);
  part(toolbar, [id, own, commands, threads], () => buttons(message.id, { own, commands, threads }, page));
}

function buttons(id, { own, commands, threads }, page) {
  const { store } = page;
  const current = () => store.messagesIn(store.channelId).get(id);
  const react = (emoji) => page.attempt(api.react(current(), emoji, store.speakerId));
  return [
    QUICK.map((emoji) =>
      h(
        "button",
        {
          "aria-label": `React ${emoji}`,
          title: `React ${emoji}`,
          "data-action": `react ${emoji}`,
          onclick: () => react(emoji),
        },
        emoji,
      ),
    ),
    action("react", "Add a reaction", (event) => openEmoji(event.currentTarget, react)),
    action("reply", "Reply", () => page.composer.reply(current())),
    threads && action("thread", "Start a thread", () => askForThread(page, current())),
    own && action("edit", "Edit", () => store.choose({ editingId: id, replyTo: null })),
    own && action("delete", "Delete", () => deleteMessage(current(), page), "trash"),
    commands.length > 0 && action("apps", "Apps", (event) => openApps(event.currentTarget, current(), commands, page)),
  ];
}

const action = (name, label, onclick, picture = name) =>
  h("button", { "aria-label": label, title: label, "data-action": name, onclick }, icon(picture));

function deleteMessage(message, page) {
  const speakerId = page.store.speakerId;
  askToDelete("message", () => page.attempt(api.remove(message, speakerId)));
}

function openEmoji(anchor, react) {
  const buttonOf = (emoji) => ({ label: emoji, content: emoji, run: () => react(emoji) });
  openPopover(anchor, "Reactions", "emoji-grid", EMOJI.map(buttonOf));
}

function openApps(anchor, message, commands, page) {
  const buttonOf = (command) => ({
    label: command.name,
    content: command.name,
    run: () => run(command, message, page),
  });
  openPopover(anchor, "Apps", "menu", commands.map(buttonOf));
}

function run(command, message, page) {
  const body = { author_id: page.store.speakerId, command_id: command.id, options: {}, target_id: message.id };
  page.attempt(api.runCommand(message.channel_id, body));
}
