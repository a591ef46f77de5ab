"""What was edited or deleted while the bot was away is so here, too, once it is back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from discord_io.channel_history import HISTORY_MESSAGES
from persistence import catchup
from persistence.transcript import MESSAGE
from playground.model import Message
from storage.store import Key
from tests.e2e.test_threads import open_thread
from tests.e2e.test_trip import ADDED, asked_which
from tests.support.clock import FakeClock
from tests.support.lives import in_snapshots, life, on_disk
from tests.support.scene import Scene
from tests.support.stub_model import Reply

pytestmark = pytest.mark.slow

TELLS = "my bicycle is called Xanadu"
REST = "what is it called?"


@pytest.fixture
def scene(stage: Scene) -> Scene:
    stage.stub.default = lambda _: Reply("I see.")
    return stage


async def told_in(scene: Scene, channel: str = "general") -> None:
    """Ada tells it something in a life of its own."""
    async with life(scene):
        await scene.ask("Ada", TELLS, channel=channel)
        await scene.at_rest()
    assert on_disk(scene.folder, "Xanadu")


def first(scene: Scene) -> Message:
    """What Ada told it."""
    return next(m for m in scene.pg.messages(scene.pg.channel("general")) if TELLS in m.content)


@pytest.mark.parametrize("is_news", [True, False])
async def test_a_message_that_was_deleted_meanwhile_is_gone(scene: Scene, is_news: bool) -> None:
    await told_in(scene)
    told = first(scene)
    scene.pg.delete(told)
    question = scene.mention("Ada", REST) if is_news else None
    async with life(scene):
        question = question or scene.mention("Ada", REST)
        await scene.answer_to(question)
        assert "Xanadu" not in scene.told()
        await scene.bot.snapshots.settled()
        assert not on_disk(scene.folder, "Xanadu")
        reads = [sent for sent in scene.sent("GET", "/messages") if "after=" not in sent.path]
        assert len(reads) <= 2


async def test_news_in_too_many_channels_leave_the_requests_for_what_was_deleted(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catchup, "MAX_REQUESTS", 4)
    await told_in(scene)
    scene.pg.delete(first(scene))
    for number in range(6):
        scene.pg.post(scene.pg.add_channel(f"busy-{number}"), scene.pg.person("Ben"), "lunch?")
    async with life(scene):
        await scene.bot.snapshots.settled()
        assert not on_disk(scene.folder, "Xanadu")
        assert len(scene.sent("GET", "/messages")) <= 4
        assert scene.journal.find("catch_up_cut")


@pytest.mark.parametrize("how", ["deleted", "edited"])
async def test_no_kill_comes_between_the_transcript_and_what_else_has_the_words(
    scene: Scene, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the transcript it is known which messages have to be looked for."""
    async with life(scene):
        await scene.ask("Ada", TELLS)
        await scene.bot.snapshots.settled()
        told, changes, channel = first(scene), scene.bot.parts.changes, scene.pg.channel("general")
        store, left = scene.bot.snapshots._writer.store, list[list[str]]()
        write = store.write

        def noting(rows: Mapping[Key, bytes | None]) -> None:
            write(rows)
            if any(key.kind == MESSAGE and key.id == told.id for key in rows):
                left.append(in_snapshots(scene.folder, "Xanadu"))

        monkeypatch.setattr(store, "write", noting)
        if how == "deleted":
            changes.deleted(channel, {told.id})
        else:
            (kept,) = [m for m in await scene.bot.snapshots.newest(channel, 2) if m.message_id == told.id]
            changes.revised(channel, scene.pg.guild_id, replace(kept, content="hm", readable=""), is_by_author=True)
        await scene.bot.snapshots.newest(channel, 1)  # as others ask in the same step
        assert not in_snapshots(scene.folder, "Xanadu")
    assert left == [[]]


async def test_a_message_that_was_edited_meanwhile_is_as_it_stands_now(scene: Scene) -> None:
    await told_in(scene)
    told = first(scene)
    scene.pg.edit(told, "my bicycle is called Ulysses")
    async with life(scene):
        await scene.ask("Ada", REST)
        assert "Xanadu" not in scene.told()
        assert "Ulysses" in scene.told()
        await scene.bot.snapshots.settled()
        assert not on_disk(scene.folder, "Xanadu")


@pytest.mark.parametrize("stage", [{"clock": FakeClock()}], indirect=True, ids=["in the same millisecond"])
@pytest.mark.parametrize("how", ["deleted", "edited"])
async def test_what_was_read_from_before_the_conversation_is_told_as_it_stands_now(scene: Scene, how: str) -> None:
    async with life(scene):
        told = scene.say("Ada", TELLS)
        await scene.ask("Ben", REST)
        assert "Xanadu" in scene.told()
    if how == "deleted":
        scene.pg.delete(told)
    else:
        scene.pg.edit(told, "my bicycle")
    async with life(scene):
        await scene.ask("Ben", REST)
        assert "Xanadu" not in scene.told()
        assert ("my bicycle" in scene.told()) == (how == "edited")
        await scene.bot.snapshots.settled()
        assert not on_disk(scene.folder, "Xanadu")


async def test_a_reply_does_not_quote_what_was_deleted_meanwhile(scene: Scene) -> None:
    told = scene.say("Ada", TELLS)
    for _ in range(HISTORY_MESSAGES):
        scene.say("Ada", "hm")
    async with life(scene):
        await scene.ask("Ben", REST, reply_to=told.id)
        assert "Xanadu" in scene.told()
    scene.pg.delete(told)
    async with life(scene):
        await scene.ask("Ben", REST)
        assert "Xanadu" not in scene.told()
        await scene.bot.snapshots.settled()
        assert not on_disk(scene.folder, "Xanadu")


@pytest.mark.parametrize("what", ["thread", "its channel", "channel"])
async def test_a_place_that_was_deleted_meanwhile_is_forgotten(scene: Scene, what: str) -> None:
    thread = open_thread(scene)
    await told_in(scene, "general" if what == "channel" else "names")
    channel = scene.pg.channel("general")
    scene.pg.delete_channel(thread if what == "thread" else channel)
    async with life(scene):
        await scene.bot.parts.gate.wait(channel if what == "channel" else thread, scene.pg.guild_id)
        assert not on_disk(scene.folder, "Xanadu")


@pytest.mark.parametrize("why", ["archived", "closed to the bot", "archived, and its history closed"])
async def test_a_place_that_is_only_out_of_sight_is_kept(scene: Scene, why: str) -> None:
    thread = open_thread(scene)
    await told_in(scene, "names")
    if "archived" in why:
        scene.pg.change_thread(thread, archived=True)
    if "closed" in why:
        denied = "read_message_history" if "history" in why else "view_channel"
        scene.pg.deny(scene.pg.channel("general"), denied)
    async with life(scene):
        assert on_disk(scene.folder, "Xanadu")
        assert not scene.journal.find("channel_gone")


async def test_what_was_clicked_or_written_into_a_form_is_kept_though_it_stands_nowhere(scene: Scene) -> None:
    async with life(scene):
        scene.press("Ada", await asked_which(scene), "1.")
        opener = scene.press("Ada", await scene.card(ADDED), "Add a note")
        await scene.until(lambda: opener.form)
        scene.pg.submit(opener, {"text": "get the shroom burger"})
        await scene.shows("noted - must try the shroom burger!")
        await scene.at_rest()
    async with life(scene):
        assert "shroom burger" in (await scene.ask("Ada", "list our trip")).content
