"""What became of decisions, as far as the next minutes show it. Pure and bounded; told the time, in Unix seconds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

MISSED_SECONDS = 60.0
TOLD_OFF_SECONDS = 300.0
ANSWER_SECONDS = 86_400.0
MAX_KEPT = 10_000
ANSWERED_KEPT = 8

K = TypeVar("K")


class Outcome(StrEnum):
    """MISSED: it kept silent, and was mentioned within a minute. The others: it answered, and was not welcome."""

    MISSED = "missed"
    TOLD_OFF = "told_off"
    DELETED = "deleted"
    DISLIKED = "disliked"


BUTTED_IN = frozenset({Outcome.TOLD_OFF, Outcome.DELETED, Outcome.DISLIKED})


@dataclass(frozen=True, slots=True)
class Mark:
    """What became of the decision on a message, and when that showed."""

    message_id: int
    outcome: Outcome
    at: float


class Outcomes:
    """Tells what an event says of an earlier decision: a Mark, even where that has an outcome already or is gone."""

    def __init__(self) -> None:
        self._silences: _Recent[tuple[int, int]] = _Recent(MISSED_SECONDS)
        # One that is declined must not hide what was answered before it.
        self._answered: _Recent[int] = _Recent(TOLD_OFF_SECONDS, of_each=ANSWERED_KEPT)
        self._questions: _Recent[int] = _Recent(ANSWER_SECONDS)

    def __len__(self) -> int:
        return len(self._silences) + len(self._answered) + len(self._questions)

    # What is decided and done

    def silent(self, channel_id: int, author_id: int, message_id: int, at: float) -> None:
        """By its own choice the bot does not answer a message in a conversation."""
        self._silences.put((channel_id, author_id), message_id, at)

    def answering(self, channel_id: int, message_id: int, at: float) -> None:
        """The bot answers a message."""
        self._answered.put(channel_id, message_id, at)

    def unanswered(self, channel_id: int, message_id: int) -> None:
        """The bot does not answer a message after all."""
        self._answered.drop_value(channel_id, message_id)

    def posted(self, answer_id: int, question_id: int, at: float) -> None:
        """A message of the bot's stands in the channel."""
        self._questions.put(answer_id, question_id, at)

    def retracted(self, answer_id: int) -> None:
        """The bot is about to delete a message of its own."""
        self._questions.drop(answer_id)

    # What people do

    def addressed(self, channel_id: int, author_id: int, at: float) -> Mark | None:
        """Somebody mentions the bot or replies to it."""
        return _mark(self._silences.get((channel_id, author_id), at), Outcome.MISSED, at)

    def told_off(self, channel_id: int, at: float) -> Mark | None:
        """Somebody tells the bot to keep out."""
        return _mark(self._answered.get(channel_id, at), Outcome.TOLD_OFF, at)

    def deleted(self, message_id: int, at: float) -> Mark | None:
        """Any message is deleted."""
        return _mark(self._questions.get(message_id, at), Outcome.DELETED, at)

    def disliked(self, message_id: int, at: float) -> Mark | None:
        """Somebody puts a thumbs down under any message."""
        return _mark(self._questions.get(message_id, at), Outcome.DISLIKED, at)

    def sweep(self, now: float) -> None:
        """Drops what can no longer matter."""
        for recent in (self._silences, self._answered, self._questions):
            recent.sweep(now)


class _Recent(Generic[K]):
    """The newest messages for each key, for so many seconds. Where there are too many, the oldest make room.

    of_each: how many for each key; all but the newest only count once that is dropped.
    """

    def __init__(self, seconds: float, *, of_each: int = 1) -> None:
        self._seconds = seconds
        self._of_each = of_each
        self._items: dict[K, tuple[tuple[float, int], ...]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def put(self, key: K, message_id: int, at: float) -> None:
        # The judge can have decided on an older message after the newer one was.
        self._items[key] = tuple(sorted({*self._items.pop(key, ()), (at, message_id)})[-self._of_each :])
        if len(self._items) > MAX_KEPT:
            del self._items[next(iter(self._items))]

    def get(self, key: K, at: float) -> int | None:
        if key not in self._items:
            return None
        since, message_id = self._items[key][-1]
        return message_id if 0 <= at - since <= self._seconds else None

    def drop(self, key: K) -> None:
        self._items.pop(key, None)

    def drop_value(self, key: K, message_id: int) -> None:
        if left := tuple(item for item in self._items.pop(key, ()) if item[1] != message_id):
            self._items[key] = left

    def sweep(self, now: float) -> None:
        self._items = {key: items for key, items in self._items.items() if now - items[-1][0] <= self._seconds}


def _mark(message_id: int | None, outcome: Outcome, at: float) -> Mark | None:
    return None if message_id is None else Mark(message_id, outcome, at)
