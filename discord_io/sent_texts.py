"""The texts that we sent: by them what is ours is told from what another process says in our name."""

from __future__ import annotations

import re
from collections import deque

MAX_TEXTS = 64  # a minute of edits: as far back as an event may come late
# Discord takes away what is not a name of an emoji that the bot may not use.
EMOJI = re.compile(r"<a?(:\w+:)\d+>")


class SentTexts:
    """The texts that we sent for one message, and those found there that are as good as ours.

    By them what another process says there in our name is known for what it is.

    Texts are the same here where they differ only in what Discord may change: white space, invisible characters, emoji.
    An empty one, of a message that only says that it was changed, is anybody's.
    """

    def __init__(self) -> None:
        self._newest = ""
        self._known: deque[str] = deque(maxlen=MAX_TEXTS)

    def add(self, text: str) -> None:
        self._newest = _gist(text)
        self._known.append(self._newest)

    def overrule(self, text: str) -> None:
        """Somebody else says this, and we go on: to be told of it again changes nothing."""
        self._known.append(_gist(text))

    def __contains__(self, text: object) -> bool:
        gist = _gist(str(text))
        return not gist or gist in self._known

    def ends_with(self, text: str) -> bool:
        """Whether this is what we said last."""
        return _gist(text) in ("", self._newest)

    def falls_short_of(self, text: str) -> bool:
        """Whether this says more than we did last. Of two different texts exactly one falls short of the other."""
        gist = _gist(text)
        return (len(gist), gist) > (len(self._newest), self._newest)


def _gist(text: str) -> str:
    return "".join(filter(str.isprintable, EMOJI.sub(r"\1", text).replace(" ", "")))
