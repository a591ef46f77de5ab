"""What people ask for, carried out on all shards, by whichever processes have them, now or later.

A request stands in the stream of events before anything is done. Each process does what it asks, event by event, for
the shards that it has, and then notes for each of them how far it is. Whoever takes a shard first does what was asked
since what is noted of it: so nothing is left out where a process dies, or is not there. What all shards have done is
nobody's business any more.
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

ANSWER_SECONDS = 20.0  # Discord takes an answer for 15 minutes; people do not wait so long
LOOK_SECONDS = 0.2
PAUSE_SECONDS = 1.0  # before Redis is asked anew
FORGETTING = What.FORGET, What.OPT_OUT


class ClusterPrivacy:
    """As `Privacy` for commands, on all shards; and this process' part of it. See commands.Privacy."""

    def __init__(self, privacy: Privacy, people: People, snapshots: Snapshots, shards: Shards, events: Events) -> None:
        self._privacy = privacy
        self._people = people
        self._snapshots = snapshots
        self._shards = shards
        self._events = events
        self._taken: dict[int, None] = {}  # the shards for which this process does what is asked
        self._known = START  # up to here it knows what was asked
        self._undone: list[Event] = []  # of these, what could not be stored
        self._is_noted = True  # how far its shards are
        self._changing = asyncio.Lock()  # who has which shard, or how far it is

    @property
    def _count(self) -> int:
        return self._shards.count or 1

    # For commands

    def is_opted_out(self, user_id: int) -> bool:
        return self._privacy.is_opted_out(user_id)

    async def forget_person(self, user_id: int, at: int) -> bool:
        return await self._ask(What.FORGET, user_id, at)

    async def forget_channel(self, channel_id: int, at: int) -> bool:
        return await self._privacy.forget_channel(channel_id, at)  # whoever was told of it has its shard

    async def opt_out(self, user_id: int, at: int) -> bool:
        return await self._ask(What.OPT_OUT, user_id, at)

    async def opt_in(self, user_id: int) -> bool:
        return await self._ask(What.OPT_IN, user_id)

    async def settle(self) -> bool:
        return await self._ask(What.SETTLE)

    async def export(self, user_id: int) -> bytes:
        return await self._privacy.export(user_id)

    async def _ask(self, what: What, user_id: int = 0, at: int = 0) -> bool:
        """Whether all shards have done it within some seconds; those that have not will. Raises OSError."""
        try:
            asked = await self._events.add(what, user_id, at)
        except StoreError:
            async with self._changing:
                event = Event(START, what, user_id, at)
                self._note(event)
                await self._carry_out(event, self._taken)
            raise
        clock = asyncio.get_running_loop().time
        until = clock() + ANSWER_SECONDS
        while clock() < until:  # the client of Redis may take a timeout around it for one of its own, and swallow it
            with suppress(StoreError):  # it stands there, and Redis may be back soon
                applied = await self._events.applied(self._count)
                if all(applied.get(shard_id, START) >= asked for shard_id in range(self._count)):
                    return True
                if await self._events.last() < asked:  # Redis has lost it
                    asked = await self._events.add(what, user_id, at)
            await asyncio.sleep(LOOK_SECONDS)
        return False

    # For this process' shards

    async def load(self) -> None:
        """Knows who opted out and what was forgotten, also what other processes forgot since. Raises StoreError.

        To be called before the rows of a shard are read, once its lease is held: from then on nothing goes from the
        stream that the shard has not done.
        """
        async with self._changing:
            if self._taken:
                await self._people.load_forgotten()
                return
            applied, last = await self._events.applied(self._count), await self._events.last()
            oldest = min(applied.get(each, START) for each in range(self._count))
            asked = await self._events.between(oldest if oldest <= last else START, last)
            await self._people.load()  # behind that: what is not in the stream any more is in rows
            for event in asked:
                self._note(event)
            self._known = last
            self._privacy.forget_logged()

    async def take(self, shard_ids: Collection[int]) -> None:
        """Does for shards, whose rows have been read, what was asked while nobody had them. Raises StoreError."""
        async with self._changing:
            last, applied = await self._events.last(), await self._events.applied(self._count)
            if last == START:  # by a first event it is seen later that Redis has lost all
                await self._events.add(What.SETTLE)
            # What is noted beyond the last event is of a stream that Redis has lost: what there is now is newer.
            done = {each: id_ if (id_ := applied.get(each, START)) <= last else START for each in shard_ids}
            for event in _once(await self._events.between(min(done.values()), self._known)):
                await self._try(event, [each for each in shard_ids if done[each] < event.id])
            self._taken |= dict.fromkeys(shard_ids)
            await self._apply(shard_ids)

    async def leave(self, shard_ids: Collection[int]) -> None:
        """Does nothing for these any more, as somebody else may have them soon."""
        async with self._changing:
            for shard_id in shard_ids:
                self._taken.pop(shard_id, None)

    async def keep(self) -> None:
        """Does what is asked. Until cancelled."""
        is_failing = False
        while True:
            try:
                await self._follow()
                is_failing = False
            except StoreError as error:
                if not is_failing:
                    log.warning("privacy_requests_unread", error=str(error), meaning="they are done once it can be")
                is_failing = True
                await asyncio.sleep(PAUSE_SECONDS)

    async def _follow(self) -> None:
        events = await self._events.following(self._known)
        async with self._changing:
            if not events and await self._events.last() < self._known:
                await self._begin_anew()
                return
            for event in events:
                self._note(event)
                self._known = event.id
            shard_ids = [each for each in self._taken if each in self._shards.ids]  # one may not have been connected
            undone, self._undone = self._undone, []
            for event in undone:
                await self._try(event, shard_ids, is_retry=True)
            for event in _once(events):
                await self._try(event, shard_ids)
            if undone or events or not self._is_noted:
                await self._apply(shard_ids)

    async def _begin_anew(self) -> None:
        """Redis has lost the stream, and so all of it: what is kept of people is stored again by `People`."""
        log.error(
            "privacy_requests_lost",
            meaning="Redis has lost what it kept; who asked to be forgotten just before may not be everywhere",
            remedy="have Redis keep its data on disk: appendonly yes",
        )
        self._known = START
        await self._events.add(What.SETTLE)

    def _note(self, event: Event) -> None:
        if event.what in (What.OPT_OUT, What.OPT_IN):
            self._people.opt(event.user_id, out=event.what is What.OPT_OUT)

    async def _try(self, event: Event, shard_ids: Collection[int], *, is_retry: bool = False) -> None:
        try:
            await self._carry_out(event, shard_ids, is_retry=is_retry)
        except OSError as error:
            log.error("privacy_request_undone", user=event.user_id, detail=str(error), meaning="it is tried again")
            self._undone.append(event)

    async def _carry_out(self, event: Event, shard_ids: Collection[int], *, is_retry: bool = False) -> None:
        """Does it for these shards. Raises OSError where it could not be done completely.

        is_retry: memory holds nothing of it any more, but what they have said since.
        """
        if event.what is None:
            return
        if event.what is not What.SETTLE:
            self._people.store_opted(event.user_id)  # also where another process had it stored wrongly and died
        if event.what in FORGETTING:
            here = frozenset(shard_ids)
            forget = self._privacy.forget_stored if is_retry else self._privacy.forget_person
            await forget(event.user_id, event.at, lambda guild: self._shards.of(guild) in here)
        elif not await self._snapshots.settled():
            raise OSError("what is kept could not be written")

    async def _apply(self, shard_ids: Collection[int]) -> None:
        """Notes how far these shards are."""
        through = min([before(event.id) for event in self._undone], default=self._known)
        if shard_ids:
            self._is_noted = False
            await self._events.apply(shard_ids, through, self._count)
            self._is_noted = True


def _once(events: Iterable[Event]) -> list[Event]:
    """Of those that have the same done, for the same person, the last: whoever asks again and again holds up nobody."""
    return [*{(event.user_id, event.what in FORGETTING): event for event in events}.values()]
