"""bench: what is counted as a message's cost."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import discord

from bench.__main__ import Peer, flood_cost


async def test_a_flood_costs_what_its_handling_costs_too() -> None:
    handled = []

    class Client(discord.Client):
        cached_messages = cast("Any", [SimpleNamespace(id=1)])

        async def on_message(self, message: int) -> None:
            await asyncio.sleep(0.05)  # until it is its turn
            handled.append(message)

    class Flood:
        async def tell(self, *_: object, **__: object) -> dict[str, int]:
            client.dispatch("message", 1)
            return {"last": 1}

    async with Client(intents=discord.Intents.none()) as client:
        await flood_cost(cast("Peer", Flood()), client, 1, 1)
    assert handled == [1]
