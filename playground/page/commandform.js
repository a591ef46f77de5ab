// Running a slash command: at once if it has no options, else with one small input for each.

import * as api from "./api.js";
import { Autocomplete } from "./autocomplete.js";
import { objects } from "./choices.js";
import { byId, h } from "./dom.js";

const INTEGER = 4; // option types
const BOOLEAN = 5;
const NUMBER = 10;
const OBJECTS = { 6: "users", 7: "channels", 8: "roles", 9: "mentionables" };

export class CommandForm {
  constructor(page) {
    this.page = page;
    this.form = byId("command-form");
    this.completed = new Map(); // option name -> its Autocomplete
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.run(this.values());
    });
    this.form.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  /** `entry`: an entry of the picker, which is a command or subcommand with its options. */
  open(entry, typed, onClose) {
    Object.assign(this, { entry, onClose });
    this.completed.clear();
    if (!entry.options.length) return this.run({});
    this.form.setAttribute("aria-label", `/${entry.name}`);
    this.form.replaceChildren(
      h("strong", {}, `/${entry.name}`),
      ...entry.options.map((option) => this.field(option)),
      h("button", { class: "button primary" }, "Run"),
      h("button", { class: "button secondary", type: "button", onclick: () => this.close() }, "Cancel"),
    );
    this.show(true);
    this.form.querySelector(this.fill(typed) ? ".primary" : "input, select").focus();
  }

  /** Fill in options typed as "where:this server value:off". Returns whether there were any. */
  fill(typed) {
    const names = this.entry.options.map(({ name }) => name).join("|");
    const [, ...parts] = typed.split(new RegExp(`\\s(${names}):`));
    for (let at = 0; at < parts.length; at += 2) {
      const input = this.form.elements[parts[at]];
      const value = parts[at + 1].trim();
      input.value = [...(input.options ?? [])].find(({ label }) => label === value)?.value ?? value;
    }
    return parts.length > 0;
  }

  render() {
    for (const box of this.completed.values()) box.render();
  }

  get isOpen() {
    return !this.form.hidden;
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
    const body = this.request(values);
    this.close();
    this.page.messages.pin();
    this.page.attempt(api.runCommand(store.channelId, body));
  }

  request(values) {
    const { command, path } = this.entry;
    const options = path.reduceRight((inside, name) => ({ [name]: inside }), values);
    return { author_id: this.page.store.speakerId, command_id: command.id, options };
  }

  field(option) {
    const input = this.input(option, { name: option.name, required: option.required, title: option.description });
    if (option.autocomplete) {
      const ask = (typed) => {
        const body = { ...this.request({ ...this.values(), [option.name]: typed }), focused: option.name };
        return api.autocomplete(this.page.store.channelId, body);
      };
      this.completed.set(option.name, new Autocomplete(this.page, input, ask));
    }
    return h("label", {}, h("span", {}, option.name), input);
  }

  input({ type, choices, autocomplete, ...option }, attributes) {
    const offered = choices?.map(({ name, value }) => [value, name]) ?? this.offered(type, option.channel_types);
    if (offered)
      return h(
        "select",
        attributes,
        h("option", { value: "" }, ""),
        offered.map(([value, name]) => h("option", { value: String(value) }, name)),
      );
    const combobox = { role: "combobox", "aria-controls": "picker", "aria-autocomplete": "list", "aria-expanded": "false" };
    return h("input", {
      ...attributes,
      ...(autocomplete ? combobox : {}),
      type: isNumber(type) && !autocomplete ? "number" : "text",
      step: type === NUMBER ? "any" : null,
      min: option.min_value,
      max: option.max_value,
      minlength: option.min_length,
      maxlength: option.max_length,
      autocomplete: "off",
    });
  }

  /** The choices for an option of this type, [value, name]; undefined: its value is typed. */
  offered(type, channelTypes) {
    if (type === BOOLEAN) return [[true, "True"], [false, "False"]];
    return objects(OBJECTS[type], this.page.store, channelTypes);
  }

  /** Option values by name, in the types of Discord's JSON, without empty ones. */
  values() {
    const filled = this.entry.options
      .map(({ name, type }) => [name, type, this.completed.get(name)?.value ?? this.form.elements[name].value])
      .filter(([, , value]) => value !== "");
    return Object.fromEntries(filled.map(([name, type, value]) => [name, typed(type, value)]));
  }
}

const isNumber = (type) => type === INTEGER || type === NUMBER;

function typed(type, value) {
  if (type === BOOLEAN) return value === "true";
  return isNumber(type) ? Number(value) : value;
}
