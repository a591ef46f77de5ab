"""Counts what the bot did in the week against what it may do: from the records alone, by the script's own truth.

The rules are those of docs/offers.md; nothing here asks the bot, or uses its code.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from statistics import median

from bench.week.record import Answer, Record, Shown

TIMEOUT, COOLDOWN, LONGEST_COOLDOWN = 600.0, 1_800.0, 604_800.0  # seconds
DAY, HOUR, MINUTE = 86_400.0, 3_600.0, 60.0
PER_DAY = 3
PULSE = 5.0  # seconds until what is due is noticed
LAST_GAPS, FAST_GAP = 5, 20.0
QUIET_FROM, QUIET_UNTIL = 22, 7  # o'clock, UTC


class Outcome(StrEnum):
    """How an offer ended."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    IGNORED = "ignored"
    OVERTAKEN = "overtaken"
    WITHDRAWN = "withdrawn"
    NOT_HERE = "not here"
    ASKED = "asked instead"
    """Whom it was made to has asked the bot something else."""
    OPEN = "open at the end"
    UNEXPLAINED = "unexplained"


BY_ANSWER = {Answer.YES: Outcome.ACCEPTED, Answer.NO: Outcome.DECLINED, Answer.NOT_HERE: Outcome.NOT_HERE}
SETBACKS = (Outcome.DECLINED, Outcome.IGNORED)


@dataclass(frozen=True, slots=True)
class Check:
    """What was counted, and each thing that is wrong, in words."""

    what: str
    measured: str
    bound: str
    findings: Sequence[str]


def check(records: Iterable[Record]) -> list[Check]:
    records = list(records)
    most = max((most_in_a_day(record) for record in records), default=0)
    many = [_told(r, r.offers[-1], f"{n} offers in 24 hours") for r in records if (n := most_in_a_day(r)) > PER_DAY]
    open_at_once = max((most_open(record) for record in records), default=0)
    double = [_told(r, r.offers[-1], f"{n} open at once") for r in records if (n := most_open(r)) > 1]
    none = {
        "offers in channels where they were off": unasked,
        "offers during fast exchanges": in_a_rush,
        "offers in quiet hours": in_quiet_hours,
        "offers about what was answered, deleted or no question": beside_the_point,
        "offers that outlived their question": outlived,
        "offers that stood too long, or went for no reason": without_reason,
        "offers within a cooldown": too_soon,
        "offers that notified anybody": loud,
        "accepted offers without exactly one answer": not_answered_once,
    }
    checks = [
        Check("most offers of a channel in 24 hours", str(most), str(PER_DAY), many),
        Check("most open offers of a channel at once", str(open_at_once), "1", double),
    ]
    for what, find in none.items():
        findings = [finding for record in records for finding in find(record)]
        checks.append(Check(what, str(len(findings)), "0", findings))
    return checks


# How many


def most_in_a_day(record: Record) -> int:
    """Offers in the 24 hours before and with one of them, at most."""
    times = [offer.at for offer in record.offers]
    return max((sum(at - DAY < earlier <= at for earlier in times) for at in times), default=0)


def most_open(record: Record) -> int:
    times = [offer.at for offer in record.offers]
    spans = [(offer.at, math.inf if offer.over_at is None else offer.over_at) for offer in record.offers]
    return max((sum(begun <= at < over for begun, over in spans) for at in times), default=0)


# How they ended


def outcome(record: Record, offer: Shown) -> Outcome:
    over_at = offer.over_at
    if offer.answer:
        return BY_ANSWER[offer.answer]
    if over_at is None:
        return Outcome.OPEN
    asked = record.asked.get(offer.about or 0)
    if over_at > last_touch(record, over_at) + TIMEOUT:
        return Outcome.IGNORED
    if (over_at, False) in record.switched or (asked and asked.deleted_at == over_at):
        return Outcome.WITHDRAWN
    if asked and any(reply.at == over_at and reply.author_id == asked.message.author.id for reply in record.replies):
        return Outcome.ASKED
    return Outcome.OVERTAKEN if over_at in record.acts else Outcome.UNEXPLAINED


def last_touch(record: Record, before: float) -> float:
    """When the bot and somebody last had to do with one another: an offer was made or answered, or the bot replied."""
    offers = (at for offer in record.offers for at in (offer.at, offer.answered_at) if at is not None and at < before)
    replies = [reply.at for reply in record.replies]
    place = bisect_left(replies, before)
    return max(max(offers, default=0.0), replies[place - 1] if place else 0.0)


# What may not be


def unasked(record: Record) -> Iterator[str]:
    return (_told(record, offer, "off") for offer in record.offers if not record.is_on(offer.at))


def in_a_rush(record: Record) -> Iterator[str]:
    return (_told(record, offer, "in a fast exchange") for offer in record.offers if is_rush(record, offer.at))


def is_rush(record: Record, at: float) -> bool:
    """Whether people speak quickly: half of the last gaps are below 20 s, and the last words are of this minute."""
    standing = [said for said in record.said.values() if at - HOUR <= said.at <= at]
    times = [said.at for said in standing if said.gone_at is None or said.gone_at > at][-LAST_GAPS - 1 :]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return len(gaps) > 1 and at - times[-1] < MINUTE and median(gaps) < FAST_GAP


def in_quiet_hours(record: Record) -> Iterator[str]:
    return (_told(record, offer, "in quiet hours") for offer in record.offers if is_quiet(offer.at))


def is_quiet(at: float) -> bool:
    hour = datetime.fromtimestamp(at, UTC).hour
    return hour >= QUIET_FROM or hour < QUIET_UNTIL


def beside_the_point(record: Record) -> Iterator[str]:
    for offer in record.offers:
        if offer.about is not None:
            asked = record.asked.get(offer.about)
            if asked is None or not asked.is_open(offer.at):
                yield _told(record, offer, f"about {asked.how if asked else 'no question'}")


def outlived(record: Record) -> Iterator[str]:
    """Offers that still stood when their question was answered or deleted, and after that."""
    for offer in record.offers:
        asked = record.asked.get(offer.about or 0)
        ends = [at for at in (asked.answered_at, asked.deleted_at) if at and at > offer.at] if asked else []
        if ends and offer.answer is None and (offer.over_at is None or offer.over_at > min(ends) + PULSE):
            yield _told(record, offer, f"{min(ends) - offer.at:.0f} s later its question was over")


def without_reason(record: Record) -> Iterator[str]:
    for offer in record.offers:
        ended = outcome(record, offer)
        if ended is Outcome.UNEXPLAINED and offer.over_at:
            yield _told(record, offer, f"gone after {offer.over_at - offer.at:.0f} s for no reason")
        if (
            ended is Outcome.IGNORED
            and offer.over_at
            and offer.over_at > last_touch(record, offer.over_at) + TIMEOUT + PULSE
        ):
            yield _told(record, offer, f"ignored, and stood for {offer.over_at - offer.at:.0f} s")


def too_soon(record: Record) -> Iterator[str]:
    """Offers before the cooldown was over that began once nothing more had come of the last offer, or talk."""
    setbacks = 0
    for offer in record.offers:
        cooldown = min(COOLDOWN * 2**setbacks, LONGEST_COOLDOWN)
        touched = last_touch(record, offer.at)
        if touched and offer.at < touched + TIMEOUT + cooldown:
            yield _told(record, offer, f"{offer.at - touched:.0f} s after the last, with {setbacks} setbacks")
        ended = outcome(record, offer)
        setbacks = 0 if ended in (Outcome.ACCEPTED, Outcome.ASKED) else setbacks + (ended in SETBACKS)


def loud(record: Record) -> Iterator[str]:
    return (_told(record, offer, "it notifies") for offer in record.offers if offer.notifies)


def not_answered_once(record: Record) -> Iterator[str]:
    for offer in record.offers:
        answers = sum(reply.to == offer.leads_to for reply in record.replies)
        if offer.answer is Answer.YES and answers != 1:
            yield _told(record, offer, f"{answers} answers")


def _told(record: Record, offer: Shown, what: str) -> str:
    when = f"{datetime.fromtimestamp(offer.at, UTC):%a %H:%M:%S}"
    return f"{when}, channel {record.channel_id} ({record.kind}), offer {offer.message.id} about {offer.about}: {what}"
