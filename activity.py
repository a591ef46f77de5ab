"""What the bot does, told as it happens to whoever counts or shows it: decisions, turns, calls of models, faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import structlog

from decision import LoggedDecision
from state.spending import Payer, Purpose, Spent

log = structlog.get_logger()


class Ending(StrEnum):
    """How a turn ended. Its names are bounded: they are labels of metrics."""

    ANSWERED = "answered"
    DECLINED = "declined"
    STOPPED = "stopped"
    FAILED = "failed"
    UNDELIVERED = "undelivered"


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn that has ended. outcome: the word of the log's `turn_ended`; its ending sums that up.

    agent, model: who answered; empty where nobody did. tools: the names of those that were used. spent: what its calls
    used, in their order. seconds: from when it was begun; first_text: until the first of it stood in the channel, None
    where nothing did.
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
    """Something that went wrong. says: one plain sentence, with nothing of what people said and no secret in it.

    code: one word of a bounded set, such as a failure's kind; guild_id, channel_id: where, 0 for the whole process.
    """

    kind: FaultKind
    code: str
    says: str
    at: datetime
    guild_id: int = 0
    channel_id: int = 0


class Observer:
    """Is told of what the bot does, in the event loop: it returns at once and never raises."""

    def decided(self, entry: LoggedDecision) -> None:
        """A message was decided on, or decided on anew: also what started no conversation, by far the most."""

    def turn_ended(self, turn: TurnEnded) -> None: ...

    def called(self, payer: Payer, purpose: Purpose, spent: Spent) -> None:
        """A model was called, and what it used is counted; with its price where that is known."""

    def failed(self, fault: Fault) -> None: ...

    def stored(self, operation: str, seconds: float) -> None:
        """The store has done this in so long. Told in the store's thread."""


class Activity(Observer):
    """Tells all observers; one that raises costs nobody else anything. now: the time by which it is told."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.now = clock
        self._observers: tuple[Observer, ...] = ()  # a new one each time: the store tells in its own thread

    def watch(self, observer: Observer) -> None:
        self._observers = (*self._observers, observer)

    def unwatch(self, observer: Observer) -> None:
        self._observers = tuple(each for each in self._observers if each is not observer)

    def decided(self, entry: LoggedDecision) -> None:
        for observer in self._observers:  # and not by _tell(): every message of every channel is told
            try:
                observer.decided(entry)
            except Exception:  # what is told goes on, whatever becomes of who looks on
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
            except Exception:  # what is told goes on, whatever becomes of who looks on
                log.exception("observer_broken", observer=type(observer).__name__)

    def fault(self, kind: FaultKind, code: str, says: str, guild_id: int = 0, channel_id: int = 0) -> None:
        """Tells of something that went wrong just now."""
        self.failed(Fault(kind, code, says, self.now(), guild_id, channel_id))


class DecisionListener(Observer):
    """Has a function told of each decision."""

    def __init__(self, listener: Callable[[LoggedDecision], None]) -> None:
        self._listener = listener

    def decided(self, entry: LoggedDecision) -> None:
        self._listener(entry)
