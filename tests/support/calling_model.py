"""A model that calls a tool many times in one response, all in one piece."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel


def calling_model(calls: int) -> FunctionModel:
    async def call_at_once(_messages: object, _info: AgentInfo) -> AsyncIterator[DeltaToolCalls]:
        yield {number: DeltaToolCall("current_time", "{}", tool_call_id=f"call-{number}") for number in range(calls)}

    return FunctionModel(stream_function=call_at_once)
