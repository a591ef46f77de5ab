"""What is counted by hour and day, and what went wrong last."""

from __future__ import annotations

import random
from datetime import timedelta

import orjson
import pytest
from pydantic import JsonValue

from activity import Ending, Fault, FaultKind, TurnEnded
from counts import DAYS_KEPT, FAULTS_KEPT, Counts, Faults
from decision import EXPLICIT, NOTHING, TOLD_OFF, Decision, LoggedDecision, Reason
from tests.support.clock import FakeClock

HOME, OTHER, DIRECT = 100, 200, 0
HOUR, DAY = 3_600, 86_400


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def counts(clock: FakeClock) -> Counts:
    return Counts(clock)


def decide(counts: Counts, decision: Decision, guild_id: int = HOME, times: int = 1) -> None:
    for _ in range(times):
        counts.decided(LoggedDecision(1, 2, 3, decision, guild_id))


def end(
    counts: Counts, clock: FakeClock, ending: Ending = Ending.ANSWERED, *, seconds: float = 2.0, guild_id: int = HOME
) -> None:
    counts.turn_ended(TurnEnded(guild_id, 2, (1,), ending, ending, clock(), seconds, seconds / 2))


def kept(counts: Counts, clock: FakeClock) -> Counts:
    """The counts of the process after."""
    before, now = orjson.loads(counts.before()()), orjson.loads(counts.this_hour()())
    after = Counts(clock)
    after.restore(before)
    after.restore(now)
    return after


def test_a_server_has_its_own_figures_and_all_together_theirs(counts: Counts, clock: FakeClock) -> None:
    decide(counts, EXPLICIT)
    decide(counts, NOTHING, times=3)
    decide(counts, TOLD_OFF)
    decide(counts, Decision(False, Reason.DECLINED))
    decide(counts, NOTHING, OTHER)
    for ending in (Ending.ANSWERED, Ending.DECLINED, Ending.FAILED, Ending.UNDELIVERED):
        end(counts, clock, ending)
    end(counts, clock, guild_id=DIRECT)
    counts.failed(Fault(FaultKind.MODEL, "busy", "The model was overloaded.", clock(), HOME))
    here = counts.today(HOME)
    assert (here.decisions, here.answering) == (6, {Reason.EXPLICIT_TRIGGER: 1})
    assert list(here.silences.items()) == [(Reason.NO_TRIGGER, 3), (Reason.TOLD_OFF, 1)]
    assert (here.answered, here.declined, here.failed, here.faults) == (1, 1, 2, {FaultKind.MODEL: 1})
    assert (counts.today().decisions, counts.today().answered) == (7, 2)
    assert (counts.today(OTHER).silences, counts.today(OTHER).answered) == ({Reason.NO_TRIGGER: 1}, 0)
    assert counts.today(DIRECT).answered == 1


def test_shares_of_latencies_follow_from_buckets(counts: Counts, clock: FakeClock) -> None:
    assert counts.today().first_text(0.5) is None
    for seconds in (1.8, 1.8, 1.8, 50.0):
        end(counts, clock, seconds=seconds)
    end(counts, clock, Ending.FAILED, seconds=100.0)  # which is no answer
    today = counts.today()
    assert today.first_text(0.5) == pytest.approx(0.9, abs=0.1)
    assert today.whole(0.5) == pytest.approx(1.8, abs=0.2)
    assert 30 < (today.whole(0.95) or 0) <= 60
    end(counts, clock, seconds=10_000.0)
    assert counts.today().whole(1.0) == 300.0


def test_hours_and_days_turn_and_go(counts: Counts, clock: FakeClock) -> None:
    end(counts, clock)
    clock.advance(HOUR)
    end(counts, clock, guild_id=OTHER)
    assert [tally.answered for _, tally in counts.hours(3)] == [0, 1, 1]
    assert counts.hours(1)[0][0] == clock().replace(minute=0, second=0, microsecond=0)
    assert counts.today().answered == 2
    clock.advance(DAY - HOUR)
    assert [tally.answered for _, tally in counts.days(3)] == [0, 2, 0]
    assert [tally.answered for _, tally in counts.days(3, HOME)] == [0, 1, 0]
    assert sum(tally.answered for _, tally in counts.hours(24)) == 1  # the first was 24 hours ago
    clock.advance(DAYS_KEPT * DAY)
    end(counts, clock)
    assert sum(tally.answered for _, tally in counts.days(1_000)) == 1
    assert len(counts._days) <= DAYS_KEPT
    assert len(counts._hours) == 1


def test_of_servers_a_week_is_kept(counts: Counts, clock: FakeClock) -> None:
    for guild_id in range(1, 1_001):
        end(counts, clock, guild_id=guild_id)
    clock.advance(6 * DAY)
    assert counts.days(7, HOME)[0][1].answered == 1
    clock.advance(DAY)
    end(counts, clock)
    assert [day.answered for _, day in counts.days(8)] == [1_000, *[0] * 6, 1]
    assert counts.guild_ids == {HOME}


def test_a_clock_that_is_set_back_goes_on_with_the_hour_that_was(counts: Counts, clock: FakeClock) -> None:
    end(counts, clock)
    clock.advance(-3 * HOUR)
    end(counts, clock)
    assert counts.today().answered == 2


def test_it_is_kept_over_a_restart_also_one_that_took_days(counts: Counts, clock: FakeClock) -> None:
    end(counts, clock)
    clock.advance(HOUR)
    end(counts, clock)
    assert kept(counts, clock).today(HOME) == counts.today(HOME)
    clock.advance(2 * DAY)
    after = kept(counts, clock)
    assert [tally.answered for _, tally in after.days(4, HOME)] == [0, 2, 0, 0]
    clock.advance(-30 * DAY)  # what was counted by a clock that was ahead
    assert kept(after, clock).today().answered == 0


def test_what_is_no_figures_is_refused(counts: Counts) -> None:
    wrong: list[JsonValue] = [[], {"2026-01-01": {"home": {}}}, {"2026-01-01": {"1": {"answers": -1}}}, {"today": {}}]
    for damaged in wrong:
        with pytest.raises(ValueError, match=r"error|isoformat"):
            counts.restore(damaged)


def test_ignored_messages_alone_are_no_reason_to_store(counts: Counts, clock: FakeClock) -> None:
    decide(counts, NOTHING, times=100)
    assert not counts.has_changed
    end(counts, clock)
    assert counts.has_changed
    kept(counts, clock)
    assert (counts.has_changed, counts.has_turned) == (False, False)
    clock.advance(HOUR)
    end(counts, clock)
    assert counts.has_turned


def test_a_server_that_is_left_keeps_nothing(counts: Counts, clock: FakeClock) -> None:
    end(counts, clock)
    clock.advance(DAY)
    end(counts, clock)
    counts.left(HOME)
    after = kept(counts, clock)
    assert not any(tally.numbers for _, tally in (*after.days(7, HOME), *after.hours(24, HOME)))
    assert str(HOME) not in counts.before()().decode() + counts.this_hour()().decode()


def test_the_last_faults_are_kept_and_how_many_there_were_in_an_hour(clock: FakeClock) -> None:
    faults = Faults(clock)
    for number in range(FAULTS_KEPT + 10):
        faults.failed(Fault(FaultKind.MODEL, "busy", f"{number}", clock(), HOME if number % 2 else OTHER))
    faults.failed(Fault(FaultKind.STORE, "store", "It cannot be written.", clock()))
    assert len(faults.last()) == FAULTS_KEPT
    assert [fault.says for fault in faults.last(2, HOME)] == ["59", "57"]
    assert faults.last_hour() == {FaultKind.MODEL: FAULTS_KEPT + 10, FaultKind.STORE: 1}
    clock.advance(timedelta(hours=1).total_seconds())
    assert faults.last_hour() == {}
    faults.left(HOME)
    assert not faults.last(guild_id=HOME)
    assert faults.last()


@pytest.mark.parametrize("seed", range(10))
def test_of_several_processes_whose_clocks_differ_nothing_is_lost_or_doubled_by_whoever_takes_over(seed: int) -> None:
    clock, chance = FakeClock(), random.Random(seed)
    clock.now = clock.now.replace(hour=22)

    def process() -> Counts:
        ahead = timedelta(seconds=chance.choice((0, 0, 30)))
        return Counts(lambda: clock.now + ahead)

    def take_over(counts: Counts, from_: Counts) -> None:
        for stored in (from_.before()(), from_.this_hour()()):
            counts.restore(orjson.loads(stored))

    living, decided = [process() for _ in range(3)], 0
    for _ in range(120):
        clock.advance(chance.choice((1, 10, 600, HOUR - 20, 30)))
        at = chance.randrange(len(living))
        match chance.choice(("count", "count", "start again", "take over", "new")):
            case "count":
                decide(living[at], NOTHING, HOME, times=3)
                decided += 3
            case "start again":
                living[at], before = process(), living[at]
                take_over(living[at], before)
            case "take over" if len(living) > 1:
                dead = living.pop(at)
                take_over(chance.choice(living), dead)
            case "new":
                living.append(process())
    clock.advance(60)
    for dead in living[1:]:
        take_over(living[0], dead)
    assert sum(day.decisions for _, day in living[0].days(DAYS_KEPT)) == decided
    assert kept(living[0], clock).days(DAYS_KEPT) == living[0].days(DAYS_KEPT)
