"""The connection to a real Redis that several processes share."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from redis import TimeoutError as RedisTimeoutError

from cluster import connection
from tests.cluster.conftest import Join


async def test_whoever_is_cancelled_in_the_middle_of_a_command_ends(join: Join) -> None:
    redis: Any = join().redis
    await redis.ping()
    for steps in range(20):
        asking = asyncio.ensure_future(redis.execute_command("BLPOP", "none", 3))
        for _ in range(steps):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled(), f"it went on when cancelled after {steps} steps"


async def test_what_redis_does_not_answer_in_time_is_an_error_of_redis(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis: Any = join().redis
    await redis.ping()
    monkeypatch.setattr(connection, "TIMEOUT_SECONDS", 0.01)
    with pytest.raises(RedisTimeoutError, match="no answer"):
        await redis.execute_command("BLPOP", "none", 3)
    monkeypatch.undo()
    assert await redis.ping()
