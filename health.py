"""Health: what `/healthz` answers, and a watchdog that ends a process which hangs.

Railway, like most hosts, checks the health only while it deploys; later nobody restarts a bot that hangs. So the
process ends itself when a shard stays down, or the event loop is blocked, for 5 minutes, and the host restarts it: at
most 288 times a day, well within Discord's limit of 1,000 IDENTIFYs.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable

PATIENCE_SECONDS = 300.0
TICK_SECONDS = 1.0
LATE_TICK_SECONDS = 10.0
MAX_NAMED = 10  # shards


class Health:
    """The health of the process. clock: monotonic seconds.

    Each shard has its own connection. The process is healthy while all its shards are connected, also while it waits
    for shards and has none.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_at: float | None = clock()  # None once its shards are known
        self._down_since: dict[int, float] = {}
        self._connected: set[int] = set()  # the shards that are or were connected
        self._ticked_at = clock()
        self.reconnects = 0  # how many times a shard was connected again

    def expects(self, shard_ids: Iterable[int]) -> None:
        """Notes the shards that the process has from now on."""
        began_at, self._began_at = self._began_at, None
        for shard_id in shard_ids:
            if shard_id not in self._connected:
                self._down_since.setdefault(shard_id, self._clock() if began_at is None else began_at)

    def waits(self, shard_ids: Iterable[int]) -> None:
        """Restarts the time of shards that are still to connect: Discord lets shards connect only one by one."""
        self._down_since |= {one: self._clock() for one in shard_ids if one in self._down_since}

    def leaves(self, shard_id: int) -> None:
        """Notes that the process does not have this shard any more."""
        self._down_since.pop(shard_id, None)
        self._connected.discard(shard_id)

    def gateway_up(self, shard_id: int = 0) -> None:
        self._began_at = None
        was_down = self._down_since.pop(shard_id, None) is not None
        self.reconnects += was_down and shard_id in self._connected
        self._connected.add(shard_id)

    def gateway_down(self, shard_id: int = 0) -> None:
        self._down_since.setdefault(shard_id, self._clock())

    def tick(self) -> None:
        """Notes that the event loop runs."""
        self._ticked_at = self._clock()

    def is_up(self, shard_id: int = 0) -> bool:
        return self._began_at is None and shard_id in self._connected and shard_id not in self._down_since

    def is_lost(self, shard_id: int) -> bool:
        """Whether a shard was connected, and is not any more."""
        return shard_id in self._connected and shard_id in self._down_since

    @property
    def is_late(self) -> bool:
        """Whether the event loop is blocked at this moment."""
        return self._clock() - self._ticked_at > LATE_TICK_SECONDS

    def problem(self) -> str | None:
        """Why the bot cannot answer at this moment; None: it can."""
        if self.is_late:
            return "the event loop stands still"
        if self._began_at is None and not self._down_since:
            return None
        which = "the gateway has"
        if len(self._connected | self._down_since.keys()) > 1:
            down = sorted(self._down_since)
            more = f" and {len(down) - MAX_NAMED} more" if len(down) > MAX_NAMED else ""
            which = (
                f"shard {down[0]} has"
                if len(down) == 1
                else f"shards {', '.join(map(str, down[:MAX_NAMED]))}{more} have"
            )
        return f"{which} not been connected for {self.down_seconds:.0f} s"

    @property
    def down_seconds(self) -> float:
        """How long a shard has been disconnected; 0 while all are connected."""
        since = [*self._down_since.values()] if self._began_at is None else [self._began_at]
        return self._clock() - min(since) if since else 0.0

    def gateway_is_lost(self) -> bool:
        """Whether a shard has been down for longer than reconnecting takes."""
        return self.down_seconds > PATIENCE_SECONDS

    def loop_is_stuck(self) -> bool:
        return self._clock() - self._ticked_at > PATIENCE_SECONDS


async def watch_gateway(health: Health) -> None:
    """Ticks every second; returns when the gateway is lost."""
    while not health.gateway_is_lost():
        health.tick()
        await asyncio.sleep(TICK_SECONDS)


def watch_loop(health: Health, on_stuck: Callable[[], None], *, interval_seconds: float = 5.0) -> threading.Event:
    """Watches the event loop from a thread, which a blocked loop cannot stop. Set the returned event to end it."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(interval_seconds):
            if health.loop_is_stuck():
                on_stuck()
                return

    threading.Thread(target=watch, name="watch_loop", daemon=True).start()
    return ended
