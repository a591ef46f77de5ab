"""Whether new messages of a channel are taken: not before those that were missed there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


class Gate:
    """Opened and closed by whoever takes up what was missed; at first it is open.

    is_shutting_down: what is said from now on is for the next process.
    """

    def __init__(self) -> None:
        self.is_shutting_down = False
        self._opened = asyncio.Event()
        self._opened.set()
        self._channels: dict[int, asyncio.Event] = {}

    def is_closed(self, channel_id: int) -> bool:
        """Whether older messages of this channel are still to be taken up."""
        return not self._opened.is_set() or channel_id in self._channels

    async def wait(self, channel_id: int) -> None:
        """Waits while older messages of this channel are taken up."""
        await self._opened.wait()
        if channel := self._channels.get(channel_id):
            await channel.wait()

    def close(self) -> None:
        """For all channels."""
        self._opened.clear()

    def open(self, but: Iterable[int] = ()) -> None:
        """For all channels but these, which open_channel() opens."""
        self._channels = {channel_id: asyncio.Event() for channel_id in but} | self._channels
        self._opened.set()

    def open_channel(self, channel_id: int) -> None:
        if channel := self._channels.pop(channel_id, None):
            channel.set()
