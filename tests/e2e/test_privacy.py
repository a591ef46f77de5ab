"""What people can have done with what is kept of them: in the bot's memory, before its model, and on its disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

import commands
from commands import NOTHING_KEPT
from decider import Reason
from followup.decision_log import FILE_NAME
from playground.limits import Limits
from playground.model import Message
from playground.server import Playground
from state.optout import UNREAD
from tests.support.lives import on_disk
from tests.support.scene import Scene, notify, open_scene, recorded, running
from tests.support.stub_model import Reply, StubModel

SECRET = "Tim"
TELLS = f"my cat is called {SECRET}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
async def scene(stub: StubModel, folder: Path) -> AsyncIterator[Scene]:
    stub.default = lambda _: Reply("I see.")
    async with open_scene(stub, **_settings(folder)) as opened:
        yield opened


def _settings(folder: Path) -> dict[str, Any]:
    return {"state_dir": folder, "decision_log": "content"}


# Opting out


async def test_who_opted_out_is_neither_told_of_nor_named_and_their_place_is_kept(scene: Scene, folder: Path) -> None:
    await _use(scene, "Ada", "optout")
    await scene.ask("Ben", "hello")
    await scene.decision(scene.say("Ada", TELLS))
    await scene.ask("Ben", "what was that?")
    told = scene.told()
    assert SECRET not in told
    assert "Ada" not in told
    assert told.index("hello") < told.index(UNREAD) < told.index("what was that?")
    assert not _on_disk(folder, SECRET)


async def test_who_opted_out_is_answered_when_they_mention_it_only(scene: Scene) -> None:
    await _use(scene, "Ada", "optout")
    await scene.ask("Ada", "hello")
    silent = scene.say("Ada", "and how are you?")
    assert (await scene.decision(silent)).reason is Reason.OPTED_OUT
    shown = await _use(scene, "Ada", "Why?", target=silent)
    assert shown.content == "Silent: you asked me not to read you, and did not mention me"
    await scene.ask("Ada", "and now?")


async def test_what_they_mention_it_with_is_told_for_that_answer_and_not_kept(scene: Scene, folder: Path) -> None:
    await _use(scene, "Ada", "optout")
    await scene.ask("Ada", TELLS)
    assert SECRET in scene.told()
    await scene.ask("Ben", "what did Ada say?")
    assert SECRET not in scene.told()
    await scene.ask("Ada", "and now?")
    assert SECRET not in scene.told()
    await scene.bot.decision_log.flush()
    assert not _on_disk(folder, SECRET)


async def test_what_was_said_before_opting_out_is_gone_and_does_not_come_back_from_the_history(
    scene: Scene, folder: Path
) -> None:
    await scene.decision(scene.say("Ada", TELLS, channel="help"))
    await scene.ask("Ada", TELLS)
    await _use(scene, "Ada", "optout")
    assert not _on_disk(folder, SECRET)
    for channel in ("general", "help"):
        await scene.ask("Ben", "which cat?", channel=channel)
        assert SECRET not in scene.told()


async def test_a_reply_to_them_brings_none_of_their_words(scene: Scene) -> None:
    await _use(scene, "Ada", "optout")
    told = scene.say("Ada", TELLS)
    await scene.ask("Ben", "what do you make of this?", reply_to=told.id)
    assert SECRET not in scene.told()
    assert "what do you make of this?" in scene.told()


async def test_what_they_edit_stays_unread(scene: Scene, folder: Path) -> None:
    await _use(scene, "Ada", "optout")
    await scene.ask("Ben", "hello")
    said = scene.say("Ada", "hello")
    await scene.decision(said)
    await scene.edit(said, TELLS)
    await scene.ask("Ben", "and?")
    assert SECRET not in scene.told()
    await scene.bot.decision_log.flush()
    assert not _on_disk(folder, SECRET)


async def test_after_opting_in_they_are_read_again(scene: Scene) -> None:
    await _use(scene, "Ada", "optout")
    await scene.ask("Ben", "hello")
    await scene.decision(scene.say("Ada", TELLS))
    assert (await _use(scene, "Ada", "optin")).content == commands.OPTED_IN
    await scene.decision(scene.say("Ada", "my dog is called Rex"))
    await scene.ask("Ben", "which animals?")
    assert "Rex" in scene.told()
    assert SECRET not in scene.told()


async def test_a_choice_survives_a_restart(stub: StubModel, folder: Path) -> None:
    stub.default = lambda _: Reply("I see.")
    async with _stage(stub, folder) as scene:
        async with _started(scene):
            await _use(scene, "Ada", "optout")
        async with _started(scene):
            assert (await _use(scene, "Ada", "optout")).content == commands.OUT_ALREADY
            await scene.ask("Ben", "hello")
            assert (await scene.decision(scene.say("Ada", TELLS))).reason is Reason.OPTED_OUT
            await _use(scene, "Ada", "optin")
        async with _started(scene):
            assert (await _use(scene, "Ada", "optin")).content == commands.IN_ALREADY


# Forgetting


async def test_what_is_forgotten_is_gone_from_disk_in_all_channels(scene: Scene, folder: Path) -> None:
    for channel in ("general", "help"):
        await scene.ask("Ada", TELLS, channel=channel)
        await scene.ask("Ben", "mine is called Tom", channel=channel)
    await scene.bot.decision_log.flush()
    await _soon(lambda: _on_disk(folder, SECRET))
    assert (await _use(scene, "Ada", "forget")).content == commands.FORGOTTEN
    assert not _on_disk(folder, SECRET)
    assert _on_disk(folder, "Tom")


async def test_forgetting_everything_clears_one_channel_and_leaves_the_others(scene: Scene, folder: Path) -> None:
    scene.pg.allow(scene.pg.channel("general"), "manage_channels", member=scene.pg.person("Ben"))
    await scene.ask("Ada", TELLS)
    await scene.ask("Ada", "my dog is called Rex", channel="help")
    await scene.bot.decision_log.flush()
    await _soon(lambda: _on_disk(folder, SECRET) and _on_disk(folder, "Rex"))
    assert (await _use(scene, "Ben", "forget", everything=True)).content == commands.CHANNEL_FORGOTTEN
    assert not _on_disk(folder, SECRET)
    assert _on_disk(folder, "Rex")


async def test_what_was_forgotten_does_not_come_back_with_a_restart(stub: StubModel, folder: Path) -> None:
    stub.default = lambda _: Reply("I see.")
    async with _stage(stub, folder) as scene:
        async with _started(scene):
            await scene.ask("Ada", TELLS)
            await _use(scene, "Ada", "forget")
        async with _started(scene):
            await scene.ask("Ben", "which cat?")
            assert SECRET not in scene.told()
    assert not _on_disk(folder, SECRET)


async def test_what_is_deleted_in_discord_is_gone_from_disk(scene: Scene, folder: Path) -> None:
    asked = scene.mention("Ada", TELLS)
    await scene.answer_to(asked)
    await scene.bot.decision_log.flush()
    await _soon(lambda: _on_disk(folder, SECRET))
    await scene.delete(asked)
    await _soon(lambda: not _on_disk(folder, SECRET))


async def test_being_removed_from_a_server_clears_what_was_said_there(scene: Scene, folder: Path) -> None:
    for channel in ("general", "help"):
        await scene.ask("Ada", TELLS, channel=channel)
    await scene.bot.decision_log.flush()
    await _soon(lambda: _on_disk(folder, SECRET))
    scene.pg.remove_bot()
    await _soon(lambda: not _on_disk(folder, SECRET))
    back = scene.bot.wait_for("guild_join", timeout=10)
    scene.pg.invite_bot()
    await back
    await scene.ask("Ben", "which cat?")
    assert SECRET not in scene.told()


async def test_what_could_not_be_forgotten_completely_is_said_to_be_and_can_be_tried_again(
    scene: Scene, folder: Path
) -> None:
    await scene.ask("Ada", TELLS)
    assert await scene.bot.decision_log.flush()
    written = folder / FILE_NAME
    away = written.rename(folder / "away")
    written.mkdir()  # as good as a disk that fails
    assert (await _use(scene, "Ada", "forget")).content == commands.INCOMPLETE
    (entry,) = scene.journal.find("privacy_failed", level="error")
    assert entry["user"] == scene.pg.person("Ada")
    written.rmdir()
    away.rename(written)
    assert (await _use(scene, "Ada", "forget")).content == commands.FORGOTTEN
    assert not _on_disk(folder, SECRET)


# Taking it along


async def test_the_export_holds_ones_own_messages_from_all_channels_and_nobody_elses(scene: Scene) -> None:
    await scene.ask("Ada", TELLS)
    await scene.ask("Ada", "my dog is called Rex", channel="help")
    await scene.ask("Ben", "mine is called Tom")
    exported = await _exported(scene, "Ada")
    assert len(exported) == 2
    assert any("Rex" in text for text in exported)
    assert any(SECRET in text for text in exported)


async def test_who_said_nothing_is_told_so(scene: Scene) -> None:
    answer = await _use(scene, "Chloe", "export")
    assert (answer.content, answer.attachments) == (NOTHING_KEPT, ())


async def test_what_was_forgotten_is_not_exported(scene: Scene) -> None:
    await scene.ask("Ada", TELLS)
    await _use(scene, "Ada", "forget")
    await scene.ask("Ada", "my dog is called Rex")
    (left,) = await _exported(scene, "Ada")
    assert "Rex" in left


async def _exported(scene: Scene, who: str) -> list[str]:
    """The texts in the file that a person is given."""
    reply = await _use(scene, who, "export")
    assert reply.content == commands.EXPORTED
    async with aiohttp.ClientSession() as http, http.get(reply.attachments[0]["url"]) as response:
        exported = orjson.loads(await response.read())
    assert exported["user"] == str(scene.pg.person(who))
    return [message["content"] for message in exported["messages"]]


async def _use(scene: Scene, who: str, name: str, *, target: Message | None = None, **options: bool) -> Message:
    """Uses a command in #general and returns the bot's answer."""
    used = scene.pg.command(
        scene.pg.channel("general"), scene.pg.person(who), name, options, target.id if target else None
    )
    return await scene.pg.reply_to(used, timeout=10)


def _on_disk(folder: Path, text: str) -> bool:
    """Whether any file holds it."""
    return bool(on_disk(folder, text))


async def _soon(condition: Callable[[], bool]) -> None:
    """Waits for what no event of the playground tells of."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


@asynccontextmanager
async def _stage(stub: StubModel, folder: Path) -> AsyncIterator[Scene]:
    """A playground in which the bot can be started several times."""
    async with Playground(limits=Limits.off()) as pg, recorded(pg) as journal:
        stub.on_request = lambda: notify(pg)
        yield Scene(pg, stub, journal, folder)


@asynccontextmanager
async def _started(scene: Scene) -> AsyncIterator[None]:
    starts = len(scene.journal.find("ready"))
    async with running(scene, **_settings(scene.folder)):
        await scene.until(lambda: len(scene.journal.find("ready")) > starts)
        yield
