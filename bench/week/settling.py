"""Knows when the bot is done with what happened, so that the clock may go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.support.scene import Scene

PATIENCE_SECONDS = 60.0
LOOK_SECONDS = 0.005  # until it is seen that a message waits for what else its author says
RESTING = ("RequestHandler.start", "Event.wait")
"""Tasks that do not tell of work: of a connection that stays, and within another task that waits."""


class Settling:
    """To be made once the bot is ready: the tasks that there are then never end.

    Nor is it busy with whom it hears out.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._always = asyncio.all_tasks()

    async def wait(self) -> None:
        """The bot has heard of all that happened, and has nothing left to do."""
        if self._has_heard() and not self._busy():
            return
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (busy := self._busy()) or not self._has_heard():
                if busy:
                    await asyncio.wait(busy, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                else:
                    await asyncio.sleep(0)  # what is on its way comes with the next round of the event loop

    def _has_heard(self) -> bool:
        socket = self._scene.bot._get_websocket  # noqa: SLF001 - nothing else knows
        return all(one.sequence == socket(shard_id=one.shard[0]).sequence for one in self._scene.pg.sessions)

    def _busy(self) -> Sequence[asyncio.Task[object]]:
        new = asyncio.all_tasks() - self._always
        busy = [task for task in new if getattr(task.get_coro(), "__qualname__", "") not in RESTING]
        return busy if len(busy) > len(self._scene.bot.bursts) else []
