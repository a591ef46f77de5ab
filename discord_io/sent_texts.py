"""The texts that we sent, to tell our messages from those of another process with our token."""

from __future__ import annotations

import re
from collections import deque

MAX_TEXTS = 64  # a minute of edits: how late an event may come
# Of an emoji that the bot may not use, Discord keeps only the name.
EMOJI = re.compile(r"<a?(:\w+:)\d+>")


class SentTexts:
    """The texts that we sent for one message, and those found there that count as ours.

    Any other text in the message is of another process. Texts are equal if they differ only in what Discord may change:
    white space, invisible characters, emoji. An empty text, of an event without content, counts as ours.
    """

    def __init__(self) -> None:
        self._newest = ""
        self._known: deque[str] = deque(maxlen=MAX_TEXTS)

    def add(self, text: str) -> None:
        self._newest = _gist(text)
        self._known.append(self._newest)

    def overrule(self, text: str) -> None:
        """Adds another process' text that we overwrite, so that a further event with it is ignored."""
        self._known.append(_gist(text))

    def __contains__(self, text: object) -> bool:
        gist = _gist(str(text))
        return not gist or gist in self._known

    def ends_with(self, text: str) -> bool:
        """Whether this is our newest text."""
        return _gist(text) in ("", self._newest)

    def falls_short_of(self, text: str) -> bool:
        """Whether our newest text is shorter than this one. Of two different texts exactly one counts as shorter."""
        gist = _gist(text)
        return (len(gist), gist) > (len(self._newest), self._newest)


def _gist(text: str) -> str:
    return "".join(filter(str.isprintable, EMOJI.sub(r"\1", text).replace(" ", "")))
