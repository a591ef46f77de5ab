"""More is asked than may be answered at once: the rest waits, is told so, and is answered."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.support.lives import kill, life
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Body, Reply, StubModel, last_line
from turns import turn_slots
from turns.endings import STOPPED


async def test_the_model_is_never_asked_more_at_once_than_is_allowed_and_all_are_answered(stub: StubModel) -> None:
    gates: list[asyncio.Event] = []
    at_once: list[int] = []

    def hold(body: Body) -> Reply:
        gates.append(asyncio.Event())
        at_once.append(sum(not gate.is_set() for gate in gates))
        return Reply(f"About {last_line(body)}", before=gates[-1])

    def is_asked(number: int) -> bool:
        return len(gates) > number

    stub.default = hold
    async with open_scene(stub, turns_at_once=2) as scene:
        for number in range(5):
            scene.pg.add_channel(f"room-{number}")
        questions = [scene.mention("Ada", f"question {number}", channel=f"room-{number}") for number in range(5)]
        for question in questions:
            await scene.decision(question)
        for number, question in enumerate(questions):
            await scene.until(partial(is_asked, min(number + 1, 4)))
            gates[number].set()
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
