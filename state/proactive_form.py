"""The stored form of a session's state: its fields by name, JSON types only, and the version of this form."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

VERSION = 2

Seconds = Annotated[float, Field(ge=0)]


class Form(BaseModel):
    """Strict: no field may be missing. Unknown fields are ignored, as later versions may add some."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class ThinkingForm(Form):
    cooldown_active: bool
    cooldown_started_at: Seconds
    active_cooldown_period_s: Seconds | None


class ProactiveForm(Form):
    trigger_id: str
    user_clicked_option: bool
    time_since_last_interaction_s: Seconds


class ReactiveForm(Form):
    time_since_last_interaction_s: Seconds


class SnapshotForm(Form):
    """All fields but the version. Moments are epoch seconds."""

    session_id: str
    metadata: dict[str, JsonValue]
    interaction_timeout_s: Seconds
    cooldown_period_s: Seconds
    current_state: Literal["thinking", "proactive_assistance", "reactive_assistance"]
    thinking: ThinkingForm
    proactive: ProactiveForm
    reactive: ReactiveForm
    last_interaction_at: Seconds
    visual_guidance_active: bool
    conversation_linked: bool
    conversation_id: str | None


def read_snapshot(snapshot: Any) -> dict[str, Any]:
    """The fields of a snapshot of this version. Raises ValueError as checked() does."""
    if not isinstance(snapshot, dict):
        raise ValueError("This is no snapshot of a session's state: it is no mapping.")
    if snapshot.get("_v") != VERSION:
        raise ValueError(f"The _v of a session's snapshot must be {VERSION}: this one's is {snapshot.get('_v')!r}.")
    return checked(snapshot)


def checked(fields: dict[str, Any]) -> dict[str, Any]:
    """A copy of the fields in this form. Raises ValueError, in one sentence that names the first error."""
    try:
        return SnapshotForm.model_validate(fields).model_dump(mode="json")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"][:2]))  # below that is metadata, of any depth
        raise ValueError(
            f"This is no snapshot of a session's state: {where} cannot be used ({first['msg']})."
        ) from None
