"""The ledger: what was used on each day (UTC), by guild, model and purpose, by channel, by person. No text, no name.

Days are kept for 62 days; of people those of this month and the last, and what is charged to them until its month ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import reduce
from operator import add, sub
from typing import NamedTuple, TypeVar

import orjson
from pydantic import JsonValue, NonNegativeInt, TypeAdapter

from setting_values import Period, Scope
from state.optout import OptOut
from state.spending import Account, Amount, Payer, Purpose, Spent, share

DAYS_KEPT = 62
K = TypeVar("K")


class Figures(NamedTuple):
    """Sums over calls. cached: of the tokens sent; unpriced: the tokens of calls whose price nobody knows."""

    calls: int = 0
    answers: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    micros: int = 0
    unpriced: int = 0

    @classmethod
    def of(cls, spent: Spent, among: int = 1) -> Figures:
        """One call's, or the part of it that one of several pays."""
        unpriced = spent.tokens if spent.micros is None else 0
        parts = (spent.tokens_in, spent.tokens_out, spent.cached, spent.micros or 0, unpriced)
        return cls(1, 0, *(share(part, among) for part in parts))

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def plus(self, other: Figures) -> Figures:
        return Figures(*map(add, self, other))

    def minus(self, other: Figures) -> Figures:
        return Figures(*map(sub, self, other))


class Used(NamedTuple):
    """What a day came to. unpriced: the tokens of calls whose price nobody knows."""

    tokens: int = 0
    micros: int = 0
    unpriced: int = 0


NONE, ONE_ANSWER = Figures(), Figures(answers=1)


def total(figures: Iterable[Figures]) -> Figures:
    return reduce(Figures.plus, figures, NONE)


def count(figures: dict[K, Figures], key: K, more: Figures) -> None:
    """Adds to what stands under a key."""
    figures[key] = figures.get(key, NONE).plus(more)


Row = tuple[str, str]
"""Model and purpose."""
N = NonNegativeInt
_Numbers = tuple[N, N, N, N, N, N, N]


@dataclass(frozen=True, slots=True)
class StoredDay:
    """A day as it is stored: rows of a guild by model and purpose, of a guild by channel, of people; and charges."""

    rows: list[tuple[int, str, str, _Numbers]] = field(default_factory=list)
    channels: list[tuple[int, int, _Numbers]] = field(default_factory=list)
    people: list[tuple[int, _Numbers]] = field(default_factory=list)
    charged: list[tuple[Scope, int, NonNegativeInt, NonNegativeInt]] = field(default_factory=list)


@dataclass(slots=True)
class Day:
    """guilds: by guild, then by model and purpose, with 0 for direct messages; channels: by guild, then by channel.

    charged: to the accounts that budgets limit. unpriced: as in figures, of all guilds together.
    """

    guilds: dict[int, dict[Row, Figures]] = field(default_factory=dict)
    channels: dict[int, dict[int, Figures]] = field(default_factory=dict)
    people: dict[int, Figures] = field(default_factory=dict)
    charged: dict[Account, Amount] = field(default_factory=dict)
    unpriced: int = 0

    def count(self, payer: Payer, model: str, purpose: str, figures: Figures) -> None:
        """Adds to the figures of a guild, and of its channel."""
        self.unpriced += figures.unpriced
        count(self.guilds.setdefault(payer.guild_id, {}), (model, purpose), figures)
        if payer.guild_id and payer.channel_id:
            count(self.channels.setdefault(payer.guild_id, {}), payer.channel_id, figures)

    def copy(self) -> Day:
        """As it is now; what is in it never changes."""
        guilds, channels = ({one: {**rows} for one, rows in by.items()} for by in (self.guilds, self.channels))
        return Day(guilds, channels, {**self.people}, {**self.charged}, self.unpriced)

    def charge(self, payer: Payer, spent: Spent) -> None:
        for account, among in payer.accounts():
            tokens, micros = self.charged.get(account, (0, 0))
            self.charged[account] = Amount(
                tokens + share(spent.tokens, among), micros + share(spent.micros or 0, among)
            )

    def add(self, other: Day) -> None:
        """Adds what another came to."""
        for guild, rows in other.guilds.items():
            for row, figures in rows.items():
                count(self.guilds.setdefault(guild, {}), row, figures)
        for guild, channels in other.channels.items():
            for channel, figures in channels.items():
                count(self.channels.setdefault(guild, {}), channel, figures)
        for person, figures in other.people.items():
            count(self.people, person, figures)
        for account, amount in other.charged.items():
            self.charged[account] = Amount(*map(add, self.charged.get(account, Amount()), amount))
        self.unpriced += other.unpriced

    def stored(self) -> StoredDay:
        return StoredDay(
            [(g, *row, f) for g, rows in self.guilds.items() for row, f in rows.items()],
            [(g, c, f) for g, channels in self.channels.items() for c, f in channels.items()],
            [*self.people.items()],
            [(*account, *amount) for account, amount in self.charged.items()],
        )

    @classmethod
    def restored(cls, stored: StoredDay) -> Day:
        day = cls()
        for guild, model, purpose, numbers in stored.rows:
            day.guilds.setdefault(guild, {})[model, purpose] = figures = Figures(*numbers)
            day.unpriced += figures.unpriced
        for guild, channel, numbers in stored.channels:
            day.channels.setdefault(guild, {})[channel] = Figures(*numbers)
        day.people = {person: Figures(*numbers) for person, numbers in stored.people}
        day.charged = {(scope, one): Amount(tokens, micros) for scope, one, tokens, micros in stored.charged}
        return day


STORED_DAYS = TypeAdapter(dict[date, StoredDay])


class Ledger:
    """opted_out: of whom no figures are kept."""

    def __init__(self, opted_out: OptOut | None = None) -> None:
        self._opted_out = OptOut() if opted_out is None else opted_out
        self.day: date | None = None
        self.today = Day()
        self._days: dict[date, Day] = {}  # before today
        self._month: dict[Account, Amount] = {}  # charged in this month before today
        self._amounts: dict[date, Used] = {}  # of days before today
        self.has_turned = False  # a day has ended since the days before today were stored

    def used(self, account: Account, period: Period) -> Amount:
        """What is charged to an account in the period that today is in."""
        return Amount(self.charged(account, period, in_money=False), self.charged(account, period, in_money=True))

    def charged(self, account: Account, period: Period, *, in_money: bool) -> int:
        """The same, of either."""
        used = amount[in_money] if (amount := self.today.charged.get(account)) else 0
        if period is Period.MONTH and (before := self._month.get(account)):
            used += before[in_money]
        return used

    async def known(self) -> None:
        """It always is; see state.limits.Totals."""

    def answers(self, person: int, change: int) -> None:
        """Nobody else is to know; see state.limits.Totals."""

    def others_answers(self, person: int) -> Sequence[float]:  # noqa: ARG002
        """There are no others; see state.limits.Totals."""
        return ()

    def all_charged(self) -> tuple[dict[Account, Amount], dict[Account, Amount]]:
        """What is charged to each account today, and in this month."""
        return {**self.today.charged}, {
            account: self.used(account, Period.MONTH) for account in self._month.keys() | self.today.charged.keys()
        }

    def add(self, payer: Payer, purpose: Purpose, spent: Spent) -> None:
        """Counts a call, and charges it."""
        self.today.count(payer, spent.model, purpose, Figures.of(spent))
        for person in payer.people:
            if person not in self._opted_out:
                count(self.today.people, person, Figures.of(spent, len(payer.people)))
        self.today.charge(payer, spent)

    def answered(self, payer: Payer, model: str) -> None:
        """One of the answers was given, by this model in the end."""
        self.today.count(payer, model, Purpose.ANSWER, ONE_ANSWER)
        for person in payer.people & self.today.people.keys():
            count(self.today.people, person, ONE_ANSWER)

    def declined(self, payer: Payer, spent: Iterable[Spent]) -> None:
        """What was used for an answer turned out to be for none."""
        rows = self.today.guilds.get(payer.guild_id, {})
        for each in spent:
            figures, row = Figures.of(each), (each.model, Purpose.ANSWER)
            left = rows.get(row, NONE).minus(figures)
            if min(left) >= 0:  # it is of today
                rows[row] = left
                count(rows, (each.model, Purpose.DECLINED), figures)

    def forget(self, person: int) -> None:
        """A person's figures go; what they are charged stays until its period ends, or it would be no budget."""
        for day in (self.today, *self._days.values()):
            day.people.pop(person, None)
        self.has_turned = True

    def begin(self, day: date) -> None:
        """The day that it is now; what was today is a day before."""
        if self.day != day:
            if self.day is not None:
                self._days[self.day] = self.today
                self.has_turned = True
            self.today = self._days.pop(day, Day())
        self.day = day
        last_month = (day.replace(day=1) - timedelta(days=1)).replace(day=1)
        # Those to come, too: a clock that was wrong for a while, here or in another process, renews no budget.
        those = [each for each in sorted(self._days) if day - timedelta(DAYS_KEPT) < each]
        self._days = {each: self._days[each] for each in those[-DAYS_KEPT:]}
        self._month, self._amounts = {}, {}
        for each, kept in self._days.items():
            if each < last_month or each > day + timedelta(days=1):
                kept.people.clear()
            if (each.year, each.month) != (day.year, day.month):
                kept.charged = {account: n for account, n in kept.charged.items() if account[0] is not Scope.PERSON}
                continue
            for account, amount in kept.charged.items():
                before = self._month.get(account, Amount())
                self._month[account] = Amount(before.tokens + amount.tokens, before.micros + amount.micros)

    def resume(self, day: date, today: Day) -> None:
        """Goes on with a day as it was stored: adds it to what there is of that day."""
        if self.day is None or day > self.day:
            self.begin(day)
        self._add({day: today})

    def _add(self, days: Mapping[date, Day]) -> None:
        for day, kept in days.items():
            (self.today if day == self.day else self._days.setdefault(day, Day())).add(kept)
        self._amounts = {}
        if self.day is not None:
            self.begin(self.day)

    # What is shown

    def days(self, count: int) -> Iterator[tuple[date, Day]]:
        """The last days, today last, also those on which nothing was used."""
        today = self.day or date.min
        for back in range(min(count, today.toordinal()) - 1, -1, -1):
            each = today - timedelta(days=back)
            yield each, (self.today if not back else self._days.get(each, Day()))

    def amounts(self, count: int) -> Iterator[tuple[date, Used]]:
        """What all together used on each of the last days, today last; what a day before used is summed up once."""
        for day, kept in self.days(count):
            if day == self.day:
                yield day, Used(*self.used((Scope.TOTAL, 0), Period.DAY), kept.unpriced)
                continue
            if day not in self._amounts:
                sums = total(figures for rows in kept.guilds.values() for figures in rows.values())
                self._amounts[day] = Used(sums.tokens, sums.micros, sums.unpriced)
            yield day, self._amounts[day]

    # Kept

    def stored(self) -> JsonValue:
        """The days before today."""
        days: JsonValue = orjson.loads(self.to_store()())
        return days

    def to_store(self) -> Callable[[], bytes]:
        """Gives the same as it is now, in JSON, whenever that is made."""
        self.has_turned = False
        days = {day: kept.copy() for day, kept in self._days.items()}
        return lambda: orjson.dumps({f"{day}": kept.stored() for day, kept in days.items()}, default=tuple)

    def restore(self, stored: JsonValue) -> None:
        """Adds what stored() gave. Raises ValueError."""
        self._add({day: Day.restored(kept) for day, kept in STORED_DAYS.validate_python(stored).items()})


def by(rows: Mapping[Row, Figures], part: int) -> dict[str, Figures]:
    """Rows of a guild summed up by model (0) or purpose (1), the most first."""
    sums: dict[str, Figures] = {}
    for row, figures in rows.items():
        count(sums, row[part], figures)
    return dict(sorted(sums.items(), key=lambda item: (item[1].micros, item[1].tokens), reverse=True))
