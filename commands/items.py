"""Dispatch of clicks by the prefix of their custom_id, which works after a restart, too."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Self

import discord

from turns.gate import Gate

# Discord waits 3 s for the answer to a click.
CLICK_PATIENCE_SECONDS = 1.5

Answer = Callable[[discord.Interaction], Awaitable[object]]
BreakOff = Callable[[discord.Interaction, Exception], Awaitable[None]]


def answer_clicks(client: discord.Client, gate: Gate, answers: Mapping[str, Answer], break_off: BreakOff) -> None:
    """Registers handlers of clicks by the prefix of the custom_id. A click waits for the channel's older messages."""

    def item_of(prefix: str, answer: Answer) -> type[discord.ui.DynamicItem[discord.ui.Item[Any]]]:
        template = re.compile(f"{re.escape(prefix)}.*", re.DOTALL)

        class Clicked(discord.ui.DynamicItem[discord.ui.Item[Any]], template=template):
            @classmethod
            async def from_custom_id(
                cls, _interaction: discord.Interaction[Any], item: discord.ui.Item[Any], _match: re.Match[str], /
            ) -> Self:
                return cls(item)

            async def callback(self, interaction: discord.Interaction[Any]) -> None:
                await answer_when_open(gate, interaction, answer, break_off)

        return Clicked

    client.add_dynamic_items(*(item_of(prefix, answer) for prefix, answer in answers.items()))


async def answer_when_open(gate: Gate, interaction: discord.Interaction, answer: Answer, break_off: BreakOff) -> None:
    """Handles a click after older messages of its channel, waiting 1.5 s at most. break_off: handles errors."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CLICK_PATIENCE_SECONDS):
            await gate.wait(interaction.channel_id or 0, interaction.guild_id or 0)
    try:
        await answer(interaction)
    except Exception as error:  # noqa: BLE001 - break_off logs it; discord.py would not tell the user
        await break_off(interaction, error)
