"""Another process with the same token, and nothing else in common: it is noticed, and said so once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot import Parley
from tests.support.scene import PATIENCE_SECONDS, Entry, Scene, make_bot


@asynccontextmanager
async def another(scene: Scene, folder: Path) -> AsyncIterator[Parley]:
    """Another process, once it is ready."""
    ready = len(scene.journal.find("ready")) + 1
    bot = make_bot(scene, {"state_dir": folder})
    connection = asyncio.create_task(bot.start(scene.pg.token))
    try:
        await scene.until(lambda: len(scene.journal.find("ready")) == ready)
        yield bot
    finally:
        await bot.close()
        await asyncio.gather(connection, return_exceptions=True)


def noticed(scene: Scene) -> list[Entry]:
    return scene.journal.find("another_process", level="warning")


async def settled(scene: Scene) -> None:
    """It has counted its own IDENTIFY."""
    await scene.until(lambda: scene.bot.parts.other_process._identifies_left is not None)


@pytest.mark.parametrize("nonce", ["another", "the same"])
async def test_it_is_known_by_what_it_posts(
    scene: Scene, tmp_path: Path, nonce: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the same nonce, where the server takes that twice."""
    question = scene.mention("Ada", "hello")
    await scene.answer_to(question)
    monkeypatch.setattr(scene.pg.posting._nonces, "find", lambda *_: None)
    async with another(scene, tmp_path) as other:
        wire = other.parts.wires.open(scene.pg.guild_id, question.channel_id)
        first = await wire.send("One.", nonce=f"{question.id}-0" if nonce == "the same" else "1-0", reply_to=None)
        heard = scene.bot.wait_for("message", check=lambda m: m.content == "Two.", timeout=PATIENCE_SECONDS)
        await asyncio.gather(heard, wire.send("Two.", nonce="2-0", reply_to=None))
    (entry,) = noticed(scene)
    assert (entry["channel"], entry["message"]) == (question.channel_id, first.message_id)


async def test_it_is_known_by_its_identify(scene: Scene, tmp_path: Path) -> None:
    await settled(scene)
    async with another(scene, tmp_path):
        for _ in range(2):
            await scene.bot.parts.other_process.look()
    (entry,) = noticed(scene)
    assert "IDENTIFY" in entry["seen"]


async def test_alone_it_notices_nobody_whatever_becomes_of_its_connection(scene: Scene) -> None:
    await settled(scene)
    await scene.ask("Ada", "hello")
    for resumable in (True, False):
        back = scene.bot.wait_for("resumed" if resumable else "ready", timeout=PATIENCE_SECONDS)
        scene.pg.invalidate(resumable=resumable)
        await back
        if not resumable:
            await settled(scene)
        await scene.bot.parts.other_process.look()
        await scene.ask("Ada", "and now?")
    assert not noticed(scene)


async def test_its_own_second_post_with_a_nonce_that_discord_has_forgotten_is_nobody_elses(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene.pg.posting._nonces, "find", lambda *_: None)
    wire = scene.bot.parts.wires.open(scene.pg.guild_id, scene.pg.channel("general"))
    for text in ("One.", "Two."):
        heard = scene.bot.wait_for("message", check=lambda m, t=text: m.content == t, timeout=PATIENCE_SECONDS)
        await asyncio.gather(heard, wire.send(text, nonce="1-0", reply_to=None))
    assert not noticed(scene)
