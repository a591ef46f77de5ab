"""This process among those that share a Redis: its name there, and its connection."""

from __future__ import annotations

from secrets import token_hex

import redis.asyncio as redis
from redis.backoff import NoBackoff
from redis.retry import Retry

TIMEOUT_SECONDS = 5.0
PREFIX = "parley:cluster:"  # of the keys of all that is said here


class Cluster:
    """name: tells this process from all others, earlier ones too. redis: gives str; raises redis.RedisError."""

    def __init__(self, url: str) -> None:
        """Raises ValueError for what is no address of a Redis. It connects when it is first used."""
        self.name = token_hex(8)
        self.redis = redis.Redis.from_url(
            url,
            socket_connect_timeout=TIMEOUT_SECONDS,
            socket_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
        )

    async def close(self) -> None:
        await self.redis.aclose()
