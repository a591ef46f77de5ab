"""The commands in a loopback Discord, with an unmodified discord.py client that answers them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from commands import Asking, add_commands, sync
from decider import RecentDecisions
from playground.limits import Limits
from playground.server import Playground
from tests.commands.support import FakeOffers, FakePrivacy
from tests.playground.support import Bot, point_discord_at


@pytest.fixture
def privacy() -> FakePrivacy:
    return FakePrivacy()


@pytest.fixture
def offers() -> FakeOffers:
    return FakeOffers()


@pytest.fixture
def decisions() -> RecentDecisions:
    return RecentDecisions()


@pytest.fixture
async def pg() -> AsyncIterator[Playground]:
    async with Playground(limits=Limits.off()) as playground:
        yield playground


@pytest.fixture(autouse=True)
async def bot(
    pg: Playground,
    decisions: RecentDecisions,
    privacy: FakePrivacy,
    offers: FakeOffers,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Bot]:
    """It has told Discord of its commands."""
    point_discord_at(pg, monkeypatch)
    client = Bot()
    add_commands(client.tree, decisions, privacy, cast(Asking, None), offers=offers, retention_days=30)
    connection = asyncio.create_task(client.start(pg.token))
    await client.ready.wait()
    await sync(client.tree)
    yield client
    await client.close()
    await connection
