"""What was said: one message in a channel, free of any Discord type, and whom it calls by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

MENTION = re.compile(r"<@!?(\d{1,20})>")
GREETING = re.compile(r"\s*(?:(?:hey|hi|hello|yo|ok|okay|so|and|but)[\s,]+)?", re.IGNORECASE)
CALL_FIRST = re.compile(r"@?([^,:\n]{1,40})[,:]")
END_MARKS = " \t\n.?!"


@dataclass(frozen=True, slots=True)
class MessageRecord:
    """One message in a channel, free of any Discord type.

    content: as posted, mentions in their raw form `<@id>`; readable: what the model is shown instead (names resolved,
    embeds and attachments in words), empty: the content. mentioned: whom Discord says it mentions, None: those in
    the content. addressees: of the bot's own messages, whom they answer. timestamp: aware.
    """

    author: str
    author_id: int
    content: str
    timestamp: datetime
    is_bot: bool
    message_id: int = 0
    mentioned: frozenset[int] | None = None
    mentions_group: bool = False
    reply_to_id: int | None = None
    reply_to_author_id: int | None = None
    reply_to_author: str = ""
    reply_to_text: str = ""
    readable: str = ""
    images: tuple[str, ...] = ()
    addressees: frozenset[int] = frozenset()

    @property
    def mentions(self) -> frozenset[int]:
        """Ids of the users it mentions."""
        return frozenset(map(int, MENTION.findall(self.content))) if self.mentioned is None else self.mentioned

    @property
    def text(self) -> str:
        """What a reader of the channel sees."""
        return self.readable or self.content

    @property
    def size(self) -> int:
        """Characters it takes to keep and to tell, about."""
        return len(self.content) + len(self.readable) + len(self.reply_to_text) + 100 * (1 + len(self.images))


def called_by_name(message: MessageRecord, names: Mapping[int, str]) -> frozenset[int]:
    """Whom of these it calls without a mention: "Ben, ...", "hey ben: ...", "..., Ben?". The author does not count."""
    _, comma, last = message.content.rstrip(END_MARKS).rpartition(",")
    called = {last.strip().removeprefix("@").casefold()} if comma else set()
    for start in {0, GREETING.match(message.content).end()}:  # type: ignore[union-attr]  # it matches everything
        if first := CALL_FIRST.match(message.content, start):
            called.add(first[1].strip().casefold())
    return frozenset(who for who, name in names.items() if who != message.author_id and name.casefold() in called)
