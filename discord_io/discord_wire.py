"""The one place that posts, edits, deletes, reacts and types."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Container, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from io import BytesIO
from typing import Any, Protocol

import aiohttp
import discord
import structlog

from discord_io.card import Card
from discord_io.channel_wire import Posted, PostError, Problem
from discord_io.incoming_messages import bot_of
from discord_io.made_files import MadeFile
from discord_io.message_records import SAID_BY_PEOPLE
from discord_io.view import is_offer, offer_view, view_of
from followup.learning import Learning

log = structlog.get_logger()

# Discord shows typing for 10 s.
TYPING_INTERVAL_SECONDS = 8.0
# Nobody but the replied-to person is ever pinged, whatever the text says.
PINGS = discord.AllowedMentions(everyone=False, users=False, roles=False, replied_user=True)
# What discord.py raises when a server's answer has an unexpected form.
UNREADABLE = (TypeError, KeyError, AttributeError, ValueError)
# What a failed request raises; RuntimeError: one made while discord.py is being closed.
FAILED = (discord.DiscordException, aiohttp.ClientError, OSError, RuntimeError)
# The most that a call may take, with discord.py's own tries and the waits between them.
CALL_SECONDS = 120.0
# The most that Discord may take to answer one request.
REQUEST_SECONDS = 15.0
LOOK_BACK = 100  # messages that one request returns when looking for one
MAX_LOOKS = 10  # requests to look for one, in a channel with many messages since
TOO_MANY = 429
# Discord: replying needs the permission to read the history.
CANNOT_REPLY_WITHOUT_HISTORY = 160002
THREAD_IS_ARCHIVED, THREAD_IS_LOCKED = 50083, 160005
# Discord: this person accepts no direct messages, or none from the bot.
BLOCKED = 50007


_timeout: ContextVar[tuple[asyncio.Timeout, float] | None] = ContextVar("timeout", default=None)

Known = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread
Channel = Known | discord.PartialMessageable


class OwnPosts(Protocol):
    """Observes our own messages on the gateway."""

    def sends(self, nonce: str) -> None:
        """Called before a message is posted with this nonce."""

    def hears_all_since(self, message_id: int, guild_id: int) -> bool | None:
        """Whether all of a guild's messages after this one were received; None: its shard is disconnected now."""


def find_channel(client: discord.Client, guild_id: int, channel_id: int) -> Channel:
    """The channel from the cache, or else a partial one by its id. Makes no request.

    guild_id: 0: a direct message.
    """
    channel = client.get_channel(channel_id)
    if isinstance(channel, Known):
        return channel
    if not guild_id:
        return client.get_partial_messageable(channel_id, type=discord.ChannelType.private)
    return client.get_partial_messageable(channel_id, guild_id=guild_id)


async def read_messages(channel: Channel, **how: Any) -> list[discord.Message]:
    """Reads a channel's messages, and sorts them oldest first. how: the arguments of history()."""
    return sorted([m async for m in channel.history(**how)], key=lambda message: message.id)


def request_timeouts() -> aiohttp.TraceConfig:
    """For discord.Client's http_trace: ends a wire's request that is not answered within REQUEST_SECONDS.

    discord.py's waits for rate limits, which can be longer, do not count.
    """

    async def started(*_: object) -> None:
        if bound := _timeout.get():
            timeout, deadline = bound
            timeout.reschedule(min(deadline, asyncio.get_running_loop().time() + REQUEST_SECONDS))

    async def answered(*_: object) -> None:
        if bound := _timeout.get():
            timeout, deadline = bound
            timeout.reschedule(deadline)

    trace = aiohttp.TraceConfig()
    trace.on_request_start.append(started)
    trace.on_request_end.append(answered)
    return trace


class DiscordWire:
    """Posts one answer to one channel. learning: told which question each message of the answer is for.

    own_posts: told of each nonce before it is sent.
    """

    def __init__(
        self,
        client: discord.Client,
        guild_id: int,
        channel_id: int,
        learning: Learning | None = None,
        own_posts: OwnPosts | None = None,
    ) -> None:
        self._client = client
        self._guild_id = guild_id
        self._sent: dict[int, discord.Message] = {}
        self._channel_id = channel_id
        self._channel = find_channel(client, guild_id, channel_id)
        self._learning = learning
        self._own_posts = own_posts
        self._question: int | None = None

    @property
    def attaches(self) -> bool:
        """Whether it may post files there, as far as the cache knows."""
        channel = self._channel
        allowed = channel.permissions_for(channel.guild.me) if isinstance(channel, discord.abc.GuildChannel) else None
        return allowed is None or allowed.attach_files

    async def send(
        self, text: str, *, nonce: str, reply_to: int | None, card: Card | None = None, files: Sequence[MadeFile] = ()
    ) -> Posted:
        """Posts a message, as a reply and with its card if Discord accepts them, else without.

        Discord refuses a reply to a deleted message, or where the bot may not read the history.
        """
        if self._own_posts is not None:
            self._own_posts.sends(nonce)
        ways = list(dict.fromkeys([(reply_to, card), (reply_to, None), (None, card), (None, None)]))
        async with _problems():
            for way in ways:
                answered, shown = way
                # No previews: Discord would open any URL that somebody made the model write, perhaps with private text
                # in it, before anybody clicks.
                more: dict[str, Any] = {"suppress_embeds": True}
                if shown is not None:
                    more["view"] = view_of(shown)
                if files:
                    more["files"] = _uploads(files)
                if answered is not None:
                    more["reference"] = discord.MessageReference(
                        message_id=answered,
                        channel_id=self._channel_id,
                        guild_id=self._guild_id or None,
                        fail_if_not_exists=False,
                    )
                try:
                    message = await self._channel.send(text, nonce=nonce, allowed_mentions=PINGS, **more)
                    break
                except discord.HTTPException as error:
                    may_go = error.status == 400 or error.code == CANNOT_REPLY_WITHOUT_HISTORY
                    if way is ways[-1] or not may_go or error.code in (THREAD_IS_ARCHIVED, THREAD_IS_LOCKED):
                        raise
                    log.warning("send_refused", channel=self._channel_id, error=str(error))
        return self._take(message, reply_to)

    async def find(self, texts: Container[str], *, after: int, reply_to: int | None) -> Posted | None:
        """The first of our messages after this id that replies to reply_to, or to none and has one of these texts.

        If the history may not be read, searches the messages received by the gateway. Raises as Wire.find does.
        """
        channel = self._channel
        allowed = channel.permissions_for(channel.guild.me) if isinstance(channel, discord.abc.GuildChannel) else None
        if allowed and not allowed.read_message_history:  # Discord would return an empty list
            heard = [message for message in self._client.cached_messages if message.channel.id == self._channel_id]
            if found := self._first((m for m in heard if m.id > after), texts, reply_to):
                return found
            goes_back = bool(heard) and heard[0].id <= after
            match self._own_posts.hears_all_since(after, self._guild_id) if self._own_posts and goes_back else False:
                case True:
                    return None
                case False:
                    raise PostError(Problem.FORBIDDEN, "the history of the channel may not be read")
                case None:
                    raise PostError(Problem.UNREACHABLE, "there is no connection by which to hear what was posted")
        since = after
        for _ in range(MAX_LOOKS):
            async with _problems():
                page = await read_messages(channel, limit=LOOK_BACK, after=discord.Object(since), oldest_first=True)
            if found := self._first(page, texts, reply_to):
                return found
            if len(page) < LOOK_BACK:
                return None
            since = page[-1].id
        log.warning(
            "look_up_cut",
            channel=self._channel_id,
            after=after,
            read=MAX_LOOKS * LOOK_BACK,
            meaning="whether the answer comes after that is not known, so it is not posted again",
        )
        raise PostError(Problem.UNKNOWN, "too much was said in the channel since")

    def _first(self, messages: Iterable[discord.Message], texts: Container[str], reply_to: int | None) -> Posted | None:
        me = bot_of(self._client)[1]
        for message in messages:
            if message.author.id != me or message.type not in SAID_BY_PEOPLE or message.poll is not None:
                continue
            answered = message.reference.message_id if message.reference else None
            if answered == reply_to if answered else message.content in texts:
                return self._take(message, reply_to)
        return None

    def _take(self, message: discord.Message, reply_to: int | None) -> Posted:
        """Records a message of the answer."""
        self._sent[message.id] = message
        self._question = reply_to or self._question  # only the first part of an answer is a reply
        if self._learning is not None and self._question:
            self._learning.posted(message.id, self._question, message.created_at)
        return posted(message)

    async def offer(self, text: str, offer_id: str, labels: Mapping[str, str], *, nonce: str) -> Posted:
        """Posts an offer with its quick replies. Notifies and pings nobody."""
        if self._own_posts is not None:
            self._own_posts.sends(nonce)
        async with _problems():
            message = await self._channel.send(
                text,
                nonce=nonce,
                silent=True,
                view=offer_view(offer_id, labels),
                allowed_mentions=discord.AllowedMentions.none(),
            )
            return Posted(message.id, message.created_at, message.content)

    async def find_offer(self, offer_id: str, after: int) -> Posted | None:
        """The message of an offer, among the 100 messages after this id; None: it is not there."""
        async with _problems():
            for message in await read_messages(self._channel, limit=LOOK_BACK, after=discord.Object(after)):
                if is_offer(message, offer_id):
                    return Posted(message.id, message.created_at, message.content)
        return None

    async def words_of(self, message_id: int) -> str | None:
        """A message's content; None: it was deleted."""
        async with _problems():
            try:
                return (await self._channel.fetch_message(message_id)).content
            except discord.NotFound:
                return None

    def _message(self, message_id: int) -> discord.Message | discord.PartialMessage:
        return self._sent.get(message_id) or self._channel.get_partial_message(message_id)

    async def edit(
        self, message_id: int, text: str, card: Card | None = None, files: Sequence[MadeFile] | None = None
    ) -> None:
        """Changes a message's text, and adds the card if Discord accepts it. files: None: unchanged."""
        async with _problems():
            if card is not None:
                try:
                    await self._edit(message_id, files, content=text, view=view_of(card))
                    return
                except discord.HTTPException as error:
                    if error.status != 400:
                        raise
                    log.warning("card_refused", message=message_id, error=str(error))
            await self._edit(message_id, files, content=text)

    async def settle(self, message_id: int, text: str) -> None:
        """Replaces a card's message by its final text, and removes the card."""
        async with _problems():
            await self._edit(message_id, content=text, view=None)

    async def _edit(self, message_id: int, files: Sequence[MadeFile] | None = None, **changes: Any) -> None:
        """Edits a message, also in a thread that was archived meanwhile: opens that, as posting would do by itself."""
        message = self._message(message_id)
        if isinstance(message, discord.Message):  # else the edit would bring back previews
            changes["suppress"] = True

        def uploads() -> dict[str, Any]:  # a discord.File can be sent only once
            return {} if files is None else {"attachments": _uploads(files)}

        try:
            await message.edit(allowed_mentions=PINGS, **changes, **uploads())
        except discord.HTTPException as error:
            if error.code != THREAD_IS_ARCHIVED:
                raise
            await self._client.http.edit_channel(self._channel_id, archived=False)
            await message.edit(allowed_mentions=PINGS, **changes, **uploads())

    async def delete(self, message_id: int) -> None:
        if self._learning is not None:
            self._learning.retracted(message_id)
        async with _problems():
            with suppress(discord.NotFound):
                await self._message(message_id).delete()

    async def react(self, message_id: int, emoji: str) -> None:
        """Adds a reaction; where that fails, it is left out, as nothing depends on it."""
        try:
            await self._message(message_id).add_reaction(emoji)
        except FAILED as error:
            log.info("reaction_failed", message=message_id, error=str(error))

    async def keep_typing(self, *, after: float = 0.0) -> None:
        """Shows the bot as typing, after so many seconds, until cancelled; gives up quietly if that fails."""
        await asyncio.sleep(after)
        while True:
            try:
                await self._channel.typing()
            except FAILED as error:
                if getattr(error, "code", 0) != BLOCKED:  # logged when the answer is posted
                    log.info("typing_failed", channel=self._channel_id, error=str(error))
                return
            await asyncio.sleep(TYPING_INTERVAL_SECONDS)


class Wires:
    """Opens wires to channels, and knows who the bot is."""

    def __init__(self, client: discord.Client, learning: Learning, own_posts: OwnPosts) -> None:
        self._client = client
        self._learning = learning
        self._own_posts = own_posts

    def bot(self) -> tuple[str, int]:
        """The bot's name and id."""
        return bot_of(self._client)

    def open(self, guild_id: int, channel_id: int) -> DiscordWire:
        return DiscordWire(self._client, guild_id, channel_id, self._learning, self._own_posts)


@asynccontextmanager
async def _problems() -> AsyncIterator[None]:
    """Turns every error of a request into PostError."""
    try:
        async with asyncio.timeout(CALL_SECONDS) as timeout:
            reset = _timeout.set((timeout, asyncio.get_running_loop().time() + CALL_SECONDS))
            try:
                yield
            finally:
                _timeout.reset(reset)
    except discord.Forbidden as error:
        raise PostError(Problem.BLOCKED if error.code == BLOCKED else Problem.FORBIDDEN, str(error)) from error
    except discord.NotFound as error:
        raise PostError(Problem.GONE, str(error)) from error
    except discord.DiscordServerError as error:
        raise PostError(Problem.UNREACHABLE, str(error)) from error
    except discord.HTTPException as error:
        if error.status == TOO_MANY:  # from Discord, or from a proxy in front of it
            raise PostError(Problem.UNREACHABLE, str(error), _retry_after(error)) from error
        is_locked = error.code in (THREAD_IS_ARCHIVED, THREAD_IS_LOCKED)
        raise PostError(Problem.LOCKED if is_locked else Problem.REJECTED, str(error)) from error
    except UNREADABLE as error:
        raise PostError(Problem.REJECTED, f"an answer that cannot be read: {error}") from error
    except discord.RateLimited as error:
        raise PostError(Problem.UNREACHABLE, str(error), error.retry_after) from error
    except (aiohttp.ClientError, OSError, RuntimeError) as error:
        raise PostError(Problem.UNREACHABLE, str(error) or type(error).__name__) from error


def posted(message: discord.Message) -> Posted:
    """A message of an answer, as Discord returned it."""
    return Posted(message.id, message.created_at, message.content, tuple(a.filename for a in message.attachments))


def _uploads(files: Sequence[MadeFile]) -> list[discord.File]:
    """New discord.File objects, as sending uses them up."""
    return [discord.File(BytesIO(file.data), file.name) for file in files]


def _retry_after(error: discord.HTTPException) -> float:
    """The seconds in a 429's Retry-After; 0: it has none."""
    try:
        return max(0.0, float(error.response.headers.get("Retry-After", 0)))
    except ValueError:  # a date, as HTTP allows
        return 0.0
