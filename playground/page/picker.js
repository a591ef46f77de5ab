// The list of suggestions above the message box: people after "@", the bot's commands after "/".

import { avatar, byId, h } from "./dom.js";

const SLASH_COMMAND = 1;
const AT = /(?:^|\s)@([^@\n]{0,32})$/;
const SLASH = /^\/(\S*)\s*$/;

export class Picker {
  /** `onInsert()` is called after a name was put into the box, `onCommand(command)` when a command is chosen. */
  constructor(page, box, onInsert, onCommand) {
    Object.assign(this, { page, box, onInsert, onCommand });
    this.list = byId("picker");
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
    const all = this.page.store.commands.filter((command) => command.type === SLASH_COMMAND);
    const found = all.filter((command) => command.name.startsWith(typed.toLowerCase()));
    return found.map((command) => ({
      face: [
        h("span", { class: "slash", "aria-hidden": "true" }, "/"),
        h("strong", {}, command.name),
        h("span", { class: "hint" }, command.description),
      ],
      run: () => this.onCommand(command),
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
    this.box.setAttribute("aria-expanded", String(!this.list.hidden));
    this.list.replaceChildren(...this.choices.map((choice, index) => this.option(choice, index)));
    if (this.list.hidden) this.box.removeAttribute("aria-activedescendant");
    else this.box.setAttribute("aria-activedescendant", `choice-${this.index}`);
    this.list.children[this.index]?.scrollIntoView({ block: "nearest" });
  }

  option({ face }, index) {
    // On mouse down, for the box loses the focus (and the list closes) before a click would come.
    const pick = (event) => {
      event.preventDefault();
      this.run(index);
    };
    return h(
      "div",
      { id: `choice-${index}`, role: "option", "aria-selected": String(index === this.index), onmousedown: pick },
      face,
    );
  }
}
