"""Whether new messages of a channel are taken: not before those that were missed there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from shards import Shards


class Leases(Protocol):
    """As of cluster.leases."""

    @property
    def are_sure(self) -> bool: ...

    async def sure(self) -> None: ...


class Gate:
    """Opened and closed, shard by shard, by whoever takes up what was missed; at first it is open.

    shards: which guild is on which. leases: theirs, where other processes have some. is_shutting_down: what is said
    from now on is for the next process; on a shard that is left, for the one that takes it.
    """

    def __init__(self, shards: Shards | None = None, leases: Leases | None = None) -> None:
        self.is_shutting_down = False
        self._shards = shards or Shards()
        self._left: set[int] = set()
        self._closed: dict[int, asyncio.Event] = {}  # by shard
        self._channels: dict[int, asyncio.Event] = {}
        self._leases = leases

    @property
    def is_held(self) -> bool:
        """Whether all channels are held back, as another process may have them by now."""
        return self._leases is not None and not self._leases.are_sure

    def is_closed(self, channel_id: int, guild_id: int) -> bool:
        """Whether older messages of this channel are still to be taken up, or all is held back. guild_id: 0: direct."""
        is_missing = bool(self._closed) and self._shards.of(guild_id) in self._closed
        return is_missing or channel_id in self._channels or self.is_held

    def holds_back(self, shard_id: int) -> bool:
        """Whether what is said on a shard waits until it is known what was missed there."""
        return shard_id in self._closed

    async def wait(self, channel_id: int, guild_id: int) -> None:
        """Waits while older messages of this channel are taken up, or all is held back."""
        while closed := self._closed.get(self._shards.of(guild_id)) or self._channels.get(channel_id):
            await closed.wait()
        if self._leases:
            await self._leases.sure()

    def leave(self, shard_id: int) -> None:
        self._left.add(shard_id)

    def take(self, shard_id: int) -> None:
        """It is this process' again, or for the first time."""
        self._left.discard(shard_id)

    def is_left(self, shard_id: int) -> bool:
        """Whether what is said on a shard from now on is for another process."""
        return self.is_shutting_down or shard_id in self._left

    def is_ending(self, guild_id: int) -> bool:
        """The same of a guild. 0: direct messages."""
        return self.is_left(self._shards.of(guild_id))

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
