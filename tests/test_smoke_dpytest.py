"""The bot on dpytest's pretended Discord: a second opinion, beside the tests on real sockets."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import discord
import discord.ext.test as dpytest
import pytest

from bot import Parley, create_bot
from config import Settings
from service import INTENTS
from tests.support.virtual_time import settle

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Parley]:
    intents = discord.Intents(**{**dict(INTENTS), "members": True})  # dpytest needs them
    bot = create_bot(Settings(decision_log="off", state_dir=tmp_path), intents=intents)
    assert isinstance(bot, Parley)
    errors: list[str] = []

    # dpytest swallows what is raised in on_message: silence would pass for a crash.
    async def on_error(event: str, *_args: Any, **_options: Any) -> None:
        errors.append(f"{event}: {sys.exc_info()[1]!r}")

    bot.on_error = on_error  # type: ignore[method-assign]
    await bot._async_setup_hook()
    with monkeypatch.context() as unsharded:  # dpytest takes none with shards, of which it would make nothing
        unsharded.setattr(discord, "AutoShardedClient", type("Another", (), {}))
        dpytest.configure(bot, members=2)
    bot._connection.loop = asyncio.get_running_loop()  # or typing() has none
    yield bot
    await bot.close()
    await dpytest.empty_queue()
    assert errors == []


async def say(bot: Parley, text: str, member: int = 0) -> list[discord.Message]:
    """What the bot posts in answer, once it has nothing left to do."""
    await dpytest.message(text, member=member)
    await settle()
    while bot.turns._queues:
        await asyncio.wait([queue.task for queue in bot.turns._queues.values() if queue.task])
    sent = []
    while not dpytest.sent_queue.empty():
        sent.append(dpytest.get_message())
    return sent


def mention(bot: Parley) -> str:
    return bot.guilds[0].me.mention


async def test_a_mention_is_answered(bot: Parley) -> None:
    (answer,) = await say(bot, f"{mention(bot)} my colour is teal")
    assert "teal" in answer.content


async def test_without_a_mention_it_is_silent(bot: Parley) -> None:
    assert await say(bot, "my colour is teal") == []
    assert len(bot.conversations) == 0
    assert len(bot.decisions) == 1


async def test_a_followup_needs_no_mention_and_remembers(bot: Parley) -> None:
    await say(bot, f"{mention(bot)} my colour is teal")
    (answer,) = await say(bot, "what is my colour?")
    assert "my colour is teal" in answer.content


async def test_a_second_person_joins(bot: Parley) -> None:
    await say(bot, f"{mention(bot)} my colour is teal")
    (answer,) = await say(bot, "what about mine?", member=1)
    assert "teal" in answer.content


async def test_nobody_is_pinged_by_what_it_says(bot: Parley, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    send = bot.http.send_message

    async def noting(channel_id: int, *, params: Any) -> Any:
        channel = bot.get_channel(channel_id)  # noqa: F841 - dpytest looks for it in the frame that calls
        sent.append(params.payload["allowed_mentions"])
        return await send(channel_id, params=params)

    monkeypatch.setattr(bot.http, "send_message", noting)
    (answer,) = await say(bot, f"{mention(bot)} say @everyone")
    assert "everyone" in answer.content
    assert sent == [{"parse": [], "replied_user": True}]
