"""IDENTIFY: one of a bucket of shards in 5 s, over all processes."""

from __future__ import annotations

from typing import Any

import pytest
from redis import RedisError
from structlog.testing import capture_logs

from cluster.connection import PREFIX, RETRY_SECONDS
from shards import IDENTIFY_SECONDS
from tests.cluster.conftest import Join


async def test_shards_of_a_bucket_identify_one_after_the_other(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, waited = join(), join(), []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        await one.redis.delete(f"{PREFIX}identify:1")

    monkeypatch.setattr("cluster.connection.asyncio.sleep", sleep)
    one.max_concurrency = other.max_concurrency = 2
    await one.may_identify(1)
    await other.may_identify(2)
    assert not waited
    await other.may_identify(3)
    assert len(waited) == 1
    assert 4 < waited[0] <= IDENTIFY_SECONDS


async def test_who_took_too_long_to_connect_waits_again(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, waited = join(), join(), []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        await one.redis.delete(f"{PREFIX}identify:0")

    monkeypatch.setattr("cluster.connection.asyncio.sleep", sleep)
    await one.may_identify(0)
    await one.identifies(0)
    assert not waited
    await one.redis.delete(f"{PREFIX}identify:0")
    await one.may_identify(1)
    await one.redis.delete(f"{PREFIX}identify:0")  # as after IDENTIFY_SECONDS
    await other.may_identify(2)
    await one.identifies(1)
    assert len(waited) == 1


async def test_while_redis_is_away_it_waits_and_says_so_once(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    process, waited = join(), []
    evaluate = process.redis.eval

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def away(*arguments: Any) -> Any:
        if len(waited) < 3:
            raise RedisError("connection refused")
        return await evaluate(*arguments)

    monkeypatch.setattr("cluster.connection.asyncio.sleep", sleep)
    monkeypatch.setattr(process.redis, "eval", away)
    with capture_logs() as logs:
        await process.may_identify(0)
    assert waited == [RETRY_SECONDS] * 3
    assert [entry["event"] for entry in logs] == ["identify_waits"]


async def test_one_process_claims_what_is_done_once_until_it_gives_it_up(join: Join) -> None:
    one, other = join(), join()
    assert [await process.claim("a notice", 60) for process in (one, other, one)] == [True, False, False]
    assert 50 < await one.redis.ttl("parley:cluster:claim:a notice") <= 60
    await one.give_up("a notice")
    assert await other.claim("a notice", 60)


@pytest.mark.parametrize("kind", ["string", "hash"])
async def test_what_something_else_wrote_in_place_of_a_turn_is_waited_for_by_nobody(join: Join, kind: str) -> None:
    here = join()
    key = f"{PREFIX}identify:0"
    await (here.redis.set(key, "x") if kind == "string" else here.redis.hset(key, "a", "b"))
    await here.may_identify(0)
    assert 0 < await here.redis.pttl(key) <= IDENTIFY_SECONDS * 1_000
