"""Restore, heartbeat and retention of stored state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from discord_io.backlog import id_at
from health import Health
from persistence.catchup import CatchUp
from persistence.holders import ConversationHolder
from persistence.people import People
from persistence.privacy import Privacy
from persistence.snapshots import Snapshots
from turns.gate import Gate

log = structlog.get_logger()

ALIVE, PLACES = "alive", "places"
BEAT_SECONDS = 5.0
EXPIRE_SECONDS = 86_400.0


class Lifecycle:
    """Restore, heartbeat and retention. retention: how long what was said is kept."""

    def __init__(
        self,
        *,
        snapshots: Snapshots,
        conversations: ConversationHolder,
        catch_up: CatchUp,
        people: People,
        privacy: Privacy,
        health: Health,
        gate: Gate,
        retention: timedelta,
        clock: Callable[[], datetime],
    ) -> None:
        self._snapshots = snapshots
        self._conversations = conversations
        self._catch_up = catch_up
        self._people = people
        self._privacy = privacy
        self._health = health
        self._gate = gate
        self._retention = retention
        self._clock = clock
        self._guilds: dict[int, list[int]] = {}  # those of the transcripts at the start, with their channels

    async def restore(self) -> None:
        """Brings back what an earlier process left. Raises StoreError where it cannot be had."""
        self._catch_up.expect()
        kept = await self._snapshots.load()
        await self._people.load()
        for channel_id, guild_id in kept.transcripts.items():
            self._guilds.setdefault(guild_id, []).append(channel_id)
        self._snapshots.restore(0, kept.process)
        if ALIVE not in kept.process:  # the very first start: whoever is asked before the first beat is not forgotten
            self._snapshots.touch_process(ALIVE)
        channels = list(kept.channels.items())[::-1]  # the one used last comes last
        channels.sort(key=lambda channel: PLACES not in channel[1])  # what is set for places comes first
        for channel_id, snapshots_by_kind in channels:
            if PLACES in snapshots_by_kind:
                self._guilds.setdefault(channel_id, [])
            self._snapshots.restore(channel_id, snapshots_by_kind)
            await self._catch_up.found(channel_id, self._conversations.restored.pop(channel_id, None))

    async def catch_up(self, guild_ids: set[int]) -> None:
        """Takes up what was missed. guild_ids: the servers where we are; of others nothing stays."""
        self._snapshots.touch_process(ALIVE)  # since when it catches up, should it not come to the end
        await self._catch_up.run()
        self._snapshots.touch_process(ALIVE)
        guilds, self._guilds = self._guilds, {}
        for guild_id in guilds.keys() - guild_ids - {0}:  # where it is not known we need not have left
            left = [c for c in guilds[guild_id] if self._snapshots.guild_of(c) == guild_id]
            if left or not guilds[guild_id]:
                log.info("guild_left", guild=guild_id)
                await self._privacy.forget_guild(guild_id, left, id_at(self._clock()))

    async def beat(self) -> None:
        """Notes every few seconds that all that was said until now has been heard. Until cancelled."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self._snapshots.sync()
            hears_all = self._health.problem() is None and not self._gate.is_shutting_down
            if hears_all and self._catch_up.beat():
                self._snapshots.touch_process(ALIVE)

    async def expire(self) -> None:
        """Drops what was said too long ago, now and every day. Until cancelled."""
        while True:
            try:
                await self._privacy.expire(self._clock() - self._retention)
            except OSError as error:
                log.warning("retention_failed", error=str(error))
            await asyncio.sleep(EXPIRE_SECONDS)
