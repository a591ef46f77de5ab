"""What was said in a channel before a message: the context of an answer where no conversation is known yet."""

from __future__ import annotations

from datetime import timedelta

import aiohttp
import discord
import structlog

from conversation import MessageRecord
from discord_io.discord_wire import UNREADABLE, find_channel, read_messages
from discord_io.incoming_messages import SAID_BY_PEOPLE, MessageReader, bot_of, is_persons
from state.consent import Consent

log = structlog.get_logger()

HISTORY_MESSAGES = 20
HISTORY_AGE = timedelta(hours=1)
# discord.py lets a RuntimeError through where it is being closed.
FAILURES = (discord.DiscordException, aiohttp.ClientError, OSError, RuntimeError, *UNREADABLE)


class ChannelHistory:
    """What was said in a channel shortly before a message, from the cache or, where that is thin, from Discord."""

    def __init__(self, client: discord.Client, reader: MessageReader, consent: Consent) -> None:
        self._client = client
        self._reader = reader
        self._consent = consent

    async def before(self, guild_id: int, channel_id: int, asked: MessageRecord) -> list[MessageRecord]:
        """The messages of people and of the bot, oldest first, as far as they may be told."""
        me = bot_of(self._client)[1]
        earlier = [m for m in self._client.cached_messages if m.channel.id == channel_id and m.id < asked.message_id]
        earlier = earlier[-HISTORY_MESSAGES:]
        if len(earlier) < HISTORY_MESSAGES:
            channel, before = find_channel(self._client, guild_id, channel_id), discord.Object(asked.message_id)
            try:
                earlier = await read_messages(channel, limit=HISTORY_MESSAGES, before=before)
            except FAILURES as error:  # what the cache has is told all the same
                log.info("history_failed", channel=channel_id, detail=str(error))
        records = [
            self._consent.tellable(channel_id, self._reader.record(m))
            for m in earlier
            if asked.timestamp - m.created_at < HISTORY_AGE
            if (m.author.id == me and m.type in SAID_BY_PEOPLE) or is_persons(m)
        ]
        return [record for record in records if record]
