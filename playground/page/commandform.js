// Running a slash command: at once if it has no options, else with one small input for each.

import * as api from "./api.js";
import { byId, h } from "./dom.js";

const INTEGER = 4;
const BOOLEAN = 5;
const USER = 6;
const CHANNEL = 7;
const NUMBER = 10;

export class CommandForm {
  constructor(page) {
    this.page = page;
    this.form = byId("command-form");
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.run(this.values());
    });
    this.form.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  /** `entry` is what the picker offers: a command, or one of its subcommands, with its options. */
  open(entry, onClose) {
    Object.assign(this, { entry, onClose });
    if (!entry.options.length) return this.run({});
    this.form.setAttribute("aria-label", `/${entry.name}`);
    this.form.replaceChildren(
      h("strong", {}, `/${entry.name}`),
      ...entry.options.map((option) => this.field(option)),
      h("button", { class: "button primary" }, "Run"),
      h("button", { class: "button secondary", type: "button", onclick: () => this.close() }, "Cancel"),
    );
    this.show(true);
    this.form.querySelector("input, select").focus();
  }

  show(isOpen) {
    this.form.hidden = !isOpen;
    byId("compose-row").hidden = isOpen;
  }

  close() {
    this.show(false);
    this.onClose();
  }

  run(values) {
    const { store } = this.page;
    const { command, path } = this.entry;
    const options = path.reduceRight((inside, name) => ({ [name]: inside }), values);
    const body = { author_id: store.speakerId, command_id: command.id, options };
    this.close();
    this.page.messages.pin();
    this.page.attempt(api.runCommand(store.channelId, body));
  }

  field(option) {
    const input = this.input(option, { name: option.name, required: option.required, title: option.description });
    return h("label", {}, h("span", {}, option.name), input);
  }

  input({ type, choices }, attributes) {
    const { store } = this.page;
    const offered =
      choices?.map(({ name, value }) => [name, value]) ??
      {
        [BOOLEAN]: [
          ["True", true],
          ["False", false],
        ],
        [USER]: store.everyone().map(({ name, id }) => [name, id]),
        [CHANNEL]: store.channels.map(({ name, id }) => [`#${name}`, id]),
      }[type];
    if (offered)
      return h(
        "select",
        attributes,
        h("option", { value: "" }, ""),
        offered.map(([name, value]) => h("option", { value: String(value) }, name)),
      );
    return h("input", {
      ...attributes,
      type: isNumber(type) ? "number" : "text",
      step: type === NUMBER ? "any" : null,
      autocomplete: "off",
    });
  }

  /** Option values by name, in the type Discord sends; those left empty are left out. */
  values() {
    const filled = this.entry.options
      .map(({ name, type }) => [name, type, this.form.elements[name].value])
      .filter(([, , value]) => value !== "");
    return Object.fromEntries(filled.map(([name, type, value]) => [name, typed(type, value)]));
  }
}

const isNumber = (type) => type === INTEGER || type === NUMBER;

function typed(type, value) {
  if (type === BOOLEAN) return value === "true";
  return isNumber(type) ? Number(value) : value;
}
