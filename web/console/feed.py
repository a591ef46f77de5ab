"""The endings of the last turns, by the messages that they answered. No text and no name is kept."""

from __future__ import annotations

from collections import OrderedDict

from activity import Observer, TurnEnded
from persistence.holders import Forget, Holder

MOST = 2_000  # messages: as many as there are decisions in memory, beside which they are shown


class Feed(Observer, Holder):
    """The turns of the messages answered last, in all channels."""

    def __init__(self) -> None:
        self._turns: OrderedDict[int, TurnEnded] = OrderedDict()

    def __len__(self) -> int:
        return len(self._turns)

    def turn_ended(self, turn: TurnEnded) -> None:
        for message_id in turn.message_ids:
            self._turns[message_id] = turn
        while len(self._turns) > MOST:
            self._turns.popitem(last=False)

    def find(self, message_id: int) -> TurnEnded | None:
        """The last turn that answered a message."""
        return self._turns.get(message_id)

    def forget(self, what: Forget) -> None:
        """Drops the turns of deleted messages; where a person or channel is forgotten, all turns of the channels."""
        ids = what.message_ids
        if ids is None:
            ids = frozenset(one for one, turn in self._turns.items() if turn.channel_id in what.channel_ids)
        for message_id in ids:
            self._turns.pop(message_id, None)
