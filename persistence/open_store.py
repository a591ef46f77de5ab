"""Where what is kept is stored: in one database in STATE_DIR or in Redis, and sealed where there is a key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from persistence.migration import EarlierFolder, OpenEarlier, check_earlier, take_over
from storage.sealing import Seal, read_keys
from storage.sqlite_store import SQLiteStore
from storage.store import Key, Store, StoreError, WrongKeyError

if TYPE_CHECKING:
    from storage.redis_store import RedisStore

log = structlog.get_logger()

DATABASE = "parley.db"
CHECK = "seal"


def open_stores(state_dir: Path, redis_url: str | None, keys: str | None) -> Callable[[], Store]:
    """What opens the store, having taken over what an earlier version left; by whichever thread is to use it.

    Touches nothing yet. Raises ValueError, with a sentence, for keys of another form.
    """
    seal = read_keys(keys) if keys else None

    def open_store() -> Store:
        store = _store(state_dir, redis_url, seal)
        take_over(_earlier(state_dir, store), store, seal)
        return store

    return open_store


def mark_of(keys: str | None) -> str:
    """What tells the key that is in use, the first, from others; empty for none."""
    return hashlib.sha256(keys.split(",")[0].strip().encode()).hexdigest()[:16] if keys else ""


def check_stores(state_dir: Path, redis_url: str | None, keys: str | None) -> None:
    """Raises WrongKeyError where these keys do not fit what is stored, and StoreError where it cannot be had."""
    seal = read_keys(keys) if keys else None
    store = _store(state_dir, redis_url, seal)
    try:
        store.read(CHECK)
        check_earlier(_earlier(state_dir, store), seal)
        if seal:
            # By this row the next start tells whether its key fits.
            store.write({Key(CHECK, 0): b'{"sealed_by":"STATE_KEY"}'})
    except WrongKeyError:
        raise
    except StoreError as error:
        store.read(CHECK)  # where that works the keys fit: a disk that is full or read-only silences nobody
        log.warning("key_not_noted", error=str(error), meaning="another key could be used at the next start")
    finally:
        store.close()


def _store(state_dir: Path, redis_url: str | None, seal: Seal | None) -> SQLiteStore | RedisStore:
    if redis_url is None:
        return SQLiteStore(state_dir / DATABASE, seal=seal)
    from storage.redis_store import RedisStore  # noqa: PLC0415 - only who sets REDIS_URL needs its client

    return RedisStore(redis_url, seal=seal)


def _earlier(state_dir: Path, store: SQLiteStore | RedisStore) -> OpenEarlier:
    """Where an earlier version kept what this store keeps now."""
    return partial(EarlierFolder, state_dir) if isinstance(store, SQLiteStore) else store.earlier
