"""A prompt as a value, and its question: which kind of answer is awaited, among which options.

The kinds, the names and the form of `conversation_state` are those of the document "Conversation State Manager".
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import PydanticCustomError

from understanding.choice_text import Option

ChatGuid = int | str  # a channel's id
MAX_KEYS = 20  # of soft context, which is passed on with each message
MAX_KNOWN = 200  # characters of each key and of each value as text
GO_ON = "Go on"
ENDS_WITH = "ends_with"  # in the context: the last words of a cut answer that the bot can go on with
MAX_OPTIONS = 100  # a typed answer can choose among so many; buttons and menus have at most 25
# orjson would write dataclasses and dates as text, which is not what the asker would expect back.
JSON_ONLY = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


class AwaitingType(StrEnum):
    """What kind of answer a prompt awaits."""

    SELECTION = "awaiting_selection"
    METADATA = "awaiting_metadata"
    CONFIRMATION = "awaiting_confirmation"
    INPUT = "awaiting_input"


class ResolutionType(StrEnum):
    """How a reply resolved a prompt."""

    SELECTION = "selection"
    METADATA = "metadata"
    CONFIRMATION = "confirmation"
    INPUT = "input"
    CANCEL = "cancel"


class ConversationStateError(ValueError):
    """A `conversation_state` that cannot be used. Its text is one sentence that names who set it."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What a prompt awaits once it is posted.

    context: data that the asker gets back with the answer. source_handler: who asked, as "mini-app.handler".
    anyone: everybody in the channel may answer, not only the person asked.
    """

    awaiting_type: AwaitingType
    options: tuple[Option, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    source_handler: str = ""
    anyone: bool = False

    @classmethod
    def to_go_on(cls, ends_with: str, source_handler: str) -> Ask:
        """Offers to go on with an answer that was cut, which ends with these words."""
        return cls(AwaitingType.SELECTION, (GO_ON,), {ENDS_WITH: ends_with}, source_handler)

    @property
    def ends_with(self) -> str:
        """The last words of the answer that it offers to go on with; empty: it is no such offer but a question."""
        return str(self.context.get(ENDS_WITH, ""))

    @property
    def labels(self) -> tuple[str, ...]:
        """The options as they are shown: by name, with attributes added where names are equal.

        Added are those attributes that are text and differ among options of that name: "Shake Shack (Shibuya)".
        """
        count = Counter(map(_name, self.options))
        return tuple(_name(o) if count[_name(o)] == 1 else _told_apart(o, self.options) for o in self.options)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question of ours that awaits a reply. user_id: who may answer; None: anyone. deadline: aware.

    miniapp_id: who asked; None: the agent. question: its text in the channel. guild_id, message_id: where it is shown;
    None: not yet. source_id, source_user_id: the message that led to it, and its author; source_parts: the earlier
    messages of its burst. misses: how many messages of its user were answered without resolving it. people: all whose
    questions it comes from, so that the answer to its reply is for them, too. said: what the mini-app kept as it asked,
    and so may have in the question, as message id -> author id.
    """

    id: str
    chat_guid: ChatGuid
    user_id: int | None
    ask: Ask
    miniapp_id: str | None
    opened_at: AwareDatetime
    deadline: AwareDatetime
    question: str = ""
    guild_id: int = 0
    message_id: int | None = None
    source_id: int = 0
    source_user_id: int | None = None
    misses: int = 0
    source_parts: tuple[int, ...] = ()
    people: frozenset[int] = frozenset()
    said: Mapping[int, int] = field(default_factory=dict)


def as_json(value: object) -> JsonValue:
    """A copy of the value as it would come back from a store: a tuple as a list, the member of an enum as its value.

    Raises ValueError for what JSON cannot hold, such as a key that is not a string.
    """
    try:
        read: JsonValue = orjson.loads(orjson.dumps(value, option=JSON_ONLY))
    except TypeError as error:
        raise PydanticCustomError("json", "it has no form in JSON: {why}", {"why": str(error)}) from None
    return read


JsonOption = Annotated[str | dict[str, Any], AfterValidator(as_json)]
JsonObject = Annotated[dict[str, Any], AfterValidator(as_json)]


class ConversationState(BaseModel):
    """The mapping in which a response says what it awaits, and what the conversation is about."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    awaiting_type: AwaitingType
    options: list[JsonOption] = Field(default_factory=list, max_length=MAX_OPTIONS)
    context: JsonObject = Field(default_factory=dict)
    source_handler: str = ""
    soft_context: dict[str, Any] = Field(default_factory=dict)
    anyone: bool = False


class _Known(BaseModel):
    soft_context: JsonObject


def read_state(state: Mapping[str, Any], asker: str) -> tuple[Ask, Mapping[str, Any]]:
    """Reads the question and the soft context from a `conversation_state`.

    asker: who set it, for errors; its source_handler, if set, is named instead.
    Raises ConversationStateError for an unknown awaiting_type or key; for options that are missing, unnamed, whose name
    is not a string, or more than 100; for options with another awaiting_type than a selection; for what JSON cannot
    hold; and as read_soft_context does.
    """
    asker = str(state.get("source_handler") or asker)
    try:
        read = ConversationState.model_validate(dict(state))
    except ValidationError as error:
        raise ConversationStateError(_sentence(error, asker)) from None
    if bool(read.options) != (read.awaiting_type is AwaitingType.SELECTION):
        need = "needs at least one option" if not read.options else f"takes no options, {AwaitingType.SELECTION} does"
        raise ConversationStateError(f"{asker}: {read.awaiting_type} {need}.")
    names = [option if isinstance(option, str) else option.get("name") for option in read.options]
    if not all(isinstance(name, str) and name.strip() for name in names):
        raise ConversationStateError(f'{asker}: an option has no name: use text, or a mapping with a "name" of text.')
    soft_context = read_soft_context(read.soft_context, asker)
    ask = Ask(read.awaiting_type, tuple(read.options), read.context, read.source_handler or asker, read.anyone)
    return ask, soft_context


def read_soft_context(soft_context: Mapping[str, Any], asker: str) -> Mapping[str, Any]:
    """The soft context as JSON.

    Raises ConversationStateError for more than 20 keys, for a key or value of more than 200 characters, and for what
    JSON cannot hold.
    """
    if len(soft_context) > MAX_KEYS:
        raise ConversationStateError(f"{asker}: soft_context has {len(soft_context)} keys: {MAX_KEYS} are kept.")
    for key, value in soft_context.items():
        if max(len(str(key)), len(str(value))) > MAX_KNOWN:
            raise ConversationStateError(f"{asker}: soft_context {str(key)[:80]!r} is over {MAX_KNOWN} characters.")
    try:
        return _Known.model_validate({"soft_context": dict(soft_context)}).soft_context
    except ValidationError as error:
        raise ConversationStateError(_sentence(error, asker)) from None


def modernised(focus_state: Mapping[str, Any]) -> dict[str, Any]:
    """Converts an old `focus_state` to a `conversation_state`. Warns that the old form is deprecated."""
    warnings.warn(
        "focus_state is deprecated: use conversation_state, with awaiting_type and options at its top level.",
        DeprecationWarning,
        stacklevel=3,
    )
    context = dict(focus_state.get("context") or {})
    new = {"awaiting_type" if key == "focus_type" else key: value for key, value in focus_state.items()}
    return {**new, "options": context.pop("options", []), "context": context}


def _told_apart(option: Option, options: Sequence[Option]) -> str:
    if isinstance(option, str):
        return option
    alike = [other for other in options if not isinstance(other, str) and _name(other) == _name(option)]
    differing = [
        value
        for key, value in option.items()
        if isinstance(value, str) and value and key != "id" and any(other.get(key) != value for other in alike)
    ]
    return f"{_name(option)} ({', '.join(differing)})" if differing else _name(option)


def _name(option: Option) -> str:
    return option if isinstance(option, str) else str(option.get("name") or "")


def _sentence(error: ValidationError, asker: str) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    given = "" if first["type"] == "missing" else f" {str(first['input'])[:80]!r}"
    why = first["msg"][0].lower() + first["msg"][1:]
    remedy = f": use one of {', '.join(AwaitingType)}" if where == "awaiting_type" else f" ({why})"
    return f"{asker}: {where}{given} cannot be used{remedy}."
