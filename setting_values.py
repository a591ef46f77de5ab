"""Values of settings that are more than a word or a number: hours of the day, addresses, and budgets."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum
from functools import lru_cache
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

QuietHours = tuple[time, time, ZoneInfo]
"""Start, end and time zone; it lasts over midnight where the end is earlier than the start."""
HOURS = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*-\s*(\d{1,2})(?::(\d{2}))?(?:\s+(\S+))?")


def quiet_hours(text: str) -> QuietHours:
    """Reads "22:30-7 Europe/Berlin"; without a time zone, in UTC. Raises ValueError."""
    found = HOURS.fullmatch(text.strip())
    if found is None:
        raise ValueError("no hours")
    start, end = (time(int(found[hour]), int(found[hour + 1] or 0)) for hour in (1, 3))
    if start == end:
        raise ValueError("no hours lie between")
    try:
        return start, end, ZoneInfo(found[5] or "UTC")
    except (ZoneInfoNotFoundError, OSError):
        raise ValueError("no such zone") from None


SHARDS = re.compile(r"(\d{1,5})(?:\s*-\s*(\d{1,5}))?")


def shard_ids(text: str) -> tuple[int, ...]:
    """Reads "0-3,7": each shard once, in this order. Raises ValueError."""
    ids: dict[int, None] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        found = SHARDS.fullmatch(part)
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise ValueError("no shards")
        ids |= dict.fromkeys(range(int(found[1]), int(found[2] or found[1]) + 1))
    return tuple(ids)


def check_shards(count: int | None, ids: Collection[int], *, is_auto: bool, has_redis: bool) -> None:
    """Raises ValueError, with a sentence for the owner, for shard settings that contradict each other."""
    if is_auto and ids:
        raise ValueError(
            "SHARDS=auto and SHARD_IDS cannot both be set: leave out SHARD_IDS to let the processes divide the shards, "
            "or SHARDS to say which are this one's."
        )
    if is_auto and not has_redis:
        raise ValueError("SHARDS=auto needs REDIS_URL: set it to the Redis that all processes of the bot share.")
    if ids and not count:
        raise ValueError("SHARD_IDS needs SHARD_COUNT: set it to how many shards the bot has, in all processes.")
    if ids and count and (wrong := max(ids)) >= count:
        raise ValueError(
            f"SHARD_IDS cannot have {wrong} in it: with SHARD_COUNT={count} the shards are 0 to {count - 1}."
        )


def checked_address(value: str, *, secure: str, loopback: str) -> str:
    """The address, if secrets may be sent to it: it is encrypted, or on this machine. Raises ValueError otherwise.

    secure, loopback: the URL scheme of each.
    """
    url = urlsplit(value)
    _ = url.port  # raises ValueError for an impossible one
    if not url.hostname or not (url.scheme == secure or (url.scheme == loopback and is_loopback(url.hostname))):
        raise ValueError("not encrypted, and not loopback")
    return value


def api_base(value: str) -> str:
    """The address of a Discord API, ending in its version. Raises ValueError for any other."""
    if not re.search(r"/api/v\d+$", value := value.rstrip("/")):
        raise ValueError("no API version")
    return checked_address(value, secure="https", loopback="http")


def check_redis_address(value: str) -> None:
    """Raises ValueError for anything but a Redis address."""
    if urlsplit(value).scheme not in ("redis", "rediss"):
        raise ValueError("not a Redis address")
    from redis import Redis  # noqa: PLC0415 - only who sets it needs its client

    if not re.fullmatch(r"/?\d*/?", urlsplit(value).path):  # the client would silently use database 0
        raise ValueError("no number of a database")
    try:
        Redis.from_url(value).connection_pool.make_connection()
    except TypeError:
        raise ValueError("an option that its client does not know") from None


def is_loopback(host: str | None) -> bool:
    """Whether a host, as in an address, is a loopback one, which only this machine reaches."""
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


class Scope(StrEnum):
    """Whose use of models a budget limits. A person's counts in every place, a thread's for its channel too."""

    TOTAL = "total"
    GUILD = "guild"
    CHANNEL = "channel"
    THREAD = "thread"
    PERSON = "person"


class Period(StrEnum):
    """The period of a budget, in UTC."""

    DAY = "day"
    MONTH = "month"

    def end(self, now: datetime) -> datetime:
        """The end of the period in which `now` is."""
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self is Period.DAY:
            return midnight + timedelta(days=1)
        return (midnight.replace(day=28) + timedelta(days=4)).replace(day=1)


@dataclass(frozen=True, slots=True)
class BudgetLimit:
    """The most that may be used in a period. amount: micro-dollars where in_money, else tokens."""

    amount: int
    period: Period
    scope: Scope = Scope.TOTAL
    in_money: bool = False

    def in_words(self) -> str:
        return f"{self.words(self.amount)} a {self.period}"

    def words(self, amount: int) -> str:
        """An amount in this budget's unit."""
        return dollars(amount) if self.in_money else f"{amount:,} tokens"


MOST_MICROS, MOST_TOKENS = 10**12, 10**12  # a million dollars
BUDGET = re.compile(
    r"(?:(guild|channel|person)\s+)?(?:\$(\d{1,7}(?:\.\d{1,6})?)|(\d{1,13})\s+tokens?)\s+(?:a|per)\s+(day|month)",
    re.IGNORECASE,
)
GROUPED = re.compile(r"\b\d{1,3}(?:,\d{3}){1,4}(?=\s+token)", re.IGNORECASE)  # as the bot itself writes tokens
BUDGET_EXAMPLE = "$1 a day, guild $5 a month, channel 200000 tokens a day, person $0.10 a day"


@lru_cache(maxsize=1_000)
def budget_limits(text: str, of: Scope = Scope.TOTAL) -> tuple[BudgetLimit, ...]:
    """Reads "$1 a day, guild $5 a month, channel 200000 tokens a day, person $0.10 a day".

    "off" is no budget; of the owner's, nothing else is. of: the scope of a budget that names none; a place's own
    budgets, with an `of` other than TOTAL, must not name any. Raises ValueError with a sentence for people.
    """
    limits: dict[tuple[Scope, Period, bool], BudgetLimit] = {}
    if text.strip().lower() == "off":
        return ()
    example = BUDGET_EXAMPLE if of is Scope.TOTAL else "$1 a day, 200000 tokens a month"
    plain = GROUPED.sub(lambda found: found[0].replace(",", ""), text)
    for part in filter(None, map(str.strip, plain.split(","))):
        found = BUDGET.fullmatch(part)
        if found is None or (found[1] and of is not Scope.TOTAL):
            shown = part if len(part) <= 40 else f"{part[:40]}…"
            raise ValueError(f"“{shown}” is not a budget: write one such as “{example}”.")
        amount = int(Decimal(found[2]) * 1_000_000) if found[2] else int(found[3])
        if not 0 < amount <= (MOST_MICROS if found[2] else MOST_TOKENS):
            raise ValueError(f"“{part}” is not a possible budget: use more than nothing, and at most $1000000.")
        scope, period = Scope(found[1].lower()) if found[1] else of, Period(found[4].lower())
        key = scope, period, found[2] is not None
        if key in limits:
            raise ValueError(f"“{part}” is a second budget for the same: keep one of the two.")
        limits[key] = BudgetLimit(amount, period, scope, in_money=key[2])
    if not limits and of is Scope.TOTAL:  # a blank is no decision to have none
        raise ValueError(f"It is empty: write budgets such as “{example}”, or “off” for none.")
    return tuple(limits.values())


def dollars(micros: int) -> str:
    """Micro-dollars in words: with two decimals, below one cent with as many as needed."""
    places = Decimal("0.01") if micros >= 10_000 or not micros else Decimal("0.000001")
    amount = (Decimal(micros) / 1_000_000).quantize(places, ROUND_HALF_UP)
    return f"${amount:,.2f}" if places == Decimal("0.01") else f"${amount.normalize():f}"
