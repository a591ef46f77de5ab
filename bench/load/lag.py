"""How late an event loop is, and how late one is that does nothing: the machine's own share in that.

As a program (`python -m bench.load.lag`) it is such a loop: it ticks until its stdin ends, and prints what it saw.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import thread_time

import orjson

TICK_SECONDS = 0.01


@dataclass(slots=True)
class Lags:
    """Seconds, sorted once it has ended. late: in each tick; used: the CPU of this thread in it; machine: how late the
    loop was that does nothing. A stall counts for every tick that fell into it."""

    late: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    machine: list[float] = field(default_factory=list)

    async def watch(self) -> None:
        """Notes them until it is cancelled."""
        now = asyncio.get_running_loop().time
        while True:
            due, before = now() + TICK_SECONDS, thread_time()
            await asyncio.sleep(TICK_SECONDS)
            self.late += _ticks(now() - due)
            self.used += _ticks(thread_time() - before)


def _ticks(stall: float) -> list[float]:
    return [stall - passed * TICK_SECONDS for passed in range(max(0, int(stall / TICK_SECONDS)) + 1)]


def p99(values: Sequence[float]) -> float:
    """Of sorted values that which one in a hundred exceeds; 0 where there are none."""
    return values[len(values) * 99 // 100] if values else 0.0


@asynccontextmanager
async def watched() -> AsyncIterator[Lags]:
    """The lags of this process' loop, and of a bare one beside it, while the block runs."""
    lags = Lags()
    bare = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.load.lag", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    watching = asyncio.create_task(lags.watch())
    try:
        yield lags
    finally:
        watching.cancel()
        told, _ = await bare.communicate(b"")
        lags.late.sort()
        lags.used.sort()
        lags.machine = sorted(orjson.loads(told))


async def main() -> None:
    lags = Lags()
    watching = asyncio.create_task(lags.watch())
    await asyncio.to_thread(sys.stdin.read)
    watching.cancel()
    print(orjson.dumps(lags.late).decode())


if __name__ == "__main__":
    asyncio.run(main())
