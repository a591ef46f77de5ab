// The icons, as stroked paths on a 24-unit grid.

const PATHS = {
  attach: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.5 3.5 0 0 1 5 5l-8.5 8.5a2 2 0 0 1-3-3L14 7",
  thread: "M4 5h16v10H10l-4 4v-4H4z M8 9h8 M8 12h5",
  apps: "M4 4h6v6H4z M14 4h6v6h-6z M4 14h6v6H4z M17 14v6 M14 17h6",
  at: "M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0v1.5a2.5 2.5 0 0 0 5 0V12a9 9 0 1 0-4 7.5",
  close: "M6 6l12 12 M18 6L6 18",
  edit: "M4 20h4L19 9l-4-4L4 16z",
  file: "M6 3h8l4 4v14H6z M14 3v4h4",
  menu: "M4 6h16 M4 12h16 M4 18h16",
  people:
    "M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8z M2 21v-1a7 7 0 0 1 14 0v1 M16 3.5a4 4 0 0 1 0 7 M18.5 14.5a7 7 0 0 1 3.5 5.5v1",
  play: "M8 5l11 7-11 7z",
  react: "M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0z M8.5 14a4 4 0 0 0 7 0 M9 9.5h.01 M15 9.5h.01",
  reply: "M9 6L4 11l5 5 M4 11h10a6 6 0 0 1 6 6v2",
  silent: "M6 10a6 6 0 0 1 12 0c0 5 2 6 2 6H4s2-1 2-6 M10 20a2 2 0 0 0 4 0 M3 3l18 18",
  send: "M4 4l17 8-17 8 3-8z M7 12h7",
  trash: "M5 7h14 M9 7V4h6v3 M7 7l1 13h8l1-13",
};

const SVG = "http://www.w3.org/2000/svg";

/** An inline, decorative icon; its button has the label. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
