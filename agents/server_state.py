"""Conversations stored by OpenAI, so that a long one need not be sent again.

For either kind only an id is kept here, in the metadata of the last answer. It is used only by the same model, and only
while the history is unchanged, and is all that OpenAI was sent. After an edit, a deletion, forgetting, trimming or
pruning, or a turn that was not recorded, OpenAI still has what is gone here; then the history is sent again, to a new
stored conversation.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, cast

import orjson
import structlog
from pydantic import BaseModel, StringConstraints, TypeAdapter, ValidationError
from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse, ModelResponsePart, TextContent
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from agents.models import UnusableModelError

if TYPE_CHECKING:
    from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings

log = structlog.get_logger()

KEY = "openai_state"
OFF = "off"
MAX_CONVERSATIONS = 10_000
BEGIN_SECONDS = 5.0  # the person waits for that in addition to the answer

StateId = Annotated[str, StringConstraints(pattern=r"^[!-~]{1,200}$")]
ID: TypeAdapter[str] = TypeAdapter(StateId)


class _Known(BaseModel):
    id: StateId
    digest: str


class Kind(StrEnum):
    """response: each request names the response before it. conversation: requests and responses are items of a
    conversation."""

    RESPONSE = "response"
    CONVERSATION = "conversation"


def server_state(kind: str, model: Model) -> ServerState | None:
    """The stored conversations of this kind; None for "off".

    Raises UnusableModelError for a model that is not of OpenAI's Responses API.
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
    """Uses stored conversations. model: of OpenAI's Responses API."""

    def __init__(self, kind: Kind, model: OpenAIResponsesModel) -> None:
        self._kind = kind
        self._model = model
        self._newest: OrderedDict[str, str] = OrderedDict()  # the digest of each conversation's history, by its id

    async def settings(self, state_id: str | None) -> ModelSettings:
        """The settings to continue a stored conversation; None: to start a new one, for which the history is sent."""
        settings: OpenAIResponsesModelSettings = {}
        if self._kind is Kind.RESPONSE:
            settings = {"openai_store": True, "openai_previous_response_id": state_id or "auto"}
        elif state_id or (state_id := await self._begin()):
            settings = {"openai_store": True, "openai_conversation_id": state_id}
        return settings

    def known(self, history: Sequence[ModelMessage]) -> str | None:
        """The id under which OpenAI has exactly this history; None: it does not."""
        try:
            known = _Known.model_validate((history[-1].metadata or {}).get(KEY)) if history else None
        except ValidationError:
            known = None
        if known is None or known.digest != self._digest(history):
            return None
        # A turn that was not recorded may have added to the conversation. After a restart that is unknown.
        is_newest = self._kind is Kind.RESPONSE or self._newest.pop(known.id, None) == known.digest
        return known.id if is_newest else None

    def remembered(
        self, history: Sequence[ModelMessage], response: ModelMessage, settings: ModelSettings
    ) -> list[ModelMessage]:
        """The history with the id under which OpenAI has it. response: the last of the run with these settings."""
        used = cast("OpenAIResponsesModelSettings", settings)
        response_id = response.provider_response_id if isinstance(response, ModelResponse) else None
        is_chained = "openai_previous_response_id" in used
        state_id = response_id if is_chained else used.get("openai_conversation_id")
        *before, last = history
        try:
            known = _Known.model_validate({"id": state_id, "digest": self._digest(history)})
        except ValidationError:  # there is no id, or an invalid one
            return [*before, last]
        if self._kind is Kind.CONVERSATION:
            self._newest[known.id] = known.digest
            if len(self._newest) > MAX_CONVERSATIONS:
                self._newest.popitem(last=False)
        return [*before, replace(last, metadata={**(last.metadata or {}), KEY: known.model_dump()})]

    def _digest(self, history: Sequence[ModelMessage]) -> str:
        """A digest of the history as this model is sent it. By hand, as a serializer takes 10 ms for a long one."""
        written = [
            ({**(message.metadata or {}), KEY: None}, [_content(part) for part in message.parts]) for message in history
        ]
        return blake2b(orjson.dumps([self._model.model_name, written]), digest_size=16).hexdigest()

    async def _begin(self) -> str | None:
        """Creates a conversation and returns its id; None: that failed, so everything is sent as usual."""
        client = self._model.client.with_options(max_retries=1)
        try:
            async with asyncio.timeout(BEGIN_SECONDS):  # the client's own timeout is of each read
                made = await client.conversations.create()
            return ID.validate_python(getattr(made, "id", None))  # the client does not validate it
        except Exception as error:  # noqa: BLE001 - the client raises anything at what its server answers
            log.warning("openai_state_unavailable", detail=type(error).__name__)
            return None


def _content(part: ModelRequestPart | ModelResponsePart) -> str | list[str]:
    content = getattr(part, "content", None)
    if content is None or isinstance(content, str):
        return content or ""
    return [item.content if isinstance(item, TextContent) else getattr(item, "url", "") for item in content]
