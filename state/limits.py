"""The caps: how many answers one person gets a minute, and how many tokens all model calls may use a day.

Both work alike. At four fifths of a cap the bot stops following up unasked and answers mentions only; at the cap it is
silent until the cap resets. The first question that is turned away gets one polite line. The cap itself is never passed
knowingly: a response that is on its way while the last tokens go is taken, no other is asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum

from pydantic import JsonValue, NonNegativeInt, TypeAdapter

MENTIONS_ONLY_SHARE = 0.8
MINUTE = timedelta(minutes=1)


class Cap(Enum):
    """Which cap turned a question away."""

    USER = "user"
    DAILY = "daily"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A question that is not answered. announce: nobody was told yet; resets_at: when asking helps again."""

    cap: Cap
    announce: bool
    resets_at: datetime


@dataclass(frozen=True, slots=True)
class _Stored:
    """What of the limits outlives a restart."""

    day: date | None
    tokens: NonNegativeInt
    told_channels: list[int]


STORED = TypeAdapter(_Stored)


class Limits:
    """Counts answers and tokens. Times are aware datetimes; a day is one of UTC."""

    def __init__(self, *, turns_per_user_minute: int, daily_tokens: int | None) -> None:
        self._turns = turns_per_user_minute
        self._tokens = daily_tokens
        self._taken: dict[int, deque[datetime]] = {}
        self._told_users: dict[int, datetime] = {}
        self._told_channels: set[int] = set()
        self._day: date | None = None
        self._is_restored = False
        self.tokens_today = 0

    def admit(
        self,
        author_id: int,
        channel_id: int,
        *,
        explicit: bool,
        now: datetime,
        costs_tokens: bool = True,
        tells: bool = True,
    ) -> Refusal | None:
        """Counts one answer to this person, or refuses it. tells: whether they are to be told of that."""
        self._begin_day(now)
        if costs_tokens and _is_over(self.tokens_today, self._tokens, explicit=explicit):
            announce = tells and channel_id not in self._told_channels
            if announce:
                self._told_channels.add(channel_id)
            tomorrow = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
            return Refusal(Cap.DAILY, announce, tomorrow)
        recent = self._recent(author_id, now)
        if _is_over(len(recent), self._turns, explicit=explicit):
            announce = tells and self._told_users.get(author_id, now) <= now
            if announce:
                self._told_users[author_id] = now + MINUTE
            return Refusal(Cap.USER, announce, recent[0] + MINUTE)
        self._taken.setdefault(author_id, deque()).append(now)
        return None

    def give_back(self, author_id: int) -> None:
        """The newest answer counted for this person was not given."""
        if taken := self._taken.get(author_id):
            taken.pop()

    def spend(self, tokens: int, now: datetime) -> None:
        """Counts the tokens of one model call."""
        self._begin_day(now)
        self.tokens_today += tokens

    def has_budget(self, now: datetime, used: int = 0) -> bool:
        """Whether another model call may begin. used: tokens that are still to be counted."""
        self._begin_day(now)
        return not _is_over(self.tokens_today + used, self._tokens, explicit=True)

    def may_judge(self, now: datetime) -> bool:
        """Whether there is budget for a call that only finds out whether to answer."""
        self._begin_day(now)
        return not _is_over(self.tokens_today, self._tokens, explicit=False)

    def sweep(self, now: datetime) -> None:
        """Drops what can no longer matter."""
        self._told_users = {author: until for author, until in self._told_users.items() if until > now}
        for author_id in list(self._taken):
            self._recent(author_id, now)

    def stored(self) -> JsonValue:
        """The day, its tokens and which channels were told, for restore() after a restart; a minute is not worth it."""
        told: JsonValue = STORED.dump_python(_Stored(self._day, self.tokens_today, [*self._told_channels]), mode="json")
        return told

    def restore(self, stored: JsonValue) -> None:
        """Takes back what stored() gave; on any other day than that one it counts for nothing. Raises ValueError."""
        read = STORED.validate_python(stored)
        self._day, self.tokens_today, self._told_channels = read.day, read.tokens, set(read.told_channels)
        self._is_restored = True

    def _recent(self, author_id: int, now: datetime) -> deque[datetime]:
        taken = self._taken.get(author_id, deque())
        while taken and not now - MINUTE < taken[0] <= now:  # a clock that was set back leaves some in the future
            taken.popleft()
        if not taken:
            self._taken.pop(author_id, None)
        return taken

    def _begin_day(self, now: datetime) -> None:
        today = now.date()
        # A clock that is set back renews no budget; but what was stored in the future would be spent for too long.
        if self._day is None or today > self._day or (self._is_restored and today < self._day):
            self._day, self.tokens_today = today, 0
            self._told_channels.clear()
        self._is_restored = False


class Budget:
    """The tokens of today, by the clock. on_spend: told whenever some were spent."""

    def __init__(self, limits: Limits, clock: Callable[[], datetime], on_spend: Callable[[], None]) -> None:
        self._limits = limits
        self._clock = clock
        self._on_spend = on_spend

    def spend(self, tokens: int) -> None:
        self._limits.spend(tokens, self._clock())
        self._on_spend()

    def has_budget(self, used: int = 0) -> bool:
        return self._limits.has_budget(self._clock(), used)

    def may_judge(self) -> bool:
        return self._limits.may_judge(self._clock())


def _is_over(used: int, cap: int | None, *, explicit: bool) -> bool:
    return cap is not None and used >= (cap if explicit else cap * MENTIONS_ONLY_SHARE)
