"""The stored transcript of a conversation.

The fields, ids and operations are those of the document "State Management": operations return a new Session and leave
the old one unchanged; only `add_message` changes it in place.
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
    """A session that another version of this program wrote. It must not be changed."""


class Recorder(Protocol):
    """Stores a session's messages as they are added."""

    def record(self, session: Session, message: Message) -> None:
        """Adds a message and stores it. Raises SessionError, but not when the disk fails."""


class SessionForm(BaseModel):
    """A session as JSON, its messages not yet checked."""

    model_config = ConfigDict(extra="forbid", strict=True)

    version: Literal[1] = 1
    id: str = Field(min_length=1)
    created_at: Timestamp
    last_active: Timestamp
    message_count: int = 0  # for readers of the first line only
    metadata: dict[str, Any]
    messages: list[Any]


@dataclass
class Session:
    """A transcript. Times are ISO 8601. recorder: stores what is added to it; None: it is not stored."""

    id: str = field(default_factory=lambda: new_id(datetime.now(UTC)))
    messages: list[Message] = field(default_factory=list)
    created_at: str = field(default_factory=now)
    last_active: str = field(default_factory=now)
    metadata: dict[str, Any] = field(default_factory=dict)
    recorder: Recorder | None = field(default=None, init=False, repr=False, compare=False)
    _places: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def tokens(self) -> int:
        """Tokens of all messages: as counted by the provider where known, else estimated."""
        return sum(message.size for message in self.messages)

    def add_message(self, message: Message) -> None:
        """Adds a message, or replaces the one with the same id.

        In a stored session, raises SessionError for one that cannot be stored, and adds nothing.
        """
        if self.recorder:
            self.recorder.record(self, message)
        else:
            self.take(message, now())

    def take(self, message: Message, last_active: str) -> None:
        """Adds a message without storing it: it is stored already, or the caller stores it."""
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
        """Returns a session with only the messages of these categories, or those for which the function holds."""
        if callable(wanted):
            return self._with([message for message in self.messages if wanted(message)])
        return self._with([message for message in self.messages if message.category in wanted])

    def trim(self, max_tokens: int) -> Session:
        """Returns a session of at most max_tokens, or of the system messages alone where these are more.

        Tool results are dropped first, then dialogue, then context, each oldest first. A tool's result never stays
        without its call: a call ranks as the most important of its results, and is dropped together with them.
        """
        gone = left_out(self.messages, max_tokens)
        return self._with([message for place, message in enumerate(self.messages) if place not in gone])

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name, and the version of this form."""
        messages = [message.to_dict() for message in self.messages]
        return {"version": VERSION, **self.header(), "messages": messages}

    def header(self) -> dict[str, Any]:
        """The fields that a list of sessions shows."""
        return {
            "id": self.id,
            "created_at": self.created_at,
            "last_active": self.last_active,
            "message_count": len(self.messages),
            "metadata": self.metadata,
        }

    @classmethod
    def from_dict(cls, fields: Any) -> Session:
        """Reads what `to_dict` returns. Of messages with the same id the last counts.

        Raises VersionError for another version, and SessionError where any part of it cannot be read.
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
