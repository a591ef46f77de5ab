"""Processes that share a real Redis, which nobody else uses meanwhile and which is as good as old."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from cluster.connection import Cluster
from cluster.leases import SINCE
from tests.support.redis_server import redis_url  # noqa: F401 - a fixture

Join = Callable[[], Cluster]


@pytest.fixture
async def join(request: pytest.FixtureRequest) -> AsyncIterator[Join]:
    """Makes another process each time."""
    joined: list[Cluster] = []

    def one_more() -> Cluster:
        joined.append(Cluster(f"{request.getfixturevalue('redis_url')}?db=1"))
        return joined[-1]

    first = one_more()
    await first.redis.flushdb()
    await settle(first)
    yield one_more
    for cluster in joined:
        await cluster.close()


async def settle(cluster: Cluster) -> None:
    """As if this Redis had run for long."""
    server = await cluster.redis.info("server")
    await cluster.redis.set(SINCE, f"{server['run_id']} 0")
