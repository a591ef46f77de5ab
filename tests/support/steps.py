"""How long the event loop is held up, by the processor's time: what else the machine does adds nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


@asynccontextmanager
async def longest_step() -> AsyncIterator[Callable[[], float]]:
    """Gives the most of the processor's seconds for which nothing else ran so far."""
    longest = 0.0

    async def go_on() -> None:
        nonlocal longest
        while True:
            began = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - began)

    task = asyncio.create_task(go_on())
    await asyncio.sleep(0)  # it has begun: else what runs before it first waits would not count
    yield lambda: longest
    task.cancel()
