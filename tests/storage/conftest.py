"""The stores that hold to one port: a database, one with a key, and Redis, a real server where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from storage.redis_store import RedisStore
from storage.sealing import read_keys
from storage.sqlite_store import SQLiteStore
from storage.store import Store
from tests.support.redis_server import redis_url  # noqa: F401 - a fixture

KEY = "iVwDOTJ1hAeYIPWNgdIxNXSoaxdWvnrmYLjVbtVTQ9s="

OpenStore = Callable[[], Store]
"""Opens the store of one test, each time as another process would."""


numbers = count()


@pytest.fixture(params=["database", "sealed database", "redis", "sealed redis"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    opened: list[Store] = []
    seal = read_keys(KEY) if "sealed" in request.param else None
    url = request.getfixturevalue("redis_url") if "redis" in request.param else ""
    prefix = f"test{next(numbers)}"

    def open_one() -> Store:
        store: Store = RedisStore(url, prefix, seal=seal) if url else SQLiteStore(tmp_path / "docs" / "db", seal=seal)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()
