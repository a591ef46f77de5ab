"""A simulated day in eight channels; and what counts the offers of such a week counts right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench.week.checks import DAY, TIMEOUT, Outcome, check, outcome
from bench.week.record import Answer, Asked, Kind, PersonsMessage, Record, Replied, Shown
from bench.week.week import MONDAY, spend_week
from playground.model import SILENT, Message, User
from tests.support.stub_model import StubModel

CHANNELS, DAYS, SEED = 8, 1, 1
BOT, BEN, CHLOE = User(1, "Parley", bot=True), User(2, "Ben"), User(3, "Chloe")
QUESTION, CARD, YES = 100, 200, 300
NOON = MONDAY.timestamp() + DAY / 2
COOLDOWN = 1_800.0


@pytest.mark.slow
async def test_a_day_with_offers_keeps_to_all_bounds(stub: StubModel, tmp_path: Path) -> None:
    week = await spend_week(tmp_path / "state", stub, channels=CHANNELS, days=DAYS, seed=SEED)
    records = list(week.records.values())
    wrong = [finding for one in check(records) for finding in one.findings]
    assert not wrong, "\n".join(wrong)
    assert not week.errors
    endings = {outcome(record, offer) for record in records for offer in record.offers}
    assert endings >= {Outcome.ACCEPTED, Outcome.DECLINED, Outcome.IGNORED, Outcome.OVERTAKEN, Outcome.NOT_HERE}
    assert {asked.how for record in records for asked in record.asked.values()} >= {"in a fast exchange", "deleted"}


def message(message_id: int, author: User = BOT, flags: int = SILENT) -> Message:
    return Message(id=message_id, channel_id=1, author=author, content="", created=NOON, flags=flags)


def offer(at: float = NOON, about: int | None = QUESTION, **ending: float) -> Shown:
    return Shown(message(CARD), at, about, **ending)  # type: ignore[arg-type]


def record(*offers: Shown, on: bool = True) -> Record:
    """A channel in which Ben asked something two minutes before noon."""
    asked = Asked(message(QUESTION, BEN), NOON - 120, "unanswered")
    return Record(1, Kind.ON, [(NOON - DAY, on)], {QUESTION: asked}, offers=list(offers))


def accepted(shown: Shown, at: float) -> Shown:
    shown.answer, shown.answered_at, shown.settled_at, shown.leads_to = Answer.YES, at, at, shown.about or YES
    return shown


def wrong(of: Record) -> set[str]:
    return {one.what for one in check([of]) if one.findings}


def ignored(at: float) -> Shown:
    return offer(at, gone_at=at + TIMEOUT + 4)


QUIET_HOURS = {21.9 - 12: False, 22 - 12: True, 2 - 12: True, 6.9 - 12: True, 7 - 12: False}
TWO_SETBACKS = [ignored(NOON - 7_200), ignored(NOON - 7_200 + TIMEOUT + 2 * COOLDOWN)]


def test_a_week_in_which_nothing_is_wrong() -> None:
    good = record(accepted(offer(), NOON + 60), ignored(NOON + 60 + TIMEOUT + COOLDOWN))
    good.replies = [Replied(NOON + 60, QUESTION, BEN.id)]
    assert wrong(good) == set()
    assert [outcome(good, one) for one in good.offers] == [Outcome.ACCEPTED, Outcome.IGNORED]


QUIET, COLD, DAYS_MOST = "offers in quiet hours", "offers within a cooldown", "most offers of a channel in 24 hours"
TOO_LONG = "offers that stood too long, or went for no reason"
AFTER = TIMEOUT + COOLDOWN


@pytest.mark.parametrize(
    ("what", "offers"),
    [
        (DAYS_MOST, [ignored(NOON + 3_600 * hour) for hour in (1, 20, 21, 22)]),
        ("", [ignored(NOON + 3_600 * hour) for hour in (0, 3, 24)]),
        ("most open offers of a channel at once", [offer(), ignored(NOON + 30)]),
        *((QUIET if quiet else "", [ignored(NOON + hour * 3_600)]) for hour, quiet in QUIET_HOURS.items()),
        ("", [offer(gone_at=NOON + TIMEOUT + 1)]),
        *((TOO_LONG, [offer(gone_at=NOON + seconds)]) for seconds in (300, TIMEOUT + 60)),
        # Each setback doubles the cooldown.
        ("", [ignored(NOON - 7_200), ignored(NOON - 7_200 + AFTER + COOLDOWN)]),
        (COLD, [ignored(NOON - 7_200), ignored(NOON - 7_200 + AFTER)]),
        *(
            (COLD if early else "", [*TWO_SETBACKS, ignored(TWO_SETBACKS[1].at + TIMEOUT + 4 * COOLDOWN - early)])
            for early in (0, 1)
        ),
        *(
            ("offers that notified anybody", [replace(ignored(NOON), message=loud)])
            for loud in (message(CARD, flags=0), replace(message(CARD), pinged=frozenset({2})))
        ),
        ("offers about what was answered, deleted or no question", [offer(about=7, gone_at=NOON + TIMEOUT + 1)]),
        ("", [offer(about=None, gone_at=NOON + TIMEOUT + 1)]),
    ],
)
def test_what_is_wrong_with_offers_is_told(what: str, offers: Sequence[Shown]) -> None:
    found = wrong(record(*offers))
    assert what in found if what else not found


@pytest.mark.parametrize(("early", "is_wrong"), [(0, False), (1, True)])
def test_a_talk_is_followed_by_a_cooldown(early: float, is_wrong: bool) -> None:
    talked = record(ignored(NOON))
    talked.replies = [Replied(NOON - AFTER + early, 7, CHLOE.id)]
    assert wrong(talked) == ({COLD} if is_wrong else set())


@pytest.mark.parametrize(("answers", "is_wrong"), [(0, True), (1, False), (2, True)])
def test_an_accepted_offer_has_one_answer(answers: int, is_wrong: bool) -> None:
    taken = record(accepted(offer(), NOON + 60))
    taken.replies = [Replied(NOON + 60, QUESTION, BEN.id)] * answers
    assert wrong(taken) == ({"accepted offers without exactly one answer"} if is_wrong else set())


def test_an_offer_that_goes_once_somebody_says_something() -> None:
    overtaken = record(offer(gone_at=NOON + 60))
    overtaken.acts = {NOON + 60}
    assert wrong(overtaken) == set()
    assert outcome(overtaken, overtaken.offers[0]) is Outcome.OVERTAKEN
    overtaken.replies = [Replied(NOON + 60, 7, BEN.id)]
    assert outcome(overtaken, overtaken.offers[0]) is Outcome.ASKED


def test_an_offer_that_nobody_asked_for() -> None:
    assert wrong(record(ignored(NOON), on=False)) == {"offers in channels where they were off"}
    switched = record(ignored(NOON))
    switched.switched += [(NOON - 60, False), (NOON + 60, True)]
    assert wrong(switched) == {"offers in channels where they were off"}


@pytest.mark.parametrize(
    ("before", "is_wrong"),
    [((50, 40, 30), True), ((90, 80, 70, 61), False), ((50, 20), False), ((500, 60, 50, 40, 30, 5), True)],
)
def test_an_offer_during_a_fast_exchange(before: tuple[float, ...], is_wrong: bool) -> None:
    fast = record(ignored(NOON))
    fast.said = {number: PersonsMessage(NOON - seconds, CHLOE.id) for number, seconds in enumerate(before)}
    assert wrong(fast) == ({"offers during fast exchanges"} if is_wrong else set())
    for said in fast.said.values():
        said.gone_at = NOON - 1
    assert wrong(fast) == set()


@pytest.mark.parametrize("how", ["answered_at", "deleted_at"])
def test_an_offer_about_what_was_over(how: str) -> None:
    late = record(ignored(NOON))
    setattr(late.asked[QUESTION], how, NOON - 1)
    assert wrong(late) == {"offers about what was answered, deleted or no question"}


def test_an_offer_that_outlives_its_question() -> None:
    late = record(ignored(NOON))
    late.asked[QUESTION].deleted_at = NOON + 60
    assert wrong(late) == {"offers that outlived their question"}
    gone = record(offer(gone_at=NOON + 60))
    gone.asked[QUESTION].deleted_at = NOON + 60
    assert wrong(gone) == set()
    assert outcome(gone, gone.offers[0]) is Outcome.WITHDRAWN
