"""What the agent's tools do in Discord: each time only what both the person who asked and the bot may do there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import and_
from typing import Protocol, TypeVar

import discord
import structlog

from conversation import MessageRecord
from discord_io.channel_history import FAILURES
from discord_io.incoming_messages import to_record

log = structlog.get_logger()

T = TypeVar("T")
Channel = discord.TextChannel | discord.VoiceChannel | discord.StageChannel

CALL_SECONDS = 20.0  # the library's waits included; the model waits, and people with it
LOOK_BACK = 100  # messages among which a poll is looked for: one request
MAX_EMOJI = 16  # characters of the longest flags and families

# What is not there and what they may not see reads alike: neither tells of the other.
CANNOT_READ = "Not done: there is no such channel here, or the person who asks cannot read it."
UNREAD = "I cannot read that channel."
GONE = "Not done: there is no such message."
NOT_TOLD = "That message is not for me to read."
THEY_LACK = "Not done: the person who asks lacks the permission '{}' in this channel."
I_LACK = "Not done: I lack the permission '{}' in this channel."
NO_EMOJI = "Not done: that is not one emoji, nor the name of one of this server's own."
REFUSED = "Not done: Discord refuses it."
UNSURE = "Discord gave no proper answer: it may be done, or not."
# Discord's codes of refusals that somebody can do something about.
REFUSALS = {
    10007: "Not done: the person who asks is not in this server.",
    10014: NO_EMOJI,
    30003: "Not done: this channel has as many pins as it can have.",
    30010: "Not done: that message has as many different reactions as it can have.",
    50021: "Not done: that is a message of Discord's own.",
    90001: "Not done: the message's author has blocked me.",
}


class Asked(Protocol):
    """For whom something is done, and where. everybody: all who are to see what comes of it."""

    @property
    def guild_id(self) -> int: ...
    @property
    def channel_id(self) -> int: ...
    @property
    def user_id(self) -> int: ...
    @property
    def everybody(self) -> frozenset[int]: ...


class Poll(Protocol):
    """What people are to vote on. multiple: whether one may choose several options."""

    @property
    def question(self) -> str: ...
    @property
    def options(self) -> Sequence[str]: ...
    @property
    def hours(self) -> int: ...
    @property
    def multiple(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class _Place:
    """A channel that both may read. theirs: what the person who asked may do there; ours: what the bot may."""

    channel: Channel
    theirs: discord.Permissions
    ours: discord.Permissions

    def lacks(self, permission: str, *, or_they: str = "") -> str | None:
        """Which of the two may not, in a sentence. or_they: another permission that serves, for the person."""
        if not any(getattr(self.theirs, name) for name in (permission, or_they) if name):
            return THEY_LACK.format(permission)
        return None if getattr(self.ours, permission) else I_LACK.format(permission)


class DiscordActions:
    """The Actions of agents/tools.py. client: connected.

    readable: (channel id, a message there) -> the message as far as it may be told, None: not at all.
    """

    def __init__(
        self,
        client: discord.Client,
        readable: Callable[[int, MessageRecord], MessageRecord | None],
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._readable = readable
        self._clock = clock

    async def can_read(self, asked: Asked) -> bool:
        """Whether the person may read the history where they asked; not where that cannot be found out."""
        return isinstance(await _answered(self._look(asked, asked.channel_id)), _Place)

    async def read(self, asked: Asked, channel_id: int, message_id: int) -> MessageRecord | str:
        return await _answered(self._read(asked, channel_id, message_id))

    async def react(self, asked: Asked, message_id: int, emoji: str) -> str | None:
        return await _answered(self._react(asked, message_id, emoji))

    async def pin(self, asked: Asked, message_id: int) -> str | None:
        return await _answered(self._pin(asked, message_id))

    async def poll(self, asked: Asked, poll: Poll, nonce: str) -> str | None:
        return await _answered(self._poll(asked, poll, nonce))

    async def _read(self, asked: Asked, channel_id: int, message_id: int) -> MessageRecord | str:
        place = await self._look(asked, channel_id)
        if isinstance(place, str):
            return place
        message = await place.channel.fetch_message(message_id)
        return self._readable(channel_id, to_record(message, place.channel.guild.me.id)) or NOT_TOLD

    async def _react(self, asked: Asked, message_id: int, emoji: str) -> str | None:
        place = await self._look(asked, asked.channel_id)
        if isinstance(place, str):
            return place
        found = _emoji(place.channel.guild, emoji)
        if found is None:
            return NO_EMOJI
        if lacks := place.lacks("add_reactions"):
            return lacks
        await place.channel.get_partial_message(message_id).add_reaction(found)
        return None

    async def _pin(self, asked: Asked, message_id: int) -> str | None:
        place = await self._look(asked, asked.channel_id)
        if isinstance(place, str):
            return place
        # Discord lets nobody pin by manage_messages alone since 2026-02-23; to allow it here it is enough.
        if lacks := place.lacks("pin_messages", or_they="manage_messages"):
            return lacks
        await place.channel.get_partial_message(message_id).pin(reason=f"Allowed by the user {asked.user_id}")
        return None

    async def _poll(self, asked: Asked, poll: Poll, nonce: str) -> str | None:
        place = await self._look(asked, asked.channel_id)
        if isinstance(place, str):
            return place
        if lacks := place.lacks("send_messages") or place.lacks("send_polls"):
            return lacks
        # Discord knows a nonce for minutes only, and whoever allowed this may do so again after a kill.
        if not await self._stands(place.channel, poll):
            await place.channel.send(poll=_made(poll), nonce=nonce, allowed_mentions=discord.AllowedMentions.none())
        return None

    async def _stands(self, channel: Channel, poll: Poll) -> bool:
        """Whether this very poll of ours is open among the last messages."""
        wanted = _content(_made(poll))
        async for message in channel.history(limit=LOOK_BACK):
            standing = message.poll
            if standing and message.author.id == channel.guild.me.id and _content(standing) == wanted:
                return standing.expires_at is None or standing.expires_at > self._clock()
        return False

    async def _look(self, asked: Asked, channel_id: int) -> _Place | str:
        """The place, if both may read there; or why not. Who may what is asked anew: no members are cached."""
        guild = self._client.get_guild(asked.guild_id)
        channel = guild.get_channel(channel_id) if guild else None
        if guild is None or not isinstance(channel, Channel):
            return CANNOT_READ
        # What one of those who are answered together may not, none of them gets.
        members = [await guild.fetch_member(user_id) for user_id in asked.everybody]
        theirs = discord.Permissions(reduce(and_, (channel.permissions_for(member).value for member in members)))
        ours = channel.permissions_for(guild.me)
        if not _may_read(channel, theirs):
            return CANNOT_READ
        return _Place(channel, theirs, ours) if _may_read(channel, ours) else UNREAD


def _may_read(channel: Channel, allowed: discord.Permissions) -> bool:
    """By Discord's rules: the text of a voice channel is for those who may connect."""
    is_text = isinstance(channel, discord.TextChannel)
    return allowed.view_channel and allowed.read_message_history and (is_text or allowed.connect)


def _emoji(guild: discord.Guild, given: str) -> discord.Emoji | str | None:
    """One of the guild's by its markup or name, or a character for Discord to judge."""
    asked = discord.PartialEmoji.from_str(given.strip())
    name = asked.name.strip(":")
    own = (emoji for emoji in guild.emojis if (emoji.id == asked.id if asked.id else emoji.name == name))
    if (found := next(own, None)) or asked.id:
        return found
    return None if name.isascii() or len(name) > MAX_EMOJI else name


def _made(poll: Poll) -> discord.Poll:
    made = discord.Poll(poll.question, timedelta(hours=poll.hours), multiple=poll.multiple)
    for option in poll.options:
        made.add_answer(text=option)
    return made


def _content(poll: discord.Poll) -> tuple[object, ...]:
    return poll.question, [answer.text for answer in poll.answers], poll.duration, poll.multiple


async def _answered(doing: Awaitable[T]) -> T | str:
    """What comes of it; in a sentence where Discord refuses it, or says nothing."""
    try:
        async with asyncio.timeout(CALL_SECONDS):
            return await doing
    except FAILURES as error:
        log.info("tool_failed", detail=f"{type(error).__name__}: {error}")
        return _sentence(error)


def _sentence(error: Exception) -> str:
    match error:
        case discord.HTTPException(code=code) if code in REFUSALS:
            return REFUSALS[code]
        case discord.NotFound():
            return GONE
        case discord.DiscordServerError():
            return UNSURE
        case discord.HTTPException():
            return REFUSED
        case _:
            return UNSURE
