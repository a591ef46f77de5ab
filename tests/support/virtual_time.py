"""An event loop whose time passes by itself: where all wait for a deadline, it is that moment already."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable

PATIENCE_SECONDS = 5.0


class _Skipping(selectors.SelectSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            # Only a thread or a socket can go on from here; a test in which neither does hangs.
            ready = super().select(PATIENCE_SECONDS)
            assert ready, "everything waits, and for nothing that will ever happen"
            return ready
        ready = super().select(0)
        if not ready:
            self.now += max(0.0, timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """For tests marked `virtual_time`: sleeps and timeouts of any length cost nothing. Not for real sockets."""

    def __init__(self) -> None:
        self._skipping = _Skipping()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.now


class ForwardedLoop(asyncio.SelectorEventLoop):
    """For real sockets: its time goes on by itself, and can be put forward."""

    def __init__(self) -> None:
        self._ahead = 0.0
        super().__init__()

    def time(self) -> float:
        return super().time() + self._ahead

    async def forward(self, seconds: float) -> None:
        """Lets so many seconds have passed; what was due by then has begun when this returns."""
        self._ahead += seconds
        await asyncio.sleep(0)  # in the round that this begins it is seen
        await asyncio.sleep(0)


async def until(condition: Callable[[], object], rounds: int = 2_000) -> None:
    """Lets everything else run, without letting time pass, until the condition holds; fails where it never does."""
    for _ in range(rounds):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come to pass")


async def settle(rounds: int = 50) -> None:
    """Lets everything run that can without time passing."""
    for _ in range(rounds):
        await asyncio.sleep(0)
