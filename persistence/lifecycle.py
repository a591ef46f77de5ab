"""Restore, heartbeat and retention of stored state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from clock import Clock
from health import Health
from persistence.catchup_by_shard import CatchUpByShard
from persistence.holders import ConversationHolder
from persistence.people import People
from persistence.privacy import Privacy
from persistence.snapshots import Snapshots
from shards import Shards
from storage.store import StoreError
from turns.gate import Gate

if TYPE_CHECKING:
    from persistence.cluster_privacy import ClusterPrivacy

log = structlog.get_logger()

ALIVE, PLACES = "alive", "places"
BEAT_SECONDS = 5.0
EXPIRE_SECONDS = 86_400.0
RETRY_SECONDS = 5.0  # between attempts while the store cannot be read


class Lifecycle:
    """Restore, heartbeat and retention. requests: carries out privacy requests where several processes share the
    shards; None: there is one process. retention: how long messages are kept.
    """

    def __init__(
        self,
        *,
        snapshots: Snapshots,
        conversations: ConversationHolder,
        catch_up: CatchUpByShard,
        people: People,
        requests: ClusterPrivacy | None,
        privacy: Privacy,
        health: Health,
        gate: Gate,
        shards: Shards,
        retention: timedelta,
        clock: Clock,
    ) -> None:
        self._snapshots = snapshots
        self._conversations = conversations
        self._catch_up = catch_up
        self._people = people
        self._requests = requests
        self._privacy = privacy
        self._health = health
        self._gate = gate
        self._shards = shards
        self._retention = retention
        self._clock = clock
        self._guilds: dict[int, list[int]] = {}  # transcripts' guilds and their channels, until their shard caught up

    async def take(self, shard_ids: Collection[int]) -> None:
        """Restores what an earlier process stored of these shards. Raises StoreError where that cannot be read."""
        for shard_id in shard_ids:
            self._gate.take(shard_id)
            self._catch_up.of(shard_id).hold_back()
        await (self._requests or self._people).load()
        kept = await self._snapshots.load(None if self._shards.are_all else shard_ids)
        if not self._requests:  # which carries out again what was not done
            await self._privacy.finish()
        for channel_id, guild_id in kept.transcripts.items():
            self._guilds.setdefault(guild_id, []).append(channel_id)
        self._snapshots.restore_process(kept)
        if not kept.has(ALIVE):  # the very first start: a kill before the first beat must not lose questions
            self._snapshots.touch(ALIVE)
        channels = list(kept.channels.items())[::-1]  # the one used last comes last
        channels.sort(key=lambda channel: PLACES not in channel[1])  # settings of places come first
        for channel_id, snapshots_by_kind in channels:
            guild_id = channel_id if PLACES in snapshots_by_kind else self._snapshots.guild_of(channel_id)
            if self._shards.of(guild_id) not in shard_ids:
                continue
            if PLACES in snapshots_by_kind:
                self._guilds.setdefault(channel_id, [])
            self._snapshots.restore(channel_id, snapshots_by_kind)
            conversation = self._conversations.restored.pop(channel_id, None)
            await self._catch_up.restore_conversation(channel_id, guild_id, conversation)
        if self._requests:
            await self._requests.take(shard_ids)

    def leave(self, shard_id: int) -> None:
        """Drops a shard from memory, as another process serves it from now on."""
        self._shards.drop(shard_id)
        self._snapshots.leave(shard_id)
        self._catch_up.left(shard_id)
        self._guilds = {one: kept for one, kept in self._guilds.items() if self._shards.of(one) != shard_id}

    async def catch_up(self, shard_id: int, is_in: Callable[[int], bool]) -> None:
        """Handles what was missed on a shard. is_in: whether the bot is in a guild; others are forgotten."""
        self._snapshots.touch(ALIVE)  # stores since when it catches up, in case of a kill meanwhile
        is_failing = False
        while True:
            try:
                await self._catch_up.of(shard_id).run()
                break
            except StoreError as error:
                if not is_failing:
                    log.warning("catch_up_waits", shard=shard_id, error=str(error), meaning="it is tried again")
                is_failing = True
                await asyncio.sleep(RETRY_SECONDS)
        self._snapshots.touch(ALIVE)
        guilds = {one: self._guilds.pop(one) for one in [*self._guilds] if self._shards.of(one) == shard_id}
        for guild_id in guilds.keys() - {0}:  # 0: unknown, so the bot may still be in it
            if is_in(guild_id):  # asked only now, as it may have been invited again meanwhile
                continue
            left = [c for c in guilds[guild_id] if self._snapshots.guild_of(c) == guild_id]
            if left or not guilds[guild_id]:
                log.info("guild_left", guild=guild_id)
                await self._privacy.forget_guild(guild_id, left)

    async def beat(self) -> None:
        """Stores every few seconds that all messages up to now were received. Until cancelled."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self._snapshots.sync()
            misses = self._health.is_late or self._gate.is_shutting_down or self._gate.is_held
            if not misses and self._catch_up.beat(self._health.is_up):
                self._snapshots.touch(ALIVE)

    async def expire(self) -> None:
        """Drops messages older than the retention, now and every day. Until cancelled."""
        while True:
            try:
                await self._privacy.expire(self._clock() - self._retention)
            except OSError as error:
                log.warning("retention_failed", error=str(error))
            await asyncio.sleep(EXPIRE_SECONDS)
