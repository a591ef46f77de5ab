"""The recent messages of people in one channel, and which of them were answered."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from offers.questions import answered_by, is_marked_solved
from state.message import NOBODY, MessageRecord
from state.optout import without_quote

MAX_MESSAGES = 50
MAX_AGE = timedelta(hours=1)
MAX_AHEAD = timedelta(minutes=10)  # clocks may differ by that much
MAX_CHARACTERS = 2_000  # kept of a message

GAPS, MIN_GAPS = 5, 2  # the median is taken of the last 5; fewer than 2 say nothing
FAST_GAP_SECONDS, FAST_AGE = 20.0, timedelta(seconds=60)


class RecentMessages:
    """The last 50 messages of people in a channel where offers are on, at most an hour old. Mutable; times are aware.

    messages: oldest first, without quotes and clipped to 2,000 characters. answered: ids of the messages that somebody
    or the bot has answered; they stay in it when the answer is edited or deleted, since it was read.
    """

    def __init__(self) -> None:
        self.messages: list[MessageRecord] = []
        self.answered: frozenset[int] = NOBODY

    def heard(self, message: MessageRecord, now: datetime) -> None:
        """Adds a person's message in the order of time, since it may come late. A known one is updated."""
        if self._place_of(message.message_id) is not None:
            self.revise(message)
        else:
            place = bisect_right(self.messages, _order(message), key=_order)
            self.messages.insert(place, as_kept(message))
            self._mark_answered_by(place)
            if any(answered_by(later, [message], self.messages) for later in self.messages[place + 1 :]):
                self.answered |= {message.message_id}
        self.expire(now)

    def mark_answered(self, message_id: int) -> None:
        """Marks a message and its author's earlier ones as answered. Unknown ids change nothing."""
        if (place := self._place_of(message_id)) is not None:
            author_id = self.messages[place].author_id
            self.answered |= {m.message_id for m in self.messages[: place + 1] if m.author_id == author_id}

    def revise(self, message: MessageRecord) -> None:
        """Follows an edit. Unknown messages are ignored."""
        if (place := self._place_of(message.message_id)) is None:
            return
        self.messages[place] = as_kept(message)
        self._mark_answered_by(place)
        if is_marked_solved(message.content):
            self.answered |= {message.message_id}

    def remove(self, message_ids: Collection[int]) -> None:
        """Follows a deletion."""
        self._keep([m for m in self.messages if m.message_id not in message_ids])

    def forget(self, author_id: int | None = None) -> None:
        """Drops one person's messages, and forwards of them, or, with None, all. What they answered stays answered."""
        self._keep([m for m in self.messages if author_id not in (None, m.author_id, *m.forwarded_from)])

    def expire(self, now: datetime) -> None:
        """Drops messages older than an hour, and the oldest beyond 50.

        Also drops messages dated in the future: the clock was set back since, so that their age is unknown.
        """
        if self.messages and self.messages[-1].timestamp > now + MAX_AHEAD:
            self._keep([m for m in self.messages if m.timestamp <= now + MAX_AHEAD])
        start = now - MAX_AGE
        while self.messages and (len(self.messages) > MAX_MESSAGES or self.messages[0].timestamp < start):
            self.answered -= {self.messages.pop(0).message_id}

    def _keep(self, messages: list[MessageRecord]) -> None:
        self.messages = messages
        self.answered &= {m.message_id for m in messages}

    def _mark_answered_by(self, place: int) -> None:
        """Marks the earlier messages that the message at this index answers."""
        waiting = [m for m in self.messages[:place] if m.message_id not in self.answered]
        if waiting:
            self.answered |= answered_by(self.messages[place], waiting, self.messages)

    def _place_of(self, message_id: int) -> int | None:
        return next((i for i, m in enumerate(self.messages) if m.message_id == message_id), None)


def _order(message: MessageRecord) -> tuple[datetime, int]:
    return message.timestamp, message.message_id


def as_kept(message: MessageRecord) -> MessageRecord:
    """The message without its quote, clipped to MAX_CHARACTERS."""
    if message.reply_to_author or message.reply_to_text:
        message = without_quote(message)
    if max(len(message.content), len(message.readable)) <= MAX_CHARACTERS:
        return message
    content, readable = message.content[:MAX_CHARACTERS], message.readable[:MAX_CHARACTERS]
    return replace(message, content=content, readable=readable, mentioned=message.mentions)


def is_fast_exchange(messages: Sequence[MessageRecord], now: datetime) -> bool:
    """Whether people are talking quickly: the last message under 60 s ago, the median of the gaps under 20 s.

    A last message dated in the future, as after a step of the clock, counts as one of just now.
    """
    if not messages or now - messages[-1].timestamp >= FAST_AGE:
        return False
    gaps = [(later.timestamp - earlier.timestamp).total_seconds() for earlier, later in pairwise(messages[-GAPS - 1 :])]
    return len(gaps) >= MIN_GAPS and median(gaps) < FAST_GAP_SECONDS
