// The list of suggestions above the message box: people after "@", the bot's commands after "/".

import { avatar, byId, h } from "./dom.js";

const SLASH_COMMAND = 1;
const AT = /(?:^|\s)@([^@\n]{0,32})$/;
const SLASH = /^\/([^\n]*)$/;
const NESTING = [1, 2]; // option types: a subcommand, a group of them

/** What can be run of a command: itself, or each of its subcommands, {command, path, name, description, options}. */
function runnable(command, { name, description, options = [] } = command, path = []) {
  if (!NESTING.includes(options[0]?.type))
    return [{ command, path, name: [command.name, ...path].join(" "), description, options }];
  return options.flatMap((option) => runnable(command, option, [...path, option.name]));
}

export class Picker {
  /** `onInsert()` is called after a name was put into the box, `onCommand(entry)` when a command is chosen. */
  constructor(page, box, onInsert, onCommand) {
    Object.assign(this, { page, box, onInsert, onCommand });
    this.list = byId("picker");
    // The box keeps the focus: without it the list closes, before a click would come.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
    this.close();
  }

  close() {
    this.choices = [];
    this.draw();
  }

  /** Look at what stands before the caret, and suggest. */
  update() {
    const before = this.box.value.slice(0, this.box.selectionStart);
    const slash = SLASH.exec(this.box.value);
    const at = AT.exec(before);
    this.index = 0;
    if (slash) this.choices = this.commands(slash[1]);
    else this.choices = at ? this.names(at[1]) : [];
    this.draw();
  }

  commands(typed) {
    const wanted = typed.toLowerCase();
    const all = this.page.store.commandsOf(SLASH_COMMAND).flatMap((command) => runnable(command));
    const found = all.filter(({ name }) => name.startsWith(wanted) || name === wanted.trimEnd());
    return found.map((entry) => ({
      face: [
        h("span", { class: "slash", "aria-hidden": "true" }, "/"),
        h("strong", {}, entry.name),
        h("span", { class: "hint" }, entry.description),
      ],
      run: () => this.onCommand(entry),
    }));
  }

  names(typed) {
    const found = this.page.store
      .everyone()
      .filter((person) => person.name.toLowerCase().startsWith(typed.toLowerCase()));
    return found.map((person) => ({
      face: [avatar(person, "avatar tiny"), h("strong", {}, person.name)],
      run: () => this.insert(person, typed),
    }));
  }

  insert(person, typed) {
    const caret = this.box.selectionStart;
    this.box.setRangeText(`@${person.name} `, caret - typed.length - 1, caret, "end");
    this.onInsert();
  }

  /** True if the key was for the list. */
  key({ key, shiftKey }) {
    if (!this.choices.length) return false;
    if (key === "ArrowDown") this.move(1);
    else if (key === "ArrowUp") this.move(-1);
    else if ((key === "Enter" && !shiftKey) || key === "Tab") this.run(this.index);
    else if (key === "Escape") this.close();
    else return false;
    return true;
  }

  move(step) {
    this.index = (this.index + step + this.choices.length) % this.choices.length;
    this.draw();
  }

  run(index) {
    const { run } = this.choices[index];
    this.close();
    run();
  }

  draw() {
    this.list.hidden = !this.choices.length;
    this.list.replaceChildren(...this.choices.map((choice, index) => this.option(choice, index)));
    if (this.list.hidden) this.box.removeAttribute("aria-activedescendant");
    else this.box.setAttribute("aria-activedescendant", `choice-${this.index}`);
    this.list.children[this.index]?.scrollIntoView({ block: "nearest" });
  }

  option({ face }, index) {
    return h(
      "div",
      { id: `choice-${index}`, role: "option", "aria-selected": String(index === this.index), onmousedown: () => this.run(index) },
      face,
    );
  }
}
