"""Receives messages: passes each on once, and only those that may concern the bot."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol
from weakref import WeakValueDictionary

import discord

from conversation import ConversationManager, MessageRecord
from discord_io.channel_history import with_forwarded
from discord_io.incoming_messages import MessageReader
from discord_io.places import Places
from incoming import Incoming
from state.message import NOBODY, requoted, sources_of

SEEN_IDS = 4_000
IN_A_ROUND = 8  # messages in one step of the event loop, so that many at once do not block it


class Listener(Protocol):
    """Offers, where they are on."""

    def follows(self, channel_id: int, guild_id: int, parent_id: int = 0, *, is_on: bool) -> bool:
        """Whether all messages there are to be handled, not only those that may be for the bot.

        is_on: whether offers are on there. parent_id: a thread's channel; 0: none.
        """


class Records(Protocol):
    """Records decisions."""

    def ignored(self, message_id: int, guild_id: int, channel_id: int, author_id: int) -> None:
        """Records a message outside any conversation that triggers nothing."""


class Handler(Protocol):
    """Handles messages."""

    async def handle(self, incoming: Incoming, *, hears_out: bool = False) -> bool:
        """Returns True once the message is handled; False: it is left to the next process that has the shard."""


class History(Protocol):
    """What others said of what people quote and forward."""

    async def quoted(self, channel_id: int, message_id: int) -> MessageRecord | None: ...

    async def forwarded(self, message: discord.Message) -> frozenset[int] | None: ...


class Inbox:
    """Turns messages into Incomings for the handler."""

    def __init__(
        self,
        reader: MessageReader,
        places: Places,
        conversations: ConversationManager,
        listener: Listener,
        records: Records,
        handler: Handler,
        history: History,
    ) -> None:
        self._reader = reader
        self._places = places
        self._conversations = conversations
        self._listener = listener
        self._records = records
        self._handler = handler
        self._history = history
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._in_round = asyncio.Semaphore(IN_A_ROUND)
        self._in_turn: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def take(self, message: discord.Message, *, hears_out: bool = False) -> None:
        """Passes a message on to the handler, once. hears_out: the handler waits for its author's further messages.

        Nearly every message of every channel ends here: it is outside any conversation, and not for the bot. Other
        bots' messages count only within a conversation.
        """
        channel, channel_id, guild_id = message.channel, message.channel.id, message.guild.id if message.guild else 0
        conversation = self._conversations.get(channel_id)
        is_heard = self._reader.hears(message) or (conversation and self._reader.is_other_bots(message))
        if not is_heard or message.id in self._seen:  # after a RESUME Discord can send one twice
            return
        parent_id = channel.parent_id if isinstance(channel, discord.Thread) else 0
        follows = self._listener.follows(channel_id, guild_id, parent_id, is_on=self._places.has_offers(channel))
        if not (follows or conversation or self._reader.may_concern_us(message)):
            self.skip([message.id])
            self._records.ignored(message.id, guild_id, channel_id, message.author.id)
            return
        await self._in_round.acquire()
        asyncio.get_running_loop().call_soon(self._in_round.release)
        # Begun before its turn comes, so that a flood of forwards holds up the channel no longer than one. The handler
        # leaves out what is forgotten meanwhile.
        looking = asyncio.ensure_future(self._history.forwarded(message)) if message.reference else None
        # Whoever is looked up for is not overtaken in the channel, and holds up no other one.
        async with self._in_turn.setdefault(channel_id, asyncio.Lock()):
            # Of its own words, which may be somebody's who was forgotten, only what is kept is read from Discord. An
            # answer that an earlier process began may be known without them.
            own = self._reader.own_quoted(message)
            conversation = None if own is None else self._conversations.get(channel_id)
            known = conversation.find(own) if conversation and own else None
            is_known = own is None or (known is not None and known.text != "")
            quoted = None if is_known or own is None else await self._history.quoted(channel_id, own)
            forwarded = await looking if looking else NOBODY
        if message.id not in self._seen:  # which it is where it came twice, or was deleted meanwhile
            self.skip([message.id])
            incoming = self._reader.incoming(message, self._conversations.get(channel_id))
            if forwarded != NOBODY:
                incoming = replace(incoming, record=with_forwarded(incoming.record, forwarded))
            if quoted:
                quoting = replace(incoming.record, drew_on=quoted.drew_on | quoted.addressees)
                incoming = replace(incoming, record=quoting)
            elif not is_known:
                incoming = replace(incoming, record=requoted(incoming.record, None))
            if not await self._handler.handle(incoming, hears_out=hears_out):
                self._seen.pop(message.id, None)  # this process may get the shard back
            if quoted:
                self._conversations.record_looked_up(channel_id, sources_of(quoted))

    def is_over(self, message_id: int) -> bool:
        """Whether a message was handled, or was deleted before."""
        return message_id in self._seen

    def skip(self, message_ids: Iterable[int]) -> None:
        """Ignores these messages from now on."""
        for message_id in message_ids:
            self._seen[message_id] = None
        while len(self._seen) > SEEN_IDS:
            self._seen.popitem(last=False)
