"""The caps: answers to one person a minute; tokens of one turn; and budgets, in tokens or money, a day or a month: in
all, of a guild, a channel, a thread, a person.

From four fifths of a budget on, the bot answers only those who call it; once it is spent, nobody, until it is renewed.
Those who manage the place are told of the first, and the first person who is refused is told of the second.

What a call may use is reserved before the call and released after it, so that calls at the same time cannot exceed a
cap together. A call that no other runs beside is made as long as anything is left. Reservations are stored, too: a call
that a kill interrupts counts as `Reserved.interrupted` says.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Protocol

import orjson
from pydantic import JsonValue

from setting_values import BudgetLimit, Period, Scope
from state.ledger import Day, Ledger
from state.prices import Prices, Rates
from state.spending import NOBODY, Account, Amount, Payer, Purpose, Reserved, Spent, share
from state.stored_limits import STORED, StoredCall, StoredLimits

MINUTE = timedelta(minutes=1)
TELL_AGAIN = timedelta(minutes=10)  # between notices in a channel to those who call the bot when a budget is spent


class Cap(Enum):
    """Which cap refused a question."""

    USER = "user"
    TOTAL = "total"
    GUILD = "guild"
    CHANNEL = "channel"
    THREAD = "thread"
    PERSON = "person"
    TURN = "turn"
    QUEUE = "queue"  # too many turns wait
    OWN = "own"  # other answers to the same person have reserved what is left of their own budget
    UNKNOWN = "unknown"  # several processes share the budgets, and what the others have used cannot be found out


@dataclass(frozen=True, slots=True)
class Reached:
    """A budget and what is used of it: all, or four fifths, where `Limits.reached` returns it. used: in the limit's
    unit."""

    limit: BudgetLimit
    used: int
    resets_at: datetime

    @property
    def cap(self) -> Cap:
        return Cap(self.limit.scope.value)

    @property
    def is_spent(self) -> bool:
        return self.used >= self.limit.amount


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused question. announce: its author is to be told, as nobody was yet; resets_at: when the cap ends.

    reached: the budget that refused it; None: the cap on answers a minute, or on turns that wait.
    """

    cap: Cap
    announce: bool
    resets_at: datetime
    reached: Reached | None = None


class OwnBudgets(Protocol):
    """The budgets that those who manage a place have set for it, beside the owner's."""

    def budgets(self, guild_id: int, channel_id: int, thread_id: int) -> tuple[BudgetLimit, ...]:
        """The budgets of a guild, one of its channels and a thread of that, each with its scope; an id of 0: none."""


class Totals(Protocol):
    """The charges to accounts, by this process' ledger or by all processes; and whom others answered lately."""

    def charged(self, account: Account, period: Period, *, in_money: bool) -> int:
        """The amount charged to an account in the current period: micro-dollars or tokens."""

    async def known(self) -> None:
        """Waits until the charges to the accounts that were just asked for are known."""

    def answers(self, person: int, change: int) -> None:
        """Counts one answer more (1) or less (-1) to a person by this process."""

    def others_answers(self, person: int) -> Sequence[float]:
        """How many seconds ago other processes answered them, in the last minute, as far as known here."""


REFUSED, UNASKED = "refused", "unasked"  # notices of a refusal: to those who called the bot, and to others


class Limits:
    """Counts answers, tokens and money. Times are aware datetimes; days are UTC. A cap of None means no cap.

    budgets: the owner's, in addition to those in tokens a day; own: those set for places. prices: the owner's.
    ledger: what this process has used; totals: what all processes have used; None: there are no others.
    """

    def __init__(
        self,
        *,
        turns_per_user_minute: int,
        daily_tokens: int | None,
        guild_tokens: int | None = None,
        person_tokens: int | None = None,
        turn_tokens: int | None = None,
        budgets: Sequence[BudgetLimit] = (),
        own: OwnBudgets | None = None,
        prices: Mapping[str, Rates] | None = None,
        ledger: Ledger | None = None,
        totals: Totals | None = None,
    ) -> None:
        self.turn_tokens = turn_tokens
        self.prices = Prices(prices)
        self.ledger = Ledger() if ledger is None else ledger
        self._totals = totals
        self._charged = (totals or self.ledger).charged
        self._turns = turns_per_user_minute
        tokens = {Scope.TOTAL: daily_tokens, Scope.GUILD: guild_tokens, Scope.PERSON: person_tokens}
        daily = [BudgetLimit(amount, Period.DAY, scope) for scope, amount in tokens.items() if amount is not None]
        self._limits = {scope: [limit for limit in (*daily, *budgets) if limit.scope is scope] for scope in Scope}
        self._own = own
        self._reserved: Counter[tuple[Account, bool]] = Counter()  # by account, and whether in money or in tokens
        self._calls: dict[Reserved, None] = {}  # that have not ended, the oldest first
        self._taken: dict[int, deque[datetime]] = {}  # when each person was answered
        self._told: dict[tuple[str, int], datetime] = {}  # notices, by their recipient; until when each is not repeated
        self._is_restored = False

    @property
    def tokens_today(self) -> int:
        return self.ledger.charged((Scope.TOTAL, 0), Period.DAY, in_money=False)

    def admit(
        self,
        author_id: int,
        channel_id: int,
        *,
        explicit: bool,
        now: datetime,
        payer: Payer | None = None,
        costs_tokens: bool = True,
        tells: bool = True,
        is_full: bool = False,
    ) -> Refusal | None:
        """Counts one answer to this person, or refuses it. tells: whether they may be told of the refusal. is_full: too
        many turns wait."""
        payer = payer or Payer(0, frozenset({author_id}))
        if costs_tokens and (reached := self.reached(now, payer, explicit=explicit)):
            if not reached.is_spent and reached.cap is not Cap.PERSON and payer.guild_id:
                announce = tells and self.tells_managers(reached, payer, now)
            else:
                whose = f" {author_id}" if reached.cap is Cap.PERSON else ""
                announce = tells and self._tells_refused(whose, channel_id, now, explicit=explicit)
            return Refusal(reached.cap, announce, reached.resets_at, reached)
        if costs_tokens and is_full:
            announce = tells and explicit and self._tells(Cap.QUEUE.value, channel_id, now, now + TELL_AGAIN)
            return Refusal(Cap.QUEUE, announce, now)
        recent = [*self._recent(author_id, now)]
        if self._totals:
            recent += [now - timedelta(seconds=ago) for ago in self._totals.others_answers(author_id)]
        recent.sort()
        if len(recent) >= self._turns or (not explicit and len(recent) * 5 >= self._turns * 4):
            announce = tells and self._tells(f"{Cap.USER.value} {author_id}", channel_id, now, now + MINUTE)
            return Refusal(Cap.USER, announce, recent[0] + MINUTE)
        self._taken.setdefault(author_id, deque()).append(now)
        if self._totals:
            self._totals.answers(author_id, 1)
        return None

    def _tells_refused(self, whose: str, channel_id: int, now: datetime, *, explicit: bool) -> bool:
        """Whether to tell a channel, or a person there: after a call of the bot every TELL_AGAIN, else once a day."""
        end = Period.DAY.end(now)
        if not explicit:
            return self._tells(UNASKED + whose, channel_id, now, end)
        announce = self._tells(REFUSED + whose, channel_id, now, min(now + TELL_AGAIN, end))
        if announce:
            self._told[UNASKED + whose, channel_id] = end
        return announce

    def tells_managers(self, reached: Reached, payer: Payer, now: datetime) -> bool:
        """Whether to tell those who manage a place of a budget: once a period. Counts as told from then on."""
        limit = reached.limit
        whose = {Scope.CHANNEL: payer.channel_id, Scope.THREAD: payer.thread_id}.get(limit.scope, payer.guild_id)
        return self._tells(f"{limit.scope} {limit.in_words()}", whose, now, reached.resets_at)

    def _tells(self, what: str, whom: int, now: datetime, until: datetime) -> bool:
        announce = self._told.get((what, whom), now) <= now
        if announce:
            self._told[what, whom] = until
        return announce

    def give_back(self, author_id: int) -> None:
        """Takes back the newest answer counted for this person, as it was not given."""
        if taken := self._taken.get(author_id):
            taken.pop()
            if self._totals:
                self._totals.answers(author_id, -1)

    def spend(self, spent: Spent, now: datetime, payer: Payer = NOBODY, purpose: Purpose = Purpose.ANSWER) -> Spent:
        """Counts a call of a model, and returns what it used with its price, where that is known."""
        self.begin_day(now)
        spent = self.prices.priced(spent)
        self.ledger.add(payer, purpose, spent)
        return spent

    def reserve(self, call: Reserved, now: datetime) -> bool:
        """Reserves what a call may use, until release(). False if other calls have reserved what is left."""
        self.begin_day(now)
        if any(self.lacking(call)):
            return False
        self.set_aside(call)
        return True

    def lacking(self, call: Reserved) -> Iterator[Account]:
        """The accounts of which other calls of this process have reserved too much for this one."""
        for account, among, limit in self.holding(call.payer):
            others = self._reserved[account, limit.in_money]
            more = share(call.amount[limit.in_money], among)
            if others and self._charged(account, limit.period, in_money=limit.in_money) + others + more > limit.amount:
                yield account

    def set_aside(self, call: Reserved) -> None:
        """Reserves it without a check, as for what is reserved among all processes already."""
        self._count_reserved(call, 1)
        self._calls[call] = None

    def release(self, call: Reserved) -> None:
        """Releases what was reserved for a call."""
        del self._calls[call]
        self._count_reserved(call, -1)

    def _count_reserved(self, call: Reserved, sign: int) -> None:
        for account, (tokens, micros) in call.payer.shares(call.amount):
            for in_money, amount in ((False, tokens), (True, micros)):
                key = account, in_money
                self._reserved[key] += sign * amount
                if self._reserved[key] <= 0:
                    del self._reserved[key]

    def reached(self, now: datetime, payer: Payer, *, explicit: bool = True) -> Reached | None:
        """A budget that this payer has spent; if there is none and not explicit, one that is used to four fifths."""
        self.begin_day(now)
        near: Reached | None = None
        for account, _, limit in self.holding(payer):
            used = self._charged(account, limit.period, in_money=limit.in_money)
            if used >= limit.amount:
                return Reached(limit, used, limit.period.end(now))
            if not (explicit or near) and used * 5 >= limit.amount * 4:
                near = Reached(limit, used, limit.period.end(now))
        return near

    def standing(self, now: datetime, payer: Payer) -> list[Reached]:
        """All budgets that limit this payer, and what is used of each."""
        self.begin_day(now)
        return [
            Reached(limit, self._charged(account, limit.period, in_money=limit.in_money), limit.period.end(now))
            for account, _, limit in self.holding(payer)
        ]

    async def looked_up(self, now: datetime, payer: Payer) -> list[Reached]:
        """The same after looking up what other processes have used, for somebody who asks."""
        if self._totals:
            self.standing(now, payer)
            await self._totals.known()
        return self.standing(now, payer)

    def by_all(self, now: datetime, account: Account = (Scope.TOTAL, 0), period: Period = Period.DAY) -> Amount | None:
        """All processes' charges to an account in this day or month; None: no others share the budgets."""
        self.begin_day(now)
        if self._totals is None:
            return None
        return Amount(*(self._charged(account, period, in_money=money) for money in (False, True)))

    async def looked_up_by_all(self, now: datetime, account: Account) -> dict[Period, Amount]:
        """The same of each period, after looking up what other processes have used, for somebody who asks."""
        if self._totals and all(self.by_all(now, account, period) for period in Period):
            await self._totals.known()
        return {period: amount for period in Period if (amount := self.by_all(now, account, period))}

    def holding(self, payer: Payer) -> list[tuple[Account, int, BudgetLimit]]:
        """The budgets that limit a payer, each as: account, among how many people its cost is divided, limit."""
        own: Sequence[BudgetLimit] = ()
        are_exempt = payer.people and payer.people <= payer.exempt
        if self._own and payer.guild_id and not are_exempt:
            own = self._own.budgets(payer.guild_id, payer.channel_id, payer.thread_id)
        return [
            (account, among, limit)
            for account, among in payer.accounts()
            for limit in (*self._limits[account[0]], *own)
            if limit.scope is account[0]
        ]

    def sweep(self, now: datetime) -> None:
        """Drops what can no longer matter."""
        self._told = {what: until for what, until in self._told.items() if until > now}
        for author_id in list(self._taken):
            self._recent(author_id, now)

    def to_store(self) -> Callable[[], bytes]:
        """Copies today, the calls that have not ended and the notices given. Returns a function that encodes the copy
        as JSON for restore(), in whatever thread. The answers of the last minute are not worth storing."""
        day, today, calls, told = self.ledger.day, self.ledger.today.copy(), [*self._calls], {**self._told}
        tokens, is_shared = self.tokens_today, self._totals is not None

        def encode() -> bytes:
            kept = [(what, whom, at) for (what, whom), at in told.items() if not what.startswith(Cap.USER.value)]
            stored = StoredLimits(
                day,
                tokens,
                [],
                today=today.stored(),
                calls=[*map(StoredCall.of, calls)],
                told=kept,
                is_shared=is_shared,
            )
            return orjson.dumps(stored, default=tuple)  # of figures

        return encode

    def restore(self, stored: JsonValue) -> None:
        """Adds what to_store() encoded. What was used on another day counts for its month only; a call that had not
        ended counts as interrupted. Raises ValueError."""
        read = STORED.validate_python(stored)
        self._told |= {(what, whom): until for what, whom, until in read.told}
        if read.day is None:
            return
        today = Day.restored(read.today) if read.today else read.counted_before()
        end = Period.DAY.end(datetime(read.day.year, read.day.month, read.day.day, tzinfo=UTC))
        self._told |= {(REFUSED, channel): end for channel in read.told_channels}
        self.ledger.resume(read.day, today)
        for call in read.calls:
            killed = call.reserved()
            self.ledger.add(killed.payer, killed.purpose, self.prices.priced(killed.interrupted))
        self._is_restored = True

    def _recent(self, author_id: int, now: datetime) -> deque[datetime]:
        taken = self._taken.get(author_id, deque())
        while taken and not now - MINUTE < taken[0] <= now:  # a clock that was set back leaves some in the future
            taken.popleft()
        if not taken:
            self._taken.pop(author_id, None)
        return taken

    def begin_day(self, now: datetime) -> None:
        """Starts a new day in the ledger if one has begun."""
        day, today = self.ledger.day, now.date()
        # A clock set back renews no budget; but a stored day in the future would keep a budget spent for too long.
        if day is None or today > day or (self._is_restored and today < day):
            self.ledger.begin(today)
        self._is_restored = False
