"""Slots: limits how many turns agents answer at once in the process. Other turns wait, and their askers are told.

A turn whose budgets have nothing left but what calls of other turns have reserved gives its slot back until they do.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from itertools import count
from typing import NamedTuple, TypeVar

from setting_values import Scope
from state.spending import Account
from turns.turn import Turn

# Made and waiting, for each slot: with 5 s for an answer the last waits 7 minutes. One takes some 60 KB, those of 64
# slots 300 MB.
MAX_TURNS = 80
OF_EVERYBODY = (Scope.TOTAL, Scope.GUILD)
K = TypeVar("K")
TOLD_SECONDS = 10.0  # after which an asker is told their place in the queue
TOLD_INTERVAL_SECONDS = 0.025  # Discord allows a bot 50 requests a second, and answers are more urgent
LATE_SECONDS = 120.0  # after which an asker is told that it takes long; other turns of their channel count, too
PLACE = "many people are asking me at once: your question is number {} in the queue"
LATE = (
    "you have waited for two minutes, and I am sorry: there are more questions than I can answer at once; yours is "
    "number {}"
)
FOR_BUDGET = "my budget allows me only so many answers at once, and yours comes when others are done"
LATE_FOR_BUDGET = (
    "you have waited for two minutes, and I am sorry: my budget allows me only so many answers at once, and others are "
    "not done yet"
)


class _Place(NamedTuple):
    """A place in the queue. is_begun: the turn had a slot before; number: orders the queue; accounts: those that pay
    for it, and not for all of its guild, each with the guild; given: done when it has one."""

    is_begun: bool
    number: int
    accounts: frozenset[tuple[int, Account]]
    given: asyncio.Future[None]


class TurnSlots:
    """The slots, shared fairly between guilds, then channels: the next one goes to the guild with the fewest, and there
    to the turn that waits longest. A direct message channel counts as a guild. A channel waits with one turn at a time,
    so its next turn comes after all that wait by then. A turn restarted after an edit keeps its place.

    Of one guild no more than twice `at_once` turns have begun, that is, have a slot or have had one and wait for their
    budget or for the next slot: all of these look again each time that some of a budget is given back. The second half
    is for those whose budgets none waits for: the first may all wait for that of one channel, or of one person. Those
    that have the budget for their next call go before those that have not begun, which may wait for just that budget.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = self._free = at_once
        self._turns: Counter[int] = Counter()  # by guild, as below
        self._taken: Counter[int] = Counter()
        self._begun: Counter[int] = Counter()
        self._short: Counter[tuple[int, Account]] = Counter()  # those that wait for a budget, by guild and account
        self._waiting: dict[int, deque[_Place]] = {}
        self._numbers = count(1)
        self._telling = asyncio.Lock()

    def __len__(self) -> int:
        """How many turns wait: for a slot, or for their budget."""
        unbegun = sum(not place.is_begun for line in self._waiting.values() for place in line)
        return unbegun + self._begun.total() - self.running

    @property
    def running(self) -> int:
        """How many slots are taken."""
        return self._at_once - self._free

    def is_full(self, guild_id: int, channel_id: int) -> bool:
        """Whether too many turns wait for one more of this guild. Where it has less than others, it may have as many as
        each would if all had the same."""
        most, turns = MAX_TURNS * self._at_once, self._turns
        return turns.total() >= most and turns[guild_id or channel_id] >= most // len(turns)

    @asynccontextmanager
    async def taken(self, turn: Turn) -> AsyncIterator[None]:
        """Waits for a slot, and holds it until the end of the block, except while the turn waits for its budget."""
        turn.number = turn.number or next(self._numbers)
        slot = turn.allowance.slot = _Slot(self, turn)
        _count(self._turns, slot.guild_id, 1)
        try:
            await slot.take()
            yield
        finally:
            _count(self._turns, slot.guild_id, -1)
            slot.end()

    async def take(self, guild_id: int, turn: Turn, *, is_begun: bool) -> None:
        """Waits for a slot. is_begun: the turn had one, and has waited for its budget."""
        accounts = frozenset((guild_id, one) for one, _ in turn.payer.accounts() if one[0] not in OF_EVERYBODY)
        place = _Place(is_begun, turn.number, accounts, asyncio.Future())
        if self._free and self._may_go_on(guild_id, place):
            self._give(guild_id, is_begun=is_begun)
            self._share()  # if none waits for its budgets any more, others that pay from these may go on, too
            return
        line = self._waiting.setdefault(guild_id, deque())
        insort(line, place, key=lambda other: (not other.is_begun, other.number))

        def told(text: str) -> str:
            if place.given.done():
                return ""
            # Estimated: before this turn each guild gets as many slots as its own.
            before = line.index(place)
            return text.format(1 + sum(min(len(other), before) for other in self._waiting.values()))

        telling = asyncio.create_task(self._tell(turn, lambda: told(PLACE), lambda: told(LATE)))
        try:
            await asyncio.wait([place.given])  # unlike awaiting the future itself, a cancel here does not cancel it
        except asyncio.CancelledError:
            if place.given.done():
                self.give_back(guild_id, is_ended=not is_begun)
            else:
                self._leave(guild_id, place)
            raise
        finally:
            telling.cancel()

    def give_back(self, guild_id: int, *, is_ended: bool, is_held: bool = True) -> None:
        """Gives a turn's slot to others. is_ended: it needs none any more; else it waits for its budget."""
        self._free += is_held
        _count(self._taken, guild_id, -is_held)
        _count(self._begun, guild_id, -is_ended)
        self._share()

    def _share(self) -> None:
        """Gives the free slots to those who wait and may go on."""
        while self._free and (first := {guild: place for guild in self._waiting if (place := self._first(guild))}):
            next_guild = min(first, key=lambda one: (self._taken[one], first[one].number))
            place = first[next_guild]
            self._leave(next_guild, place)
            self._give(next_guild, is_begun=place.is_begun)
            place.given.set_result(None)

    def _first(self, guild_id: int) -> _Place | None:
        """The first place of a guild that may have a slot."""
        return next((place for place in self._waiting[guild_id] if self._may_go_on(guild_id, place)), None)

    def _may_go_on(self, guild_id: int, place: _Place) -> bool:
        most = self._at_once * (1 + self._short.keys().isdisjoint(place.accounts))
        return place.is_begun or self._begun[guild_id] < most

    def wait_for_budget(self, guild_id: int, lacking: Iterable[Account], change: int) -> None:
        """Counts a turn that begins (1) or ceases (-1) to wait for the budgets of these accounts."""
        for account in lacking:
            _count(self._short, (guild_id, account), change)

    def _give(self, guild_id: int, *, is_begun: bool) -> None:
        self._free -= 1
        _count(self._taken, guild_id, 1)
        _count(self._begun, guild_id, not is_begun)

    def begin_telling(self, turn: Turn) -> asyncio.Task[None]:
        """Tells an asker, until cancelled, that their turn waits for its budget."""
        return asyncio.create_task(self._tell(turn, lambda: FOR_BUDGET, lambda: LATE_FOR_BUDGET))

    async def _tell(self, turn: Turn, place: Callable[[], str], late: Callable[[], str]) -> None:
        """Tells an asker what their turn waits for, and after two minutes that it takes long, until cancelled."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        late_at = max(now + TOLD_SECONDS, (now if turn.asked_at is None else turn.asked_at) + LATE_SECONDS)
        for at, in_words in ((now + TOLD_SECONDS, place), (late_at, late)):
            await asyncio.sleep(at - loop.time())
            async with self._telling:
                await asyncio.sleep(TOLD_INTERVAL_SECONDS)
            if text := in_words():
                turn.tell_place(text)

    def _leave(self, guild_id: int, place: _Place) -> None:
        line = self._waiting[guild_id]
        line.remove(place)
        if not line:
            del self._waiting[guild_id]


class _Slot:
    """A turn's slot, which it holds or not."""

    def __init__(self, slots: TurnSlots, turn: Turn) -> None:
        self._slots = slots
        self._turn = turn
        self.guild_id = turn.newest.guild_id or turn.newest.channel_id  # the latter for direct messages
        self._is_begun = self._is_held = False
        self._telling: asyncio.Task[None] | None = None  # while it waits for its budget
        self._lacking: Collection[Account] = ()

    async def take(self) -> None:
        """Takes it, unless it is held."""
        if not self._is_held:
            self._end_telling()
            await self._slots.take(self.guild_id, self._turn, is_begun=self._is_begun)
            self._is_begun = self._is_held = True

    def leave(self, lacking: Collection[Account]) -> None:
        """Gives it back, if it is held, until take(): the turn waits for the budgets of these accounts, or of some that
        other processes know."""
        if self._is_held:
            self._is_held = False
            self._telling = self._slots.begin_telling(self._turn)
            self._lacking = lacking or [(Scope.CHANNEL, self._turn.payer.channel_id)]
            self._slots.wait_for_budget(self.guild_id, self._lacking, 1)
            self._slots.give_back(self.guild_id, is_ended=False)

    def end(self) -> None:
        """Gives it back, if it is held: the turn has ended."""
        self._end_telling()
        if self._is_begun:
            self._slots.give_back(self.guild_id, is_ended=True, is_held=self._is_held)
        self._is_begun = self._is_held = False

    def _end_telling(self) -> None:
        if self._telling:
            self._telling.cancel()
            self._slots.wait_for_budget(self.guild_id, self._lacking, -1)
        self._telling = None


def _count(counts: Counter[K], key: K, change: int) -> None:
    counts[key] += change
    if not counts[key]:
        del counts[key]
