"""Ways into channels that note which question each of our messages answers."""

from __future__ import annotations

import discord

from discord_io.card import Card
from discord_io.discord_wire import DiscordWire
from discord_io.incoming_messages import bot_of
from discord_io.streamed_reply import Posted
from followup.learning import Outcomes


class NotedWire(DiscordWire):
    """The way into one channel, for one answer."""

    def __init__(self, client: discord.Client, guild_id: int, channel_id: int, outcomes: Outcomes) -> None:
        super().__init__(client, guild_id, channel_id)
        self._outcomes = outcomes
        self._question: int | None = None

    async def send(self, text: str, *, nonce: str, reply_to: int | None, card: Card | None = None) -> Posted:
        posted = await super().send(text, nonce=nonce, reply_to=reply_to, card=card)
        self._question = reply_to or self._question  # only the first part of an answer is a reply
        if self._question:
            self._outcomes.posted(posted.message_id, self._question, discord.utils.utcnow().timestamp())
        return posted

    async def delete(self, message_id: int) -> None:
        self._outcomes.retracted(message_id)
        await super().delete(message_id)


class Wires:
    """Who the bot is, and ways into channels."""

    def __init__(self, client: discord.Client, outcomes: Outcomes) -> None:
        self._client = client
        self._outcomes = outcomes

    def bot(self) -> tuple[str, int]:
        """Its name and id."""
        return bot_of(self._client)

    def open(self, guild_id: int, channel_id: int) -> NotedWire:
        return NotedWire(self._client, guild_id, channel_id, self._outcomes)
