// Building and reconciling DOM nodes. Text only ever becomes a text node.

/** An element. Attributes: `on…` are listeners, true is an empty attribute, false and null are left out. */
export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(node, name, value);
  node.append(...present(children));
  return node;
}

function setAttribute(node, name, value) {
  if (value === false || value === null || value === undefined) return;
  if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
  else node.setAttribute(name, value === true ? "" : value);
}

/** The children as a flat list, without null and false. */
export function present(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

export const byId = (id) => document.getElementById(id);

const built = new WeakMap();

/** Replace the children of `node` by `build()` if `inputs` differ from the last ones. */
export function part(node, inputs, build) {
  const key = JSON.stringify(inputs);
  if (built.get(node) === key) return;
  built.set(node, key);
  node.replaceChildren(...present([build()]));
}

const rows = new WeakMap();

/** Make the children of `parent` show `items`, in order. Nodes of remaining items are kept, and so is the focus. */
export function syncList(parent, items, create, update) {
  const before = rows.get(parent) ?? new Map();
  const after = new Map();
  for (const item of items) after.set(item.key, before.get(item.key) ?? create(item));
  for (const [key, node] of before) if (!after.has(key)) node.remove();
  rows.set(parent, after);
  let next = parent.firstChild;
  for (const item of items) {
    const node = after.get(item.key);
    update(node, item);
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
}

/** A round avatar of coloured initials. */
export function avatar(person, className = "avatar") {
  const node = h("span", { class: className, "aria-hidden": "true" }, initials(person.name));
  node.style.backgroundColor = person.color;
  return node;
}

/** Set the person's colour for the style sheet. */
export function colored(node, person) {
  node.style.setProperty("--person", person.color);
  return node;
}

export function initials(name) {
  return name
    .split(/\s+/)
    .filter(Boolean)
    .slice(0, 2)
    .map((word) => Array.from(word)[0].toUpperCase())
    .join("");
}
