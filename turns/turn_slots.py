"""Slots: limits how many turns agents answer at once in the process. Other turns wait, and their askers are told."""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import NamedTuple

from turns.turn import Turn

TOLD_SECONDS = 10.0  # after which an asker is told their place in the queue
TOLD_INTERVAL_SECONDS = 0.025  # Discord allows a bot 50 requests a second, and answers are more urgent
LATE_SECONDS = 120.0  # after which an asker is told that it takes long; other turns of their channel count, too
PLACE = "many people are asking me at once: your question is number {} in the queue"
LATE = (
    "you have waited for two minutes, and I am sorry: there are more questions than I can answer at once; yours is "
    "number {}"
)


class _Place(NamedTuple):
    """A place in the queue. number: orders the queue; given: done when it has a slot."""

    number: int
    given: asyncio.Future[None]


class TurnSlots:
    """The slots, shared fairly between guilds, then channels: the next one goes to the guild with the fewest, and there
    to the turn that waits longest. A direct message channel counts as a guild. A channel waits with one turn at a time,
    so its next turn comes after all that wait by then. A turn restarted after an edit keeps its place.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._taken: Counter[int] = Counter()  # by guild
        self._waiting: dict[int, deque[_Place]] = {}  # by guild
        self._numbers = count(1)
        self._telling = asyncio.Lock()

    def __len__(self) -> int:
        """How many turns wait."""
        return sum(map(len, self._waiting.values()))

    @property
    def running(self) -> int:
        """How many slots are taken."""
        return self._taken.total()

    @asynccontextmanager
    async def taken(self, turn: Turn) -> AsyncIterator[None]:
        """Waits for a slot, and holds it until the end of the block."""
        guild_id = turn.newest.guild_id or turn.newest.channel_id  # the latter for direct messages
        turn.number = turn.number or next(self._numbers)
        if self._free:
            self._free -= 1
            self._taken[guild_id] += 1
        else:
            await self._wait(guild_id, turn)
        try:
            yield
        finally:
            self._give_back(guild_id)

    async def _wait(self, guild_id: int, turn: Turn) -> None:
        loop = asyncio.get_running_loop()
        place, now = _Place(turn.number, loop.create_future()), loop.time()
        late_at = max(now + TOLD_SECONDS, (now if turn.asked_at is None else turn.asked_at) + LATE_SECONDS)
        insort(self._waiting.setdefault(guild_id, deque()), place, key=lambda other: other.number)
        try:
            for at, told in ((now + TOLD_SECONDS, PLACE), (late_at, LATE)):
                if (await asyncio.wait([place.given], timeout=max(0.0, at - loop.time())))[0]:
                    break
                async with self._telling:
                    await asyncio.sleep(TOLD_INTERVAL_SECONDS)
                if place.given.done():
                    break
                # Estimated: before this turn each guild gets as many slots as its own.
                before = self._waiting[guild_id].index(place)
                position = 1 + sum(min(len(line), before) for line in self._waiting.values())
                turn.tell_place(told.format(position))
            await asyncio.wait([place.given])  # unlike awaiting the future itself, a cancel here does not cancel it
        except asyncio.CancelledError:
            if place.given.done():
                self._give_back(guild_id)
            else:
                self._leave(guild_id, place)
            raise

    def _give_back(self, guild_id: int) -> None:
        self._taken[guild_id] -= 1
        if not self._taken[guild_id]:
            del self._taken[guild_id]
        if not self._waiting:
            self._free += 1
            return
        next_guild = min(self._waiting, key=lambda one: (self._taken[one], self._waiting[one][0].number))
        place = self._waiting[next_guild][0]
        self._leave(next_guild, place)
        self._taken[next_guild] += 1
        place.given.set_result(None)

    def _leave(self, guild_id: int, place: _Place) -> None:
        line = self._waiting[guild_id]
        line.remove(place)
        if not line:
            del self._waiting[guild_id]
