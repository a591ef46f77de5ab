"""Carries out people's privacy requests on all shards, whichever processes have them, now or later.

A request is added to the stream of events before anything is done. Each process carries out the events in order for the
shards that it has, and stores for each shard up to which event it is done. A process that takes a shard first carries
out the events after that one, so that none is missed if a process dies or does not run. Events that all shards have
done can be dropped from the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress

import structlog

from cluster.events import START, Event, Events, What, before
from persistence.people import People
from persistence.privacy import Privacy
from persistence.snapshots import Snapshots
from shards import Shards
from storage.store import StoreError

log = structlog.get_logger()

ANSWER_SECONDS = 20.0  # an interaction can be answered for 15 minutes, but people do not wait so long
LOOK_SECONDS = 0.2
PAUSE_SECONDS = 1.0  # before Redis is asked again
FORGETTING = What.FORGET, What.OPT_OUT


class ClusterPrivacy:
    """The `Privacy` of commands for all shards, and this process' part of the work. See commands.Privacy."""

    def __init__(self, privacy: Privacy, people: People, snapshots: Snapshots, shards: Shards, events: Events) -> None:
        self._privacy = privacy
        self._people = people
        self._snapshots = snapshots
        self._shards = shards
        self._events = events
        self._taken: dict[int, None] = {}  # the shards for which this process carries out events
        self._known = START  # the last event read
        self._undone: list[Event] = []  # events read that failed and are to be tried again
        self._unasked: dict[tuple[What, int], int] = {}  # requests that are not added yet, as Redis was away
        self._adding = asyncio.Lock()
        self._cleaned: dict[tuple[What | None, int], int] = {}  # the same, until it was added and read again
        self._is_noted = True  # the shards' progress is stored
        self._changing = asyncio.Lock()  # guards the shards taken and their progress

    @property
    def _count(self) -> int:
        return self._shards.count or 1

    # For commands

    def is_opted_out(self, user_id: int) -> bool:
        return self._privacy.is_opted_out(user_id)

    async def forget_person(self, user_id: int, at: int) -> bool:
        return await self._ask(What.FORGET, user_id, at)

    async def forget_channel(self, channel_id: int, at: int) -> bool:
        """Forgets a channel here, as the command reached the process with its shard, and on all shards what was told
        elsewhere out of it."""
        gone = self._privacy.continued_in(channel_id)
        asking = (self._ask(What.FORGET_CHANNEL, each, at) for each in gone)
        return all(await asyncio.gather(self._privacy.forget_channel(channel_id, at), *asking))

    async def opt_out(self, user_id: int, at: int) -> bool:
        return await self._ask(What.OPT_OUT, user_id, at)

    async def opt_in(self, user_id: int, at: int) -> bool:
        return await self._ask(What.OPT_IN, user_id, at)

    async def settle(self) -> bool:
        return await self._ask(What.SETTLE)

    async def export(self, user_id: int) -> bytes:
        return await self._privacy.export(user_id)

    async def _ask(self, what: What, user_id: int = 0, at: int = 0) -> bool:
        """Adds an event. Returns whether all shards have carried it out within ANSWER_SECONDS; the others will later.
        Raises OSError."""
        try:
            await self._add_unasked()
            asked = await self._events.add(what, user_id, at)
        except StoreError:
            self._unasked.pop((what, user_id), None)
            self._unasked[what, user_id] = self._cleaned[what, user_id] = at  # the last
            async with self._changing:
                event = Event(START, what, user_id, at)
                self._note(event)
                await self._carry_out(event, self._taken)
            raise
        clock = asyncio.get_running_loop().time
        until = clock() + ANSWER_SECONDS
        while clock() < until:  # not asyncio.timeout(): the Redis client may swallow that as a timeout of its own
            with suppress(StoreError):  # the event is stored, and Redis may be back soon
                applied = await self._events.applied(self._count)
                if all(applied.get(shard_id, START) >= asked for shard_id in range(self._count)):
                    return True
                if await self._events.last() < asked:  # Redis has lost it
                    asked = await self._events.add(what, user_id, at)
            await asyncio.sleep(LOOK_SECONDS)
        return False

    async def _add_unasked(self) -> None:
        async with self._adding:
            for (what, user_id), at in [*self._unasked.items()]:
                await self._events.add(what, user_id, at)
                if self._unasked[what, user_id] == at:  # else it was asked again meanwhile
                    del self._unasked[what, user_id]

    # For this process' shards

    async def load(self) -> None:
        """Loads who opted out and what was forgotten, by other processes too. Raises StoreError.

        Call it once a shard's lease is held, before its rows are read: from then on the stream keeps every event that
        the shard has not done.
        """
        async with self._changing:
            if self._taken:
                await self._people.load_forgotten()
                return
            applied, last = await self._events.applied(self._count), await self._events.last()
            oldest = min(applied.get(each, START) for each in range(self._count))
            asked = await self._events.between(oldest if oldest <= last else START, last)
            await self._people.load()  # after reading the stream: what has left it by then is in rows
            for event in asked:
                self._note(event)
            self._known = last
            self._privacy.forget_logged()

    async def take(self, shard_ids: Collection[int]) -> None:
        """Carries out what was asked while no process had these shards, once their rows are read. Raises StoreError."""
        async with self._changing:
            last, applied = await self._events.last(), await self._events.applied(self._count)
            if last == START:  # an empty stream gets an event, so that a loss of data in Redis is noticed later
                await self._events.add(What.SETTLE)
            # Progress beyond the last event is of a stream that Redis has lost: all events now there are newer.
            done = {each: id_ if (id_ := applied.get(each, START)) <= last else START for each in shard_ids}
            for event in _once(await self._events.between(min(done.values()), self._known)):
                await self._try(event, [each for each in shard_ids if done[each] < event.id])
            self._taken |= dict.fromkeys(shard_ids)
            await self._apply(shard_ids)

    async def leave(self, shard_ids: Collection[int]) -> None:
        """Stops carrying out events for these shards, as another process may take them."""
        async with self._changing:
            for shard_id in shard_ids:
                self._taken.pop(shard_id, None)

    async def keep(self) -> None:
        """Carries out new events until cancelled."""
        is_failing = False
        while True:
            try:
                await self._follow()
                is_failing = False
            except StoreError as error:
                if not is_failing:
                    log.warning(
                        "privacy_requests_unread",
                        error=str(error),
                        meaning="they are carried out once Redis can be read",
                    )
                is_failing = True
                await asyncio.sleep(PAUSE_SECONDS)

    async def _follow(self) -> None:
        await self._add_unasked()
        events = await self._events.following(self._known)
        async with self._changing:
            if not events and await self._events.last() < self._known:
                lost = "Redis has lost its data; a /forget or /optout just before may not have reached every process"
                remedy = "let Redis keep its data on disk: appendonly yes"
                log.error("privacy_requests_lost", meaning=lost, remedy=remedy)
                self._known = START  # in a new stream; `People` stores its rows again
                await self._events.add(What.SETTLE)
                return
            for event in events:
                self._note(event)
                self._known = event.id
            shard_ids = [each for each in self._taken if each in self._shards.ids]  # a taken one may not be connected
            undone, self._undone = self._undone, []
            for event in undone:
                await self._try(event, shard_ids, is_retry=True)
            for event in _once(events):
                if was_cleaned := self._cleaned.get((event.what, event.user_id)) == event.at:
                    del self._cleaned[event.what, event.user_id]
                await self._try(event, shard_ids, is_retry=was_cleaned)
            if undone or events or not self._is_noted:
                await self._apply(shard_ids)

    def _note(self, event: Event) -> None:
        if event.what in (What.OPT_OUT, What.OPT_IN):
            self._people.opt(event.user_id, event.at, out=event.what is What.OPT_OUT)
        if event.what is What.FORGET_CHANNEL:
            self._people.forget(event.user_id, None, event.at)

    async def _try(self, event: Event, shard_ids: Collection[int], *, is_retry: bool = False) -> None:
        try:
            await self._carry_out(event, shard_ids, is_retry=is_retry)
        except OSError as error:
            log.error("privacy_request_undone", user=event.user_id, detail=str(error), meaning="it is tried again")
            self._undone.append(event)

    async def _carry_out(self, event: Event, shard_ids: Collection[int], *, is_retry: bool = False) -> None:
        """Carries out an event for these shards. Raises OSError where that could not be completed.

        is_retry: memory was cleaned already, and holds only what the person has said since.
        """
        if event.what is None:
            return
        here = frozenset(shard_ids)
        if event.what is What.FORGET_CHANNEL:
            await self._privacy.forget_out_of(event.user_id, event.at, lambda guild: self._shards.of(guild) in here)
            return
        if event.what is not What.SETTLE:
            self._people.store_opted(event.user_id)  # in any case: a process that died may have stored an older state
        if event.what in FORGETTING:
            forget = self._privacy.forget_stored if is_retry else self._privacy.forget_person
            await forget(event.user_id, event.at, lambda guild: self._shards.of(guild) in here)
            return
        if event.what is What.OPT_IN:
            self._privacy.leave_unread(event.user_id, event.at)
        if not await self._snapshots.settled():
            raise OSError("what is kept could not be written")

    async def _apply(self, shard_ids: Collection[int]) -> None:
        """Stores up to which event these shards are done."""
        through = min([before(event.id) for event in self._undone], default=self._known)
        if shard_ids:
            self._is_noted = False
            await self._events.apply(shard_ids, through, self._count)
            self._is_noted = True


def _once(events: Iterable[Event]) -> list[Event]:
    """Keeps only the last of equal requests by one person, so that repeated requests do not hold up others."""
    return [*{(event.user_id, event.what in FORGETTING): event for event in events}.values()]
