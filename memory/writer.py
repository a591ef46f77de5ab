"""The one thread that reads and writes what is stored: in order, and never in the way of the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

import structlog

log = structlog.get_logger()

T = TypeVar("T")

SETTLE_SECONDS = 5.0
# To wake the thread for each message would cost more than the message.
TOGETHER_SECONDS = 0.01


class Writer:
    """Does what it is given, one after the other. To be used in one event loop; the thread begins with the first work.

    What fails for the disk's sake (OSError) is logged once per outage: the bot goes on from memory. is_behind: whether
    something that failed is still to be done again.
    """

    def __init__(self, is_behind: Callable[[], bool] = lambda: False) -> None:
        self._is_behind = is_behind
        self._waiting: list[Callable[[], object]] = []
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_failing = False
        self._is_late = False

    def put(self, work: Callable[[], object]) -> None:
        """Has it done within some milliseconds, together with what else comes meanwhile; does not wait."""
        self._waiting.append(work)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_later(TOGETHER_SECONDS, self._hand_over)

    async def run(self, work: Callable[[], T]) -> T:
        """Has it done behind what was put before, and gives what it gives or raises."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def report() -> None:
            with suppress(RuntimeError):  # of a loop that was closed, where nobody waits any more
                try:
                    result = work()
                except Exception as error:  # noqa: BLE001 - it is raised where it is awaited
                    loop.call_soon_threadsafe(_fail, done, error)
                else:
                    loop.call_soon_threadsafe(_succeed, done, result)

        self._hand_over()
        self._queue(report)
        return await done

    def catch_breath(self) -> None:
        """For long work, in the thread: does what has come meanwhile, which then has not to wait for all of it."""
        while not self._work.empty():
            work = self._work.get()
            if work is None:
                self._work.put(None)
                return
            work()

    async def settled(self, seconds: float = SETTLE_SECONDS) -> bool:
        """Waits until all that was put before is done, but no longer than this: a disk that hangs silences nobody.

        Returns whether it is, and nothing of it has still to be done again.
        """
        if self._is_late and not self._work.empty():
            return False  # whoever asked before has waited
        try:
            async with asyncio.timeout(seconds):
                # In the thread: what is put behind it may be in the middle of being done when it is told.
                is_well = await self.run(self._is_well)
        except TimeoutError:
            self._is_late = True
            log.warning("store_late", seconds=seconds, meaning="the bot goes on; a kill now could lose the last words")
            return False
        self._is_late = False
        return is_well

    def _is_well(self) -> bool:
        return not (self._is_failing or self._is_behind())

    async def close(self) -> None:
        """Finishes what was put, and ends the thread."""
        self._hand_over()
        if self._thread is None:
            return
        await self.settled()
        self._work.put(None)
        self._thread = None

    def _hand_over(self) -> None:
        works, self._waiting = self._waiting, []
        if works:
            self._queue(partial(self._do_all, works))

    def _queue(self, work: Callable[[], object]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
            self._thread.start()
        self._work.put(work)

    def _run(self) -> None:
        while work := self._work.get():
            work()

    def _do_all(self, works: Sequence[Callable[[], object]]) -> None:
        for work in works:
            self._do(work)

    def _do(self, work: Callable[[], object]) -> None:
        try:
            work()
            self._is_failing = self._is_failing and self._is_behind()
        except OSError as error:
            self._warn(error)
        except Exception:
            # The outermost edge of the thread: a bug in one piece of work must not take the others with it.
            log.exception("store_broken")

    def _warn(self, error: OSError) -> None:
        if not self._is_failing:
            log.warning(
                "store_failed",
                error=str(error),
                meaning="the bot goes on from memory; what it holds would not survive a restart",
                remedy="make STATE_DIR a folder that can be written and has room, or REDIS_URL reachable",
            )
        self._is_failing = True


def _succeed(done: asyncio.Future[T], result: T) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: asyncio.Future[T], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)
