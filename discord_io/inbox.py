"""Where people's messages come in: each once, and only what may concern the bot goes on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Protocol

import discord

from conversation import ConversationManager
from discord_io.incoming_messages import MessageReader, is_said_by_people
from incoming import Incoming

SEEN_IDS = 4_000


class Listener(Protocol):
    """Offers, where they are on."""

    def listens(self, channel_id: int) -> bool:
        """Whether all that people say there is to be handled, and not only what may be said to the bot."""


class Records(Protocol):
    """Where decisions are noted."""

    def ignored(self, message_id: int, guild_id: int, channel_id: int, author_id: int) -> None:
        """A message outside any conversation that triggers nothing."""


class Handler(Protocol):
    """What becomes of messages."""

    async def handle(self, incoming: Incoming, *, hears_out: bool = False) -> None: ...


class Inbox:
    """Turns messages into Incomings for the handler."""

    def __init__(
        self,
        reader: MessageReader,
        conversations: ConversationManager,
        listener: Listener,
        records: Records,
        handler: Handler,
    ) -> None:
        self._reader = reader
        self._conversations = conversations
        self._listener = listener
        self._records = records
        self._handler = handler
        self._seen: OrderedDict[int, None] = OrderedDict()

    async def take(self, message: discord.Message, *, hears_out: bool = False) -> None:
        """Has a person's message handled, once. hears_out: with what else they say in one go.

        Nearly every message of every channel ends here: outside any conversation, and not said to the bot.
        """
        if not is_said_by_people(message) or message.id in self._seen:  # after a RESUME Discord can send one twice
            return
        self.skip([message.id])
        channel_id = message.channel.id
        conversation = self._conversations.get(channel_id)
        if conversation or self._listener.listens(channel_id) or self._reader.may_concern_us(message):
            await self._handler.handle(self._reader.incoming(message, conversation), hears_out=hears_out)
        else:
            guild_id = message.guild.id if message.guild else 0
            self._records.ignored(message.id, guild_id, channel_id, message.author.id)

    def skip(self, message_ids: Iterable[int]) -> None:
        """These are not taken any more."""
        for message_id in message_ids:
            self._seen[message_id] = None
        while len(self._seen) > SEEN_IDS:
            self._seen.popitem(last=False)
