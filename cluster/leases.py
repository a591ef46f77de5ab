"""The leases of shards in Redis: which process has which shard, by the clock of Redis alone.

A lease is a key with the name of its process, which expires LEASE_SECONDS after it was last renewed. For so long after
Redis has restarted or lost its data no lease can be taken, so that processes that have shards set theirs again first.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import redis.asyncio as redis
import structlog

log = structlog.get_logger()

LEASE_SECONDS = 15.0
RENEW_SECONDS = 3.0
SURE_SECONDS = LEASE_SECONDS - 2.0  # a request sent within that reaches Discord before anybody else has the lease
MAX_SHARDS = 16_384  # that are believed to be: the leases of all are read every few seconds
PREFIX = "parley:cluster:"
SHARD, MEMBERS, COUNT, SINCE = f"{PREFIX}shard:", f"{PREFIX}members", f"{PREFIX}count", f"{PREFIX}since"
ALONE = "parley:lock"  # the lease of a process that uses this Redis alone
# is_settled: whether this Redis has been running with its data for as long as a lease lasts. repaired: keys of another
# type, written by something else: they count as free, and expire as a lease would.
_NOW = """
local repaired = {}
local function get(key)
    local found = redis.pcall('GET', key)
    if type(found) ~= 'table' then return found end
    if redis.call('PTTL', key) < 0 then redis.call('PEXPIRE', key, ARGV[2]) end
    repaired[#repaired + 1] = key
    return false
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or '-'
local of, since = string.match(get(KEYS[1]) or '', '^(%S+) (%d+)$')
if of ~= run or tonumber(since) > now then
    since = now
    redis.call('SET', KEYS[1], run .. ' ' .. string.format('%.0f', now))
end
local is_settled = now - since >= tonumber(ARGV[2])
"""
_RENEW = (
    _NOW
    + """
if redis.call('EXISTS', KEYS[2]) == 1 and redis.call('TYPE', KEYS[2]).ok ~= 'zset' then
    redis.call('DEL', KEYS[2])
    repaired[#repaired + 1] = KEYS[2]
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[2])
if ARGV[3] == '1' then redis.call('ZADD', KEYS[2], now, ARGV[1]) else redis.call('ZREM', KEYS[2], ARGV[1]) end
local lost = {}
for at = 5, #KEYS do
    local holder = get(KEYS[at])
    if not holder or holder == ARGV[1] then
        redis.call('SET', KEYS[at], ARGV[1], 'PX', ARGV[2])
    else
        lost[#lost + 1] = KEYS[at]
    end
end
if #KEYS > 4 then redis.call('SET', KEYS[3], ARGV[4], 'PX', ARGV[2]) end
return {is_settled and 1 or 0, redis.call('ZRANGE', KEYS[2], 0, -1), get(KEYS[3]) or '',
        redis.call('EXISTS', KEYS[4]), lost, repaired}
"""
)
_TAKE = (
    _NOW
    + """
local count = get(KEYS[3])
if not is_settled or (count and count ~= ARGV[3]) or redis.call('EXISTS', KEYS[4]) == 1 then return 0 end
if get(KEYS[2]) ~= ARGV[1] and not redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then
    return 0
end
redis.call('SET', KEYS[3], ARGV[3], 'PX', ARGV[2])
return 1
"""
)
_RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"


@dataclass(frozen=True, slots=True)
class Seen:
    """What Redis said. members: the running processes, except those about to end, and how many shards each has.

    free: shards that nobody has. count: the number of shards used by processes that have any; None: none has. lost: our
    shards that others have. is_alone_taken: a process uses this Redis alone, without leases of shards. is_anothers: the
    processes that have shards are another bot's.
    """

    is_settled: bool
    members: Mapping[str, int]
    free: frozenset[int]
    count: int | None
    lost: tuple[int, ...]
    is_alone_taken: bool
    is_anothers: bool


@dataclass(frozen=True, slots=True)
class Held:
    """The leases in Redis, to be shown. shards: those of each process that has any. members: the number of processes.
    count, is_alone_taken: as in Seen."""

    shards: dict[str, list[int]]
    members: int
    count: int | None
    is_alone_taken: bool


async def held(client: redis.Redis) -> Held:
    """Reads who has which shards; changes nothing. Raises redis.RedisError."""
    seconds, _ = await client.time()
    members: int = await client.zcount(MEMBERS, (seconds - LEASE_SECONDS) * 1_000, "+inf")
    counted: Any = await client.get(COUNT)
    count = _count(counted)
    holders: Any = await client.mget([f"{SHARD}{number}" for number in range(count)]) if count else []
    shards: dict[str, list[int]] = {}
    for number, name in enumerate(holders):
        if name is not None:
            shards.setdefault(name, []).append(number)
    return Held(shards, members, count, bool(await client.exists(ALONE)))


class Leases:
    """The leases that this process has. Methods that ask Redis raise redis.RedisError.

    bot_id: as Discord says. names: the process' name by the key of each lease held; replaced, never changed, so that
    any thread may read it. processes: how many are running, with or without a shard. clock: monotonic seconds.
    """

    def __init__(self, client: redis.Redis, process: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.bot_id = 0
        self.names: dict[str, str] = {}
        self.processes = 1
        self._redis = client
        self._process = process
        self._clock = clock
        self._lock = asyncio.Lock()  # else a renewal sent before could set a released lease again
        self._sure_until = 0.0
        self._renewed = asyncio.Event()

    @property
    def ids(self) -> list[int]:
        """The shards that are held, in the order in which they were taken."""
        return [shard_of(key) for key in self.names]

    @property
    def are_sure(self) -> bool:
        """Whether no other process can have any of the leases yet."""
        return not self.names or self._clock() < self._sure_until

    async def sure(self) -> None:
        """Waits until they are sure."""
        while not self.are_sure:
            self._renewed.clear()
            await self._renewed.wait()

    async def renew(self, count: int, *, is_member: bool = True) -> Seen:
        """Renews the leases held, sets again those that Redis lost, and looks at the rest of `count` shards.

        is_member: whether this process takes its share of shards.
        """
        async with self._lock:
            now, held = self._clock(), list(self.names)
            keys = [SINCE, MEMBERS, COUNT, ALONE, *held]
            said: Any = await self._redis.eval(
                _RENEW, len(keys), *keys, self._process, _milliseconds(), int(is_member), self._whole(count)
            )
            is_settled, members, counted, is_alone_taken, lost, repaired = said
            if repaired:
                log.warning(
                    "keys_repaired",
                    keys=repaired,
                    meaning="something else wrote to these keys of the bot",
                    remedy="give the bot a Redis or a database of its own",
                )
            if not lost:
                self._sure_until = now + SURE_SECONDS
                self._renewed.set()
            holders: Any = await self._redis.mget([f"{SHARD}{number}" for number in range(count)])
            own = set(self.ids)
            self.processes = len({self._process, *members, *filter(None, holders)})
            return Seen(
                bool(is_settled),
                {name: holders.count(name) for name in members},
                frozenset(
                    number for number, name in enumerate(holders) if name in (None, self._process) and number not in own
                ),
                _count(counted),
                tuple(map(shard_of, lost)),
                bool(is_alone_taken),
                bool(counted) and counted != self._whole(_count(counted)),
            )

    async def take(self, shard_id: int, count: int) -> bool:
        """Takes a shard's lease. False if it is another process', or none may be taken now."""
        async with self._lock:
            now, key = self._clock(), f"{SHARD}{shard_id}"
            keys = [SINCE, key, COUNT, ALONE]
            if not await self._redis.eval(_TAKE, len(keys), *keys, self._process, _milliseconds(), self._whole(count)):
                return False
            if not self.names:
                self._sure_until = now + SURE_SECONDS
            self.names = {**self.names, key: self._process}
            return True

    async def release(self, shard_ids: Collection[int]) -> None:
        """Releases these shards, so that others can take them at once; if Redis cannot be reached, when they expire."""
        keys = [f"{SHARD}{shard_id}" for shard_id in shard_ids]
        self.names = {key: name for key, name in self.names.items() if key not in keys}
        self._renewed.set()
        async with self._lock:
            for key in keys:
                await self._redis.eval(_RELEASE, 1, key, self._process)

    def _whole(self, count: int | None) -> str:
        """The value of COUNT while processes of this bot have shards."""
        return f"{count} {self.bot_id}"

    async def leave(self) -> None:
        """Removes this process from those that get a share."""
        async with self._lock:
            await self._redis.zrem(MEMBERS, self._process)


def shard_of(key: str) -> int:
    return int(key.removeprefix(SHARD))


def _count(counted: str | None) -> int | None:
    number = (counted or "").partition(" ")[0]
    return int(number) if re.fullmatch(r"[0-9]{1,5}", number) and int(number) <= MAX_SHARDS else None


def _milliseconds() -> int:
    return int(LEASE_SECONDS * 1_000)
