"""discord_io/channel_history.py: what was said in a channel, asked of the loopback Discord."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from discord_io.channel_history import answer_among, read_since
from discord_io.discord_wire import DiscordWire
from playground.model import Message
from playground.server import Playground
from tests.playground.support import Bot

HISTORY = r"/messages$"


class Room:
    """A channel of the playground, and the bot that reads it."""

    def __init__(self, pg: Playground, bot: Bot) -> None:
        self.pg = pg
        self.bot = bot
        self.channel = pg.channel("general")
        self.wire = DiscordWire(bot, pg.guild_id, self.channel)

    def say(self, text: str, **how: Any) -> Message:
        return self.pg.post(self.channel, self.pg.person("Ada"), text, **how)

    async def since(self, since: datetime | int, limit: int = 100) -> list[str] | None:
        messages = await read_since(self.bot, self.pg.guild_id, self.channel, since, limit)
        return None if messages is None else [message.content for message in messages]

    async def answer(self, reply_to: int, *later: int) -> list[str]:
        messages = await read_since(self.bot, self.pg.guild_id, self.channel, 0, 100)
        assert messages is not None
        return [posted.content for posted in answer_among(messages, self.pg.bot_id, reply_to, later)]

    @property
    def readings(self) -> int:
        return sum(request.method == "GET" and request.path.endswith("/messages") for request in self.pg.requests)


@pytest.fixture
def room(pg: Playground, bot: Bot) -> Room:
    return Room(pg, bot)


# Since


async def test_what_came_after_a_message_is_read_oldest_first_without_it(room: Room) -> None:
    said = [room.say(str(number)) for number in range(5)]
    assert await room.since(said[1].id) == ["2", "3", "4"]


async def test_what_came_after_a_moment_is_read(room: Room) -> None:
    room.say("now")
    now = datetime.now(UTC)
    assert await room.since(now - timedelta(hours=1)) == ["now"]
    assert await room.since(now + timedelta(hours=1)) == []


async def test_where_there_are_more_the_first_are_read(room: Room) -> None:
    for number in range(10):
        room.say(str(number))
    assert await room.since(0, limit=3) == ["0", "1", "2"]


async def test_a_hundred_messages_are_one_request(room: Room) -> None:
    for number in range(120):
        room.say(str(number))
    assert await room.since(0) == [str(number) for number in range(100)]
    assert room.readings == 1


async def test_a_channel_that_is_not_in_the_cache_can_be_read(room: Room) -> None:
    room.say("hello")
    room.bot._connection.clear()
    assert await room.since(0) == ["hello"]


@pytest.mark.parametrize("fault", [{"status": 403}, {"status": 404}, {"drop": True}])
async def test_where_discord_refuses_there_is_nothing_and_it_is_logged(room: Room, fault: dict[str, Any]) -> None:
    room.say("hello")
    room.pg.faults.add("GET", HISTORY, times=9, **fault)
    with capture_logs() as logs:
        assert await room.since(0) is None
    assert [(entry["event"], entry["channel"]) for entry in logs] == [("history_failed", room.channel)]


async def test_an_answer_that_cannot_be_read_is_as_good_as_none(room: Room) -> None:
    room.pg.faults.add("GET", HISTORY, status=200, body={"no": "list"})
    assert await room.since(0) is None


async def test_a_client_that_is_closed_reads_nothing(room: Room) -> None:
    room.say("hello")
    await room.bot.close()
    assert await room.since(0) is None


# The answer among them


async def test_the_parts_of_an_answer_are_found_in_their_order(room: Room) -> None:
    question = room.say("what is it?")
    first = await room.wire.send("It is", nonce="1", reply_to=question.id)
    other = room.say("meanwhile", reply_to=question.id)
    await room.wire.send("a bird", nonce="2", reply_to=None)
    await room.wire.send("that swims", nonce="3", reply_to=None)
    await room.wire.send("Another answer", nonce="4", reply_to=other.id)
    await room.wire.send("and its second part", nonce="5", reply_to=None)
    # Also those of which nobody had noted yet that they were posted.
    for noted in ((), (first.message_id,)):
        assert await room.answer(question.id, *noted) == ["It is", "a bird", "that swims"]
    assert await room.answer(other.id) == ["Another answer", "and its second part"]


async def test_an_answer_that_could_not_be_posted_as_a_reply_is_found_by_what_was_noted(room: Room) -> None:
    question = room.say("what is it?")
    first = await room.wire.send("It is", nonce="1", reply_to=None)
    await room.wire.send("a bird", nonce="2", reply_to=None)
    assert await room.answer(question.id) == []
    assert await room.answer(question.id, first.message_id) == ["It is", "a bird"]


async def test_a_first_part_that_could_not_be_a_reply_is_found_as_it_was_noted(room: Room) -> None:
    question = room.say("what is it?")
    first = await room.wire.send("It is", nonce="1", reply_to=None)
    second = await room.wire.send("a bird", nonce="2", reply_to=None)
    assert await room.answer(question.id, first.message_id, second.message_id) == ["It is", "a bird"]


async def test_parts_that_are_gone_are_not_among_them(room: Room) -> None:
    question = room.say("what is it?")
    posted = [await room.wire.send(str(n), nonce=str(n), reply_to=None) for n in range(3)]
    await room.wire.delete(posted[1].message_id)
    assert await room.answer(question.id, *(one.message_id for one in posted)) == ["0", "2"]


async def test_of_several_replies_to_the_question_the_first_is_its_answer(room: Room) -> None:
    question = room.say("what is it?")
    await room.wire.send("It is a bird.", nonce="1", reply_to=question.id)
    await room.wire.send("Once more.", nonce="2", reply_to=question.id)
    assert await room.answer(question.id) == ["It is a bird."]


async def test_what_others_said_is_no_answer_of_ours(room: Room) -> None:
    question = room.say("what is it?")
    reply = room.say("a bird", reply_to=question.id)
    await room.wire.send("something else", nonce="1", reply_to=reply.id)
    assert await room.answer(question.id, reply.id) == []
