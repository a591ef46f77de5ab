"""Documents in Redis, for where there is no disk that stays. Imported only where there is a REDIS_URL.

Each write is one transaction, so there is nothing half written to recover from. How much a power cut takes is for the
settings of Redis to say.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from state.sealing import SEALED, Seal, opened, sealed, unwrapped, wrapped
from state.stored import Stored, StoreError

TIMEOUT_SECONDS = 5.0
KINDS = (b"document", b"records", b"damaged")

Command = tuple[Any, ...]


class RedisStore:
    """A `state.stored.Store`. client: one that gives bytes, or the address of a Redis.

    prefix: of all keys; one process at a time writes those of one prefix. clock: seconds since 1970, which order names.
    """

    def __init__(
        self,
        client: redis.Redis | str,
        prefix: str,
        *,
        seal: Seal | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._redis = connect(client) if isinstance(client, str) else client
        self._prefix = prefix.encode()
        self._order = self._prefix + b":names"
        self._seal = seal
        self._clock = clock

    def read(self, name: str) -> Stored:
        document, journal, _ = self._keys(name)
        content, lines = self._do(name, "read", ("GET", document), ("LRANGE", journal, 0, -1))
        records = tuple(unwrapped(line, self._seal) for line in lines)
        try:
            return Stored(None if content is None else opened(content, self._seal), records)
        except ValueError as error:
            return Stored(None, records, f"{name}: it is damaged ({error}), only its journal is taken.")

    def write(self, name: str, content: bytes, *, purge: bool = False) -> None:
        document, journal, aside = self._keys(name)
        older = (journal, aside) if purge else (journal,)
        new = ("SET", document, sealed(content, self._seal))
        self._do(name, "written", new, ("DEL", *older), self._noted(name))

    def append(self, name: str, record: bytes) -> None:
        _, journal, _ = self._keys(name)
        self._do(name, "appended to", ("RPUSH", journal, wrapped(record, self._seal)), self._noted(name))

    def flush(self) -> None:
        """Redis has it already."""

    def reject(self, name: str) -> None:
        document, _, aside = self._keys(name)
        if self._do(name, "set aside", ("EXISTS", document))[0]:
            self._do(name, "set aside", ("RENAME", document, aside))

    def drop_aside(self) -> None:
        try:
            for key in self._redis.scan_iter(match=self._prefix + b":damaged:*"):
                self._redis.delete(key)
        except redis.RedisError as error:
            raise StoreError(f"What was set aside could not be deleted in Redis: {error}") from error

    def delete(self, name: str) -> bool:
        return any(self._do(name, "deleted", ("DEL", *self._keys(name)), ("ZREM", self._order, _encoded(name))))

    def names(self, limit: int | None = None, offset: int = 0) -> list[str]:
        if limit == 0:
            return []
        last = -1 if limit is None else offset + limit - 1
        (found,) = self._do("names", "read", ("ZREVRANGE", self._order, offset, last))
        return [name.decode("utf-8", "surrogatepass") for name in found]

    def peek(self, name: str, size: int) -> bytes:
        document, *_ = self._keys(name)
        begins = self._do(name, "read", ("GETRANGE", document, 0, max(size, len(SEALED)) - 1))[0]
        return bytes((self.read(name).content or b"" if begins.startswith(SEALED) else begins)[:size])

    def latest(self, name: str) -> bytes | None:
        _, journal, _ = self._keys(name)
        (line,) = self._do(name, "read", ("LINDEX", journal, -1))
        return None if line is None else unwrapped(line, self._seal)

    def close(self) -> None:
        self._redis.close()

    def _keys(self, name: str) -> tuple[bytes, bytes, bytes]:
        """Of the document, of its records, and of one that was set aside."""
        if not name:
            raise ValueError("A document's name must not be empty.")
        document, records, aside = (b":".join((self._prefix, kind, _encoded(name))) for kind in KINDS)
        return document, records, aside

    def _noted(self, name: str) -> Command:
        return "ZADD", self._order, self._clock(), _encoded(name)

    def _do(self, name: str, done: str, *commands: Command) -> list[Any]:
        """Together, or none of them."""
        try:
            with self._redis.pipeline(transaction=len(commands) > 1) as pipe:
                for command in commands:
                    pipe.execute_command(*command)  # type: ignore[no-untyped-call]
                return list(pipe.execute())
        except redis.RedisError as error:
            raise StoreError(f"{name!r} could not be {done} in Redis: {error}") from error


def connect(url: str) -> redis.Redis:
    """Raises ValueError for what is no address of a Redis. It connects when it is first used.

    Nothing is tried twice: a record whose answer was lost would be there twice.
    """
    return redis.Redis.from_url(
        url,
        socket_connect_timeout=TIMEOUT_SECONDS,
        socket_timeout=TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")
