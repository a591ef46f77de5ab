"""Gateway sessions in Redis, so that the next process that has a shard can RESUME its session."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import orjson
import redis.asyncio as redis
import structlog

from shards import Session

SESSION = "parley:cluster:session:"
KEPT_SECONDS = 300  # how long Discord keeps a session is not documented: minutes

log = structlog.get_logger()


class Sessions:
    """Stores and loads one session for each shard. While Redis is unreachable there are none."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client

    async def store(self, by_shard: Mapping[int, Session]) -> None:
        if not by_shard:
            return
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                for shard_id, one in by_shard.items():
                    stored = orjson.dumps([one.id, one.url, one.sequence, one.at.timestamp(), one.count]).decode()
                    pipeline.set(f"{SESSION}{shard_id}", stored, ex=KEPT_SECONDS)
                await pipeline.execute()
        except (redis.RedisError, OSError) as error:
            log.info("sessions_not_stored", detail=str(error))

    async def load(self, shard_id: int) -> Session | None:
        try:
            if not (stored := await self._redis.get(f"{SESSION}{shard_id}")):
                return None
            session_id, url, sequence, at, count = orjson.loads(stored)
            return Session(str(session_id), str(url), int(sequence), datetime.fromtimestamp(at, UTC), int(count))
        except (redis.RedisError, OSError, ValueError, TypeError, OverflowError) as error:
            log.info("session_not_found", shard=shard_id, detail=str(error))
            return None
