"""Threads: the bot takes part in them as in a channel."""

from __future__ import annotations

from typing import Any

import pytest

from decider import Reason
from tests.support.lives import life
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Reply, StubModel

QUESTION = "what is a good name for a cat?"
FOLLOW_UP = "and for a dog?"


def open_thread(scene: Scene, who: str = "Ada", name: str = "names", *others: str, **how: Any) -> int:
    """A thread that somebody opens in general, with others in it."""
    members = [scene.pg.person(other) for other in others]
    return scene.pg.open_thread(scene.pg.channel("general"), scene.pg.person(who), name, members=members, **how)


@pytest.mark.parametrize("private", [False, True])
async def test_a_mention_and_its_follow_up_are_answered_in_the_thread_across_a_restart(
    stage: Scene, private: bool
) -> None:
    stage.stub.default = lambda _: Reply("Miso.")
    open_thread(stage, "Ada", "names", "Ben", private=private)
    if private:
        stage.pg.add_to_thread(stage.pg.channel("names"), stage.pg.bot_id)
    async with life(stage):
        answer = await stage.ask("Ada", QUESTION, channel="names")
        assert (answer.content, answer.channel_id) == ("Miso.", stage.pg.channel("names"))
    async with life(stage):
        follow_up = stage.say("Ada", FOLLOW_UP, channel="names")
        assert (await stage.decision(follow_up)).respond
        await stage.answer_to(follow_up)
        assert QUESTION in stage.told()
    assert not stage.said("general")


async def test_where_threads_are_off_nothing_in_one_is_answered(stub: StubModel) -> None:
    async with open_scene(stub, threads="off") as scene:
        open_thread(scene)
        scene.mention("Ada", QUESTION, channel="names")
        await scene.ask("Ada", QUESTION)  # behind it
        assert not scene.said("names")


async def test_channels_that_name_a_channel_name_its_threads(stage: Scene) -> None:
    open_thread(stage)
    async with life(stage, channels=frozenset({stage.pg.channel("general")})):
        await stage.ask("Ada", QUESTION, channel="names")
    async with life(stage, channels=frozenset({stage.pg.channel("random")})):
        question = stage.mention("Ada", QUESTION, channel="names")
        assert (await stage.decision(question)).reason is Reason.CHANNEL_NOT_LISTED
