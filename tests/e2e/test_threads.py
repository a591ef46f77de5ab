"""Threads: the bot takes part in them as in a channel."""

from __future__ import annotations

from typing import Any

import pytest

from decider import Reason
from discord_io.actions import CANNOT_READ, READ_BY_FEWER
from tests.e2e.test_asking import tool_results
from tests.e2e.test_who_may_read import call, link
from tests.support.lives import life, on_disk
from tests.support.scene import PATIENCE_SECONDS, Scene, open_scene
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


# Of the bot and one other person


async def test_where_nobody_else_is_everything_is_said_to_it_until_somebody_else_is(stage: Scene) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    open_thread(stage)

    async def reason(who: str, text: str) -> str:
        decision = await stage.decision(stage.say(who, text, channel="names"))
        await stage.at_rest()
        return decision.reason

    async with life(stage):
        assert await reason("Ada", "this is a note to myself") is Reason.NO_TRIGGER  # it is not there yet
        await stage.ask("Ada", QUESTION, channel="names")
        assert await reason("Ada", "my cat is grey, by the way") is Reason.ALONE_TOGETHER
        assert await reason("Ada", "thanks") is Reason.ACKNOWLEDGEMENT
        assert await reason("Ada", f"<@{stage.pg.person('Ben')}> have a look") is Reason.NAMES_OTHERS
    stage.pg.leave_thread(stage.pg.channel("names"), stage.pg.person("Ben"))
    async with life(stage, conversation_timeout_seconds=0.01):
        assert await reason("Ada", "it sleeps all day long") is Reason.ALONE_TOGETHER
        assert (await stage.use("Ada", "why", channel="names")).content.count("only you and I are here") == 1
    async with life(stage):
        await stage.ask("Ada", QUESTION, channel="names")
        assert await reason("Ben", "it is really cold today") is not Reason.ALONE_TOGETHER
        assert await reason("Ada", "yes it really is") is not Reason.ALONE_TOGETHER


@pytest.mark.parametrize("way", ["said something", "was mentioned", "was added", "joined"])
async def test_who_came_later_is_there_in_the_next_conversation_too(stage: Scene, way: str) -> None:
    """Of which Discord does not tell a bot without the members intent."""
    stage.stub.default = lambda _: Reply("I see.")
    thread, ben = open_thread(stage), stage.pg.person("Ben")
    async with life(stage):
        await stage.ask("Ada", QUESTION, channel="names")
        if way == "was added":
            heard = stage.bot.wait_for("message", check=lambda m: not m.content, timeout=PATIENCE_SECONDS)
            stage.pg.add_to_thread(thread, ben, by=stage.pg.person("Ada"))
            await heard
        elif way == "joined":
            heard = stage.bot.wait_for("raw_thread_update", timeout=PATIENCE_SECONDS)
            stage.pg.add_to_thread(thread, ben)
            stage.pg.change_thread(thread, auto_archive_minutes=60)  # what is sent of it tells how many there are
            await heard
        else:
            words = "it is really cold today" if way == "said something" else f"<@{ben}> have a look"
            await stage.decision(stage.say("Ben" if way == "said something" else "Ada", words, channel="names"))
        await stage.at_rest()
        stage.bot.conversations.end(thread)
        decision = await stage.decision(stage.say("Ada", "it is warm where I am", channel="names"))
        assert decision.reason is Reason.NO_TRIGGER


async def test_where_it_was_removed_not_everything_is_said_to_it(stage: Scene) -> None:
    thread = open_thread(stage)
    async with life(stage):
        await stage.ask("Ada", QUESTION, channel="names")
        heard = stage.bot.wait_for("thread_remove", timeout=PATIENCE_SECONDS)
        stage.pg.leave_thread(thread, stage.pg.bot_id, by=stage.pg.person("Ada"))
        await heard
        decision = await stage.decision(stage.say("Ada", "my cat is grey, by the way", channel="names"))
        assert decision.reason is not Reason.ALONE_TOGETHER


# What a thread was begun at


@pytest.mark.parametrize("is_long", [False, True])
async def test_the_model_is_told_what_the_thread_was_begun_at_and_by_whom(stage: Scene, is_long: bool) -> None:
    starter = stage.say("Ben", "the server room is flooded")
    open_thread(stage, "Ada", "flood", message=starter)
    for number in range(25 if is_long else 0):
        stage.say("Ada", f"bucket {number}", channel="flood")
    async with life(stage):
        await stage.ask("Ada", "what do we do?", channel="flood")
        assert "Ben" in stage.told().partition("the server room is flooded")[0].splitlines()[-1]
        await stage.edit(starter, "the kitchen is flooded")
        await stage.ask("Ada", "and now?", channel="flood")
        assert "the kitchen is flooded" in stage.told()
        assert "server room" not in stage.told()
        await stage.delete(starter)
        await stage.ask("Ada", "and then?", channel="flood")
        assert "flooded" not in stage.told()


@pytest.mark.parametrize("is_reply", [False, True])
@pytest.mark.parametrize("ending", ["", "of the conversation", "of the process"])
async def test_an_answer_in_a_thread_goes_with_the_channel_in_which_the_thread_was_begun(
    stage: Scene, ending: str, is_reply: bool
) -> None:
    flooded = "the server room is flooded"
    news = stage.say("Chloe", "any news?")
    thread = open_thread(
        stage, "Ada", "flood", message=stage.say("Ben", flooded, reply_to=news.id if is_reply else None)
    )
    lives = 2 if ending == "of the process" else 1
    for number in range(lives):
        async with life(stage):
            if number == 0:
                stage.stub.replies.append(Reply(f"Ben says that {flooded}."))
                await stage.ask("Ada", "what is it about?", channel="flood")
                if ending == "of the conversation":
                    stage.bot.conversations.end(thread)
            if number == lives - 1:
                await stage.use("Ada", "forget", everything=True)
                await stage.ask("Ada", "and now?", channel="flood")
                assert flooded not in stage.told()
    assert not on_disk(stage.folder, flooded)


async def test_a_thread_begun_at_a_message_that_is_being_answered_is_a_place_of_its_own(stage: Scene) -> None:
    """It has the message's id."""
    async with life(stage):
        gate = stage.held("Miso.")
        question = stage.mention("Ada", QUESTION)
        await stage.until(lambda: stage.stub.requests)
        open_thread(stage, "Ada", "names", message=question)
        await stage.ask("Ben", "and for a dog?", channel="names")
        gate.set()
        assert (await stage.answer_to(question)).content == "Miso."
        assert len(stage.said("names")) == 1
        assert len(stage.said("general")) == 1
