"""What calls of models draw on, by the clock: a turn's allowance, and the purses of the calls beside it.

What a call may use is reserved before it is made, and stored before it is made: see state/limits.py. Where several
processes share the budgets, it is reserved among all of them: see cluster/accounts.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Protocol

from setting_values import BudgetLimit
from state.limits import Cap, Limits, Reached
from state.spending import PAYER, Account, Amount, Payer, Purpose, Reserved, Spent

LOOK_AGAIN_SECONDS = 2.0


class Store(Protocol):
    """Where what is used is kept."""

    def changed(self, *, days: bool) -> None:
        """What limits keep of today is to be stored; days: and what they keep of the days before."""

    async def stored(self) -> None:
        """Waits until what has changed would survive a kill."""


class Unstored:
    def changed(self, *, days: bool) -> None: ...

    async def stored(self) -> None: ...


class UnreachableError(Exception):
    """What other processes have used and reserved cannot be found out."""


class Shared(Protocol):
    """The accounts of budgets that several processes share."""

    async def reserve(
        self, call: Reserved, limits: Iterable[tuple[Account, int, BudgetLimit]], interrupted: Spent
    ) -> bool:
        """Sets aside what a call may use, unless others have what is left. Raises UnreachableError."""

    def settle(self, call: Reserved | None, payer: Payer, spent: Spent | None) -> None:
        """Gives back what was set aside for a call, and charges what was used."""


class Calls(Protocol):
    """Is told of what models were called for."""

    def called(self, payer: Payer, purpose: Purpose, spent: Spent) -> None:
        """A model was called, and what it used is counted; with its price where that is known."""


class Budget:
    """What may be used now, by the clock. store: where that is kept. calls: told of each that is counted. shared: with
    other processes; None: there are none.
    """

    def __init__(
        self,
        limits: Limits,
        clock: Callable[[], datetime],
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

    def has_budget(self) -> bool:
        return self._limits.has_budget(self._clock())

    def may_judge(self, payer: Payer | None = None) -> bool:
        """payer: None: whoever pays here."""
        return self._limits.may_judge(self._clock(), PAYER.get() if payer is None else payer)

    def purse(self, purpose: Purpose) -> Purse:
        """What calls for this purpose draw on."""
        return Purse(self, purpose)

    def allowance(self, payer: Payer) -> Allowance:
        """What a turn may use."""
        return Allowance(self, payer)

    def reached(self, payer: Payer, *, explicit: bool = True) -> Reached | None:
        return self._limits.reached(self._clock(), payer, explicit=explicit)

    def tells_managers(self, reached: Reached, payer: Payer) -> bool:
        return self._limits.tells_managers(reached, payer, self._clock())

    def call(self, payer: Payer, tokens: int, output: int, models: Sequence[str], purpose: Purpose) -> Reserved:
        """What is to be reserved for a call that one of these models answers; output: of the tokens, the model's."""
        micros, is_sound = 0, purpose is Purpose.TRANSCRIPTION
        if self._limits.in_money(payer):
            micros = self._limits.prices.dearest(models, tokens - output, output, is_sound=is_sound)
        return Reserved(payer, Amount(tokens, micros), output, models[0] if models else "", purpose)

    async def reserve(self, call: Reserved) -> bool:
        """Whether there is room for a call, which is reserved then; stored() before it is made. Raises
        UnreachableError."""
        if self._shared:
            self._limits.begin_day(self._clock())
            interrupted = self._limits.prices.priced(call.interrupted)
            if not await self._shared.reserve(call, self._limits.holding(call.payer), interrupted):
                return False
            self._limits.set_aside(call)
        elif not self._limits.reserve(call, self._clock()):
            return False
        self._changed()
        return True

    async def stored(self) -> None:
        await self._store.stored()

    def settle(self, call: Reserved | None, spent: Spent | None, payer: Payer, purpose: Purpose) -> Spent | None:
        """Gives back what was reserved, and counts what was used of it. Returns that with its price."""
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
        self._store.changed(days=self._limits.ledger.has_turned)

    async def given_back(self) -> None:
        """Waits until somebody gives back what they had reserved, or may have done so in another process."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_AGAIN_SECONDS if self._shared else None):
                await self._given_back.wait()

    @property
    def turn_tokens(self) -> int | None:
        return self._limits.turn_tokens


class Purse:
    """What calls beside a turn's own draw on."""

    def __init__(self, budget: Budget, purpose: Purpose) -> None:
        self._budget = budget
        self._purpose = purpose

    async def call(self, tokens: int, output: int, models: Sequence[str]) -> Callable[[Spent], object] | None:
        """Reserves so many tokens for one call, by whoever pays here; None where they are not to be had now.

        output: of these, the model's own. Returned is what has to be told what it used.
        """
        payer = PAYER.get()
        call = self._budget.call(payer, tokens, output, models, self._purpose)
        try:
            if self._budget.reached(payer) or not await self._budget.reserve(call):
                return None
        except UnreachableError:
            return None
        try:
            await self._budget.stored()
        except asyncio.CancelledError:
            self._budget.settle(call, None, payer, self._purpose)
            raise
        return lambda spent: self._budget.settle(
            call, spent if spent.tokens or spent.micros else None, payer, self._purpose
        )


class Allowance:
    """What one turn may use: reserved before each call of its model, counted behind it."""

    def __init__(self, budget: Budget, payer: Payer) -> None:
        self._budget = budget
        self._payer = payer
        self._call: Reserved | None = None
        self._counted = 0  # of what the turn has used since it was asked, or asked anew
        self._before = 0
        self._spent: list[Spent] = []  # since then
        self.all_spent: list[Spent] = []
        self.unseen = 0  # of what is reserved

    async def reserve(self, tokens: int, unseen: int = 0, *, output: int = 0, models: Sequence[str] = ()) -> Cap | None:
        """Reserves what the next call may use; waits while others have that. Returns the cap that is reached.

        output: of the tokens, the model's own. unseen: so many that it may use beyond what is known of it; of a turn
        that may use less, what is left. models: who may answer it.
        """
        if self._budget.turn_tokens is not None:
            left = self._budget.turn_tokens - self._before - self._counted - tokens
            if left < 0:
                return Cap.TURN
            unseen = min(unseen, left)
        self.unseen = unseen
        self.count(self._counted)
        call = self._budget.call(self._payer, tokens + unseen, output + unseen, models, Purpose.ANSWER)
        while not (reached := self._budget.reached(self._payer)):
            try:
                is_reserved = await self._budget.reserve(call)
            except UnreachableError:
                return Cap.UNKNOWN
            if is_reserved:
                self._call = call
                await self._budget.stored()
                return None
            await self._budget.given_back()
        return reached.cap

    def count(self, tokens: int, spent: Spent | None = None) -> None:
        """So many the turn has used by now, the last of them as spent says; what was reserved is given back."""
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
        """So many it has used when it ended, or is asked anew, and whether that was an answer. Returns them."""
        self.count(tokens)
        if self._spent and is_answer:
            self._budget.answered(self._payer, self._spent[-1].model)
        elif self._spent and is_declined:
            self._budget.declined(self._payer, self._spent)
        self._spent = []
        self._before, self._counted = self._before + self._counted, 0
        return tokens

    def spent_budget(self) -> Reached | None:
        """The budget that keeps the turn from going on."""
        return self._budget.reached(self._payer)

    def managers_notice(self) -> Reached | None:
        """The budget of which those who manage the place are to be told now: four fifths of it are used."""
        reached = self._budget.reached(self._payer, explicit=False) if self._payer.guild_id else None
        if reached and reached.cap is not Cap.PERSON and self._budget.tells_managers(reached, self._payer):
            return reached
        return None
