"""What stands in Discord of an earlier process, but in no store: it died while the store was late."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from discord_io.backlog import Backlog
from persistence.lifecycle import ALIVE
from playground.model import Message
from tests.e2e.test_who_may_read import call, link
from tests.support.clock import FakeClock
from tests.support.lives import kill, life, on_disk, open_stage
from tests.support.scene import Scene
from tests.support.stub_model import Reply, StubModel

LONG = " ".join(f"word{number}" for number in range(900))


@pytest.fixture
async def scene(stub: StubModel, tmp_path: Path) -> AsyncIterator[Scene]:
    async with open_stage(stub, tmp_path / "state", clock=FakeClock()) as stage:
        yield stage


@asynccontextmanager
async def unstored(scene: Scene, **settings: Any) -> AsyncIterator[None]:
    """A process of which nothing is stored any more from now on, until it is killed."""
    async with life(scene, **settings):
        scene.bot.catch_up.beat()
        scene.bot.snapshots.touch(ALIVE)
        await scene.bot.snapshots.settled()
        before = scene.folder.with_name("before")
        shutil.copytree(scene.folder, before)
        yield
        await kill(scene)
    scene.folder = before


async def followed(scene: Scene, text: str = "and what is it called?") -> Message:
    """A follow-up that is to be answered when the process dies."""
    scene.held()
    followup = scene.say("Ada", text)
    assert (await scene.decision(followup)).respond
    return followup


async def test_a_follow_up_goes_on_from_an_answer_that_stands(scene: Scene) -> None:
    scene.stub.replies.append(Reply("I see."))
    async with unstored(scene):
        await scene.ask("Ada", "my cat is called Tim")
        followup = await followed(scene)
    scene.stub.replies.clear()
    async with life(scene):
        await scene.answer_to(followup)
        told = scene.told()
        await scene.answer_to(scene.say("Ada", "and how old is it?"))
    assert told.index("Tim") < told.index("I see.") < told.index("what is it called?")
    assert told.count("Tim") == told.count("I see.") == 1
    assert len(scene.said()) == 3
    async with life(scene):  # which finds it stored
        await scene.answer_to(scene.say("Ada", "what was that?"))
        assert not scene.journal.find("recalled")
    assert scene.told().count("Tim") == scene.told().count("I see.") == 1


async def test_of_a_long_answer_all_parts_that_stand_are_told(scene: Scene) -> None:
    scene.stub.replies.append(Reply(LONG, chunk=10_000))
    async with unstored(scene):
        await scene.ask("Ada", "tell me all")
        parts = len(scene.said())
        followup = await followed(scene, "and then?")
    scene.stub.replies.clear()
    async with life(scene):
        await scene.answer_to(followup)
    assert parts > 1
    assert len(scene.said()) == parts + 1
    assert scene.told().count("word0 ") == scene.told().count("word899") == 1


async def test_what_stands_of_half_an_answer_is_told_and_not_finished(scene: Scene) -> None:
    scene.halted()
    async with unstored(scene):
        scene.mention("Ada", "my cat is called Tim")
        half = await scene.streaming()
        followup = scene.mention("Ben", "what is it called?")
        await scene.decision(followup)
    async with life(scene):
        await scene.answer_to(followup)
    assert [m.content for m in scene.said()][:-1] == [half.content]
    assert scene.told().index("Tim") < scene.told().index("First words,") < scene.told().index("what is it called?")


@pytest.mark.parametrize("silence", [0, 200], ids=["its conversation is alive", "it has expired"])
async def test_an_answer_that_stands_goes_with_whoever_deleted_what_it_is_based_on_before_they_are_forgotten(
    scene: Scene, silence: float
) -> None:
    assert scene.clock
    scene.stub.default = lambda _: Reply("I see.")
    async with life(scene):
        await scene.ask("Ada", "hello")
        await scene.ask("Ada", "how are you?")
        told = scene.say("Chloe", "my cat is called Bluebell")
        await scene.decision(told)
        await scene.bot.snapshots.settled()
    scene.stub.replies.append(Reply("It is called Bluebell."))
    async with unstored(scene):
        await scene.ask("Ada", "what is it called?")
    scene.pg.delete(told)
    scene.clock.advance(silence)
    async with life(scene):
        await scene.at_rest()
        assert scene.journal.find("recalled")
        await scene.use("Chloe", "forget")
        await scene.ask("Ada", "what was that?")
        assert "Bluebell" not in scene.told()
        await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, "Bluebell")


@pytest.mark.parametrize("silence", [0, 200], ids=["its conversation is alive", "it has expired"])
@pytest.mark.parametrize("by", ["whoever said it", "who manages the channel"])
async def test_an_answer_that_stands_goes_with_what_was_read_for_it_elsewhere(
    scene: Scene, by: str, silence: float
) -> None:
    """Which channels and whose words that were, only the process that died knew."""
    assert scene.clock
    scene.stub.default = lambda _: Reply("I see.")
    async with life(scene):
        told = scene.mention("Chloe", "my cat is called Bluebell", channel="random")
        await scene.answer_to(told)
        scene.pg.allow(told.channel_id, "manage_channels", member=scene.pg.person("Ben"))
    async with unstored(scene):
        scene.stub.replies.extend([call("read_message", link=link(scene, told)), Reply("It is called Bluebell.")])
        await scene.ask("Ada", f"what is it called? {link(scene, told)}")
    scene.clock.advance(silence)
    async with life(scene):
        await scene.at_rest()
        assert scene.journal.find("recalled")
        scene.stub.replies.append(Reply("Bluebell, as I said."))
        await scene.ask("Ada", "what was that?")
        assert "It is called Bluebell." in scene.told()
        if by == "whoever said it":
            await scene.use("Chloe", "forget")
        else:
            await scene.use("Ben", "forget", channel="random", everything=True)
        await scene.bot.snapshots.settled()
        assert not on_disk(scene.folder, "Bluebell")
        await scene.ask("Ada", "and what was that?")
        assert "Bluebell" not in scene.told()
        await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, "Bluebell")


@pytest.mark.parametrize(("silence", "is_answered"), [(100, True), (200, False)])
async def test_a_conversation_is_as_old_as_what_stands_of_it(scene: Scene, silence: float, is_answered: bool) -> None:
    assert scene.clock
    async with unstored(scene):
        await scene.ask("Ada", "my cat is called Tim")
    scene.clock.advance(silence)
    followup = scene.say("Ada", "and what is it called?")
    scene.clock.advance(90)
    async with life(scene):
        assert (await scene.decision(followup)).respond == is_answered


async def test_an_answer_that_may_quote_somebody_goes_with_what_they_said(scene: Scene) -> None:
    scene.stub.replies.append(Reply("Ben's dog is called Rex."))
    async with life(scene):
        pass  # at the very first start nothing is read
    scene.say("Ben", "my dog is called Rex")
    async with unstored(scene):
        await scene.ask("Ada", "what is it called?")
        followup = await followed(scene, "and how old is it?")
    scene.stub.replies.clear()
    async with life(scene):
        await scene.answer_to(followup)
        assert "Rex" in scene.told()
        assert on_disk(scene.folder, "Rex")
        await scene.use("Ben", "forget")
        await scene.ask("Ada", "and who said so?")
        assert "Rex" not in scene.told()
        await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, "Rex")


@pytest.mark.parametrize(("gone", "stays"), [(0, []), (1, ["my cat is called Tim"]), ("forget", [])])
async def test_what_is_deleted_or_forgotten_while_the_channel_is_read_is_not_told(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, gone: int | str, stays: list[str]
) -> None:
    scene.stub.replies.append(Reply("I see."))
    async with unstored(scene):
        asked = scene.mention("Ada", "my cat is called Tim")
        exchange = [asked, await scene.answer_to(asked)]
        followup = await followed(scene)
    scene.stub.replies.clear()
    read = Backlog.around

    async def and_meanwhile(backlog: Backlog, *args: Any) -> Any:
        found = await read(backlog, *args)
        if isinstance(gone, str):
            await scene.bot.privacy.forget_person(scene.pg.person("Ada"), exchange[1].id)
        else:
            deleted = asyncio.create_task(scene.bot.wait_for("raw_message_delete"))
            await asyncio.sleep(0)
            scene.pg.delete(exchange[gone])
            await deleted
        return found

    monkeypatch.setattr(Backlog, "around", and_meanwhile)
    async with life(scene):
        await scene.decision(followup)
        await scene.answer_to(scene.mention("Ada", "and now?"))
        assert [text for text in ("my cat is called Tim", "I see.") if text in scene.told()] == stays
        await scene.bot.snapshots.settled()
    assert [text for text in ("my cat is called Tim", "I see.") if on_disk(scene.folder, text)] == stays


async def test_what_was_asked_before_an_answer_stood_is_answered_with_it(scene: Scene) -> None:
    first, second = scene.held("Tim it is."), scene.held()
    async with unstored(scene):
        asked = [scene.mention("Ada", "what is my cat called?")]
        await scene.until(lambda: scene.stub.requests)
        asked.append(scene.mention("Ben", "and mine?"))
        await scene.decision(asked[1])
        first.set()
        await scene.until(lambda: len(scene.stub.requests) == 2)
    second.set()
    async with life(scene):
        await scene.answer_to(asked[1])
    told = scene.told()
    assert told.index("what is my cat called?") < told.index("Tim it is.") < told.index("and mine?")
    assert [m.reference.message_id for m in scene.said() if m.reference] == [m.id for m in asked]


@pytest.mark.parametrize("away", [5, 150])
async def test_a_conversation_that_was_stored_goes_on_with_it(scene: Scene, away: float) -> None:
    scene.stub.replies += [Reply("I see."), Reply("Tim it is.")]
    async with life(scene):
        await scene.ask("Ada", "my cat has a name")
    async with unstored(scene):
        await scene.ask("Ada", "what is it called?")
        followup = await followed(scene, "and how old is it?")
    scene.stub.replies.clear()
    assert scene.clock
    scene.clock.advance(away)  # it may have expired by then
    async with life(scene):
        await scene.answer_to(followup)
    words = ["my cat has a name", "I see.", "what is it called?", "Tim it is.", "and how old is it?"]
    assert [scene.told().count(text) for text in words] == [1] * len(words)
    assert sorted(words, key=scene.told().index) == words
    assert len(scene.said()) == 3


async def test_in_direct_messages_it_is_told_as_well(scene: Scene) -> None:
    ada = scene.pg.person("Ada")
    channel_id = scene.pg.dm(ada)
    async with life(scene, direct_messages="open"):
        await scene.answer_to(scene.pg.post(channel_id, ada, "hello"))
    scene.stub.replies.append(Reply("I see."))
    async with unstored(scene, direct_messages="open"):
        await scene.answer_to(scene.pg.post(channel_id, ada, "my cat is called Tim"))
        scene.held()
        followup = scene.pg.post(channel_id, ada, "and what is it called?")
        await scene.decision(followup)
    scene.stub.replies.clear()
    async with life(scene, direct_messages="open"):
        await scene.answer_to(followup)
    assert scene.told().index("Tim") < scene.told().index("I see.") < scene.told().index("what is it called?")
