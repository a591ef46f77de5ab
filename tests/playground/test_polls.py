"""Polls, by raw requests and by an unmodified discord.py."""

from dataclasses import replace
from datetime import timedelta
from functools import reduce
from typing import Any

import aiohttp
import discord

from playground.server import Playground
from tests.playground.support import INTENTS, Api, Bot, Wire


def media(text: str) -> dict[str, Any]:
    return {"poll_media": {"text": text}}


POLL: dict[str, Any] = {"question": {"text": "Which day?"}, "answers": [media("Monday"), media("Friday")]}
MESSAGE_CONTENT = 1 << 15


async def test_a_poll_comes_back_with_its_defaults_and_its_end(api: Api, pg: Playground) -> None:
    status, sent = await api.send(pg.channel("general"), poll=POLL)
    poll = sent["poll"]
    assert (status, sent["content"]) == (200, "")
    assert poll["question"] == {"text": "Which day?"}
    assert [(one["answer_id"], one["poll_media"]["text"]) for one in poll["answers"]] == [(1, "Monday"), (2, "Friday")]
    assert (poll["allow_multiselect"], poll["layout_type"]) == (False, 1)
    assert poll["results"] == {"is_finalized": False, "answer_counts": []}
    lasts = discord.utils.parse_time(poll["expiry"]) - discord.utils.parse_time(sent["timestamp"])
    assert lasts == timedelta(hours=24)


async def test_polls_are_checked(api: Api, pg: Playground) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        *(({"question": question}, "question.text") for question in (None, {"text": ""}, {"text": "q" * 301})),
        *(({"answers": answers}, "answers") for answers in (None, [], [media("a")] * 11)),
        ({"answers": [media("a"), media("b" * 56)]}, "answers.1.poll_media.text"),
        ({"answers": ["a"]}, "answers.0.poll_media.text"),
        *(({"duration": hours}, "duration") for hours in (0, 769, 1.5, "soon")),
        ({"layout_type": 2}, "layout_type"),
    ]
    for fields, path in wrong:
        status, refused = await api.send(pg.channel("general"), poll=POLL | fields)
        assert (status, refused["code"]) == (400, 50035)
        assert reduce(lambda found, key: found[key], path.split("."), refused["errors"]["poll"])["_errors"]
    assert (await api.send(pg.channel("general"), poll="Which day?"))[0] == 400
    assert pg.messages(pg.channel("general")) == []
    _, sent = await api.send(pg.channel("general"), poll=POLL)
    path = f"/channels/{sent['channel_id']}/messages/{sent['id']}"
    assert await api.code("PATCH", path, {"content": "other"}) == (400, 520003)
    pg.deny(pg.channel("general"), "send_polls")
    status, refused = await api.send(pg.channel("general"), poll=POLL)
    assert (status, refused["code"]) == (403, 50013)


async def test_without_the_content_intent_a_poll_of_others_is_left_out(
    api: Api, pg: Playground, http: aiohttp.ClientSession
) -> None:
    await api.send(pg.channel("general"), poll=POLL)
    [ours] = pg.messages(pg.channel("general"))
    async with Wire(pg, http) as wire:
        await wire.identify(INTENTS.value & ~MESSAGE_CONTENT)
        await wire.event("GUILD_CREATE")
        pg.duplicate(ours)
        assert "poll" in (await wire.event("MESSAGE_CREATE"))["d"]  # its own
        theirs = pg.post(ours.channel_id, pg.person("Ada"), "vote")
        pg.world.replace_message(replace(theirs, poll=ours.poll))
        assert "poll" not in (await wire.event("MESSAGE_UPDATE"))["d"]


async def test_discord_py_posts_a_poll_and_reads_it_back(pg: Playground, bot: Bot) -> None:
    channel = bot.get_channel(pg.channel("general"))
    assert isinstance(channel, discord.TextChannel)
    poll = discord.Poll("Which day?", timedelta(hours=3), multiple=True)
    sent = await channel.send(poll=poll.add_answer(text="Monday").add_answer(text="Friday"), nonce="1")
    again = await channel.send(poll=discord.Poll("Which day?", timedelta(hours=3)).add_answer(text="x"), nonce="1")
    assert again.id == sent.id
    read = (await channel.fetch_message(sent.id)).poll
    assert read
    assert (read.question, [answer.text for answer in read.answers]) == ("Which day?", ["Monday", "Friday"])
    assert (read.multiple, read.duration) == (True, timedelta(hours=3))
