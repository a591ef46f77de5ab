"""Finds out a file's kind by its bytes, never by its name; decodes its text, in any encoding, and cuts it."""

from __future__ import annotations

import codecs
import re
from enum import StrEnum

HEAD_BYTES = 4_096  # enough to tell a file's kind
# Longer marks first: the mark of UTF-32 begins with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
LONGEST_CHARACTER = 4  # bytes, in any of these encodings
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f\ufffe\uffff]")  # characters that no text has
ASCII = bytes(range(0x80))
MOSTLY = 0.7  # the least share of ASCII bytes in a text of the old Western encodings
ZEROES = 0.3  # the least share of zeros among every second byte in UTF-16 without a mark


class Kind(StrEnum):
    """What a file is read as."""

    TEXT = "text"
    PDF = "pdf"
    PICTURE = "picture"
    AUDIO = "audio"
    ARCHIVE = "archive"


def kind_of(head: bytes) -> Kind:
    """The kind of a file, by its first bytes. TEXT: none of the others, so it may be text."""
    # A PDF may begin after other bytes, but a text may also mention "%PDF-".
    if head.lstrip().startswith(b"%PDF-") or (b"%PDF-" in head[:1_024] and decoded(head, is_cut=True) is None):
        return Kind.PDF
    form = head[8:12] if head.startswith(b"RIFF") else b""
    if head.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")) or form == b"WEBP":
        return Kind.PICTURE
    is_mpeg = len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 in (0xE2, 0xE0) and head[:2] != codecs.BOM_UTF16_LE
    if (
        head.startswith((b"OggS", b"ID3\x02", b"ID3\x03", b"ID3\x04", b"fLaC", b"\x1aE\xdf\xa3"))
        or form == b"WAVE"
        or is_mpeg
    ):
        return Kind.AUDIO
    if head[4:8] == b"ftyp" and head[8:11] in (b"M4A", b"mp4", b"iso", b"das"):
        return Kind.AUDIO
    if head.startswith(
        (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a", b"\xfd7zXZ")
    ) or re.match(rb"BZh[1-9]1AY&SY", head):
        return Kind.ARCHIVE
    return Kind.TEXT


def decoded(data: bytes, *, is_cut: bool = False) -> str | None:
    """Decodes bytes; None: they are no text. is_cut: they are truncated, so the last character may be incomplete."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return _as(data.removeprefix(mark), encoding, is_cut=is_cut)
    head = data[:HEAD_BYTES]
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):  # without a mark: most second bytes are zero
        is_likely = head[first::2].count(0) > ZEROES * len(head) / 2 and not head[1 - first :: 2].count(0)
        if is_likely and (text := _as(data, encoding, is_cut=is_cut)):
            return text
    text = _as(data, "utf-8", is_cut=is_cut)
    if text is None and len(data.translate(None, ASCII)) <= (1 - MOSTLY) * len(data):
        text = _as(data, "cp1252", is_cut=False)
    return text


def _as(data: bytes, encoding: str, *, is_cut: bool) -> str | None:
    for missing in range(LONGEST_CHARACTER if is_cut else 1):
        try:
            text = data[: len(data) - missing].decode(encoding)
        except UnicodeDecodeError:
            continue
        return None if CONTROLS.search(text) else text
    return None


def cut(text: str, room: int) -> str:
    """The beginning of a text that fits into so many characters; cut at a line's end if that keeps half of the room."""
    if len(text) <= room:
        return text
    at = text.rfind("\n", room // 2, room + 1)
    return text[: at if at >= 0 else room]
