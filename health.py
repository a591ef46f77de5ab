"""Is the bot alive: what `/healthz` says to the host at deploy time, and a watchdog for all the time after.

Railway, like most hosts, asks only while it deploys; later nobody restarts a bot that hangs. So the process ends itself
when the gateway stays down, or the event loop stands still, for 5 minutes, and the host starts it anew: at most 288
times a day, which is well within Discord's 1,000 IDENTIFY.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

PATIENCE_SECONDS = 300.0
TICK_SECONDS = 1.0
LATE_TICK_SECONDS = 10.0


class Health:
    """What is known of the process' health. clock: monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._down_since: float | None = clock()
        self._ticked_at = clock()
        self._connections = 0

    @property
    def reconnects(self) -> int:
        """How many times the gateway was connected again."""
        return max(0, self._connections - 1)

    def gateway_up(self) -> None:
        self._connections += self._down_since is not None
        self._down_since = None

    def gateway_down(self) -> None:
        if self._down_since is None:
            self._down_since = self._clock()

    def tick(self) -> None:
        """The event loop turns."""
        self._ticked_at = self._clock()

    def problem(self) -> str | None:
        """Why the bot cannot serve at this moment, or None."""
        if self._clock() - self._ticked_at > LATE_TICK_SECONDS:
            return "the event loop stands still"
        if self._down_since is not None:
            return f"the gateway has not been connected for {self._clock() - self._down_since:.0f} s"
        return None

    @property
    def down_seconds(self) -> float:
        """For how long the gateway has not been connected; 0 while it is."""
        return 0.0 if self._down_since is None else self._clock() - self._down_since

    def gateway_is_lost(self) -> bool:
        """The gateway has been down for longer than reconnecting takes."""
        return self._down_since is not None and self._clock() - self._down_since > PATIENCE_SECONDS

    def loop_is_stuck(self) -> bool:
        return self._clock() - self._ticked_at > PATIENCE_SECONDS


async def watch_gateway(health: Health) -> None:
    """Keeps the ticks coming; returns when the gateway is lost."""
    while not health.gateway_is_lost():
        health.tick()
        await asyncio.sleep(TICK_SECONDS)


def watch_loop(health: Health, on_stuck: Callable[[], None], *, interval_seconds: float = 5.0) -> threading.Event:
    """Watches the event loop from a thread of its own, which a standing loop cannot stop. Set the event to end it."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(interval_seconds):
            if health.loop_is_stuck():
                on_stuck()
                return

    threading.Thread(target=watch, name="watch_loop", daemon=True).start()
    return ended
