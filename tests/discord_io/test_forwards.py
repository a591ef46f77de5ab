"""discord_io/channel_history.py: whose words a forward has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import discord
import pytest
from discord.utils import time_snowflake

from bot import Parley
from tests.support.clock import NOON
from tests.support.discord_payloads import a_bot, a_message
from tests.support.people import ANNA, BEN, CHANNEL, CLEO, GUILD

FORWARD, REPLY = 1, 19


@pytest.fixture
async def bot(tmp_path: Path) -> Parley:
    return a_bot(state_dir=tmp_path)


def posted(bot: Parley, author_id: int, content: str = "", **more: Any) -> discord.Message:
    """A message that is in discord.py's cache."""
    message = a_message(bot, author_id=author_id, content=content, **more)
    messages = bot._connection._messages
    assert messages is not None
    messages.append(message)
    return message


def forward(bot: Parley, author_id: int, original: discord.Message) -> discord.Message:
    reference = {"type": FORWARD, "message_id": original.id, "channel_id": CHANNEL, "guild_id": GUILD}
    snapshot = {"type": 0, "content": "hers", "timestamp": NOON.isoformat(), "attachments": [], "embeds": []}
    snapshots = [{"message": {**snapshot, "edited_timestamp": None, "flags": 0, "mentions": []}}]
    return posted(bot, author_id, message_reference=reference, message_snapshots=snapshots)


def reply(bot: Parley, author_id: int, to: discord.Message) -> discord.Message:
    """A reply that Discord sends without the message it answers."""
    reference = {"message_id": to.id, "channel_id": CHANNEL, "guild_id": GUILD}
    return posted(bot, author_id, "look", type=REPLY, message_reference=reference)


@pytest.mark.parametrize("second", [BEN, CLEO])
async def test_a_forward_of_a_forward_goes_with_whoever_said_what_that_has(bot: Parley, second: int) -> None:
    first = forward(bot, BEN, posted(bot, ANNA, "hers"))
    again = forward(bot, second, first)
    people = await bot.parts.history.forwarded(again)
    assert people is not None
    assert ANNA in people
    bot.parts.consent._forgotten.mark(None, ANNA, time_snowflake(NOON, high=True))
    assert await bot.parts.history.forwarded(again) is None


async def test_a_reply_that_came_without_the_forward_it_answers_quotes_nothing_of_the_forgotten(bot: Parley) -> None:
    """Its quote is of the message that discord.py has in its cache."""
    asked = reply(bot, CLEO, forward(bot, BEN, posted(bot, ANNA, "hers")))
    assert "hers" in bot.parts.reader.record(asked).reply_to_text
    people = await bot.parts.history.forwarded(asked)
    assert people is not None
    assert ANNA in people


async def test_a_reply_that_came_without_the_bots_message_it_answers_is_one_to_that(bot: Parley) -> None:
    """So that its quote, which is of the cache, is read only as far as it is kept."""
    assert bot.user
    answer = posted(bot, bot.user.id, "hers")
    assert bot.parts.reader.own_quoted(reply(bot, CLEO, answer)) == answer.id
