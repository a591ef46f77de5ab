"""Which process has which shard, looked at in a real Redis without a change."""

from __future__ import annotations

import asyncio
from pathlib import Path

from structlog.testing import capture_logs

from cluster.leases import ALONE
from doctor.checks_shards import check_gateway, check_processes
from doctor.command import _storage
from doctor.discord_rest import DiscordRest
from doctor.findings import Finding, State
from playground.server import Playground
from tests.cluster.conftest import Join
from tests.cluster.test_keeper import Process


async def looked(redis_url: str, count: int | None = None) -> Finding:
    (finding,) = await check_processes(f"{redis_url}?db=1", count, ())
    return finding


async def test_who_has_which_shard_is_told(join: Join, redis_url: str) -> None:
    assert (await looked(redis_url)).says == "No process has a shard."
    one, other, idle = join(), join(), join()
    for cluster in (one, other, idle):
        await cluster.leases.renew(4)
    for cluster, shard_id in ((one, 0), (one, 1), (other, 2)):
        await cluster.leases.take(shard_id, 4)
    before = sorted(await one.redis.keys("*"))
    lacking = await looked(redis_url)
    assert (lacking.state, lacking.says) == (
        State.WARNING,
        f"Of 4 shards {one.name} has 0-1, {other.name} has 2; 1 more stands by. Nobody has 3.",
    )
    assert sorted(await one.redis.keys("*")) == before
    await idle.leases.take(3, 4)
    assert (await looked(redis_url)).state is State.OK
    wrong = await looked(redis_url, 8)
    assert (wrong.state, wrong.says[-25:]) == (State.WARNING, ", while SHARD_COUNT is 8.")
    await one.redis.set(ALONE, "somebody")
    assert (await looked(redis_url)).state is State.FAULT


async def test_a_redis_without_memory_is_told_of(join: Join, redis_url: str) -> None:
    process = Process(join())
    await process.cluster.redis.config_set("maxmemory", 1)
    try:
        with capture_logs() as logs:
            for _ in range(2):
                assert not await process.keeper._takes(0)
        found = await looked(redis_url)
    finally:
        await process.cluster.redis.config_set("maxmemory", 0)
    assert (found.state, found.says[:29]) == (State.FAULT, "REDIS_URL has no memory left:")
    assert [entry["why"][:29] for entry in logs] == ["REDIS_URL has no memory left:"]


async def test_the_lease_of_a_process_alone_is_not_tried_where_there_are_several(
    join: Join, redis_url: str, tmp_path: Path
) -> None:
    cluster = join()
    await cluster.redis.set(ALONE, "somebody")
    findings = await asyncio.to_thread(_storage, tmp_path, f"{redis_url}?db=1", None, runs_here=False, is_shared=True)
    assert [one.state for one in findings if one.check == "instance"] == [State.OK]


async def test_how_long_a_start_of_all_takes_is_told() -> None:
    async with Playground(shards=16, max_concurrency=2) as pg, DiscordRest(pg.token, pg.api_base) as rest:
        shards, _ = await check_gateway(rest)
    assert shards.says == "The bot has 16 shards, as Discord recommends; a start of all takes 35 s."
