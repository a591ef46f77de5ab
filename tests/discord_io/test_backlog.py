"""discord_io/backlog.py: where there is news, as the gateway told, what is read there, and our answer among it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

import discord
import pytest
from structlog.testing import capture_logs

from discord_io.backlog import LIMIT, Backlog, Exchange, News, id_at
from discord_io.channel_history import ChannelHistory
from discord_io.discord_wire import DiscordWire
from discord_io.incoming_messages import MessageReader
from discord_io.places import Places
from place_settings.fields import PlaceSettings
from place_settings.guild_settings import GuildSettings
from playground.model import Message
from playground.server import Playground
from shards import Shards
from state.consent import Consent, Forgotten
from state.direct_messages import DirectMessages
from state.message import UNTRACED, MessageRecord
from state.optout import OptOut
from tests.playground.support import Bot

HISTORY = r"/messages$"


class NothingKept:
    """A store without messages."""

    async def kept(self, _channel_id: int, _message_ids: Collection[int]) -> dict[int, MessageRecord]:
        return {}


class Room:
    """A channel of the playground, and the bot that reads it."""

    def __init__(self, pg: Playground, bot: Bot) -> None:
        self.pg = pg
        self.bot = bot
        self.channel = pg.channel("general")
        self.wire = DiscordWire(bot, pg.guild_id, self.channel)
        self.opted_out = OptOut()
        self.forgotten = Forgotten()

    def say(self, text: str = "hello", channel: str = "general", **how: Any) -> Message:
        return self.pg.post(self.pg.channel(channel), self.pg.person("Ada"), text, **how)

    async def heard(self, text: str = "hello", channel: str = "general") -> Message:
        """Says it, and waits until the client knows."""
        known = self.bot.wait_for("message", check=lambda m: m.content == text, timeout=5)
        waiting = asyncio.ensure_future(known)
        await asyncio.sleep(0)
        message = self.say(text, channel)
        await waiting
        return message

    def backlog(self, *channels: str, blocked: str = "") -> Backlog:
        users = frozenset({self.pg.person(blocked)}) if blocked else None
        listed = PlaceSettings(allowed_channels=frozenset(map(self.pg.channel, channels)) or None, blocked_users=users)
        places = Places(self.bot, GuildSettings(listed), clock=discord.utils.utcnow)
        consent = Consent(self.opted_out, self.forgotten)
        reader = MessageReader(self.bot, places, consent, name_calls=False, clock=discord.utils.utcnow)
        history = ChannelHistory(self.bot, reader, consent, NothingKept(), timedelta(days=30))
        return Backlog(self.bot, places, reader, consent, DirectMessages("off", (), lambda: None), Shards(), history)

    def news(self, after: int, *channels: str) -> list[str]:
        names = {channel.id: channel.name for channel in self.pg.world.channels.values()}
        return [names[news.channel_id] for news in self.backlog(*channels).news(0, after)]

    async def since(self, after: int = 0) -> list[str] | None:
        messages = await self.backlog().since(self.pg.guild_id, self.channel, after)
        return None if messages is None else [message.content for message in messages]

    async def answer(self, reply_to: int, *later: int) -> list[str]:
        messages = await self.backlog().since(self.pg.guild_id, self.channel, 0)
        assert messages is not None
        return [posted.content for posted in self.backlog().answer(messages, reply_to, later)]

    async def exchange(self, asked: Message, *, blocked: str = "", known: Collection[int] = ()) -> Exchange | None:
        backlog, news = self.backlog(blocked=blocked), News(self.pg.guild_id, self.channel, 0)
        messages = await backlog.since(news.guild_id, news.channel_id, asked.id - 1)
        assert messages
        found = next(message for message in messages if message.id == asked.id)
        return await backlog.exchange(await backlog.around(news, messages), found, known)

    @property
    def readings(self) -> int:
        return sum(request.method == "GET" and request.path.endswith("/messages") for request in self.pg.requests)


@pytest.fixture
def room(pg: Playground, bot: Bot) -> Room:
    return Room(pg, bot)


async def test_channels_with_something_newer_are_told_the_newest_first_without_a_request(room: Room) -> None:
    assert room.news(0) == []
    first = await room.heard("one", "random")
    await room.heard("two", "help")
    last = await room.heard("three", "general")
    assert room.news(0) == ["general", "help", "random"]
    assert room.news(first.id) == ["general", "help"]
    assert room.news(0, "help") == ["help"]
    assert room.backlog().news(0, last.id - 1) == [News(room.pg.guild_id, last.channel_id, last.id)]
    assert room.readings == 0


@pytest.mark.parametrize("permission", ["view_channel", "read_message_history"])
async def test_a_channel_that_may_not_be_read_has_none_and_is_not_asked_for(room: Room, permission: str) -> None:
    await room.heard()
    known = asyncio.ensure_future(room.bot.wait_for("guild_channel_update", timeout=5))
    await asyncio.sleep(0)
    room.pg.deny(room.channel, permission)
    await known
    assert room.news(0) == []
    assert await room.since() is None
    assert room.readings == 0


async def test_the_first_hundred_are_read_in_one_request_oldest_first(room: Room) -> None:
    said = [room.say(str(number)) for number in range(LIMIT + 5)]
    assert await room.since(said[0].id) == [str(number) for number in range(1, LIMIT + 1)]
    assert room.readings == 1


async def test_a_channel_that_is_not_in_the_cache_can_be_read(room: Room) -> None:
    room.say()
    room.bot._connection.clear()
    assert await room.since() == ["hello"]


@pytest.mark.parametrize("fault", [{"status": 403}, {"status": 404}, {"drop": True}, {"status": 200, "body": {}}])
async def test_where_discord_refuses_there_is_nothing_and_it_is_logged(room: Room, fault: dict[str, Any]) -> None:
    room.pg.faults.add("GET", HISTORY, times=9, **fault)
    with capture_logs() as logs:
        assert await room.since() is None
    assert [(entry["event"], entry["channel"]) for entry in logs] == [("history_failed", room.channel)]


async def test_a_client_that_is_closed_reads_nothing(room: Room) -> None:
    await room.bot.close()
    assert await room.since() is None


def test_the_least_id_of_a_moment_lies_between_what_was_said_before_and_after() -> None:
    moment = datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert discord.utils.snowflake_time(id_at(moment)) == moment
    assert discord.utils.snowflake_time(id_at(moment) - 1) < moment


# The answer among them


async def test_the_parts_of_an_answer_are_found_in_their_order(room: Room) -> None:
    question = room.say("what is it?")
    first = await room.wire.send("It is", nonce="1", reply_to=question.id)
    other = room.say("meanwhile", reply_to=question.id)
    await room.wire.send("a bird", nonce="2", reply_to=None)
    gone = await room.wire.send("of prey", nonce="3", reply_to=None)
    await room.wire.send("that swims", nonce="4", reply_to=None)
    await room.wire.delete(gone.message_id)
    await room.wire.send("Another answer", nonce="5", reply_to=other.id)
    await room.wire.send("and its second part", nonce="6", reply_to=None)
    await room.wire.send("Once more.", nonce="7", reply_to=question.id)
    # Also those of which nobody had noted yet that they were posted.
    for noted in ((), (first.message_id, gone.message_id)):
        assert await room.answer(question.id, *noted) == ["It is", "a bird", "that swims"]
    assert await room.answer(other.id) == ["Another answer", "and its second part"]
    messages = await room.backlog().since(room.pg.guild_id, room.channel, 0)
    assert messages
    assert room.backlog().replied_to(messages) == {question.id, other.id}


@pytest.mark.parametrize(
    "who", ["nobody", "who asked", "who spoke before", "somebody else", "who asked, opted out", "who is blocked"]
)
async def test_a_question_with_its_answer_is_given_as_it_may_be_kept(room: Room, who: str) -> None:
    ada, ben = room.pg.person("Ada"), room.pg.person("Ben")
    room.pg.post(room.channel, ben, "my dog is called Rex")
    question = room.say("what is it called?")
    first = await room.wire.send("Rex, and", nonce="1", reply_to=question.id)
    room.say("meanwhile")
    second = await room.wire.send("a dog", nonce="2", reply_to=None)
    offer = await room.wire.send("Shall I look for more?", nonce="3", reply_to=None)
    forgotten = {"who asked": ada, "who spoke before": ben, "somebody else": room.pg.person("Chloe")}
    if who in forgotten:
        room.forgotten.mark(None, forgotten[who], offer.message_id)
    elif who == "who asked, opted out":
        room.opted_out.add(ada)
    blocked = "Ada" if who == "who is blocked" else ""
    exchange = await room.exchange(question, blocked=blocked, known={offer.message_id})
    if who in ("who asked", "who is blocked"):
        assert exchange is None
        return
    assert exchange
    assert exchange.question.content == ("" if who == "who asked, opted out" else "what is it called?")
    # Whom it quotes is not known.
    kept = [] if who in forgotten else [first.message_id, second.message_id]
    assert [m.message_id for m in exchange.answer] == kept
    assert all(m.drew_on == exchange.people == {ada, ben, UNTRACED} for m in exchange.answer)
    assert exchange.place.channel_id == room.channel


async def test_an_answer_to_our_own_card_is_no_answer_to_a_person(room: Room) -> None:
    card = await room.wire.send("Which one?", nonce="1", reply_to=None)
    await room.wire.send("The first it is.", nonce="2", reply_to=card.message_id)
    assert await room.exchange(room.pg.world.message(room.channel, card.message_id)) is None


async def test_an_answer_that_could_not_be_posted_as_a_reply_is_found_by_what_was_noted(room: Room) -> None:
    question = room.say("what is it?")
    first = await room.wire.send("It is", nonce="1", reply_to=None)
    second = await room.wire.send("a bird", nonce="2", reply_to=None)
    assert await room.answer(question.id) == []
    assert await room.answer(question.id, first.message_id) == ["It is", "a bird"]
    assert await room.answer(question.id, first.message_id, second.message_id) == ["It is", "a bird"]


async def test_what_others_said_is_no_answer_of_ours(room: Room) -> None:
    question = room.say("what is it?")
    reply = room.say("a bird", reply_to=question.id)
    await room.wire.send("something else", nonce="1", reply_to=reply.id)
    assert await room.answer(question.id, reply.id) == []
