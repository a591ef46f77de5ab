"""OpenAI's own memory of a conversation, so that a long one need not be sent again.

Of either kind the general agent is like a remote one: what is kept of it is an id, in the metadata of the last answer.
It is gone on with only while the history is what it was then: whatever is edited, deleted, forgotten, trimmed or pruned
here is in OpenAI's memory yet, and so the history is sent anew, to a memory of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, cast

import structlog
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from agents.models import UnusableModelError
from agents.tool_use import is_for

if TYPE_CHECKING:
    from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings

log = structlog.get_logger()

KEY = "openai_state"
OFF = "off"
BEGIN_SECONDS = 5.0  # the person who asked waits for the answer besides


class Kind(StrEnum):
    """response: each request names the response that it follows. conversation: all are items of a conversation."""

    RESPONSE = "response"
    CONVERSATION = "conversation"


def server_state(kind: str, model: Model) -> ServerState | None:
    """OpenAI's memory of this kind, or "off".

    Raises UnusableModelError for a model that is none of OpenAI's Responses API.
    """
    if kind == OFF:
        return None
    from pydantic_ai.models.openai import OpenAIResponsesModel  # noqa: PLC0415 - only who sets it needs it

    if not isinstance(model, OpenAIResponsesModel):
        raise UnusableModelError(
            f"OPENAI_STATE {kind!r} cannot be used with this MODEL: use one openai: model, or leave OPENAI_STATE out."
        )
    return ServerState(Kind(kind), model)


class ServerState:
    """model: of OpenAI's Responses API."""

    def __init__(self, kind: Kind, model: OpenAIResponsesModel) -> None:
        self._kind = kind
        self._model = model

    async def settings(self, state_id: str | None) -> ModelSettings:
        """With which settings a run goes on with this memory; None: with a new one, for which the history is sent."""
        settings: OpenAIResponsesModelSettings = {}
        if self._kind is Kind.RESPONSE:
            settings["openai_previous_response_id"] = state_id or "auto"
        elif state_id or (state_id := await self._begin()):
            settings["openai_conversation_id"] = state_id
        return settings

    def remembered(
        self, history: Sequence[ModelMessage], response: ModelMessage, settings: ModelSettings
    ) -> list[ModelMessage]:
        """The history with the id of the memory that holds it. response: the last of the run with these settings."""
        conversation_id = cast("OpenAIResponsesModelSettings", settings).get("openai_conversation_id")
        response_id = response.provider_response_id if isinstance(response, ModelResponse) else None
        state_id = response_id if self._kind is Kind.RESPONSE else conversation_id
        *before, last = history
        if state_id is None:
            return [*before, last]
        known = {"id": state_id, "digest": _digest(history)}
        return [*before, replace(last, metadata={**(last.metadata or {}), KEY: known})]

    async def _begin(self) -> str | None:
        """A conversation's id; None where there is none to be had: then everything is sent, as ever."""
        from openai import OpenAIError  # noqa: PLC0415 - as above

        try:
            client = self._model.client.with_options(max_retries=1, timeout=BEGIN_SECONDS)
            return (await client.conversations.create()).id
        except OpenAIError as error:
            log.warning("openai_state_unavailable", detail=type(error).__name__)
            return None


def remembered_as(history: Sequence[ModelMessage], people: frozenset[int]) -> str | None:
    """By which id OpenAI remembers this very history; None: not at all.

    people: whom the model is about to answer. What was looked up for others only it would remember, too.
    """
    known = (history[-1].metadata or {}).get(KEY) if history else None
    if not known or known["digest"] != _digest(history) or not all(is_for(message, people) for message in history):
        return None
    state_id: str = known["id"]
    return state_id


def _digest(history: Sequence[ModelMessage]) -> str:
    *before, last = history
    metadata = {key: value for key, value in (last.metadata or {}).items() if key != KEY}
    written = ModelMessagesTypeAdapter.dump_json([*before, replace(last, metadata=metadata or None)])
    return blake2b(written, digest_size=16).hexdigest()
