"""turns/turn_slots.py with state/budget.py: who waits for a budget holds no slot. Time is the loop's, and skips."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from state.budget import LOOK_AT_ONCE, Budget
from state.limits import Limits
from tests.support.people import ANNA
from tests.support.turns_bench import Bench
from tests.support.virtual_time import settle
from turns.turn import Turn
from turns.turn_slots import TurnSlots

pytestmark = pytest.mark.virtual_time

A_GUILD, OTHER, THIRD, DIRECT = 1, 2, 3, 0
BUDGET = 1_000_000  # tokens; the calls here reserve much of it, and use nearly nothing
MOST = 600_000  # of a call, so that there is budget for one at once


class Turns:
    """Turns of several guilds, each in a channel of its own."""

    def __init__(self, at_once: int, *, total: int | None = None) -> None:
        self._bench = Bench()
        self.slots = TurnSlots(at_once)
        self.limits = Limits(turns_per_user_minute=9, daily_tokens=total, guild_tokens=BUDGET)
        self._budget = Budget(self.limits, self._bench.clock)
        self.calling = 0
        self.ends: list[tuple[int, float]] = []  # guilds and times
        self._channels = 0

    def turn(self, guild: int) -> Turn:
        self._channels += 1
        message = self._bench.say(ANNA, "what?", channel=self._channels)
        turn = Turn([self._bench.question(message, self._channels, guild=guild)])
        turn.allowance = self._budget.allowance(turn.payer)
        return turn

    def begin(self, turn: Turn, *calls: tuple[int, float], prepares: float = 0) -> asyncio.Task[None]:
        """calls: the tokens that each reserves, and the seconds that it takes."""
        return asyncio.create_task(self._make(turn, calls, prepares))

    async def _make(self, turn: Turn, calls: tuple[tuple[int, float], ...], prepares: float) -> None:
        try:
            async with self.slots.taken(turn):
                await asyncio.sleep(prepares)
                for tokens, seconds in calls:
                    assert await turn.allowance.reserve(tokens) is None
                    self.calling += 1
                    try:
                        assert self.calling <= self.slots.running <= self.slots._at_once
                        await asyncio.sleep(seconds)
                    finally:
                        self.calling -= 1
        finally:
            turn.allowance.settle(1)
        self.ends.append((turn.newest.guild_id, asyncio.get_running_loop().time()))

    def are_over(self) -> bool:
        """Whether nothing is left of them."""
        counts = self.slots.running, len(self.slots), self.slots._begun, self.slots._taken, self.slots._waiting
        return not any((*counts, self.limits._reserved, self.limits._calls))


async def test_a_guild_that_waits_for_its_budget_comes_before_those_with_more_answers_in_progress() -> None:
    turns = Turns(5)
    making = [turns.begin(turns.turn(A_GUILD), (MOST, 10)) for _ in range(5)]
    await settle()
    for _ in range(15):
        making += [turns.begin(turns.turn(guild), (1_000, 15)) for guild in (OTHER, THIRD)]
    await asyncio.wait(making)
    assert [end for guild, end in turns.ends if guild == A_GUILD] == [10, 25, 40, 55, 70]
    assert turns.are_over()


async def test_a_turn_begun_anew_waits_behind_one_that_has_the_budget_which_it_needs() -> None:
    turns = Turns(2)
    anew = turns.turn(A_GUILD)
    calling, *making = [turns.begin(turn, (MOST, 1)) for turn in (anew, turns.turn(A_GUILD))]
    await settle()
    making += [turns.begin(turns.turn(guild), (MOST, 1)) for guild in (OTHER, A_GUILD)]  # the last waits for a slot,
    await settle()
    calling.cancel()  # and has it now; the second has its budget, and waits for a slot
    making.append(turns.begin(anew, (MOST, 1)))
    assert not (await asyncio.wait(making, timeout=100))[1]
    assert turns.are_over()


async def test_of_many_that_wait_for_a_budget_only_a_few_look_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, rounds = Turns(2, total=BUDGET), [0]
    reserve = turns.limits.reserve

    def look(*call: Any) -> bool:
        rounds[-1] += 1
        return reserve(*call)

    monkeypatch.setattr(turns.limits, "reserve", look)
    making = [turns.begin(turns.turn(guild), (MOST, 1)) for guild in range(1, 501)]
    await asyncio.sleep(0.5)
    rounds[:] = [0]
    await asyncio.sleep(0.4)
    making[0].cancel()
    for _ in range(100):
        await asyncio.sleep(0)
        rounds.append(0)
    assert sum(rounds) >= 499  # all of them, and the one that it allows goes on
    assert turns.calling == 1
    assert max(rounds) <= LOOK_AT_ONCE
    for task in making:
        task.cancel()
    await asyncio.wait(making)
    assert turns.are_over()


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_is_cancelled_or_begun_anew_all_turns_end_and_nothing_stays_taken(seed: int) -> None:
    random = Random(seed)
    turns = Turns(random.randint(1, 4), total=random.choice([None, 3 * BUDGET]))

    async def live(turn: Turn) -> None:
        for _ in range(random.choice([1, 1, 2, 3])):
            calls = [(random.choice([MOST // 2, MOST, 2 * BUDGET]), random.choice([0, 1, 5])) for _ in range(2)]
            making = turns.begin(turn, *calls, prepares=random.choice([0, 1]))
            if random.random() < 0.5:
                await asyncio.wait([making], timeout=random.choice([0, 1, 2, 5, 10]))
                await settle(random.randint(0, 4))
                making.cancel()
            await asyncio.wait([making])
            assert making.cancelled() or making.exception() is None

    lives = []
    for _ in range(40):
        guild = random.choice([A_GUILD, A_GUILD, A_GUILD, OTHER, DIRECT])
        lives.append(asyncio.create_task(live(turns.turn(guild))))
        await asyncio.sleep(random.choice([0, 0, 0, 1]))
    _, left = await asyncio.wait(lives, timeout=10_000)
    assert not left
    await asyncio.gather(*lives)
    assert turns.are_over()
