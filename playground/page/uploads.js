// The files to send with the next message: chosen by the button, dropped anywhere, or pasted.

import { byId, h, part } from "./dom.js";
import { icon } from "./icons.js";

const MOST = 10; // Discord: files in a message

export class Uploads {
  constructor(page) {
    this.page = page;
    this.files = [];
    const input = byId("files");
    byId("attach").append(icon("attach"));
    byId("attach").addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.add(input.files);
      input.value = "";
    });
    document.addEventListener("paste", (event) => this.taken(event, event.clipboardData));
    document.addEventListener("dragover", (event) => this.hovered(event, true));
    document.addEventListener("dragleave", (event) => event.relatedTarget ?? this.hovered(event, false));
    document.addEventListener("drop", (event) => {
      this.hovered(event, false);
      this.taken(event, event.dataTransfer);
    });
  }

  hovered(event, over) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("dropping", over);
  }

  taken(event, transfer) {
    if (!transfer?.files.length) return;
    event.preventDefault();
    this.add(transfer.files);
  }

  add(files) {
    this.files = [...this.files, ...files].slice(0, MOST);
    this.render();
    this.page.composer.focus();
  }

  /** Take the files: returns and clears them. */
  take() {
    const { files } = this;
    this.files = [];
    this.render();
    return files;
  }

  render() {
    const box = byId("uploads");
    box.hidden = this.files.length === 0;
    part(box, [this.files.map((file) => [file.name, file.size, file.lastModified])], () => this.files.map((file) => this.row(file)));
  }

  row(file) {
    const remove = () => {
      this.files = this.files.filter((other) => other !== file);
      this.render();
      this.page.composer.focus();
    };
    const label = `Remove ${file.name}`;
    return h(
      "li",
      { class: "upload" },
      icon("file"),
      h("span", {}, file.name),
      h("button", { class: "icon", "aria-label": label, title: label, onclick: remove }, icon("close")),
    );
  }
}
