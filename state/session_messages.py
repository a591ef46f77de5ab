"""The messages of a stored transcript, and the order in which they are dropped to fit a token limit.

The names, fields and ids are those of the document "State Management".
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

CHARACTERS_PER_TOKEN = 4
MEDIA_TOKENS = 1_000  # about what providers count for an image of usual size


class SessionError(ValueError):
    """A message or session that cannot be stored. Its text is one sentence."""


class MessageCategory(Enum):
    """What a message is for. Dropped first: SYSTEM_OUTPUT (tool results), then DIALOG, then CONTEXT; SYSTEM never."""

    SYSTEM = 1
    CONTEXT = 2
    DIALOG = 3
    SYSTEM_OUTPUT = 4


def now() -> str:
    return datetime.now(UTC).isoformat()


def _as_iso(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Timestamp = Annotated[str, AfterValidator(_as_iso)]
"""ISO 8601."""


class MessageForm(BaseModel):
    """A message as JSON."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: str
    content: Any
    category: Literal["SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT"]
    id: str = ""
    timestamp: Timestamp = ""
    metadata: dict[str, Any] = {}
    tokens: int = Field(default=0, ge=0)


@dataclass(frozen=True)
class Message:
    """One message.

    content: text, or parts as a model's API has them, such as {"type": "image_url", "image_url": {...}}; any JSON,
    stored unchanged. timestamp: ISO 8601. tokens: as counted by the provider; 0: unknown.
    """

    role: str
    content: Any
    category: MessageCategory
    id: str = field(default_factory=lambda: f"msg_{uuid.uuid4().hex[:8]}")
    timestamp: str = field(default_factory=now)
    metadata: dict[str, Any] = field(default_factory=dict)
    tokens: int = 0

    @property
    def size(self) -> int:
        """Its tokens: as counted by the provider, else estimated at 4 characters each."""
        return self.tokens or estimated_tokens(self.content)

    @property
    def calls(self) -> frozenset[str]:
        """Ids of an assistant's tool calls: `tool_calls` in its metadata or content, in the form of OpenAI's API."""
        calls = self._field("tool_calls") if self.role == "assistant" else None
        listed = calls if isinstance(calls, Sequence) else ()
        return frozenset(str(call["id"]) for call in listed if isinstance(call, Mapping) and "id" in call)

    @property
    def call_id(self) -> str:
        """The call that a tool's result belongs to: `tool_call_id` in its metadata or content; else empty."""
        return str(self._field("tool_call_id") or "") if self.role == "tool" else ""

    def to_dict(self) -> dict[str, Any]:
        """Its fields by name, the category by its name."""
        return {
            "role": self.role,
            "content": self.content,
            "category": self.category.name,
            "id": self.id,
            "timestamp": self.timestamp,
            "metadata": self.metadata,
            "tokens": self.tokens,
        }

    @classmethod
    def from_dict(cls, fields: Any) -> Message:
        """Reads what `to_dict` returns. Fields with a default may be missing. Raises SessionError, also for unknown
        fields."""
        try:
            read = MessageForm.model_validate(fields)
        except ValidationError as error:
            raise SessionError(sentence("message", error)) from None
        given = {name: getattr(read, name) for name in read.model_fields_set}
        return cls(**given | {"category": MessageCategory[read.category]})

    def _field(self, key: str) -> Any:
        in_content = self.content.get(key) if isinstance(self.content, Mapping) else None
        return self.metadata.get(key) or in_content


def sentence(what: str, error: ValidationError) -> str:
    """Says what the first error is. Leaves out the value, which does not belong in a log."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"])) or "it"
    return f"This is no {what} of a session: {where} cannot be used ({first['msg']})."


def estimated_tokens(content: Any) -> int:
    """A token for each 4 characters of text, and 1,000 for each image, sound or file."""
    if isinstance(content, str):
        return -(-len(content) // CHARACTERS_PER_TOKEN)
    if isinstance(content, Mapping):
        if isinstance(content.get("text"), str):
            return estimated_tokens(content["text"])
        return MEDIA_TOKENS if "type" in content else sum(map(estimated_tokens, content.values()))
    if isinstance(content, Sequence):
        return sum(map(estimated_tokens, content))
    return 0 if content is None else 1


RANK = {
    MessageCategory.SYSTEM_OUTPUT: 0,
    MessageCategory.DIALOG: 1,
    MessageCategory.CONTEXT: 2,
    MessageCategory.SYSTEM: 3,
}


def left_out(messages: Sequence[Message], max_tokens: int) -> set[int]:
    """The indexes of the messages to drop so that the rest fit max_tokens."""
    ranks = {place: RANK[message.category] for place, message in enumerate(messages)}
    calls: dict[str, int] = {}
    results: dict[int, list[int]] = {}  # the indexes of tool results, by the index of their call
    gone = set()
    for place, message in enumerate(messages):
        calls |= dict.fromkeys(message.calls, place)
        if message.call_id in calls:
            call = calls[message.call_id]
            results.setdefault(call, []).append(place)
            ranks[call] = max(ranks[call], ranks[place])
        elif message.call_id and ranks[place] < RANK[MessageCategory.SYSTEM]:
            gone.add(place)
    over = sum(message.size for place, message in enumerate(messages) if place not in gone) - max_tokens
    for place in sorted(ranks, key=lambda place: (ranks[place], place)):
        if over <= 0 or ranks[place] == RANK[MessageCategory.SYSTEM]:
            break
        going = {place, *results.get(place, ())} - gone
        over -= sum(messages[each].size for each in going)
        gone |= going
    return gone
