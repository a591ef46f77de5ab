"""turns/turn_slots.py: so many turns at once, the others in fairness. Time is the event loop's, and skips."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from conversation import MessageRecord
from miniapps.router import UNKNOWN
from place import PlaceKind
from setting_values import BudgetLimit, Period, Scope
from state import budget as budgets
from state.awaiting import Meaning, RouteTarget
from state.budget import Budget
from state.limits import Limits
from tests.support.fake_agent import Script
from tests.support.people import ANNA, BEN, CHANNEL, GUILD, said
from tests.support.turns_bench import Bench, answers, asked
from tests.support.virtual_time import settle, until
from turns.turn import Cancel, Turn
from turns.turn_slots import FOR_BUDGET, LATE_FOR_BUDGET, LATE_SECONDS, TOLD_SECONDS, TurnSlots

pytestmark = pytest.mark.virtual_time

OTHER_GUILD = 77


async def crowd(at_once: int) -> tuple[Bench, Callable[[], None]]:
    """Turns of which each waits at the agent; and what lets the one that has waited there longest end."""
    bench = Bench(at_once=at_once)
    gates = [asyncio.Event() for _ in range(20)]
    bench.script(*(Script(gate=gate) for gate in gates))
    left = iter(gates)
    return bench, lambda: next(left).set()


async def test_no_more_turns_run_at_once_than_are_allowed_and_all_are_answered_the_oldest_first() -> None:
    bench, end_one = await crowd(2)
    for number in range(5):
        bench.ask(ANNA, str(number), channel=number)
    for running in (2, 3, 4, 5):
        await settle()
        assert asked(bench) == [[str(number)] for number in range(running)]
        end_one()
    end_one()
    await bench.idle()
    assert all(bench.wires[number].texts == ["the answer"] for number in range(5))


async def test_a_guild_that_asks_much_leaves_the_next_slot_to_one_that_asks_little() -> None:
    bench, end_one = await crowd(2)
    for number in range(5):
        bench.ask(ANNA, f"many {number}", channel=number)
    await settle()
    bench.ask(ANNA, "few", channel=10, guild=OTHER_GUILD)
    await settle()
    end_one()
    await settle()
    assert asked(bench)[2:] == [["few"]]
    end_one()
    await settle()
    assert asked(bench)[3:] == [["many 2"]]


async def test_a_channel_that_was_answered_stands_behind_the_others_of_its_guild() -> None:
    bench, end_one = await crowd(1)
    bench.ask(ANNA, "first here", channel=1)
    await settle()
    bench.ask(ANNA, "second here", channel=1)
    bench.ask(ANNA, "there", channel=2)
    await settle()
    end_one()
    await until(lambda: len(asked(bench)) == 2)
    assert asked(bench)[-1] == ["there"]


async def test_whoever_waits_is_told_their_place_after_10_seconds_and_after_two_minutes_that_it_takes_long() -> None:
    bench, end_one = await crowd(1)
    for number in range(3):
        bench.ask(ANNA, str(number), channel=number)
    await asyncio.sleep(TOLD_SECONDS - 1)
    assert bench.wires[0].typed
    assert not bench.wires[1].typed
    await asyncio.sleep(2)
    assert "number 2 in the queue" in bench.wires[2].texts[0]
    await asyncio.sleep(LATE_SECONDS - TOLD_SECONDS)
    assert "waited for two minutes" in bench.wires[2].texts[0]
    for _ in range(3):
        await settle()
        end_one()
    await bench.idle()
    assert [wire.texts for wire in bench.wires.values()] == [["the answer"]] * 3


async def test_whoever_says_stop_while_they_wait_leaves_the_queue() -> None:
    bench, end_one = await crowd(1)
    for number in range(3):
        bench.ask(ANNA, str(number), channel=number)
    await settle()
    assert bench.turns.stop(said(ANNA, "stop"), 1)
    end_one()
    await settle()
    assert asked(bench) == [["0"], ["2"]]
    assert bench.wires[1].texts == ["Stopped."]


async def told_their_place() -> tuple[Bench, MessageRecord, Callable[[], None]]:
    """A question that has just been given its slot, where its place in the queue still stands; and what answers it."""
    bench, end_one = await crowd(1)
    bench.ask(ANNA, "before", channel=0)
    question = bench.ask(ANNA, "waits")
    await asyncio.sleep(TOLD_SECONDS + 2)
    end_one()
    await until(lambda: len(asked(bench)) == 2)
    assert "in the queue" in bench.wire.texts[0]
    return bench, question, end_one


async def test_a_place_in_the_queue_is_no_part_of_an_answer_that_is_stopped() -> None:
    bench, _, _ = await told_their_place()
    assert bench.turns.stop(said(ANNA, "stop"), CHANNEL)
    await bench.idle()
    assert bench.wire.texts == ["Stopped."]
    assert answers(bench.history()) == []


@pytest.mark.parametrize("waits_on", [False, True])
async def test_a_question_that_is_edited_while_its_place_in_the_queue_stands_is_asked_anew(*, waits_on: bool) -> None:
    bench, question, end_one = await told_their_place()
    if waits_on:  # which Discord has not taken yet
        turn = bench.turns._queues[CHANNEL].turn
        assert turn
        bench.wire.seconds_per_call = 5
        turn.tell_place(FOR_BUDGET)
        await settle()
    edited = replace(question, content="waits no more")
    bench.turns.reworded(CHANNEL, edited)
    bench.conversations.revise(CHANNEL, edited)
    await until(lambda: len(asked(bench)) == 3)
    end_one()
    end_one()
    await bench.idle()
    assert asked(bench)[-1] == ["waits no more"]
    assert bench.wire.texts == ["the answer"]


async def test_a_question_that_is_edited_keeps_its_place_in_the_queue() -> None:
    bench, end_one = await crowd(1)
    first, second = (bench.ask(ANNA, text, channel=number) for number, text in enumerate(("first", "second")))
    bench.ask(ANNA, "third", channel=2)
    bench.ask(ANNA, "fourth", channel=3)
    await settle()
    for channel, question in ((1, second), (0, first)):  # as it waits, and as it is answered
        edited = replace(question, content=f"{question.content}, edited")
        bench.turns.reworded(channel, edited)
        bench.conversations.revise(channel, edited)
    end_one()  # which is the one that was taken back
    for _ in range(4):
        await settle()
        end_one()
    await bench.idle()
    words = [["first"], ["second, edited"], ["first, edited"], ["third"], ["fourth"]]
    assert asked(bench) == words


async def test_a_turn_that_ends_at_the_moment_of_its_slot_leaves_that_to_the_next() -> None:
    bench, end_one = await crowd(1)
    for number in range(3):
        bench.ask(ANNA, str(number), channel=number)
    await settle()
    end_one()
    turn = bench.turns._queues[1].turn
    assert turn
    await until(lambda: len(bench.slots) == 1)  # it has been given its slot, and has not taken it yet
    assert len(asked(bench)) == 1
    turn.end(Cancel.STOPPED)
    await settle()
    assert asked(bench) == [["0"], ["2"]]


async def test_a_mini_app_which_asks_no_model_waits_for_nobody() -> None:
    bench, _ = await crowd(1)
    bench.ask(ANNA, "what?", channel=1)
    await settle()
    question = bench.question(bench.say(ANNA, "my trips"))
    meaning = Meaning(RouteTarget.MINIAPP, miniapp_id="none", query="my trips")
    bench.turns.submit(replace(question, meaning=meaning))
    await settle()
    assert bench.wires[CHANNEL].texts == [UNKNOWN]


async def test_whoever_waited_behind_another_turn_of_their_channel_is_told_two_minutes_after_they_asked() -> None:
    bench, end_one = await crowd(1)
    bench.ask(ANNA, "first", channel=0)
    await settle()
    for channel in (1, 0, 2):
        bench.ask(ANNA, f"more in {channel}", channel=channel)
    await asyncio.sleep(LATE_SECONDS - 2 * TOLD_SECONDS)
    end_one()
    await until(lambda: len(asked(bench)) == 2)
    assert not bench.wires[0].texts[1:]
    await asyncio.sleep(TOLD_SECONDS + 1)
    assert "in the queue" in bench.wires[0].texts[1]
    await asyncio.sleep(TOLD_SECONDS)
    assert "waited for two minutes" in bench.wires[0].texts[1]


async def test_turns_that_wait_for_their_guilds_budget_leave_slots_to_others_and_are_told_so() -> None:
    bench, slots, ends = Bench(), TurnSlots(3), list[int]()
    budget = Budget(Limits(turns_per_user_minute=9, daily_tokens=None, guild_tokens=1_000), bench.clock)

    async def make(turn: Turn) -> None:
        async with slots.taken(turn):
            await turn.allowance.reserve(600)  # so that one runs at once
            await asyncio.sleep(100)
            turn.allowance.settle(10)
            ends.append(round(asyncio.get_running_loop().time()))

    def begin(channel: int, guild: int) -> Turn:
        turn = Turn([bench.question(bench.say(ANNA, "what?", channel=channel), channel, guild=guild)])
        turn.allowance = budget.allowance(turn.payer)
        making.append(asyncio.create_task(make(turn)))
        return turn

    making: list[asyncio.Task[None]] = []
    turns = [begin(channel, GUILD) for channel in range(5)]
    await settle()
    assert (slots.running, len(slots)) == (1, 4)
    turns.append(begin(7, OTHER_GUILD))
    await asyncio.sleep(TOLD_SECONDS + 1)
    stages = ["", *[FOR_BUDGET] * 4, ""]
    assert [turn.stage for turn in turns] == stages
    assert (slots.running, len(slots)) == (2, 4)
    await asyncio.sleep(LATE_SECONDS)
    assert [turns[2].stage, turns[4].stage] == [LATE_FOR_BUDGET] * 2
    making[2].cancel()
    await asyncio.wait(making)
    assert ends == [100, 100, 200, 300, 400]
    assert (slots.running, len(slots)) == (0, 0)
    assert not slots._begun


@pytest.mark.parametrize("scope", [Scope.CHANNEL, Scope.PERSON])
async def test_turns_that_wait_for_the_budget_of_one_channel_or_person_hold_up_no_others_of_the_guild(
    monkeypatch: pytest.MonkeyPatch, scope: Scope
) -> None:
    monkeypatch.setattr(budgets, "OWN_SECONDS", 1_000)
    bench, slots, begun = Bench(), TurnSlots(3), list[int]()
    limit = BudgetLimit(1_000, Period.DAY, scope)
    budget = Budget(Limits(turns_per_user_minute=9, daily_tokens=None, budgets=[limit]), bench.clock)

    async def make(turn: Turn, thread: int) -> None:
        async with slots.taken(turn):
            await turn.allowance.reserve(600)  # so that one of a channel, or person, runs at once
            begun.append(thread)
            await asyncio.sleep(100)
            turn.allowance.settle(10)

    def begin(thread: int, channel: int, who: int) -> asyncio.Task[None]:
        question = bench.question(bench.say(who, "what?", channel=thread), thread)
        place = replace(question.place, parent_id=channel, kind=PlaceKind.THREAD)
        turn = Turn([replace(question, place=place)])
        turn.allowance = budget.allowance(turn.payer)
        return asyncio.create_task(make(turn, thread))

    making = [begin(thread, CHANNEL, ANNA) for thread in range(1, 9)]
    await settle()
    making.append(begin(9, CHANNEL + 1, ANNA) if scope is Scope.CHANNEL else begin(9, CHANNEL, BEN))
    await settle()
    assert begun == [1, 9]
    assert slots.running == 2
    await asyncio.wait(making)
    assert begun == [1, 9, 2, 3, 4, 5, 6, 7, 8]
    assert [*slots._begun, *slots._short, *slots._turns, *slots._waiting] == []


async def test_turns_of_a_channel_go_on_as_soon_as_none_of_it_waits_for_its_budget() -> None:
    bench, slots, begun, goes_on = Bench(), TurnSlots(3), list[int](), asyncio.Event()
    budget = Budget(Limits(turns_per_user_minute=9, daily_tokens=None), bench.clock)

    async def make(turn: Turn, channel: int) -> None:
        async with slots.taken(turn):
            begun.append(channel)
            if len(begun) <= 3 and turn.allowance.slot:
                turn.allowance.slot.leave([])
                await (goes_on if channel == CHANNEL else asyncio.Event()).wait()
                await turn.allowance.slot.take()
            await asyncio.Event().wait()

    making = []
    for channel in (CHANNEL, CHANNEL + 1, CHANNEL + 2, CHANNEL):
        turn = Turn([bench.question(bench.say(ANNA, "what?", channel=channel), channel)])
        turn.allowance = budget.allowance(turn.payer)
        making.append(asyncio.create_task(make(turn, channel)))
        await settle()
    assert (len(begun), slots.running) == (3, 0)
    goes_on.set()
    await settle()
    assert (begun[3:], slots.running) == ([CHANNEL], 2)
    for one in making:
        one.cancel()
    await asyncio.wait(making)
    assert [*slots._begun, *slots._short, *slots._turns, *slots._waiting, *slots._taken] == []
