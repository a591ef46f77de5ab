// The list of suggestions above the message box: people after "@", the bot's commands after "/".

import { avatar, h } from "./dom.js";
import { Suggestions } from "./suggestions.js";

const SLASH_COMMAND = 1;
const AT = /(?:^|\s)@([^@\n]{0,32})$/;
const SLASH = /^\/([^\n]*)$/;
const NESTING = [1, 2]; // option types: a subcommand, a group of them

/** The entries of a command: itself, or each of its subcommands, {command, path, name, description, options}. */
function runnable(command, { name, description, options = [] } = command, path = []) {
  if (!NESTING.includes(options[0]?.type))
    return [{ command, path, name: [command.name, ...path].join(" "), description, options }];
  return options.flatMap((option) => runnable(command, option, [...path, option.name]));
}

/** Whether a command is typed with an option and its value: /card where:here. */
const hasOptions = ({ name, options = [] }, typed) =>
  typed.toLowerCase().startsWith(`${name} `) && options.some((option) => typed.includes(` ${option.name}:`));

export class Picker extends Suggestions {
  /** `onInsert()` is called after a name was inserted, `onCommand(entry, typed)` when a command is chosen. */
  constructor(page, box, onInsert, onCommand) {
    super(box);
    Object.assign(this, { page, onInsert, onCommand });
  }

  /** Suggest completions for the text before the caret. */
  update() {
    const before = this.box.value.slice(0, this.box.selectionStart);
    const slash = SLASH.exec(this.box.value);
    const at = AT.exec(before);
    if (slash) this.offer(this.commands(slash[1]));
    else this.offer(at ? this.names(at[1]) : []);
  }

  commands(typed) {
    const wanted = typed.toLowerCase();
    const all = this.page.store.commandsOf(SLASH_COMMAND).flatMap((command) => runnable(command));
    const found = all.filter(
      (entry) => entry.name.startsWith(wanted) || entry.name === wanted.trimEnd() || hasOptions(entry, typed),
    );
    return found.map((entry) => ({
      face: [
        h("span", { class: "slash", "aria-hidden": "true" }, "/"),
        h("strong", {}, entry.name),
        h("span", { class: "hint" }, entry.description),
      ],
      run: () => this.onCommand(entry, typed.slice(entry.name.length)),
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
}
