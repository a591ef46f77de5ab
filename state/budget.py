"""Budgets that calls of models draw on: a turn's allowance, and the purses of calls beside the answer.

What a call may use is reserved, and the reservation stored, before the call is made: see state/limits.py. Where several
processes share the budgets, it is reserved among all of them: see cluster/accounts.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Protocol

from clock import Clock
from setting_values import BudgetLimit, Scope
from state.limits import Cap, Limits, Reached
from state.spending import NOBODY, PAYER, Account, Amount, Payer, Purpose, Reserved, Spent

LOOK_AGAIN_SECONDS = 2.0
OWN_SECONDS = 15.0  # in which a channel waits for answers elsewhere to whoever asks: about as long as one takes
LOOK_AT_ONCE = 64  # of those that wait for a budget: each takes some 25 us
FOR_ANSWER = 20_000  # tokens of a turn's that calls beside its answer leave for that: about the least that it takes
LIMITS, SPENDING = "limits", "spending"  # what is stored: today, with each call; the days before, once a day has ended
# Made only until four fifths of a budget are used: the rest is for those who call the bot.
JUDGING = frozenset({Purpose.JUDGE, Purpose.OFFER, Purpose.COORDINATION})


class Store(Protocol):
    """Stores what is used."""

    def touch(self, kind: str) -> None:
        """Queues it to be stored. kind: LIMITS or SPENDING."""

    async def noted(self) -> None:
        """Waits until what was queued would survive a kill."""


class Unstored:
    def touch(self, kind: str) -> None: ...

    async def noted(self) -> None: ...


class UnreachableError(Exception):
    """Raised when the usage and reservations of other processes cannot be found out."""


class Shared(Protocol):
    """The accounts of budgets that several processes share."""

    async def reserve(
        self, call: Reserved, limits: Iterable[tuple[Account, int, BudgetLimit]], interrupted: Spent
    ) -> Collection[Account] | None:
        """Reserves what a call may use. None: it is reserved; else the accounts of which other calls have reserved too
        much for it, as far as known. Raises UnreachableError."""

    def settle(self, call: Reserved | None, payer: Payer, spent: Spent | None) -> None:
        """Releases what was reserved for a call, and charges what was used."""


class Calls(Protocol):
    """Observes calls of models."""

    def called(self, payer: Payer, purpose: Purpose, spent: Spent) -> None:
        """Called after a call of a model was counted. spent: with its price, where that is known."""


class Budget:
    """Limits at the clock's time. store: where they are stored. calls: told of each call that is counted. shared: the
    accounts shared with other processes; None: there are none.
    """

    def __init__(
        self,
        limits: Limits,
        clock: Clock,
        store: Store | None = None,
        calls: Calls | None = None,
        shared: Shared | None = None,
    ) -> None:
        self._calls = calls
        self._shared = shared
        self._limits = limits
        self._clock = clock
        self._store = store or Unstored()
        self._given_back = asyncio.Event()
        self._looking_again = asyncio.Semaphore(LOOK_AT_ONCE)
        self.turn_tokens = limits.turn_tokens

    def has_budget(self) -> bool:
        """Whether anything is left of the budgets for all guilds together."""
        return self.reached(NOBODY) is None

    def may_judge(self, payer: Payer) -> bool:
        """Whether there is budget for a call that only judges whether to answer: no budget is used to four fifths."""
        return self.reached(payer, explicit=False) is None

    def purse(self, purpose: Purpose) -> Purse:
        """Returns what calls for this purpose draw on."""
        return Purse(self, purpose)

    def allowance(self, payer: Payer) -> Allowance:
        """Returns what a turn may use."""
        return Allowance(self, payer)

    def reached(self, payer: Payer, *, explicit: bool = True) -> Reached | None:
        return self._limits.reached(self._clock(), payer, explicit=explicit)

    def tells_managers(self, reached: Reached, payer: Payer) -> bool:
        return self._limits.tells_managers(reached, payer, self._clock())

    def call(self, payer: Payer, tokens: int, output: int, models: Sequence[str], purpose: Purpose) -> Reserved:
        """Returns what to reserve for a call that one of these models answers. output: the tokens that it may write."""
        micros, is_sound = 0, purpose is Purpose.TRANSCRIPTION
        if any(limit.in_money for _, _, limit in self._limits.holding(payer)):
            micros = self._limits.prices.dearest(models, tokens - output, output, is_sound=is_sound)
        return Reserved(payer, Amount(tokens, micros), output, tuple(models), purpose)

    async def reserve(self, call: Reserved) -> Collection[Account] | None:
        """Reserves a call if there is budget for it, and waits until that is stored. None: it is reserved; else the
        accounts of which other calls have reserved too much for it, as far as known. Raises UnreachableError."""
        if self._shared:
            self._limits.begin_day(self._clock())
            interrupted = self._limits.prices.priced(call.interrupted)
            lacking = await self._shared.reserve(call, self._limits.holding(call.payer), interrupted)
            if lacking is not None:
                return lacking
            self._limits.set_aside(call)
        elif not self._limits.reserve(call, self._clock()):
            return {*self._limits.lacking(call)}
        self._changed()
        try:
            await self._store.noted()
        except BaseException:
            self.settle(call, None, call.payer, call.purpose)
            raise
        return None

    def settle(self, call: Reserved | None, spent: Spent | None, payer: Payer, purpose: Purpose) -> Spent | None:
        """Releases what was reserved, and counts what was used. Returns what was used, with its price."""
        if call:
            self._limits.release(call)
        counted = self._limits.spend(spent, self._clock(), payer, purpose) if spent else None
        if self._shared:
            self._shared.settle(call, payer, counted)
        if counted and self._calls:
            self._calls.called(payer, purpose, counted)
        if call or spent:
            self._changed()
            given_back, self._given_back = self._given_back, asyncio.Event()
            given_back.set()
        return counted

    def answered(self, payer: Payer, model: str) -> None:
        self._limits.ledger.answered(payer, model)
        self._changed()

    def declined(self, payer: Payer, spent: Sequence[Spent]) -> None:
        self._limits.ledger.declined(payer, spent)
        self._changed()

    def _changed(self) -> None:
        self._store.touch(LIMITS)
        if self._limits.ledger.has_turned:
            self._store.touch(SPENDING)

    async def given_back(self) -> None:
        """Waits until a reservation is released, or may have been in another process. Of thousands that wait only a few
        go on at once, so that their looking again does not hold up the event loop."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN_SECONDS if self._shared else None):
                await self._given_back.wait()
        async with self._looking_again:
            await asyncio.sleep(0)


class Slot(Protocol):
    """The turn's place among those that run at once."""

    async def take(self) -> None:
        """Takes it, unless it is held."""

    def leave(self, lacking: Collection[Account]) -> None:
        """Gives it back, if it is held, until take(): the turn waits for the budgets of these accounts; if there are
        none, it is not known for which."""


class Purse:
    """The budget that calls beside the answer's own draw on; those that only judge, until it is used to four fifths."""

    def __init__(self, budget: Budget, purpose: Purpose) -> None:
        self._budget = budget
        self._purpose = purpose

    async def call(self, tokens: int, output: int, models: Sequence[str]) -> Callable[[Spent], object] | None:
        """Reserves so many tokens for one call, paid by PAYER; None if the budget does not allow them now.

        output: the part of them that the model may write. Returns a function to be called with what was used. Within a
        turn the tokens also count towards what that may use.
        """
        payer, turn = PAYER.get(), TURN.get()
        if turn and not turn.lend(tokens):
            return None
        call = self._budget.call(payer, tokens, output, models, self._purpose)
        is_reserved = False
        try:
            if self._budget.reached(payer, explicit=self._purpose not in JUDGING) is None:
                is_reserved = await self._budget.reserve(call) is None
        except UnreachableError:
            pass
        finally:
            if turn and not is_reserved:
                turn.take_back(tokens, 0)

        def settle(spent: Spent) -> None:
            if turn:
                turn.take_back(tokens, spent.tokens)
            self._budget.settle(call, spent if spent.tokens or spent.micros else None, payer, self._purpose)

        return settle if is_reserved else None


class Allowance:
    """The tokens that one turn may use: reserved before each call of its model, counted after it.

    slot: not held while the turn waits; None: there is none. before_first: awaited before the first call, once it is
    reserved.
    """

    def __init__(self, budget: Budget, payer: Payer) -> None:
        self._budget = budget
        self._payer = payer
        self.slot: Slot | None = None
        self.before_first: Callable[[], Awaitable[None]] | None = None
        self._call: Reserved | None = None
        self._own_until: float | None = None  # by the loop's clock, also if the turn is started over; None: no wait
        self._counted = 0  # tokens counted since the turn started, or was last started over
        self._before = 0  # tokens before that
        self._spent: list[Spent] = []  # calls since then
        self.all_spent: list[Spent] = []
        self._lent = 0  # tokens that calls beside the answer's own have reserved, or used
        self.unseen = 0  # the part of the reservation for what cannot be predicted

    @property
    def cap(self) -> int | None:
        """The tokens that the turn may use; None: there is no cap."""
        return self._budget.turn_tokens

    @property
    def left(self) -> int | None:
        """The tokens that the turn may still use; None: there is no cap."""
        return None if self.cap is None else self.cap - self._before - self._counted - self._lent

    def lend(self, tokens: int) -> bool:
        """Reserves so many tokens for a call beside the answer's own, such as one that transcribes a sound. Such calls
        get half of what the turn may use at most, and leave FOR_ANSWER, also of a turn that is started over. False:
        that is too much."""
        cap, left = self.cap, self.left
        if cap is not None and left is not None and (self._lent + tokens > cap // 2 or tokens > left - FOR_ANSWER):
            return False
        self._lent += tokens
        return True

    def take_back(self, tokens: int, used: int) -> None:
        """Takes back what was reserved for such a call. used: what stays counted."""
        self._lent += used - tokens

    async def reserve(self, tokens: int, unseen: int = 0, *, output: int = 0, models: Sequence[str] = ()) -> Cap | None:
        """Reserves what the next call may use; waits while other calls have reserved it, those of the same person not
        for long. Returns a cap that is reached.

        output: the part of the tokens that the model may write. unseen: tokens that it may use beyond the predicted
        ones; at most what the turn has left. models: those that may answer.
        """
        if (left := self.left) is not None:
            if tokens > left:
                return Cap.TURN
            unseen = min(unseen, left - tokens)
        self.unseen = unseen
        self.count(self._counted)
        while not (reached := self.spent_budget()):
            call = self._budget.call(self._payer, tokens + unseen, output + unseen, models, Purpose.ANSWER)
            try:
                lacking = await self._budget.reserve(call)
            except UnreachableError:
                return Cap.UNKNOWN
            if lacking is None:
                await self._begin(call)
                return None
            own = frozenset(who for scope, who in lacking if scope is Scope.PERSON)
            is_own = 0 < len(own) == len(lacking)
            if is_own and own < self._payer.people:
                self._leave_to_others(own)
                continue
            if self.slot:
                self.slot.leave(lacking)
            until = self._own_until or asyncio.get_running_loop().time() + OWN_SECONDS
            self._own_until = until if is_own else None
            try:
                async with asyncio.timeout_at(self._own_until):
                    await self._budget.given_back()
            except TimeoutError:
                return Cap.OWN
        return reached.cap

    async def _begin(self, call: Reserved) -> None:
        """Takes the slot for a call that is reserved."""
        self._call, self._own_until = call, None
        if self.slot:
            await self.slot.take()
        if self.before_first and not self._counted:
            await self.before_first()

    def count(self, tokens: int, spent: Spent | None = None) -> None:
        """Counts the tokens that the turn has used by now, and releases the reservation. spent: the last call's use."""
        more, call, self._call = max(0, tokens - self._counted), self._call, None
        if not more:
            spent = None
        elif spent is None:
            spent = call.used(more) if call else Spent(tokens_in=more)
        if counted := self._budget.settle(call, spent, self._payer, Purpose.ANSWER):
            self._spent.append(counted)
            self.all_spent.append(counted)
        self._counted = max(tokens, self._counted)

    def settle(self, tokens: int, *, is_answer: bool = False, is_declined: bool = False) -> int:
        """Counts the tokens used when the turn ends or is started over, as an answer or as declined. Returns them."""
        self.count(tokens)
        if self._spent and is_answer:
            self._budget.answered(self._payer, self._spent[-1].model)
        elif self._spent and is_declined:
            self._budget.declined(self._payer, self._spent)
        self._spent = []
        self._before, self._counted = self._before + self._counted, 0
        return tokens

    def spent_budget(self) -> Reached | None:
        """The spent budget that stops the turn; None: there is none. Of several people, those who have spent their own
        since they asked pay no more, so that the others are answered."""
        reached = self._budget.reached(self._payer)
        if reached and reached.cap is Cap.PERSON:
            paying = self._payer.people - self._payer.exempt
            out = frozenset(one for one in paying if self._budget.reached(Payer(people=frozenset({one}))))
            if out != self._payer.people:
                self._leave_to_others(out)
                return self._budget.reached(self._payer)
        return reached

    def _leave_to_others(self, out: frozenset[int]) -> None:
        """Leaves the whole turn for the others to pay: these people have spent their own budgets, or other answers to
        them have reserved what is left."""
        self._payer = replace(self._payer, people=self._payer.people - out)

    def managers_notice(self) -> Reached | None:
        """A budget used to four fifths, of which those who manage the place are to be told now."""
        reached = self._budget.reached(self._payer, explicit=False) if self._payer.guild_id else None
        if reached and reached.cap is not Cap.PERSON and self._budget.tells_managers(reached, self._payer):
            return reached
        return None


TURN: ContextVar[Allowance | None] = ContextVar("turn", default=None)
"""What the turn of this context may use; None: it is of none."""


def charge_to(payer: Payer, turn: Allowance | None = None) -> None:
    """Has this payer pay for calls beside the answer's own in this context, such as the judge's. turn: of which they
    are part; None: of none."""
    PAYER.set(payer)
    TURN.set(turn)
