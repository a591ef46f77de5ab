"""The state that an agent gets back in its next turn, in the two forms of document 004.

The general agent (GPA) keeps nothing itself: it gets back its tool calls and their results. A remote agent (UMS) keeps
the conversation, and needs only its id. A value's keys tell which form it has; it never has those of both.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag, TypeAdapter, ValidationError

GENERAL = "general"
"""The name of the agent that answers unless another is picked."""

VERSION = 1
MAX_ID = 200


class Form(BaseModel):
    """Strict, and JSON types only. Unknown fields are ignored, as later versions may add some."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


class GPAMessages(Form):
    """What the general agent gets back, oldest first, each in pydantic-ai's JSON form."""

    tool_calls: list[JsonValue] = []
    tool_responses: list[JsonValue] = []
    messages: list[JsonValue] = []


class GPAState(Form):
    """The general agent's state: its tool history."""

    v: Annotated[int, Field(ge=VERSION, le=VERSION)] = VERSION
    is_gpa: Literal[True] = True
    gpa_messages: GPAMessages


class UMSState(Form):
    """A remote agent's state: the id that it assigned to the conversation."""

    v: Annotated[int, Field(ge=VERSION, le=VERSION)] = VERSION
    ums_conversation_id: Annotated[str, Field(min_length=1, max_length=MAX_ID)]


def _form(value: Any) -> str | None:
    if isinstance(value, Form):
        return "gpa" if isinstance(value, GPAState) else "ums"
    if not isinstance(value, dict):
        return None
    forms = [form for key, form in (("is_gpa", "gpa"), ("ums_conversation_id", "ums")) if key in value]
    # pydantic would accept 1 for Literal[True].
    return forms[0] if len(forms) == 1 and value.get("is_gpa", True) is True else None


AgentState = Annotated[
    Annotated[GPAState, Tag("gpa")] | Annotated[UMSState, Tag("ums")],
    Discriminator(
        _form,
        custom_error_type="agent_state",
        custom_error_message="it has either is_gpa, which is true, or ums_conversation_id",
    ),
]
"""Either form; a pydantic model with a field of this type reads both."""
ADAPTER: TypeAdapter[AgentState] = TypeAdapter(AgentState)


def read_agent_state(value: Any) -> AgentState:
    """Reads what `model_dump` returned, or a dict in document 004's form. Raises ValueError, in one sentence."""
    try:
        return ADAPTER.validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"][1:4])) or "it"  # below that are messages, of any depth
        raise ValueError(f"This is no state of an agent: {where} cannot be used ({first['msg']}).") from None
