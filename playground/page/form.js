// The form (Discord: modal) that the bot shows whoever used a command or a component.

import * as api from "./api.js";
import { byId, h } from "./dom.js";
import { markdown } from "./markdown.js";

const ROW = 1;
const TEXT = 10;
const PARAGRAPH = 2; // text input style
const LONGEST = 4000; // Discord: characters in a text input

export class Form {
  constructor(page) {
    this.page = page;
    this.dialog = byId("form");
    this.shown = null;
    this.dialog.addEventListener("close", () => page.store.choose({ form: null }));
  }

  render() {
    const { form: frame } = this.page.store;
    if (frame === this.shown) return;
    this.shown = frame;
    if (!frame) return this.dialog.close();
    this.dialog.replaceChildren(this.build(frame));
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.querySelector("textarea, input")?.focus();
  }

  build({ form }) {
    const send = (event) => {
      event.preventDefault();
      this.send();
    };
    this.error = h("p", { class: "form-error", role: "alert" });
    return h(
      "form",
      { onsubmit: send },
      h("h2", { id: "form-title" }, form.title),
      form.components.map((part) => this.part(part)),
      this.error,
      h(
        "div",
        { class: "form-buttons" },
        h("button", { class: "button secondary", type: "button", onclick: () => this.dialog.close() }, "Cancel"),
        h("button", { class: "button primary" }, "Submit"),
      ),
    );
  }

  part(one) {
    if (one.type === TEXT) return h("div", { class: "form-text" }, markdown(one.content, this.page.names));
    const box = one.type === ROW ? one.components[0] : one.component;
    const label = one.type === ROW ? box.label : one.label;
    return h(
      "label",
      {},
      h("span", { class: "form-label" }, label, isRequired(box) && h("span", { class: "form-required" }, " *")),
      one.description && h("span", { class: "form-description" }, one.description),
      input(box),
    );
  }

  async send() {
    const { interaction_id, channel_id, user_id: author_id } = this.shown;
    const values = Object.fromEntries(new FormData(this.dialog.querySelector("form")));
    try {
      await api.submitForm(channel_id, { author_id, interaction_id, values });
      this.dialog.close();
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.error.textContent = error.message;
    }
  }
}

const isRequired = ({ required }) => required !== false;

function input(box) {
  const attributes = {
    name: box.custom_id,
    required: isRequired(box),
    minlength: box.min_length,
    maxlength: box.max_length ?? LONGEST,
    placeholder: box.placeholder,
    autocomplete: "off",
  };
  const node = box.style === PARAGRAPH ? h("textarea", { ...attributes, rows: "5" }) : h("input", attributes);
  node.value = box.value ?? "";
  return node;
}
