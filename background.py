"""Background tasks, which run until the bot ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

log = structlog.get_logger()


class Background:
    """The running background tasks. failed: called with a code when an uncaught error ended one."""

    def __init__(self, failed: Callable[[str], None]) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed = failed

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("background_work_broken", work=repr(task.get_coro()), exc_info=error)
            self._failed("background_work_broken")

    async def end(self) -> None:
        """Cancels all tasks and waits until they have ended."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def every(seconds: float, work: Callable[[], None]) -> None:
    """Calls `work` every so many seconds, until cancelled."""
    while True:
        await asyncio.sleep(seconds)
        work()
