"""What a mini-app is: what it is given, what it gives back, and what it is told.

The names and the forms are those of the document "Conversation State Manager".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from state.prompts import Ask, ConversationStateError, modernised, read_state

ChatGuid = int | str
"""A channel's id."""


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

        Raises ValueError for a message without text, and ConversationStateError, which is one, for a state that cannot
        be awaited.
        """
        if not isinstance(message, str) or not message.strip():
            raise ValueError(f"A mini-app's message needs text: {message!r} has none.")
        if focus_state is not None:
            if conversation_state is not None:
                raise ConversationStateError("A response has conversation_state or focus_state, not both.")
            conversation_state = modernised(focus_state)
        ask, within = (None, {}) if conversation_state is None else read_state(conversation_state, "a mini-app")
        object.__setattr__(self, "message", message)
        object.__setattr__(self, "conversation_state", conversation_state)
        object.__setattr__(self, "soft_context", {**within, **(soft_context or {})})
        object.__setattr__(self, "ask", ask)


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
        """Takes a turn. It has 10 s; what it raises the user never sees."""

    def forget(self, chat_guid: ChatGuid, author_id: int | None) -> None:  # noqa: B027 - most keep nothing
        """Drops what one person said there, or, with None, everybody."""

    def retract(self, chat_guid: ChatGuid, message_ids: Collection[int]) -> None:  # noqa: B027 - most keep nothing
        """Drops what these messages said: they were deleted in Discord."""
