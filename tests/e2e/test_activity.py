"""What is told of a bot at work: its turns with their tools and calls, and answers that one person alone sees."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from activity import Ending
from persistence.counts import COUNTS, THIS_HOUR
from state.spending import Purpose
from tests.support.clock import FakeClock
from tests.support.lives import life, open_stage
from tests.support.observed import Observed
from tests.support.scene import Scene
from tests.support.stub_model import Call, Reply, StubModel


async def test_a_turn_is_told_with_its_tools_and_what_each_call_used(scene: Scene) -> None:
    scene.bot.parts.activity.watch(observed := Observed())
    wrong = Reply(calls=(Call("made_up_by_the_model", "{}"),))
    scene.stub.replies.extend([Reply(calls=(Call("search_history", '{"words": "tea"}'),)), wrong, Reply("Nothing.")])
    await scene.ask("Ada", "who spoke of tea?")
    await scene.until(lambda: observed.turns)
    (turn,) = observed.turns
    assert (turn.agent, turn.model, turn.tools) == ("general", "openai-chat:stub", ("search_history",))
    assert 0 < (turn.first_text or 0) <= turn.seconds
    assert [(purpose, spent) for _, purpose, spent in observed.calls] == [(Purpose.ANSWER, one) for one in turn.spent]
    assert len(turn.spent) == 3
    assert {payer.guild_id for payer, _, _ in observed.calls} == {scene.pg.guild_id}


async def test_what_is_asked_in_private_is_told_as_well(scene: Scene) -> None:
    scene.bot.parts.activity.watch(observed := Observed())
    scene.stub.replies.append(Reply("I see."))
    made = scene.pg.command(scene.pg.channel("general"), scene.pg.person("Ada"), "ask", {"question": "why?"})
    assert (await scene.pg.reply_to(made)).content == "I see."
    await scene.until(lambda: observed.turns)
    (turn,) = observed.turns
    assert (turn.ending, turn.guild_id, len(turn.spent)) == (Ending.ANSWERED, scene.pg.guild_id, 1)


@pytest.mark.parametrize("is_away", [False, True])
async def test_counts_outlive_a_restart_and_go_with_a_server_that_is_left(
    stub: StubModel, tmp_path: Path, is_away: bool
) -> None:
    async with open_stage(stub, tmp_path / "state", clock=FakeClock()) as stage:
        async with life(stage):
            await stage.ask("Ada", "hello")
            await stage.until(lambda: stage.bot.parts.counts.today().answered)
            here = stage.bot.parts.counts.today(stage.pg.guild_id)
            assert (here.answered, sum(here.answering.values())) == (1, 1)
            assert here.first_text(0.5)
        async with life(stage):
            assert stage.bot.parts.counts.today(stage.pg.guild_id) == here
            if not is_away:
                left = asyncio.ensure_future(stage.bot.wait_for("guild_remove", timeout=10))
                stage.pg.remove_bot()
                await left
                named = "discord.py: on_guild_remove"
                await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == named))
        if is_away:
            stage.pg.remove_bot()
        for _ in range(2):
            async with life(stage):
                assert not stage.bot.parts.counts.today(stage.pg.guild_id).numbers
                assert stage.bot.parts.counts.today().answered == 1


async def test_messages_that_are_ignored_are_counted_without_a_write(stub: StubModel, tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage):
        written: list[str] = []
        touch = stage.bot.snapshots.touch
        stage.bot.snapshots.touch = lambda *of: (written.append(of[0]), touch(*of))  # type: ignore
        await stage.decision(stage.say("Ben", "what a day"))
        clock.advance(120)
        stage.bot.parts.sweep()
        assert stage.bot.parts.counts.today(stage.pg.guild_id).decisions == 1
        assert not written
        await stage.ask("Ada", "hello")
        for _ in range(2):
            stage.bot.parts.sweep()
        assert written.count(THIS_HOUR) == 1
        written.clear()
        clock.advance(3_600)
        await stage.decision(stage.say("Ben", "another day"))
        for _ in range(2):
            stage.bot.parts.sweep()
        assert [kind for kind in written if kind in (THIS_HOUR, COUNTS)] == [
            THIS_HOUR,
            COUNTS,
        ]  # once an hour: a kill costs no more
