"""The gateway fails in all its ways: no answer is lost, none comes twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from playground.server import Playground
from tests.support.clock import FakeClock
from tests.support.lives import life, open_stage
from tests.support.scene import PATIENCE_SECONDS, Scene
from tests.support.stub_model import Reply, StubModel

RESUMABLE: dict[str, Callable[[Playground], None]] = {
    "op 7": lambda pg: pg.reconnect(),
    "op 9 true": lambda pg: pg.invalidate(resumable=True),
    "close 4000": lambda pg: pg.disconnect(4000),
    "close 1001": lambda pg: pg.disconnect(1001),
    "cut": lambda pg: pg.cut(),
}
ALL = RESUMABLE | {"op 9 false": lambda pg: pg.invalidate(resumable=False)}


async def test_what_was_asked_or_deleted_while_it_was_away_is_answered_once_or_gone(scene: Scene) -> None:
    secret = scene.mention("Ada", "my cat is called Tim")
    scene.stub.replies.append(Reply("I see."))
    await scene.answer_to(secret)
    for number, trouble in enumerate(RESUMABLE, start=1):
        RESUMABLE[trouble](scene.pg)
        question = scene.mention("Ada", "are you there?")
        if number == 1:
            scene.pg.delete(secret)
        await scene.answer_to(question)
        await scene.ask("Ben", "which cat?")
        assert "Tim" not in scene.told()
        assert len(scene.said()) == len(scene.stub.requests) == 1 + 2 * number
        assert len(scene.decisions[question.id]) == 1


async def test_trouble_upon_trouble_costs_no_answer(scene: Scene) -> None:
    gate = asyncio.Event()
    scene.stub.default = lambda _: Reply("First words, and the rest.", gate=gate, chunk=12)
    questions = [scene.mention("Ada", "hello", channel=name) for name in ("general", "help", "random")]
    for name in ("general", "help", "random"):
        await scene.streaming(name)
    for trouble in ALL:
        await _go_through(scene, trouble)
    gate.set()
    for question in questions:
        assert (await scene.answer_to(question)).content == "First words, and the rest."
    assert [len(scene.said(name)) for name in ("general", "help", "random")] == [1, 1, 1]


@pytest.mark.parametrize("is_resumed", [True, False])
@pytest.mark.parametrize(("seconds", "is_in_time"), [(60, True), (130, False)])
async def test_a_long_gap_ends_no_conversation_that_somebody_went_on_with_in_time(
    stub: StubModel, tmp_path: Path, seconds: float, is_in_time: bool, is_resumed: bool
) -> None:
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage):
        await stage.ask("Ada", "my cat is called Tim")
        stage.pg.cut()
        while stage.bot.health.is_up():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        if not is_resumed:
            stage.pg._gateway.sessions.clear()
        clock.advance(seconds)
        follow_up = stage.say("Ada", "and what is it called?")
        clock.advance(200 - seconds)
        stage.bot.parts.sweep()
        assert (await stage.decision(follow_up)).respond == is_in_time
        if is_in_time:
            await stage.answer_to(follow_up)
            assert "Tim" in stage.told()


async def test_a_message_that_comes_twice_is_answered_once(scene: Scene) -> None:
    gate = scene.held("Here you are.")
    question = scene.mention("Ada", "hello")
    await scene.until(lambda: scene.stub.requests)
    scene.pg.duplicate(question)
    gate.set()
    await scene.answer_to(question)
    scene.pg.duplicate(question)
    await scene.ask("Ben", "and now?")
    assert len(scene.said()) == len(scene.stub.requests) == 2
    assert len(scene.decisions[question.id]) == 1
    assert scene.told().count("Ada: @Parley hello") == 1


async def test_a_line_that_drops_before_it_is_ready_is_known_to_be_down(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot, before = scene.bot, len(scene.journal.find("ready"))
    bot._connection.guild_ready_timeout = 0.5  # when on_ready comes, whatever became of the line
    connected = bot.wait_for("connect", timeout=PATIENCE_SECONDS)
    scene.pg.invalidate(resumable=False)
    await connected
    monkeypatch.setattr(scene.pg._gateway, "_receive", lambda *_: None)  # nobody is there any more
    dropped = bot.wait_for("disconnect", timeout=PATIENCE_SECONDS)
    scene.pg.cut()
    await dropped
    await scene.until(lambda: len(scene.journal.find("ready")) > before)
    bot.health.tick()
    assert "gateway" in str(bot.health.problem())


async def _go_through(scene: Scene, trouble: str) -> None:
    """Makes the trouble, and waits until the bot is back."""
    back = ("ready", "resumed")
    before = sum(len(scene.journal.find(event)) for event in back)
    ALL[trouble](scene.pg)
    await scene.until(lambda: sum(len(scene.journal.find(event)) for event in back) > before)
