"""The gate: holds back new messages of a channel until its missed ones have been handled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol
from weakref import WeakValueDictionary

from health import Health
from shards import Shards


class Leases(Protocol):
    """This process' leases of shards, as in cluster.leases."""

    @property
    def are_sure(self) -> bool: ...

    async def sure(self) -> None: ...


class Gate:
    """Closed and opened for each shard by the catch-up of missed messages; open at first.

    shards: the shard of each guild. leases: of this process' shards; None: it is the only process. health: of the
    connections. is_shutting_down: new messages are left to the next process, as on a single shard that
    is left they are to the one that takes it.
    """

    def __init__(
        self,
        shards: Shards | None = None,
        leases: Leases | None = None,
        health: Health | None = None,
    ) -> None:
        self._health = health
        self.is_shutting_down = False
        self._shards = shards or Shards()
        self._left: set[int] = set()
        self._closed: dict[int, asyncio.Event] = {}  # by shard
        self._channels: dict[int, asyncio.Event] = {}
        self._in_order: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()  # of channels with waiting ones
        self._leases = leases

    @property
    def is_held(self) -> bool:
        """Whether all channels are held back, as another process may have taken their shards."""
        return self._leases is not None and not self._leases.are_sure

    def is_closed(self, channel_id: int, guild_id: int) -> bool:
        """Whether missed messages of this channel are still to be handled, or all is held back. guild_id: 0: direct."""
        is_missing = bool(self._closed) and self._shards.of(guild_id) in self._closed
        return is_missing or channel_id in self._channels or self.is_held

    def is_queued(self, channel_id: int, guild_id: int) -> bool:
        """Whether a new message of this channel must wait(): behind the missed ones, or behind others that wait."""
        # Asked for each message of every channel; nearly always nobody waits, and nothing is closed.
        if not (self._in_order or self._closed or self._channels or self._leases):
            return False
        return channel_id in self._in_order or self.is_closed(channel_id, guild_id)

    def holds_back(self, shard_id: int) -> bool:
        """Whether new messages on a shard wait for the missed ones."""
        return shard_id in self._closed

    async def wait(self, channel_id: int, guild_id: int) -> None:
        """Waits while missed messages of this channel are handled, or all is held back.

        Those who wait go on one after the other, in the order in which they came.
        """
        async with self._in_order.setdefault(channel_id, asyncio.Lock()):
            while closed := self._closed.get(self._shards.of(guild_id)) or self._channels.get(channel_id):
                await closed.wait()
            if self._leases:
                await self._leases.sure()

    def leave(self, shard_id: int) -> None:
        self._left.add(shard_id)

    def take(self, shard_id: int) -> None:
        """Notes that the shard is this process', again or for the first time."""
        self._left.discard(shard_id)

    def is_left(self, shard_id: int) -> bool:
        """Whether new messages on a shard are left to another process."""
        return self.is_shutting_down or shard_id in self._left

    def is_ending(self, guild_id: int) -> bool:
        """Whether new messages in a guild are left to another process. guild_id: 0 for direct messages."""
        return self.is_shutting_down or (bool(self._left) and self._shards.of(guild_id) in self._left)

    def is_behind(self, channel_id: int, guild_id: int) -> bool:
        """Whether messages of this channel are still to be received or handled, by this process or another."""
        is_lost = self._health is not None and self._health.is_lost(self._shards.of(guild_id))
        return is_lost or self.is_closed(channel_id, guild_id) or self.is_ending(guild_id)

    def close(self, shard_id: int) -> None:
        """Closes all channels of a shard."""
        self._closed.setdefault(shard_id, asyncio.Event())

    def open(self, shard_id: int, but: Iterable[int] = ()) -> None:
        """Opens all channels of a shard but these, which open_channel() opens."""
        self._channels = {channel_id: asyncio.Event() for channel_id in but} | self._channels
        if shard := self._closed.pop(shard_id, None):
            shard.set()

    def open_channel(self, channel_id: int) -> None:
        if channel := self._channels.pop(channel_id, None):
            channel.set()
