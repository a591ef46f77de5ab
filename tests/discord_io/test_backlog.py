"""discord_io/backlog.py: where there is news, as the gateway told, and what is read there."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import UTC, datetime

import discord
import pytest

from discord_io.backlog import LIMIT, Backlog, News, id_at
from discord_io.incoming_messages import to_record
from playground.model import Message
from playground.server import Playground
from tests.playground.support import Bot


class Room:
    def __init__(self, pg: Playground, bot: Bot) -> None:
        self.pg = pg
        self.bot = bot

    def say(self, text: str = "hello", channel: str = "general", **how: int) -> Message:
        return self.pg.post(self.pg.channel(channel), self.pg.person("Ada"), text, **how)  # type: ignore[arg-type]

    async def heard(self, text: str = "hello", channel: str = "general") -> Message:
        """Says it, and waits until the client knows."""
        known = self.bot.wait_for("message", check=lambda m: m.content == text, timeout=5)
        waiting = asyncio.ensure_future(known)
        await asyncio.sleep(0)
        message = self.say(text, channel)
        await waiting
        return message

    def backlog(self, *channels: str) -> Backlog:
        ids: Collection[int] = frozenset(map(self.pg.channel, channels))
        return Backlog(self.bot, ids, lambda message: to_record(message, self.pg.bot_id))

    def news(self, after: int, *channels: str) -> list[str]:
        names = {channel.id: channel.name for channel in self.pg.world.channels.values()}
        return [names[news.channel_id] for news in self.backlog(*channels).news(after)]

    async def deny(self, channel: str, *names: str) -> None:
        known = asyncio.ensure_future(self.bot.wait_for("guild_channel_update", timeout=5))
        await asyncio.sleep(0)
        self.pg.deny(self.pg.channel(channel), *names)
        await known

    @property
    def readings(self) -> int:
        return sum(request.method == "GET" and request.path.endswith("/messages") for request in self.pg.requests)


@pytest.fixture
def room(pg: Playground, bot: Bot) -> Room:
    return Room(pg, bot)


async def test_channels_with_something_newer_are_told_the_newest_first_without_a_request(room: Room) -> None:
    first = await room.heard("one", "random")
    await room.heard("two", "help")
    await room.heard("three", "general")
    assert room.news(0) == ["general", "help", "random"]
    assert room.news(first.id) == ["general", "help"]
    assert room.readings == 0


async def test_news_say_what_they_are_of(room: Room) -> None:
    said = await room.heard()
    assert room.backlog().news(said.id - 1) == [News(room.pg.guild_id, said.channel_id, said.id)]


async def test_a_channel_nobody_spoke_in_has_none(room: Room) -> None:
    assert room.news(0) == []


async def test_of_listed_channels_alone(room: Room) -> None:
    for channel in ("general", "help"):
        await room.heard(channel, channel)
    assert room.news(0, "help") == ["help"]


@pytest.mark.parametrize("permission", ["view_channel", "read_message_history"])
async def test_a_channel_that_may_not_be_read_has_none_and_is_not_asked_for(room: Room, permission: str) -> None:
    said = await room.heard()
    await room.deny("general", permission)
    assert room.news(0) == []
    assert await room.backlog().since(room.pg.guild_id, said.channel_id, 0) is None
    assert room.readings == 0


async def test_the_first_hundred_are_read_in_one_request_oldest_first(room: Room) -> None:
    said = [room.say(str(number)) for number in range(LIMIT + 5)]
    messages = await room.backlog().since(room.pg.guild_id, said[0].channel_id, said[0].id)
    assert messages
    assert [message.id for message in messages] == [message.id for message in said[1 : LIMIT + 1]]
    assert room.readings == 1


async def test_a_channel_that_is_gone_cannot_be_read(room: Room) -> None:
    assert await room.backlog().since(room.pg.guild_id, 12345, 0) is None


async def test_what_we_replied_to_is_known_and_what_others_replied_to_is_not(room: Room) -> None:
    questions = [room.say(text) for text in ("one", "two", "three")]
    channel = room.bot.get_channel(questions[0].channel_id)
    assert isinstance(channel, discord.TextChannel)
    await channel.send("an answer", reference=channel.get_partial_message(questions[0].id))
    await channel.send("its second part")
    await channel.send("another answer", reference=channel.get_partial_message(questions[2].id))
    room.say("me too", reply_to=questions[1].id)
    backlog = room.backlog()
    messages = await backlog.since(room.pg.guild_id, channel.id, 0)
    assert messages
    assert backlog.replied_to(messages) == {questions[0].id, questions[2].id}
    assert [part.content for part in backlog.answer(messages, questions[0].id, ())] == ["an answer", "its second part"]
    assert backlog.answer(messages, questions[1].id, ()) == []


def test_the_least_id_of_a_moment_lies_between_what_was_said_before_and_after() -> None:
    moment = datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert discord.utils.snowflake_time(id_at(moment)) == moment
    assert discord.utils.snowflake_time(id_at(moment) - 1) < moment
