"""How documents lie in a folder: the names of their files, the mark at their beginning, the lines of their journals.

A document is a JSON object, and its file is one too, with a mark as its first keys: a checksum over all that follows,
and the document's generation, which counts how often it was written. Each line of a journal carries the generation of
the document it was appended to, so that no kill between two steps of a write can lose a record or count it twice:

    {"crc32":"0c5e3a2f","generation":7,"id":...
    5b1d22e0 7 {"message":...

A file without a mark was put there by somebody: it is taken as it is, in generation 0, if it is a JSON object.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote
from zlib import crc32

import orjson

OWN = ".store"  # the folder in the folder where all is but the documents themselves
SUFFIX = ".json"
LONGEST = 180  # characters of a file's name; longer ones are cut, and end with a hash
CUT = "="  # never occurs in a quoted name
MARK_SIZE = 80
MARK = re.compile(rb'\{"crc32":"([0-9a-f]{8})",("generation":(\d{1,20})(?:,"purged":(true))?)([,}])')
MARK_BEGINS = b'{"crc32":"........","generation":'
LINE = re.compile(rb"([0-9a-f]{8}) ((\d{1,20})([ =*].*))", re.DOTALL)
LINE_HEAD = re.compile(rb"\n[0-9a-f]{8} (\d{1,20})[ =*]")


class Places(NamedTuple):
    """Where all that there is of one document lies. journals: for even generations and for odd ones."""

    stem: str
    document: Path
    backup: Path
    journals: tuple[Path, Path]
    temporary: Path
    true_name: Path


@dataclass(frozen=True, slots=True)
class Found:
    """What a document's file holds. problem: what is wrong with it, as the rest of a sentence; empty if nothing is."""

    content: bytes = b""
    generation: int = 0
    is_purged: bool = False
    problem: str = ""

    @property
    def is_good(self) -> bool:
        return not self.problem


MISSING = Found(problem="is missing")
DAMAGED = Found(problem="is damaged")


@lru_cache(maxsize=1_024)
def places_of(folder: Path, name: str) -> Places:
    """Raises ValueError for the empty name."""
    if not name:
        raise ValueError("A document's name must not be empty.")
    stem, own = stem_of(name), folder / OWN
    return Places(
        stem,
        folder / f"{stem}{SUFFIX}",
        own / "backup" / f"{stem}{SUFFIX}",
        (own / "journal" / f"{stem}.0", own / "journal" / f"{stem}.1"),
        own / "temporary" / stem,
        own / "names" / stem,
    )


def stem_of(name: str) -> str:
    """A file's name without its suffix, which no other document has and which leads nowhere else."""
    quoted = quote(name, safe="", errors="surrogatepass")
    if quoted.startswith("."):
        quoted = "%2E" + quoted[1:]
    if len(quoted) <= LONGEST:
        return quoted
    return quoted[:LONGEST] + CUT + sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def name_of(stem: str) -> str | None:
    """None for what no document is called: somebody else's file, or a name that was cut."""
    try:
        name = unquote(stem, errors="surrogatepass")
    except UnicodeDecodeError:
        return None
    return name if name and stem_of(name) == stem else None


def marked(content: bytes, generation: int, *, purge: bool) -> bytes:
    """A JSON object as it is stored."""
    rest = content[1:].lstrip()
    generations = b'"generation":%d%s' % (generation, b',"purged":true' if purge else b"")
    body = generations + (b"" if rest.startswith(b"}") else b",") + rest
    return b'{"crc32":"%08x",' % crc32(body) + body


def unmarked(data: bytes) -> Found:
    """What a document's file holds."""
    mark = MARK.match(data[:MARK_SIZE])
    if mark is None:
        return DAMAGED if _looks_marked(data) or not _is_object(data) else Found(data)
    if crc32(memoryview(data)[mark.start(2) :]) != int(mark[1], 16):
        return DAMAGED
    return Found(_without(mark, data), int(mark[3]), bool(mark[4]))


def beginning(data: bytes) -> bytes:
    """The first bytes of a document, from those of its file; nothing is checked."""
    mark = MARK.match(data)
    return _without(mark, data) if mark else data


def generation_at(data: bytes) -> int:
    """The generation that the first bytes of a document or journal name, 0 if they name none; nothing is checked."""
    if mark := MARK.match(data):
        return int(mark[3])
    line = LINE_HEAD.match(data)
    return int(line[1]) if line else 0


def says_purged(data: bytes) -> bool:
    mark = MARK.match(data)
    return bool(mark and mark[4])


def line_of(wrapped: bytes, generation: int) -> bytes:
    """One line of a journal. It begins and ends with a line feed, so that a neighbour's damage is not its own."""
    body = b"%d%s" % (generation, wrapped)
    return b"\n%08x %s\n" % (crc32(body), body)


def read_line(line: bytes) -> tuple[int, bytes] | None:
    """The generation of a line and what was wrapped in it; None for one that is damaged."""
    read = LINE.fullmatch(line)
    return (int(read[3]), read[4]) if read and crc32(read[2]) == int(read[1], 16) else None


def lines_in(journal: bytes) -> list[bytes]:
    return list(filter(None, journal.split(b"\n")))


def _without(mark: re.Match[bytes], data: bytes) -> bytes:
    return b"{" + data[mark.end() :] if mark[5] == b"," else b"{}"


def _looks_marked(data: bytes) -> bool:
    """Whether a few flipped bits may have made of a mark what no longer is one."""
    return sum(a == b for a, b in zip(MARK_BEGINS, data, strict=False)) > len(MARK_BEGINS) // 2


def _is_object(data: bytes) -> bool:
    try:
        return isinstance(orjson.loads(data), dict)
    except orjson.JSONDecodeError:
        return False
