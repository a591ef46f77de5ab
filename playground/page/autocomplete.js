// A box for an option that the bot completes while it is typed.

import * as api from "./api.js";
import { h } from "./dom.js";
import { Suggestions } from "./suggestions.js";

const PAUSE_MS = 150; // of typing, before the bot is asked

export class Autocomplete extends Suggestions {
  /** `ask(typed)` requests suggestions, and returns the id under which they will arrive. */
  constructor(page, box, ask) {
    super(box);
    Object.assign(this, { page, ask, awaited: null, chosen: null });
    box.addEventListener("input", () => this.typed());
    box.addEventListener("focus", () => this.typed());
    box.addEventListener("blur", () => this.leave());
    box.addEventListener("keydown", (event) => this.key(event) && (event.preventDefault(), event.stopPropagation()));
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.request(), PAUSE_MS);
  }

  leave() {
    clearTimeout(this.timer);
    this.awaited = null;
    this.close();
  }

  async request() {
    try {
      this.awaited = (await this.ask(this.box.value)).id;
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error; // a value that is refused now may be completed by further typing
    }
    this.render();
  }

  /** Show the suggestions once they have arrived. */
  render() {
    const found = this.page.store.suggestions.get(this.awaited);
    if (!found) return;
    this.awaited = null;
    this.offer(found.map((one) => ({ face: [h("span", {}, one.name)], run: () => this.choose(one) })));
  }

  choose(one) {
    this.chosen = one;
    this.box.value = one.name;
  }

  /** The value of the choice whose name is in the box, else the typed text. */
  get value() {
    return this.chosen?.name === this.box.value ? String(this.chosen.value) : this.box.value;
  }
}
