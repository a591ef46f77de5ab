"""The accounts of budgets that several processes share, in Redis: what is charged in a day and a month, what calls have
reserved, and how many answers each person got in the last minute.

A process sends its changes in numbered batches, one after the other; later changes wait for the next. A script applies
a batch as a whole, and only once however often it is sent, so that a broken connection neither loses nor doubles a
charge. The script also charges the calls of any process that was not heard of for GONE_SECONDS as interrupted. If Redis
has lost its data, each process charges again what its own ledger has, and waits until the others have done so, too.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import count
from secrets import token_hex
from typing import Any

import orjson
import redis
import structlog

from cluster.accounts_script import ACCOUNTS
from cluster.connection import PREFIX, Cluster
from setting_values import BudgetLimit, Period
from state.budget import UnreachableError
from state.ledger import Ledger
from state.spending import Account, Amount, Payer, Reserved, Spent, share

log = structlog.get_logger()

BEAT_SECONDS = 2.0
GONE_SECONDS = 15
ASKED_SECONDS = 60.0  # how long an account is looked up after it was last asked for
RESERVE_SECONDS = 10.0
PAUSE_SECONDS = 0.5
KEPT_AFTER = timedelta(days=1)  # how long a period's charges are kept after its end: a clock may be wrong
MOST_CHANGES = 200  # in a batch: other processes wait for the script
MOST_ASKED = 1_000  # in one command: Lua's limit on arguments
MINUTE_SECONDS = 60.0
KEYS = [f"{PREFIX}reserved", f"{PREFIX}spenders", f"{PREFIX}calls:", f"{PREFIX}answers:"]

Amounts = dict[str, int]
"""Amounts by the name in Redis of an account in tokens or in money."""
Key = tuple[str, str]
"""A period and one of its accounts, by their names in Redis."""


@dataclass(slots=True, eq=False)
class Change:
    """A change for the script: to reserve (`call`), or to release and charge. answer: 1 if it was reserved, else the
    accounts that have no room for it, as far as known."""

    does: dict[str, Any]
    answer: asyncio.Future[int | list[str]] | None = None
    charges: Counter[Key] = field(default_factory=Counter)


class Accounts:
    """A `state.budget.Shared` and `state.limits.Totals`. ledger: what this process itself has used.

    clock: monotonic seconds.
    """

    def __init__(self, cluster: Cluster, ledger: Ledger, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = f"{cluster.name}-{token_hex(4)}"  # unique to each start of the bot, also within one process
        self._script = cluster.redis.register_script(ACCOUNTS)
        self._ledger = ledger
        self._clock = clock
        self._ids = map(str, count(1))
        self._calls: dict[Reserved, Change] = {}  # that have not ended
        self._waiting: list[Change] = []
        self._sent: list[Change] = []  # the batch whose answer has not come yet
        self._number = 0  # of that batch
        self._is_first = True
        self._has_lost = False  # Redis its data, just now
        self._pending: Counter[Key] = Counter()  # charges that Redis may not have yet
        self._answered: dict[int, float] = {}  # when each person was last answered here
        self._others: dict[int, list[float]] = {}  # when other processes answered them
        self._known: dict[Key, int] = {}  # what all processes are charged
        self._asked: dict[Key, float] = {}  # when each account was last asked for
        self._news = asyncio.Event()
        self._looked_at = -BEAT_SECONDS
        self._heard_since: float | None = None  # since when Redis has answered

    def charged(self, account: Account, period: Period, *, in_money: bool) -> int:
        """What all processes are charged, as known here: up to BEAT_SECONDS old, and at least what this one is."""
        own = self._ledger.charged(account, period, in_money=in_money)
        if self._ledger.day is None:
            return own
        key = self._in_redis(period), _named(account, in_money=in_money)
        self._asked[key] = self._clock()
        if (known := self._known.get(key)) is None:
            self._news.set()
            return own
        return max(own, known + self._pending[key])

    def answers(self, person: int, change: int) -> None:
        """See state.limits.Totals."""
        self._answered[person] = self._clock()
        self._put(Change({"person": f"{person}", **({"answer": next(self._ids)} if change > 0 else {})}))

    def others_answers(self, person: int) -> list[float]:
        """See state.limits.Totals."""
        ages = [self._clock() - at for at in self._others.get(person, ())]
        return [age for age in ages if age < MINUTE_SECONDS]

    async def known(self) -> None:
        """Waits until the charges to the accounts just asked for are known, unless Redis takes too long."""
        answer: asyncio.Future[int | list[str]] = asyncio.get_running_loop().create_future()
        self._put(Change({"charge": {}, "periods": []}, answer))
        with suppress(TimeoutError):
            async with asyncio.timeout(BEAT_SECONDS):
                await answer

    async def reserve(
        self, call: Reserved, limits: Iterable[tuple[Account, int, BudgetLimit]], interrupted: Spent
    ) -> Collection[Account] | None:
        """Reserves what a call may use. None: it is reserved; else the accounts of which all that others have reserved
        leaves no room for it, as far as known.

        limits: each as: account, among how many people its cost is divided, limit. interrupted: what is charged if this
        process ends before the call. Raises UnreachableError.
        """
        named = [(account, _named(account, in_money=limit.in_money), among, limit) for account, among, limit in limits]
        accounts = [
            (self._in_redis(limit.period), name, share(call.amount[limit.in_money], among), limit.amount)
            for _, name, among, limit in named
        ]
        aside, charge = _shares(call.payer, call.amount), _charges(call.payer, interrupted)
        stored = {"aside": aside, "charge": charge, "periods": self._into(Period)}
        does = {"id": next(self._ids), "call": orjson.dumps(stored).decode(), "limits": accounts}
        answer: asyncio.Future[int | list[str]] = asyncio.get_running_loop().create_future()
        self._asked |= dict.fromkeys(((period, account) for period, account, *_ in accounts), self._clock())
        self._calls[call] = Change(does, answer)
        self._put(self._calls[call])
        try:
            async with asyncio.timeout(RESERVE_SECONDS):
                answered = await answer
        except (TimeoutError, asyncio.CancelledError) as error:  # Redis may have reserved it, or may do so later
            self.settle(call, call.payer, None)
            if isinstance(error, TimeoutError):
                raise UnreachableError from None
            raise
        if isinstance(answered, int):
            return None
        del self._calls[call]
        return {account for account, name, *_ in named if name in answered}

    def settle(self, call: Reserved | None, payer: Payer, spent: Spent | None) -> None:
        """Releases what was reserved for a call, and charges what was used."""
        reserved = self._calls.pop(call, None) if call else None
        amounts = _charges(payer, spent) if spent else {}
        if reserved in self._waiting and not amounts:
            self._waiting.remove(reserved)
        elif reserved or amounts:
            self._put(self._charge(reserved.does["id"] if reserved else None, amounts, Period))

    def carry_over(self) -> None:
        """Charges what the restored ledger of a process that ran alone has. That includes what several processes used
        before it; killed ones may have left calls in Redis."""
        for period, charges in self._in_ledger():
            does = {"charge": charges, "periods": self._into([period]), "is_all": True, "gone": GONE_SECONDS}
            self._put(Change(does))

    def _charge(self, call_id: str | None, amounts: Amounts, periods: Iterable[Period]) -> Change:
        into = self._into(periods) if amounts else []
        charges = Counter({(period, account): amounts[account] for period, _ in into for account in amounts})
        self._pending.update(charges)
        which = {"id": call_id} if call_id else {}
        return Change({"charge": amounts, "periods": into, **which}, charges=charges)

    def _put(self, change: Change) -> None:
        self._waiting.append(change)
        self._news.set()

    def _into(self, periods: Iterable[Period]) -> list[tuple[str, int]]:
        """The periods, each with the seconds for which its charges are kept: those of persons must not stay."""
        today = datetime.combine(self._ledger.day or date.min, datetime.min.time(), UTC)
        return [
            (self._in_redis(period), int((period.end(today) - today + KEPT_AFTER).total_seconds()))
            for period in periods
        ]

    def _in_redis(self, period: Period) -> str:
        return f"{PREFIX}charged:{f'{self._ledger.day}'[: 10 if period is Period.DAY else 7]}"

    # To Redis and back

    async def keep(self) -> None:
        """Sends changes, and looks up every BEAT_SECONDS what all processes are charged. Until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT_SECONDS):
                    await self._news.wait()
            self._news.clear()
            if not await self.send():
                await asyncio.sleep(PAUSE_SECONDS)
            elif self._has_lost:  # nothing is reserved before the others have told Redis what they hold, too
                self._has_lost = False
                await asyncio.sleep(2 * BEAT_SECONDS)
            if self._sent or self._waiting:
                self._news.set()

    async def close(self) -> None:
        """Sends what is left; calls that have not ended are charged as interrupted. keep() must have ended."""
        while self._sent or self._waiting:
            if not await self.send():
                return
        await self.send(leaves=True)

    async def send(self, *, leaves: bool = False) -> bool:
        """Sends the next batch, or the last one again. Returns whether Redis has it."""
        if not self._sent:
            self._sent, self._waiting = self._waiting[:MOST_CHANGES], self._waiting[MOST_CHANGES:]
            self._number += 1
        try:
            while not (answer := await self._script(KEYS, [orjson.dumps(batch := self._batch(leaves=leaves))])):
                log.warning(
                    "accounts_lost", meaning="Redis has lost its data; this process sends again what it has used"
                )
                anew = [*self._anew()]
                self._waiting, self._sent = [*self._sent, *self._waiting], anew
                self._is_first = self._has_lost = True
        except (redis.RedisError, OSError) as error:
            if self._heard_since is not None or self._number == 1:
                log.warning("accounts_unreachable", error=str(error), meaning="what others use of budgets is not known")
            self._heard_since = None
            return False
        if self._heard_since is None:
            self._heard_since = self._clock()
        self._is_first = False
        self._take(batch, answer)
        return True

    def _batch(self, *, leaves: bool) -> dict[str, Any]:
        now = self._clock()
        if is_beat := now - self._looked_at >= BEAT_SECONDS:
            self._asked = {key: at for key, at in self._asked.items() if now - at < ASKED_SECONDS}
            self._known = {key: amount for key, amount in self._known.items() if key in self._asked}
            self._answered = {one: at for one, at in self._answered.items() if now - at < MINUTE_SECONDS}
            self._others = {one: others for one, others in self._others.items() if one in self._answered}
        people = self._answered if is_beat else {c.does["person"] for c in self._sent if "person" in c.does}
        touched = {key for change in self._sent for key in change.charges}
        touched |= {(limit[0], limit[1]) for change in self._sent for limit in change.does.get("limits", ())}
        asked: dict[str, list[str]] = {}
        for period, account in self._asked:
            if is_beat or (period, account) not in self._known or (period, account) in touched:
                asked.setdefault(period, []).append(account)
        batch: dict[str, Any] = {
            "name": self._name,
            "number": self._number,
            "is_first": self._is_first,
            "leaves": leaves,
            "changes": [change.does for change in self._sent],
            "people": [*map(str, people)],
            "asked": [
                (period, accounts[start : start + MOST_ASKED])
                for period, accounts in asked.items()
                for start in range(0, len(accounts), MOST_ASKED)
            ],
        }
        if self._heard_since is not None and now - self._heard_since >= GONE_SECONDS:
            batch["gone"] = GONE_SECONDS  # since Redis is back, all other processes have had time to be heard of
        if is_beat:
            self._looked_at = now
        return batch

    def _take(self, batch: dict[str, Any], answer: list[list[Any]]) -> None:
        granted, totals, ages = answer
        now = self._clock()
        for person, others in zip(batch["people"], ages, strict=True):
            self._others[int(person)] = [now - age / 1_000 for age in others]
        for (period, accounts), amounts in zip(batch["asked"], totals, strict=True):
            self._known.update(((period, a), _amount(n)) for a, n in zip(accounts, amounts, strict=True))
        sent, self._sent = self._sent, []
        for change, answered in zip(sent, granted, strict=True):
            self._pending.subtract(change.charges)
            if change.answer and not change.answer.done():
                change.answer.set_result(answered)
        for key in {key for change in sent for key in change.charges if not self._pending[key]}:
            del self._pending[key]

    def _anew(self) -> Iterator[Change]:
        """The changes to send after Redis has lost its data: the charges of this process, and its running calls."""
        before = self._pending.copy()
        for period, charges in self._in_ledger():
            amounts = {name: amount - before[self._in_redis(period), name] for name, amount in charges.items()}
            yield self._charge(None, {name: amount for name, amount in amounts.items() if amount > 0}, [period])
        for change in self._calls.values():
            if change not in self._sent and change not in self._waiting:
                yield Change(change.does | {"limits": []})

    def _in_ledger(self) -> Iterator[tuple[Period, Amounts]]:
        for period, charged in zip(Period, self._ledger.all_charged(), strict=True):
            yield period, {name: n for account, both in charged.items() for name, n in _both(account, *both) if n}


def _named(account: Account, *, in_money: bool) -> str:
    return f"{account[0]}:{account[1]}:{'money' if in_money else 'tokens'}"


def _both(account: Account, tokens: int, micros: int) -> Iterator[tuple[str, int]]:
    yield _named(account, in_money=False), tokens
    yield _named(account, in_money=True), micros


def _shares(payer: Payer, amount: Amount) -> Amounts:
    """What each account pays of an amount; without those that pay nothing."""
    return {name: n for account, part in payer.shares(amount) for name, n in _both(account, *part) if n}


def _charges(payer: Payer, spent: Spent) -> Amounts:
    return _shares(payer, Amount(spent.tokens, spent.micros or 0))


def _amount(counted: str | None) -> int:
    """What an account used, as Redis has it; 0 where somebody else wrote what is no number."""
    try:
        return int(counted or 0)
    except ValueError:
        return 0
