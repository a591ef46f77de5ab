"""agents/lighter_requests.py: what is sent is what the provider's own client and pydantic-ai would send, without their
walks over each message and schema."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from copy import deepcopy
from operator import attrgetter
from pkgutil import resolve_name
from typing import Any

import pytest
from aiohttp import web
from openai import AsyncAzureOpenAI
from pydantic_ai import InlineDefsJsonSchemaTransformer, ToolDefinition
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ImageUrl,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer, _GptOssJsonSchemaTransformer
from pydantic_ai.providers.azure import _AzureGrokJsonSchemaTransformer
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openrouter import _OpenRouterGoogleJsonSchemaTransformer
from pydantic_ai.settings import ModelSettings
from structlog.testing import capture_logs

from agents.lighter_requests import ANY, MAX_SCHEMA_BYTES, adapt_once, send_as_is, size_of, size_of_all
from agents.models import SETTINGS, build_model
from tests.support.steps import longest_step

MESSAGES: list[ModelMessage] = [
    ModelRequest(parts=[UserPromptPart(content="Grüße, \u2028 what is this? 🎈")]),
    ModelResponse(parts=[TextPart("Let me look."), ToolCallPart("look", '{"at": "it"}', "call_1")]),
    ModelRequest(parts=[ToolReturnPart("look", {"seen": [1.5, None, True]}, "call_1")]),
    ModelResponse(parts=[TextPart("A balloon.")]),
    ModelRequest(parts=[UserPromptPart(content=["And this?", ImageUrl("https://cdn.example/a.png")])]),
]
SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
REFERRING = {
    "type": "object",
    "properties": {"way": {"$ref": "#/$defs/Way"}, "seats": {"type": "integer", "default": 1}},
    "required": ["way"],
    "$defs": {"Way": {"type": "object", "title": "Way", "properties": {"by": {"enum": ["train", "car"]}}}},
}
PLAIN = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
HUGE = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 2**70}}}
PARAMETERS = ModelRequestParameters(
    function_tools=[ToolDefinition(name="look", description="Looks.", parameters_json_schema=SCHEMA)],
    instruction_parts=[InstructionPart("Be kind.")],
)
WITH_A_BODY: ModelSettings = {**SETTINGS, "extra_body": {"mine": 1}}


@pytest.fixture
async def bodies(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[bytes]]:
    """What arrives at a server that refuses all of it."""
    arrived: list[bytes] = []

    async def refuse(request: web.Request) -> web.Response:
        arrived.append(f"{sorted(request.headers.items())}\n".encode() + await request.read())
        return web.json_response({"error": {"message": "no"}}, status=400)

    app = web.Application()
    app.router.add_post("/{path:.*}", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    for provider in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_BASE_URL", url)
        monkeypatch.setenv(f"{provider}_API_KEY", "sk-nobodys")
    yield arrived
    await runner.cleanup()


@pytest.mark.parametrize("name", ["openai-chat:gpt-5", "openai:gpt-5", "anthropic:claude-of-tomorrow"])
@pytest.mark.parametrize("parameters", [PARAMETERS, ModelRequestParameters()], ids=["tools", "no tools"])
@pytest.mark.parametrize("settings", [SETTINGS, ModelSettings(), WITH_A_BODY], ids=["retries", "plain", "extra body"])
async def test_what_is_sent_is_the_same_to_the_byte(
    bodies: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    parameters: ModelRequestParameters,
    settings: ModelSettings,
) -> None:
    async def ask() -> None:
        async with build_model("MODEL", name) as model:
            with suppress(ModelHTTPError):
                await model_request(model, MESSAGES, model_settings=settings, model_request_parameters=parameters)

    await ask()
    monkeypatch.setattr("agents.models.send_as_is", lambda _client: None)
    await ask()
    ours, theirs = bodies
    assert ours == theirs
    assert "🎈" in ours.decode()


@pytest.mark.parametrize(
    ("name", "resource"),
    [
        ("openai:AsyncOpenAI", "chat.completions"),
        ("openai:AsyncOpenAI", "responses"),
        ("anthropic:AsyncAnthropic", "beta.messages"),  # its import takes a second, which only who runs this pays
    ],
)
async def test_a_copy_with_other_options_sends_so_too(name: str, resource: str) -> None:
    kind = resolve_name(name)
    client = kind(api_key="sk-nobodys", max_retries=0)
    send_as_is(client)
    assert isinstance(client, kind)
    copy = client.with_options(max_retries=1)
    assert type(copy) is type(client)
    assert copy.max_retries == 1
    assert not vars(copy).keys() & {"chat", "responses", "beta"}  # to make what is not used takes long
    for sending in (client, copy):
        assert attrgetter(resource)(sending).create.__module__ == send_as_is.__module__
    await client.close()


async def test_other_clients_stay_as_they_are() -> None:
    client = AsyncAzureOpenAI(api_key="k", azure_endpoint="https://example.org", api_version="1")
    send_as_is(client)
    assert type(client) is AsyncAzureOpenAI
    send_as_is(None)
    await client.close()


class Adapting:
    """A model, and how often its profile's transformer walks over a schema."""

    def __init__(self, kind: Any = None) -> None:
        self.model: Model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(api_key="sk-nobodys"))
        self.walks = 0
        kind = kind or self.model.profile["json_schema_transformer"]
        adapting = self

        class Counted(kind):  # type: ignore[misc]
            def walk(self) -> Any:
                adapting.walks += 1
                return super().walk()

        self.model.profile["json_schema_transformer"] = Counted

    def sent(self, schema: dict[str, Any], strict: bool | None) -> ToolDefinition:
        tool = ToolDefinition(name="go", parameters_json_schema=schema, strict=strict)
        return self.model.customize_request_parameters(ModelRequestParameters(function_tools=[tool])).function_tools[0]


@pytest.mark.parametrize("schema", [REFERRING, PLAIN, HUGE])
@pytest.mark.parametrize("strict", [None, True, False])
def test_a_schema_is_sent_as_without_it(schema: dict[str, Any], strict: bool | None) -> None:
    usual, once = Adapting(), Adapting()
    adapt_once(once.model)
    before = deepcopy(schema)
    for _ in range(2):
        assert once.sent(schema, strict) == usual.sent(schema, strict)
    assert schema == before


def test_each_schema_is_adapted_once_and_what_a_client_changes_in_it_does_not_stay() -> None:
    once = Adapting()
    adapt_once(once.model)
    first = once.sent(PLAIN, None)
    first.parameters_json_schema["properties"].clear()
    assert once.sent(deepcopy(PLAIN), None).parameters_json_schema["properties"] == PLAIN["properties"]
    assert once.walks == 1
    once.sent(REFERRING, None)
    once.sent(PLAIN, True)
    assert once.walks == 3


def test_a_long_text_in_hundreds_of_places_takes_short_to_adapt() -> None:
    once = Adapting(InlineDefsJsonSchemaTransformer)
    adapt_once(once.model)
    many = {f"{n}": {"$ref": "#/$defs/long"} for n in range(450)}
    began = time.thread_time()
    for number in range(8):
        text = f"{number}" + "\x7f" * 6_000
        sent = once.sent({"type": "object", "properties": many, "$defs": {"long": {"const": text}}}, None)
        assert sent.parameters_json_schema == json.loads(ANY)
    assert time.thread_time() - began < 0.25  # it was 0.5 s, and twice that for the longest texts


def chain_of_references() -> dict[str, Any]:
    """At each of them what follows is copied anew."""
    chain: dict[str, Any] = {f"{n}": {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}]} for n in range(95)}
    chain["95"] = {f"x{n}": [{}] * 370 for n in range(4)}
    return {"type": "object", "$defs": chain, "properties": {"a": {"$ref": "#/$defs/0"}}}


def pointers_through_lists() -> dict[str, Any]:
    """Of each list the items before the one that is meant were counted, for each of them."""
    node: Any = {}
    for _ in range(11):
        node = [0] * 490 + [node]
    several = {"anyOf": [{"$ref": "#/x" + "/490" * 11, "a": 1}] * 10}
    properties = {f"{n}": {"$ref": "#/$defs/D", "b": 1} for n in range(34)}
    return {"type": "object", "x": node, "$defs": {"D": several}, "properties": properties}


async def test_all_else_goes_on_while_the_schemas_of_many_tools_are_adapted() -> None:
    once = Adapting(OpenAIJsonSchemaTransformer)
    adapt_once(once.model)
    tools = []
    for number in range(30):
        node: Any = {"anyOf": [{"title": f"{number}"}, *[{}] * 1_000]}
        for _ in range(7):
            node = {"allOf": [node]}
        tools.append(ToolDefinition(name="t", parameters_json_schema={"type": "object", "properties": {"a": node}}))
    async with longest_step() as seconds:
        size = await size_of_all(tools, [once.model])
        await asyncio.sleep(0)  # else the last step would not count
    assert size == sum(size_of(tool, [once.model]) for tool in tools) > 30 * 3_000
    assert seconds() < 0.2  # they take 0.6 s in one go


def copies_of_a_long_text() -> dict[str, Any]:
    """One transformer looks at each character of each, another writes each out as Python does."""
    long = {"pattern": "x" * 7_990, "type": "string", "const": ["\U0001f600" + "\x7f" * 3_000]}
    return {"type": "object", "d": long, "properties": {"a": {"anyOf": [{"$ref": "#/d"}] * 500}}}


@pytest.mark.parametrize(
    "kind", [_GptOssJsonSchemaTransformer, _OpenRouterGoogleJsonSchemaTransformer, _AzureGrokJsonSchemaTransformer]
)
def test_no_transformer_takes_long_with_copies_of_a_long_text(kind: type[Any]) -> None:
    once = Adapting(kind)
    adapt_once(once.model)
    assert once.sent(PLAIN, None).parameters_json_schema["properties"]
    began = time.thread_time()
    for number in range(8):
        once.sent(copies_of_a_long_text() | {"title": f"{number}"}, None)
    assert time.thread_time() - began < 0.25  # it was up to 3.7 s


def values_in_depth() -> dict[str, Any]:
    """At each depth all that is in it is looked at, for a reference, which is the last."""
    node: Any = {"anyOf": [{}] * 700 + [{"$ref": "#/$defs/a"}]}
    for _ in range(16):
        node = {"allOf": [{"type": "object", "propertyNames": node}]} if _ % 4 else {"allOf": [node]}
    return {"type": "object", "properties": {"a": node}, "$defs": {"a": {"type": "string"}}}


def test_values_in_depth_take_short_to_adapt() -> None:
    once = Adapting(_OpenRouterGoogleJsonSchemaTransformer)
    adapt_once(once.model)
    once.sent(PLAIN, None)
    began = time.thread_time()
    for number in range(8):
        once.sent(values_in_depth() | {"title": f"{number}"}, None)
    assert time.thread_time() - began < 0.3
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(50):
        deep = {"type": "object", "properties": {"a": deep}}
    in_depth: Any = {"anyOf": [{}] * 2_900}
    for _ in range(17):
        in_depth = {"allOf": [in_depth]}
    for much in (deep, in_depth, {"type": "object", "anyOf": [{}] * 3_100}):
        assert once.sent(much, None).parameters_json_schema == json.loads(ANY)


@pytest.mark.parametrize("schema", [chain_of_references(), pointers_through_lists()])
def test_references_in_a_schema_take_short_to_follow(schema: dict[str, Any]) -> None:
    once = Adapting(InlineDefsJsonSchemaTransformer)
    adapt_once(once.model)
    once.sent(PLAIN, None)
    began = time.thread_time()
    for number in range(8):
        once.sent(schema | {"title": f"{number}"}, None)
    assert time.thread_time() - began < 0.3  # it was 0.8 and 1.3 s


REFUSED: dict[str, dict[str, Any]] = {
    "of another form": {"type": "object", "properties": []},
    "and with more than orjson writes": {"type": "object", "properties": {"n": {"$ref": 5, "maximum": 2**70}}},
    "a reference to nothing": {"type": "object", "properties": {"n": {"$ref": "#/$defs/none"}}},
    "references that double": {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/0"}},
        "$defs": {
            f"{n}": {"type": "object", "properties": {each: {"$ref": f"#/$defs/{n + 1}"} for each in "ab"}}
            for n in range(40)
        }
        | {"40": {"type": "string"}},
    },
    "references to something long": {
        "type": "object",
        "properties": {f"{n}": {"$ref": "#/$defs/long"} for n in range(20)},
        "$defs": {"long": {"type": "string", "description": "x" * (MAX_SCHEMA_BYTES // 10)}},
    },
}


@pytest.mark.parametrize("schema", REFUSED.values(), ids=REFUSED)
def test_a_tool_with_a_schema_that_cannot_be_sent_takes_any_arguments(schema: dict[str, Any]) -> None:
    once = Adapting(InlineDefsJsonSchemaTransformer)
    adapt_once(once.model)
    with capture_logs() as logs:
        for _ in range(2):
            assert once.sent(schema, None).parameters_json_schema == {"type": "object", "properties": {}}
    assert [entry["event"] for entry in logs] == ["tool_schema_refused"]
    assert len(logs[0]["detail"].split()) == 1 or logs[0]["detail"].startswith("it takes ")  # it quotes no schema
    assert once.walks <= 1


def test_a_schema_whose_references_are_written_out_is_reserved_as_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "key")
    text = {"type": "object", "properties": {f"field_{number}": {"type": "string"} for number in range(40)}}
    parts = {f"part_{number}": {"$ref": "#/$defs/text"} for number in range(15)}
    schema = {"type": "object", "$defs": {"text": text}, "properties": parts}
    tool = ToolDefinition(name="write", parameters_json_schema=schema)
    model = build_model("MODEL", "openrouter:google/gemini-2.5-pro")
    kind: Any = model.profile.get("json_schema_transformer")
    sent = kind(schema, strict=None).walk()
    assert "$ref" not in str(sent)
    assert size_of(tool, [model]) >= len(json.dumps(sent, separators=(",", ":"))) > 5 * size_of(tool)
