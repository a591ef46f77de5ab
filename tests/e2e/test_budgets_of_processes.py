"""BUDGETS and TURNS_PER_USER_MINUTE over two processes, each with a server of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from cluster import connection as connections
from cluster.connection import Cluster
from cluster.leases import SHARD
from decider import Reason
from shards import Shards
from tests.support.redis_server import redis_url  # noqa: F401 - a fixture
from tests.support.scene import Scene, make_bot
from tests.support.stub_model import Reply, StubModel
from tests.support.three_shards import COUNT, mention, open_three


@asynccontextmanager
async def process(scene: Scene, shard_id: int, cluster: Cluster, **limits: Any) -> AsyncIterator[None]:
    bot = scene.bot = make_bot(scene, limits, shards=Shards(COUNT, [shard_id]), cluster=cluster)
    cluster.leases.names = {f"{SHARD}{shard_id}": cluster.name}
    await cluster.leases.renew(COUNT)
    connection = asyncio.create_task(bot.start(scene.pg.token))
    try:
        await scene.until(lambda: bot.is_up(shard_id))
        yield
    finally:
        await bot.close()
        await asyncio.gather(connection, return_exceptions=True)
        await cluster.close()


@asynccontextmanager
async def two(
    stub: StubModel, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, **limits: Any
) -> AsyncIterator[tuple[Scene, Scene]]:
    """Two processes with these settings, that have shards 0 and 1."""
    monkeypatch.setattr(connections, "IDENTIFY_SECONDS", 0.001)
    with redis.Redis.from_url(url := f"{address}?db=3") as client:
        client.flushdb()
    one, other = Cluster(url), Cluster(url)
    async with open_three(stub, tmp_path / "one") as first:
        second = Scene(first.pg, stub, first.journal, tmp_path / "other")
        async with process(first, 0, one, **limits), process(second, 1, other, **limits):
            yield first, second


async def test_what_one_process_spends_no_other_can(
    stub: StubModel,
    tmp_path: Path,
    redis_url: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = {"budgets": "1000 tokens a day", "person_tokens": 0, "guild_tokens": 0}
    async with two(stub, tmp_path, redis_url, monkeypatch, **limits) as (first, second):
        stub.replies.append(Reply("Much.", tokens=1_000))
        for scene, shard_id, says in ((first, 0, "Much."), (second, 1, "is spent for today")):
            assert says in (await scene.answer_to(mention(scene, shard_id))).content
    assert len(stub.requests) == 1


async def test_a_person_gets_so_many_answers_a_minute_of_all_processes_together(
    stub: StubModel,
    tmp_path: Path,
    redis_url: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with two(stub, tmp_path, redis_url, monkeypatch, turns_per_user_minute=3) as (first, second):
        for scene, shard_id in ((first, 0), (first, 0), (second, 1)):
            await scene.answer_to(mention(scene, shard_id))
        assert (await second.decision(mention(second, 1))).reason is Reason.USER_CAP
    assert len(stub.requests) == 3
