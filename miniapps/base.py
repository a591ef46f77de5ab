"""What a mini-app is: what it is given, what it gives back, and what it is told.

The names and the forms are those of the document "Conversation State Manager".
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar

from pydantic import JsonValue

from discord_io.split import is_blank, length
from state.prompts import Ask, ConversationStateError, modernised, read_soft_context, read_state

ChatGuid = int | str
"""A channel's id."""

MAX_FOLLOW_UP = 200  # characters of each text
SOONEST, LATEST = timedelta(minutes=10), timedelta(days=3)

running: ContextVar[str] = ContextVar("running", default="a mini-app")
"""The id of the mini-app whose turn it is, by which errors of its responses name it."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What a mini-app wants to come back to, once, where offers are on.

    text: the one short line that is offered; query: what a Yes to it means, as if the user had said it to the mini-app;
    after: how long from now, 10 minutes to 3 days; about: by which the mini-app knows what it is about (still_stands).
    Each text has up to 200 characters. Raises ConversationStateError for anything else, and for a text or query in
    which nothing is visible.
    """

    text: str
    query: str
    after: timedelta
    about: str = ""

    def __post_init__(self) -> None:
        for name, given in (("text", self.text), ("query", self.query), ("about", self.about)):
            # Half a surrogate pair cannot be stored.
            is_text = isinstance(given, str) and not re.search("[\ud800-\udfff]", given)
            if not is_text or length(given) > MAX_FOLLOW_UP:
                need = f"text of up to {MAX_FOLLOW_UP} characters"
                raise _refused(f"the {name} of a follow-up must be {need}, and {given!r:.80} is none")
            if is_blank(given) and name != "about":
                raise _refused(f"the {name} of a follow-up is blank")
        if self.text.splitlines() != [self.text]:
            raise _refused(f"the text of a follow-up must be one line, and {self.text!r:.80} is not")
        if not isinstance(self.after, timedelta) or not SOONEST <= self.after <= LATEST:
            raise _refused(
                f"the follow-up's time must be a timedelta of 10 minutes to 3 days, and {self.after!r:.80} is none"
            )


@dataclass(frozen=True, slots=True, init=False)
class MiniAppResponse:
    """What a mini-app says, and what it awaits from then on.

    conversation_state: as it was given, an old focus_state in the new form. ask: what it asks for, read. soft_context:
    that within conversation_state, and over it the one given by itself. follow_up: what it wants to come back to.
    """

    message: str
    conversation_state: Mapping[str, Any] | None
    soft_context: Mapping[str, Any]
    ask: Ask | None
    follow_up: FollowUp | None

    def __init__(
        self,
        message: str,
        conversation_state: Mapping[str, Any] | None = None,
        soft_context: Mapping[str, Any] | None = None,
        focus_state: Mapping[str, Any] | None = None,
        *,
        follow_up: FollowUp | None = None,
    ) -> None:
        """focus_state is the old form, and deprecated.

        Raises ValueError for a message without visible text, and ConversationStateError, which is one, for a state that
        cannot be awaited, for a soft context of more than 20 keys or 200 characters in one, for values in either that
        JSON has no form for, and for a follow-up that is none.
        """
        app = running.get()
        if not isinstance(message, str) or is_blank(message):
            raise ValueError(f"{app}: a message needs text: {message!r:.80} has none.")
        _check_mapping("conversation_state", conversation_state)
        _check_mapping("soft_context", soft_context)
        if follow_up is not None and not isinstance(follow_up, FollowUp):
            raise _refused(f"follow_up must be a FollowUp, and {follow_up!r:.80} is none")
        if focus_state is not None:
            _check_mapping("focus_state", focus_state)
            _check_mapping("the context of focus_state", focus_state.get("context"))
            if conversation_state is not None:
                raise _refused("a response has conversation_state or focus_state, not both")
            conversation_state = modernised(focus_state)
        ask, within = (None, {}) if conversation_state is None else read_state(conversation_state, app)
        known = read_soft_context({**within, **(soft_context or {})}, ask.source_handler if ask else app)
        for name, value in zip(
            MiniAppResponse.__slots__, (message, conversation_state, known, ask, follow_up), strict=True
        ):
            object.__setattr__(self, name, value)


def _check_mapping(name: str, given: object) -> None:
    if given is not None and not isinstance(given, Mapping):
        raise _refused(f"{name} must be a mapping, and {given!r:.80} is none")


def _refused(why: str) -> ConversationStateError:
    return ConversationStateError(f"{running.get()}: {why}.")


@dataclass(frozen=True, slots=True)
class MiniAppContext:
    """One message for a mini-app. text: the user's own words, or the label of what they clicked; now: aware.

    focus_resolution: how the message resolves what the mini-app had asked, with the document's keys: `type`,
    `selection_index` (from 1), `selected_option`, `metadata_type`, `content`, `target_item_id`, `confirmed`; None for a
    message that resolves nothing. source_handler and asked: the `source_handler` and the `context` of that question.
    about: that of the follow-up which the user has just taken up, its query being the text; else empty.
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
    about: str = ""


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

    def still_stands(self, chat_guid: ChatGuid, about: str) -> bool:  # noqa: ARG002 - of most it always does
        """Whether what a follow-up was about is still so; asked before it is offered."""
        return True

    def said(self, chat_guid: ChatGuid) -> Mapping[int, int]:  # noqa: ARG002 - most keep nothing
        """Whose words it keeps there: the authors' ids, by the ids of the messages in which they said them."""
        return {}

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
