"""Splits a text into messages that Discord accepts, without breaking words or code blocks."""

from __future__ import annotations

import re
from bisect import bisect_right

# Discord: 2,000 characters. Counted here in UTF-16 units, which are never fewer than Discord's count.
MAX_LENGTH = 2_000
# Discord knows fences of backticks only. A fence may follow the mark of a list item.
FENCE = re.compile(r"^[ \t]*+(?:(?:[-*+]|\d{1,3}[.)])[ \t]++)?(`{3,8})[ \t]*+([^\s`]{0,32})[^`\n]*+$", re.MULTILINE)
LONGEST_CLOSING = len("\n") + 8
JOINERS = "\u200d\ufe0f"  # zero-width joiner, emoji variation selector
# Where to cut, best first: between paragraphs, lines, sentences, words.
BORDERS = (re.compile(r"\n[ \t]*\n"), re.compile(r"\n"), re.compile(r"(?<=[.!?])\s"), re.compile(r"\s"))


def length(text: str) -> int:
    """The length of a text as it counts against Discord's limit."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def is_blank(text: str) -> bool:
    """Whether Discord would consider it empty: only white space and invisible characters."""
    return not any(character.isprintable() and not character.isspace() for character in text)


def split(text: str, limit: int = MAX_LENGTH) -> list[str]:
    """Splits a text into messages of at most limit characters each, none of them blank.

    A code block that crosses a cut is closed before it and opened again after it, in its language; one that is still
    open at the end is closed. As the text grows, every part but the last stays the same.
    """
    parts: list[str] = []
    opening = ""
    rest = text.strip()
    while rest:
        is_short = length(opening + rest) + LONGEST_CLOSING <= limit
        cut = len(rest) if is_short else _cut(opening, rest, limit)
        body = (opening + rest[:cut]).rstrip()
        before, (opening, closing) = opening, _fence_state(body) if "```" in body else ("", "")
        rest = rest[cut:].lstrip("\n") if opening else rest[cut:].lstrip()
        if not is_blank(body.removeprefix(before.rstrip())):
            parts.append(body + closing)
    return parts


def closed(text: str) -> str:
    """The text with a code block that is still open closed."""
    return text.rstrip() + _fence_state(text)[1]


def clipped(text: str, limit: int) -> str:
    """The text, or its beginning with an ellipsis, in at most limit characters."""
    return text if length(text) <= limit else text[: _index_at(text, limit - 1)].rstrip() + "…"


def ending(text: str, limit: int) -> str:
    """The text, or an ellipsis and its end from a line or a word on, in at most limit characters."""
    text = text.rstrip()
    if length(text) <= limit:
        return text
    lead = "… "
    tail = text[len(text) - _index_at(text[::-1], limit - len(lead)) :]
    return lead + next((rest for mark in ("\n", " ") if (rest := tail.partition(mark)[2].strip())), tail)


def _cut(opening: str, text: str, limit: int) -> int:
    """How many characters of the text fit into one message after this opening line, with its code block closed."""
    if _fits((opening + text).rstrip(), limit):
        return len(text)
    room = _index_at(text, limit - len(opening) - LONGEST_CLOSING)
    for border in BORDERS:
        earliest = 0 if border is BORDERS[-1] else room // 2  # only a cut between words may waste half of the message
        if cut := max((match.start() for match in border.finditer(text, earliest, room + 1)), default=0):
            return cut
    return room


def _fits(text: str, limit: int) -> bool:
    """Whether the text, with its code block closed, fits into one message now and did at every length while it grew.

    A half-written code fence takes more room than a whole one: a part that was full then stays full.
    """
    over = length(text) + LONGEST_CLOSING - limit
    grown = (text[: len(text) - missing] for missing in range(over))
    return over <= LONGEST_CLOSING and all(length(part) + len(_fence_state(part)[1]) <= limit for part in grown)


def _index_at(text: str, units: int) -> int:
    """The index at which so many UTF-16 units of the text end, never inside a joined character."""
    units = max(units, 0)
    index = min(units, len(text))
    if length(text[:index]) > units:  # some characters take two units
        index = bisect_right(range(index), units, key=lambda end: length(text[:end])) - 1
    inside = index
    while inside > 1 and inside < len(text) and (text[inside] in JOINERS or text[inside - 1] == JOINERS[0]):
        inside -= 1
    return inside if inside > 1 else index


def _fence_state(text: str) -> tuple[str, str]:
    """The opening and the closing line of a code block that is still open at the text's end; empty: there is none."""
    marker = language = ""
    for match in FENCE.finditer(text):
        if not marker:
            marker, language = match[1], match[2]
        elif match[1].startswith(marker) and not match[2]:
            marker = language = ""
    return (f"{marker}{language}\n", f"\n{marker}") if marker else ("", "")
