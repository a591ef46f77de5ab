"""The bot's start, shards, background work and shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import discord
import structlog

from activity import FaultKind, Observer
from background import Background, every
from clock import Clock
from commands import sync
from config import Settings
from decider import FollowupTier
from discord_io.discord_clock import DiscordClock
from discord_io.discord_wire import request_timeouts
from discord_io.sharded_client import ShardedClient
from doctor.at_start import look_around, report
from health import Health
from service import INTENTS
from shards import DIRECT, Shards
from web.shown import Shown
from wiring import Parts

if TYPE_CHECKING:
    from cluster.connection import Cluster

log = structlog.get_logger()

SWEEP_SECONDS = 15.0
REPORT_SECONDS = 3_600.0
DRAIN_SECONDS = 25.0
LEAVE_SECONDS = 0.2


class RunningBot(ShardedClient):
    """The bot without its event handlers: its parts, its start, the shards it takes and leaves, and its shutdown."""

    def __init__(
        self,
        settings: Settings,
        *,
        health: Health | None = None,
        observer: Observer | None = None,
        followup: FollowupTier | None = None,
        clock: Clock | None = None,
        is_playground: bool = False,
        shards: Shards | None = None,
        cluster: Cluster | None = None,
        **client_options: Any,
    ) -> None:
        ours = {
            "intents": INTENTS,
            "allowed_mentions": discord.AllowedMentions.none(),
            # Discord's rate limits last seconds. A longer one is an outage; without this discord.py waits for hours.
            "max_ratelimit_timeout": 60.0,
            "http_trace": (trace := request_timeouts()),
            # Missed messages are read once no further guild has arrived for this long; discord.py's default is 2 s.
            "guild_ready_timeout": 1.0,
        }
        if cluster:  # sends nothing while another process may have taken over
            trace.on_request_start.insert(0, cluster.once_sure)
        clock = clock or DiscordClock(trace)
        options = {**ours, **client_options}
        self._shards = shards = shards or Shards(options.get("shard_count"), options.get("shard_ids"))
        of_shards = {"shard_count": shards.count, "shard_ids": None if shards.are_all else shards.ids}
        super().__init__(health or Health(), **{**options, **of_shards})
        self._settings = settings
        self._now = clock
        self._is_playground = is_playground
        self._background = Background(self.failed)
        self._changes: list[asyncio.Task[None]] = []  # background tasks that change stored state
        self._unready: set[int] = set()  # shards that are connected and do not have all their guilds yet
        self._models = AsyncExitStack()
        self.parts = parts = Parts(
            settings,
            self,
            health=self.health,
            observer=observer,
            followup=followup,
            clock=clock,
            shards=shards,
            cluster=cluster,
        )
        self.tree, self.replays = parts.tree, parts.replays
        self.snapshots, self.privacy = parts.snapshots, parts.privacy
        self.lifecycle, self.catch_up = parts.lifecycle, parts.catch_up
        self.decisions, self.learning, self.decision_log = parts.decisions, parts.learning, parts.decision_log
        self.conversations, self.states, self.prompts = parts.conversations, parts.states, parts.prompts
        self.turns, self.bursts, self.proactive_offers = parts.turns, parts.bursts, parts.proactive_offers

    @property
    def shown(self) -> Shown:
        return self.parts.shown

    # Start, shards and shutdown

    async def setup_hook(self) -> None:
        self._shards.count = await self.ask_count()
        self.health.expects(self._shards.ids)
        await self.parts.lifecycle.take(self._shards.ids)
        for connection in self.parts.connections:
            await self._models.enter_async_context(connection)
        self.decision_log.start()
        for change in (
            self.prompts.keep(),
            every(SWEEP_SECONDS, self.parts.sweep),
            self.proactive_offers.keep(),
            self.lifecycle.expire(),
        ):
            self._changes.append(self._background.start(change))
        for work in (
            every(REPORT_SECONDS, self._report),
            self.lifecycle.beat(),
            self.parts.other_process.keep_looking(),
            self.keep_ready(),
            self._look_around(),
            *([self.replays.keep(self, self.catch_up.reach)] if self.replays else []),
            *([self.parts.notices.keep()] if self.parts.notices else []),
            *([self.parts.accounts.keep()] if self.parts.accounts else []),
            *([self.parts.requests.keep()] if self.parts.requests else []),
        ):
            self._background.start(work)
        self._sync(self._shards.ids)

    def _sync(self, shard_ids: Collection[int]) -> None:
        if DIRECT in shard_ids:  # so that only one of several processes registers the commands
            self._background.start(sync(self.tree))

    async def add_shard(self, shard_id: int) -> None:
        """Takes a shard that no process has, with its stored state. Returns once it has sent its IDENTIFY."""
        self._shards.add(shard_id)
        try:
            await self.lifecycle.take([shard_id])
            self._sync([shard_id])
            await self.connect_shard(shard_id)
        except Exception:
            await self._is_stored(shard_id)
            await self._forget_shard(shard_id)
            raise

    async def leave_shard(self, shard_id: int) -> bool:
        """Leaves a shard to another process, unless it is in use or cannot be stored now. Returns whether it did."""
        if not await self.snapshots.settled():  # while the store is away, no other process could take it
            return False
        # Messages that wait at the gate would still be handled if this process got the shard back.
        if not self.is_up(shard_id) or self._is_busy(shard_id) or self.parts.gate.holds_back(shard_id):
            return False
        self.parts.gate.leave(shard_id)
        while not await self._is_stored(shard_id):  # noqa: ASYNC110 - answers end, and stores come back
            await asyncio.sleep(LEAVE_SECONDS)
        await self._forget_shard(shard_id)
        return True

    async def _forget_shard(self, shard_id: int) -> None:
        """Drops everything of a shard that another process will have, once it is stored."""
        self.parts.gate.leave(shard_id)
        self.lifecycle.leave(shard_id)
        self.forget_guilds(shard_id)
        self.decisions.drop(lambda entry: self._shards.of(entry.guild_id) == shard_id)
        while not await self.snapshots.settled():  # noqa: ASYNC110 - as above
            await asyncio.sleep(LEAVE_SECONDS)

    async def may_identify(self, shard_id: int) -> None:
        cluster = self.parts.cluster
        await (cluster.may_identify(shard_id) if cluster else super().may_identify(shard_id))

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:  # noqa: ARG002
        cluster = self.parts.cluster
        if self.replays:
            await self.replays.end(shard_id or 0)
        await (cluster.identifies(shard_id or 0) if cluster else super().before_identify_hook(shard_id))

    async def _look_around(self) -> None:
        """Logs problems of the set-up once the bot is ready, since reading all the prices takes 0.1 s."""
        await self.wait_until_ready()
        await asyncio.to_thread(self.parts.agents.warn_unpriced, self.parts.limits.prices)
        report(await look_around(self._settings, self))

    async def shut_down(self, released: Callable[[int], Awaitable[None]] | None = None) -> None:
        """Finishes running answers, tells people whose answers are cut off, and closes.

        released: called with each shard as soon as nothing is being answered on it and its state is stored; another
        process may then take it, and finishes answers instead of cutting them off.
        """
        await self.bursts.end()
        self.parts.gate.is_shutting_down = True
        if released:
            self._background.start(self._leave(released))
        turns = self.turns.drain(DRAIN_SECONDS, leaves=released is not None)
        await asyncio.gather(turns, self.parts.private_answers.drain(DRAIN_SECONDS))
        await self.close()
        if released:
            for shard_id in self._shards.ids:
                await released(shard_id)
        self._report()
        log.info("stopped", ignored_messages=self.decisions.ignored_count)

    async def close(self) -> None:
        await self._background.end()  # before the HTTP session closes, which its requests need
        self.bursts.drop()
        try:
            await super().close()
            for shard_id in self._shards.ids:
                self.health.gateway_down(shard_id)
            await self._models.aclose()
        finally:
            if self.parts.accounts:
                await self.parts.accounts.close()
            await self.decision_log.close()
            self.parts.stored_counts.store()
            await self.snapshots.close()

    async def _leave(self, released: Callable[[int], Awaitable[None]]) -> None:
        """Releases all shards but the last, with which the state of the process itself is stored."""
        for change in self._changes:  # their channels will soon be another process'
            change.cancel()
        while True:
            for shard_id in [one for one in self._shards.ids if not self._is_busy(one)]:
                if await self._is_stored(shard_id) and len(self._shards.ids) > 1:
                    self._shards.drop(shard_id)
                    if await self.snapshots.settled():  # the process' own state too, now with another shard
                        await released(shard_id)  # otherwise its lease is released at the end, like the last shard's
            await asyncio.sleep(LEAVE_SECONDS)

    async def _is_stored(self, shard_id: int) -> bool:
        """Disconnects a shard. Returns whether all its state is stored and nothing on it is in use."""
        await self.disconnect_shard(shard_id)
        if self.parts.requests:
            await self.parts.requests.leave([shard_id])
        return await self.snapshots.settled() and not self._is_busy(shard_id)

    def _is_busy(self, shard_id: int) -> bool:
        in_use = {*self.turns.busy_guilds(), *self.bursts.busy_guilds()}
        return self.catch_up.of(shard_id).is_running or shard_id in map(self._shards.of, in_use)

    def failed(self, code: str) -> None:
        says = "An error of the bot's own was met, and it goes on: its log has the details."
        self.parts.activity.fault(FaultKind.INTERNAL, code, says)

    def _report(self) -> None:
        """Logs document 000's figures, and how many messages began no conversation since the last report."""
        log.info("metrics", **self.states.get_metrics(), not_started=self.parts.records.not_started())

    def take_up_missed(self, shard_id: int) -> None:
        self._unready.discard(shard_id)
        if shard_id not in self._shards.ids:  # it was left meanwhile
            return
        guild_ids = {guild.id for guild in self.guilds if guild.shard_id == shard_id}
        for guild_id in guild_ids:
            self.parts.places.rearranged(guild_id)
        self.parts.stored_counts.connected(shard_id, guild_ids)
        self._background.start(self.lifecycle.catch_up(shard_id, lambda guild_id: self.get_guild(guild_id) is not None))
