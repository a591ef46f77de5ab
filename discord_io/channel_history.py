"""What was said in a channel: before a message, from the cache or, where that is thin, from Discord; or since one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from itertools import takewhile

import aiohttp
import discord
import structlog

from conversation import MessageRecord
from discord_io.discord_wire import UNREADABLE, find_channel
from discord_io.incoming_messages import SAID_BY_PEOPLE, MessageReader, bot_of, is_persons
from discord_io.streamed_reply import Posted
from state.consent import Consent

log = structlog.get_logger()

# discord.py lets a RuntimeError through where it is being closed.
HISTORY_MESSAGES = 20
HISTORY_AGE = timedelta(hours=1)
FAILURES = (discord.DiscordException, aiohttp.ClientError, OSError, RuntimeError, *UNREADABLE)


class ChannelHistory:
    """What was said in a channel shortly before a message, from the cache or, where that is thin, from Discord."""

    def __init__(self, client: discord.Client, reader: MessageReader, consent: Consent) -> None:
        self._client = client
        self._reader = reader
        self._consent = consent

    async def before(self, guild_id: int, channel_id: int, asked: MessageRecord) -> list[MessageRecord]:
        """The messages of people and of the bot, oldest first, as far as they may be told."""
        earlier = await read_before(self._client, guild_id, channel_id, asked.message_id, HISTORY_MESSAGES)
        me = bot_of(self._client)[1]
        records = [
            self._consent.tellable(channel_id, self._reader.record(m))
            for m in earlier
            if asked.timestamp - m.created_at < HISTORY_AGE
            if (m.author.id == me and m.type in SAID_BY_PEOPLE) or is_persons(m)
        ]
        return [record for record in records if record]


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
    except FAILURES as error:
        log.info("history_failed", channel=channel_id, detail=str(error))
        return cached
    return newest_first[::-1]


async def read_since(
    client: discord.Client, guild_id: int, channel_id: int, since: datetime | int, limit: int
) -> list[discord.Message] | None:
    """The first messages after a moment or after a message's id, oldest first: one request for up to 100 of them.

    None where Discord cannot be asked or refuses.
    """
    after = since if isinstance(since, datetime) else discord.Object(since)
    channel = find_channel(client, guild_id, channel_id)
    try:
        return [m async for m in channel.history(limit=limit, after=after, oldest_first=True)]
    except FAILURES as error:
        log.info("history_failed", channel=channel_id, detail=str(error))
        return None


def answer_among(messages: Sequence[discord.Message], me: int, reply_to: int, later: Collection[int]) -> list[Posted]:
    """The messages of ours that make up the answer to a message, the first part first.

    messages: oldest first. reply_to: the answered message's id. later: the ids that were noted of the answer's parts,
    by which one is found that could not be posted as a reply. Only a first part is a reply, and a channel gets one
    answer at a time: what is none, up to our next reply, belongs to it.
    """
    # What a tool of the agent's did is no part of it: a poll, and Discord's own word on a pin, which replies as well.
    ours = [m for m in messages if m.author.id == me and m.type in SAID_BY_PEOPLE and m.poll is None]
    first = next((m for m in ours if m.reference and m.reference.message_id == reply_to), None)
    first = first or next((m for m in ours if m.id in later), None)
    if first is None:
        return []
    behind = takewhile(lambda m: m.reference is None, (m for m in ours if m.id > first.id))
    return [Posted(m.id, m.created_at, m.content) for m in (first, *behind)]
