"""Waiting for the playground to change, without polling."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Changes:
    """Wakes everything that waits, at each change."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def notify(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def wait_for(self, predicate: Callable[[], T]) -> T:
        """The predicate's first true value. It is called now, and after each change."""
        while not (value := predicate()):
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future
        return value
