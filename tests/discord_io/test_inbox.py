"""discord_io/inbox.py: messages that come in at once."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import discord
import pytest

from discord_io.inbox import IN_A_ROUND, Inbox
from incoming import Incoming
from tests.support.discord_payloads import THREAD, a_bot, a_message
from tests.support.people import ANNA, CHANNEL
from tests.support.virtual_time import settle


class Handler:
    """Keeps what it is to handle; in the place of all that an inbox has around it."""

    def __init__(self) -> None:
        self.handled: list[int] = []

    def follows(self, _channel_id: int, _guild_id: int, _parent_id: int = 0, *, is_on: bool) -> bool:  # noqa: ARG002
        return True

    def ignored(self, message_id: int, guild_id: int, channel_id: int, author_id: int) -> None:
        """Nothing is, as it listens to all."""

    async def handle(self, incoming: Incoming, *, hears_out: bool = False) -> bool:  # noqa: ARG002
        self.handled.append(incoming.record.message_id)
        return True


@pytest.fixture
async def opened(tmp_path: Path) -> tuple[Inbox, Handler, list[discord.Message]]:
    """An inbox, who handles what comes in, and messages of one channel."""
    bot, handler = a_bot(state_dir=tmp_path), Handler()
    messages = [a_message(bot, author_id=ANNA, content=f"number {number}") for number in range(3 * IN_A_ROUND)]
    parts = bot.parts
    inbox = Inbox(parts.reader, parts.places, bot.conversations, handler, handler, handler, parts.history)
    return inbox, handler, messages


async def test_of_many_that_come_at_once_a_few_are_handled_in_each_round_of_the_loop(
    opened: tuple[Inbox, Handler, list[discord.Message]],
) -> None:
    inbox, handler, messages = opened
    taking = asyncio.gather(*map(inbox.take, messages))
    counts = []
    while not taking.done():
        counts.append(len(handler.handled))
        await asyncio.sleep(0)
    assert max(later - earlier for earlier, later in pairwise(counts)) == IN_A_ROUND
    assert handler.handled == [message.id for message in messages]


async def test_those_that_come_after_one_whose_quote_is_looked_up_do_not_overtake_it(
    opened: tuple[Inbox, Handler, list[discord.Message]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of other channels do not wait."""
    inbox, handler, messages = opened
    *messages, elsewhere = messages
    elsewhere.channel = inbox._reader._client.get_channel(THREAD)  # type: ignore[assignment]
    found = asyncio.Event()

    async def quoted(*_: int) -> None:
        await found.wait()

    monkeypatch.setattr(inbox._history, "quoted", quoted)
    monkeypatch.setattr(inbox._reader, "own_quoted", {messages[2]: 99}.get)
    taking = asyncio.gather(*map(inbox.take, [*messages, elsewhere]))
    await settle()
    assert handler.handled == [messages[0].id, messages[1].id, elsewhere.id]
    handler.handled.remove(elsewhere.id)
    found.set()
    await taking
    assert handler.handled == [message.id for message in messages]


async def test_forwards_that_come_at_once_are_looked_up_at_once_and_handled_in_their_order(
    opened: tuple[Inbox, Handler, list[discord.Message]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a flood of them holds up a channel no longer than one."""
    inbox, handler, messages = opened
    for message in messages[:-1]:
        message.reference = discord.MessageReference(message_id=1, channel_id=CHANNEL)
    looked_up = {message.id: asyncio.Event() for message in messages[:-1]}
    asked: list[int] = []

    async def forwarded(message: discord.Message) -> frozenset[int]:
        asked.append(message.id)
        await looked_up[message.id].wait()
        return frozenset()

    monkeypatch.setattr(inbox._history, "forwarded", forwarded)
    taking = asyncio.gather(*map(inbox.take, messages))
    await settle()
    assert asked == [message.id for message in messages[:-1]]
    for message in messages[-2:0:-1]:  # the first is found last
        looked_up[message.id].set()
    await settle()
    assert not handler.handled
    looked_up[messages[0].id].set()
    await taking
    assert handler.handled == [message.id for message in messages]


async def test_what_comes_twice_or_is_deleted_while_it_waits_is_not_handled_then(
    opened: tuple[Inbox, Handler, list[discord.Message]],
) -> None:
    inbox, handler, messages = opened
    *others, deleted = messages
    taking = asyncio.gather(*map(inbox.take, [*messages, others[-1]]))
    await asyncio.sleep(0)
    inbox.skip([deleted.id])
    await taking
    assert handler.handled == [message.id for message in others]
