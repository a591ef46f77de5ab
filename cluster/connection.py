"""This process' part in a cluster: its name, its connection to Redis, its leases, and its turn to IDENTIFY."""

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

# Returns how many milliseconds to wait for the bucket's turn; 0: it is ours. ARGV[3]: the holder's name if the turn was
# reserved for us before.
_IDENTIFY = """
if redis.call('TYPE', KEYS[1]).ok ~= 'string' or redis.call('PTTL', KEYS[1]) == -1 then
    redis.call('DEL', KEYS[1]) -- something else wrote it
end
if redis.call('GET', KEYS[1]) == ARGV[3] then redis.call('DEL', KEYS[1]) end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
return math.max(redis.call('PTTL', KEYS[1]), 1)
"""


class Client(redis.Redis):
    """A client whose commands end within TIMEOUT_SECONDS, and can be cancelled at any time.

    The library's own timeout uses asyncio.wait_for, which before Python 3.12 loses a cancellation at the moment at
    which the command has been sent: the cancelled task then goes on.
    """

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except TimeoutError:
            raise redis.TimeoutError(f"no answer within {TIMEOUT_SECONDS:.0f} s") from None


class Cluster:
    """name: unique to this process, also among earlier ones. redis: returns str; raises redis.RedisError.

    max_concurrency: the number of buckets of shards, which may IDENTIFY independently; as Discord says.
    """

    def __init__(self, url: str) -> None:
        """Raises ValueError for a URL that is not of Redis. Connects when first used."""
        self.name = token_hex(8)
        self.redis = Client.from_url(
            url,
            socket_connect_timeout=TIMEOUT_SECONDS,
            socket_timeout=None,  # see Client
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
            encoding_errors="replace",  # what others may have written there is no reason to end
        )
        self.leases = Leases(self.redis, self.name)
        self.sessions = Sessions(self.redis)
        self.max_concurrency = 1

    async def may_identify(self, shard_id: int) -> None:
        """Waits for this shard's turn to IDENTIFY, among all processes; it then has some seconds to connect."""
        await self._turn(shard_id, self._reserved(shard_id), "")

    async def identifies(self, shard_id: int) -> None:
        """Uses the shard's turn to IDENTIFY now; waits for another one if connecting took too long."""
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
        """For aiohttp's on_request_start: waits until no other process can have a shard of this one."""
        await self.leases.sure()

    async def claim(self, what: str, seconds: int) -> bool:
        """Whether this process may do what only one may do in so many seconds; True for all while Redis is away."""
        try:
            return bool(await self.redis.set(f"{PREFIX}claim:{what}", self.name, nx=True, ex=max(1, seconds)))
        except redis.RedisError as error:
            log.warning("claim_not_made", what=what, error=str(error))
            return True

    async def give_up(self, what: str) -> None:
        """Gives up a claim, so that another process can do it."""
        with suppress(redis.RedisError):
            await self.redis.delete(f"{PREFIX}claim:{what}")

    async def close(self) -> None:
        await self.redis.aclose()
