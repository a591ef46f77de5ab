"""cluster/accounts.py: what several processes use of budgets together, against a real Redis."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from cluster import accounts
from cluster.accounts import KEYS, Accounts
from cluster.connection import Cluster
from commands.usage import Usage
from persistence.spending import LimitsHolder
from setting_values import Period, Scope, budget_limits
from state import budget as state_budget
from state.budget import Budget
from state.ledger import Ledger
from state.limits import Cap, Limits
from state.prices import Rates
from state.spending import NOBODY, Amount, Payer, Purpose, Reserved, Spent
from tests.support.clock import NOON, FakeClock
from tests.support.people import ANNA, BEN

ONE = {"stub": Rates.model_validate({"input": 1, "output": 2})}
ALL = (Scope.TOTAL, 0)
HERE, THERE = Payer(7, frozenset({ANNA}), channel_id=70), Payer(8, frozenset({ANNA}), channel_id=80)


@pytest.fixture
def url(redis_url: str) -> str:
    """Of an empty Redis."""
    with redis.Redis.from_url(own := f"{redis_url}?db=2") as client:
        client.flushdb()
    return own


class Process:
    """What one process has of budgets. seconds: its monotonic clock."""

    def __init__(self, url: str, budgets: str, clock: FakeClock | None = None) -> None:
        self.clock, self.seconds = clock or FakeClock(), 0.0
        self.cluster, self.budgets = Cluster(url), budget_limits(budgets)
        self.begin()

    def begin(self) -> None:
        """As where the bot is made."""
        self.ledger = Ledger()
        self.accounts = Accounts(self.cluster, self.ledger, lambda: self.seconds)
        self.limits = Limits(
            turns_per_user_minute=99,
            daily_tokens=None,
            budgets=self.budgets,
            prices=ONE,
            ledger=self.ledger,
            totals=self.accounts,
        )
        self.budget = Budget(self.limits, self.clock, shared=self.accounts)
        self.open: list[Reserved] = []
        self.asking: set[asyncio.Task[bool]] = set()

    async def redis(self) -> Amount:
        """What all are charged today, as Redis has it."""
        found: Any = await self.cluster.redis.hgetall(f"parley:cluster:charged:{self.clock():%Y-%m-%d}")
        return Amount(int(found.get("total:0:tokens", 0)), int(found.get("total:0:money", 0)))

    async def reserved(self) -> dict[str, str]:
        found: Any = await self.cluster.redis.hgetall(KEYS[0])
        return found  # type: ignore[no-any-return]

    def known(self, payer: Payer = NOBODY) -> list[int]:
        return [one.used for one in self.limits.standing(self.clock(), payer)]


Start = Callable[[str], Process]


@pytest.fixture
async def start(url: str) -> AsyncIterator[Start]:
    """Starts a process with these budgets."""
    started: list[Process] = []

    def start_one(budgets: str = "100 tokens a day") -> Process:
        started.append(Process(url, budgets))
        return started[-1]

    yield start_one
    for process in started:
        await process.cluster.close()


class Line:
    """A process' way to the script, which breaks where it is told to: before Redis has heard, or before it answers."""

    def __init__(self, process: Process) -> None:
        self._script, self.breaks = process.accounts._script, ""
        process.accounts._script = self  # type: ignore[assignment]

    async def __call__(self, keys: list[str], args: list[bytes]) -> Any:
        breaks, self.breaks = self.breaks, ""
        answer = None if breaks == "before" else await self._script(keys, args)
        if breaks:
            raise redis.ConnectionError("reset")
        return answer


@asynccontextmanager
async def running(*processes: Process) -> AsyncIterator[None]:
    keeping = [asyncio.create_task(process.accounts.keep()) for process in processes]
    try:
        yield
    finally:
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
        for process in processes:
            await process.accounts.close()


@pytest.mark.parametrize("day", [1, 15, 31])
async def test_charges_are_kept_in_redis_until_soon_after_their_day_or_month(start: Start, day: int) -> None:
    process = start("100 tokens a day, 1000 tokens a month")
    process.clock.now = process.clock.now.replace(day=day)
    async with running(process):
        process.budget.settle(None, Spent("stub", 10, 10), HERE, Purpose.ANSWER)
    for period, name in ((Period.DAY, f"{process.clock():%Y-%m-%d}"), (Period.MONTH, f"{process.clock():%Y-%m}")):
        seconds = await process.cluster.redis.ttl(f"parley:cluster:charged:{name}")
        left = period.end(process.clock()) - process.clock()
        assert left < timedelta(seconds=seconds) <= left + timedelta(days=2)


async def test_calls_of_all_processes_do_not_pass_a_budget_together(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_budget, "LOOK_AGAIN_SECONDS", 0.01)
    processes = [start("$0.001 a day") for _ in range(3)]  # 1,000 micro-dollars
    caps: list[Cap | None] = []

    async def turn(process: Process, number: int) -> None:
        allowance = process.budget.allowance(Payer(7, frozenset({number}), channel_id=number))
        caps.append(await allowance.reserve(110, output=100, models=("stub",)))  # 210 micro-dollars at most
        if caps[-1] is None:
            await asyncio.sleep(0)
            allowance.count(60, Spent("stub", 10, 50))  # 110
            allowance.settle(60, is_answer=True)

    async with running(*processes):
        await asyncio.gather(*(turn(process, n) for n in range(1, 31) for process in processes))
        assert (caps.count(None), caps.count(Cap.TOTAL)) == (10, 80)
    assert sum(p.ledger.used(ALL, Period.DAY).micros for p in processes) == 1_100


def asked(payer: Payer = NOBODY, tokens: int = 60) -> Reserved:
    return Reserved(payer, Amount(tokens, tokens), models=("stub",))


async def used(process: Process, call: Reserved, tokens: int) -> None:
    process.budget.settle(call, Spent("stub", tokens), call.payer, Purpose.ANSWER)
    await process.accounts.send()


async def reserve(process: Process, call: Reserved) -> bool:
    asking = asyncio.create_task(process.budget.reserve(call))
    await asyncio.sleep(0)
    assert await process.accounts.send()
    return await asking is None


async def test_a_process_sees_within_two_seconds_what_another_used_of_the_same_budgets(start: Start) -> None:
    one, other = (start("100 tokens a day, person 90 tokens a month") for _ in range(2))
    assert one.known(THERE) == other.known(HERE) == [0, 0]
    call = asked(HERE)
    assert await reserve(one, call)
    assert not await reserve(other, asked(THERE))
    await used(one, call, 50)
    assert one.known(THERE) == [50, 50]
    other.seconds += 2
    assert await other.accounts.send()
    assert other.known(HERE) == [50, 50]
    call = asked(THERE)
    assert await reserve(other, call)
    assert other.limits.reached(other.clock(), THERE) is None
    await used(other, call, 40)
    reached = other.limits.reached(other.clock(), HERE)
    assert reached
    assert reached.cap is Cap.PERSON
    assert await one.redis() == (90, 90)
    assert one.ledger.used(ALL, Period.DAY).tokens == 50
    for process in (one, other):
        process.clock.advance(24 * 3_600)
    assert (one.known(HERE)[0], other.known(HERE)[0]) == (0, 0)


async def test_what_is_left_is_told_of_accounts_that_nobody_asked_for_before(start: Start) -> None:
    one, other = start("100 tokens a day"), start("100 tokens a day")
    async with running(one, other):
        call = asked(HERE)
        assert await one.budget.reserve(call) is None
        one.budget.settle(call, Spent("stub", 50), HERE, Purpose.ANSWER)
        await one.accounts.known()
        assert [reached.used for reached in await other.limits.looked_up(other.clock(), HERE)] == [50]
        assert other.limits.by_all(other.clock()) == (50, 0)
        await other.accounts.known()
        assert other.limits.by_all(other.clock()) == (50, 50)
        said = await Usage(other.limits, other.clock).mine(ANNA)
        assert isinstance(said, str)
        assert "All together: today $0.00005, 50 tokens; this month $0.00005, 50 tokens" in said


async def test_what_a_killed_process_had_reserved_is_charged_once_by_whoever_comes_next(start: Start) -> None:
    killed, one, other = (start("100 tokens a day") for _ in range(3))
    assert await reserve(killed, asked(HERE))
    for process in (one, other):
        await process.accounts.send()
        process.seconds += 14
        await process.accounts.send()
    await killed.cluster.redis.zadd(KEYS[1], {killed.accounts._name: 1})
    await one.accounts.send()
    assert await one.redis() == (0, 0)  # it may not have had the time to be heard of since Redis was away
    for process in (one, other):
        process.seconds += 1
        await process.accounts.send()
    assert await one.redis() == (60, 60)
    assert await one.reserved() == {}
    late = [*killed.limits._calls]
    await used(killed, late[0], 20)  # it was not gone after all
    assert await one.redis() == (60, 60)


async def test_a_redis_that_has_lost_its_data_is_told_anew_what_was_used_and_reserved(start: Start) -> None:
    one, other = (start("100 tokens a day") for _ in range(2))
    for process in (one, other):
        call = asked(HERE, 20)
        assert await reserve(process, call)
        await used(process, call, 20)
    waits = asked(HERE, 30)
    assert await reserve(one, waits)
    await one.cluster.redis.flushdb()
    for process in (one, other):
        await process.accounts.send()
    assert await one.redis() == (40, 40)
    assert not await reserve(other, asked(THERE, 31))
    await used(one, waits, 30)
    assert await one.redis() == (70, 70)


async def test_once_redis_has_lost_its_data_nothing_is_reserved_before_all_have_told_it_what_they_hold(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "BEAT_SECONDS", 0.2)
    one, other = (start("100 tokens a day") for _ in range(2))
    held = asked(HERE, 60)
    assert await reserve(one, held)
    await other.accounts.send()
    script, is_told = other.accounts._script, asyncio.Event()

    async def noting(keys: list[str], args: list[bytes]) -> Any:
        if answer := await script(keys, args):
            is_told.set()
        return answer

    async with running(other):
        await other.accounts.known()
        other.accounts._script = noting  # type: ignore[assignment]
        await one.cluster.redis.flushdb()
        asking = asyncio.create_task(other.budget.reserve(asked(THERE, 60)))
        await is_told.wait()
        assert await one.accounts.send()
        assert await asking is not None
    assert (await one.reserved())["total:0:tokens"] == "60"


async def test_at_midnight_by_clocks_that_differ_each_day_has_its_budget_once(start: Start) -> None:
    early, late = (start("100 tokens a day") for _ in range(2))
    midnight = NOON.replace(hour=0) + timedelta(days=1)
    early.clock.now, late.clock.now = midnight + timedelta(seconds=30), midnight - timedelta(seconds=30)

    async def spend(process: Process, tokens: int) -> bool:
        call = asked(HERE, tokens)
        if process.limits.reached(process.clock(), HERE) or not await reserve(process, call):
            return False
        await used(process, call, tokens)
        return True

    assert [await spend(process, 60) for process in (late, early, late, early)] == [True] * 4
    assert [await spend(process, 60) for process in (late, early)] == [False] * 2  # neither day has anything left
    assert [(await process.redis()).tokens for process in (late, early)] == [120, 120]
    late.clock.advance(60)
    assert not await spend(late, 60)  # nor has the day that was new to the other a minute ago
    assert [(await process.redis()).tokens for process in (late, early)] == [120, 120]


def stored_of(limits: Limits) -> tuple[JsonValue, JsonValue]:
    return json.loads(limits.to_store()()), json.loads(limits.ledger.to_store()())


async def test_what_a_process_alone_had_used_counts_on_when_others_come_and_once(start: Start) -> None:
    alone = Limits(turns_per_user_minute=99, daily_tokens=None)
    alone.spend(Spent("stub", 50, micros=50), NOON - timedelta(days=1), HERE)
    alone.spend(Spent("stub", 60, micros=60), NOON, HERE)
    stored = stored_of(alone)
    for charged in (60, 60):
        process = start("100 tokens a day, 200 tokens a month")
        process.ledger.restore(stored[1])
        LimitsHolder(process.limits, process.accounts).restore(0, stored[0])
        await process.accounts.send()
        assert (await process.redis()).tokens == charged
        assert process.known() == [60, 110]
        stored = stored_of(process.limits)


async def test_what_several_had_used_before_one_alone_went_on_is_not_charged_again(start: Start) -> None:
    shared, killed = start("100 tokens a day"), start("100 tokens a day")
    call = asked(HERE, 20)
    assert await reserve(shared, call)
    await used(shared, call, 20)
    assert await reserve(killed, asked(HERE, 7))
    rows = [stored_of(process.limits) for process in (shared, killed)]
    alone = Limits(turns_per_user_minute=99, daily_tokens=None, prices=ONE)
    for today, days in rows:
        alone.ledger.restore(days)
        alone.restore(today)
    alone.spend(Spent("stub", 40, micros=40), NOON, HERE)
    await killed.cluster.redis.zadd(KEYS[1], {killed.accounts._name: 1})
    stored = stored_of(alone)
    for _ in range(2):  # the second was killed before it had stored that it is one of several
        process = start("100 tokens a day, 200 tokens a month")
        process.ledger.restore(stored[1])
        LimitsHolder(process.limits, process.accounts).restore(0, stored[0])
        await process.accounts.send()
        assert await process.redis() == (67, 67)
        assert process.known() == [67, 67]


async def test_what_a_connection_breaks_off_is_charged_once(start: Start) -> None:
    process = start("100 tokens a day")
    line, total = Line(process), 0
    for breaks in ("before", "after"):
        call, total = asked(HERE, 20), total + 10
        assert await reserve(process, call)
        line.breaks = breaks
        await used(process, call, 10)
        assert process.known() == [total]
        assert await process.accounts.send()
        assert (process.known(), await process.redis()) == ([total], (total, total))


async def test_whoever_is_answered_by_another_process_holds_up_no_channel_and_nobody_who_asks_with_them(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_budget, "LOOK_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(state_budget, "OWN_SECONDS", 0.1)
    one, other = (start("1000 tokens a day, person 100 tokens a day") for _ in range(2))
    async with running(one, other), asyncio.timeout(5):
        assert await one.budget.allowance(HERE).reserve(90, models=("stub",)) is None
        assert await other.budget.allowance(THERE).reserve(40, models=("stub",)) is Cap.OWN
        both = replace(THERE, people=frozenset({ANNA, BEN}))
        assert await other.budget.allowance(both).reserve(40, models=("stub",)) is None


async def test_a_call_that_cannot_be_reserved_in_time_is_refused_and_reserves_nothing_later(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "RESERVE_SECONDS", 0.01)
    process = start("100 tokens a day")
    line = Line(process)
    for breaks in ("before", "after"):
        line.breaks = breaks
        asking = asyncio.create_task(process.budget.allowance(HERE).reserve(60, models=("stub",)))
        await asyncio.sleep(0)
        assert not await process.accounts.send()
        assert await asking is Cap.UNKNOWN
        assert await process.budget.purse(Purpose.JUDGE).call(10, 5, ("stub",)) is None
        assert await process.accounts.send()
        assert await process.accounts.send()
        assert (await process.reserved(), process.limits._calls) == ({}, {})


async def test_a_bot_that_is_made_anew_in_its_process_goes_on_charging(start: Start) -> None:
    process = start("100 tokens a day")
    for total in (20, 40):
        async with running(process):
            call = asked(HERE, 20)
            assert await process.budget.reserve(call) is None
            process.budget.settle(call, Spent("stub", 20), HERE, Purpose.ANSWER)
        assert (await process.redis()).tokens == total
        process.begin()


async def test_a_call_that_has_not_ended_when_a_process_leaves_is_charged_as_interrupted(start: Start) -> None:
    process = start("100 tokens a day")
    async with running(process):
        assert await process.budget.reserve(asked(HERE)) is None
        observer = start("off")
    assert (await observer.redis(), await observer.reserved()) == ((60, 60), {})


# What is true however it goes

CAP, LEAST, MOST = 120, 25, 40  # tokens
PAYERS = (HERE, THERE, Payer(0, frozenset({BEN})))


@dataclass
class Made:
    """A call that was made. used: when it has ended."""

    call: Reserved
    used: int | None = None


class Life:
    """A process, which a kill may end at any point. was_gone: others took it to be gone."""

    def __init__(self, url: str) -> None:
        self.process = Process(url, f"{CAP} tokens a day")
        self.line = Line(self.process)
        self.was_gone = False
        self.asked = list[Reserved]()
        self.made = list[Made]()
        self.asking = list[asyncio.Task[None]]()

    async def ask(self, payer: Payer, tokens: int) -> None:
        call = Reserved(payer, Amount(tokens))
        self.asked.append(call)

        async def make() -> None:
            if self.process.budget.reached(payer) is None and await self.process.budget.reserve(call) is None:
                self.made.append(Made(call))

        self.asking.append(asyncio.create_task(make()))
        await asyncio.sleep(0)

    async def send(self, breaks: str) -> None:
        self.line.breaks = breaks
        await self.process.accounts.send()
        for _ in range(3):
            await asyncio.sleep(0)

    async def end(self, which: int, share: float) -> None:
        if running := [made for made in self.made if made.used is None]:
            made = running[which % len(running)]
            made.used = round(made.call.amount.tokens * share)
            payer = made.call.payer
            self.process.budget.settle(made.call, Spent(tokens_in=made.used), payer, Purpose.ANSWER)

    async def unheard(self) -> None:
        """As if nothing had been heard of it for long."""
        await self.process.cluster.redis.zadd(KEYS[1], {self.process.accounts._name: 1}, xx=True)

    def kill(self) -> None:
        for task in self.asking:
            task.cancel()

    async def bring_to_an_end(self) -> None:
        for _ in range(2):
            self.process.seconds += 100
            await self.send("")
        for _ in self.made:
            await self.end(0, 0.5)
        await self.send("")

    @property
    def least(self) -> int:
        """What it is to be charged at least: what it used, and all of what had not ended."""
        return sum(made.call.amount.tokens if made.used is None else made.used for made in self.made)

    def most(self, *, is_killed: bool) -> int:
        """The same at most: of a process that is gone nobody may know which calls it made."""
        if not (is_killed or self.was_gone):
            return self.least
        return sum(call.amount.tokens for call in self.asked)


WHICH = st.integers(0, 1)
STEPS = st.one_of(
    ASK := st.tuples(st.just("ask"), WHICH, st.sampled_from(PAYERS), st.integers(LEAST, MOST)),
    ASK,
    SEND := st.tuples(st.just("send"), WHICH, st.sampled_from(["", "", "", "before", "after"])),
    SEND,
    st.tuples(st.just("end"), WHICH, st.integers(0, 9), st.floats(0.1, 1)),
    st.tuples(st.just("kill"), WHICH),
    st.tuples(st.just("miss"), WHICH),
)


@pytest.mark.slow
@given(st.lists(STEPS, min_size=20, max_size=60))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_interleaving_passes_a_cap_nor_loses_or_doubles_a_charge(url: str, steps: list[tuple[Any, ...]]) -> None:
    asyncio.run(interleaved(url, steps))


async def interleaved(url: str, steps: list[tuple[Any, ...]]) -> None:
    lives, killed = [Life(url) for _ in range(2)], list[Life]()
    observer = Process(url, "off")
    await observer.cluster.redis.flushdb()
    for what, which, *rest in steps:
        life = lives[which]
        if what == "kill":
            life.kill()
            killed.append(life)
            lives[which] = Life(url)
        elif what == "miss":
            await life.unheard()
            life.was_gone = True
            for other in lives:
                other.process.seconds += 100
        else:
            await getattr(life, what)(*rest)
        charged, held = (await observer.redis()).tokens, int((await observer.reserved()).get("total:0:tokens", 0))
        assert charged + held <= CAP or (held <= MOST and charged < CAP + MOST)
    for life in killed:
        await life.unheard()
    for life in lives:  # what is under way comes to its end, and everybody looks for whoever is gone
        await life.bring_to_an_end()
    charged, most = (await observer.redis()).tokens, sum(life.most(is_killed=True) for life in killed)
    assert sum(life.least for life in (*lives, *killed)) <= charged
    assert charged <= most + sum(life.most(is_killed=False) for life in lives)
    assert await observer.reserved() == {}
    assert [life.process.ledger.used(ALL, Period.DAY).tokens for life in lives] == [life.least for life in lives]
    for process in (observer, *(life.process for life in (*lives, *killed))):
        await process.cluster.close()
