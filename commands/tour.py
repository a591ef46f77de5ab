"""/tour: what the bot does in the channel, step by step, on a card that only whoever asked for it sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import discord
from discord import app_commands

from commands.answers import IN_THREAD, is_in_thread, tell
from delivery.clicks import settle, whisper
from delivery.tour import CLOSING, TourFacts, TourPress, pages, read_tour_click, text_of, turn_to, view_of

NO_SUCH_STEP = "That tour is over. /tour begins another."


class Guide(Protocol):
    """Is told how tours go in a channel."""

    def began(self, channel_id: int) -> None: ...
    def stepped(self, channel_id: int) -> None: ...
    def ended(self, channel_id: int) -> None: ...


class Tours:
    """All tours. facts: what holds where the interaction is."""

    def __init__(self, *, guide: Guide, facts: Callable[[discord.Interaction], TourFacts]) -> None:
        self._guide = guide
        self._facts = facts

    async def begin(self, interaction: discord.Interaction) -> None:
        """Shows the first step."""
        if is_in_thread(interaction):
            await tell(interaction, IN_THREAD)
            return
        self._guide.began(interaction.channel_id or 0)
        steps = pages(self._facts(interaction))
        await tell(interaction, text_of(steps[0], 0, len(steps)), view_of(0, len(steps)))

    async def answer(self, interaction: discord.Interaction) -> bool:
        """Answers an interaction if it is a click on a tour's card. Returns whether it was one."""
        match read_tour_click(interaction):
            case None:
                return False
            case TourPress.DONE:
                self._guide.ended(interaction.channel_id or 0)
                await settle(interaction, CLOSING)
            case TourPress.UNKNOWN:
                await whisper(interaction, NO_SUCH_STEP)
            case int(step):
                await self._show(interaction, step)
        return True

    async def _show(self, interaction: discord.Interaction, step: int) -> None:
        steps = pages(self._facts(interaction))
        if step >= len(steps):
            await whisper(interaction, NO_SUCH_STEP)
            return
        self._guide.stepped(interaction.channel_id or 0)
        await turn_to(interaction, text_of(steps[step], step, len(steps)), view_of(step, len(steps)))


def add_tour(tree: app_commands.CommandTree, tours: Tours) -> None:
    @tree.command(description="What do I do in this channel? A short tour, step by step.")
    @app_commands.guild_only()
    async def tour(interaction: discord.Interaction) -> None:
        await tours.begin(interaction)
