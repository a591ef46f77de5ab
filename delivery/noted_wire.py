"""A way into a channel that notes which question each of its messages answers."""

from __future__ import annotations

import discord

from delivery.card import Card
from delivery.discord_wire import DiscordWire
from delivery.post import Posted
from followup.outcomes import Outcomes


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
