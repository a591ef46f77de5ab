"""The one thread that reads and writes what is stored: in order, and never in the way of the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from time import perf_counter
from typing import Any, TypeVar

import structlog

from storage.store import ANY, EmptiedError, Key, LostLeaseError, Row, Store

log = structlog.get_logger()

T = TypeVar("T")

SETTLE_SECONDS = 5.0
# To wake the thread for each message would cost more than the message, and every 0.01 s still a tenth of it. What must
# survive a kill is waited for, and so handed over at once.
TOGETHER_SECONDS = 0.05
MOST_PENDING = 50_000  # rows that memory holds while they cannot be written
MOST_UNDONE = 1_000  # pieces of work that are tried again once the store can be read


class Writer:
    """Does what it is given, one after the other. To be used in one event loop; the thread begins with the first work.

    What its work writes is stored in one transaction for all that came together. What cannot be stored stays in memory,
    and is tried again with whatever comes next; one line is logged for each outage. But once another process has what
    this one held, nothing is stored any more.

    timed: told, in the thread, of what the store has done and in how many seconds. emptied: told there that the store
    lost all that it had.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        timed: Callable[[str, float], None] = lambda _operation, _seconds: None,
        emptied: Callable[[], None] = lambda: None,
    ) -> None:
        self._open_store = open_store
        self._timed = timed
        self._emptied = emptied
        self._waiting: list[Callable[[], object]] = []
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed: threading.Thread | None = None  # which may still be at what hung
        self._is_late = False
        # What follows is the thread's.
        self._store: Store | None = None
        self._pending: dict[Key, bytes | None] = {}
        self._undone: deque[Callable[[], object]] = deque(maxlen=MOST_UNDONE)
        self._is_unsynced = False
        self._is_failing = False
        self._has_lost = False  # what it held, to another process
        self.outages = 0  # how many times the store has begun to fail
        self._is_redoing = False

    def put(self, work: Callable[[], object]) -> None:
        """Has it done within moments, together with what else comes meanwhile; does not wait."""
        self._waiting.append(work)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_later(TOGETHER_SECONDS, self._hand_over)

    async def run(self, work: Callable[[], T]) -> T:
        """Has it done behind what was put before, and gives what it gives or raises."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def end(give: Callable[[Any], None], result: object) -> None:
            if not done.done():
                give(result)
            elif isinstance(result, Exception):
                log.error("store_broken", exc_info=result, meaning="nobody waits for that any more")

        def report() -> None:
            with suppress(RuntimeError):  # of a loop that was closed, where nobody waits any more
                try:
                    result = work()
                except Exception as error:  # noqa: BLE001 - it is raised where it is awaited
                    loop.call_soon_threadsafe(end, done.set_exception, error)
                else:
                    loop.call_soon_threadsafe(end, done.set_result, result)
            self._commit()

        self._hand_over()
        self._queue(report)
        return await done

    async def settled(self, seconds: float = SETTLE_SECONDS, *, sync: bool = False) -> bool:
        """Waits until all that was put before is stored, but no longer than this: a disk that hangs silences nobody.

        sync: until nothing that was deleted is on the disk any more, either. Returns whether it is so.
        """
        if self._is_late and not self._work.empty():
            return False  # whoever asked before has waited
        try:
            async with asyncio.timeout(seconds):
                is_well = await self.run(self.sync if sync else self._commit)
        except TimeoutError:
            self._is_late = True
            log.warning("store_late", seconds=seconds, meaning="the bot goes on; a kill now could lose the last words")
            return False
        self._is_late = False
        return is_well

    async def close(self) -> None:
        """Finishes what was put, and ends the thread."""
        self._hand_over()
        if self._thread is None:
            return
        if await self.settled(sync=True) or not self._is_late:
            await self.run(self._close)
        self._work.put(None)
        self._closed, self._thread = self._thread, None

    def _hand_over(self) -> None:
        works, self._waiting = self._waiting, []
        if works:
            self._queue(partial(self._commit, works))

    def _queue(self, work: Callable[[], object]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, args=(self._closed,), name="writer", daemon=True)
            self._thread.start()
        self._work.put(work)

    # In the thread

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = self._open_store()
        return self._store

    def write(self, key: Key, value: bytes | None) -> None:
        """Stores a value, or deletes it; with all else that is written by the work that came together."""
        self._pending.pop(key, None)
        self._pending[key] = value

    def read(
        self, kind: str, channel: int, *, since: int = 0, before: int = ANY, limit: int = ANY, newest: bool = False
    ) -> list[Row]:
        """As `Store.read`, with what is not stored yet."""
        self._commit()
        with self._measured("read"):
            stored = self.store.read(kind, channel, since=since, before=before, limit=limit, newest=newest)
        if not self._pending:
            return stored
        rows = {row.id: row for row in stored}
        for key, value in self._pending.items():
            if key[:2] == (kind, channel) and since <= key.id < before:
                rows[key.id] = Row(channel, key.id, value)
        return sorted(rows.values(), key=lambda row: row.id, reverse=newest)[:limit]

    def channels(self, kind: str) -> list[int]:
        """As `Store.channels`, with those of what is not stored yet."""
        self._commit()
        pending = [key.channel for key, value in self._pending.items() if key.kind == kind and value is not None]
        return list(dict.fromkeys([*self.store.channels(kind), *pending]))

    def sync(self) -> bool:
        """Has all on the disk itself, and off it what was deleted. Returns whether that worked."""
        if not self._commit():
            return False
        if self._is_unsynced and self._try(self._sync):
            self._is_unsynced = False
        return not self._is_unsynced

    def _commit(self, works: Sequence[Callable[[], object]] = ()) -> bool:
        """Does what failed before, and these, and stores what they write. Returns whether nothing is left."""
        if not self._is_redoing:  # what reads while it is done again would have all of it done again
            self._is_redoing = True
            works = [*self._undone, *works]
            self._undone.clear()
            for work in works:
                if not self._try(work):
                    self._undone.append(work)
            self._is_redoing = False
        if self._pending and not self._has_lost and self._try(self._write):
            self._pending = {}
            self._is_unsynced, self._is_failing = True, False
        for key in [key for key, value in self._pending.items() if key.id and value is not None][:-MOST_PENDING]:
            del self._pending[key]
        return not (self._pending or self._undone)

    def _write(self) -> None:
        with self._measured("write"):
            self.store.write(self._pending)

    def _sync(self) -> None:
        try:
            with self._measured("sync"):
                self.store.sync()
        except EmptiedError:
            self._close()  # as it is opened anew it is made ready for what is to be written
            self._emptied()

    @contextmanager
    def _measured(self, operation: str) -> Iterator[None]:
        """Tells how long it takes, unless it fails."""
        began = perf_counter()
        yield
        self._timed(operation, perf_counter() - began)

    def _run(self, before: threading.Thread | None) -> None:
        if before:
            before.join()  # two at a time would store half of each other's work
        while work := self._work.get():
            work()

    def _try(self, work: Callable[[], object]) -> bool:
        """Whether the store did it. What is no fault of the store's is not to be tried again, and counts as done."""
        try:
            work()
        except LostLeaseError as error:
            self._has_lost = True
            log.critical("store_lost", error=str(error), meaning="what this process has not stored yet is lost")
            return False
        except OSError as error:
            if not self._is_failing:
                log.warning(
                    "store_failed",
                    error=str(error),
                    meaning="the bot goes on from memory; what it holds would not survive a restart",
                    remedy="make STATE_DIR a folder that can be written and has room, or REDIS_URL reachable",
                )
                self.outages += 1
            self._is_failing = True
            return False
        except Exception:
            # The outermost edge of the thread: a bug in one piece of work must not take the others with it.
            log.exception("store_broken")
        return True

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
