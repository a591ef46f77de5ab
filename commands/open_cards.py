"""The open settings cards: each is redrawn when somebody else changes what it shows."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import discord
import structlog

from discord_io.interactions import UNANSWERABLE
from place_settings.guild_settings import Changed

log = structlog.get_logger()

MAX_CARDS = 200  # Discord lets a card be edited for 15 minutes after the last click


@dataclass(frozen=True, slots=True)
class OpenCard:
    """An ephemeral card. interaction: the last one on it, whose token can still edit it."""

    interaction: discord.Interaction
    show_anew: Callable[[Changed], Awaitable[object]]


class OpenCards:
    """The newest 200 open cards, by the ids of their messages. Mutable."""

    def __init__(self) -> None:
        self._cards: OrderedDict[int, OpenCard] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._cards)

    def opened(self, message_id: int, card: OpenCard) -> None:
        """Adds or updates a card."""
        self._cards[message_id] = card
        self._cards.move_to_end(message_id)
        for known_id, known in [*self._cards.items()]:
            if known.interaction.is_expired() or len(self._cards) > MAX_CARDS:
                del self._cards[known_id]

    def changed(self, changed: Changed) -> None:
        """Redraws the guild's cards of everybody but the user who made the change."""
        for message_id, card in [*self._cards.items()]:
            if card.interaction.is_expired():
                del self._cards[message_id]
            elif card.interaction.guild_id == changed.guild_id and card.interaction.user.id != changed.by:
                task = asyncio.create_task(self._show(message_id, card, changed))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _show(self, message_id: int, card: OpenCard, changed: Changed) -> None:
        try:
            await card.show_anew(changed)
        except UNANSWERABLE as error:  # as if the user has dismissed the card
            self._cards.pop(message_id, None)
            log.debug("card_not_shown_anew", error=str(error) or type(error).__name__)
