"""What was said in a channel before a message: from the cache or, where that is thin, from Discord."""

from __future__ import annotations

from collections.abc import Sequence

import aiohttp
import discord
import structlog

from delivery.discord_wire import UNREADABLE, find_channel

log = structlog.get_logger()


async def read_before(
    client: discord.Client, guild_id: int, channel_id: int, message_id: int, count: int
) -> Sequence[discord.Message]:
    """The last messages before one, oldest first; what the cache has of them, where Discord cannot be asked."""
    cached = [m for m in client.cached_messages if m.channel.id == channel_id and m.id < message_id]
    if len(cached) >= count:
        return cached[-count:]
    channel, before = find_channel(client, guild_id, channel_id), discord.Object(message_id)
    try:
        newest_first = [m async for m in channel.history(limit=count, before=before)]
    except (discord.DiscordException, aiohttp.ClientError, OSError, *UNREADABLE) as error:
        log.info("history_failed", channel=channel_id, detail=str(error))
        return cached
    return newest_first[::-1]
