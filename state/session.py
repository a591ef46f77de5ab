"""The stored transcript of a conversation.

The fields, ids and operations are those of the document "State Management": operations give a new Session and leave the
old one as it was; only `add_message` records in place.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from state.session_messages import Message, MessageCategory, SessionError, Timestamp, left_out, now, sentence

VERSION = 1

Wanted = Collection[MessageCategory] | Callable[[Message], bool]


class VersionError(SessionError):
    """A session that another version of this program wrote, and that this one must not touch."""


class Recorder(Protocol):
    """Whoever stores a session's messages as they are added."""

    def record(self, session: Session, message: Message) -> None:
        """Adds a message and stores it. Raises SessionError, and never for a disk's sake."""


class SessionForm(BaseModel):
    """A session as JSON, its messages unread."""

    model_config = ConfigDict(extra="forbid", strict=True)

    version: Literal[1] = 1
    id: str = Field(min_length=1)
    created_at: Timestamp
    last_active: Timestamp
    message_count: int = 0  # for those who read no further; the messages themselves say it again
    metadata: dict[str, Any]
    messages: list[Any]


@dataclass
class Session:
    """A transcript. Times are ISO 8601. recorder: who stores what is added to it; None where nobody does."""

    id: str = field(default_factory=lambda: new_id(datetime.now(UTC)))
    messages: list[Message] = field(default_factory=list)
    created_at: str = field(default_factory=now)
    last_active: str = field(default_factory=now)
    metadata: dict[str, Any] = field(default_factory=dict)
    recorder: Recorder | None = field(default=None, init=False, repr=False, compare=False)
    _places: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def tokens(self) -> int:
        """As counted by the provider where known, else estimated."""
        return sum(message.size for message in self.messages)

    def add_message(self, message: Message) -> None:
        """Records it; in place of the one of the same id, if there is one.

        Raises SessionError, having recorded nothing, for one that cannot be stored in a session that is.
        """
        if self.recorder:
            self.recorder.record(self, message)
        else:
            self.take(message, now())

    def take(self, message: Message, last_active: str) -> None:
        """Adds it as it was recorded before, or is recorded by the caller."""
        self.last_active = last_active
        if len(self._places) != len(self.messages):  # somebody changed the list
            self._places = {known.id: place for place, known in enumerate(self.messages)}
        place = self._places.setdefault(message.id, len(self.messages))
        if place < len(self.messages) and self.messages[place].id == message.id:
            self.messages[place] = message
        else:
            self._places[message.id] = len(self.messages)
            self.messages.append(message)

    def filter(self, wanted: Wanted) -> Session:
        """One with only the messages of these categories, or only those that are wanted."""
        if callable(wanted):
            return self._with([message for message in self.messages if wanted(message)])
        return self._with([message for message in self.messages if message.category in wanted])

    def trim(self, max_tokens: int) -> Session:
        """One that takes no more tokens than this, as far as system messages let it.

        Tool results go first, then dialogue, oldest first, then context. A tool's result never stays without its call:
        a call counts for as much as the most important of its results, and takes them with it.
        """
        gone = left_out(self.messages, max_tokens)
        return self._with([message for place, message in enumerate(self.messages) if place not in gone])

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name, and the version of this form."""
        messages = [message.to_dict() for message in self.messages]
        return {"version": VERSION, **self.header(), "messages": messages}

    def header(self) -> dict[str, Any]:
        """What a list of sessions shows of it."""
        return {
            "id": self.id,
            "created_at": self.created_at,
            "last_active": self.last_active,
            "message_count": len(self.messages),
            "metadata": self.metadata,
        }

    @classmethod
    def from_dict(cls, fields: Any) -> Session:
        """Undoes `to_dict`. Of messages with the same id the last counts.

        Raises VersionError for another version, SessionError for what is no session; nothing is half read.
        """
        version = fields.get("version", VERSION) if isinstance(fields, dict) else VERSION
        if version != VERSION:
            raise VersionError(f"This is a session of version {version!r}: this program knows version {VERSION} only.")
        try:
            form = SessionForm.model_validate(fields)
        except ValidationError as error:
            raise SessionError(sentence("document", error)) from None
        session = cls(form.id, [], form.created_at, form.last_active, form.metadata)
        for message in form.messages:
            session.take(Message.from_dict(message), form.last_active)
        return session

    def _with(self, messages: list[Message]) -> Session:
        return replace(self, messages=messages, metadata=dict(self.metadata))


def new_id(at: datetime) -> str:
    return f"session_{at:%Y%m%d_%H%M%S}_{uuid.uuid4().hex[:8]}"
