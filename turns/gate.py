"""Whether new messages of a channel are taken: not before those that were missed there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from shards import Shards


class Gate:
    """Opened and closed, shard by shard, by whoever takes up what was missed; at first it is open.

    shards: which guild is on which. is_shutting_down: what is said from now on is for the next process.
    """

    def __init__(self, shards: Shards | None = None) -> None:
        self.is_shutting_down = False
        self._shards = shards or Shards()
        self._closed: dict[int, asyncio.Event] = {}  # by shard
        self._channels: dict[int, asyncio.Event] = {}
        self._released = asyncio.Event()
        self._released.set()

    def is_closed(self, channel_id: int, guild_id: int) -> bool:
        """Whether older messages of this channel are still to be taken up, or all is held back. guild_id: 0: direct."""
        is_missing = bool(self._closed) and self._shards.of(guild_id) in self._closed
        return is_missing or channel_id in self._channels or not self._released.is_set()

    async def wait(self, channel_id: int, guild_id: int) -> None:
        """Waits while older messages of this channel are taken up, or all is held back."""
        if shard := self._closed.get(self._shards.of(guild_id)):
            await shard.wait()
        if channel := self._channels.get(channel_id):
            await channel.wait()
        await self._released.wait()

    def close(self, shard_id: int) -> None:
        """For all channels of a shard."""
        self._closed.setdefault(shard_id, asyncio.Event())

    def open(self, shard_id: int, but: Iterable[int] = ()) -> None:
        """For all channels of a shard but these, which open_channel() opens."""
        self._channels = {channel_id: asyncio.Event() for channel_id in but} | self._channels
        if shard := self._closed.pop(shard_id, None):
            shard.set()

    def open_channel(self, channel_id: int) -> None:
        if channel := self._channels.pop(channel_id, None):
            channel.set()

    def hold(self) -> None:
        """For all channels, whatever else is open or closed, until release(): it is not known whose they are."""
        self._released.clear()

    def release(self) -> None:
        self._released.set()
