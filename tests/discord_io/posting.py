"""A post, the channel it goes to, and what it recorded."""

from __future__ import annotations

from collections.abc import Sequence

from conversation import MessageRecord
from discord_io.card import Card
from discord_io.channel_wire import Posted
from discord_io.streamed_reply import StreamedReply
from state.prompts import AwaitingType
from tests.support.fake_wire import FakeWire
from tests.support.people import ANNA, BEN, BOT, said

QUESTION = said(ANNA, "what is it?", message_id=500)
CARD = Card("p1", AwaitingType.SELECTION, ("red", "blue"))


class Posting:
    """A post as its process has it. wire: shared with another process where it is given."""

    def __init__(self, wire: FakeWire | None = None, adopted: Sequence[Posted] | None = None) -> None:
        self.wire = wire or FakeWire()
        self.recorded: list[MessageRecord] = []
        self.post = StreamedReply(
            self.wire,
            QUESTION,
            reply_to=lambda: QUESTION.message_id,
            bot=("Parley", BOT),
            addressees=frozenset({ANNA, BEN}),
            record=self.recorded.append,
            adopted=adopted,
        )
        self.wire.listeners.append(self.post.overheard)

    @property
    def last_id(self) -> int:
        """The id of the last message that stands in the channel."""
        return list(self.wire.standing)[-1]


def words(count: int) -> str:
    return "word " * count
