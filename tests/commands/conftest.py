"""The commands in a loopback Discord, with an unmodified discord.py client that answers them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from unittest.mock import Mock

import discord
import pytest

from commands import Tours, add_commands, sync
from decider import RecentDecisions
from delivery.tour import TourFacts
from playground.limits import Limits
from playground.server import Playground
from tests.commands.support import Client, FakeGuide, FakeOffers, FakePrivacy
from tests.playground.support import point_discord_at


@pytest.fixture
def privacy() -> FakePrivacy:
    return FakePrivacy()


@pytest.fixture
def offers() -> FakeOffers:
    return FakeOffers()


@pytest.fixture
def guide() -> FakeGuide:
    return FakeGuide()


@pytest.fixture
def decisions() -> RecentDecisions:
    return RecentDecisions()


@pytest.fixture
async def pg() -> AsyncIterator[Playground]:
    async with Playground(limits=Limits.off()) as playground:
        yield playground


@pytest.fixture
def tours(guide: FakeGuide) -> Tours:
    facts = TourFacts(
        "Parley", may_speak=True, offers_on=True, offers_per_day=3, can_plan_trips=True, retention_days=30
    )
    return Tours(guide=guide, facts=lambda _: facts)


@pytest.fixture
def of_tour() -> asyncio.Queue[bool]:
    return asyncio.Queue()


@pytest.fixture(autouse=True)
async def bot(
    pg: Playground,
    decisions: RecentDecisions,
    privacy: FakePrivacy,
    offers: FakeOffers,
    tours: Tours,
    of_tour: asyncio.Queue[bool],
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Client]:
    """It has told Discord of its commands."""
    point_discord_at(pg, monkeypatch)
    client = Client(tours, of_tour)
    add_commands(client.tree, decisions, privacy, offers=offers, tours=tours)
    connection = asyncio.create_task(client.start(pg.token))
    await client.ready.wait()
    await sync(client.tree)
    yield client
    await client.close()
    await connection


@pytest.fixture
def _in_a_thread(bot: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are used in a thread, which the loopback Discord does not have."""

    async def move(interaction: discord.Interaction) -> bool:
        interaction.channel = Mock(spec=discord.Thread)
        return True

    monkeypatch.setattr(bot.tree, "interaction_check", move)
