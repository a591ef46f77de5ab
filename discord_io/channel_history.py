"""The messages before a message in its channel: the context of an answer if there is no conversation yet."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

import aiohttp
import discord
import structlog

from conversation import MessageRecord
from discord_io.discord_wire import UNREADABLE, find_channel, read_messages
from discord_io.incoming_messages import MessageReader, bot_of
from discord_io.message_records import SAID_BY_PEOPLE, is_other_bots, is_persons, quoted_by, to_record
from discord_io.who_may_read import has_rules, may_read
from state.consent import Consent
from state.message import NOBODY, requoted

log = structlog.get_logger()

HISTORY_MESSAGES = 20
HISTORY_AGE = timedelta(hours=1)
QUOTED_SECONDS = 0.25  # other messages wait for it
UNREAD_FORWARD = "[forwarded] (a message that is not for me to read)"
# discord.py raises RuntimeError while it is being closed.
FAILURES = (discord.DiscordException, aiohttp.ClientError, OSError, RuntimeError, *UNREADABLE)


class Transcripts(Protocol):
    """The stored messages."""

    async def kept(self, channel_id: int, message_ids: Collection[int]) -> Mapping[int, MessageRecord]:
        """Those of these messages that are stored, by their ids. Raises OSError where the store cannot be read."""
        ...


class ChannelHistory:
    """The messages shortly before a message in its channel, from the cache or, if that has too few, from Discord.

    The bot's own messages are only taken from the transcript: from Discord it would not know whose words they may
    quote, and whether these people were forgotten since. reread: the age up to which the message that opened a thread
    is read: up to there it is known who was forgotten.
    """

    def __init__(
        self,
        client: discord.Client,
        reader: MessageReader,
        consent: Consent,
        transcripts: Transcripts,
        reread: timedelta,
    ) -> None:
        self._client = client
        self._reader = reader
        self._consent = consent
        self._transcripts = transcripts
        self._reread = reread

    async def before(self, guild_id: int, channel_id: int, asked: MessageRecord) -> list[MessageRecord]:
        """The messages of people and bots, including its own, oldest first, as far as the model may be shown them."""
        me = bot_of(self._client)[1]
        earlier = [m for m in self._client.cached_messages if m.channel.id == channel_id and m.id < asked.message_id]
        earlier = earlier[-HISTORY_MESSAGES:]
        if len(earlier) < HISTORY_MESSAGES:
            channel, before = find_channel(self._client, guild_id, channel_id), discord.Object(asked.message_id)
            try:
                earlier = await read_messages(channel, limit=HISTORY_MESSAGES, before=before)
            except FAILURES as error:  # those in the cache are used all the same
                log.info("history_failed", channel=channel_id, detail=str(error))
        starter = await self._starter(channel_id, earlier, asked)
        earlier = [m for m in earlier if asked.timestamp - m.created_at < HISTORY_AGE and m.id != channel_id]
        read = {m.id: self._reader.record(m) for m in earlier if is_persons(m) or is_other_bots(m, me)}
        own = {m.id for m in earlier if m.author.id == me and m.type in SAID_BY_PEOPLE}
        last = max(own, default=0)
        own |= {r.reply_to_id for r in read.values() if r.reply_to_id is not None and r.reply_to_author_id == me}
        try:
            kept = await self._transcripts.kept(channel_id, own) if own else {}
        except OSError as error:  # without the bot's answers, earlier questions would look unanswered
            log.info("transcript_unread", channel=channel_id, detail=str(error))
            kept, earlier = {}, [m for m in earlier if m.id > last]
        others = [m for m in earlier if m.id in read]
        people = zip(others, await asyncio.gather(*map(self.forwarded, others)), strict=True)
        read = {m.id: with_forwarded(read[m.id], whose) for m, whose in people}
        said = (without_lost_quote(read[m.id], me, kept) if m.id in read else kept.get(m.id) for m in earlier)
        records = [self._consent.tellable(channel_id, record) for record in said if record]
        return [record for record in (starter, *records) if record]

    async def _starter(
        self, channel_id: int, earlier: Sequence[discord.Message], asked: MessageRecord
    ) -> MessageRecord | None:
        """The message from which a thread was started, which has the thread's id; None: none, the bot's own, or too
        old.

        It is in the thread's first message, a system message, or is fetched if the thread is too long to have that.
        """
        thread = self._client.get_channel(channel_id)
        if not isinstance(thread, discord.Thread):
            return None
        references = (m.reference for m in earlier if m.type is discord.MessageType.thread_starter_message)
        found = next((m for m in earlier if m.id == thread.id), None)  # a post contains its first message itself
        found = found or next((r.resolved for r in references if r and isinstance(r.resolved, discord.Message)), None)
        where = channel_id if isinstance(thread.parent, discord.ForumChannel) else thread.parent_id
        if found is None and len(earlier) >= HISTORY_MESSAGES:
            channel = find_channel(self._client, thread.guild.id, where)
            try:
                found = thread.starter_message or await channel.fetch_message(thread.id)
            except FAILURES as error:  # it was not started from a message
                log.info("history_failed", channel=channel_id, detail=str(error))
        if found is None or not is_persons(found) or asked.timestamp - found.created_at > self._reread:
            return None
        # Without what it replies to: of a reply, drew_on would say only whom it quotes, and not from where it comes.
        read = replace(self._reader.record(found), reply_to_id=None, reply_to_author_id=None, reply_to_author="")
        read = replace(read, reply_to_text="", reply_files=())
        told = self._consent.tellable(where, with_forwarded(read, await self.forwarded(found)))
        return with_forwarded(told, frozenset({where} - {channel_id})) if told else None

    async def quoted(self, channel_id: int, message_id: int) -> MessageRecord | None:
        """A message of the bot's own that somebody replies to, as far as the model may be shown it."""
        try:
            async with asyncio.timeout(QUOTED_SECONDS):
                kept = (await kept_of(self._transcripts, channel_id, [message_id])).get(message_id)
        except TimeoutError:
            return None
        return kept and self._consent.tellable(channel_id, kept)

    async def forwarded(self, message: discord.Message) -> frozenset[int] | None:
        """As forwarded()."""
        return await forwarded(self._client, self._consent, self._transcripts, message)


def without_lost_quote(record: MessageRecord, me: int, kept: Mapping[int, MessageRecord]) -> MessageRecord:
    """The record without a quote of the bot that is not stored; with a stored one, its drew_on is set."""
    if record.reply_to_author_id != me or record.reply_to_id is None:
        return record
    quoted = kept.get(record.reply_to_id)
    return replace(record, drew_on=quoted.drew_on | quoted.addressees) if quoted else requoted(record, None)


async def kept_of(transcripts: Transcripts, channel_id: int, own: Collection[int]) -> Mapping[int, MessageRecord]:
    """Those of these messages of the bot's own that are stored, by their ids; none if the store cannot be read."""
    try:
        return await transcripts.kept(channel_id, own) if own else {}
    except OSError as error:
        log.info("transcript_unread", channel=channel_id, detail=str(error))
        return {}


async def forwarded(
    client: discord.Client, consent: Consent, transcripts: Transcripts, message: discord.Message
) -> frozenset[int] | None:
    """Whose words a message forwards, or quotes by replying to a forward, and from which other channel they are; None:
    they may not be read.

    Nobody else's where they are the forwarder's own, and where the original is gone, or where the bot may not read:
    then they count as said by who forwards them.
    """
    forward = quoted_by(message) or message
    if not forward.message_snapshots:
        return NOBODY
    try:
        async with asyncio.timeout(QUOTED_SECONDS):
            if (original := await _original(client, forward)) is None:
                return NOBODY
            me, channel_id = bot_of(client)[1], original.channel.id
            is_forward = bool(original.message_snapshots)  # then it has the words of what that forwards
            people = await forwarded(client, consent, transcripts, original) if is_forward else NOBODY
            if people is None:
                return None
            if is_own := original.author == forward.author:
                said: MessageRecord | None = to_record(forward, me)  # as they say it again
            elif original.author.id == me:
                said = (await kept_of(transcripts, channel_id, [original.id])).get(original.id)
            else:
                said = without_lost_quote(to_record(original, me), me, {})
    except (TimeoutError, *FAILURES) as error:
        log.info("forward_unread", channel=message.channel.id, detail=str(error))
        return None
    if said is None or consent.is_opted_out(said.author_id) or consent.is_forgotten(channel_id, said):
        return None
    whose = NOBODY if is_own else said.drew_on | said.addressees | {said.author_id}
    return people | whose | ({channel_id} - {message.channel.id})


async def _original(client: discord.Client, forward: discord.Message) -> discord.Message | None:
    """The message that is forwarded; None: it is gone, or where the bot may not read."""
    reference = forward.reference
    if reference is None or reference.message_id is None:
        return None
    if reference.cached_message:
        return reference.cached_message
    channel = client.get_channel(reference.channel_id)
    if has_rules(channel) and not may_read(channel, channel.permissions_for(channel.guild.me)):
        return None
    guild_id = reference.guild_id or 0
    number = (guild_id >> 22) % (client.shard_count or 1)
    is_served = not isinstance(client, discord.AutoShardedClient) or number in client.shards
    if guild_id and is_served and client.get_guild(guild_id) is None:
        return None  # the bot is not in the guild: a process knows all those on its shards
    # Archived threads are not in the cache, nor are direct messages after a restart.
    there = client.get_partial_messageable(reference.channel_id, guild_id=reference.guild_id)
    try:
        return await there.fetch_message(reference.message_id)
    except (discord.NotFound, discord.Forbidden):
        return None


def with_forwarded(record: MessageRecord, people: frozenset[int] | None) -> MessageRecord:
    """The record of a message with whose words it forwards, or quotes from a forward; None: without these words."""
    if people is None and record.reply_to_id is not None:
        return requoted(record, None)
    if people is None:
        return replace(record, readable=UNREAD_FORWARD, images=(), files=())
    return replace(record, drew_on=record.drew_on | people) if people else record
