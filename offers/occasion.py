"""What an offer can be made about, and what looks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pydantic import AwareDatetime

from state.message import MessageRecord

LINK = "{link}"
"""In an occasion's line: where the address of its subject belongs."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a mini-app wants to come back to, once: its own stored record. due: aware."""

    id: str
    miniapp_id: str
    text: str
    query: str
    about: str
    user_id: int
    source_id: int
    due: AwareDatetime


@dataclass(frozen=True, slots=True)
class Occasion:
    """What an offer can be made about.

    trigger: the trigger's id; user_id: to whom; line: what the offer says, one short line; evidence: why, in words for
    the log and /why, without any message's text. subject: the message that a Yes has answered, None of a note.

    The line may hold LINK. Fill it in with `str.replace`: a note's text may hold any braces.
    """

    trigger: str
    user_id: int
    line: str
    evidence: str
    subject: MessageRecord | None = None
    note: Note | None = None

    def is_about_same(self, other: Occasion) -> bool:
        """Whether it is the same one, be it some seconds later."""
        return (self.trigger, self.subject, self.note) == (other.trigger, other.subject, other.note)


class Channel(Protocol):
    """What a trigger sees of a channel."""

    @property
    def messages(self) -> Sequence[MessageRecord]:
        """People's, oldest first, those of the last hour at most."""

    @property
    def unanswered(self) -> Sequence[MessageRecord]:
        """Those of them that nobody has answered, nor we have offered to, newest first."""

    @property
    def notes(self) -> Sequence[Note]: ...


class Trigger(Protocol):
    """One kind of occasion."""

    @property
    def id(self) -> str: ...

    def looks(self, message: MessageRecord) -> datetime | None:
        """When to look at the channel because of this message; None: no need."""

    def due(self, channel: Channel, now: datetime) -> Occasion | None:
        """What there is to offer now; None: nothing. Pure."""
