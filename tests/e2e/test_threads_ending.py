"""Threads that are archived, locked, deleted or closed to the bot: while it answers, and before."""

from __future__ import annotations

import pytest

from decider import Reason
from tests.e2e.test_threads import FOLLOW_UP, QUESTION, open_thread
from tests.support.lives import in_snapshots, life, on_disk
from tests.support.scene import PATIENCE_SECONDS, Scene
from turns.endings import NOT_ALLOWED


async def test_an_answer_goes_on_in_a_thread_that_is_archived_meanwhile(scene: Scene) -> None:
    """Discord takes no edit there; what is posted unarchives it."""
    thread = open_thread(scene)
    gate = scene.halted("First words, and all the rest of it.")
    question = scene.mention("Ada", QUESTION, channel="names")
    await scene.streaming("names")
    scene.pg.change_thread(thread, archived=True)
    gate.set()
    assert (await scene.answer_to(question)).content == "First words, and all the rest of it."
    assert await scene.outcome(question) == "answered"


async def test_a_question_in_a_thread_that_is_locked_ends_as_failed_and_nothing_is_said(scene: Scene) -> None:
    thread = open_thread(scene)
    gate = scene.held()
    question = scene.mention("Ada", QUESTION, channel="names")
    await scene.until(lambda: scene.stub.requests)
    scene.pg.change_thread(thread, locked=True)
    gate.set()
    assert await scene.outcome(question) == "undelivered_locked"
    assert not scene.said("names")
    assert not scene.said("general")
    problems = [e["event"] for e in scene.journal.entries if e["level"] in ("warning", "error")]
    assert problems == ["post_failed"]


@pytest.mark.parametrize("what", ["the thread", "its channel"])
async def test_of_a_thread_that_is_deleted_while_it_answers_nothing_stays(scene: Scene, what: str) -> None:
    thread = open_thread(scene)
    await scene.ask("Ada", "my bicycle is called Xanadu", channel="names")
    gate = scene.held()
    question = scene.mention("Ada", QUESTION, channel="names")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    scene.pg.delete_channel(thread if what == "the thread" else scene.pg.channel("general"))
    await scene.until(lambda: scene.bot.conversations.get(thread) is None)
    gate.set()
    await scene.outcome(question)
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, "Xanadu")


async def test_of_an_archived_thread_whose_channel_is_deleted_nothing_stays(stage: Scene) -> None:
    """Of which the bot knows only what it has stored."""
    thread = open_thread(stage)
    async with life(stage):
        await stage.ask("Ada", "my bicycle is called Xanadu", channel="names")
    stage.pg.change_thread(thread, archived=True)
    async with life(stage):
        assert on_disk(stage.folder, "Xanadu")
        heard = stage.bot.wait_for("guild_channel_delete", timeout=PATIENCE_SECONDS)
        stage.pg.delete_channel(stage.pg.channel("general"))
        await heard
        async with stage.bot.privacy._at_a_time:  # which is held until all is gone
            pass
        assert not in_snapshots(stage.folder, "Xanadu")
        assert not on_disk(stage.folder, "Xanadu")


async def test_of_a_server_that_it_left_nothing_stays_of_archived_threads_either(scene: Scene) -> None:
    thread = open_thread(scene)
    await scene.ask("Ada", "my bicycle is called Xanadu", channel="names")
    await scene.at_rest()
    await archive(scene, thread)
    await scene.bot.on_guild_remove(scene.bot.guilds[0])
    assert scene.bot.conversations.get(thread) is None
    assert not in_snapshots(scene.folder, "Xanadu")


async def test_what_a_thread_was_begun_at_is_forgotten_where_it_is_archived_too(stage: Scene) -> None:
    starter = stage.say("Ben", "the server room is flooded")
    thread = open_thread(stage, "Ada", "flood", message=starter)
    async with life(stage):
        await stage.ask("Ada", "what do we do?", channel="flood")
        await stage.at_rest()
        await archive(stage, thread)
        await stage.delete(starter)
        await stage.ask("Ada", "and then?", channel="flood")
        assert "flooded" not in stage.told()


async def archive(scene: Scene, thread: int) -> None:
    """The library forgets it by that."""
    heard = scene.bot.wait_for("thread_update", timeout=PATIENCE_SECONDS)
    scene.pg.change_thread(thread, archived=True)
    await heard


async def test_where_it_may_not_write_in_threads_it_says_so_once_in_their_channel(scene: Scene) -> None:
    open_thread(scene)
    scene.pg.deny(scene.pg.channel("general"), "send_messages_in_threads")
    questions = [scene.mention("Ada", text, channel="names") for text in (QUESTION, FOLLOW_UP)]
    for question in questions:
        assert (await scene.decision(question)).reason is Reason.MISSING_PERMISSION
        await scene.until(lambda: NOT_ALLOWED in reactions(scene, question))  # noqa: B023
    told = await scene.shows("Send Messages in Threads")
    assert f"<#{scene.pg.channel('names')}>" in told.content
    assert scene.said() == [told]
    assert not told.pinged


@pytest.mark.parametrize("private", [True, False])
async def test_what_is_not_for_their_channel_it_does_not_say_there(stage: Scene, private: bool) -> None:
    """Who is in a private thread; and nothing at all where it may not speak."""
    thread = open_thread(stage, private=private)
    stage.pg.add_to_thread(thread, stage.pg.bot_id)
    stage.pg.deny(stage.pg.channel("general"), "send_messages_in_threads")
    async with life(stage, channels=frozenset({stage.pg.channel("general") if private else thread})):
        question = stage.mention("Ada", QUESTION, channel="names")
        await stage.until(lambda: NOT_ALLOWED in reactions(stage, question))
    assert not stage.said("general")


def reactions(scene: Scene, message: object) -> list[str]:
    found = scene.pg.world.find_message(message.id)  # type: ignore[attr-defined]
    return [reaction.emoji for reaction in found.reactions]
