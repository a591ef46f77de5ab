"""Rows in Redis, for where there is no disk that stays. Imported only where there is a REDIS_URL.

The rows of a kind in a channel are one hash, and the channels of a kind one sorted set. Each write is one transaction;
how much a power cut takes is for the settings of Redis to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import redis
import structlog
from redis.backoff import NoBackoff
from redis.retry import Retry

from state.sealing import Seal, pack, unpack
from state.stored import ANY, Key, Row, StoreError

log = structlog.get_logger()

TIMEOUT_SECONDS = 5.0


class RedisStore:
    """A `state.stored.Store`. prefix: of all keys; one process at a time writes those of one prefix."""

    def __init__(self, url: str, prefix: str = "parley:rows", *, seal: Seal | None = None) -> None:
        """Raises ValueError for what is no address of a Redis. It connects when it is first used."""
        self.redis = redis.Redis.from_url(
            url,
            socket_connect_timeout=TIMEOUT_SECONDS,
            socket_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        self._prefix = prefix
        self._seal = seal

    def read(
        self,
        kind: str,
        channel: int | None = None,
        *,
        since: int = 0,
        before: int = ANY,
        limit: int = ANY,
        newest: bool = False,
    ) -> list[Row]:
        found: list[Row] = []
        for each in sorted(self.channels(kind), reverse=newest) if channel is None else [channel]:
            with self._working("read"):
                name = self._name(kind, each)
                ids = sorted((id_ for id_ in map(int, self.redis.hkeys(name)) if since <= id_ < before), reverse=newest)
                ids = ids[: limit - len(found)]
                values: Any = self.redis.hmget(name, ids) if ids else []
            found += [self._row(kind, each, id_, value) for id_, value in zip(ids, values, strict=True)]
        return found

    def channels(self, kind: str) -> list[int]:
        with self._working("read"):
            found: Any = self.redis.zrange(f"{self._prefix}:{kind}", 0, -1)
            return list(map(int, found))

    def write(self, changes: Mapping[Key, bytes | None]) -> None:
        packed = {key: None if value is None else pack(key, value, self._seal) for key, value in changes.items()}
        with self._working("written"), self.redis.pipeline(transaction=True) as pipe:
            for key, value in packed.items():
                name = self._name(key.kind, key.channel)
                if value is None:
                    pipe.hdel(name, str(key.id))
                else:
                    pipe.hset(name, str(key.id), value)
                    pipe.zadd(f"{self._prefix}:{key.kind}", {str(key.channel): key.id}, gt=True)
            pipe.execute()
            for key in {key._replace(id=0) for key, value in packed.items() if value is None}:
                if not self.redis.exists(self._name(key.kind, key.channel)):
                    self.redis.zrem(f"{self._prefix}:{key.kind}", str(key.channel))

    def sync(self) -> None:
        """Redis has it already."""

    def drop_aside(self, before: float) -> None:
        """Nothing is set aside."""

    def close(self) -> None:
        self.redis.close()

    def _name(self, kind: str, channel: int) -> str:
        return f"{self._prefix}:{kind}:{channel}"

    def _row(self, kind: str, channel: int, id_: int, value: bytes | None) -> Row:
        try:
            return Row(channel, id_, unpack(Key(kind, channel, id_), value or b"", self._seal))
        except ValueError as error:
            log.error("row_refused", kind=kind, channel=channel, id=id_, detail=str(error))
            return Row(channel, id_, None)

    @contextmanager
    def _working(self, done: str) -> Iterator[None]:
        try:
            yield
        except redis.RedisError as error:
            raise StoreError(f"What is kept could not be {done} in Redis: {error}") from error
