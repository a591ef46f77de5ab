"""tests/support/stub_responses.py, by way of pydantic-ai's own model: what it keeps, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, cast

import aiohttp
import pytest
from openai import AsyncOpenAI, NotFoundError
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter
from pydantic_ai import Tool
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import (
    FallbackExceptionGroup,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    UserError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.settings import ModelSettings

from agents.models import build_model
from tests.support.stub_model import Call, Reply, StubModel
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


@pytest.mark.parametrize("chunk", [1, 7, 200])
async def test_a_turn(openai: StubResponses, model: Model, chunk: int) -> None:
    openai.replies.append(Reply("Tea, of course.", chunk=chunk, tokens=30))
    response = await ask(model, prompt("Tea or coffee?"))
    assert response.text == "Tea, of course."
    assert (response.usage.input_tokens, response.usage.output_tokens) == (25, 5)
    assert (response.provider_name, response.provider_response_id) == ("openai", "resp_1")
    assert response.state == "complete"
    assert openai.seen == [["Tea or coffee?"]]


async def test_a_call_of_a_tool_and_its_result(openai: StubResponses, model: Model) -> None:
    openai.replies.append(Reply("I look.", calls=(LOOK_UP, replace(LOOK_UP, id="call_2"))))
    asked = prompt("How warm is Bern?")
    called = await ask(model, asked)
    assert called.text == "I look."
    assert [(c.tool_name, c.args, c.tool_call_id) for c in called.tool_calls] == [
        ("look_up", '{"city": "Bern"}', "call_1"),
        ("look_up", '{"city": "Bern"}', "call_2"),
    ]
    answered = await ask(model, asked, called, results("call_1", "call_2"))
    assert answered.text == "You said: result of call_2"


async def test_an_answer_at_once(openai: StubResponses, model: Model) -> None:
    openai.replies.append(Reply("Tea.", calls=(LOOK_UP,)))
    response = await model_request(model, [prompt("Tea or coffee?")])
    assert response.text == "Tea."
    assert response.tool_calls[0].tool_call_id == "call_1"
    assert openai.responses["resp_1"][-1]["call_id"] == "call_1"


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
    for event in events:
        TypeAdapter[ResponseStreamEvent](ResponseStreamEvent).validate_python(event)
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


async def test_raw_bytes_are_sent_as_they_are(openai: StubResponses, model: Model) -> None:
    failure = {"type": "error", "sequence_number": 0, "code": "server_error", "message": "Oh no.", "param": None}
    openai.replies.append(Reply(raw=f"event: error\ndata: {json.dumps(failure)}\n\n".encode()))
    with pytest.raises(ModelServerError, match=r"Oh no\."):
        await ask(model, prompt("Hello"))


async def test_what_a_script_waits_for_and_is_told(openai: StubResponses, model: Model) -> None:
    before, gate = asyncio.Event(), asyncio.Event()
    told: list[str] = []

    async def pace(text: str) -> None:
        told.append(text)

    async def begin() -> None:
        await openai.arrived.wait()
        before.set()

    openai.replies.append(Reply("one two", before=before, gate=gate, chunk=4, pace=pace))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(begin())
        async with model_request_stream(model, [prompt("Count")]) as stream:
            await anext(aiter(stream))
            assert before.is_set()
            assert stream.get().text == "one "
            assert not told
            gate.set()
            async for _ in stream:
                pass
    assert stream.get().text == "one two"
    assert told == ["one ", "one two"]


async def test_an_answer_that_the_client_leaves_has_an_id_that_leads_nowhere(
    openai: StubResponses, model: Model
) -> None:
    openai.replies.append(Reply("Well, ", endless=True))
    async with model_request_stream(model, [prompt("Go on")]) as stream:
        events = aiter(stream)
        for _ in range(5):
            await anext(events)
        left = stream.get()
    assert (left.state, left.provider_response_id) == ("incomplete", "resp_1")
    await refused(model, prompt("And then?"), openai_previous_response_id="resp_1")


# Continuing from a response


async def test_a_response_by_its_id_with_only_what_is_new(openai: StubResponses, model: Model) -> None:
    first = await ask(model, prompt("one"), openai_previous_response_id="auto")
    second = await ask(model, prompt("two"), openai_previous_response_id=first.provider_response_id)
    await ask(model, prompt("other"), openai_previous_response_id=first.provider_response_id)
    assert openai.seen == [["one"], ["one", "You said: one", "two"], ["one", "You said: one", "other"]]
    assert second.history_digest


async def test_the_instructions_of_a_request_are_not_kept(openai: StubResponses, model: Model) -> None:
    first = await ask(model, replace(prompt("one"), instructions="Rhyme."), openai_previous_response_id="auto")
    await ask(model, prompt("two"), openai_previous_response_id=first.provider_response_id)
    assert [body.get("instructions") for body in openai.requests] == ["Rhyme.", None]
    assert openai.seen[-1] == ["one", "You said: one", "two"]


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


async def test_a_run_that_was_stored_as_json_goes_on_all_the_same(openai: StubResponses, model: Model) -> None:
    openai.replies.append(Reply(calls=(LOOK_UP,)))
    run: list[ModelMessage] = [prompt("one")]
    run.append(await ask(model, *run, openai_previous_response_id="auto"))
    stored = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(run))
    await ask(model, *stored, results("call_1"), openai_previous_response_id="auto")
    assert sent(openai) == ["function_call_output"]


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


async def test_results_alone_go_on_from_the_response_that_called(openai: StubResponses, model: Model) -> None:
    openai.replies.append(Reply(calls=(LOOK_UP,)))
    called = await ask(model, prompt("one"), openai_previous_response_id="auto")
    await ask(model, results("call_1"), openai_previous_response_id=called.provider_response_id)
    assert openai.seen[-1] == ["one", 'look_up({"city": "Bern"})', "result of call_1"]


async def test_what_is_not_to_be_stored_is_not(openai: StubResponses, model: Model) -> None:
    await ask(model, prompt("one"), openai_store=False)
    assert not openai.responses


# Continuing a conversation


async def test_a_conversation_keeps_what_was_asked_and_answered(
    openai: StubResponses, model: Model, client: AsyncOpenAI
) -> None:
    made = await client.conversations.create()
    assert await client.conversations.retrieve(made.id) == made
    for text in ("one", "two"):
        response = await ask(model, prompt(text), openai_conversation_id=made.id)
        assert (response.provider_details or {})["conversation_id"] == made.id
        assert response.history_digest is None
    assert openai.seen == [["one"], ["one", "You said: one", "two"]]


async def test_a_run_in_a_conversation_sends_its_results_only(
    openai: StubResponses, model: Model, client: AsyncOpenAI
) -> None:
    made = await client.conversations.create()
    run: list[ModelMessage] = [prompt("one")]
    openai.replies.append(Reply("I look.", calls=(LOOK_UP,)))
    run += [await ask(model, *run, openai_conversation_id=made.id), results("call_1")]
    # However the run was changed before its newest response: that much the conversation has.
    await ask(model, *run[1:], openai_conversation_id=made.id)
    assert sent(openai) == ["function_call_output"]
    assert openai.seen[-1] == ["one", "I look.", 'look_up({"city": "Bern"})', "result of call_1"]


async def test_a_conversation_begins_with_the_items_it_is_given(
    openai: StubResponses, model: Model, client: AsyncOpenAI
) -> None:
    made = await client.conversations.create(items=[{"role": "user", "content": "zero"}])
    await ask(model, prompt("one"), openai_conversation_id=made.id)
    assert openai.seen == [["zero", "one"]]


# What breaks off


@pytest.mark.parametrize("cut_after", [0, 2])
async def test_of_half_a_stream_nothing_is_kept(
    openai: StubResponses, model: Model, client: AsyncOpenAI, cut_after: int
) -> None:
    made = await client.conversations.create()
    openai.replies.append(Reply("one two three", chunk=4, cut_after=cut_after))
    with pytest.raises(ModelConnectionError):
        await ask(model, prompt("Count"), openai_conversation_id=made.id)
    assert openai.conversations == {made.id: []}
    assert not openai.responses
    await ask(model, prompt("Again"), openai_conversation_id=made.id)
    assert openai.seen[-1] == ["Again"]


@pytest.mark.parametrize(
    ("status", "error"), [(500, ModelServerError), (429, ModelRateLimitError), (401, ModelAuthenticationError)]
)
async def test_a_scripted_error(openai: StubResponses, model: Model, status: int, error: type[ModelAPIError]) -> None:
    openai.replies.append(Reply(status=status, words="not now"))
    with pytest.raises(error, match="not now"):
        await ask(model, prompt("one"))
    assert not openai.responses


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


async def test_both_ways_at_once(openai: StubResponses, model: Model) -> None:
    with pytest.raises(UserError, match="cannot both be set"):
        await ask(model, prompt("one"), openai_previous_response_id="resp_1", openai_conversation_id="conv_1")
    assert not openai.requests
    body = {"previous_response_id": "resp_1"}
    error = await refused(model, prompt("one"), openai_conversation_id="conv_1", extra_body=body)
    assert error.status_code == 400
    assert error.provider_error_code == "mutually_exclusive_parameters"


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


async def test_a_request_without_a_key(openai: StubResponses, model: Model) -> None:
    error = await refused(model, prompt("one"), extra_headers={"Authorization": ""})
    assert isinstance(error, ModelAuthenticationError)
    assert error.status_code == 401
    assert not openai.requests


async def test_what_is_deleted_is_gone(openai: StubResponses, model: Model, client: AsyncOpenAI) -> None:
    made = await client.conversations.create()
    said = await ask(model, prompt("one"), openai_conversation_id=made.id)
    assert said.provider_response_id
    deleted = await client.conversations.delete(made.id)
    await client.responses.delete(said.provider_response_id)
    assert (deleted.id, deleted.object, deleted.deleted) == (made.id, "conversation.deleted", True)
    assert not openai.conversations
    assert not openai.responses
    for again in (
        client.conversations.delete(made.id),
        client.conversations.retrieve(made.id),
        client.responses.delete(said.provider_response_id),
    ):
        with pytest.raises(NotFoundError):
            await again


# With other models to fall back on


@pytest.mark.parametrize("setting", ["openai_previous_response_id", "openai_conversation_id"])
async def test_another_model_is_not_told_of_the_state(
    openai: StubResponses, model: Model, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    chat = StubModel()
    await chat.start()
    monkeypatch.setenv("OPENAI_BASE_URL", chat.url)
    chat.default = lambda _body: Reply("from elsewhere")
    try:
        async with build_model("MODEL", "openai-chat:other") as other:
            response = await ask(FallbackModel(model, other), prompt("one"), **{setting: "gone_1"})
    finally:
        await chat.stop()
    assert response.text == "from elsewhere"
    # Its provider is the same by name: only the digest and the conversation's id tell them apart.
    assert (response.provider_name, response.history_digest) == ("openai", None)
    assert "conversation_id" not in (response.provider_details or {})
    (body,) = chat.requests
    assert body["messages"] == [{"role": "user", "content": "one"}]
    assert not {"previous_response_id", "conversation"} & set(body)
    assert len(openai.requests) == 1


async def test_models_with_the_same_state_all_fail_without_it(model: Model) -> None:
    with pytest.raises(FallbackExceptionGroup) as caught:
        await ask(FallbackModel(model, model), prompt("one"), openai_previous_response_id="resp_9")
    codes = [getattr(error, "provider_error_code", None) for error in caught.value.exceptions]
    assert codes == ["previous_response_not_found"] * 2
