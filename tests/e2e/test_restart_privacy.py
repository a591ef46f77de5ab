"""What people had forgotten, deleted or edited, or do not want read, stays so across restarts, and in no file."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from commands import answers, privacy_commands
from decider import Reason
from persistence import unfinished_questions
from persistence.open_store import DATABASE
from playground.model import Message
from state.optout import UNREAD
from tests.e2e.test_trip import ADDED, asked_which
from tests.support.clock import FakeClock
from tests.support.lives import kill, life, on_disk
from tests.support.scene import Scene
from tests.support.stub_model import Reply

pytestmark = pytest.mark.slow

SECRET = "Tim"
TELLS = f"my cat is called {SECRET}"
LOGGED = {"decision_log": "content"}


@pytest.fixture
def scene(stage: Scene) -> Scene:
    stage.stub.default = lambda _: Reply("I see.")
    return stage


async def conversation_with_the_secret(scene: Scene) -> list[Message]:
    """Ben's conversation, in which Ada tells, asked for or not. Gives her messages."""
    await scene.ask("Ben", "hello")
    told = [scene.say("Ada", TELLS), scene.mention("Ada", f"and {TELLS}")]
    await scene.decision(told[0])
    await scene.answer_to(told[1])
    await scene.at_rest()
    return told


@pytest.mark.parametrize("everything", [False, True])
async def test_what_was_forgotten_is_not_read_again_from_the_channel(scene: Scene, everything: bool) -> None:
    scene.pg.allow(scene.pg.channel("general"), "manage_channels", member=scene.pg.person("Ada"))
    async with life(scene, **LOGGED):
        await conversation_with_the_secret(scene)
        await scene.use("Ada", "forget", everything=everything)
        await scene.ask("Ben", "hello again")
        await kill(scene)
    assert not on_disk(scene.folder, SECRET)
    async with life(scene, **LOGGED):
        await scene.ask("Ben", "which cat?")
        assert SECRET not in scene.told()
    assert not on_disk(scene.folder, SECRET)


@pytest.mark.parametrize("how", ["forget", "optout", "everything"])
@pytest.mark.parametrize("is_killed", [True, False])
async def test_what_could_not_be_forgotten_is_at_the_next_start(scene: Scene, how: str, *, is_killed: bool) -> None:
    """As the process was killed, or the disk failed."""
    scene.pg.allow(scene.pg.channel("general"), "manage_channels", member=scene.pg.person("Ada"))
    is_reached, later = asyncio.Event(), "what was that?"

    async def fail(*_: object, **__: object) -> None:
        is_reached.set()
        if is_killed:
            await asyncio.Event().wait()
        raise OSError("the disk fails")

    async with life(scene, **LOGGED):
        await conversation_with_the_secret(scene)
        scene.bot.snapshots.forget_person = scene.bot.snapshots.forget_where = fail  # type: ignore[method-assign]
        options: dict[str, Any] = {"everything": True} if how == "everything" else {}
        using = asyncio.create_task(scene.use("Ada", "optout" if how == "optout" else "forget", **options))
        await is_reached.wait()
        if not is_killed:
            assert (await using).content == answers.INCOMPLETE
            await scene.ask("Ben", later)
        using.cancel()
        await kill(scene)
    assert on_disk(scene.folder, SECRET)
    async with life(scene, **LOGGED):
        assert await scene.bot.snapshots.settled()
        assert not on_disk(scene.folder, SECRET)
        assert bool(on_disk(scene.folder, later)) is not is_killed


@pytest.mark.parametrize("what", ["deleted", "edited", "expired", "removed"])
async def test_what_goes_after_a_restart_goes_from_every_file(scene: Scene, what: str) -> None:
    async with life(scene, **LOGGED):
        told = await conversation_with_the_secret(scene)
        await kill(scene)
    assert on_disk(scene.folder, SECRET)
    async with life(scene, **LOGGED):
        for message in told:
            if what == "deleted":
                await scene.delete(message)
            elif what == "edited":
                await scene.edit(message, "never mind")
        if what == "expired":
            await scene.bot.privacy.expire(datetime.now(UTC) + timedelta(seconds=1))
        elif what == "removed":
            left = scene.bot.wait_for("guild_remove", timeout=10)
            scene.pg.remove_bot()
            await left
    assert not on_disk(scene.folder, SECRET)


async def test_what_expired_is_not_told_after_the_next_restart(scene: Scene) -> None:
    async with life(scene):
        await asked_which(scene, "Ada")
        scene.press("Ada", scene.said()[-1], "1.")
        await scene.shows(ADDED)
        scene.say("Ada", f"get the {SECRET} burger")
        await scene.shows("noted")
        await conversation_with_the_secret(scene)
        await scene.bot.privacy.expire(datetime.now(UTC) + timedelta(seconds=1))
    # Of what may still be read in the channel there is nothing here that is so old.
    assert not on_disk(scene.folder, SECRET)


@pytest.mark.parametrize("stage", [{"clock": FakeClock()}], indirect=True)
async def test_who_had_opted_out_is_in_no_file_once_that_is_long_over(scene: Scene) -> None:
    clock, ada = scene.clock, scene.pg.person("Ada")
    assert clock
    async with life(scene):
        await scene.use("Ada", "optout")
        await scene.use("Ada", "optin")
        await scene.bot.snapshots.settled()
        assert ada.to_bytes(8) in (scene.folder / DATABASE).read_bytes()  # who was forgotten is known for a month
        clock.advance(timedelta(days=31).total_seconds())
        scene.bot.parts.sweep()
        await scene.bot.snapshots.settled()
    assert not [path for path in scene.folder.iterdir() if ada.to_bytes(8) in path.read_bytes()]


async def test_who_opted_out_stays_unread(scene: Scene) -> None:
    async with life(scene, **LOGGED):
        await scene.use("Ada", "optout")
        await scene.ask("Ben", "hello")
        await scene.decision(scene.say("Ada", TELLS))
        await kill(scene)
    missed = scene.say("Ada", TELLS)
    async with life(scene, **LOGGED):
        assert (await scene.decision(missed)).reason is Reason.OPTED_OUT
        await scene.ask("Ben", "what was that?")
        assert SECRET not in scene.told()
        assert scene.told().index("hello") < scene.told().index(UNREAD) < scene.told().index("what was that?")
        assert (await scene.use("Ada", "optout")).content == privacy_commands.OUT_ALREADY
    assert not on_disk(scene.folder, SECRET)


@pytest.mark.parametrize("moment", ["missed", "before the model", "half streamed"])
async def test_who_opted_out_and_mentions_the_bot_is_answered_and_not_kept(scene: Scene, moment: str) -> None:
    async with life(scene, **LOGGED):
        await scene.use("Ada", "optout")
        if moment == "missed":
            await kill(scene)
        before = asyncio.Event() if moment == "before the model" else None
        scene.stub.replies.append(Reply("First words, and the rest.", chunk=12, before=before, gate=asyncio.Event()))
        question = scene.mention("Ada", TELLS)
        if moment != "missed":
            await scene.until(lambda: scene.said() if moment == "half streamed" else scene.stub.requests)
            await kill(scene)
    assert not on_disk(scene.folder, SECRET)
    scene.stub.replies.clear()
    async with life(scene, **LOGGED):
        await scene.answer_to(question)
        assert scene.told().count(SECRET) == 1
        await scene.ask("Ben", "what did Ada say?")
        assert SECRET not in scene.told()
    assert not on_disk(scene.folder, SECRET)


@pytest.mark.usefixtures("impatient")
async def test_the_question_of_who_opted_out_waits_until_discord_gives_its_words(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished_questions, "RETRY_SECONDS", (0.0,))
    async with life(scene):
        await scene.use("Ada", "optout")
        scene.held()
        question = scene.mention("Ada", TELLS)
        await scene.until(lambda: scene.stub.requests)
        await kill(scene)
    scene.stub.replies.clear()
    library_tries = 5
    scene.pg.faults.add("GET", r"/messages$", status=500, times=2 * library_tries)
    async with life(scene):
        assert (await scene.answer_to(question)).content == "I see."
        assert SECRET in scene.told()


@pytest.mark.parametrize("who", ["Ben", "Chloe"])
async def test_a_question_that_is_finished_later_brings_no_words_of_who_opted_out(scene: Scene, who: str) -> None:
    """who: asks in reply to them, and may have opted out, too."""
    async with life(scene):
        await scene.use("Ada", "optout")
        await scene.use("Chloe", "optout")
        told = scene.say("Ada", TELLS)
        scene.held()
        question = scene.mention(who, "what do you make of this?", reply_to=told.id)
        await scene.until(lambda: scene.stub.requests)
        assert SECRET not in scene.told()
        await kill(scene)
    async with life(scene):
        await scene.answer_to(question)
        assert "what do you make of this?" in scene.told()
        assert SECRET not in scene.told()
    assert not on_disk(scene.folder, SECRET)


@pytest.mark.parametrize("who", ["Ben", "Chloe"])
@pytest.mark.parametrize("what", ["forward", "answer"])
@pytest.mark.parametrize("edited", ["not", "while it runs", "while it is away"])
async def test_a_question_that_is_read_again_quotes_nothing_of_who_is_not_to_be_read(
    scene: Scene, who: str, what: str, edited: str
) -> None:
    """who: asks in reply to a forward of theirs, or to an answer out of their words. Chloe has opted out, too."""
    async with life(scene):
        await scene.use("Chloe", "optout")
        if what == "forward":
            told = scene.say("Ben", forward=scene.say("Ada", TELLS, channel="random"))
        else:
            scene.stub.replies.append(Reply(f"So it is {SECRET}."))
            told = await scene.ask("Ada", TELLS)
        await scene.use("Ada", "optout")
        asked = len(scene.stub.requests)
        scene.held()
        question = scene.mention(who, "what do you make of this?", reply_to=told.id)
        await scene.until(lambda: len(scene.stub.requests) > asked)
        new = f"<@{scene.pg.bot_id}> and what of that?"
        if edited == "while it runs":
            await scene.edit(question, new)
            await scene.answer_to(question)
        else:
            await kill(scene)
    if edited != "while it runs":
        if edited == "while it is away":
            scene.pg.edit(question, new)
        async with life(scene):
            await scene.answer_to(question)
    assert ("what do you make of this?" if edited == "not" else "and what of that?") in scene.told()
    assert SECRET not in scene.told()
    assert not on_disk(scene.folder, SECRET)


async def test_an_unfinished_question_of_who_is_forgotten_is_not_answered(scene: Scene) -> None:
    async with life(scene):
        scene.held()
        scene.mention("Ada", TELLS)
        await scene.until(lambda: scene.stub.requests)
        await scene.use("Ada", "forget")
        await kill(scene)
    assert not on_disk(scene.folder, SECRET)
    async with life(scene):
        await scene.ask("Ben", "hello")
        assert len(scene.stub.requests) == 1
        assert SECRET not in scene.told()
    assert len(scene.said()) == 1
