"""The caps: how many answers one person gets a minute, and how many tokens model calls may use a day: in all, for a
guild, for a person; and for one turn.

Those of a minute and a day work alike. At four fifths of a cap the bot stops following up unasked and answers mentions
only; at the cap it is silent until the cap resets. The first question that is turned away gets one polite line.

What a call may use is reserved before it is made, and given back by what it has used: calls that run at once do not
pass a cap together. A single call that nothing else runs beside is made as long as anything is left.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import Enum

from pydantic import JsonValue, NonNegativeInt, TypeAdapter

MENTIONS_ONLY_SHARE = 0.8
MINUTE = timedelta(minutes=1)


class Cap(Enum):
    """Which cap turned a question away."""

    USER = "user"
    DAILY = "daily"
    GUILD = "guild"
    PERSON = "person"
    TURN = "turn"


@dataclass(frozen=True, slots=True)
class Payer:
    """Whose tokens a call uses: a guild's, and in equal parts those of the people who are answered."""

    guild_id: int = 0
    people: frozenset[int] = frozenset()


NOBODY = Payer()
PAYER: ContextVar[Payer] = ContextVar("payer", default=NOBODY)
"""For whom the calls beside a turn's own are made here: the judge's, and the like."""

Account = tuple[Cap, int]


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
    guilds: dict[int, NonNegativeInt] = field(default_factory=dict)
    people: dict[int, NonNegativeInt] = field(default_factory=dict)


STORED = TypeAdapter(_Stored)


class Limits:
    """Counts answers and tokens. Times are aware datetimes; a day is one of UTC. A cap of None is none."""

    def __init__(
        self,
        *,
        turns_per_user_minute: int,
        daily_tokens: int | None,
        guild_tokens: int | None = None,
        person_tokens: int | None = None,
        turn_tokens: int | None = None,
    ) -> None:
        self.turn_tokens = turn_tokens
        self._turns = turns_per_user_minute
        self._caps = {Cap.DAILY: daily_tokens, Cap.GUILD: guild_tokens, Cap.PERSON: person_tokens}
        self._used: Counter[Account] = Counter()
        self._reserved: Counter[Account] = Counter()
        self._taken: dict[int, deque[datetime]] = {}
        self._told_users: dict[int, datetime] = {}
        self._told_channels: set[int] = set()
        self._day: date | None = None
        self._is_restored = False

    @property
    def tokens_today(self) -> int:
        return self._used[Cap.DAILY, 0]

    def admit(
        self,
        author_id: int,
        channel_id: int,
        *,
        explicit: bool,
        now: datetime,
        guild_id: int = 0,
        costs_tokens: bool = True,
        tells: bool = True,
    ) -> Refusal | None:
        """Counts one answer to this person, or refuses it. tells: whether they are to be told of that."""
        cap = self.reached(now, Payer(guild_id, frozenset({author_id})), explicit=explicit) if costs_tokens else None
        if cap:
            tomorrow = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
            if cap is Cap.PERSON:
                announce = self._tells_user(author_id, now, tomorrow, tells=tells)
            else:
                announce = tells and channel_id not in self._told_channels
                if announce:
                    self._told_channels.add(channel_id)
            return Refusal(cap, announce, tomorrow)
        recent = self._recent(author_id, now)
        if _is_over(len(recent), self._turns, explicit=explicit):
            announce = self._tells_user(author_id, now, now + MINUTE, tells=tells)
            return Refusal(Cap.USER, announce, recent[0] + MINUTE)
        self._taken.setdefault(author_id, deque()).append(now)
        return None

    def _tells_user(self, author_id: int, now: datetime, until: datetime, *, tells: bool) -> bool:
        """Whether somebody is to be told of a cap, of which they have not been told yet."""
        announce = tells and self._told_users.get(author_id, now) <= now
        if announce:
            self._told_users[author_id] = until
        return announce

    def give_back(self, author_id: int) -> None:
        """The newest answer counted for this person was not given."""
        if taken := self._taken.get(author_id):
            taken.pop()

    def spend(self, tokens: int, now: datetime, payer: Payer = NOBODY) -> None:
        """Counts the tokens of model calls."""
        self._begin_day(now)
        for account, share in _shares(payer, tokens):
            self._used[account] += share

    def reserve(self, tokens: int, now: datetime, payer: Payer) -> bool:
        """Sets so many tokens aside for a call, until release(), unless others have what is left."""
        self._begin_day(now)
        shares = list(_shares(payer, tokens))
        for account, share in shares:
            cap, others = self._caps[account[0]], self._reserved[account]
            if cap is not None and others and self._used[account] + others + share > cap:
                return False
        for account, share in shares:
            self._reserved[account] += share
        return True

    def release(self, tokens: int, payer: Payer) -> None:
        """Gives back what was set aside."""
        for account, share in _shares(payer, tokens):
            self._reserved[account] -= share
            if self._reserved[account] <= 0:
                del self._reserved[account]

    def has_budget(self, now: datetime) -> bool:
        """Whether anything is left of what there is in all."""
        return self.reached(now, NOBODY) is None

    def may_judge(self, now: datetime, payer: Payer = NOBODY) -> bool:
        """Whether there is budget for a call that only finds out whether to answer."""
        return self.reached(now, payer, explicit=False) is None

    def reached(self, now: datetime, payer: Payer, *, explicit: bool = True) -> Cap | None:
        """The cap that these have reached, or, not explicit, come near to."""
        self._begin_day(now)
        accounts = (account for account, _ in _shares(payer, 0))
        return next((a[0] for a in accounts if _is_over(self._used[a], self._caps[a[0]], explicit=explicit)), None)

    def sweep(self, now: datetime) -> None:
        """Drops what can no longer matter."""
        self._told_users = {author: until for author, until in self._told_users.items() if until > now}
        for author_id in list(self._taken):
            self._recent(author_id, now)

    def stored(self) -> JsonValue:
        """The day, its tokens and which channels were told, for restore() after a restart; a minute is not worth it."""
        guilds, people = (
            {one: used for (cap, one), used in self._used.items() if cap is kind} for kind in (Cap.GUILD, Cap.PERSON)
        )
        stored = _Stored(self._day, self.tokens_today, [*self._told_channels], guilds, people)
        told: JsonValue = STORED.dump_python(stored, mode="json")
        return told

    def restore(self, stored: JsonValue) -> None:
        """Takes back what stored() gave; on any other day than that one it counts for nothing. Raises ValueError."""
        read = STORED.validate_python(stored)
        self._day, self._told_channels = read.day, set(read.told_channels)
        used = {Cap.DAILY: {0: read.tokens}, Cap.GUILD: read.guilds, Cap.PERSON: read.people}
        self._used = Counter({(cap, one): tokens for cap, by_id in used.items() for one, tokens in by_id.items()})
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
            self._day = today
            self._used.clear()
            self._told_channels.clear()
        self._is_restored = False


class Budget:
    """The tokens of today, by the clock. on_spend: told whenever some were spent."""

    def __init__(self, limits: Limits, clock: Callable[[], datetime], on_spend: Callable[[], None]) -> None:
        self._limits = limits
        self._clock = clock
        self._on_spend = on_spend
        self._given_back = asyncio.Event()

    def has_budget(self) -> bool:
        return self._limits.has_budget(self._clock())

    def may_judge(self) -> bool:
        return self._limits.may_judge(self._clock(), PAYER.get())

    def call(self, tokens: int) -> Callable[[int], object] | None:
        """Reserves so many tokens for one call, by whoever pays here; None where they are not to be had now.

        Returned is what has to be told how many it used.
        """
        payer = PAYER.get()
        if self.reached(payer) or not self.reserve(tokens, payer):
            return None
        return lambda used: self.settle(tokens, used, payer)

    def allowance(self, payer: Payer) -> Allowance:
        """What a turn may use."""
        return Allowance(self, payer)

    def reached(self, payer: Payer) -> Cap | None:
        return self._limits.reached(self._clock(), payer)

    def reserve(self, tokens: int, payer: Payer) -> bool:
        return self._limits.reserve(tokens, self._clock(), payer)

    def settle(self, reserved: int, tokens: int, payer: Payer) -> None:
        """Gives back what was reserved, and counts what was used of it."""
        self._limits.release(reserved, payer)
        if tokens:
            self._limits.spend(tokens, self._clock(), payer)
            self._on_spend()
        given_back, self._given_back = self._given_back, asyncio.Event()
        given_back.set()

    async def given_back(self) -> None:
        """Waits until somebody gives back what they had reserved."""
        await self._given_back.wait()

    @property
    def turn_tokens(self) -> int | None:
        return self._limits.turn_tokens


class Allowance:
    """What one turn may use: reserved before each call of its model, counted behind it."""

    def __init__(self, budget: Budget, payer: Payer) -> None:
        self._budget = budget
        self._payer = payer
        self._reserved = 0
        self._counted = 0  # of what the turn has used since it was asked, or asked anew
        self._before = 0
        self.unseen = 0  # of what is reserved

    async def reserve(self, tokens: int, unseen: int = 0) -> Cap | None:
        """Reserves what the next call may use; waits while others have that. Returns the cap that is reached.

        unseen: so many that it may use beyond what is known of it; of a turn that may use less, what is left.
        """
        if self._budget.turn_tokens is not None:
            left = self._budget.turn_tokens - self._before - self._counted - tokens
            if left < 0:
                return Cap.TURN
            unseen = min(unseen, left)
        tokens, self.unseen = tokens + unseen, unseen
        self.count(self._counted)
        while not (cap := self._budget.reached(self._payer)):
            if self._budget.reserve(tokens, self._payer):
                self._reserved = tokens
                return None
            await self._budget.given_back()
        return cap

    def count(self, tokens: int) -> None:
        """So many the turn has used by now; what was reserved is given back."""
        self._budget.settle(self._reserved, max(0, tokens - self._counted), self._payer)
        self._reserved, self._counted = 0, max(tokens, self._counted)

    def settle(self, tokens: int) -> int:
        """So many it has used when it ended, or is asked anew. Returns them."""
        self.count(tokens)
        self._before, self._counted = self._before + self._counted, 0
        return tokens


def _shares(payer: Payer, tokens: int) -> Iterator[tuple[Account, int]]:
    """What each account pays."""
    yield (Cap.DAILY, 0), tokens
    if payer.guild_id:
        yield (Cap.GUILD, payer.guild_id), tokens
    for person in payer.people:
        yield (Cap.PERSON, person), -(-tokens // len(payer.people))


def _is_over(used: int, cap: int | None, *, explicit: bool) -> bool:
    return cap is not None and used >= (cap if explicit else cap * MENTIONS_ONLY_SHARE)
