"""What happened in a channel, as its people know it and as it stood there: all that is counted later.

Times are seconds by the wall clock of the week.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from playground.model import SILENT, Message


class Kind(StrEnum):
    """What those who manage a channel want of offers."""

    ON = "on all week"
    LATER = "on later in the week"
    OFF_AGAIN = "on, then off"
    TO_AND_FRO = "on and off all the time"
    NEVER = "never asked"


class Answer(StrEnum):
    """What somebody answers to an offer."""

    YES = "yes"
    NO = "no"
    NOT_HERE = "not here"


@dataclass(slots=True)
class Asked:
    """A question, or an error that was pasted. how: what the script does with it; is_fast: in a fast exchange."""

    message: Message
    at: float
    how: str
    answered_at: float | None = None
    deleted_at: float | None = None

    def is_open(self, at: float) -> bool:
        """Whether it stood there without an answer."""
        return not any(over is not None and over <= at for over in (self.answered_at, self.deleted_at))


@dataclass(slots=True)
class Shown:
    """An offer as it stood in the channel. about: the id of the question; None of a note.

    answer: what was answered to it, at when, and the message that what it leads to replies to. gone_at: when it was
    deleted; settled_at: when it had no buttons any more.
    """

    message: Message
    at: float
    about: int | None
    answer: Answer | None = None
    answered_at: float | None = None
    leads_to: int | None = None
    gone_at: float | None = None
    settled_at: float | None = None

    @property
    def over_at(self) -> float | None:
        """None: it is still open."""
        return min((at for at in (self.gone_at, self.settled_at) if at is not None), default=None)

    @property
    def notifies(self) -> bool:
        return bool(self.message.pinged) or not self.message.flags & SILENT


@dataclass(slots=True)
class PersonsMessage:
    """A person's message."""

    at: float
    author_id: int
    gone_at: float | None = None


@dataclass(frozen=True, slots=True)
class Replied:
    """A message of the bot's that is no offer. to: the id of the message that it replies to, and its author's."""

    at: float
    to: int | None
    author_id: int | None


@dataclass(slots=True)
class Record:
    """One channel. switched: when offers were switched on or off. acts: when anybody did anything there."""

    channel_id: int
    kind: Kind
    switched: list[tuple[float, bool]] = field(default_factory=list)
    asked: dict[int, Asked] = field(default_factory=dict)
    said: dict[int, PersonsMessage] = field(default_factory=dict)
    acts: set[float] = field(default_factory=set)
    offers: list[Shown] = field(default_factory=list)
    replies: list[Replied] = field(default_factory=list)

    def is_on(self, at: float) -> bool:
        return next((on for when, on in reversed(self.switched) if when <= at), False)
