"""How often the agent declined to answer lately in a channel, and whom: it is then asked less often."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

PERSON = timedelta(seconds=20)
IN_A_ROW = 3
MAX_PEOPLE = 200


@dataclass(frozen=True, slots=True)
class Declines:
    """in_a_row: how many turns the agent declined in a row; an answer resets it below three, a call always.

    at: when it last declined a message, by the author's id; at most the newest 200.
    """

    in_a_row: int = 0
    at: Mapping[int, datetime] = field(default_factory=dict)

    def limit(self, author_id: int, now: datetime) -> bool:
        """Whether the agent is only asked about this person's message if that is very likely meant for the bot."""
        declined = self.at.get(author_id)
        # abs(): a clock that was set back must not make the limit last longer.
        return self.in_a_row >= IN_A_ROW or (declined is not None and abs(now - declined) < PERSON)

    def after(self, authors: Collection[int], now: datetime) -> Declines:
        """Returns the declines after a turn with messages of these people was declined."""
        recent = {who: at for who, at in self.at.items() if abs(now - at) < PERSON and who not in authors}
        newest = [*recent.items(), *((who, now) for who in authors)][-MAX_PEOPLE:]
        return Declines(self.in_a_row + 1, dict(newest))

    def answered(self) -> Declines:
        """Returns the declines after the bot has spoken."""
        return replace(self, in_a_row=0) if 0 < self.in_a_row < IN_A_ROW else self

    def called(self, author_id: int) -> Declines:
        """Returns the declines after this person has mentioned the bot or replied to it."""
        return Declines(0, {who: at for who, at in self.at.items() if who != author_id})

    def forget(self, author_id: int) -> Declines:
        """Returns the declines without this person's."""
        return replace(self, at={who: at for who, at in self.at.items() if who != author_id})
