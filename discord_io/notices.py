"""Notices to the owner in a channel of theirs: a nearly spent budget, a failing model, a lost permission."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Protocol

import structlog
from discord.utils import format_dt
from pydantic import JsonValue, TypeAdapter

from activity import Activity, Ending, Fault, FaultKind, Observer, TurnEnded
from discord_io.channel_wire import PostError, Wires
from setting_values import Scope
from state.limits import Limits
from state.spending import Payer, Purpose, Spent

log = structlog.get_logger()

EVERY = timedelta(hours=1)
FAILING = timedelta(minutes=5)
MOST_TOLD = 1_000  # budgets remembered as told
NOBODY = frozenset({0})
TOO_LITTLE = "If that is too little, raise BUDGETS; /usage of:server shows what used it."


class Notice(StrEnum):
    """What a notice is about; of each there is at most one an hour."""

    NEAR = "A budget is nearly spent"
    SPENT = "A budget is spent"
    MODEL = "The model fails"
    PERMISSION = "A permission is missing"


Budget = tuple[Notice, str, int]
"""A notice about a budget: the notice, the limit in words, and the guild; 0: all together."""


@dataclass(frozen=True, slots=True)
class Stored:
    """posted: when each notice was last posted. told: the budgets told of, and until when that is not repeated."""

    posted: dict[Notice, datetime]
    told: list[tuple[Notice, str, int, datetime]]


STORED = TypeAdapter(Stored)


class Claims(Protocol):
    """Lets one of several processes do something for all."""

    async def claim(self, what: str, seconds: int) -> bool:
        """Whether this process is to do it, once in so many seconds."""

    async def give_up(self, what: str) -> None:
        """Gives up a claim: it was not done after all."""


class Notices(Observer):
    """channel_id: where notices are posted. limits: the budgets. activity: its clock is used. on_change: called when
    the stored state has changed. claims: prevents other processes from posting the same; None: there are none.
    """

    def __init__(
        self,
        channel_id: int,
        wires: Wires,
        limits: Limits,
        activity: Activity,
        on_change: Callable[[], None],
        claims: Claims | None = None,
    ) -> None:
        self._claims = claims
        self._channel_id = channel_id
        self._wires = wires
        self._limits = limits
        self._now = activity.now
        self._on_change = on_change
        self._posted: dict[Notice, datetime] = {}
        self._told: OrderedDict[Budget, datetime] = OrderedDict()  # budgets told of, and until when
        self._failing_since: datetime | None = None
        self._waiting: asyncio.Queue[tuple[Notice, str, str, Budget | None]] = asyncio.Queue()

    async def keep(self) -> None:
        """Posts notices, until cancelled."""
        while True:
            notice, nonce, text, budget = await self._waiting.get()
            until = self._told.get(budget, self._now() + EVERY) if budget else self._now() + EVERY
            what, seconds = ":".join(map(str, budget or [notice])), (until - self._now()) // timedelta(seconds=1)
            if self._claims and not await self._claims.claim(what, seconds):
                continue
            try:
                await self._wires.open(0, self._channel_id).send(text, nonce=nonce, reply_to=None)
            except PostError as error:
                log.warning("notice_not_posted", channel=self._channel_id, problem=error.problem, detail=str(error))
                if self._claims:
                    await self._claims.give_up(what)
                if budget:  # tried again in an hour
                    self._told.pop(budget, None)
                    self._on_change()

    def called(self, payer: Payer, purpose: Purpose, spent: Spent) -> None:  # noqa: ARG002 - what is left is looked at
        # All guilds' budgets and those of the payer's guild, without those that the guild has set itself.
        exempt = Payer(payer.guild_id, NOBODY, exempt=NOBODY)
        for reached in self._limits.standing(self._now(), exempt):
            whose = payer.guild_id if reached.limit.scope is Scope.GUILD else 0
            notice = Notice.SPENT if reached.is_spent else Notice.NEAR
            key: Budget = (notice, reached.limit.in_words(), whose)
            if reached.used * 5 < reached.limit.amount * 4 or self._told.get(key, self._now()) > self._now():
                continue
            at = f"the server of <#{payer.channel_id}>" if whose else "everybody together"
            used = f"All of {key[1]} for {at} is used, and I answer nobody there."
            if notice is Notice.NEAR:
                used = f"Four fifths of {key[1]} for {at} are used, and I answer only those who call me."
            if self._post(notice, f"{used} It is renewed {format_dt(reached.resets_at, 'R')}. {TOO_LITTLE}", key):
                self._told[key] = reached.resets_at
                if len(self._told) > MOST_TOLD:
                    self._told.popitem(last=False)

    def turn_ended(self, turn: TurnEnded) -> None:
        if turn.model and turn.ending in (Ending.ANSWERED, Ending.DECLINED):
            self._failing_since = None

    def failed(self, fault: Fault) -> None:
        if fault.kind is FaultKind.PERMISSION:
            self._post(Notice.PERMISSION, f"{fault.says} It is about <#{fault.channel_id}>.")
        elif fault.kind is FaultKind.MODEL and fault.code not in NOT_THE_MODELS:
            self._failing_since = self._failing_since or fault.at
            minutes = (fault.at - self._failing_since) // timedelta(minutes=1)
            if fault.at - self._failing_since >= FAILING:
                says = f"No question was answered for {minutes} minutes. {fault.says}"
                self._post(Notice.MODEL, f"{says} `python bot.py doctor` asks it, and says more.")

    def _post(self, notice: Notice, text: str, budget: Budget | None = None) -> bool:
        """Has it posted, unless there was one of its kind less than an hour ago."""
        now = self._now()
        if notice in self._posted and abs(now - self._posted[notice]) < EVERY:
            return False
        self._posted[notice] = now
        self._waiting.put_nowait((notice, f"{notice.name}-{now.timestamp():.0f}", f"**{notice}.** {text}", budget))
        self._on_change()
        return True

    def to_store(self) -> Callable[[], bytes]:
        """Copies which notices were posted, as far as they still matter. Returns a function that encodes the copy as
        JSON for restore()."""
        now = self._now()
        told = [(*budget, until) for budget, until in self._told.items() if until > now]
        return partial(STORED.dump_json, Stored({**self._posted}, told))

    def restore(self, stored: JsonValue) -> None:
        """Adds what to_store() encoded. Raises ValueError."""
        read = STORED.validate_python(stored)
        self._posted |= {what: max(at, self._posted.get(what, at)) for what, at in read.posted.items()}
        self._told.update(((notice, limit, whose), until) for notice, limit, whose, until in read.told)


NOT_THE_MODELS = {"over_budget", "turn_cap", "too_long", "rejected", "withheld"}
"""Failures that do not mean that the model fails for others."""
