"""Events of the bot, for whoever counts or shows them: decisions, ended turns, model calls, faults, storing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import structlog

from clock import Clock, utc_now
from decision import LoggedDecision
from state.spending import Payer, Purpose, Spent

log = structlog.get_logger()


class Ending(StrEnum):
    """How a turn ended. A fixed set, since the values are labels of metrics."""

    ANSWERED = "answered"
    DECLINED = "declined"
    STOPPED = "stopped"
    FAILED = "failed"
    UNDELIVERED = "undelivered"


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn that has ended. outcome: the outcome in the log line `turn_ended`; ending: the same in fewer categories.

    agent, model: who answered; empty where nobody did. tools: names of the tools used. spent: usage of its model calls,
    in order. seconds: duration of the turn; first_text: seconds until the answer's first text was posted, or None.
    """

    guild_id: int
    channel_id: int
    message_ids: tuple[int, ...]
    ending: Ending
    outcome: str
    at: datetime
    seconds: float
    first_text: float | None = None
    agent: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    spent: tuple[Spent, ...] = ()


class FaultKind(StrEnum):
    """What went wrong, for those who run the bot."""

    MODEL = "model"
    DISCORD = "discord"
    PERMISSION = "permission"
    STORE = "store"
    TOOL = "tool"
    GATEWAY = "gateway"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that went wrong. says: one sentence, without people's words and without secrets.

    code: one word of a fixed set, such as a failure's kind; guild_id, channel_id: where, 0 for the whole process.
    """

    kind: FaultKind
    code: str
    says: str
    at: datetime
    guild_id: int = 0
    channel_id: int = 0


class Observer:
    """Receives events of the bot, in the event loop. Its methods return at once and never raise."""

    def decided(self, entry: LoggedDecision) -> None:
        """A message was decided on, also for a second time. Most decisions are on messages outside conversations."""

    def turn_ended(self, turn: TurnEnded) -> None: ...

    def called(self, payer: Payer, purpose: Purpose, spent: Spent) -> None:
        """A model was called, and its usage counted, with the price where that is known."""

    def failed(self, fault: Fault) -> None: ...

    def stored(self, operation: str, seconds: float) -> None:
        """The store finished an operation in this time. Called in the store's thread."""


class Activity(Observer):
    """Passes events to all observers; one that raises does not affect the others. now: the clock of events."""

    def __init__(self, clock: Clock = utc_now) -> None:
        self.now = clock
        self._observers: tuple[Observer, ...] = ()  # replaced, never changed: the store's thread may be iterating
        self._of_decisions: tuple[Observer, ...] = ()  # those that do something with a decision

    def watch(self, observer: Observer) -> None:
        self._observers = (*self._observers, observer)
        if type(observer).decided is not Observer.decided:
            self._of_decisions = (*self._of_decisions, observer)

    def unwatch(self, observer: Observer) -> None:
        self._observers = tuple(each for each in self._observers if each is not observer)
        self._of_decisions = tuple(each for each in self._of_decisions if each is not observer)

    def decided(self, entry: LoggedDecision) -> None:
        for observer in self._of_decisions:  # not by _tell(), for speed: this is called for every message
            try:
                observer.decided(entry)
            except Exception:  # an observer's error must not affect what it observes
                log.exception("observer_broken", observer=type(observer).__name__)

    def turn_ended(self, turn: TurnEnded) -> None:
        self._tell(lambda observer: observer.turn_ended(turn))

    def called(self, payer: Payer, purpose: Purpose, spent: Spent) -> None:
        self._tell(lambda observer: observer.called(payer, purpose, spent))

    def failed(self, fault: Fault) -> None:
        self._tell(lambda observer: observer.failed(fault))

    def stored(self, operation: str, seconds: float) -> None:
        self._tell(lambda observer: observer.stored(operation, seconds))

    def _tell(self, tell: Callable[[Observer], None]) -> None:
        for observer in self._observers:
            try:
                tell(observer)
            except Exception:  # an observer's error must not affect what it observes
                log.exception("observer_broken", observer=type(observer).__name__)

    def fault(self, kind: FaultKind, code: str, says: str, guild_id: int = 0, channel_id: int = 0) -> None:
        """Reports something that went wrong just now."""
        self.failed(Fault(kind, code, says, self.now(), guild_id, channel_id))
