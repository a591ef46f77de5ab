"""The real program as one of several processes, over a Redis of its own."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis import RedisError

from bench.shards.processes import Redis
from cluster.connection import Cluster
from cluster.leases import SHARD
from playground.limits import Limits
from playground.server import Playground
from tests.cluster.conftest import settle
from tests.support.process import program
from tests.support.scene import PATIENCE_SECONDS

pytestmark = pytest.mark.slow


@pytest.fixture
async def redis(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Redis]:
    """As good as old."""
    server = Redis(tmp_path_factory.mktemp("redis"))
    await server.start()
    cluster = Cluster(server.url)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await is_there(cluster):  # noqa: ASYNC110 - it says so to nobody
            await asyncio.sleep(0)
    await settle(cluster)
    await cluster.close()
    yield server
    await server.end(signal.SIGKILL)


async def is_there(cluster: Cluster) -> bool:
    try:
        return bool(await cluster.redis.ping())
    except RedisError:
        return False


def environment(pg: Playground, redis: Redis) -> dict[str, str]:
    return {
        "DISCORD_API_BASE": pg.api_base,
        "DISCORD_GATEWAY_URL": pg.gateway_url,
        "DISCORD_TOKEN": pg.token,
        "REDIS_URL": redis.url,
        "SHARDS": "auto",
        "MODEL": "demo",
    }


@pytest.mark.parametrize("where", ["at once", "by the gateway"])
async def test_each_says_once_that_the_token_is_refused_and_leaves_no_shard_taken(
    tmp_path: Path, redis: Redis, where: str
) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    async with Playground(limits=Limits.off(), shards=2) as pg:
        given = environment(pg, redis)
        if where == "at once":
            given["DISCORD_TOKEN"] = "wrong"
        else:
            pg._gateway._token = "another"
        async with program(folders[0], **given) as one, program(folders[1], **given) as other:
            assert [await each.ended() for each in (one, other)] == [2, 2]
    for each in (one, other):
        (sentence,) = each.other
        assert "DISCORD_TOKEN" in sentence
    cluster = Cluster(redis.url)
    assert await cluster.redis.keys(f"{SHARD}*") == []
    await cluster.close()
