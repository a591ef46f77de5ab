"""tests/support/stub_responses.py, by way of pydantic-ai's own model: what it keeps, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, cast

import aiohttp
import pytest
from openai import AsyncOpenAI
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter
from pydantic_ai import Tool
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    ModelHTTPError,
    ModelNotFoundError,
    ModelRequestRejectedError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.settings import ModelSettings

from tests.support.stub_model import Call, Reply
from tests.support.stub_responses import StubResponses


async def look_up(city: str) -> str:
    return f"{city}: 21 degrees"


LOOK_UP = Call("look_up", '{"city": "Bern"}', id="call_1")
PARAMETERS = ModelRequestParameters(function_tools=[Tool(look_up).tool_def])


@pytest.fixture
async def model(openai: StubResponses) -> AsyncIterator[OpenAIResponsesModel]:
    assert openai.url
    model = OpenAIResponsesModel("gpt-5")
    async with model:
        yield model


@pytest.fixture
def client(model: OpenAIResponsesModel) -> AsyncOpenAI:
    return model.client


def prompt(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def results(*ids: str) -> ModelRequest:
    return ModelRequest(parts=[ToolReturnPart("look_up", f"result of {i}", tool_call_id=i) for i in ids])


async def ask(model: Model, *messages: ModelMessage, **settings: Any) -> ModelResponse:
    given = cast("ModelSettings", {"max_retries": 0, **settings})
    async with model_request_stream(
        model, messages, model_settings=given, model_request_parameters=PARAMETERS
    ) as stream:
        async for _ in stream:
            pass
        return stream.get()


def sent(stub: StubResponses) -> list[str]:
    """What the newest request brought, by the form of each item."""
    return [item.get("type") or item["role"] for item in stub.requests[-1]["input"]]


# Answers


async def events_of(stub: StubResponses) -> list[dict[str, Any]]:
    headers = {"Authorization": "Bearer sk-x"}
    body = {"model": "gpt-5", "input": [{"role": "user", "content": "Hello"}], "stream": True}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{stub.url}/responses", json=body, headers=headers) as answer,
    ):
        assert answer.content_type == "text/event-stream"
        blocks = (await answer.text()).removesuffix("\n\n").split("\n\n")
    events = []
    for block in blocks:
        name, data = block.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


async def test_the_events_come_in_openais_order_and_form(openai: StubResponses) -> None:
    openai.replies.append(Reply("Let me see", chunk=4, calls=(LOOK_UP,)))
    events = await events_of(openai)
    form = TypeAdapter[ResponseStreamEvent](ResponseStreamEvent)
    for event in events:
        form.validate_python(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert (events[3]["part"]["text"], events[7]["text"]) == ("", "Let me see")
    assert [event["type"].removeprefix("response.") for event in events] == [
        *("created", "in_progress"),
        *("output_item.added", "content_part.added"),
        *["output_text.delta"] * 3,
        *("output_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
        "completed",
    ]


# Continuing from a response


@pytest.mark.parametrize("begin", ["auto", "resp_1"])
async def test_a_run_goes_on_from_its_own_newest_response(openai: StubResponses, model: Model, begin: str) -> None:
    await ask(model, prompt("zero"))
    run: list[ModelMessage] = [prompt("How warm is Bern?")]
    for call in ("call_1", "call_2"):
        openai.replies.append(Reply(calls=(replace(LOOK_UP, id=call),)))
        run += [await ask(model, *run, openai_previous_response_id=begin), results(call)]
    await ask(model, *run, openai_previous_response_id=begin)
    previous = [body.get("previous_response_id") for body in openai.requests]
    assert previous == [None, None if begin == "auto" else begin, "resp_2", "resp_3"]
    assert sent(openai) == ["function_call_output"]
    before = [] if begin == "auto" else ["zero", "You said: zero"]
    looked_up = ['look_up({"city": "Bern"})', "result of call_1", 'look_up({"city": "Bern"})', "result of call_2"]
    assert openai.seen[-1] == [*before, "How warm is Bern?", *looked_up]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda run: run[1:], id="prompt left out"),
        pytest.param(lambda run: [prompt("changed"), run[1]], id="prompt changed"),
        pytest.param(lambda run: [run[0], replace(run[1], history_digest=None)], id="without a digest"),
    ],
)
async def test_a_changed_run_loses_the_state_before_it(
    openai: StubResponses, model: Model, change: Callable[[list[Any]], list[ModelMessage]]
) -> None:
    """pydantic-ai then sends neither the id it was given nor what the state knew."""
    before = await ask(model, prompt("zero"), openai_previous_response_id="auto")
    openai.replies.append(Reply(calls=(LOOK_UP,)))
    seed = before.provider_response_id
    asked = prompt("one")
    called = await ask(model, asked, openai_previous_response_id=seed)
    await ask(model, *change([asked, called]), results("call_1"), openai_previous_response_id=seed)
    assert "previous_response_id" not in openai.requests[-1]
    assert "zero" not in openai.seen[-1]


# Continuing a conversation


# What breaks off


# What is refused


async def refused(model: Model, *messages: ModelMessage, **settings: Any) -> ModelHTTPError:
    with pytest.raises(ModelHTTPError) as caught:
        await ask(model, *messages, **settings)
    return caught.value


def body_of(error: ModelHTTPError) -> tuple[str, str | None, str | None]:
    """The message, the parameter and the code."""
    assert isinstance(error.body, dict)
    assert error.body["type"] == "invalid_request_error"
    return error.body["message"], error.body["param"], error.body["code"]


@pytest.mark.parametrize("forget", [None, "one", "all"])
async def test_a_response_that_is_not_there(openai: StubResponses, model: Model, forget: str | None) -> None:
    previous = "resp_9"
    if forget:
        previous = (await ask(model, prompt("one"))).provider_response_id or ""
        openai.forget(previous) if forget == "one" else openai.forget_all()
    error = await refused(model, prompt("two"), openai_previous_response_id=previous)
    assert isinstance(error, ModelRequestRejectedError)
    assert error.status_code == 400
    unknown = f"Previous response with id '{previous}' not found."
    assert body_of(error) == (unknown, "previous_response_id", "previous_response_not_found")
    assert error.provider_error_code == "previous_response_not_found"


@pytest.mark.parametrize("forget", [None, "one", "all"])
async def test_a_conversation_that_is_not_there(
    openai: StubResponses, model: Model, client: AsyncOpenAI, forget: str | None
) -> None:
    conversation = "conv_9"
    if forget:
        conversation = (await client.conversations.create()).id
        openai.forget(conversation) if forget == "one" else openai.forget_all()
    error = await refused(model, prompt("one"), openai_conversation_id=conversation)
    assert isinstance(error, ModelNotFoundError)
    assert error.status_code == 404
    assert body_of(error) == (f"Conversation with id '{conversation}' not found.", None, None)


async def test_a_second_request_of_a_conversation_that_is_busy(
    openai: StubResponses, model: Model, client: AsyncOpenAI
) -> None:
    made = await client.conversations.create()
    gate = asyncio.Event()
    openai.replies.append(Reply("one", before=gate))
    first = asyncio.create_task(ask(model, prompt("one"), openai_conversation_id=made.id))
    await openai.arrived.wait()
    error = await refused(model, prompt("two"), openai_conversation_id=made.id)
    assert (error.status_code, error.provider_error_code) == (400, "conversation_locked")
    gate.set()
    await first
    await ask(model, prompt("two"), openai_conversation_id=made.id)
    assert openai.seen[-1] == ["one", "one", "two"]


async def test_a_result_without_its_call(openai: StubResponses, model: Model) -> None:
    error = await refused(model, results("call_1"))
    message = "No tool call found for function call output with call_id call_1."
    assert (error.status_code, body_of(error)) == (400, (message, "input", None))
    assert not openai.seen


@pytest.mark.parametrize("with_results", [(), ("call_1",)])
async def test_a_call_in_the_state_without_its_result(
    openai: StubResponses, model: Model, with_results: tuple[str, ...]
) -> None:
    openai.replies.append(Reply(calls=(LOOK_UP, replace(LOOK_UP, id="call_2"))))
    called = await ask(model, prompt("one"), openai_previous_response_id="auto")
    newer = [results(*with_results)] if with_results else []
    seed = called.provider_response_id
    error = await refused(model, *newer, prompt("Never mind"), openai_previous_response_id=seed)
    missing = "call_2" if with_results else "call_1"
    message = f"No tool output found for function call {missing}."
    assert (error.status_code, body_of(error)) == (400, (message, "input", None))


async def test_what_the_state_has_already(openai: StubResponses, model: Model, client: AsyncOpenAI) -> None:
    made = await client.conversations.create()
    said = await ask(model, prompt("one"), openai_conversation_id=made.id)
    forgetful = replace(said, provider_details=None)
    error = await refused(model, forgetful, prompt("two"), openai_conversation_id=made.id)
    assert error.status_code == 400
    assert body_of(error)[0].startswith("Duplicate item found with id msg_1.")
    assert len(openai.seen) == 1


# With other models to fall back on
