"""The commands in a loopback Discord, with an unmodified discord.py client that answers them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from typing import cast

import pytest

from activity import Activity
from commands import add_commands, sync
from commands.answers import break_off
from commands.ask import Asking
from commands.items import answer_clicks
from commands.place_edge import PlaceEdge
from commands.settings_card import PREFIX
from commands.settings_clicks import SettingsClicks
from commands.status import Status
from commands.usage import Usage
from decider import RecentDecisions
from discord_io.places import Places
from place_settings.fields import PlaceSettings
from place_settings.guild_settings import GuildSettings
from playground import limits as rates
from playground.server import Playground
from state.limits import Limits
from tests.commands.support import Commanded, FakeModels, FakeOffers, FakePrivacy, FakeStore
from tests.playground.support import Bot, point_discord_at
from tests.support.clock import NOON
from turns.gate import Gate


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
def settings() -> GuildSettings:
    return GuildSettings(PlaceSettings(answers="follow", eagerness="balanced", model="test:large", judge=False))


@pytest.fixture
def models() -> FakeModels:
    return FakeModels()


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
    settings: GuildSettings,
    models: FakeModels,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Bot]:
    """It has told Discord of its commands."""
    point_discord_at(pg, monkeypatch)
    client = Commanded()
    places = Places(client, settings, clock=lambda: datetime.now(UTC))
    clicks = client.clicks = SettingsClicks(PlaceEdge(places, models, FakeStore()))
    gate = Gate()
    gate.open(0)
    answer_clicks(client, gate, {PREFIX: clicks.answer}, partial(break_off, Activity()))
    usage = Usage(Limits(turns_per_user_minute=1, daily_tokens=None), lambda: NOON)
    asking, status = cast(Asking, None), cast(Status, None)
    add_commands(
        client.tree,
        decisions,
        privacy,
        asking,
        clicks,
        offers=offers,
        usage=usage,
        status=status,
        retention_days=30,
        practices={"How long": "for 30 days", "Who receives it": "gpt_5 *of* OpenAI"},
        public_address="https://parley.example",
    )
    connection = asyncio.create_task(client.start(pg.token))
    await client.ready.wait()
    await sync(client.tree)
    yield client
    await client.close()
    await connection
