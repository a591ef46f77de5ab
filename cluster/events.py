"""Privacy requests for all processes, in one order: a stream in Redis, and up to which event each shard is done."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import redis
import structlog

from cluster.connection import PREFIX, TIMEOUT_SECONDS, Cluster
from cluster.leases import SHARD
from storage.store import ANY, StoreError

log = structlog.get_logger()

STREAM, APPLIED = f"{PREFIX}events", f"{PREFIX}applied:"
MANY = 1_000  # whenever so many more events wait for a shard that nobody has, repeated requests are dropped
BLOCK_SECONDS = TIMEOUT_SECONDS / 2
ID, SHARD_ID = re.compile(r"[0-9]{1,20}-[0-9]{1,20}"), re.compile(r"[0-9]{1,9}")

# Of equal requests by one person only the last stays.
_ADD = """
local added = redis.call('XADD', KEYS[1], '*', 'what', ARGV[1], 'user', ARGV[2], 'at', ARGV[3])
if redis.call('XLEN', KEYS[1]) % tonumber(ARGV[4]) == 0 then
    local newer = {}
    for _, event in ipairs(redis.call('XREVRANGE', KEYS[1], '+', '-')) do
        local fields = event[2]
        local same = #fields == 6 and fields[2] .. ' ' .. fields[4] or event[1]
        if newer[same] then redis.call('XDEL', KEYS[1], event[1]) end
        newer[same] = true
    end
end
return added
"""
# Returns the id; nil: there is no stream; '': something else wrote one that takes no more, or another type: deleted.
_LAST = """
local type = redis.call('TYPE', KEYS[1]).ok
if type == 'none' then return false end
if type == 'stream' then
    local last = redis.call('XINFO', 'STREAM', KEYS[1])
    for at = 1, #last, 2 do
        if last[at] == 'last-generated-id' and #string.match(last[at + 1], '^%d+') < 19 then return last[at + 1] end
    end
end
redis.call('DEL', KEYS[1])
return ''
"""
# KEYS: the hash of what is done, and the leases. Returns the first lease that is not held.
_APPLY = """
for at = 2, #KEYS do
    if redis.call('GET', KEYS[at]) ~= ARGV[2] then return KEYS[at] end
end
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then redis.call('DEL', KEYS[1]) end -- something else wrote it
for at = 3, #ARGV do redis.call('HSET', KEYS[1], ARGV[at], ARGV[1]) end
return false
"""

Id = tuple[int, int]
"""An event's id: milliseconds by the clock of Redis, and its number within the millisecond."""
START: Id = (0, 0)
LAST: Id = (10**18, 0)  # behind which are none of ours: near 2**64 Redis takes no more


def before(event_id: Id) -> Id:
    """The id just before this one, after any earlier event's."""
    milliseconds, number = event_id
    return (milliseconds, number - 1) if number else (milliseconds - 1, 2**63)


class What(StrEnum):
    FORGET = "forget"
    FORGET_CHANNEL = "forget_channel"  # with the channel's id in the user's place
    OPT_OUT = "opt_out"
    OPT_IN = "opt_in"
    SETTLE = "settle"  # store all that is in memory, so that an export finds it


@dataclass(frozen=True, slots=True)
class Event:
    """A privacy request. what: None: unreadable, such as a later version's. user_id: who asked, or the channel that is
    forgotten. at: the id of their interaction; both 0 where no person asked.
    """

    id: Id
    what: What | None
    user_id: int = 0
    at: int = 0


class Events:
    """The stream. Each method raises StoreError where Redis cannot be reached."""

    def __init__(self, cluster: Cluster) -> None:
        self._redis = cluster.redis
        self._process = cluster.name

    async def add(self, what: What, user_id: int = 0, at: int = 0) -> Id:
        async with _asking():
            told = STREAM, what.value, user_id, at, MANY
            try:
                added: Any = await self._redis.eval(_ADD, 1, *told)
            except redis.ResponseError:
                if await self.last() != START:
                    raise
                added = await self._redis.eval(_ADD, 1, *told)
            return _read(added)

    async def following(self, after: Id) -> list[Event]:
        """The events after this one; waits some seconds for one if there is none."""
        if after > LAST:  # which Redis would refuse; last() tells that there is no such event
            return []
        async with _asking():
            try:
                found: Any = await self._redis.xread({STREAM: _written(after)}, block=int(BLOCK_SECONDS * 1_000))
            except redis.ResponseError:
                if await self.last() != START:
                    raise
                return []
        return [_event(*each) for each in found[0][1]] if found else []

    async def between(self, after: Id, through: Id) -> list[Event]:
        """The events after the first id, up to and including the second."""
        async with _asking():
            found: Any = await self._redis.xrange(STREAM, f"({_written(after)}", _written(through))
        return [_event(*each) for each in found]

    async def last(self) -> Id:
        """The id of the newest event ever added; START: there was none, or Redis has lost its data, or something else
        wrote there, so that no more could be added: the stream is then deleted."""
        async with _asking():
            found: Any = await self._redis.eval(_LAST, 1, STREAM)
        if found:
            return _read(found)
        if found is None:
            return START
        log.error(
            "privacy_requests_dropped",
            meaning=f"something else wrote to {STREAM}: what people want and not all shards had done may be lost",
            remedy="give the bot a Redis or a database of its own",
        )
        return START

    async def applied(self, count: int) -> dict[int, Id]:
        """Up to which event each of `count` shards is done, where known. Unknown for all after the number of shards has
        changed, as their guilds were on other shards then, any of which may be behind; and where something else wrote
        there.
        """
        async with _asking():
            found: Any = {}
            if await self._redis.type(name := f"{APPLIED}{count}") == "hash":
                found = await self._redis.hgetall(name)
        valid = [(each, done) for each, done in found.items() if SHARD_ID.fullmatch(each) and ID.fullmatch(done)]
        return {int(each): event_id for each, done in valid if (event_id := _read(done)) <= LAST}

    async def apply(self, shard_ids: Collection[int], through: Id, count: int) -> None:
        """Stores that these shards are done up to this event, and deletes events that all `count` shards have done.

        Stores nothing, and raises, if one of the shards is no longer this process': another may have state there.
        """
        leases = [f"{SHARD}{shard_id}" for shard_id in shard_ids]
        told: Any = [_written(through), self._process, *shard_ids]
        async with _asking():
            lacking: Any = await self._redis.eval(_APPLY, 1 + len(leases), f"{APPLIED}{count}", *leases, *told)
        if lacking:
            raise StoreError(f"{lacking} in Redis is not held: what people want is not said to be done there.")
        applied = await self.applied(count)
        oldest = min(applied.get(shard_id, START) for shard_id in range(count))
        if oldest > START:
            async with _asking():
                await self._redis.xtrim(STREAM, minid=_written((oldest[0], oldest[1] + 1)), approximate=False)


@asynccontextmanager
async def _asking() -> AsyncIterator[None]:
    try:
        yield
    except (redis.RedisError, OSError) as error:
        raise StoreError(f"Redis could not be asked what people want of all processes: {error}.") from error


def _event(event_id: str, fields: dict[str, str]) -> Event:
    try:
        event = Event(_read(event_id), What(fields["what"]), int(fields["user"]), int(fields["at"]))
        if not all(0 <= each < ANY for each in (event.user_id, event.at)):
            raise ValueError("it is no id")
        return event
    except (KeyError, ValueError):
        log.error(
            "privacy_request_unreadable", id=event_id, meaning="it is skipped, and those after it are carried out"
        )
        return Event(_read(event_id), None)


def _read(event_id: str) -> Id:
    milliseconds, _, number = event_id.partition("-")
    return int(milliseconds), int(number)


def _written(event_id: Id) -> str:
    return "{}-{}".format(*event_id)
