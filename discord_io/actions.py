"""What the agent's tools do in Discord: only what both the person who asked and the bot may do there at the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce, wraps
from operator import and_
from typing import Any, ParamSpec, Protocol, TypeVar

import discord
import structlog

from clock import Clock
from conversation import MessageRecord
from discord_io.channel_history import (
    FAILURES,
    Transcripts,
    forwarded,
    kept_of,
    with_forwarded,
    without_lost_quote,
)
from discord_io.discord_wire import Channel, find_channel
from discord_io.incoming_messages import bot_of
from discord_io.message_records import replied_to_id, to_record
from discord_io.who_may_read import has_rules, is_in, is_read_by_all_of, may_read
from state.consent import Consent

log = structlog.get_logger()

P = ParamSpec("P")
T = TypeVar("T")

CALL_SECONDS = 20.0  # with discord.py's waits; the model waits for it, and people with the model
LOOK_BACK = 100  # messages among which a poll is looked for: one request
MAX_EMOJI = 16  # characters of the longest flags and families

# One text for a missing channel and one that they may not see, so that it does not reveal which.
CANNOT_READ = "Not done: there is no such channel here, or the person who asks cannot read it."
UNREAD = "I cannot read that channel."
READ_BY_FEWER = "Not done: not everybody who can read this channel can read that one, so nothing of it is told here."
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
    """For whom something is done, and where. everybody: all who are going to see the result."""

    @property
    def guild_id(self) -> int: ...
    @property
    def channel_id(self) -> int: ...
    @property
    def is_direct(self) -> bool: ...
    @property
    def user_id(self) -> int: ...
    @property
    def everybody(self) -> frozenset[int]: ...


class Poll(Protocol):
    """A poll to be made. multiple: whether one may choose several options."""

    @property
    def question(self) -> str: ...
    @property
    def options(self) -> Sequence[str]: ...
    @property
    def hours(self) -> int: ...
    @property
    def multiple(self) -> bool: ...


class _NotDoneError(Exception):
    """Something is not done. Its text is a sentence that says why."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A channel that both may read. theirs: the asking person's permissions there; ours: the bot's."""

    channel: Channel
    theirs: discord.Permissions
    ours: discord.Permissions

    def needs(self, permission: str, *, or_they: str = "") -> None:
        """Raises _NotDoneError if one of the two lacks it. or_they: another one that is enough for the person."""
        if not any(getattr(self.theirs, name) for name in (permission, or_they) if name):
            raise _NotDoneError(THEY_LACK.format(permission))
        if not getattr(self.ours, permission):
            raise _NotDoneError(I_LACK.format(permission))


def _in_words(do: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T | str]]:
    """Makes a method return a sentence for the model if it is not done, Discord refuses it, or does not answer."""

    @wraps(do)
    async def told(*args: P.args, **kwargs: P.kwargs) -> T | str:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await do(*args, **kwargs)
        except _NotDoneError as reason:
            return str(reason)
        except FAILURES as error:
            log.info("tool_failed", detail=f"{type(error).__name__}: {error}")
            match error:
                case discord.HTTPException(code=code) if code in REFUSALS:
                    return REFUSALS[code]
                case discord.NotFound():
                    return GONE
                case discord.HTTPException() if not isinstance(error, discord.DiscordServerError):
                    return REFUSED
                case _:
                    return UNSURE

    return told


class DiscordActions:
    """The Actions of agents/tools.py. client: connected. consent: what of a message may be shown to the model.

    transcripts: the bot's own stored messages; those that are not stored are not read.
    """

    def __init__(self, client: discord.Client, consent: Consent, transcripts: Transcripts, clock: Clock) -> None:
        self._client = client
        self._consent = consent
        self._transcripts = transcripts
        self._clock = clock

    async def can_search(self, asked: Asked) -> bool:
        """Whether all who see what is answered, whoever asked, may read the history there; False if it is unknown.

        Others may have had the model search, which what it looks for does not tell.
        """
        place = await _in_words(self._look)(asked, asked.channel_id)
        if not isinstance(place, _Place):
            return False
        return is_read_by_all_of(place.channel, place.channel) if has_rules(place.channel) else asked.is_direct

    @_in_words
    async def read(
        self, asked: Asked, channel_id: int, message_id: int, *, is_given: bool = True
    ) -> MessageRecord | str:
        place = await self._look(asked, channel_id)
        # What is read is answered to all who read where it was asked, who did not ask for it, or had somebody else ask:
        # they all have to be able to read there, too, or it was asked for what stands in the place itself.
        here, there = self._client.get_channel(asked.channel_id), place.channel
        if has_rules(here) and has_rules(there):
            is_read_by_all = (here == there and is_given) or is_read_by_all_of(there, here)
        else:
            is_read_by_all = asked.is_direct
        if not is_read_by_all:
            return READ_BY_FEWER
        message = await place.channel.fetch_message(message_id)
        me = bot_of(self._client)[1]
        kept = await kept_of(self._transcripts, channel_id, [message_id, replied_to_id(message) or 0])
        record = (
            kept.get(message_id) if message.author.id == me else without_lost_quote(to_record(message, me), me, kept)
        )
        if record:
            people = await forwarded(self._client, self._consent, self._transcripts, message)
            record = with_forwarded(record, people)
        return (record and self._consent.tellable(channel_id, record)) or NOT_TOLD

    @_in_words
    async def react(self, asked: Asked, message_id: int, emoji: str) -> str | None:
        place = await self._look(asked, asked.channel_id)
        found = _emoji(place.channel.guild, emoji)
        if found is None:
            return NO_EMOJI
        place.needs("add_reactions")
        await place.channel.get_partial_message(message_id).add_reaction(found)
        return None

    @_in_words
    async def pin(self, asked: Asked, message_id: int) -> None:
        place = await self._look(asked, asked.channel_id)
        # Since 2026-02-23 Discord lets nobody pin with manage_messages alone; to allow it here, that is enough.
        place.needs("pin_messages", or_they="manage_messages")
        await place.channel.get_partial_message(message_id).pin(reason=f"Allowed by the user {asked.user_id}")

    @_in_words
    async def poll(self, asked: Asked, poll: Poll, nonce: str) -> None:
        """Posts a poll, unless the same poll of ours is open among the last messages.

        Discord knows a nonce for minutes only, and after a kill the poll may be allowed once more.
        """
        place = await self._look(asked, asked.channel_id)
        place.needs("send_messages_in_threads" if isinstance(place.channel, discord.Thread) else "send_messages")
        place.needs("send_polls")
        made = discord.Poll(poll.question, timedelta(hours=poll.hours), multiple=poll.multiple)
        for option in poll.options:
            made.add_answer(text=option)
        me = bot_of(self._client)[1]
        async for message in place.channel.history(limit=LOOK_BACK):
            standing, is_ours = message.poll, message.author.id == me
            is_over = standing and standing.expires_at and standing.expires_at <= self._clock()
            if standing and is_ours and not is_over and _content(standing) == _content(made):
                return
        await place.channel.send(poll=made, nonce=nonce, allowed_mentions=discord.AllowedMentions.none())

    async def _look(self, asked: Asked, channel_id: int) -> _Place:
        """Raises _NotDoneError if one of the two may not read there. Asks Discord each time, as members are not cached.

        In a direct message both may do everything, but cannot read any other place.
        """
        if asked.is_direct and channel_id == asked.channel_id:
            everything = discord.Permissions.all()
            return _Place(find_channel(self._client, 0, channel_id), everything, everything)
        guild = self._client.get_guild(asked.guild_id)
        channel = await _find(guild, channel_id) if guild else None
        if guild is None or not has_rules(channel):
            raise _NotDoneError(CANNOT_READ)
        # Of several people who are answered together, all need the permission.
        members = [await guild.fetch_member(user_id) for user_id in asked.everybody]
        theirs = discord.Permissions(reduce(and_, (channel.permissions_for(member).value for member in members)))
        ours = channel.permissions_for(guild.me)
        if not may_read(channel, theirs):
            raise _NotDoneError(CANNOT_READ)
        if channel_id != asked.channel_id and not theirs.manage_threads:  # in their own thread they are members
            for user_id in asked.everybody:
                if not await is_in(channel, user_id):
                    raise _NotDoneError(CANNOT_READ)
        if not may_read(channel, ours):
            raise _NotDoneError(UNREAD)
        return _Place(channel, theirs, ours)


async def _find(guild: discord.Guild, channel_id: int) -> object:
    """A channel or thread of the guild; None: there is none. Archived threads are not cached, so Discord is asked."""
    if channel := guild.get_channel_or_thread(channel_id):
        return channel
    try:
        return await guild.fetch_channel(channel_id)
    except (discord.NotFound, discord.Forbidden, discord.InvalidData):
        return None


def _emoji(guild: discord.Guild | None, given: str) -> discord.Emoji | str | None:
    """One of the guild's emojis by its markup or name, or else a character, which Discord checks; None: neither."""
    asked = discord.PartialEmoji.from_str(given.strip())
    name = asked.name.strip(":")
    emojis = guild.emojis if guild else ()
    own = (emoji for emoji in emojis if (emoji.id == asked.id if asked.id else emoji.name == name))
    if (found := next(own, None)) or asked.id:
        return found
    return None if name.isascii() or len(name) > MAX_EMOJI else name


def _content(poll: discord.Poll) -> tuple[object, ...]:
    return poll.question, [answer.text for answer in poll.answers], poll.duration, poll.multiple
