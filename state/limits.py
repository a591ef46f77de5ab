"""The caps: how many answers one person gets a minute, and what calls of models may use a day and a month, in tokens or
money: in all, of a guild, a channel, a thread, a person; and how many tokens one turn may.

From four fifths of a budget on the bot follows up unasked no more and answers mentions only; at its end it answers
nobody until it is renewed. Whoever manages the place is told of the first, the first who is turned away of the second.

What a call may use is reserved before it is made, and given back by what it has used: calls that run at once do not
pass a cap together. A single call that nothing else runs beside is made as long as anything is left. What is reserved
is stored too: a call that a kill interrupts counts as `Reserved.interrupted` says.
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
TELL_AGAIN = timedelta(minutes=10)  # who calls the bot when a budget is spent, in the same channel


class Cap(Enum):
    """Which cap turned a question away."""

    USER = "user"
    TOTAL = "total"
    GUILD = "guild"
    CHANNEL = "channel"
    THREAD = "thread"
    PERSON = "person"
    TURN = "turn"
    UNKNOWN = "unknown"  # what others have used, where several processes share the budgets, cannot be found out


@dataclass(frozen=True, slots=True)
class Reached:
    """A budget that is spent, or four fifths of it are. used: in what the limit is counted in."""

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
    """A question that is not answered. announce: nobody was told yet; resets_at: when asking helps again.

    reached: the budget, where it is not the answers a minute.
    """

    cap: Cap
    announce: bool
    resets_at: datetime
    reached: Reached | None = None


class OwnBudgets(Protocol):
    """The budgets that those who manage a place have set for it, beside the owner's."""

    def budgets(self, guild_id: int, channel_id: int, thread_id: int) -> tuple[BudgetLimit, ...]:
        """Of a guild, a channel of it and a thread of that, by their scope; 0 where there is none."""


class Totals(Protocol):
    """What is charged to accounts: by this process' ledger, or by all processes; and whom these answered lately."""

    def charged(self, account: Account, period: Period, *, in_money: bool) -> int:
        """In the period that today is in."""

    async def known(self) -> None:
        """Waits until that is known of the accounts that were just asked for."""

    def answers(self, person: int, change: int) -> None:
        """One answer more, or less, is counted here for a person."""

    def others_answers(self, person: int) -> Sequence[float]:
        """How many seconds ago other processes answered them, within the last minute, as far as that is known."""


class NoOwnBudgets:
    def budgets(self, guild_id: int, channel_id: int, thread_id: int) -> tuple[BudgetLimit, ...]:  # noqa: ARG002
        return ()


REFUSED, UNASKED = "refused", "unasked"  # who was told that they are turned away, having called the bot or not


class Limits:
    """Counts answers, tokens and money. Times are aware datetimes; a day is one of UTC. A cap of None is none.

    budgets: the owner's, beside those in tokens a day; own: those of places. prices: the owner's, of models.
    ledger: what this process has used; totals: what all processes have, where there are several.
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
        self._totals = self.ledger if totals is None else totals
        self._turns = turns_per_user_minute
        tokens = {Scope.TOTAL: daily_tokens, Scope.GUILD: guild_tokens, Scope.PERSON: person_tokens}
        daily = [BudgetLimit(amount, Period.DAY, scope) for scope, amount in tokens.items() if amount is not None]
        self._limits = {scope: [limit for limit in (*daily, *budgets) if limit.scope is scope] for scope in Scope}
        self._own = own or NoOwnBudgets()
        self._reserved: Counter[tuple[Account, bool]] = Counter()  # of an account, in tokens or in money
        self._calls: dict[Reserved, None] = {}  # that have not ended, the oldest first
        self._taken: dict[int, deque[datetime]] = {}
        self._told: dict[tuple[str, int], datetime] = {}  # who was told what, and until when that holds
        self._is_restored = False

    @property
    def tokens_today(self) -> int:
        return self.ledger.used((Scope.TOTAL, 0), Period.DAY).tokens

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
    ) -> Refusal | None:
        """Counts one answer to this person, or refuses it. tells: whether they are to be told of that."""
        payer = payer or Payer(0, frozenset({author_id}))
        if costs_tokens and (reached := self.reached(now, payer, explicit=explicit)):
            if not reached.is_spent and reached.cap is not Cap.PERSON and payer.guild_id:
                announce = tells and self.tells_managers(reached, payer, now)
            else:
                whose = f" {author_id}" if reached.cap is Cap.PERSON else ""
                announce = tells and self._tells_refused(whose, channel_id, now, explicit=explicit)
            return Refusal(reached.cap, announce, reached.resets_at, reached)
        elsewhere = (now - timedelta(seconds=ago) for ago in self._totals.others_answers(author_id))
        recent = sorted([*self._recent(author_id, now), *elsewhere])
        if len(recent) >= self._turns or (not explicit and len(recent) * 5 >= self._turns * 4):
            announce = tells and self._tells(f"{Cap.USER.value} {author_id}", channel_id, now, now + MINUTE)
            return Refusal(Cap.USER, announce, recent[0] + MINUTE)
        self._taken.setdefault(author_id, deque()).append(now)
        self._totals.answers(author_id, 1)
        return None

    def _tells_refused(self, whose: str, channel_id: int, now: datetime, *, explicit: bool) -> bool:
        """Whether a channel, or a person there, is told: who called the bot each TELL_AGAIN, others once a day."""
        end = Period.DAY.end(now)
        if not explicit:
            return self._tells(UNASKED + whose, channel_id, now, end)
        announce = self._tells(REFUSED + whose, channel_id, now, min(now + TELL_AGAIN, end))
        if announce:
            self._told[UNASKED + whose, channel_id] = end
        return announce

    def tells_managers(self, reached: Reached, payer: Payer, now: datetime) -> bool:
        """Whether those who manage a guild are to be told of a budget, of which they have not been told yet."""
        limit = reached.limit
        whose = {Scope.CHANNEL: payer.channel_id, Scope.THREAD: payer.thread_id}.get(limit.scope, payer.guild_id)
        return self._tells(f"{limit.scope} {limit.in_words()}", whose, now, reached.resets_at)

    def _tells(self, what: str, whom: int, now: datetime, until: datetime) -> bool:
        announce = self._told.get((what, whom), now) <= now
        if announce:
            self._told[what, whom] = until
        return announce

    def give_back(self, author_id: int) -> None:
        """The newest answer counted for this person was not given."""
        if taken := self._taken.get(author_id):
            taken.pop()
            self._totals.answers(author_id, -1)

    def spend(self, spent: Spent, now: datetime, payer: Payer = NOBODY, purpose: Purpose = Purpose.ANSWER) -> Spent:
        """Counts a model's call, and returns what it used with its price, as far as that is known."""
        self.begin_day(now)
        spent = self.prices.priced(spent)
        self.ledger.add(payer, purpose, spent)
        return spent

    def reserve(self, call: Reserved, now: datetime) -> bool:
        """Sets aside what a call may use, until release(), unless others have what is left."""
        self.begin_day(now)
        for account, among, limit in self.holding(call.payer):
            others = self._reserved[account, limit.in_money]
            more = share(call.amount[limit.in_money], among)
            if others and self._used(account, limit) + others + more > limit.amount:
                return False
        self.set_aside(call)
        return True

    def set_aside(self, call: Reserved) -> None:
        """The same for what was reserved among all processes."""
        self._count_reserved(call, 1)
        self._calls[call] = None

    def release(self, call: Reserved) -> None:
        """Gives back what was set aside."""
        del self._calls[call]
        self._count_reserved(call, -1)

    def _count_reserved(self, call: Reserved, sign: int) -> None:
        for account, among in call.payer.accounts():
            for in_money in (False, True):
                key = account, in_money
                self._reserved[key] += sign * share(call.amount[in_money], among)
                if self._reserved[key] <= 0:
                    del self._reserved[key]

    def in_money(self, payer: Payer) -> bool:
        """Whether any budget in money holds for these."""
        return any(limit.in_money for _, _, limit in self.holding(payer))

    def has_budget(self, now: datetime) -> bool:
        """Whether anything is left of what there is in all."""
        return self.reached(now, NOBODY) is None

    def may_judge(self, now: datetime, payer: Payer = NOBODY) -> bool:
        """Whether there is budget for a call that only finds out whether to answer."""
        return self.reached(now, payer, explicit=False) is None

    def reached(self, now: datetime, payer: Payer, *, explicit: bool = True) -> Reached | None:
        """The budget that these have spent, or, not explicit, four fifths of it; one that is spent comes first."""
        self.begin_day(now)
        near: Reached | None = None
        for account, _, limit in self.holding(payer):
            used = self._used(account, limit)
            if used >= limit.amount:
                return Reached(limit, used, limit.period.end(now))
            if not (explicit or near) and used * 5 >= limit.amount * 4:
                near = Reached(limit, used, limit.period.end(now))
        return near

    def standing(self, now: datetime, payer: Payer) -> list[Reached]:
        """All budgets that these pay from, and what is used of them."""
        self.begin_day(now)
        return [
            Reached(limit, self._used(account, limit), limit.period.end(now))
            for account, _, limit in self.holding(payer)
        ]

    async def looked_up(self, now: datetime, payer: Payer) -> list[Reached]:
        """The same for somebody who wants to know: also of accounts that nobody has asked for lately."""
        self.standing(now, payer)
        await self._totals.known()
        return self.standing(now, payer)

    def by_all(self, now: datetime, account: Account = (Scope.TOTAL, 0), period: Period = Period.DAY) -> Amount | None:
        """What all processes have used of an account in this day or month; None where there is no other process."""
        self.begin_day(now)
        if self._totals is self.ledger:
            return None
        return Amount(*(self._totals.charged(account, period, in_money=money) for money in (False, True)))

    async def looked_up_by_all(self, now: datetime, account: Account) -> dict[Period, Amount]:
        """The same for somebody who wants to know: of an account that nobody has asked for lately."""
        if all(self.by_all(now, account, period) for period in Period):
            await self._totals.known()
        return {period: amount for period in Period if (amount := self.by_all(now, account, period))}

    def holding(self, payer: Payer) -> Iterator[tuple[Account, int, BudgetLimit]]:
        """The budgets that limit these: whose account, among how many what it pays is divided, and the limit."""
        has_own = payer.guild_id and not payer.is_exempt
        own = self._own.budgets(payer.guild_id, payer.channel_id, payer.thread_id) if has_own else ()
        for account, among in payer.accounts():
            for limit in self._limits[account[0]]:
                yield account, among, limit
            for limit in own:
                if limit.scope is account[0]:
                    yield account, among, limit

    def _used(self, account: Account, limit: BudgetLimit) -> int:
        return self._totals.charged(account, limit.period, in_money=limit.in_money)

    def sweep(self, now: datetime) -> None:
        """Drops what can no longer matter."""
        self._told = {what: until for what, until in self._told.items() if until > now}
        for author_id in list(self._taken):
            self._recent(author_id, now)

    def stored(self) -> JsonValue:
        """Today, the calls that have not ended and who was told what, for restore() after a restart; a minute is not
        worth it."""
        told: JsonValue = orjson.loads(self.to_store()())
        return told

    def to_store(self) -> Callable[[], bytes]:
        """Gives the same as it is now, in JSON, whenever that is made."""
        day, tokens, today, calls, told = (
            self.ledger.day, self.tokens_today, self.ledger.today.copy(), [*self._calls], {**self._told},
        )  # fmt: skip

        is_shared = self._totals is not self.ledger

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
        """Adds what stored() gave. What another day than this one used counts for its month alone; a call that had not
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
        day, today = self.ledger.day, now.date()
        # A clock that is set back renews no budget; but what was stored in the future would be spent for too long.
        if day is None or today > day or (self._is_restored and today < day):
            self.ledger.begin(today)
        self._is_restored = False
