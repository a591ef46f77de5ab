"""state/limits.py and state/budget.py: budgets in money and tokens, of places too; what kills leave of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import JsonValue

from setting_values import BudgetLimit, Period, Scope, budget_limits
from state.budget import Budget
from state.limits import Cap, Limits, OwnBudgets
from state.prices import Rates
from state.spending import LONG_ANSWER, NOBODY, Amount, Payer, Purpose, Reserved, Spent
from tests.support.clock import NOON, FakeClock
from tests.support.people import ANNA, BEN

ONE = {"stub": Rates.model_validate({"input": 1, "output": 2})}
HERE = Payer(7, frozenset({ANNA}), channel_id=70)
IN_THREAD = Payer(7, frozenset({ANNA}), channel_id=70, thread_id=700)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


class Own(OwnBudgets):
    def budgets(self, guild_id: int, channel_id: int, thread_id: int) -> tuple[BudgetLimit, ...]:
        known = {
            7: budget_limits("100 tokens a day", Scope.GUILD),
            70: budget_limits("50 tokens a month", Scope.CHANNEL),
            700: budget_limits("20 tokens a day", Scope.THREAD),
        }
        return tuple(limit for one in (guild_id, channel_id, thread_id) for limit in known.get(one, ()))


def limits_of(budgets: str = "off", own: OwnBudgets | None = None) -> Limits:
    read = budget_limits(budgets)
    return Limits(turns_per_user_minute=99, daily_tokens=None, budgets=read, own=own, prices=ONE)


def restarted(limits: Limits, budgets: str = "off") -> Limits:
    later = limits_of(budgets)
    later.restore(json.loads(limits.to_store()()))
    later.ledger.restore(json.loads(limits.ledger.to_store()()))
    return later


def cap(limits: Limits, payer: Payer, now: datetime = NOON) -> tuple[Cap, Period] | None:
    reached = limits.reached(now, payer)
    return (reached.cap, reached.limit.period) if reached else None


def test_budgets_in_money_end_by_day_and_month_for_each_whom_and_are_renewed() -> None:
    limits = limits_of("$0.0009 a month, guild $0.0003 a day, channel $0.0002 a month, person $0.0001 a day")
    spent = Spent("stub", 20, 40)  # 100 micro-dollars
    limits.spend(spent, NOON, HERE)
    assert cap(limits, HERE) == (Cap.PERSON, Period.DAY)
    assert cap(limits, Payer(7, frozenset({BEN}), channel_id=70)) is None
    limits.spend(spent, NOON, HERE)
    assert cap(limits, Payer(7, channel_id=70)) == (Cap.CHANNEL, Period.MONTH)
    limits.spend(spent, NOON, HERE)
    assert cap(limits, Payer(7, channel_id=71)) == (Cap.GUILD, Period.DAY)
    next_day, next_month = NOON + timedelta(days=1), NOON.replace(day=1) + timedelta(days=31)
    assert cap(limits, HERE, next_day) == (Cap.CHANNEL, Period.MONTH)
    for _ in range(6):
        limits.spend(spent, next_day, Payer(8))
    reached = limits.reached(next_day, NOBODY)
    assert reached
    assert (reached.limit.scope, reached.used, reached.resets_at) == (
        Scope.TOTAL,
        900,
        datetime(next_month.year, next_month.month, 1, tzinfo=UTC),
    )
    assert cap(restarted(limits, "$0.0009 a month"), NOBODY, next_day) == (Cap.TOTAL, Period.MONTH)
    assert cap(limits, HERE, next_month) is None


def test_a_place_s_own_budgets_hold_beside_the_owner_s_and_a_thread_pays_its_channel_too() -> None:
    limits = limits_of("1000 tokens a day", Own())
    limits.spend(Spent("", 20), NOON, IN_THREAD)
    assert cap(limits, IN_THREAD) == (Cap.THREAD, Period.DAY)
    assert cap(limits, HERE) is None
    limits.spend(Spent("", 30), NOON, HERE)
    assert cap(limits, HERE) == (Cap.CHANNEL, Period.MONTH)
    assert cap(limits, Payer(7, channel_id=71)) is None
    limits.spend(Spent("", 50), NOON, Payer(7, channel_id=71))
    assert cap(limits, Payer(7, channel_id=72)) == (Cap.GUILD, Period.DAY)
    assert cap(limits, Payer(8, channel_id=80)) is None


def test_neither_a_person_s_budget_nor_the_server_s_own_limits_the_exempt_but_the_owner_s_do() -> None:
    limits = limits_of("1000 tokens a day, guild 900 tokens a day, person 10 tokens a day", Own())
    exempt = Payer(7, frozenset({ANNA}), 70, exempt=frozenset({ANNA}))
    limits.spend(Spent("", 500), NOON, exempt)
    assert cap(limits, exempt) is None
    assert cap(limits, Payer(7, frozenset({BEN}), 70)) == (Cap.GUILD, Period.DAY)  # what they use counts for the others
    mixed = Payer(7, frozenset({ANNA, BEN}), 70, exempt=frozenset({ANNA}))
    assert cap(limits, mixed) == (Cap.GUILD, Period.DAY)
    limits.spend(Spent("", 60), NOON, mixed)
    assert cap(limits, Payer(0, frozenset({BEN}))) == (Cap.PERSON, Period.DAY)
    limits.spend(Spent("", 400), NOON, exempt)
    assert cap(limits, exempt) == (Cap.GUILD, Period.DAY)
    limits.spend(Spent("", 100), NOON, exempt)
    assert cap(limits, exempt) == (Cap.TOTAL, Period.DAY)


@pytest.mark.virtual_time
async def test_a_hundred_calls_at_once_do_not_pass_a_budget_in_money_by_more_than_one(clock: FakeClock) -> None:
    budget = Budget(limits := limits_of("$0.001 a day"), clock)  # 1,000 micro-dollars
    made = 0

    async def turn(number: int) -> None:
        nonlocal made
        allowance = budget.allowance(Payer(7, frozenset({number}), channel_id=number))
        if await allowance.reserve(110, output=100, models=("stub",)) is None:  # 210 micro-dollars at most
            made += 1
            await asyncio.sleep(1)
            allowance.count(60, Spent("stub", 10, 50))  # 110
            allowance.settle(60, is_answer=True)

    await asyncio.gather(*(turn(number) for number in range(1, 101)))
    used = limits.ledger.used((Scope.TOTAL, 0), Period.DAY)
    assert (used.micros, made) == (1_100, 10)
    assert not limits._reserved
    assert not limits._calls


async def test_nothing_is_reserved_in_money_where_no_budget_in_money_holds(clock: FakeClock) -> None:
    budget = Budget(limits := limits_of("5000 tokens a day, guild $1 a day"), clock)
    await budget.allowance(NOBODY).reserve(110, output=100, models=("stub",))
    await budget.allowance(HERE).reserve(110, output=100, models=("stub", "other"))
    assert [call.amount for call in limits._calls] == [Amount(110), Amount(110, 210)]


async def test_a_call_that_a_kill_interrupts_counts_as_what_it_was_sent_and_a_long_answer(clock: FakeClock) -> None:
    budget = Budget(limits := limits_of(), clock)
    await budget.allowance(HERE).reserve(20_010, 128_000, output=20_000, models=("stub",))
    assert restarted(limits).tokens_today == 10 + LONG_ANSWER


async def test_a_call_that_a_kill_interrupts_counts_once(clock: FakeClock) -> None:
    budget = Budget(limits := limits_of("$1 a day"), clock)
    allowance, purse = budget.allowance(HERE), budget.purse(Purpose.JUDGE)
    await allowance.reserve(110, output=100, models=("stub",))
    assert await purse.call(20, 10, ("stub",))
    once, twice = restarted(limits), restarted(restarted(limits))
    assert once.ledger.used((Scope.PERSON, ANNA), Period.DAY) == Amount(110, 210)
    for later in (once, twice):
        assert later.ledger.used((Scope.TOTAL, 0), Period.DAY) == Amount(130, 240)
        assert {row: f.calls for row, f in later.ledger.today.guilds[7].items()} == {("stub", "answers"): 1}
    allowance.settle(15)
    assert restarted(limits).tokens_today == 15 + 20


@pytest.mark.parametrize(
    "ask",
    [
        lambda budget: budget.purse(Purpose.JUDGE).call(20, 10, ("stub",)),
        lambda budget: budget.allowance(HERE).reserve(20, output=10, models=("stub",)),
    ],
)
async def test_a_call_that_is_cancelled_before_it_is_made_reserves_nothing(
    clock: FakeClock, ask: Callable[[Budget], Coroutine[Any, Any, object]]
) -> None:
    class Never:
        def touch(self, kind: str) -> None: ...

        async def noted(self) -> None:
            await asyncio.Event().wait()

    budget = Budget(limits := limits_of(), clock, Never())
    asking = asyncio.create_task(ask(budget))
    await asyncio.sleep(0)
    assert limits._calls
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert not limits._calls


def test_those_who_manage_a_place_are_told_once_a_period_of_each_budget() -> None:
    limits = limits_of("100 tokens a day, guild 100 tokens a month")
    limits.spend(Spent("", 80), NOON, HERE)

    def told(payer: Payer, now: datetime) -> list[bool]:
        return [limits.tells_managers(reached, payer, now) for reached in limits.standing(now, payer)]

    assert [told(HERE, NOON), told(HERE, NOON), told(Payer(8), NOON)] == [[True, True], [False, False], [True, True]]
    later = restarted(limits, "100 tokens a day, guild 100 tokens a month")
    near = later.standing(NOON, HERE)
    assert not any(later.tells_managers(reached, HERE, NOON) for reached in near)
    assert told(HERE, NOON + timedelta(days=1)) == [True, False]


def test_what_several_processes_left_is_added_up_by_day() -> None:
    first, second = limits_of("$1 a month"), limits_of("$1 a month")
    yesterday = NOON - timedelta(days=1)
    for limits, payer, days in ((first, HERE, (yesterday, NOON)), (second, Payer(8), (yesterday,))):
        for day in days:
            limits.spend(Spent("stub", 10), day, payer)
    later = limits_of("$1 a month")
    for each in (second, first, limits_of()):
        later.ledger.restore(json.loads(each.ledger.to_store()()))
        later.restore(json.loads(each.to_store()()))
    assert [one.used for one in later.standing(NOON, NOBODY)] == [30]
    kept_days = [(day, {guild: [f.tokens for f in rows.values()] for guild, rows in kept.guilds.items()})
                 for day, kept in later.ledger.days(2)]  # fmt: skip
    assert kept_days == [(yesterday.date(), {7: [10], 8: [10]}), (NOON.date(), {7: [10]})]
    assert later.ledger.used((Scope.PERSON, ANNA), Period.MONTH) == Amount(20, 20)


def test_what_was_stored_when_tokens_alone_were_counted_counts_on() -> None:
    limits = limits_of("100 tokens a day, guild 60 tokens a day, person 30 tokens a day")
    used: dict[str, JsonValue] = {"tokens": 70, "guilds": {"7": 60}, "people": {str(ANNA): 30}}
    limits.restore({"day": f"{NOON:%Y-%m-%d}", "told_channels": [5], **used})
    assert limits.tokens_today == 70
    assert cap(limits, Payer(7)) == (Cap.GUILD, Period.DAY)
    assert cap(limits, Payer(0, frozenset({ANNA}))) == (Cap.PERSON, Period.DAY)
    guilds = limits.ledger.today.guilds
    assert [[f.unpriced for f in guilds[one].values()] for one in (7, 0)] == [[60], [10]]
    limits.spend(Spent("", 30), NOON)
    refusals = [limits.admit(BEN, channel, explicit=True, now=NOON) for channel in (5, 6)]
    assert [refusal and refusal.announce for refusal in refusals] == [False, True]
    assert limits.reserve(Reserved(NOBODY, Amount(1)), NOON)
