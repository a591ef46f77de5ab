"""More is asked than may be answered at once: the rest waits, is told so, and is answered."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.lives import kill, life
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Body, Reply, StubModel, last_line
from turns import turn_slots
from turns.endings import STOPPED


async def test_the_model_is_never_asked_more_at_once_than_is_allowed_and_all_are_answered(stub: StubModel) -> None:
    gates: dict[str, asyncio.Event] = {}  # by question, as those at once may come in any order
    at_once: list[int] = []

    def hold(body: Body) -> Reply:
        gate = gates[last_line(body)] = asyncio.Event()
        at_once.append(sum(not gate.is_set() for gate in gates.values()))
        return Reply(f"About {last_line(body)}", before=gate)

    stub.default = hold
    async with open_scene(stub, turns_at_once=2) as scene:
        for number in range(5):
            scene.pg.add_channel(f"room-{number}")
        questions = [scene.mention("Ada", f"question {number}", channel=f"room-{number}") for number in range(5)]
        for question in questions:
            await scene.decision(question)
        for number, question in enumerate(questions):
            await scene.until(lambda: len(gates) > min(number + 1, 4))  # noqa: B023 - it is called in this round
            gates[f"@Parley question {number}"].set()
            assert (await scene.answer_to(question)).content == f"About @Parley question {number}"
    assert max(at_once) == 2


@pytest.mark.parametrize("is_stopped", [False, True])
async def test_who_waited_in_the_queue_as_the_bot_was_killed_is_answered_where_their_place_stood(
    stage: Scene, monkeypatch: pytest.MonkeyPatch, *, is_stopped: bool
) -> None:
    monkeypatch.setattr(turn_slots, "TOLD_SECONDS", 0.01)
    async with life(stage, turns_at_once=1):
        stage.held()
        first = stage.mention("Ada", "first?")
        await stage.until(lambda: stage.stub.requests)
        second = stage.mention("Ben", "second?", channel="help")
        place = await stage.shows("number 1 in the queue", "help")
        await kill(stage)
    if is_stopped:
        monkeypatch.setattr(turn_slots, "TOLD_SECONDS", 1e6)
        stage.stub.replies.clear()
        stage.held()
    async with life(stage, turns_at_once=1):
        if is_stopped:
            await stage.until(lambda: stage.bot.turns.is_busy(second.channel_id))
            stage.say("Ben", "stop", channel="help")
            assert await stage.outcome(second) == "stopped"
        else:
            assert (await stage.answer_to(first)).content == "You said: @Parley first?"
        answer = await stage.answer_to(second)
    assert stage.said("help") == [answer]
    assert (answer.id, answer.content) == (place.id, STOPPED if is_stopped else "You said: @Parley second?")


async def test_who_waits_for_their_servers_budget_holds_no_slot_that_another_server_could_have(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_slots, "TOLD_SECONDS", 0.01)
    # What one answer may take is reserved of it, so that only one is made at once.
    async with open_scene(stub, guild_tokens=30_000, turns_at_once=2) as scene:
        for number in range(3):
            scene.pg.add_channel(f"room-{number}")
        gates = [scene.held("Here you are.") for _ in range(2)]
        first = scene.mention("Ada", "one", channel="room-0")
        await scene.until(lambda: len(stub.requests) == 1)
        later = [scene.mention("Ben", f"number {number}", channel=f"room-{number}") for number in (1, 2)]
        await scene.shows(turn_slots.FOR_BUDGET, "room-1")
        slots = scene.bot.parts.slots
        assert (slots.running, len(slots)) == (1, 2)
        elsewhere = scene.pg.channel("general", scene.pg.add_guild("Elsewhere"))
        other = scene.pg.post(elsewhere, scene.pg.person("Chloe"), f"<@{scene.pg.bot_id}> four")
        await scene.until(lambda: len(stub.requests) == 2)
        assert last_line(stub.requests[-1]).endswith("four")
        scene.say("Ben", "stop", channel="room-2")
        await scene.shows(STOPPED, "room-2")
        for gate in gates:
            gate.set()
        for question in (first, other):
            assert (await scene.answer_to(question)).content == "Here you are."
        assert (await scene.answer_to(later[0])).content == "You said: @Parley number 1"
        assert (slots.running, len(slots)) == (0, 0)
        assert not scene.bot.parts.limits._reserved
