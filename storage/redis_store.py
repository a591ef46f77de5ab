"""Rows in Redis, for hosts without a persistent disk. Imported only if REDIS_URL is set.

The rows of a kind in a channel are one hash, and the channels of a kind one sorted set. Each write is one script, which
writes everything, or nothing if this process has lost a lease to another. How much a power cut loses depends on the
settings of Redis. Earlier versions kept documents there, with records.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain, groupby
from typing import Any

import redis
import structlog
from redis.backoff import NoBackoff
from redis.retry import Retry

from storage.sealing import Seal, pack, read_row
from storage.state_key import tell
from storage.store import ANY, EmptiedError, Key, Leases, LostLeaseError, Opened, Row, Stored, StoreError

log = structlog.get_logger()

TIMEOUT_SECONDS = 5.0
STATE_KEY = "parley:state.key"
LEASES = "parley:cluster:shard:*"
ALONE = "parley:sealing"
ALONE_SECONDS = 30.0
ASIDE = "aside"  # the sorted set of values that were set aside; no kind has this name
DOCUMENT = ("document", "records", "damaged")
NUMBER = re.compile(rb"0|-?[1-9][0-9]{0,18}+")
AT_ONCE = 500  # channels that are read in one round trip
# ARGV: how many leases, the key and the name of each; then of each row kind, channel, id and value, empty to delete it.
# Gives the first lease that is not held, with its holder; a kind's key of another type, which something else wrote; or
# channels' keys of another type, which are deleted.
WRITE = """
local at = 2
for _ = 1, tonumber(ARGV[1]) do
    local holder = redis.call('GET', ARGV[at])
    if holder ~= ARGV[at + 1] then return {'lost', ARGV[at], holder or ''} end
    at = at + 2
end
local repaired = {}
for row = at, #ARGV, 4 do
    local kind = KEYS[1] .. ':' .. ARGV[row]
    local name = kind .. ':' .. ARGV[row + 1]
    local of_kind, of_channel = redis.call('TYPE', kind).ok, redis.call('TYPE', name).ok
    if of_kind ~= 'zset' and of_kind ~= 'none' then return {'index', kind} end
    if of_channel ~= 'hash' and of_channel ~= 'none' then
        redis.call('DEL', name)
        repaired[#repaired + 1] = name
    end
end
for row = at, #ARGV, 4 do
    local kind, channel, id, value = KEYS[1] .. ':' .. ARGV[row], ARGV[row + 1], ARGV[row + 2], ARGV[row + 3]
    local name = kind .. ':' .. channel
    if value ~= '' then
        redis.call('HSET', name, id, value)
        redis.call('ZADD', kind, 'GT', id, channel)
    elseif redis.call('HDEL', name, id) == 1 and redis.call('EXISTS', name) == 0 then
        redis.call('ZREM', kind, channel)
    end
end
table.insert(repaired, 1, 'repaired')
return repaired
"""
# KEYS: a kind's key, which is made anew out of its channels'.
INDEX = """
redis.call('DEL', KEYS[1])
for _, name in ipairs(redis.call('KEYS', KEYS[1] .. ':*')) do
    local channel = string.match(string.sub(name, #KEYS[1] + 2), '^%-?%d+$')
    if channel and redis.call('TYPE', name).ok == 'hash' then
        for _, id in ipairs(redis.call('HKEYS', name)) do
            if string.match(id, '^%-?%d+$') and #id < 20 then redis.call('ZADD', KEYS[1], 'GT', id, channel) end
        end
    end
end
"""


class RedisStore:
    """A `storage.store.Store`. prefix: of all its keys.

    leases: must all be held for anything to be written; None: only one process at a time writes rows of this prefix.
    """

    owed: Callable[[], Mapping[Key, bytes]]

    def __init__(
        self, url: str, prefix: str = "parley:rows", *, seal: Seal | None = None, leases: Leases | None = None
    ) -> None:
        """Raises ValueError for a URL that is not of Redis. Connects when first used."""
        self.redis = redis.Redis.from_url(
            url,
            socket_connect_timeout=TIMEOUT_SECONDS,
            socket_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        self._write = self.redis.register_script(WRITE)
        self._prefix = prefix
        self._seal = seal
        self.leases = leases
        self.owed = dict
        self._expected: tuple[Key, bytes | None] | None = None

    def read(
        self,
        kind: str,
        channel: int | Collection[int] | None = None,
        *,
        since: int = 0,
        before: int = ANY,
        limit: int = ANY,
        newest: bool = False,
    ) -> list[Row]:
        channels = self.channels(kind) if channel is None else [channel] if isinstance(channel, int) else [*channel]
        channels.sort(reverse=newest)
        found: list[Row] = []
        for start in range(0, len(channels), AT_ONCE):
            keys: list[Key] = []
            with _working("read"), self.redis.pipeline(transaction=False) as pipe:
                for each in (some := channels[start : start + AT_ONCE]):
                    pipe.hkeys(self._name(kind, each))
                answers = zip(some, pipe.execute(raise_on_error=False), strict=True)
                for each, ids in ((each, self._taken(kind, each, answer)) for each, answer in answers):
                    keys += [Key(kind, each, i) for i in sorted(_numbers(ids), reverse=newest) if since <= i < before]
                keys = keys[: limit - len(found)]
                for each, of_channel in groupby(keys, lambda key: key.channel):
                    pipe.hmget(self._name(kind, each), [str(key.id) for key in of_channel])
                values = chain.from_iterable(pipe.execute())
            # Another process may have deleted some meanwhile.
            there = ((key, value) for key, value in zip(keys, values, strict=True) if value is not None)
            found += [read_row(key, value, self._seal) for key, value in there]
        return found

    def kinds(self) -> list[str]:
        with _working("read"):
            found = self.redis.scan_iter(match=f"{self._prefix}:*")
            names = (name.decode(errors="replace").removeprefix(f"{self._prefix}:") for name in found)
            kinds = {name.partition(":")[0] for name in names} - {ASIDE}
        return [kind for kind in sorted(kinds) if self.channels(kind)]

    def channels(self, kind: str) -> list[int]:
        with _working("read"):
            name = f"{self._prefix}:{kind}"
            if self.redis.type(name) not in (b"zset", b"none"):
                self._index(name)  # also for one who only reads, as it tells nothing but what is there
            found: Any = self.redis.zrange(name, 0, -1)
            return _numbers(found)

    def write(self, changes: Mapping[Key, bytes | None]) -> None:
        leases = self.leases.names if self.leases else {}
        if self.leases and not leases:
            raise StoreError("Nothing is stored without a shard, and this process has none.")
        rows = [(*key, value or b"") for key, value in pack({**self.owed(), **changes}, self._seal).items()]
        told: list[Any] = [len(leases), *chain.from_iterable(leases.items()), *chain.from_iterable(rows)]
        with _working("written"):
            found: Any = self._write([self._prefix], told)
        what, *keys = (each.decode(errors="replace") for each in found)
        if what == "lost":
            lease, holder = keys
            if self.leases and lease not in self.leases.names:  # it was released meanwhile
                self.write(changes)
            elif holder:
                raise LostLeaseError(
                    f"{lease} in Redis now belongs to another process ({holder}): this one stores nothing."
                )
            else:
                raise StoreError(f"{lease} in Redis has run out: nothing is stored until it is held again.")
        elif what == "index":
            self._index(keys[0])
            self.write(changes)
        elif keys:
            _tell_repaired(keys, "what they held is lost")
        self.owed = dict

    def _taken(self, kind: str, channel: int, answer: Any) -> Any:
        """An answer of Redis; nothing in place of a key of another type, which something else wrote: it costs no other
        rows, and is repaired when something is written there."""
        if not isinstance(answer, redis.RedisError):
            return answer
        if not str(answer).startswith("WRONGTYPE"):
            raise answer
        meaning = "something else wrote to this key of the bot: what it held is lost"
        log.error("rows_refused", key=self._name(kind, channel), meaning=meaning)
        return []

    def _index(self, name: str) -> None:
        with _working("read"):
            self.redis.eval(INDEX, 1, name)
        _tell_repaired([name], "it is made anew")

    def sync(self) -> None:
        """Checks that Redis has not lost its data; it has what was written already."""
        if self._expected and self._raw(self._expected[0]) != self._expected[1]:
            raise EmptiedError("What was stored in Redis is gone.")

    def expect(self, key: Key) -> None:
        """Notes a row that stays as it is unless Redis loses its data; made again, a sealed row has other bytes."""
        self._expected = key, self._raw(key)

    def _raw(self, key: Key) -> bytes | None:
        with _working("read"), self.redis.pipeline(transaction=False) as pipe:
            pipe.hget(self._name(key.kind, key.channel), str(key.id))
            (found,) = pipe.execute(raise_on_error=False)
            return bytes(found) if (found := self._taken(key.kind, key.channel, found)) else None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Locks out other processes that enter this; waits for the lock of a killed one to expire."""
        lock = self.redis.lock(ALONE, timeout=ALONE_SECONDS, blocking_timeout=2 * ALONE_SECONDS)
        with _working("sealed"):
            lock.acquire()
        try:
            yield
        finally:
            with suppress(redis.RedisError):  # it is over by then
                lock.release()

    def is_used(self) -> bool:
        """Whether any process has a shard: each shard has a lease."""
        with _working("read"):
            return any(True for _ in self.redis.scan_iter(match=LEASES, count=1_000))

    def drop_aside(self, before: float) -> None:
        with _working("deleted"):
            self.redis.zremrangebyscore(f"{self._prefix}:{ASIDE}", "-inf", f"({before}")

    def close(self) -> None:
        self.redis.close()

    def earlier(self, kind: str) -> EarlierDocuments:
        """The documents of a kind that an earlier version left in this Redis."""
        return EarlierDocuments(self.redis, kind, f"{self._prefix}:{ASIDE}")

    def _name(self, kind: str, channel: int) -> str:
        return f"{self._prefix}:{kind}:{channel}"


class KeyInRedis:
    """A `storage.sealing.KeyPlace`, for hosts without a persistent disk."""

    def __init__(self, url: str) -> None:
        """Raises ValueError for a URL that is not of Redis."""
        self._store = RedisStore(url)

    def __str__(self) -> str:
        return f"{STATE_KEY} of Redis (`redis-cli GET {STATE_KEY}`)"

    def read(self) -> str:
        with _working("read"):
            found: Any = self._store.redis.get(STATE_KEY)
        return (found or b"").decode("ascii", "replace").strip()

    def keep(self, key: str) -> str:
        with _working("written"):
            if self._store.redis.set(STATE_KEY, key, nx=True):
                tell(str(self))
        return self.read()


class EarlierDocuments:
    """Documents of one kind, with their records, that an earlier version stored. Raises StoreError.

    aside: the sorted set for what cannot be read, scored by the time at which it was added.
    """

    def __init__(self, client: redis.Redis, kind: str, aside: str) -> None:
        self._redis = client
        self._kind = kind
        self._aside = aside

    def is_left(self) -> bool:
        with _working("read"):
            return bool(self._redis.exists(self._key("names")))

    def names(self) -> list[str]:
        with _working("read"):
            found: Any = self._redis.zrevrange(self._key("names"), 0, -1)
        return [name.decode("utf-8", "surrogatepass") for name in found]

    def read(self, name: str, opened: Opened, record: Opened) -> Stored:
        content, lines = self._found(name)
        records = tuple(map(record, lines))
        try:
            return Stored(None if content is None else opened(content), records)
        except ValueError as error:
            return Stored(None, records, f"it is damaged ({error}), only its journal is taken.")

    def set_aside(self, name: str) -> str:
        content, lines = self._found(name)
        whole = b"\n".join((f"{self._kind}/{name}".encode("utf-8", "surrogatepass"), content or b"", *lines))
        with _working("set aside"):
            self._redis.zadd(self._aside, {whole: time.time()})
        return self._aside

    def delete(self, name: str) -> bool:
        encoded = name.encode("utf-8", "surrogatepass")
        with _working("deleted"), self._redis.pipeline(transaction=True) as pipe:
            pipe.delete(*(self._key(each, encoded) for each in DOCUMENT))
            pipe.zrem(self._key("names"), encoded)
            return any(pipe.execute())

    def clear(self) -> None:
        """Deletes damaged documents, which have no names any more."""
        with _working("deleted"):
            for key in self._redis.scan_iter(match=self._key("damaged", b"*")):
                self._redis.delete(key)

    def _found(self, name: str) -> tuple[bytes | None, list[bytes]]:
        encoded = name.encode("utf-8", "surrogatepass")
        with _working("read"):
            content: Any = self._redis.get(self._key("document", encoded))
            lines: Any = self._redis.lrange(self._key("records", encoded), 0, -1)
        return content, lines

    def _key(self, *parts: str | bytes) -> bytes:
        of_kind = f"parley:{self._kind}:"
        return b":".join(part if isinstance(part, bytes) else part.encode() for part in (of_kind, *parts))


def _tell_repaired(keys: list[str], what: str) -> None:
    log.error(
        "keys_repaired",
        keys=keys,
        meaning=f"something else wrote to these keys of the bot: {what}",
        remedy="give the bot a Redis or a database of its own",
    )


def _numbers(names: Iterable[bytes]) -> list[int]:
    """Parses the names of rows or channels. Skips what this program never writes: other forms of a number, such as
    "007", which would be row 7 once more, and numbers that are too large to be an id."""
    return [number for name in names if NUMBER.fullmatch(name) and abs(number := int(name)) < ANY]


@contextmanager
def _working(done: str) -> Iterator[None]:
    try:
        yield
    except redis.RedisError as error:
        raise StoreError(f"What is stored could not be {done} in Redis: {error}") from error
