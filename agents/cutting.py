"""Cuts tool results for the model."""

from __future__ import annotations

MAX_BYTES = 8_192  # of UTF-8, with the note
TRACEBACK = "Traceback (most recent call last)"  # with which Python's begin: what went wrong is in its last line
NOTE = "\n(cut: the first {kept:,} of {size:,} bytes)"


def cut(text: str) -> str:
    """The text, or as much of its beginning as fits in MAX_BYTES with a note. Lone surrogates, which no provider
    accepts, become question marks."""
    data = text.encode(errors="replace")
    if len(data) <= MAX_BYTES:
        return data.decode()
    room = MAX_BYTES - len(NOTE.format(kept=MAX_BYTES, size=len(data)))
    kept = data[:room].decode(errors="ignore")
    return kept + NOTE.format(kept=len(kept.encode()), size=len(data))
