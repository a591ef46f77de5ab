"""Cutting a text into messages that Discord takes, without breaking words or code blocks."""

from __future__ import annotations

import re
from bisect import bisect_right

# Discord: 2,000 characters. Counted here in UTF-16 units, which are never fewer than what Discord counts.
MAX_LENGTH = 2_000
# Discord knows fences of backticks only. They may stand right behind the mark of a list's item.
FENCE = re.compile(r"^[ \t]*+(?:(?:[-*+]|\d{1,3}[.)])[ \t]++)?(`{3,8})[ \t]*+([^\s`]{0,32})[^`\n]*+$", re.MULTILINE)
LONGEST_CLOSING = len("\n") + 8
JOINERS = "\u200d\ufe0f"  # zero-width joiner, emoji variation selector
# Where to cut, best first: between paragraphs, lines, sentences, words.
BORDERS = (re.compile(r"\n[ \t]*\n"), re.compile(r"\n"), re.compile(r"(?<=[.!?])\s"), re.compile(r"\s"))


def length(text: str) -> int:
    """The length of a text as it counts against Discord's limit."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def is_blank(text: str) -> bool:
    """Whether Discord would call it empty: nothing but white space and invisible characters."""
    return not any(character.isprintable() and not character.isspace() for character in text)


def split(text: str, limit: int = MAX_LENGTH) -> list[str]:
    """The text as messages of at most limit characters each; none of them is blank.

    A code block that crosses a cut is closed before it and opened again behind it, in its language; one that the text
    leaves open is closed. As the text grows, every part but the last stays as it is.
    """
    parts: list[str] = []
    opening = ""
    rest = text.strip()
    while rest:
        cut = _cut(opening, rest, limit)
        body = (opening + rest[:cut]).rstrip()
        before, (opening, closing) = opening, _fence_state(body)
        rest = rest[cut:].lstrip("\n") if opening else rest[cut:].lstrip()
        if not is_blank(body.removeprefix(before.rstrip())):
            parts.append(body + closing)
    return parts


def closed(text: str) -> str:
    """The text with the code block that it leaves open closed."""
    return text.rstrip() + _fence_state(text)[1]


def clipped(text: str, limit: int) -> str:
    """The text, or as much of its beginning as fits in limit characters with an ellipsis behind it."""
    return text if length(text) <= limit else text[: _index_at(text, limit - 1)].rstrip() + "…"


def ending(text: str, limit: int) -> str:
    """The text, or as much of its end as fits in limit characters, from a line or a word on, behind an ellipsis."""
    text = text.rstrip()
    if length(text) <= limit:
        return text
    lead = "… "
    tail = text[len(text) - _index_at(text[::-1], limit - len(lead)) :]
    return lead + next((rest for mark in ("\n", " ") if (rest := tail.partition(mark)[2].strip())), tail)


def _cut(opening: str, text: str, limit: int) -> int:
    """How much of the text goes into one message that begins with this opening line, its code block closed."""
    if _fits((opening + text).rstrip(), limit):
        return len(text)
    room = _index_at(text, limit - len(opening) - LONGEST_CLOSING)
    for border in BORDERS:
        earliest = 0 if border is BORDERS[-1] else room // 2  # no cut wastes half of the message, words excepted
        if cut := max((match.start() for match in border.finditer(text, earliest, room + 1)), default=0):
            return cut
    return room


def _fits(text: str, limit: int) -> bool:
    """Whether the text, its code block closed, is one message now and was so at every length while it grew.

    A code fence that is half typed takes more room than one that is whole: a part that was full then stays full.
    """
    over = length(text) + LONGEST_CLOSING - limit
    grown = (text[: len(text) - missing] for missing in range(over))
    return over <= LONGEST_CLOSING and all(length(part) + len(_fence_state(part)[1]) <= limit for part in grown)


def _index_at(text: str, units: int) -> int:
    """The index in the text up to which its first so many UTF-16 units reach, never inside a joined character."""
    units = max(units, 0)
    index = min(units, len(text))
    if length(text[:index]) > units:  # some take two
        index = bisect_right(range(index), units, key=lambda end: length(text[:end])) - 1
    inside = index
    while inside > 1 and inside < len(text) and (text[inside] in JOINERS or text[inside - 1] == JOINERS[0]):
        inside -= 1
    return inside if inside > 1 else index


def _fence_state(text: str) -> tuple[str, str]:
    """The line that opens the code block which the text leaves open, and the line that closes it; or two empty ones."""
    marker = language = ""
    for match in FENCE.finditer(text):
        if not marker:
            marker, language = match[1], match[2]
        elif match[1].startswith(marker) and not match[2]:
            marker = language = ""
    return (f"{marker}{language}\n", f"\n{marker}") if marker else ("", "")
