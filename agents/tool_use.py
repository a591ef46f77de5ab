"""What the general agent's tools were asked and answered, as later turns are given it back: document 004's GPAState.

A turn's state stands in the metadata of its answer, and so in the history. It goes once somebody edits or deletes a
message that was told by then; what is left then are the words that people read.

What people said, in whatever channel, is not kept once the turn has ended: they can edit and delete it, and not
everybody may read it. Of a call that looked it up the call itself is kept, and nothing of what was called thereafter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Self

import orjson
import structlog
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    ToolCallPart,
    ToolReturnPart,
)

from agents.asking import ASKING, words_in
from state.agent_state import GPAMessages, GPAState

log = structlog.get_logger()

KEEP_TURNS = 5
KEEP_BYTES = 32_768  # of a channel's states, as JSON
NOT_KEPT = "(What people said is not kept here. Look it up anew.)"
ASKED_BY = frozenset(tool.name for tool in ASKING)  # what they ask and are told stands in the history in words


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class ToolCall(_Strict):
    """args: JSON, an object."""

    tool_name: str
    tool_call_id: str
    args: str


class ToolResponse(_Strict):
    """content: what the model was told."""

    tool_call_id: str
    content: str


class Round(_Strict):
    """A response that called tools. calls: how many; each has a response in the request that followed."""

    calls: int


class _Read(_Strict):
    tool_calls: list[ToolCall]
    tool_responses: list[ToolResponse]
    messages: list[Round]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not len(self.tool_calls) == len(self.tool_responses) == sum(each.calls for each in self.messages):
            raise ValueError("not each call has a response")
        return self


def tool_use(messages: Sequence[ModelMessage]) -> GPAState:
    """What the tools were asked and answered in a turn's messages."""
    calls, responses, rounds = [], [], []
    for message, following in pairwise(messages):
        answered = _answers(following)
        done = [c for c in _calls(message) if c.tool_name not in ASKED_BY and c.tool_call_id in answered]
        calls += [_call(call) for call in done]
        responses += [_response(answered[call.tool_call_id]) for call in done]
        rounds += [Round(calls=len(done))] if done else []
        if words_in([following]):
            break
    return GPAState(
        gpa_messages=GPAMessages(
            tool_calls=[call.model_dump() for call in calls],
            tool_responses=[response.model_dump() for response in responses],
            messages=[each.model_dump() for each in rounds],
        )
    )


def with_tool_use(answer: ModelResponse, state: GPAState) -> ModelResponse:
    """The answer with its turn's state, if there is anything in it."""
    return replace(answer, metadata=state.model_dump()) if state.gpa_messages.tool_calls else answer


def given_back(answer: ModelMessage) -> list[ModelMessage]:
    """The messages by which the tools were used before this answer; none where it has no state that can be read."""
    if not has_tool_use(answer):
        return []
    try:
        return _messages(_Read.model_validate(GPAState.model_validate(answer.metadata).gpa_messages.model_dump()))
    except ValidationError as error:
        log.warning("agent_state_refused", detail=error.errors()[0]["msg"])
        return []


def has_tool_use(message: ModelMessage) -> bool:
    return isinstance(message, ModelResponse) and "is_gpa" in (message.metadata or {})


def is_tool_use(message: ModelMessage) -> bool:
    """Whether a message is nothing but calls of tools, or what these gave."""
    return all(isinstance(part, ToolCallPart | ToolReturnPart | RetryPromptPart) for part in message.parts)


def pruned(history: Sequence[ModelMessage], keep_turns: int, keep_bytes: int = KEEP_BYTES) -> list[ModelMessage]:
    """The history with the tool use of its newest turns only: so many, and so many bytes in all, at most.

    Once there is more, the oldest goes until half of either is left (the newest stays where it can): between two such
    cuts the beginning stays the same, which is what providers' prompt caches need.
    """
    sizes = {i: len(orjson.dumps(message.metadata)) for i, message in enumerate(history) if has_tool_use(message)}
    if len(sizes) <= keep_turns and sum(sizes.values()) <= keep_bytes:
        return list(history)
    newest = [i for i in list(sizes)[-1:] if keep_turns and sizes[i] <= keep_bytes]
    kept, size = set(newest), sum(sizes[i] for i in newest)
    for position in list(sizes)[-2::-1]:
        size += sizes[position]
        if len(kept) >= (keep_turns + 1) // 2 or size > keep_bytes // 2:
            break
        kept.add(position)
    return [replace(m, metadata=None) if i in sizes and i not in kept else m for i, m in enumerate(history)]


def _calls(message: ModelMessage) -> Sequence[ToolCallPart]:
    return message.tool_calls if isinstance(message, ModelResponse) else ()


def _answers(message: ModelMessage) -> Mapping[str, ToolReturnPart | RetryPromptPart]:
    """What a request tells of calls, by their ids."""
    parts = message.parts if isinstance(message, ModelRequest) else ()
    return {part.tool_call_id: part for part in parts if isinstance(part, ToolReturnPart | RetryPromptPart)}


def _call(call: ToolCallPart) -> ToolCall:
    return ToolCall(tool_name=call.tool_name, tool_call_id=call.tool_call_id, args=call.args_as_json_str())


def _response(part: ToolReturnPart | RetryPromptPart) -> ToolResponse:
    if isinstance(part, RetryPromptPart):
        return ToolResponse(tool_call_id=part.tool_call_id, content=part.model_response())
    content = NOT_KEPT if "words_of" in (part.metadata or {}) else part.model_response_str()
    return ToolResponse(tool_call_id=part.tool_call_id, content=content)


def _messages(kept: _Read) -> list[ModelMessage]:
    messages: list[ModelMessage] = []
    pairs = iter(zip(kept.tool_calls, kept.tool_responses, strict=True))
    for each in kept.messages:
        now = list(islice(pairs, each.calls))
        calls = [ToolCallPart(call.tool_name, call.args, call.tool_call_id) for call, _ in now]
        returns = [ToolReturnPart(call.tool_name, response.content, call.tool_call_id) for call, response in now]
        messages += [ModelResponse(parts=calls), ModelRequest(parts=returns)]
    return messages
