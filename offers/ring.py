"""What people said lately in one channel, and what of it nobody has answered."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from offers.answers import answered_by, is_marked_solved
from state.message import MessageRecord
from state.optout import without_quote

MAX_MESSAGES = 50
MAX_AGE = timedelta(hours=1)
MAX_AHEAD = timedelta(minutes=10)  # that clocks may differ
MAX_CHARACTERS = 2_000  # of a message that are kept

GAPS, MIN_GAPS = 5, 2  # the last ones, of which the median is taken; fewer tell nothing
FAST_GAP_SECONDS, FAST_AGE = 20.0, timedelta(seconds=60)


class Ring:
    """The last 50 messages of people in a channel where offers are on, of the last hour. Mutable; times are aware.

    Nobody can unread an answer: a message that was answered stays so when the answer is edited or deleted.
    """

    def __init__(self) -> None:
        self._messages: list[MessageRecord] = []
        self._answered: set[int] = set()

    @property
    def messages(self) -> Sequence[MessageRecord]:
        """Oldest first, without what they quote and clipped to 2,000 characters."""
        return self._messages

    @property
    def answered(self) -> Collection[int]:
        """Ids of the messages that somebody, or we, have answered."""
        return self._answered

    def heard(self, message: MessageRecord, now: datetime) -> None:
        """A person's message. It may come late: it stands where its time puts it. Known ones are revised."""
        if self._place_of(message.message_id) is not None:
            self.revise(message)
        else:
            self._insert(bisect_right(self._messages, _order(message), key=_order), message)
        self.expire(now)

    def mark_answered(self, message_id: int) -> None:
        """We have answered it, and by this what its author had said before. Unknown ids are let pass."""
        if (place := self._place_of(message_id)) is None:
            return
        author_id = self._messages[place].author_id
        self._answered |= {m.message_id for m in self._messages[: place + 1] if m.author_id == author_id}

    def revise(self, message: MessageRecord) -> None:
        """Follows an edit; of a message that is not kept nothing changes."""
        if (place := self._place_of(message.message_id)) is None:
            return
        self._messages[place] = as_kept(message)
        self._answer(place)
        if is_marked_solved(message.content):
            self._answered.add(message.message_id)

    def remove(self, message_ids: Collection[int]) -> None:
        """Follows a deletion."""
        self._keep([m for m in self._messages if m.message_id not in message_ids])

    def forget(self, author_id: int | None = None) -> None:
        """Drops all that one person said, or everything. What it answered stays answered."""
        self._keep([m for m in self._messages if author_id not in (None, m.author_id)])

    def expire(self, now: datetime) -> None:
        """Drops what is older than an hour, and the oldest beyond 50.

        So goes what is of a time to come: the clock was set back since, and does not tell any more how old it is.
        """
        if self._messages and self._messages[-1].timestamp > now + MAX_AHEAD:
            self._keep([m for m in self._messages if m.timestamp <= now + MAX_AHEAD])
        start = now - MAX_AGE
        while self._messages and (len(self._messages) > MAX_MESSAGES or self._messages[0].timestamp < start):
            self._answered.discard(self._messages.pop(0).message_id)

    def _insert(self, place: int, message: MessageRecord) -> None:
        self._messages.insert(place, as_kept(message))
        self._answer(place)
        if any(answered_by(later, [message], self._messages) for later in self._messages[place + 1 :]):
            self._answered.add(message.message_id)

    def _keep(self, messages: list[MessageRecord]) -> None:
        self._messages = messages
        self._answered &= {m.message_id for m in messages}

    def _answer(self, place: int) -> None:
        """Marks what the message at a place answers."""
        waiting = [m for m in self._messages[:place] if m.message_id not in self._answered]
        if waiting:
            self._answered |= answered_by(self._messages[place], waiting, self._messages)

    def _place_of(self, message_id: int) -> int | None:
        return next((i for i, m in enumerate(self._messages) if m.message_id == message_id), None)


def _order(message: MessageRecord) -> tuple[datetime, int]:
    return message.timestamp, message.message_id


def as_kept(message: MessageRecord) -> MessageRecord:
    """Without what it quotes, and clipped."""
    if message.reply_to_author or message.reply_to_text:
        message = without_quote(message)
    if max(len(message.content), len(message.readable)) <= MAX_CHARACTERS:
        return message
    content, readable = message.content[:MAX_CHARACTERS], message.readable[:MAX_CHARACTERS]
    return replace(message, content=content, readable=readable, mentioned=message.mentions)


def median_gap(messages: Sequence[MessageRecord]) -> float | None:
    """Seconds between the last messages, 6 at most, oldest first; None where there are fewer than 3."""
    gaps = [(later.timestamp - earlier.timestamp).total_seconds() for earlier, later in pairwise(messages[-GAPS - 1 :])]
    return median(gaps) if len(gaps) >= MIN_GAPS else None


def is_fast_exchange(messages: Sequence[MessageRecord], now: datetime) -> bool:
    """Whether people are in the middle of one: the last message under 60 s ago, the median gap under 20 s.

    A last message from the future, as after a step of the clock, is one of just now.
    """
    if not messages or now - messages[-1].timestamp >= FAST_AGE:
        return False
    gap = median_gap(messages)
    return gap is not None and gap < FAST_GAP_SECONDS
