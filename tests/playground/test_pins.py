"""Pins, by raw requests and by an unmodified discord.py."""

from dataclasses import replace
from typing import Any

import discord
import pytest

from playground.model import Message
from playground.pins import MAX_PINS
from playground.server import Playground
from tests.playground.support import Api, Bot, contents

NEW, OLD = "/channels/{}/messages/pins", "/channels/{}/pins"


@pytest.fixture
def message(pg: Playground) -> Message:
    pg.allow(pg.channel("general"), "pin_messages")
    return pg.post(pg.channel("general"), pg.person("Ada"), "the rules")


def pinned(pg: Playground) -> list[str]:
    return contents(pg.world.channel(pg.channel("general")).pinned)


@pytest.mark.parametrize("path", [NEW, OLD])
async def test_a_message_is_pinned_and_unpinned(api: Api, pg: Playground, message: Message, path: str) -> None:
    place = f"{path.format(message.channel_id)}/{message.id}"
    assert await api.call("PUT", place) == (204, None)
    assert pinned(pg) == ["the rules"]
    assert (await api.call("GET", f"/channels/{message.channel_id}/messages/{message.id}"))[1]["pinned"] is True
    assert await api.call("DELETE", place) == (204, None)
    assert pinned(pg) == []


async def test_a_pin_is_announced_once_and_notifies_nobody(api: Api, pg: Playground, message: Message) -> None:
    for _ in range(2):
        await api.call("PUT", f"{NEW.format(message.channel_id)}/{message.id}")
    _, announcement = pg.messages(message.channel_id)
    assert (announcement.type, announcement.author.id, announcement.content) == (6, pg.bot_id, "")
    assert announcement.reference
    assert announcement.reference.message_id == message.id
    assert (announcement.mentions, announcement.pinged) == ((), frozenset())
    _, body = await api.call("GET", f"/channels/{message.channel_id}/messages/{announcement.id}")
    assert "referenced_message" not in body


@pytest.mark.parametrize("permission", ["pin_messages", "view_channel"])
async def test_who_may_not_pin_is_refused(api: Api, pg: Playground, message: Message, permission: str) -> None:
    pg.allow(message.channel_id, "manage_messages")
    pg.deny(message.channel_id, permission)
    code = 50013 if permission == "pin_messages" else 50001
    assert await api.code("PUT", f"{NEW.format(message.channel_id)}/{message.id}") == (403, code)
    assert pinned(pg) == []


async def test_what_is_no_message_of_a_person_is_not_pinned_nor_any_odd_page_listed(
    api: Api, pg: Playground, message: Message
) -> None:
    pins = NEW.format(message.channel_id)
    joined = pg.post(message.channel_id, pg.person("Ben"), type=7)
    for message_id, refusal in (("1", (404, 10008)), ("abc", (400, 50035)), (joined.id, (403, 50021))):
        assert await api.code("PUT", f"{pins}/{message_id}") == refusal
    for query in ("limit=0", "limit=51", "limit=x"):
        assert await api.code("GET", f"{pins}?{query}") == (400, 50035)
    channel = pg.world.channel(message.channel_id)
    assert not pg.world.may(channel, pg.person("Ben"), "pin_messages")


async def test_a_channel_has_room_for_so_many(api: Api, pg: Playground, message: Message) -> None:
    messages = pg.world.channel(message.channel_id).messages
    for number in range(MAX_PINS):
        one = pg.post(message.channel_id, pg.person("Ada"), str(number))
        messages[one.id] = replace(one, pinned_at=float(number))
    assert await api.code("PUT", f"{NEW.format(message.channel_id)}/{message.id}") == (400, 30003)
    again = f"{NEW.format(message.channel_id)}/{one.id}"
    assert await api.call("PUT", again) == (204, None)


async def test_without_the_history_no_pins_are_listed(api: Api, pg: Playground, message: Message) -> None:
    await api.call("PUT", f"{NEW.format(message.channel_id)}/{message.id}")
    pg.deny(message.channel_id, "read_message_history")
    assert await api.call("GET", NEW.format(message.channel_id)) == (200, {"items": [], "has_more": False})
    assert await api.call("GET", OLD.format(message.channel_id)) == (200, [])


async def test_discord_py_pins_hears_of_it_and_lists_the_pins(pg: Playground, bot: Bot) -> None:
    pg.allow(pg.channel("general"), "pin_messages")
    channel: Any = bot.get_channel(pg.channel("general"))
    posted = [pg.post(channel.id, pg.person("Ada"), str(number)) for number in range(60)]
    for one in posted:
        await channel.get_partial_message(one.id).pin(reason="for later")
    assert await bot.event("guild_channel_pins_update", 60) == channel
    edited = await bot.event("raw_message_edit")
    assert (edited.message.content, edited.message.pinned) == ("0", True)
    assert contents([one async for one in channel.pins(limit=None)]) == [str(n) for n in reversed(range(60))]
    announcement = await bot.event("message", 61)
    assert (announcement.type, announcement.author) == (discord.MessageType.pins_add, bot.user)
    await channel.get_partial_message(posted[0].id).unpin()
    assert len([one async for one in channel.pins(limit=None)]) == 59
