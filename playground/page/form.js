// The form (Discord: modal) that the bot shows to the user of a command or component.

import * as api from "./api.js";
import { chooser, isChoice } from "./choices.js";
import { byId, h } from "./dom.js";
import { markdown } from "./markdown.js";

const ROW = 1;
const TEXT_INPUT = 4;
const TEXT = 10;
const RADIO = 21;
const CHECKBOX = 23;
const PARAGRAPH = 2; // text input style
const LONGEST = 4000; // Discord: characters in a text input

export class Form {
  constructor(page) {
    this.page = page;
    this.dialog = byId("form");
    this.shown = null;
    this.inputs = []; // {customId, value(), problem()}
    this.dialog.addEventListener("close", () => page.store.choose({ form: null }));
  }

  render() {
    const { form: frame } = this.page.store;
    if (frame === this.shown) return;
    this.shown = frame;
    if (!frame) return this.dialog.close();
    this.inputs = [];
    this.dialog.replaceChildren(this.build(frame));
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.querySelector("textarea, input, select")?.focus();
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
    const input = one.type === ROW ? one.components[0] : one.component;
    const label = one.type === ROW ? input.label : one.label;
    const description = one.description && h("span", { class: "form-description" }, one.description);
    const build = isChoice(input) ? this.choice : BUILD[input.type];
    return build?.call(this, input, label, description);
  }

  /** Register an input, so that its value is sent. */
  keep(customId, value, problem = () => "") {
    this.inputs.push({ customId, value, problem });
  }

  choice(part, label, description) {
    const { node, values, problem } = chooser(part, this.page.store, { label, inForm: true });
    this.keep(part.custom_id, () => (part.type === RADIO ? (values()[0] ?? null) : values()), problem);
    if (node.matches("select")) return h("label", {}, title(label, part), description, node);
    node.querySelector("legend").replaceChildren(title(label, part));
    if (description) node.querySelector("legend").after(description);
    return node;
  }

  async send() {
    const { interaction_id, channel_id, user_id: author_id } = this.shown;
    const problem = this.inputs.map((input) => input.problem()).find(Boolean);
    if (problem) {
      this.error.textContent = problem;
      return;
    }
    const values = Object.fromEntries(this.inputs.map(({ customId, value }) => [customId, value()]));
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

const title = (label, part) =>
  h("span", { class: "form-label" }, label, isRequired(part) && h("span", { class: "form-required" }, " *"));

const BUILD = {
  [TEXT_INPUT](box, label, description) {
    const node = textInput(box);
    this.keep(box.custom_id, () => node.value);
    return h("label", {}, title(label, box), description, node);
  },
  [CHECKBOX](box, label, description) {
    const node = h("input", { type: "checkbox", checked: box.default });
    this.keep(box.custom_id, () => node.checked);
    return h("label", { class: "form-check" }, node, h("span", {}, h("span", { class: "form-label" }, label), description));
  },
};

function textInput(box) {
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
