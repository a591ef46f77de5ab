"""Who speaks in the tests, and what they say: MessageRecords made short."""

from __future__ import annotations

from datetime import datetime
from itertools import count
from typing import Any

from conversation import MessageRecord
from tests.support.clock import NOON

BOT, ANNA, BEN, CLEO, DAN, EVE = 1, 11, 12, 13, 14, 15
NAMES = {BOT: "Parley", ANNA: "Anna", BEN: "Ben", CLEO: "Cleo", DAN: "Dan", EVE: "Eve"}
CHANNEL, GUILD = 700, 70

IDS = count(1_000)


class Me:
    """The bot, as its wires name it."""

    def bot(self) -> tuple[str, int]:
        return NAMES[BOT], BOT


def said(author_id: int, content: str = "hello", at: datetime = NOON, **more: Any) -> MessageRecord:
    """A message with an id of its own, newer than the ones made before."""
    return MessageRecord(
        **{
            "author": NAMES.get(author_id, f"user {author_id}"),
            "author_id": author_id,
            "content": content,
            "timestamp": at,
            "is_bot": author_id == BOT,
            "message_id": next(IDS),
            **more,
        }
    )


def replied(to: int | None, content: str = "Here you are.", at: datetime = NOON, **more: Any) -> MessageRecord:
    """The bot's words; to: whom they answer."""
    return said(BOT, content, at, addressees=frozenset({to} if to else ()), **more)
