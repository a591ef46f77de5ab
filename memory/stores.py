"""Where what is kept is stored: in a folder or in Redis, and sealed where there is a key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import structlog

from state.sealing import CHECK
from state.store import FolderStore, Seal, Store, StoreError, WrongKeyError, check_seal, read_keys

log = structlog.get_logger()

OpenStore = Callable[[str], Store]
"""(what kind of documents) -> their store."""


def open_stores(state_dir: Path, redis_url: str | None, keys: str | None) -> OpenStore:
    """Touches nothing yet. Raises ValueError, with a sentence, for keys of another form."""
    seal = read_keys(keys) if keys else None

    def open_store(kind: str) -> Store:
        if redis_url:
            return _redis_store(redis_url, kind, seal)
        return FolderStore(state_dir / kind, seal=seal)

    return open_store


def mark_of(keys: str | None) -> str:
    """What tells the key that is in use, the first, from others; empty for none."""
    return hashlib.sha256(keys.split(",")[0].strip().encode()).hexdigest()[:16] if keys else ""


def check_stores(state_dir: Path, redis_url: str | None, keys: str | None) -> None:
    """Raises WrongKeyError where these keys do not fit what is stored, and StoreError where it cannot be had."""
    store = open_stores(state_dir, redis_url, keys)("seal")
    try:
        check_seal(store, read_keys(keys) if keys else None)
    except WrongKeyError:
        raise
    except StoreError as error:
        store.read(CHECK)  # where that works the keys fit: a disk that is full or read-only silences nobody
        log.warning("key_not_noted", error=str(error), meaning="another key could be used at the next start")
    finally:
        store.close()


def _redis_store(url: str, kind: str, seal: Seal | None) -> Store:
    from state.redis_store import RedisStore  # noqa: PLC0415 - only who sets REDIS_URL needs its client

    return RedisStore(url, f"parley:{kind}:", seal=seal)
