"""The commands in a loopback Discord, with an unmodified discord.py client that answers them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from commands import Asking, Usage, add_commands, sync
from decider import RecentDecisions
from playground import limits as rates
from playground.server import Playground
from state.limits import Limits
from tests.commands.support import FakeOffers, FakePrivacy
from tests.playground.support import Bot, point_discord_at
from tests.support.clock import NOON


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
    async with Playground(limits=rates.Limits.off()) as playground:
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
    usage = Usage(Limits(turns_per_user_minute=1, daily_tokens=None), lambda: NOON)
    add_commands(client.tree, decisions, privacy, cast(Asking, None), offers=offers, usage=usage, retention_days=30)
    connection = asyncio.create_task(client.start(pg.token))
    await client.ready.wait()
    await sync(client.tree)
    yield client
    await client.close()
    await connection
