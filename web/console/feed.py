"""What the answers of the last while came to, by the messages that they answer. No text and no name is kept."""

from __future__ import annotations

from collections import OrderedDict

from activity import Observer, TurnEnded
from persistence.holders import Forget, Holder

MOST_CHANNELS, MOST_IN_CHANNEL = 1_000, 100


class Feed(Observer, Holder):
    """Keeps the last turns of each channel, of the channels where one ended last."""

    def __init__(self) -> None:
        self._turns: OrderedDict[int, OrderedDict[int, TurnEnded]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._turns.values()))

    def turn_ended(self, turn: TurnEnded) -> None:
        turns = self._turns.setdefault(turn.channel_id, OrderedDict())
        self._turns.move_to_end(turn.channel_id)
        for message_id in turn.message_ids:
            turns[message_id] = turn
        while len(turns) > MOST_IN_CHANNEL:
            turns.popitem(last=False)
        if len(self._turns) > MOST_CHANNELS:
            self._turns.popitem(last=False)

    def find(self, channel_id: int, message_id: int) -> TurnEnded | None:
        """The turn that a message was last answered in."""
        turns = self._turns.get(channel_id)
        return turns.get(message_id) if turns else None

    def forget(self, what: Forget) -> None:
        """Drops the turns of deleted messages; where people or channels are forgotten, all of those channels."""
        for channel_id in what.channel_ids:
            if what.message_ids is None:
                self._turns.pop(channel_id, None)
            elif turns := self._turns.get(channel_id):
                for message_id in what.message_ids:
                    turns.pop(message_id, None)
