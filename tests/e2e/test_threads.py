"""Threads: the bot takes part in them as in a channel."""

from __future__ import annotations

from typing import Any

import pytest

from decider import Reason
from discord_io.actions import CANNOT_READ, READ_BY_FEWER
from tests.e2e.test_asking import tool_results
from tests.e2e.test_who_may_read import call, link
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


async def test_what_was_asked_in_30_threads_while_it_was_away_is_answered_in_each(stage: Scene) -> None:
    names = [f"thread {number}" for number in range(30)]
    for name in names:
        open_thread(stage, "Ada", name)
    async with life(stage):
        await stage.ask("Ada", QUESTION)
    questions = [stage.mention("Ben", f"{QUESTION} ({name})", channel=name) for name in names]
    async with life(stage, turns_per_user_minute=100):
        for question in questions:
            await stage.answer_to(question)
        assert len(stage.sent("GET", "/messages")) <= 2 * (len(names) + 1)  # what was missed, and what came before it


async def test_a_private_thread_is_read_to_its_members_only(stage: Scene) -> None:
    """Nor is it told in a channel, where others read along; in the thread itself, what all may read is."""
    thread = open_thread(stage, "Ada", "surprise", private=True)
    stage.pg.add_to_thread(thread, stage.pg.bot_id)
    secret = stage.say("Ada", "the party is on Friday", channel="surprise")
    public = stage.say("Chloe", "the weather is fine", channel="random")
    async with life(stage):
        for who, channel, message, told in (
            ("Ben", "general", secret, CANNOT_READ),
            ("Ada", "general", secret, READ_BY_FEWER),
            ("Ada", "surprise", public, "the weather is fine"),
            ("Ada", "surprise", secret, "the party is on Friday"),
        ):
            stage.stub.replies.extend([call("read_message", link=link(stage, message)), Reply("I see.")])
            await stage.ask(who, f"what does {link(stage, message)} say?", channel=channel)
            assert told in tool_results(stage.stub.requests[-1])[-1], (who, channel)
