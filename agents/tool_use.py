"""The general agent's tool calls and results, as they are sent again in later turns: document 004's GPAState.

A turn's state is in the metadata of its answer, and so in the history. It is dropped once somebody edits or deletes a
message that the model had been sent by then; the answer's text stays.

People's words in tool results, from whatever channel, are not kept after the turn: they can be edited and deleted, and
not everybody may read them. Of a call that looked some up, only the call is kept, and no calls after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any, Self

import orjson
import structlog
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError, model_validator
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    ToolCallPart,
    ToolReturnPart,
)

from agents.asking import ASKING, NOT_KEPT, words_in
from llm_history import uses_tools
from state import Message, MessageCategory
from state.agent_state import GPAMessages, GPAState

log = structlog.get_logger()

KEEP_TURNS = 5
KEEP_BYTES = 32_768  # of a channel's states, as JSON
ASKED_BY = frozenset(tool.name for tool in ASKING)  # their questions and answers are in the history as text


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class ToolCall(_Strict):
    """A stored tool call. args: a JSON object."""

    tool_name: str
    tool_call_id: str
    args: str


class ToolResponse(_Strict):
    """A stored tool result. content: the text for the model."""

    tool_call_id: str
    content: str


class Round(_Strict):
    """A response that called tools. calls: how many; each has a result in the request that followed."""

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
    """The tool calls and results in a turn's messages."""
    calls, responses, rounds = list[JsonValue](), list[JsonValue](), list[JsonValue]()
    for message, following in pairwise(messages):
        answers = {p.tool_call_id: p for p in following.parts if isinstance(p, ToolReturnPart | RetryPromptPart)}
        called = message.tool_calls if isinstance(message, ModelResponse) else []
        done = [call for call in called if call.tool_name not in ASKED_BY and call.tool_call_id in answers]
        for call in done:
            id_, answer = call.tool_call_id, answers[call.tool_call_id]
            if isinstance(answer, RetryPromptPart):
                content = answer.model_response()
            else:
                content = NOT_KEPT if "words_of" in (answer.metadata or {}) else answer.model_response_str()
            made = ToolCall(tool_name=call.tool_name, tool_call_id=id_, args=call.args_as_json_str())
            calls.append(made.model_dump())
            responses.append(ToolResponse(tool_call_id=id_, content=content).model_dump())
        rounds += [Round(calls=len(done)).model_dump()] if done else []
        if words_in([following]):
            break
    return GPAState(gpa_messages=GPAMessages(tool_calls=calls, tool_responses=responses, messages=rounds))


def tool_messages_of(answer: ModelMessage) -> list[ModelMessage]:
    """The messages with tool calls and results before this answer, which uses tools; none if they cannot be read."""
    messages: list[ModelMessage] = []
    for now in _rounds(answer):
        calls = [ToolCallPart(call.tool_name, call.args, call.tool_call_id) for call, _ in now]
        returns = [ToolReturnPart(call.tool_name, response.content, call.tool_call_id) for call, response in now]
        messages += [ModelResponse(parts=calls), ModelRequest(parts=returns)]
    return messages


def as_outputs(answer: ModelMessage, answer_id: int, at: str, metadata: Mapping[str, Any]) -> list[Message]:
    """The same as messages of a stored session, for an answer with this id and time. metadata: added to each."""
    messages: list[Message] = []

    def add(role: str, content: Any, **fields: str) -> None:
        id_ = f"msg_{answer_id}_tools_{len(messages)}"
        messages.append(Message(role, content, MessageCategory.SYSTEM_OUTPUT, id_, at, {**metadata, **fields}))

    for now in _rounds(answer):
        functions = [(call.tool_call_id, {"name": call.tool_name, "arguments": call.args}) for call, _ in now]
        add("assistant", {"tool_calls": [{"id": i, "type": "function", "function": each} for i, each in functions]})
        for call, response in now:
            add("tool", response.content, tool_call_id=call.tool_call_id, tool_name=call.tool_name)
    return messages


def _rounds(answer: ModelMessage) -> list[list[tuple[ToolCall, ToolResponse]]]:
    """The calls with their results, grouped by response; none if they cannot be read."""
    try:
        read = _Read.model_validate(GPAState.model_validate(answer.metadata).gpa_messages.model_dump())
    except ValidationError as error:
        log.warning("agent_state_refused", detail=error.errors()[0]["msg"])
        return []
    pairs = iter(zip(read.tool_calls, read.tool_responses, strict=True))
    return [list(islice(pairs, each.calls)) for each in read.messages]


def is_tool_use(message: ModelMessage) -> bool:
    """Whether a message has only tool calls or tool results."""
    return all(isinstance(part, ToolCallPart | ToolReturnPart | RetryPromptPart) for part in message.parts)


def pruned(history: Sequence[ModelMessage], keep_turns: int) -> list[ModelMessage]:
    """The history with the tool use of its newest turns only: at most so many turns, and so many bytes in all.

    Above either limit, the oldest is dropped down to half of it (the newest stays if possible): between two such cuts
    the beginning stays the same, as providers' prompt caches need it.
    """
    sizes = {i: len(orjson.dumps(message.metadata)) for i, message in enumerate(history) if uses_tools(message)}
    if len(sizes) <= keep_turns and sum(sizes.values()) <= KEEP_BYTES:
        return list(history)
    newest = [i for i in list(sizes)[-1:] if keep_turns and sizes[i] <= KEEP_BYTES]
    kept, size = set(newest), sum(sizes[i] for i in newest)
    for position in list(sizes)[-2::-1]:
        size += sizes[position]
        if len(kept) >= (keep_turns + 1) // 2 or size > KEEP_BYTES // 2:
            break
        kept.add(position)
    return [replace(m, metadata=None) if i in sizes and i not in kept else m for i, m in enumerate(history)]
