"""The one thread that reads and writes the store: in order, without blocking the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import structlog

from activity import Observer
from storage.store import ANY, EmptiedError, Key, LostLeaseError, Row, Store

log = structlog.get_logger()

T = TypeVar("T")

SETTLE_SECONDS = 5.0
# Waking the thread for each message would cost more than the message, and every 0.01 s still a tenth of it.
TOGETHER_SECONDS = 0.01
WAITING_SECONDS = 0.05
MOST_PENDING = 50_000  # rows that memory holds while they cannot be written
MOST_UNDONE = 1_000  # pieces of work that are tried again once the store can be read


class _Work(NamedTuple):
    """As Writer.put() is given it."""

    do: Callable[[], object]
    channel_id: int
    adds: bool


class Writer:
    """Runs work in order, in a thread that starts with the first work. To be used in one event loop.

    All work handed over together is stored in one transaction. What cannot be stored stays in memory and is tried again
    with the next work; one line is logged for each outage. Once another process has taken this one's lease, nothing is
    stored any more. Memory holds so much only: beyond it the oldest additions are lost, and where a change would be,
    its channel is dropped instead, so that no row stays as it was before the change. One more line is logged then.

    observer: told in the thread of each operation of the store. emptied: called in the thread when the store has lost
    all its data. drop: called in the thread to drop a channel's rows; set by whoever writes them.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        observer: Observer | None = None,
        emptied: Callable[[], None] = lambda: None,
    ) -> None:
        self._open_store = open_store
        self._observer = observer or Observer()
        self._emptied = emptied
        self.drop: Callable[[int], object] = lambda _channel_id: None
        self._waiting: list[_Work] = []
        self._is_due = False  # whether they are handed over within TOGETHER_SECONDS
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed: threading.Thread | None = None  # the thread before, which may still hang
        self._is_late = False
        # Only the thread uses what follows.
        self._store: Store | None = None
        self._pending: dict[Key, bytes | None] = {}
        self._added: set[Key] = set()  # those of which nothing else is stored
        self._undone: list[_Work] = []
        self._given_up: set[int] = set()  # channels to be dropped
        self._is_unsynced = False
        self._is_failing = self._is_full = False
        self._has_lost = False  # another process has its lease
        self.outages = 0  # how many times the store has started to fail
        self._is_redoing = False

    def put(
        self, work: Callable[[], object], channel_id: int = 0, *, adds: bool = False, can_wait: bool = False
    ) -> None:
        """Schedules work, to be done within TOGETHER_SECONDS, together with all that is put meanwhile. Does not wait.

        channel_id: of the channel whose rows it changes; 0: it writes a row without reading any. adds: it only adds
        rows to the channel.
        can_wait: within WAITING_SECONDS, as what a kill loses of it is read from Discord again.
        """
        self._waiting.append(_Work(work, channel_id, adds))
        if not (can_wait or self._is_due):
            self._is_due = True
            asyncio.get_running_loop().call_later(TOGETHER_SECONDS, self._hand_over)
        elif len(self._waiting) == 1:
            asyncio.get_running_loop().call_later(WAITING_SECONDS, self._hand_over)

    async def run(self, work: Callable[[], T]) -> T:
        """Runs work after all that was put before. Returns or raises what the work does."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def end(give: Callable[[Any], None], result: object) -> None:
            if not done.done():
                give(result)
            elif isinstance(result, Exception):
                log.error("store_broken", exc_info=result, meaning="nobody is waiting for that any more")

        def report() -> None:
            with suppress(RuntimeError):  # the loop was closed, so nobody waits any more
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
        """Waits until all that was put before is stored, at most so long, as a hanging disk must not silence the bot.

        sync: also until deleted data is gone from the disk. Returns whether all of that is done.
        """
        if self._is_late and not self._work.empty():
            return False  # an earlier caller has waited already
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
        """Finishes the queued work, and ends the thread."""
        self._hand_over()
        if self._thread is None:
            return
        if await self.settled(sync=True) or not self._is_late:
            await self.run(self._close)
        self._work.put(None)
        self._closed, self._thread = self._thread, None

    def _hand_over(self) -> None:
        works, self._waiting, self._is_due = self._waiting, [], False
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

    def write(self, key: Key, value: bytes | None, *, is_new: bool = False) -> None:
        """Stores a value, or deletes it (None), in one transaction with what else the work at hand writes. is_new:
        no value of it was stored before, or only the same."""
        if is_new and key not in self._pending:
            self._added.add(key)
        elif not is_new:
            self._added.discard(key)
        self._pending.pop(key, None)
        self._pending[key] = value

    def read(
        self, kind: str, channel: int, *, since: int = 0, before: int = ANY, limit: int = ANY, newest: bool = False
    ) -> list[Row]:
        """As `Store.read`, with rows that are not stored yet."""
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
        """As `Store.channels`, with those of rows that are not stored yet."""
        self._commit()
        pending = [key.channel for key, value in self._pending.items() if key.kind == kind and value is not None]
        return list(dict.fromkeys([*self.store.channels(kind), *pending]))

    def sync(self) -> bool:
        """Syncs what was written to disk, and removes what was deleted from it. Returns whether that worked."""
        if not self._commit():
            return False
        if self._is_unsynced and self._try(self._sync):
            self._is_unsynced = False
        return not self._is_unsynced

    def _commit(self, works: Sequence[_Work] = ()) -> bool:
        """Runs what failed before, then these, and stores what they write. Returns whether nothing is left to do."""
        if not self._is_redoing:  # work that reads comes here again
            self._is_redoing = True
            self._given_up = {one for one in self._given_up if not self._try(partial(self.drop, one))}
            works, self._undone, held = (*self._undone, *works), [], set[int]()
            for work in works:
                # The store may be back by now: a change comes after what failed before it, such as to add the message.
                if (work.channel_id in held and not work.adds) or not self._try(work.do):
                    self._undone.append(work)
                    held |= {work.channel_id} - {0}
            while len(self._undone) > MOST_UNDONE:  # later work of a channel that is to be dropped is done after that
                lost = self._undone.pop(0)
                self._given_up |= set() if lost.adds else {lost.channel_id} - {0}
                self._tell_full()
            self._is_redoing = False
        if self._pending and not self._has_lost and self._try(self._write):
            self._pending, self._added = {}, set()
            self._is_unsynced, self._is_failing, self._is_full = True, False, False
        messages = [key for key, value in self._pending.items() if key.channel and key.id and value is not None]
        for key in messages[:-MOST_PENDING]:
            if key in self._added:
                del self._pending[key]
                self._added.remove(key)
            else:
                self._pending[key] = None  # an older value that is stored goes too: it may have words that are gone
            self._tell_full()
        return not (self._pending or self._undone or self._given_up)

    def _tell_full(self) -> None:
        if not self._is_full:
            self._is_full = True
            meaning = "the oldest messages are not stored; transcripts with changes that cannot be made are deleted"
            log.error("store_behind", meaning=meaning)

    def _write(self) -> None:
        with self._measured("write"):
            self.store.write(self._pending)

    def _sync(self) -> None:
        try:
            with self._measured("sync"):
                self.store.sync()
        except EmptiedError:
            self._close()  # opening it again prepares it for writing
            self._emptied()

    @contextmanager
    def _measured(self, operation: str) -> Iterator[None]:
        """Reports how long an operation takes, unless it fails."""
        began = perf_counter()
        yield
        self._observer.stored(operation, perf_counter() - began)

    def _run(self, before: threading.Thread | None) -> None:
        if before:
            before.join()  # two threads at once would mix their work
        while work := self._work.get():
            work()

    def _try(self, work: Callable[[], object]) -> bool:
        """Runs work. Returns False if the store failed. Any other error is logged, and counts as done: a retry would
        not help."""
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
                    remedy="set STATE_DIR to a folder that can be written and has room, or make REDIS_URL reachable",
                )
                self.outages += 1
            self._is_failing = True
            return False
        except Exception:
            # The outermost edge of the thread: a bug in one piece of work must not stop the others.
            log.exception("store_broken")
        return True

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
