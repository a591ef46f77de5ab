// Converts between typed mentions (@Ada) and Discord's (<@id>).

const CODE = /(```[\s\S]*?```|`[^`\n]*`)/;

const outsideCode = (text, change) =>
  text
    .split(CODE)
    .map((piece, index) => (index % 2 ? piece : change(piece)))
    .join("");

const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** "@Ada hi" -> "<@12> hi", for the given people; longest names first, so that "Ada Lovelace" is not "Ada". */
export function toRaw(text, people) {
  const sorted = [...people].sort((a, b) => b.name.length - a.name.length);
  const replaceAll = (piece) => sorted.reduce((done, { id, name }) => done.replace(named(name), `<@${id}>`), piece);
  return outsideCode(text, replaceAll);
}

const named = (name) => new RegExp(`(?<![\\w<])@${literal(name)}(?![\\p{L}\\p{N}_])`, "giu");

/** "<@12> hi" -> "@Ada hi"; unknown ids stay as they are. */
export function toTyped(text, people) {
  const names = new Map(people.map((person) => [person.id, person.name]));
  return outsideCode(text, (piece) =>
    piece.replace(/<@!?(\d+)>/g, (raw, id) => (names.has(id) ? `@${names.get(id)}` : raw)),
  );
}
