"""Counts of decisions, turns, faults and latencies, by hour and day (UTC), without anybody's words.

Counted for each server, and under ALL for everything together. Days are kept for 62 days, like the ledger's; those of
a single server for a week.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from sys import intern
from typing import TypeVar

import orjson
from pydantic import JsonValue, NonNegativeInt, TypeAdapter

from activity import Ending, Fault, FaultKind, Observer, TurnEnded
from clock import Clock
from decision import LoggedDecision, Reason

DAYS_KEPT, SERVERS_DAYS_KEPT = 62, 7
HOURS_KEPT = 24
FAULTS_KEPT = 50
ALL = -1
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NEVER = datetime.min.replace(tzinfo=UTC)
SECONDS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds of the latency buckets; the last bucket holds longer ones too."""
ANSWERING, SILENT, ENDED, FAULT, FIRST, WHOLE = "answering ", "silent ", "ended ", "fault ", "first ", "whole "

K = TypeVar("K", Reason, FaultKind)
Numbers = dict[str, int]
Kept = dict[str, dict[int, dict[str, NonNegativeInt]]]
STORED = TypeAdapter(Kept)


@dataclass(frozen=True, slots=True)
class Tally:
    """The figures of a stretch of time."""

    numbers: Mapping[str, int]

    @property
    def decisions(self) -> int:
        """How many decisions were made; a message that was decided on again counts again."""
        return sum(self._by(ANSWERING, Reason).values()) + sum(self._by(SILENT, Reason).values())

    @property
    def silences(self) -> dict[Reason, int]:
        """Messages not answered, by reason, most frequent first; without those that the agent declined."""
        silences = self._by(SILENT, Reason)
        silences.pop(Reason.DECLINED, None)
        return silences

    @property
    def answering(self) -> dict[Reason, int]:
        """Messages to be answered, by reason, most frequent first."""
        return self._by(ANSWERING, Reason)

    @property
    def answered(self) -> int:
        """Turns that ended in an answer."""
        return self.ended(Ending.ANSWERED)

    @property
    def declined(self) -> int:
        return self.ended(Ending.DECLINED)

    @property
    def failed(self) -> int:
        """Turns that ended in a failure, or whose answer could not be posted."""
        return self.ended(Ending.FAILED) + self.ended(Ending.UNDELIVERED)

    def ended(self, ending: Ending) -> int:
        return self.numbers.get(ENDED + ending, 0)

    @property
    def faults(self) -> dict[FaultKind, int]:
        """Faults by kind, most frequent first."""
        return self._by(FAULT, FaultKind)

    def first_text(self, share: float) -> float | None:
        """Seconds within which this share of answers had its first text, 0.5 for the median; None: no answers."""
        return self._within(FIRST, share)

    def whole(self, share: float) -> float | None:
        """Seconds within which this share of answers was complete; None: no answers."""
        return self._within(WHOLE, share)

    def _by(self, what: str, kinds: type[K]) -> dict[K, int]:
        found = {kind: count for kind in kinds if (count := self.numbers.get(what + kind))}
        return dict(sorted(found.items(), key=lambda item: item[1], reverse=True))

    def _within(self, what: str, share: float) -> float | None:
        """Interpolates between a bucket's bounds, as if its values were spread evenly."""
        counts = [self.numbers.get(f"{what}{number}", 0) for number in range(len(SECONDS))]
        if not (total := sum(counts)):
            return None
        wanted, upto = share * total, list(accumulate(counts))
        bucket = next(number for number, count in enumerate(upto) if count >= wanted and counts[number])
        low, high = SECONDS[bucket - 1] if bucket else 0.0, SECONDS[bucket]
        return low + (high - low) * max(0.0, wanted - upto[bucket] + counts[bucket]) / counts[bucket]


class Counts(Observer):
    """Counts events in memory; this_hour() and before() give what to store. clock: returns aware datetimes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._days: dict[date, dict[int, Numbers]] = {}  # before today
        self._hours: dict[datetime, dict[int, Numbers]] = {}
        self._now: dict[int, Numbers] = {}  # the current hour
        self._until = NEVER  # the end of the current hour
        self.has_changed = False  # by more than decisions, since this_hour() was last called
        self.has_turned = False  # an hour has ended since before() was last called

    # Reading

    def today(self, guild_id: int | None = None) -> Tally:
        """Today's counts (UTC). guild_id: a server; 0: direct messages; None: everything."""
        return self.days(1, guild_id)[0][1]

    def days(self, count: int = 7, guild_id: int | None = None) -> list[tuple[date, Tally]]:
        """The counts of the last days, today last, including days without any. guild_id: as of today()."""
        self._begin(self._clock())
        key, today = ALL if guild_id is None else guild_id, self._hour.date()
        days = [today - back * DAY for back in range(min(count, DAYS_KEPT) - 1, -1, -1)]
        hours = [kept.get(key, {}) for hour, kept in self._hours.items() if hour.date() == today]
        found = {today: _sum(hours)}
        return [(day, Tally(found.get(day) or self._days.get(day, {}).get(key, {}))) for day in days]

    def hours(self, count: int = HOURS_KEPT, guild_id: int | None = None) -> list[tuple[datetime, Tally]]:
        """The counts of the last hours by their beginning, the current one last. guild_id: as of today()."""
        self._begin(self._clock())
        key = ALL if guild_id is None else guild_id
        hours = [self._hour - back * HOUR for back in range(min(count, HOURS_KEPT) - 1, -1, -1)]
        return [(hour, Tally(self._hours.get(hour, {}).get(key, {}))) for hour in hours]

    # Events

    def decided(self, entry: LoggedDecision) -> None:
        decision = entry.decision
        self._count((ANSWERING if decision.respond else SILENT) + decision.reason, entry.guild_id)

    def turn_ended(self, turn: TurnEnded) -> None:
        self.has_changed = True
        self._count(ENDED + turn.ending, turn.guild_id)
        if turn.ending is Ending.ANSWERED:
            self._count(f"{WHOLE}{_bucket(turn.seconds)}", turn.guild_id)
            if turn.first_text is not None:
                self._count(f"{FIRST}{_bucket(turn.first_text)}", turn.guild_id)

    def failed(self, fault: Fault) -> None:
        self.has_changed = True
        self._count(FAULT + fault.kind, fault.guild_id)

    @property
    def guild_ids(self) -> set[int]:
        """The servers with any counts."""
        return {key for kept in (*self._days.values(), *self._hours.values()) for key in kept} - {0, ALL}

    def left(self, guild_id: int) -> None:
        """Drops the counts of a server that the bot has left; those of everything together stay."""
        for kept in (*self._days.values(), *self._hours.values()):
            kept.pop(guild_id, None)
        self.has_changed = self.has_turned = True

    def _count(self, name: str, guild_id: int) -> None:
        if (now := self._clock()) >= self._until:
            self._begin(now)
        for key in (guild_id, ALL):
            if (numbers := self._now.get(key)) is None:
                numbers = self._now[key] = {}
            if name in numbers:
                numbers[name] += 1
            else:
                numbers[intern(name)] = 1  # one string for all servers and hours

    @property
    def _hour(self) -> datetime:
        return self._until - HOUR

    @property
    def _today(self) -> date:
        """The day of the current hour. Hours of earlier days are summed up by day."""
        return self._hour.date() if self._until > NEVER else date.min

    def _begin(self, now: datetime) -> None:
        """Begins a new hour if the current one is over, and drops what is too old. A clock set back changes nothing."""
        if now < self._until:
            return
        hour, before = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0), self._today
        self._until, today = hour + HOUR, hour.date()
        self.has_turned = bool(self._hours)
        for each, kept in self._hours.items():
            if before <= each.date() < today:
                _add(self._days.setdefault(each.date(), {}), kept)
        self._prune()
        self._now = self._hours.setdefault(hour, {})

    def _prune(self) -> None:
        hour, today = self._hour, self._today
        self._days = {
            day: kept if today - SERVERS_DAYS_KEPT * DAY < day else {ALL: kept.get(ALL, {})}
            for day, kept in self._days.items()
            if today - DAYS_KEPT * DAY < day <= today
        }
        self._hours = {each: kept for each, kept in self._hours.items() if hour - HOURS_KEPT * HOUR < each <= hour}

    # Storing

    def this_hour(self) -> Callable[[], bytes]:
        """The current hour's counts, copied now; the returned function encodes them as JSON."""
        self._begin(self._clock())
        self.has_changed = False
        return _encoded({self._hour.isoformat(): {key: {**numbers} for key, numbers in self._now.items()}})

    def before(self) -> Callable[[], bytes]:
        """The same for the earlier hours and days."""
        self._begin(self._clock())
        self.has_turned = False
        # Their counts never change, so that a shallow copy is enough.
        hours = {hour.isoformat(): {**kept} for hour, kept in self._hours.items() if hour != self._hour}
        return _encoded(hours | {day.isoformat(): {**kept} for day, kept in self._days.items()})

    def restore(self, stored: JsonValue) -> None:
        """Adds stored counts of this_hour() or before(), of this process or of others. Raises ValueError.

        The clock of another process may be ahead: an hour that has not begun here counts as the current one.
        """
        read = STORED.validate_python(stored)
        now = self._clock()
        self._begin(now)
        days = {date.fromisoformat(begun): kept for begun, kept in read.items() if len(begun) == len("2026-01-01")}
        for day, kept in days.items():
            if day <= self._today:
                _add(self._days.setdefault(day, {}), kept)
        for begun in read.keys() - map(str, days):
            hour = datetime.fromisoformat(begun)
            if hour > now + HOUR:  # the clock was far ahead
                continue
            hour, is_in_day = min(hour, self._hour), hour.date() in days
            if not is_in_day or hour.date() < self._today:
                _add(self._hours.setdefault(hour, {}), read[begun])
            if not is_in_day and hour.date() < self._today:
                _add(self._days.setdefault(hour.date(), {}), read[begun])
        self.has_turned |= bool(read)
        self._prune()


class Faults(Observer):
    """The latest faults, newest first, and the number of each kind in the last hour."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: deque[Fault] = deque(maxlen=FAULTS_KEPT)
        self._minutes: Counter[tuple[FaultKind, datetime]] = Counter()

    def last(self, count: int = FAULTS_KEPT, guild_id: int | None = None) -> list[Fault]:
        """The latest faults, newest first. guild_id: only those in this server."""
        return [fault for fault in self._last if guild_id in (None, fault.guild_id)][:count]

    def last_hour(self) -> dict[FaultKind, int]:
        """The number of faults of each kind in the last hour, most frequent first."""
        self._sweep(self._clock())
        counts: Counter[FaultKind] = Counter()
        for (kind, _), count in self._minutes.items():
            counts[kind] += count
        return dict(counts.most_common())

    def failed(self, fault: Fault) -> None:
        self._last.appendleft(fault)
        self._sweep(fault.at)
        self._minutes[fault.kind, fault.at.replace(second=0, microsecond=0)] += 1

    def left(self, guild_id: int) -> None:
        """Drops the faults of a server that the bot has left."""
        self._last = deque((fault for fault in self._last if fault.guild_id != guild_id), FAULTS_KEPT)

    def _sweep(self, now: datetime) -> None:
        for key in [key for key in self._minutes if not now - HOUR < key[1] <= now]:
            del self._minutes[key]


def _bucket(seconds: float) -> int:
    return min(bisect_left(SECONDS, seconds), len(SECONDS) - 1)


def _sum(parts: Iterable[Mapping[str, int]]) -> Numbers:
    sums: Numbers = {}
    for part in parts:
        for name, count in part.items():
            sums[name] = sums.get(name, 0) + count
    return sums


def _add(to: dict[int, Numbers], more: Mapping[int, Mapping[str, int]]) -> None:
    """Adds counts. The earlier dicts are replaced and not changed, as they may be on their way to the store."""
    for key, numbers in more.items():
        to[key] = _sum((to.get(key, {}), numbers))


def _encoded(kept: Mapping[str, dict[int, Numbers]]) -> Callable[[], bytes]:
    return lambda: orjson.dumps(kept, option=orjson.OPT_NON_STR_KEYS)
