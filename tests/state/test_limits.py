"""state/limits.py: how much one person, and a day, may cost."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import JsonValue

from setting_values import Period, Scope
from state.budget import OWN_SECONDS, Budget
from state.ledger import Day
from state.limits import Cap, Limits, Refusal
from state.spending import NOBODY, Payer, Purpose, Spent
from tests.support.clock import NOON, FakeClock
from tests.support.people import ANNA, BEN, CHANNEL, CLEO

MIDNIGHT = NOON.replace(hour=0) + timedelta(days=1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def admitted(limits: Limits, clock: FakeClock, *, explicit: bool = True, author: int = ANNA, times: int = 1) -> int:
    """How many of so many questions were let through."""
    return sum(limits.admit(author, CHANNEL, explicit=explicit, now=clock.now) is None for _ in range(times))


def test_from_four_fifths_of_a_persons_cap_only_mentions_are_answered(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=10, daily_tokens=None)
    assert admitted(limits, clock, explicit=False, times=20) == 8
    assert admitted(limits, clock, explicit=True, times=20) == 2
    assert admitted(limits, clock, author=BEN) == 1
    limits.spend(Spent(tokens_in=10**12), clock.now)
    assert not limits.reached(clock.now, NOBODY, explicit=False)


def test_a_cap_of_one_still_allows_one(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=1, daily_tokens=1)
    assert admitted(limits, clock, explicit=False, times=3) == 1
    assert not limits.reached(clock.now, NOBODY, explicit=False)


def test_a_persons_cap_is_announced_once_a_minute_and_says_when_it_resets(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=1, daily_tokens=None)
    admitted(limits, clock)
    clock.advance(20)
    first, second = (limits.admit(ANNA, CHANNEL, explicit=True, now=clock.now) for _ in range(2))
    assert first
    assert second
    assert (first.cap, first.announce, second.announce) == (Cap.USER, True, False)
    assert first.resets_at == NOON + timedelta(minutes=1)


def test_a_persons_cap_resets_as_the_minute_passes(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=2, daily_tokens=None)
    assert admitted(limits, clock, times=2) == 2
    limits.give_back(ANNA)  # an answer that was not given does not count
    limits.give_back(BEN)
    assert admitted(limits, clock, times=2) == 1
    clock.advance(59.9)
    assert admitted(limits, clock) == 0
    clock.advance(0.1)
    assert admitted(limits, clock, times=3) == 2


@pytest.mark.parametrize(
    ("spent", "followups", "mentions"), [(0, 1, 1), (79, 1, 1), (80, 0, 1), (99, 0, 1), (100, 0, 0), (500, 0, 0)]
)
def test_the_days_tokens_end_followups_first_and_then_mentions(
    clock: FakeClock, spent: int, followups: int, mentions: int
) -> None:
    limits = Limits(turns_per_user_minute=20, daily_tokens=100)
    limits.spend(Spent(tokens_in=spent), clock.now)
    assert admitted(limits, clock, explicit=False) == followups
    assert admitted(limits, clock, explicit=True) == mentions
    assert (limits.reached(clock.now, NOBODY, explicit=False) is None) is bool(followups)


def test_the_days_end_is_announced_once_in_each_channel(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=20, daily_tokens=100)
    limits.spend(Spent(tokens_in=100), clock.now)
    refusals = [limits.admit(ANNA, channel, explicit=True, now=clock.now) for channel in (1, 1, 2)]
    assert [refusal and refusal.announce for refusal in refusals] == [True, False, True]
    assert {(refusal.cap, refusal.resets_at) for refusal in refusals if refusal} == {(Cap.TOTAL, MIDNIGHT)}


def test_a_new_day_begins_with_nothing_spent(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=20, daily_tokens=100)
    limits.spend(Spent(tokens_in=100), clock.now)
    limits.admit(ANNA, CHANNEL, explicit=True, now=clock.now)
    clock.now = MIDNIGHT
    assert not limits.reached(clock.now, NOBODY, explicit=False)
    assert limits.tokens_today == 0
    limits.spend(Spent(tokens_in=100), clock.now)
    refusal = limits.admit(ANNA, CHANNEL, explicit=True, now=clock.now)
    assert refusal
    assert refusal.announce


def test_the_sweep_frees_ten_thousand_people(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=1, daily_tokens=None)
    for author in range(10_000):
        admitted(limits, clock, author=author, times=2)
    limits.sweep(clock.now)
    assert (len(limits._taken), len(limits._told)) == (10_000, 10_000)
    clock.advance(60)
    limits.sweep(clock.now)
    assert (len(limits._taken), len(limits._told)) == (0, 0)


def test_a_clock_that_is_set_back_keeps_nobody_waiting_and_renews_no_budget() -> None:
    limits = Limits(turns_per_user_minute=1, daily_tokens=100)
    assert limits.admit(ANNA, CHANNEL, explicit=True, now=NOON) is None
    limits.spend(Spent(tokens_in=100), NOON)
    assert limits.reached(NOON - timedelta(days=1), NOBODY)
    fresh = Limits(turns_per_user_minute=1, daily_tokens=None)
    assert fresh.admit(ANNA, CHANNEL, explicit=True, now=NOON) is None
    assert fresh.admit(ANNA, CHANNEL, explicit=True, now=NOON - timedelta(hours=1)) is None


# For a guild, a person, a turn


def test_the_tokens_of_a_guild_and_of_a_person_end_for_these_alone(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=99, daily_tokens=10_000, guild_tokens=200, person_tokens=100)
    limits.spend(Spent(tokens_in=200), clock.now, Payer(1, frozenset({ANNA, BEN})))

    def refused(author: int, guild: int) -> Cap | None:
        refusal = limits.admit(author, CHANNEL, explicit=True, now=clock.now, payer=Payer(guild, frozenset({author})))
        return refusal.cap if refusal else None

    assert [refused(ANNA, 1), refused(CLEO, 1)] == [Cap.GUILD, Cap.GUILD]
    assert [refused(ANNA, 2), refused(CLEO, 2)] == [Cap.PERSON, None]
    later = restarted(limits, daily_tokens=10_000, guild_tokens=200, person_tokens=100)

    def cap_of(later: Limits, payer: Payer) -> Cap | None:
        reached = later.reached(clock.now, payer)
        return reached.cap if reached else None

    assert cap_of(later, Payer(1)) is Cap.GUILD
    assert cap_of(later, Payer(0, frozenset({BEN}))) is Cap.PERSON
    clock.now = MIDNIGHT
    assert [refused(ANNA, 1), refused(ANNA, 2)] == [None, None]


def told(limits: Limits, clock: FakeClock, *channels: int, explicit: bool = True) -> list[bool]:
    """In which of these channels somebody is told that they are refused."""
    refusals = [limits.admit(ANNA, channel, explicit=explicit, now=clock.now) for channel in channels]
    return [bool(refusal and refusal.announce) for refusal in refusals]


def test_whoever_calls_when_a_budget_is_spent_is_told_in_each_channel_and_again_after_ten_minutes(
    clock: FakeClock,
) -> None:
    limits = Limits(turns_per_user_minute=99, daily_tokens=None, person_tokens=100)
    payer = Payer(1, frozenset({ANNA}))
    limits.spend(Spent(tokens_in=80), clock.now, payer)
    assert told(limits, clock, 1, 1, explicit=False) == [True, False]
    limits.spend(Spent(tokens_in=20), clock.now, payer)
    assert told(limits, clock, 1, 2, 1) == [True, True, False]
    clock.advance(599)
    assert told(limits, clock, 1) == [False]
    clock.advance(1)
    assert told(limits, clock, 1, 1, 2, explicit=False) == [False, False, False]
    assert told(limits, clock, 1, 1, 2) == [True, False, True]


def test_whoever_asks_too_often_is_told_in_each_channel_once_a_minute(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=1, daily_tokens=None)
    admitted(limits, clock)
    assert told(limits, clock, 1, 2, 1) == [True, True, False]
    clock.advance(60)
    admitted(limits, clock)
    assert told(limits, clock, 1) == [True]


ACCOUNTS = [Payer(), Payer(1), Payer(0, frozenset({ANNA}))]


@pytest.mark.parametrize("payer", ACCOUNTS, ids=("all", "guild", "person"))
@pytest.mark.virtual_time
async def test_calls_that_run_at_once_do_not_pass_a_cap_together(clock: FakeClock, payer: Payer) -> None:
    limits = Limits(turns_per_user_minute=99, daily_tokens=100, guild_tokens=100, person_tokens=100)
    budget = Budget(limits, clock)
    running, most, caps = 0, 0, list[Cap | None]()

    async def turn() -> None:
        nonlocal running, most
        allowance = budget.allowance(payer)
        caps.append(await allowance.reserve(40))
        if caps[-1] is None:
            running += 1
            most = max(most, running)
            await asyncio.sleep(1)
            running -= 1
            allowance.settle(30)

    await asyncio.gather(*(turn() for _ in range(10)))
    assert most == 2
    # Three calls, and one more that nothing ran beside as 10 were left.
    assert limits.tokens_today == 120
    assert caps.count(None) == 4
    assert not limits._reserved


@pytest.mark.parametrize("exempt", [frozenset[int](), frozenset({BEN})])
@pytest.mark.virtual_time
async def test_whoever_is_answered_elsewhere_keeps_no_answer_from_who_asks_with_them_and_is_exempt(
    clock: FakeClock, exempt: frozenset[int]
) -> None:
    budget = Budget(Limits(turns_per_user_minute=99, daily_tokens=None, person_tokens=100), clock)
    assert await budget.allowance(Payer(people=frozenset({ANNA}))).reserve(90) is None
    assert await budget.allowance(Payer(people=frozenset({ANNA, BEN}), exempt=exempt)).reserve(40) is None


@pytest.mark.virtual_time
async def test_whoever_edits_while_their_answers_elsewhere_hold_it_up_has_no_more_time_for_that(
    clock: FakeClock,
) -> None:
    budget = Budget(Limits(turns_per_user_minute=99, daily_tokens=None, person_tokens=100), clock)
    elsewhere, here = (budget.allowance(Payer(people=frozenset({ANNA}))) for _ in range(2))
    assert await elsewhere.reserve(90) is None
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(OWN_SECONDS - 1):
            await here.reserve(40)
    here.settle(0)  # it begins anew
    async with asyncio.timeout(2):
        assert await here.reserve(40) is Cap.OWN


@pytest.mark.parametrize("purpose", Purpose)
async def test_from_four_fifths_of_a_budget_on_no_call_only_judges(clock: FakeClock, purpose: Purpose) -> None:
    limits = Limits(turns_per_user_minute=99, daily_tokens=100)
    limits.spend(Spent(tokens_in=80), clock())
    is_made = await Budget(limits, clock).purse(purpose).call(10, 1, ("stub",)) is not None
    assert is_made is (purpose not in (Purpose.JUDGE, Purpose.OFFER, Purpose.COORDINATION))


async def test_a_call_beside_a_turn_takes_nothing_that_others_have_reserved(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=99, daily_tokens=100)
    purse = Budget(limits, clock).purse(Purpose.JUDGE)
    first = await purse.call(60, 10, ("stub",))
    assert first
    assert await purse.call(60, 10, ("stub",)) is None
    first(Spent(tokens_in=20))
    assert limits.tokens_today == 20
    assert await purse.call(60, 10, ("stub",))


# After a restart


def restarted(limits: Limits, **caps: Any) -> Limits:
    """The next process's limits, which know what was stored of these."""
    later = Limits(**{"turns_per_user_minute": 20, "daily_tokens": 100, **caps})
    later.restore(json.loads(limits.to_store()()))
    return later


def test_the_days_tokens_and_who_was_told_of_its_end_outlive_a_restart(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=20, daily_tokens=100)
    limits.spend(Spent(tokens_in=100), clock.now)
    limits.admit(ANNA, 1, explicit=True, now=clock.now)
    later = restarted(restarted(limits))
    assert later.tokens_today == 100
    assert later.reached(clock.now, NOBODY)
    refusals = [later.admit(ANNA, channel, explicit=True, now=clock.now) for channel in (1, 2)]
    assert [refusal and refusal.announce for refusal in refusals] == [False, True]


@pytest.mark.parametrize("days", [-400, -1, 1, 400])
def test_what_another_day_used_counts_for_nothing(clock: FakeClock, days: int) -> None:
    limits = Limits(turns_per_user_minute=20, daily_tokens=100)
    limits.spend(Spent(tokens_in=100), clock.now)
    later = restarted(limits)
    assert not later.reached(clock.now + timedelta(days=days), NOBODY)
    assert later.tokens_today == 0


def test_a_clock_that_is_set_back_after_a_restart_renews_no_budget(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=20, daily_tokens=100)
    limits.spend(Spent(tokens_in=100), clock.now)
    later = restarted(limits)
    assert later.reached(clock.now, NOBODY)
    assert later.reached(clock.now - timedelta(days=1), NOBODY)


def test_what_is_no_stored_limit_is_refused_and_changes_nothing(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=20, daily_tokens=100)
    limits.spend(Spent(tokens_in=7), clock.now)
    sound: dict[str, JsonValue] = {"day": "2026-03-02", "tokens": 1, "told_channels": []}
    wrong: list[dict[str, JsonValue]] = [
        {"day": "soon"},
        {"tokens": -1},
        {"tokens": "many"},
        {"told_channels": ["general"]},
        {"people": {"Ada": 1}},
    ]
    nonsense: list[JsonValue] = [None, [], {}, "2026-03-02", *({**sound, **each} for each in wrong)]
    for stored in nonsense:
        with pytest.raises(ValueError, match="validation error"):
            limits.restore(stored)
    assert limits.tokens_today == 7


def test_whoever_did_not_call_is_not_told_of_a_cap_and_whoever_does_afterwards_is(clock: FakeClock) -> None:
    limits = Limits(turns_per_user_minute=1, daily_tokens=1)
    admitted(limits, clock)
    for _ in range(2):
        refusal = limits.admit(ANNA, CHANNEL, explicit=False, now=clock.now, tells=False)
        assert refusal == Refusal(Cap.USER, False, clock.now + timedelta(minutes=1))
        limits.spend(Spent(tokens_in=1), clock.now)
        refusal = limits.admit(ANNA, CHANNEL, explicit=False, now=clock.now, tells=False)
        assert refusal == Refusal(Cap.TOTAL, False, MIDNIGHT, limits.reached(clock.now, NOBODY))
        limits.ledger.today = Day()
    for tokens in (0, 1):
        limits.spend(Spent(tokens_in=tokens), clock.now)
        refusal = limits.admit(ANNA, CHANNEL, explicit=True, now=clock.now)
        assert refusal
        assert refusal.announce


def test_what_several_processes_used_is_added_up_by_whoever_takes_over_from_them(clock: FakeClock) -> None:
    clock.now = MIDNIGHT - timedelta(seconds=20)
    payer, last = Payer(1, frozenset({ANNA})), clock.now + timedelta(days=1, seconds=30)
    # The clock of one is ahead at midnight, and one went on until the day after.
    one, *others = (spending_at(payer, clock.now, at) for at in (clock.now, clock.now + timedelta(seconds=30), last))
    for other in others:
        one.ledger.restore(json.loads(other.ledger.to_store()()))
        one.restore(json.loads(other.to_store()()))
    one.spend(Spent(tokens_in=1), last, payer)
    again = Limits(turns_per_user_minute=9, daily_tokens=None)
    again.ledger.restore(json.loads(one.ledger.to_store()()))
    again.restore(json.loads(one.to_store()()))
    for limits in (one, again):
        days = [day for _, day in limits.ledger.days(3)]
        assert [day.guilds[1]["", Purpose.ANSWER].tokens for day in days] == [20, 5, 6]
        assert [day.people[ANNA].tokens for day in days] == [20, 5, 6]
        assert [day.charged[Scope.TOTAL, 0].tokens for day in days] == [20, 5, 6]
        assert limits.ledger.used((Scope.TOTAL, 0), Period.MONTH).tokens == 31


def spending_at(payer: Payer, *times: datetime) -> Limits:
    limits = Limits(turns_per_user_minute=9, daily_tokens=None)
    for at in times:
        limits.spend(Spent(tokens_in=5), at, payer)
    return limits
