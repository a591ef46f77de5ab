"""Finds and reads messages that the bot missed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import Any

import discord
import structlog

from conversation import MessageRecord
from discord_io.channel_history import FAILURES, ChannelHistory, with_forwarded, without_lost_quote
from discord_io.channel_wire import Posted
from discord_io.discord_wire import Known, find_channel, posted, read_messages
from discord_io.incoming_messages import MessageReader, bot_of
from discord_io.message_records import SAID_BY_PEOPLE, is_persons
from discord_io.places import Places
from discord_io.replay import Payload
from discord_io.who_may_read import has_rules
from place import Place, PlaceKind
from shards import Shards
from state.consent import Consent
from state.direct_messages import DirectMessages
from state.message import NOBODY, UNTRACED

log = structlog.get_logger()

LIMIT = 100  # messages that Discord returns at once
MOST_SINCE = 1_000
READABLE = (discord.TextChannel, discord.VoiceChannel, discord.StageChannel, discord.Thread)
MOST_DIRECT = 100  # channels of direct messages: one request each
Message = discord.Message
UNKNOWN_CHANNEL = 10_003  # Discord's code


class ChannelGoneError(LookupError):
    """The channel, thread or direct message does not exist any more."""


@dataclass(frozen=True, slots=True)
class News:
    """A channel with new messages. newest: the id of its last message."""

    guild_id: int
    channel_id: int
    newest: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question with its answer, as they may be kept. people: the users whose words the answer may be based on, with
    UNTRACED: what tools read for it is not known."""

    place: Place
    question: MessageRecord
    answer: tuple[MessageRecord, ...]
    people: frozenset[int]


class Backlog:
    """client: connected. places: the settings of places. direct: whose direct messages are answered. shards: knows
    which guild is on which shard. history: looks up whose words a message forwards.
    """

    def __init__(
        self,
        client: discord.Client,
        places: Places,
        reader: MessageReader,
        consent: Consent,
        direct: DirectMessages,
        shards: Shards,
        history: ChannelHistory,
    ) -> None:
        self._shards = shards
        self._history = history
        self._direct = direct
        self._client = client
        self._places = places
        self._reader = reader
        self._consent = consent

    async def to_record(self, message: discord.Message) -> MessageRecord:
        """A message with what it quotes or forwards, as far as that may be told."""
        read, own = self._reader.record(message), self._reader.own_quoted(message)
        quoted = None if own is None else await self._history.quoted(message.channel.id, own)
        kept = {quoted.message_id: quoted} if quoted else {}
        read = without_lost_quote(read, bot_of(self._client)[1], kept)
        read = with_forwarded(read, await self._history.forwarded(message))
        return self._consent.unquoted(message.channel.id, read)

    def edited(self, message: discord.Message) -> MessageRecord | None:
        """A message as it may be kept, if its author has edited it, or it opens a post, whose title may be another."""
        is_changed = message.edited_at or message.id == message.channel.id
        return self._consent.readable(message.channel.id, self._reader.record(message)) if is_changed else None

    def is_post(self, channel_id: int) -> bool:
        channel = self._client.get_channel(channel_id)
        return isinstance(channel, discord.Thread) and isinstance(channel.parent, discord.ForumChannel)

    async def opening(self, thread_id: int) -> MessageRecord | None:
        """The message that opens a post, as it may be kept; None: it is no post, or cannot be read."""
        thread: Any = self._client.get_channel(thread_id)
        if not self.is_post(thread_id):
            return None
        try:
            message = thread.starter_message or await thread.fetch_message(thread_id)
        except FAILURES as error:
            log.info("history_failed", channel=thread_id, detail=str(error))
            return None
        return self.edited(message)

    def requote(self, message_ids: Collection[int]) -> None:
        """Has replies in discord.py's cache quote these messages as they are now, or not at all if they are deleted:
        each keeps a copy of what it quotes, and a thread's first message one of what it was started from."""
        for message in self._client.cached_messages:
            if message.reference and message.reference.message_id in message_ids:
                message.reference.resolved = message.reference.cached_message

    def is_on(self, shard_id: int, guild_id: int) -> bool:
        return self._shards.of(guild_id) == shard_id

    def _guilds(self, shard_id: int) -> list[discord.Guild]:
        return [guild for guild in self._client.guilds if self._shards.of(guild.id) == shard_id]

    def knows_all(self, shard_id: int) -> bool:
        """Whether all guilds are available: until then their channels are unknown."""
        return not any(guild.unavailable for guild in self._guilds(shard_id))

    def news(self, shard_id: int, after: int) -> list[News]:
        """The shard's channels and active threads whose last message is newer than this id, according to GUILD_CREATE.

        Only those whose history may be read. Makes no request.
        """
        return [
            News(channel.guild.id, channel.id, newest)
            for guild in self._guilds(shard_id)
            for channel in (*guild.channels, *guild.threads)
            if isinstance(channel, READABLE) and (newest := channel.last_message_id or 0) > after
            if not self._places.held(channel).silenced and _may_read(channel)
        ]

    def is_answered(self, place: Place, author_id: int) -> bool:
        """Whether the current settings still let the bot answer this person there.

        Which roles they have now is unknown.
        """
        if place.kind is PlaceKind.DIRECT:
            return self._direct.takes(author_id)
        held = self._reader.renewed(place).held
        return held.silenced is None and author_id not in (held.settings.blocked_users or ())

    def renewed(self, place: Place) -> Place:
        """The place of a pending question, with its current settings."""
        return self._reader.renewed(place)

    def may_read(self, channel_id: int) -> bool:
        channel = self._client.get_channel(channel_id)
        return not isinstance(channel, READABLE) or _may_read(channel)

    def direct(self, channel_ids: Sequence[int], after: int) -> list[News]:
        """The newest 100 of these channels of direct messages, any of which may have messages after this id.

        On connecting, Discord does not send their last messages' ids. Makes no request.
        """
        asked = channel_ids[-MOST_DIRECT:] if self._direct.mode != "off" else ()
        return [News(0, channel_id, after + 1) for channel_id in asked]

    def built(self, news: News, payloads: Sequence[Payload]) -> list[discord.Message]:
        """Builds a channel's messages from payloads that the gateway sent before the channel was known."""
        channel: Any = find_channel(self._client, news.guild_id, news.channel_id)
        state = self._client._connection  # noqa: SLF001 - discord.py builds them so
        return [discord.Message(state=state, channel=channel, data=data) for data in payloads]  # type: ignore[arg-type]

    async def since(self, guild_id: int, channel_id: int, after: int) -> list[discord.Message] | None:
        """The first 100 messages after this id, oldest first, by one request; None: they cannot be read."""
        channel = find_channel(self._client, guild_id, channel_id)
        if isinstance(channel, READABLE) and not _may_read(channel):
            return None  # Discord would return an empty list
        try:
            return await read_messages(channel, limit=LIMIT, after=discord.Object(after))
        except FAILURES as error:
            log.info("history_failed", channel=channel_id, detail=str(error))
            return None

    async def all_since(self, guild_id: int, channel_id: int, after: int) -> list[discord.Message] | None:
        """As since(), but all messages, or the first 1,000: one request for each 100."""
        found: list[discord.Message] = []
        while (page := await self.since(guild_id, channel_id, found[-1].id if found else after)) is not None:
            found += page
            if len(page) < LIMIT or len(found) >= MOST_SINCE:
                return found
        return None

    async def reread(self, message: discord.Message) -> discord.Message:
        """The message as it is now; the given one where it cannot be read."""
        try:
            return await message.fetch()
        except FAILURES as error:
            log.info("history_failed", channel=message.channel.id, detail=str(error))
            return message

    async def newest(self, guild_id: int, channel_id: int) -> list[discord.Message] | None:
        """The last 100 messages, oldest first, by one request; None: they cannot be read. Raises ChannelGoneError.

        Whether an archived thread's history may be read is unknown; if not, Discord returns no messages.
        """
        channel = find_channel(self._client, guild_id, channel_id)
        is_known = isinstance(channel, READABLE)
        if isinstance(channel, READABLE) and not _may_read(channel):
            return None
        try:
            messages = await read_messages(channel, limit=LIMIT)
        except FAILURES as error:
            if isinstance(error, discord.NotFound) and error.code == UNKNOWN_CHANNEL:
                raise ChannelGoneError from None
            log.info("history_failed", channel=channel_id, detail=str(error))
            return None
        return messages if messages or is_known else None

    def lacks(self, shard_id: int, thread_id: int, channel_id: int) -> bool:
        """Whether the channel is known, is on this shard, and has no such active thread."""
        channel = self._client.get_channel(channel_id)
        if not isinstance(channel, discord.TextChannel) or not self.is_on(shard_id, channel.guild.id):
            return False
        return channel.get_thread(thread_id) is None

    def threads_of(self, channel_id: int) -> list[int]:
        """The active threads of a channel."""
        channel = self._client.get_channel(channel_id)
        return [thread.id for thread in channel.threads] if isinstance(channel, discord.TextChannel) else []

    def answer(self, messages: Sequence[discord.Message], reply_to: int, later: Collection[int]) -> list[Posted]:
        """Finds our answer to a message among these messages, which are oldest first. Returns its parts in order, those
        from before anybody was last forgotten without their words, which may be theirs.

        later: the recorded ids of the answer's parts, to find one that could not be posted as a reply.

        Only the first part is a reply, and a channel gets one answer at a time: our messages that are no reply belong
        to it, up to our next reply.
        """
        # A tool's messages are no part of it: polls, and Discord's system message about a pin, which is a reply, too.
        me = bot_of(self._client)[1]
        ours = [m for m in messages if m.author.id == me and m.type in SAID_BY_PEOPLE and m.poll is None]
        first = next((m for m in ours if m.reference and m.reference.message_id == reply_to), None)
        first = first or next((m for m in ours if m.id in later), None)
        if first is None:
            return []
        behind = takewhile(lambda m: m.reference is None, (m for m in ours if m.id > first.id))
        found = map(posted, (first, *behind))
        return [replace(p, content="") if self._consent.may_be_forgotten(p.message_id) else p for p in found]

    def replied_to(self, messages: Sequence[discord.Message]) -> set[int]:
        """The ids of the messages that the bot's messages among these reply to."""
        ours = (m.reference for m in messages if m.author.id == bot_of(self._client)[1])
        return {reference.message_id for reference in ours if reference and reference.message_id}

    async def around(self, news: News, messages: Sequence[discord.Message]) -> list[discord.Message]:
        """These messages and the newest of the channel, which may hold answers to them, or context. One request."""
        newest = await self.newest(news.guild_id, news.channel_id) or ()
        return [message for _, message in sorted({m.id: m for m in (*newest, *messages)}.items())]

    async def exchange(
        self,
        messages: Sequence[discord.Message],
        asked: discord.Message,
        known: Collection[int],
        deleted_by: Collection[int] = (),
    ) -> Exchange | None:
        """A message that we answered, with our answer, as far as both may still be kept; None: the question may not.

        messages: where to look for the answer. known: the ids of messages that are no part of it. deleted_by: people
        whose messages were deleted since.
        """
        place, (name, me) = self._reader.incoming(asked, None).place, bot_of(self._client)
        # A quote of the bot may be based on the words of somebody who was forgotten.
        read = without_lost_quote(self._reader.record(asked), me, {})
        read = with_forwarded(read, await self._history.forwarded(asked))
        question = self._consent.tellable(place.channel_id, read) if self._reader.hears(asked) else None
        if question is None or not self.is_answered(place, question.author_id):
            return None
        stands = {part.message_id for part in self.answer(messages, asked.id, ())}.difference(known)
        people = frozenset(m.author.id for m in messages if is_persons(m) and m.id < max(stands, default=0))
        people |= question.drew_on.union(deleted_by, [UNTRACED] if stands else [])
        said = (
            MessageRecord(
                author=name,
                author_id=me,
                content=message.content,
                timestamp=message.created_at,
                is_bot=True,
                message_id=message.id,
                mentioned=NOBODY,
                reply_to_id=asked.id,
                addressees=frozenset({question.author_id}),
                drew_on=people,
            )
            for message in messages
            if message.id in stands
        )
        # It may be missing in the store because it quotes somebody who was forgotten.
        answer = tuple(record for record in said if not self._consent.may_be_forgotten(record.message_id))
        return Exchange(place, question, answer, people)


def _may_read(channel: Known) -> bool:
    if not has_rules(channel):
        return False
    allowed = channel.permissions_for(channel.guild.me)
    return allowed.view_channel and allowed.read_message_history


def id_at(moment: datetime) -> int:
    """The lowest id that a message of this time can have."""
    return discord.utils.time_snowflake(moment)
