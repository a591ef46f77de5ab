"""A playground without rate limits, and ways onto it: discord.py, plain HTTP, a plain websocket."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from playground.limits import Limits
from playground.server import Playground
from tests.playground.support import Api, Bot, point_discord_at


@pytest.fixture
async def pg() -> AsyncIterator[Playground]:
    async with Playground(limits=Limits.off()) as playground:
        yield playground


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def api(pg: Playground, http: aiohttp.ClientSession) -> Api:
    return Api(pg, http)


@pytest.fixture
async def bot(pg: Playground, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bot]:
    """A connected, unmodified discord.py client."""
    point_discord_at(pg, monkeypatch)
    client = Bot()
    task = asyncio.create_task(client.start(pg.token))
    await client.ready.wait()
    yield client
    await client.close()
    await task
