// Discord's block markdown as DOM nodes: code blocks, quotes, headings, subtext, lists, and text between them.

import { h } from "./dom.js";
import { inline } from "./inline.js";

const EMOJI_ONLY = /^(?:\p{RGI_Emoji}\s*){1,27}$/v; // Discord shows up to 27 emoji large

/** Nodes for a message's text; `names` as for `inline`. */
export function markdown(text, names) {
  if (EMOJI_ONLY.test(text)) return [h("span", { class: "jumbo" }, text)];
  return blocks(text, names, true);
}

function blocks(text, names, mayQuote) {
  const nodes = [];
  let pending = "";
  let at = 0;
  const flush = (following) => {
    const shown = following ? pending.replace(/\n$/, "") : pending;
    if (shown) nodes.push(h("div", {}, inline(shown, names)));
    pending = "";
  };
  while (at < text.length) {
    const block = blockAt(text, at, names, mayQuote);
    if (block) {
      flush(true);
      nodes.push(block.node);
      at = block.end;
    } else {
      const end = lineEnd(text, at);
      pending += text.slice(at, end);
      at = end;
    }
  }
  flush(false);
  return nodes;
}

function blockAt(text, at, names, mayQuote) {
  const atLineStart = at === 0 || text[at - 1] === "\n";
  for (const [pattern, build, isQuote] of atLineStart ? BLOCKS : [FENCE]) {
    if (isQuote && !mayQuote) continue;
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) return { node: build(found, names), end: pattern.lastIndex };
  }
  return null;
}

/** The end of the line that begins at `at`: after its newline, or before a code block in it. */
function lineEnd(text, at) {
  const newline = text.indexOf("\n", at);
  const end = newline < 0 ? text.length : newline + 1;
  const fence = text.indexOf("```", at + 1);
  return fence > 0 && fence < end ? fence : end;
}

const FENCE = [
  /```(?:([\w+#.-]+)\n)?\n*([\s\S]*?[^\n])\n*```\n?/y,
  ([, language, code]) => h("pre", {}, h("code", { "data-language": language ?? null }, code)),
];

const BLOCKS = [
  FENCE,
  [/>>> ([\s\S]+)/y, ([, inner], names) => h("blockquote", {}, blocks(inner, names, false)), true],
  [
    /(?:> [^\n]*(?:\n|$))+/y,
    ([quoted], names) => h("blockquote", {}, blocks(quoted.replace(/^> /gm, "").replace(/\n$/, ""), names, false)),
    true,
  ],
  [/(#{1,3}) +([^\n]+)(?:\n|$)/y, ([, marks, title], names) => heading(marks.length, inline(title, names))],
  [/-# +([^\n]+)(?:\n|$)/y, ([, small], names) => h("div", { class: "subtext" }, inline(small, names))],
  [/(?: *(?:[-*]|\d{1,9}\.) +[^\n]+(?:\n|$))+/y, ([lines], names) => list(lines.trimEnd().split("\n"), names)],
];

/** Headings of a message begin at level 3, below the page's own. */
function heading(level, content) {
  return h("div", { class: `heading h${level}`, role: "heading", "aria-level": String(level + 2) }, content);
}

const ITEM = /^( *)(?:[-*]|(\d+)\.) +(.*)$/;

/** A list. Items indented deeper than the one before form a list within it; numbers after bullets form another list. */
function list(lines, names) {
  const root = h("div", { class: "list" });
  const open = [];
  for (const [, spaces, number, text] of lines.map((line) => ITEM.exec(line))) {
    const indent = spaces.length;
    while (open.length > 1 && indent < open.at(-1).indent) open.pop();
    const around = open.at(-1);
    const tag = number ? "OL" : "UL";
    if (!around || indent > around.indent || around.node.tagName !== tag) {
      const node = h(tag, number ? { start: number } : {});
      if (!around) root.append(node);
      else if (indent > around.indent) around.node.lastChild.append(node);
      else open.pop().node.after(node);
      open.push({ indent, node });
    }
    open.at(-1).node.append(h("li", {}, inline(text, names)));
  }
  return root;
}
