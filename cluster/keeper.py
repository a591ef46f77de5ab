"""Holds this process' shards: takes free ones one at a time, renews their leases, and releases them."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager

import structlog
from redis import RedisError
from redis.exceptions import OutOfMemoryError

from cluster.connection import Cluster
from cluster.leases import LEASE_SECONDS, RENEW_SECONDS, Seen
from shards import IDENTIFY_SECONDS, Sharded, Shards

log = structlog.get_logger()

# A process that has its share takes a further shard if that has been free for so long, plus the time that others may
# wait for their turn to IDENTIFY.
SPARE_SECONDS = 10.0
PATIENCE_SECONDS = 60.0  # a redeploy ends the process before within that
RETRY_SECONDS = 1.0
FAREWELL_SECONDS = 2.0  # for telling others what they would find out themselves once leases expire
# A process that has two shards more than another gives one away, but only if for so long no process has come or gone
# and no shard has changed hands: so not in the middle of a deployment or a restart.
CALM_SECONDS = 60.0
SETTLING = f"Nobody takes a shard for {LEASE_SECONDS:.0f} s after Redis has started, or has lost what it had."
OTHERS_HAVE = "{} shards, and others have them: it takes some when a process ends, or gives one away."
GIVING = "shard_given"  # the claim that lets only one process give a shard away at a time


class HeldError(Exception):
    """Other processes have all shards that this one should have. Its text is one sentence for the owner."""


class Keeper:
    """shards: this process' own. count, wanted: SHARD_COUNT and SHARD_IDS; without ids it takes its share of all.

    end: called if another process has one of its shards. clock: monotonic seconds.
    """

    def __init__(
        self,
        cluster: Cluster,
        count: int | None,
        wanted: Collection[int],
        *,
        end: Callable[[], None] = lambda: os._exit(1),  # at once, as nothing more may be sent to Discord
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cluster = cluster
        self.shards = Shards(count, ())
        self._leases = cluster.leases
        self._count = count
        self._wanted = wanted
        self._end = end
        self._clock = clock
        self._free_since: dict[int, float] = {}
        self._members: Mapping[str, int] = {}
        self._calm_since = 0.0
        self._is_leaving = False
        self._is_refused = False  # others have shards in a way that forbids it to take any
        self._unreached_since: float | None = None
        self._told = self._why_untaken = ""
        self._taking: asyncio.Task[None] | None = None

    def expects(self, recommended: int, max_concurrency: int, bot_id: int) -> None:
        """Sets what Discord says: the recommended number of shards, how many may IDENTIFY at once, and the bot's id."""
        self._leases.bot_id = bot_id
        self.cluster.max_concurrency = max_concurrency
        if not self._leases.names:
            self.shards.count = self._count or recommended

    @asynccontextmanager
    async def renewing(self) -> AsyncIterator[None]:
        """Renews leases meanwhile, and releases those that are left at the end."""
        renewal = asyncio.create_task(self._renew())
        renewal.add_done_callback(self._renewal_ended)
        try:
            yield
        finally:
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)
            await self.give_back()
            await self.cluster.close()

    async def first(self) -> None:
        """Waits until this process has a shard. Raises HeldError if it is not going to get one."""
        for shard_id in self._leases.ids or [await self._next(patience=PATIENCE_SECONDS)]:
            self.shards.add(shard_id)

    @asynccontextmanager
    async def taking(self, bot: Sharded) -> AsyncIterator[None]:
        """Meanwhile takes more shards for the bot, one by one, once it has connected its first."""
        self._taking = asyncio.create_task(self._take_more(bot))
        try:
            yield
        finally:
            self._taking.cancel()
            await asyncio.gather(self._taking, return_exceptions=True)

    async def leave(self) -> None:
        """Takes no more shards, as this process ends, and leaves its share to others."""
        self._is_leaving = True
        if self._taking:  # a connection that it may have begun is closed before any lease is released
            self._taking.cancel()
            await asyncio.gather(self._taking, return_exceptions=True)
        async with self._briefly():
            await self._leases.leave()

    async def release(self, shard_id: int) -> None:
        """Releases a shard that is not in use here any more, so that another process may take it."""
        async with self._briefly():
            await self._leases.release([shard_id])
            log.info("shard_released", shard=shard_id)

    async def give_back(self) -> None:
        """Releases all shards that are left."""
        await self.leave()
        for shard_id in self._leases.ids:
            await self.release(shard_id)

    @asynccontextmanager
    async def _briefly(self) -> AsyncIterator[None]:
        """For optional requests to Redis: at a stop, a Redis that hangs is not waited for, nor asked again."""
        try:
            async with asyncio.timeout(FAREWELL_SECONDS if self._unreached_since is None else 0):
                yield
        except (RedisError, TimeoutError) as error:
            self._not_reached(error)

    async def _take_more(self, bot: Sharded) -> None:
        while not any(map(bot.is_up, self.shards.ids)):  # noqa: ASYNC110 - before that no shard can be added
            await asyncio.sleep(RETRY_SECONDS)
        while True:
            shard_id = await self._next(bot=bot)
            try:
                await bot.add_shard(shard_id)
            except Exception:
                log.exception("shard_not_added", shard=shard_id, meaning="another process may take it")
                await self.release(shard_id)
                await asyncio.sleep(SPARE_SECONDS)

    async def _renew(self) -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(RENEW_SECONDS if await self._look() else RETRY_SECONDS)

    def _renewal_ended(self, renewal: asyncio.Task[None]) -> None:
        """Ends the process if an error of the bot's own ended the renewal: it would answer nobody any more."""
        if not renewal.cancelled() and (error := renewal.exception()):
            log.critical("renewal_broken", exc_info=error, meaning="leases run out: this process ends")
            self._end()

    async def _give(self, bot: Sharded, seen: Seen) -> None:
        """Gives a shard that is not in use to others, if this process has too many."""
        has, fewest = len(self._leases.names), min(seen.members.values(), default=0)
        is_calm = not seen.free and self._clock() - self._calm_since >= CALM_SECONDS
        if self._wanted or not is_calm or has - fewest < 2 or has <= self._all() // len(seen.members):
            return
        if not await self.cluster.claim(GIVING, math.ceil(CALM_SECONDS)):
            return
        for shard_id in self.shards.ids[:0:-1]:  # not the first: the process' own state is stored under its id
            try:
                is_left = await bot.leave_shard(shard_id)
            except Exception:
                # Its state in memory may be incomplete: the next process restores it from the store.
                log.exception("shard_not_left", shard=shard_id, meaning="this process ends, and others take its shards")
                self._end()
                return
            if is_left:
                log.info("shard_given", shard=shard_id, meaning="another process has fewer")
                await self.release(shard_id)
                return
        await self.cluster.give_up(GIVING)

    async def _next(self, patience: float | None = None, bot: Sharded | None = None) -> int:
        """Waits for a shard for this process, and takes it. Raises HeldError after `patience` seconds if others have
        all that it should have. bot: the bot whose surplus shards are given to others meanwhile."""
        deadline = None if patience is None else self._clock() + patience
        while True:
            seen = await self._look()
            if seen and not self._is_leaving:
                for shard_id in self._choice(seen):
                    if await self._takes(shard_id):
                        return shard_id
                why, is_final = self._refusal(seen)
                if is_final and deadline is not None and self._clock() > deadline:
                    raise HeldError(why)
                stands_by = ""
                if not (why or self._leases.names):
                    stands_by = OTHERS_HAVE.format(self._all()) if seen.is_settled else SETTLING
                if why and why != self._told:
                    log.warning("waiting_for_other_process", why=why)
                elif stands_by and stands_by != self._told:
                    log.info("standing_by", why=stands_by)
                self._told = why or stands_by
                if bot:
                    await self._give(bot, seen)
            await asyncio.sleep(RENEW_SECONDS)

    async def _takes(self, shard_id: int) -> bool:
        try:
            if await self._leases.take(shard_id, self._all()):
                log.info("shard_taken", shard=shard_id, count=self._all())
                self._why_untaken = ""
                return True
        except RedisError as error:
            says = str(error)
            if isinstance(error, OutOfMemoryError):
                says = "REDIS_URL has no memory left: raise its maxmemory, or delete what is not the bot's."
            if says != self._why_untaken:
                log.warning("shard_not_taken", shard=shard_id, why=says)
            self._why_untaken = says
        return False

    async def _look(self) -> Seen | None:
        """Renews the leases, and returns what Redis said; None: it does not answer."""
        count = self._all()
        try:
            is_member = not (self._is_leaving or self._is_refused or self._wanted)
            seen = await self._leases.renew(count, is_member=is_member)
        except RedisError as error:
            self._not_reached(error)
            return None
        if self._unreached_since is not None:
            log.info("leases_renewed", after_s=round(self._clock() - self._unreached_since, 1))
            self._unreached_since = None
        if seen.lost:
            log.critical("shard_lost", shards=seen.lost, meaning="another process has them: this one ends")
            self._end()
        if self._count is None and seen.count and not seen.is_anothers and not self._leases.names:
            self.shards.count = seen.count  # the number that all others use
        if self._all() != count:
            return await self._look()  # else it might take shards that do not exist
        now, self._is_refused = self._clock(), bool(self._refusal(seen)[0])
        if self._free_since.keys() - seen.free - set(self._leases.ids):
            self._free_since = {}  # others are still taking theirs, one IDENTIFY after the other
        if seen.members != self._members or not seen.is_settled:
            self._members, self._calm_since = seen.members, now
        free = seen.free if seen.is_settled else ()  # until it is settled nobody can take any
        self._free_since = {one: self._free_since.get(one, now) for one in free}
        return seen

    def _not_reached(self, error: Exception) -> None:
        if self._unreached_since is None:
            self._unreached_since = self._clock()
            says = str(error) or f"no answer within {FAREWELL_SECONDS:.0f} s"
            log.warning("leases_not_renewed", error=says, meaning="new messages wait once the leases have run out")

    def _choice(self, seen: Seen) -> list[int]:
        """The shards that this process may take now."""
        if not seen.is_settled or seen.is_alone_taken or seen.is_anothers or seen.count not in (None, self._all()):
            return []
        if self._wanted:
            return [one for one in self._wanted if one in seen.free]
        has, (share, rest) = len(self._leases.names), divmod(self._all(), max(len(seen.members), 1))
        if has < share or (rest and has == share and has <= min(seen.members.values(), default=0)):
            return sorted(seen.free)
        # Each of the others may take its next shard only after its turn to IDENTIFY.
        spare = SPARE_SECONDS + IDENTIFY_SECONDS * len(seen.members) / self.cluster.max_concurrency
        return [one for one, since in self._free_since.items() if self._clock() - since >= spare]

    def _refusal(self, seen: Seen) -> tuple[str, bool]:
        """Why no shard can be taken, as a sentence (empty: one can), and whether waiting is not going to help."""
        if seen.is_alone_taken:
            says = "REDIS_URL is in use by a process that runs alone: stop that one, or set SHARDS=auto for it, too."
            return says, True
        if seen.is_anothers:
            return "REDIS_URL is in use by another bot: give this one a Redis or a database of its own.", True
        if seen.count not in (None, self._all()):
            says = (
                f"Others still have shards of {seen.count}, not of {self._all()}: it takes some once those have ended."
            )
            return says, False
        missing = [one for one in self._wanted if one not in self._leases.ids]
        if missing and seen.is_settled:
            named = ", ".join(map(str, missing[:10]))
            says = f"SHARD_IDS names what another process has ({named}): stop that one, or give this one others."
            return says, True
        return "", False

    def _all(self) -> int:
        return self.shards.count or 1
