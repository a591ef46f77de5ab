"""bench: what is counted as a message's cost, and Parley beside another bot."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import discord
import pytest

from bench.__main__ import Peer, flood_cost
from bench.peers.__main__ import run, table
from bench.peers.bots import minimal, parley


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


@pytest.mark.slow
async def test_peers_go_through_the_same_run_and_only_one_of_them_forgets_what_a_kill_cut_off(tmp_path: Path) -> None:
    few = argparse.Namespace(runs=1, asks=1, answers=20, kills=1, seed=2)
    measured = await run([parley(), minimal()], tmp_path, few)
    assert [of.unanswered for of in measured.values()] == [0, 0]
    assert [of.away_lost for of in measured.values()] == [0, 1]
    assert "| answered twice | 0 | 0 |" in table(measured)
