"""What a mini-app is: what it is given, what it gives back, and what it is told.

The names and the forms are those of the document "Conversation State Manager".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from pydantic import JsonValue

from delivery.split import is_blank
from state.prompts import Ask, ConversationStateError, modernised, read_soft_context, read_state

ChatGuid = int | str
"""A channel's id."""

running: ContextVar[str] = ContextVar("running", default="a mini-app")
"""The id of the mini-app whose turn it is, by which errors of its responses name it."""


@dataclass(frozen=True, slots=True, init=False)
class MiniAppResponse:
    """What a mini-app says, and what it awaits from then on.

    conversation_state: as it was given, an old focus_state in the new form. ask: what it asks for, read. soft_context:
    that within conversation_state, and over it the one given by itself.
    """

    message: str
    conversation_state: Mapping[str, Any] | None
    soft_context: Mapping[str, Any]
    ask: Ask | None

    def __init__(
        self,
        message: str,
        conversation_state: Mapping[str, Any] | None = None,
        soft_context: Mapping[str, Any] | None = None,
        focus_state: Mapping[str, Any] | None = None,
    ) -> None:
        """focus_state is the old form, and deprecated.

        Raises ValueError for a message without visible text, and ConversationStateError, which is one, for a state that
        cannot be awaited, for a soft context of more than 20 keys or 200 characters in one, and for values in either
        that JSON has no form for.
        """
        app = running.get()
        if not isinstance(message, str) or is_blank(message):
            raise ValueError(f"{app}: a message needs text: {message!r:.80} has none.")
        _check_mapping("conversation_state", conversation_state)
        _check_mapping("soft_context", soft_context)
        if focus_state is not None:
            _check_mapping("focus_state", focus_state)
            _check_mapping("the context of focus_state", focus_state.get("context"))
            if conversation_state is not None:
                raise ConversationStateError(f"{app}: a response has conversation_state or focus_state, not both.")
            conversation_state = modernised(focus_state)
        ask, within = (None, {}) if conversation_state is None else read_state(conversation_state, app)
        known = read_soft_context({**within, **(soft_context or {})}, ask.source_handler if ask else app)
        object.__setattr__(self, "message", message)
        object.__setattr__(self, "conversation_state", conversation_state)
        object.__setattr__(self, "soft_context", known)
        object.__setattr__(self, "ask", ask)


def _check_mapping(name: str, given: object) -> None:
    if given is not None and not isinstance(given, Mapping):
        raise ConversationStateError(f"{running.get()}: {name} must be a mapping, and {given!r:.80} is none.")


@dataclass(frozen=True, slots=True)
class MiniAppContext:
    """One message for a mini-app. text: the user's own words, or the label of what they clicked; now: aware.

    focus_resolution: how the message resolves what the mini-app had asked, with the document's keys: `type`,
    `selection_index` (from 1), `selected_option`, `metadata_type`, `content`, `target_item_id`, `confirmed`; None for a
    message that resolves nothing. source_handler and asked: the `source_handler` and the `context` of that question.
    """

    text: str
    chat_guid: ChatGuid
    user_id: int
    user_name: str
    message_id: int
    now: datetime
    soft_context: Mapping[str, Any] = field(default_factory=dict)
    focus_resolution: Mapping[str, Any] | None = None
    source_handler: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)


class MiniApp(ABC):
    """A structured flow beside the free conversation.

    id: lower case letters, digits and underscores, not "agent"; it begins the source_handler of what is asked.
    threshold: what `wants` must reach for a message to come here.
    """

    id: ClassVar[str]
    threshold: ClassVar[float] = 0.5

    @abstractmethod
    def wants(self, text: str, soft_context: Mapping[str, Any]) -> float:
        """How sure it is, from 0 to 1, that a message is meant for it. Lexical: asked of every message to answer."""

    @abstractmethod
    async def handle(self, context: MiniAppContext) -> MiniAppResponse:
        """Takes a turn. It has 10 s; what it raises the user never sees, nor what it says beyond 12,000 characters."""

    def forget(self, chat_guid: ChatGuid, author_id: int | None) -> None:  # noqa: B027 - most keep nothing
        """Drops what one person said there, or, with None, everybody."""

    def retract(self, chat_guid: ChatGuid, message_ids: Collection[int]) -> None:  # noqa: B027 - most keep nothing
        """Drops what these messages said: they were deleted in Discord."""

    def expire(self, chat_guid: ChatGuid, before: int) -> None:  # noqa: B027 - most keep nothing
        """Drops what messages said whose ids are below this one: they are older than anything is kept."""

    def stored(self, chat_guid: ChatGuid) -> JsonValue | None:  # noqa: ARG002 - most keep nothing
        """What it keeps of a channel, for restore() after a restart; None where it keeps nothing. Asked often."""
        return None

    def restore(self, chat_guid: ChatGuid, stored: JsonValue) -> None:  # noqa: B027 - most keep nothing
        """Takes back what stored() gave, perhaps that of an older version. What it raises is logged."""
