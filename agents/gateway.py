"""How an agent is reached: what it is given for one turn, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from pydantic_ai.messages import ModelMessage

from conversation import MessageRecord


@dataclass(frozen=True, slots=True)
class Place:
    """Where the bot is, and as whom."""

    bot_name: str
    guild: str
    channel: str


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """One turn. history: what the model was told and said so far; transcript: what was said since, oldest first,
    the questions among it; questions: the messages that want an answer. now: aware."""

    history: Sequence[ModelMessage]
    transcript: Sequence[MessageRecord]
    questions: Sequence[MessageRecord]
    place: Place
    now: datetime


class FailureKind(StrEnum):
    """What went wrong, as far as the person who waits is concerned."""

    BUSY = "busy"
    MISCONFIGURED = "misconfigured"
    REJECTED = "rejected"
    TOO_LONG = "too_long"
    UNAVAILABLE = "unavailable"
    LATE = "late"
    EMPTY = "empty"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. history: replaces the one of the request. was_cut: it grew too long and was ended."""

    text: str
    history: list[ModelMessage]
    tokens: int
    was_cut: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer, or only its beginning. detail: one sentence for the log."""

    kind: FailureKind
    detail: str
    text: str = ""
    tokens: int = 0


class AgentGateway(Protocol):
    """An agent that answers."""

    async def respond(self, request: AgentRequest, show: Callable[[str], None]) -> Answer | Failure:
        """Answers; show is given the whole text so far, each time it grows."""
        ...

    def interrupted(self, request: AgentRequest, text: str) -> Answer:
        """The answer as far as it came when somebody stopped it."""
        ...
