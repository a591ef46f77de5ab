"""The moments at which the bot is killed. All events of the day are counted here, so that a moment can wait for one."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from random import Random

from playground.model import Event
from playground.server import Playground
from tests.support.process import Program

START_SECONDS = 30.0
PATIENCE_SECONDS = 4.0  # after it has connected: what a moment waits for may never come
# discord.py calls itself ready 2 s after it has connected. People do not wait for that.
READY_SHARE = 0.6
STARTING = "while it starts"


class Moments:
    """Waits for a random moment, for some more often than others, then for a random time of up to its own length."""

    def __init__(self, pg: Playground, random: Random) -> None:
        self._pg = pg
        self._random = random
        self._counts: Counter[str] = Counter()
        self._changed_at = time.monotonic()
        self._strike: Callable[[], None] | None = None
        self._ways: dict[str, tuple[int, Callable[[Program], Awaitable[object]]]] = {
            STARTING: (2, lambda _life: self._pause(1.3)),
            "while it connects": (2, lambda _life: self._pause(0.15)),
            "while it reads what it missed": (1, self._reading),
            "after somebody posted": (2, partial(self._after, "MESSAGE_CREATE of theirs", 1.5)),
            "after somebody clicked": (1, partial(self._after, "INTERACTION_CREATE of theirs", 0.1)),
            "after the model was asked": (2, partial(self._after, "model", 0.2)),
            "before it knows that it posted": (3, self._posting),
            "after it posted": (2, partial(self._after, "MESSAGE_CREATE of ours", 0.5)),
            "after it edited": (2, partial(self._after, "MESSAGE_UPDATE of ours", 0.5)),
            "after it decided": (1, partial(self._logged, "decided")),
            "after a turn": (1, partial(self._logged, "turn_ended")),
        }
        pg.world.listen(self._listen)

    async def wait(self, life: Program) -> str:
        """Returns the moment's name when it has come, or when it has not for long enough.

        TimeoutError where the bot does not even connect.
        """
        [name] = self._random.choices(list(self._ways), [weight for weight, _ in self._ways.values()])
        _, way = self._ways[name]
        if name != STARTING:
            await self.connected()
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await way(life)
        self._strike = None
        return name

    async def connected(self) -> None:
        await self._pg.wait_for(lambda: self._pg.connected, START_SECONDS)

    @property
    def quiet_seconds(self) -> float:
        """Seconds since the last event."""
        return time.monotonic() - self._changed_at

    def heard(self, what: str) -> None:
        """Counts an event, in the playground or outside it."""
        self._counts[what] += 1
        self._changed_at = time.monotonic()
        self._pg.notify()

    def _listen(self, event: Event) -> None:
        by_bot = event.message is not None and event.message.author.bot
        if by_bot and event.name == "MESSAGE_CREATE" and self._strike:
            self._strike()
            self._strike = None
        self.heard(f"{event.name} of {'ours' if by_bot else 'theirs'}")

    async def _pause(self, most: float) -> None:
        await asyncio.sleep(self._random.uniform(0, most))

    async def _reading(self, _life: Program) -> None:
        await self._pg.wait_for(
            lambda: any(sent.method == "GET" and sent.path.endswith("/messages") for sent in self._pg.requests)
        )
        await self._pause(0.1)

    async def _after(self, what: str, most: float, life: Program) -> None:
        """Waits for the next event of this kind."""
        if self._random.random() < READY_SHARE:
            await life.logged("ready")
        before = self._counts[what]
        await self._pg.wait_for(lambda: self._counts[what] > before)
        await self._pause(most)

    async def _posting(self, life: Program) -> None:
        """Kills the bot when Discord has its message and has not yet told it so."""
        self._strike = life.process.kill
        await life.process.wait()

    async def _logged(self, event: str, life: Program) -> None:
        await life.logged(event)
        await self._pause(0.02)
