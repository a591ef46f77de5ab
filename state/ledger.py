"""The ledger: what was used on each day (UTC), by guild, model and purpose, by channel, by person. No text, no name.

Days are kept for 62 days, after a longer leap of the clock for one more; of people those of this month and the last,
and what is charged to them until its month ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
    """Sums over calls. cached: the part of tokens_in read from a cache; unpriced: tokens of calls without a price."""

    calls: int = 0
    answers: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    micros: int = 0
    unpriced: int = 0

    @classmethod
    def of(cls, spent: Spent, among: int = 1) -> Figures:
        """The figures of one call, or, with among, the share of one of several people."""
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
    """The usage of a day. unpriced: tokens of calls whose price is unknown."""

    tokens: int = 0
    micros: int = 0
    unpriced: int = 0


NONE, ONE_ANSWER = Figures(), Figures(answers=1)


def total(figures: Iterable[Figures]) -> Figures:
    return reduce(Figures.plus, figures, NONE)


def count(figures: dict[K, Figures], key: K, more: Figures) -> None:
    """Adds figures to those of a key."""
    figures[key] = figures.get(key, NONE).plus(more)


Row = tuple[str, str]
"""Model and purpose."""
N = NonNegativeInt
_Numbers = tuple[N, N, N, N, N, N, N]


@dataclass(frozen=True, slots=True)
class StoredDay:
    """A day as it is stored. rows: guild, model, purpose, figures. channels: guild, channel, figures. people: user,
    figures. charged: scope, id, tokens, micro-dollars."""

    rows: list[tuple[int, str, str, _Numbers]] = field(default_factory=list)
    channels: list[tuple[int, int, _Numbers]] = field(default_factory=list)
    people: list[tuple[int, _Numbers]] = field(default_factory=list)
    charged: list[tuple[Scope, int, NonNegativeInt, NonNegativeInt]] = field(default_factory=list)


@dataclass(slots=True)
class Day:
    """The usage of one day. guilds: by guild (0: direct messages), then by model and purpose. channels: by guild,
    then by channel. people: by user id. charged: by the account that budgets limit. unpriced: tokens of calls whose
    price is unknown, of all guilds together.
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
        """A copy. The figures in it are immutable."""
        guilds = {guild: {**rows} for guild, rows in self.guilds.items()}
        channels = {guild: {**rows} for guild, rows in self.channels.items()}
        return Day(guilds, channels, {**self.people}, {**self.charged}, self.unpriced)

    def add(self, other: Day) -> None:
        """Adds what another day's record counts."""
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
    """The usage of each day. opted_out: people of whom no figures are kept."""

    def __init__(self, opted_out: OptOut | None = None) -> None:
        self._opted_out = OptOut() if opted_out is None else opted_out
        self.day: date | None = None
        self.today = Day()
        self._days: dict[date, Day] = {}  # before today
        self._month: dict[Account, Amount] = {}  # charged in this month before today
        self._amounts: dict[date, Used] = {}  # of days before today
        self.has_turned = False  # a day has ended since the days before today were stored

    def used(self, account: Account, period: Period) -> Amount:
        """The amount charged to an account in the current period."""
        return Amount(self.charged(account, period, in_money=False), self.charged(account, period, in_money=True))

    def charged(self, account: Account, period: Period, *, in_money: bool) -> int:
        """The same, in micro-dollars or in tokens."""
        used = amount[in_money] if (amount := self.today.charged.get(account)) else 0
        if period is Period.MONTH and (before := self._month.get(account)):
            used += before[in_money]
        return used

    def all_charged(self) -> tuple[dict[Account, Amount], dict[Account, Amount]]:
        """The amounts charged to each account today, and in this month."""
        return {**self.today.charged}, {
            account: self.used(account, Period.MONTH) for account in self._month.keys() | self.today.charged.keys()
        }

    def add(self, payer: Payer, purpose: Purpose, spent: Spent) -> None:
        """Counts a call, and charges it."""
        self.today.count(payer, spent.model, purpose, Figures.of(spent))
        if people := payer.people - self._opted_out:
            of_each = Figures.of(spent, len(payer.people))
            for person in people:
                count(self.today.people, person, of_each)
        charged = self.today.charged
        for account, (tokens, micros) in payer.shares(Amount(spent.tokens, spent.micros or 0)):
            before = charged.get(account, Amount())
            charged[account] = Amount(before.tokens + tokens, before.micros + micros)

    def answered(self, payer: Payer, model: str) -> None:
        """Counts one answer that was posted; model: the one that finished it."""
        self.today.count(payer, model, Purpose.ANSWER, ONE_ANSWER)
        for person in payer.people & self.today.people.keys():
            count(self.today.people, person, ONE_ANSWER)

    def declined(self, payer: Payer, spent: Iterable[Spent]) -> None:
        """Moves what was used from ANSWER to DECLINED, as the model kept silent."""
        rows = self.today.guilds.get(payer.guild_id, {})
        for each in spent:
            figures, row = Figures.of(each), (each.model, Purpose.ANSWER)
            left = rows.get(row, NONE).minus(figures)
            if min(left) >= 0:  # else it was counted before today
                rows[row] = left
                count(rows, (each.model, Purpose.DECLINED), figures)

    def forget(self, person: int) -> None:
        """Deletes a person's figures. Their charges stay until the period ends: else they could renew their budget."""
        for day in (self.today, *self._days.values()):
            day.people.pop(person, None)
        self.has_turned = True

    def begin(self, day: date) -> None:
        """Starts a day, unless it is today already; the previous today is kept among the days before."""
        oldest = date.min
        if self.day != day:
            if self.day is not None:
                if timedelta() < day - self.day < timedelta(DAYS_KEPT):
                    oldest = day - timedelta(DAYS_KEPT - 1)
                self._days[self.day] = self.today
                self.has_turned = True
            self.today = self._days.pop(day, Day())
        self.day = day
        last_month = (day.replace(day=1) - timedelta(days=1)).replace(day=1)
        # Those to come, too, and all after a leap: a clock that is wrong for a while, here or in another process,
        # renews no budget.
        those = [each for each in sorted(self._days) if oldest <= each]
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
        """Adds a stored day to what is counted of that day; starts it if it is a later one."""
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
        """The last days, today last, including those on which nothing was used."""
        today = self.day or date.min
        for back in range(min(count, today.toordinal()) - 1, -1, -1):
            each = today - timedelta(days=back)
            yield each, (self.today if not back else self._days.get(each, Day()))

    def amounts(self, count: int) -> Iterator[tuple[date, Used]]:
        """The total usage of each of the last days, today last; the sums of days before today are cached."""
        for day, kept in self.days(count):
            if day == self.day:
                yield day, Used(*self.used((Scope.TOTAL, 0), Period.DAY), kept.unpriced)
                continue
            if day not in self._amounts:
                sums = total(figures for rows in kept.guilds.values() for figures in rows.values())
                self._amounts[day] = Used(sums.tokens, sums.micros, sums.unpriced)
            yield day, self._amounts[day]

    # Kept

    def to_store(self) -> Callable[[], bytes]:
        """Copies the days before today. Returns a function that encodes the copy as JSON for restore(), in whatever
        thread."""
        self.has_turned = False
        days = {day: kept.copy() for day, kept in self._days.items()}
        return lambda: orjson.dumps({f"{day}": kept.stored() for day, kept in days.items()}, default=tuple)

    def restore(self, stored: JsonValue) -> None:
        """Adds what to_store() encoded. Raises ValueError."""
        self._add({day: Day.restored(kept) for day, kept in STORED_DAYS.validate_python(stored).items()})


def by(rows: Mapping[Row, Figures], part: int) -> dict[str, Figures]:
    """A guild's rows summed up by model (part 0) or purpose (part 1), the dearest first."""
    sums: dict[str, Figures] = {}
    for row, figures in rows.items():
        count(sums, row[part], figures)
    return dict(sorted(sums.items(), key=lambda item: (item[1].micros, item[1].tokens), reverse=True))
