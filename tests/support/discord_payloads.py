"""discord.Message and the like without a Discord: built by discord.py itself, from payloads as Discord sends them."""

from __future__ import annotations

from datetime import datetime
from itertools import count
from typing import Any, cast

import discord
from discord.utils import time_snowflake

from bot import Parley
from config import Settings
from tests.support.clock import NOON
from tests.support.people import BOT, CHANNEL, GUILD, NAMES

OWN_ROLE, OTHER_ROLE = 81, 82
THREAD, DIRECT = 701, 702
WRITABLE = 0x3FFFFFFFFFF  # every permission

_increment = count()


def a_bot(**settings: Any) -> Parley:
    """The bot, logged in as BOT, with one guild of one channel in its cache. It touches no network."""
    bot = Parley(Settings(**{"decision_log": "off", **settings}))
    state = bot._connection
    state.user = discord.ClientUser(state=state, data=cast(Any, user(BOT)))
    state._add_guild_from_data(cast(Any, _guild()))
    return bot


def a_message(
    bot: Parley,
    *,
    author_id: int,
    content: str,
    mentions: list[int] | None = None,
    at: datetime = NOON,
    channel_id: int = CHANNEL,
    **more: Any,
) -> discord.Message:
    """A message as discord.py makes it of a MESSAGE_CREATE; more: what else stands in the payload."""
    data = {
        "id": str(time_snowflake(at) + next(_increment)),
        "channel_id": str(channel_id),
        "guild_id": str(GUILD),
        "author": user(author_id),
        "content": content,
        "timestamp": at.isoformat(),
        "edited_timestamp": None,
        "tts": False,
        "pinned": False,
        "type": 0,
        "mention_everyone": False,
        "mentions": [user(user_id) for user_id in mentions or []],
        "mention_roles": [],
        "attachments": [],
        "embeds": [],
        **more,
    }
    return discord.Message(state=bot._connection, channel=_channel(bot, channel_id), data=cast(Any, data))


def user(user_id: int, **more: Any) -> dict[str, Any]:
    return {
        "id": str(user_id),
        "username": NAMES.get(user_id, f"user{user_id}"),
        "discriminator": "0",
        "avatar": None,
        "bot": user_id == BOT,
        **more,
    }


def attachment(name: str = "cat.png", content_type: str | None = "image/png", size: int = 1_000) -> dict[str, Any]:
    url = f"https://cdn.example/{name}"
    return {"id": "5", "filename": name, "content_type": content_type, "size": size, "url": url, "proxy_url": url}


def _channel(bot: Parley, channel_id: int) -> Any:
    guild = bot.get_guild(GUILD)
    assert guild
    if channel_id == DIRECT:
        data = {"id": str(DIRECT), "type": 1, "recipients": [user(11)]}
        return discord.DMChannel(me=cast(Any, bot.user), state=bot._connection, data=cast(Any, data))
    return guild.get_channel_or_thread(channel_id)


def _guild() -> dict[str, Any]:
    return {
        "id": str(GUILD),
        "name": "The Guild",
        "owner_id": "11",
        "member_count": 2,
        "roles": [
            _role(GUILD, "@everyone"),
            {**_role(OWN_ROLE, "Parley"), "tags": {"bot_id": str(BOT)}},
            _role(OTHER_ROLE, "helpers"),
        ],
        "channels": [{"id": str(CHANNEL), "name": "general", "type": 0, "position": 0, "permission_overwrites": []}],
        "threads": [
            {
                "id": str(THREAD),
                "guild_id": str(GUILD),
                "parent_id": str(CHANNEL),
                "owner_id": "11",
                "name": "a thread",
                "type": 11,
                "message_count": 0,
                "member_count": 1,
                "thread_metadata": {
                    "archived": False,
                    "auto_archive_duration": 60,
                    "archive_timestamp": NOON.isoformat(),
                },
            }
        ],
        "members": [{"user": user(BOT), "roles": [str(OWN_ROLE)], "joined_at": NOON.isoformat(), "flags": 0}],
        "emojis": [],
        "stickers": [],
        "features": [],
    }


def _role(role_id: int, name: str) -> dict[str, Any]:
    return {"id": str(role_id), "name": name, "permissions": str(WRITABLE), "position": 1, "color": 0, "colors": {}}
