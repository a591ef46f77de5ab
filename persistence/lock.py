"""Locks what is stored for one process: by a lock on the folder, and a lease in Redis if that is used."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from filelock import FileLock, SoftFileLock, Timeout

from storage.store import StoreError, make_folder

if TYPE_CHECKING:
    import redis
    from redis.lock import Lock

log = structlog.get_logger()

LOCK_FILE = "lock"
LOCK_SECONDS = 60.0  # a redeploy ends the other process within that
HERE_SECONDS = 5.0  # for a process on this machine, which no redeploy is going to end
LEASE = "parley:lock"
CLUSTER = "parley:cluster:count"  # exists while any of several processes has a shard
REQUESTS = "parley:cluster:events"  # what people asked of several processes, until that is done on all shards
ASKED = (b"forget", b"opt_out", b"opt_in")
LOOK_SECONDS = 1.0
LEASE_SECONDS = 30.0  # how long it outlives a kill: less than LOCK_SECONDS, for which another process waits


class InUseError(Exception):
    """Another process uses what is stored. Its text is one sentence for the owner."""


class UndoneError(InUseError):
    """Privacy requests to processes that shared the store are not carried out on all shards yet."""


@contextmanager
def in_use(state_dir: Path, redis_url: str | None = None, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Locks what is stored for this process; released when the process ends, however that happens.

    Waits so many seconds for another process, which a redeploy is about to end, but at most HERE_SECONDS for one on
    this machine; then raises InUseError. Raises StoreError for a Redis that cannot be reached. A folder that cannot be
    written is not locked: that is logged.
    """
    with _locked(state_dir, seconds):
        if redis_url is None:
            yield
        else:
            with _leased(redis_url, seconds):
                yield


@contextmanager
def _locked(state_dir: Path, seconds: float) -> Iterator[None]:
    path, owner = state_dir / LOCK_FILE, None
    lock = FileLock(path, mode=0o600)
    try:
        make_folder(state_dir)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            owner = _owner_here(path)
            seconds = min(seconds, HERE_SECONDS) if owner else seconds
            if seconds:
                log.warning("waiting_for_other_process", lock=lock.lock_file, seconds=seconds, pid=owner)
            lock.acquire(timeout=seconds)
        if not isinstance(lock, SoftFileLock):  # which writes its own text into the file
            path.write_text(f"{os.getpid()} {platform.node()}\n")
    except Timeout:
        which = f" ({owner} on this machine)" if owner else ""
        raise InUseError(
            f"STATE_DIR {state_dir} is in use by another process{which}: stop that one, or give this one a folder of "
            "its own."
        ) from None
    except OSError as error:
        log.warning("state_dir_unusable", folder=str(state_dir), error=str(error), meaning="nothing survives a restart")
    try:
        yield
    finally:
        lock.release()


def _owner_here(path: Path) -> int | None:
    """The id of the process that holds the lock, if it runs on this machine (in a container: in the same one)."""
    try:
        pid, machine, *_ = path.read_text().split()
        if machine != platform.node():
            return None
        with suppress(PermissionError):  # raised for another user's process, which runs, too
            os.kill(int(pid), 0)
        return int(pid)
    except (OSError, ValueError, OverflowError):
        return None


@contextmanager
def _leased(redis_url: str, seconds: float) -> Iterator[None]:
    import redis  # noqa: PLC0415 - only who sets REDIS_URL needs its client
    from redis.exceptions import LockError, RedisError  # noqa: PLC0415

    client = redis.Redis.from_url(redis_url, socket_connect_timeout=5, socket_timeout=5)
    lease = client.lock(LEASE, timeout=LEASE_SECONDS, thread_local=False)
    ended, deadline = threading.Event(), time.monotonic() + seconds

    def renew() -> None:
        while not ended.wait(LEASE_SECONDS / 3):
            try:
                lease.reacquire()
            except LockError:
                # After an outage or a loss of data in Redis, nobody may hold the lease.
                with suppress(RedisError):  # tried again next time
                    if not lease.acquire(blocking=False):
                        log.critical("lease_lost", meaning="another process uses this Redis: this one ends")
                        os._exit(1)
            except RedisError as error:
                log.warning("lease_not_renewed", error=str(error))

    try:
        is_told = False
        while why := _refusal(client, lease):
            if time.monotonic() >= deadline:
                raise why
            if not is_told:
                log.warning("waiting_for_other_process", why=str(why), seconds=seconds)
            is_told = True
            time.sleep(min(LOOK_SECONDS, seconds))
    except RedisError as error:
        raise StoreError(f"REDIS_URL cannot be reached ({error}): start that Redis, or correct the address.") from None
    threading.Thread(target=renew, name="lease", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        with suppress(RedisError):
            lease.release()
        client.close()


def _refusal(client: redis.Redis, lease: Lock) -> InUseError | None:
    """Acquires the lease. Returns why it cannot be acquired, if so."""
    # While it is held no process takes a shard, so it is not acquired before all shards are released.
    if not client.exists(CLUSTER):
        asked: Any = client.xrange(REQUESTS)
        if any(fields.get(b"what") in ASKED for _, fields in asked):
            return UndoneError(
                "A /forget, /optout or /optin in REDIS_URL is not yet carried out in all servers: start a process with "
                "SHARDS=auto, and stop it once its /healthz says ok."
            )
        if lease.acquire(blocking=False):
            if not client.exists(CLUSTER):
                return None
            lease.release()
    if client.exists(CLUSTER):
        return InUseError(
            "REDIS_URL is in use by processes that share it: stop those, or set SHARDS=auto for this one, too."
        )
    return InUseError("REDIS_URL is in use by another process: stop that one, or give this one another database.")
