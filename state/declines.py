"""Limits on asking an agent that declines: how often it did so lately in a channel, and about whose messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

PERSON = timedelta(seconds=20)
IN_A_ROW = 3
MAX_PEOPLE = 200


@dataclass(frozen=True, slots=True)
class Declines:
    """in_a_row: how many turns the agent declined since it last answered; once they are three, since it was called.

    at: by the author's id when it last declined a message of theirs; the newest 200 at most.
    """

    in_a_row: int = 0
    at: Mapping[int, datetime] = field(default_factory=dict)

    def limit(self, author_id: int, now: datetime) -> bool:
        """Whether a message of this person's has to be likelier meant for the bot than others for it to be asked."""
        declined = self.at.get(author_id)
        # What is said before, by a clock that was set back, is not limited for as long as that.
        return self.in_a_row >= IN_A_ROW or (declined is not None and abs(now - declined) < PERSON)

    def after(self, authors: Collection[int], now: datetime) -> Declines:
        """Once a turn with messages of these people was declined."""
        recent = {who: at for who, at in self.at.items() if abs(now - at) < PERSON and who not in authors}
        newest = [*recent.items(), *((who, now) for who in authors)][-MAX_PEOPLE:]
        return Declines(self.in_a_row + 1, dict(newest))

    def answered(self) -> Declines:
        """Once the bot has spoken."""
        return replace(self, in_a_row=0) if 0 < self.in_a_row < IN_A_ROW else self

    def called(self, author_id: int) -> Declines:
        """Once this person has mentioned the bot or replied to it."""
        return Declines(0, {who: at for who, at in self.at.items() if who != author_id})

    def forget(self, author_id: int) -> Declines:
        """Without what is known of this person."""
        return replace(self, at={who: at for who, at in self.at.items() if who != author_id})
