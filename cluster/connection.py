"""This process among those that share a Redis: its name there, its connection, its leases, and its turn to identify."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from secrets import token_hex
from typing import Any

import redis.asyncio as redis
import structlog
from redis.backoff import NoBackoff
from redis.retry import Retry

from cluster.leases import PREFIX, Leases
from cluster.sessions import Sessions
from shards import IDENTIFY_SECONDS

__all__ = ["PREFIX", "Cluster"]

log = structlog.get_logger()

TIMEOUT_SECONDS = 5.0
RETRY_SECONDS = 1.0

# How many milliseconds to wait for the bucket's turn; 0: it is ours. ARGV[3]: what it is called if it was ours before.
_IDENTIFY = """
if redis.call('GET', KEYS[1]) == ARGV[3] then redis.call('DEL', KEYS[1]) end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
return math.max(redis.call('PTTL', KEYS[1]), 1)
"""


class Client(redis.Redis):
    """One of which each command ends within TIMEOUT_SECONDS, and whoever is cancelled meanwhile.

    The library's own limit is by asyncio.wait_for, which loses a cancellation in that moment in which the command has
    been sent (Python before 3.12): what was to end goes on then.
    """

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except TimeoutError:
            raise redis.TimeoutError(f"no answer within {TIMEOUT_SECONDS:.0f} s") from None


class Cluster:
    """name: tells this process from all others, earlier ones too. redis: gives str; raises redis.RedisError.

    max_concurrency: buckets of shards, of which each may IDENTIFY on its own; as Discord says.
    """

    def __init__(self, url: str) -> None:
        """Raises ValueError for what is no address of a Redis. It connects when it is first used."""
        self.name = token_hex(8)
        self.redis = Client.from_url(
            url,
            socket_connect_timeout=TIMEOUT_SECONDS,
            socket_timeout=None,  # see Client
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
        )
        self.leases = Leases(self.redis, self.name)
        self.sessions = Sessions(self.redis)
        self.max_concurrency = 1

    async def may_identify(self, shard_id: int) -> None:
        """Waits until it is this shard's turn, among those of all processes; it then has some seconds to connect."""
        await self._turn(shard_id, self._reserved(shard_id), "")

    async def identifies(self, shard_id: int) -> None:
        """It does so now, unless it took too long to connect, and has to wait again."""
        await self._turn(shard_id, self.name, self._reserved(shard_id))

    async def _turn(self, shard_id: int, holder: str, before: str) -> None:
        key, wait = f"{PREFIX}identify:{shard_id % self.max_concurrency}", math.ceil(IDENTIFY_SECONDS * 1_000)
        is_told = False
        while True:
            try:
                left: Any = await self.redis.eval(_IDENTIFY, 1, key, holder, wait, before)
            except redis.RedisError as error:
                if not is_told:
                    log.warning("identify_waits", shard=shard_id, error=str(error))
                is_told, left = True, RETRY_SECONDS * 1_000
            if not left:
                return
            await asyncio.sleep(left / 1_000)

    def _reserved(self, shard_id: int) -> str:
        return f"{self.name}:{shard_id}"

    async def once_sure(self, *_: object) -> None:
        """For a client's on_request_start: waits until nobody else can have a shard of this process."""
        await self.leases.sure()

    async def claim(self, what: str, seconds: int) -> bool:
        """Whether this process is the one to do what is to be done once in so long; each is, while Redis is away."""
        try:
            return bool(await self.redis.set(f"{PREFIX}claim:{what}", self.name, nx=True, ex=max(1, seconds)))
        except redis.RedisError as error:
            log.warning("claim_not_made", what=what, error=str(error))
            return True

    async def give_up(self, what: str) -> None:
        """What this process claimed is not done, and left for others."""
        with suppress(redis.RedisError):
            await self.redis.delete(f"{PREFIX}claim:{what}")

    async def close(self) -> None:
        await self.redis.aclose()
