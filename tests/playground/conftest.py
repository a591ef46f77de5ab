"""A playground without rate limits, and ways onto it: discord.py, plain HTTP, a plain websocket."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from playground.limits import Limits
from playground.server import Playground
from tests.playground.support import Api, Bot, connected


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
async def bot(pg: Playground) -> AsyncIterator[Bot]:
    """A connected, unmodified discord.py client."""
    async with connected(pg) as client:
        yield client
