"""The interface of a mini-app: its methods, the context it is given, and its response.

Names and formats are those of the document "Conversation State Manager".
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
"""Id of the mini-app whose turn it is; errors in its responses name it."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A follow-up that a mini-app asks to be offered once later, where offers are on.

    text: the line of the offer; query: what the mini-app is given as the user's words if they accept; after: how long
    from now, 10 minutes to 3 days; about: the mini-app's own key for its subject, passed to still_stands. Each string
    has up to 200 characters. Raises ConversationStateError for anything else, and for a blank text or query.
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
    """A mini-app's answer, and what it awaits from then on.

    conversation_state: as given; an old focus_state in the new form. ask: what it asks for, parsed from that.
    soft_context: that in conversation_state, updated with the soft_context argument. follow_up: to be offered later.
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
        """focus_state: the old form of conversation_state, deprecated.

        Raises ValueError for a message without visible text, and its subclass ConversationStateError for an invalid
        conversation_state, for a soft context of more than 20 keys or with more than 200 characters in one, for values
        that cannot be JSON, and for a follow_up that is no FollowUp.
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

    focus_resolution: how the message answers the mini-app's question, with the document's keys: `type`,
    `selection_index` (from 1), `selected_option`, `metadata_type`, `content`, `target_item_id`, `confirmed`; None: it
    answers none. source_handler and asked: the `source_handler` and the `context` of that question.
    about: if the user has just accepted a follow-up, its `about`, and text is its query; else empty.
    parts: the ids of earlier messages of the user whose words text has, too, as they wrote several in one breath.
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
    parts: tuple[int, ...] = ()


class MiniApp(ABC):
    """A structured flow beside the free conversation.

    id: lower case letters, digits and underscores, not "agent"; the source_handler of its questions begins with it.
    threshold: the score of `wants` from which on it gets a message.
    """

    id: ClassVar[str]
    threshold: ClassVar[float] = 0.5

    @abstractmethod
    def wants(self, text: str, soft_context: Mapping[str, Any]) -> float:
        """Score from 0 to 1 of how sure it is that a message is meant for it.

        Called for every message to answer: look at the words only.
        """

    @abstractmethod
    async def handle(self, context: MiniAppContext) -> MiniAppResponse:
        """Takes a turn, within 10 s. Errors are not shown to the user; a message is cut at 12,000 characters."""

    def still_stands(self, chat_guid: ChatGuid, about: str) -> bool:  # noqa: ARG002 - of most it always does
        """Whether a follow-up still applies; asked before it is offered."""
        return True

    def said(self, chat_guid: ChatGuid) -> Mapping[int, int]:  # noqa: ARG002 - most keep nothing
        """The messages whose words it keeps there, or has in its soft context: message id -> author id.

        With 0: 0 it also keeps something of messages that are gone, which who may not read the history is not told
        either.
        """
        return {}

    def forget(self, chat_guid: ChatGuid, author_id: int | None) -> None:  # noqa: B027 - most keep nothing
        """Drops what one person said there; None: what everybody said."""

    def retract(self, chat_guid: ChatGuid, message_ids: Collection[int]) -> None:  # noqa: B027 - most keep nothing
        """Drops what these messages said: they were edited or deleted in Discord."""

    def expire(self, chat_guid: ChatGuid, before: int) -> None:  # noqa: B027 - most keep nothing
        """Drops what messages with lower ids said: they are older than the retention time."""

    def stored(self, chat_guid: ChatGuid) -> JsonValue | None:  # noqa: ARG002 - most keep nothing
        """What it keeps of a channel, for restore() after a restart; None: nothing. Called often."""
        return None

    def restore(self, chat_guid: ChatGuid, stored: JsonValue) -> None:  # noqa: B027 - most keep nothing
        """Restores what stored() returned, perhaps in an older version. Errors are logged."""
