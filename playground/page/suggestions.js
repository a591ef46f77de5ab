// The list of suggestions, shared by all text boxes. The box being typed in keeps the focus.

import { byId, h } from "./dom.js";

export class Suggestions {
  constructor(box) {
    this.box = box;
    this.list = byId("picker");
    // The box keeps the focus, or the list would close before the click.
    this.list.onmousedown = (event) => event.preventDefault();
    this.close();
  }

  /** Show `choices` = [{face, run}], the first of them marked. */
  offer(choices) {
    Object.assign(this, { choices, index: 0 });
    this.draw();
  }

  close() {
    this.offer([]);
  }

  /** Whether the list has handled the key. */
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
    if (this.box.role === "combobox") this.box.ariaExpanded = String(!this.list.hidden);
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
