"""agents/bounded_client.py: what a model's address answers with is refused before it is unpacked or parsed."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import os
import sys
import tracemalloc
import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import httpx2
import pytest
from aiohttp import web
from openai import _models
from openai._streaming import SSEDecoder
from pydantic_ai import Agent, Tool
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.messages import ModelRequest, ModelRequestAttempt, ModelResponse, TextPart, ThinkingPart
from pydantic_ai.models.openai import _responses_streaming
from pydantic_ai.providers import infer_provider_class
from structlog.testing import capture_logs

from agents.bounded_client import (
    BYTES_AT_ONCE,
    LARGE_AT_ONCE,
    MAX_BODY_BYTES,
    MAX_COOKIE_BYTES,
    MAX_COOKIES,
    MAX_EVENT_BYTES,
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    MAX_LINES,
    MAX_PARTS,
    MAX_RESPONSE_BYTES,
    PART_BYTES,
    ShorteningErrors,
    asks_another,
    bound_http,
)
from agents.fast import OUTPUT_TOKENS
from agents.gateway import AgentRequest, Answer, Failure, FailureKind, Outcome
from agents.general import GeneralAgent
from agents.judge import ModelJudge
from agents.models import build_model
from agents.providers import ALIASES, PROVIDERS
from agents.run import MAX_OUTPUT_CHARACTERS, MAX_SIGNED_CHARACTERS, sanitized
from agents.shortening import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_ID,
    MAX_ITEMS,
    MAX_KEY,
    MAX_KEYS,
    MAX_MODEL_NAME,
    MAX_NAME,
    MAX_NAMES,
    MAX_SAID,
    SHORT,
    shorten_response,
)
from conversation import ChannelConversation
from decider import JudgeError
from place import Place
from state.budget import Budget
from state.limits import Limits
from state.spending import NOBODY
from tests.support.clock import NOON, FakeClock
from tests.support.people import ANNA, CHANNEL, Me, said
from tests.support.purse import NotingPurse
from tests.support.steps import longest_step
from web.logs import ignore_warnings

STREAM = "text/event-stream"
Serve = Callable[[web.Response], None]
QUESTION = said(ANNA, "what?")
PLACE = Place(bot_name="Parley", guild="The Guild", channel="general")
REQUEST = AgentRequest((), [QUESTION], [QUESTION], PLACE, NOON)


def event(
    delta: dict[str, Any], finish: str | None = None, end: bytes = b"\n\n", more: dict[str, Any] | None = None
) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **(more or {}),
    }
    return b"data: " + json.dumps(body).encode() + end


@pytest.fixture
async def serve(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Serve]:
    """The model's address, which answers so, but for the sound model; it was asked for nothing packed."""
    given: list[web.Response] = []

    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Accept-Encoding"] == "identity"
        if b'"model":"sound"' in await request.read():
            return web.Response(body=event({"content": "It is so."}) + event({}, "stop"), content_type=STREAM)
        once_more = {"retry-after-ms": "1", **given[-1].headers}
        return web.Response(body=given[-1].body, status=given[-1].status, headers=once_more)

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-stub")
    yield given.append
    await runner.cleanup()


@asynccontextmanager
async def serving(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """The address of a server that answers so, whatever the length of a header."""
    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app, max_field_size=2**20)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    await runner.cleanup()


OTHERS = {
    "groq": ("GROQ_BASE_URL", "GROQ_API_KEY"),
    "google": ("GOOGLE_GEMINI_BASE_URL", "GOOGLE_API_KEY"),
    "mistral": ("", "MISTRAL_API_KEY"),
    "cohere": ("CO_BASE_URL", "CO_API_KEY"),
    "huggingface": ("", "HF_TOKEN"),
}


@pytest.fixture
def other(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model of another provider, if its package is installed, at the same address."""
    prefix: str = request.param
    address, key = OTHERS[prefix]
    url = os.environ["OPENAI_BASE_URL"].removesuffix("/v1")
    try:
        infer_provider_class(prefix)
    except ImportError:
        pytest.skip(f"the package of {prefix} is not installed")
    monkeypatch.setenv(key, "key-of-the-stub")
    if address:
        monkeypatch.setenv(address, url)
    monkeypatch.setattr("agents.models.HUGGING_FACE", url)
    if prefix == "mistral":
        monkeypatch.setattr("mistralai.client.sdkconfiguration.SERVERS", {"global": url, "eu": url})
    return f"{prefix}:m"


async def asked(name: str = "openai-chat:m") -> Outcome:
    async with build_model("MODEL", name) as model:
        return await GeneralAgent(model).respond(REQUEST, lambda _text: None)


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("content_type", [STREAM, "application/json"])
async def test_a_packed_response_is_not_unpacked(serve: Serve, status: int, content_type: str) -> None:
    packed = gzip.compress(event({"content": "It is so."}) + event({}, "stop"))
    headers = {"Content-Type": content_type, "Content-Encoding": "gzip"}
    serve(web.Response(body=packed, status=status, headers=headers))
    with capture_logs() as logs:
        outcome = await asked()
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.UNAVAILABLE
    assert "packed as gzip" in next(e["detail"] for e in logs if e["event"] == "model_response_refused")


@pytest.mark.parametrize("other", OTHERS, indirect=True)
@pytest.mark.parametrize("packing", ["gzip", ""])
@pytest.mark.filterwarnings("default")  # their packages' own
async def test_each_providers_responses_are_bounded(serve: Serve, other: str, packing: str) -> None:
    too_large = MAX_EVENT_BYTES if other.startswith("groq") else MAX_BODY_BYTES
    body = gzip.compress(event({}, "stop")) if packing else event({"content": "x" * too_large})
    serve(web.Response(body=body, headers={"Content-Type": STREAM, "Content-Encoding": packing or "identity"}))
    with capture_logs() as logs:
        outcome = await asked(other)
    assert isinstance(outcome, Failure)
    assert "model_response_refused" in [entry["event"] for entry in logs]


@pytest.mark.slow  # loads each one's client
@pytest.mark.parametrize("prefix", [one for one in (*PROVIDERS, *ALIASES) if one not in ("bedrock", "xai")])
@pytest.mark.filterwarnings("default")  # their packages' own
async def test_the_responses_of_every_provider_that_uses_such_a_client_are_bounded(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = PROVIDERS[ALIASES.get(prefix, prefix)]
    for variable in provider.variables:
        monkeypatch.setenv(variable, "2025-01-01")
    if provider.address:
        monkeypatch.setenv(provider.variables[0], provider.address)
    try:
        infer_provider_class(prefix)
    except ImportError:
        pytest.skip(f"the package of {prefix} is not installed")

    async def answer(_self: object, request: Any) -> Any:
        library = sys.modules[type(request).__module__]
        headers = {"Content-Type": STREAM, "Content-Encoding": "gzip"}
        return library.Response(200, headers=headers, stream=library.ByteStream(gzip.compress(b"data: {}\n\n")))

    for library in filter(None, map(sys.modules.get, ("httpx2", "httpx"))):
        monkeypatch.setattr(library.AsyncHTTPTransport, "handle_async_request", answer)
    with capture_logs() as logs:
        await asked(f"{prefix}:{provider.example}")
    assert "model_response_refused" in [entry["event"] for entry in logs]


@pytest.mark.parametrize("content_type", [STREAM, "application/json"])
@pytest.mark.parametrize("size", [30, 30_000])
async def test_where_nothing_is_shortened_before_it_is_validated_parts_count_as_more_bytes(
    serve: Serve, content_type: str, size: int
) -> None:
    body = b"data: " * (content_type == STREAM) + b"[" + b"{}," * (size // 3) + b"{}]\n\n"
    serve(web.Response(body=body, content_type=content_type))
    http = bound_http(httpx2.AsyncClient(), MAX_BODY_BYTES, MAX_BODY_BYTES, PART_BYTES)
    async with http, http.stream("POST", os.environ["OPENAI_BASE_URL"]) as response:
        if size < MAX_BODY_BYTES // PART_BYTES:
            assert await response.aread() == body
            return
        with pytest.raises(httpx2.RemoteProtocolError):
            await response.aread()


async def test_a_client_that_is_made_anew_is_bounded_too(serve: Serve) -> None:
    packed = gzip.compress(event({"content": "It is so."}) + event({}, "stop"))
    serve(web.Response(body=packed, headers={"Content-Type": STREAM, "Content-Encoding": "gzip"}))
    model = build_model("MODEL", "openai-chat:m")
    async with model:
        pass  # closes its client
    with capture_logs() as logs:
        async with model:
            await GeneralAgent(model).respond(REQUEST, lambda _text: None)
    assert "model_response_refused" in [entry["event"] for entry in logs]


@pytest.mark.parametrize(
    "large",
    [
        event({"content": "x" * MAX_EVENT_BYTES}),
        b"data: \n" * (MAX_EVENT_BYTES // 7 + 1),
        b":\n" * (MAX_LINES + 1),
        b":\r" * (MAX_LINES + 1),
        event({"tool_calls": [{"index": n, "id": f"c{n}", "function": {"name": "t"}} for n in range(9_000)]}),
    ],
    ids=["a delta", "lines of one event", "short lines", "short lines by carriage returns", "calls of tools"],
)
async def test_an_event_that_is_too_large_ends_the_answer_with_what_came_before(serve: Serve, large: bytes) -> None:
    body = event({"content": "First words"}) + large + event({}, "stop")
    serve(web.Response(body=body, headers={"Content-Type": STREAM}))
    outcome = await asked()
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.text) == (FailureKind.UNAVAILABLE, "First words")


@pytest.mark.parametrize(
    "bad",
    [
        web.Response(body=b"x" * (MAX_BODY_BYTES + 1), status=500),
        web.Response(body=b"data: " + b"[" * 9_000 + b"\n\n", content_type=STREAM),
        web.Response(body=b'data: {"choices": "so"}\n\n', content_type=STREAM),
    ],
    ids=["a large error", "nested too deep", "of another form"],
)
async def test_after_a_response_that_makes_its_client_stumble_the_next_model_is_asked(
    serve: Serve, bad: web.Response
) -> None:
    serve(bad)
    with capture_logs():
        alone, together = await asked(), await asked("openai-chat:m,openai-chat:sound")
    assert isinstance(alone, Failure)
    assert alone.kind is FailureKind.UNAVAILABLE
    assert isinstance(together, Answer)
    assert together.text == "It is so."


@pytest.mark.parametrize(
    "large",
    [
        b'data: {"object": "chat.completion.chunk", "choices": [%b]}\n\n' % b",".join([b'{"index": 0}'] * 20_000),
        event({"tool_calls": [{"index": 0}] * 20_000}),
    ],
    ids=["choices", "calls of tools"],
)
async def test_an_event_is_shortened_before_what_it_lists_is_validated(
    serve: Serve, large: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[int] = []
    construct = _models.construct_type

    def note(*, type_: Any, value: Any) -> object:
        choices = value["choices"]
        listed.append(len(choices) + sum(len(choice.get("delta", {}).get("tool_calls", ())) for choice in choices))
        return construct(type_=type_, value=value)

    monkeypatch.setattr("openai._base_client.construct_type", note)
    body = event({"content": "It is so."}) + large + event({}, "stop")
    serve(web.Response(body=body, headers={"Content-Type": STREAM}))
    await asked()
    assert listed[0] == 1
    assert 1 <= listed[1] <= MAX_ITEMS


async def test_an_event_is_cut_before_its_texts_are_looked_at_but_what_only_its_provider_reads(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[dict[str, Any]] = []
    construct = _models.construct_type

    def note(*, type_: Any, value: Any) -> object:
        heard.append(value)
        return construct(type_=type_, value=value)

    monkeypatch.setattr("openai._base_client.construct_type", note)
    signed = "s" * 200_000
    item = {"id": "t", "type": "reasoning", "summary": [], "encrypted_content": signed, "x" * (MAX_KEY + 1): 1}
    thought = {"type": "response.output_item.done", "output_index": 0, "item": item}
    long = {"type": "response.reasoning_text.delta", **IN_ITEM, "delta": ["x" * 90_000] * 3}
    serve(web.Response(body=named(thought, long), headers={"Content-Type": STREAM}))
    await asked("openai-responses:m")
    assert heard[0]["item"] == {"id": "t", "type": "reasoning", "summary": [], "encrypted_content": signed}
    texts = [*heard[1]["delta"], *(value for value in heard[1].values() if isinstance(value, str))]
    assert MAX_CHARACTERS <= sum(map(len, texts)) <= MAX_CHARACTERS + len(texts) * SHORT


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf \n\n"])
async def test_what_begins_as_json_is_bounded_as_that_though_it_is_called_a_stream(
    serve: Serve, status: int, mark: bytes
) -> None:
    body = mark + b'{"choices": [' + b"{},\n\n" * (MAX_BODY_BYTES // 5) + b"{}]}"
    serve(web.Response(body=body, status=status, headers={"Content-Type": STREAM}))
    async with build_model("JUDGE_MODEL", "openai-chat:m") as model:
        judge = ModelJudge(model, bot=Me(), purse=NotingPurse())
        with capture_logs() as logs, pytest.raises(JudgeError):
            await judge(QUESTION, ChannelConversation(CHANNEL, NOON, NOON, [QUESTION]))
    assert "model_response_refused" in [entry["event"] for entry in logs]


@pytest.mark.parametrize("status", [200, 500])
async def test_what_is_read_as_a_whole_is_bounded_as_that_though_it_is_called_a_stream(
    serve: Serve, status: int
) -> None:
    serve(web.Response(body=b": ping\n\n" * (MAX_BODY_BYTES // 8 + 1), status=status, headers={"Content-Type": STREAM}))
    async with build_model("JUDGE_MODEL", "openai-chat:m") as model:
        judge = ModelJudge(model, bot=Me(), purse=NotingPurse())
        with capture_logs() as logs, pytest.raises(JudgeError):
            await judge(QUESTION, ChannelConversation(CHANNEL, NOON, NOON, [QUESTION]))
    assert "model_response_refused" in [entry["event"] for entry in logs]


async def test_all_else_goes_on_while_thousands_of_chunks_are_read_that_came_at_once() -> None:
    count, turns = 5_000, 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"1\r\n:\r\n" * count + b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def go_on() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    http = bound_http(httpx2.AsyncClient(), MAX_EVENT_BYTES, MAX_BODY_BYTES)
    async with listening, http, http.stream("GET", url) as response:
        task = asyncio.create_task(go_on())
        assert sum([len(chunk) async for chunk in response.aiter_bytes()]) == count
        task.cancel()
    assert turns >= count


@pytest.mark.parametrize(("most", "events", "is_taken"), [(10_000, 100, True), (10_000, 99, False), (None, 1, True)])
async def test_each_event_counts_once_and_only_where_all_of_them_are_collected(
    monkeypatch: pytest.MonkeyPatch, most: int | None, events: int, is_taken: bool
) -> None:
    monkeypatch.setattr("agents.bounded_client.MAX_EVENTS", events)

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": STREAM})
        await response.prepare(request)
        for number in range(100):
            for piece in (b"data: 1\n\n",) if number % 2 else (b"data: 1\r", b"\n\r", b"\n"):
                await response.write(piece)
        return response

    http = bound_http(httpx2.AsyncClient(), MAX_EVENT_BYTES, MAX_BODY_BYTES, most=most)
    heard = b""
    async with serving(answer) as url, http, http.stream("GET", url) as response:
        with nullcontext() if is_taken else pytest.raises(httpx2.RemoteProtocolError):
            async for chunk in response.aiter_bytes():
                heard += chunk
    assert heard == b"data: 1\n\n" * 100 or not is_taken


async def test_ends_of_lines_of_which_clients_make_different_events_stop_nothing_else(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_anthropic(monkeypatch)
    large = (b": " + b"x" * 500_000 + b"\r\r\n") * 20 + b"\r\r\n" * 1_000
    said = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "It is so."}}
    ends = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
    serve(web.Response(body=named(BEGUN) + large + b"\n\n" + named(said, ends), content_type=STREAM))
    await asked("anthropic:m")  # what is imported at first takes longer
    async with longest_step() as seconds:
        assert isinstance(await asked("anthropic:m"), Answer)
    assert seconds() < 0.15  # it was 2 s: each line was added to a copy of all before


OF_CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"


@pytest.mark.parametrize("lines", [10, MAX_HEAD_BYTES])
@pytest.mark.parametrize("between", [b"", b"\r\n0\r\n"], ids=["headers", "trailers"])
async def test_what_comes_around_the_body_of_a_response_is_bounded(between: bytes, lines: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OF_CHUNKS + between + b"a:\r\n" * lines + b"\r\n" + b"0\r\n\r\n" * (not between))
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening, bound_http(httpx2.AsyncClient(), MAX_EVENT_BYTES, MAX_BODY_BYTES) as http:
        if lines < MAX_HEAD_BYTES:
            assert (await http.get(url)).status_code == 200
            return
        with pytest.raises(httpx2.RemoteProtocolError):
            await http.get(url)


@pytest.mark.parametrize(
    "around",
    [
        b"a:" + b" " * 16_000 + b"\0\r\n\r\n",
        b"\r\n0\r\na:" + b" " * 16_000 + b"\0\r\n\r\n",
        b"\r\n5;" + b"\t " * 8_000 + b"\n\r\n",
    ],
    ids=["header", "trailer", "chunk"],
)
async def test_blanks_around_the_body_of_a_response_are_read_once(around: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OF_CHUNKS + around)
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    http = bound_http(httpx2.AsyncClient(), MAX_EVENT_BYTES, MAX_BODY_BYTES)
    async with listening, http, longest_step() as seconds:
        with pytest.raises(httpx2.RemoteProtocolError):
            await http.get(url)
    assert seconds() < 0.15  # it was 0.8 s, and 0.3 s in a chunk's line


async def test_blanks_around_the_value_of_a_header_are_no_part_of_it() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OF_CHUNKS + b"a: \t b \t c \t \r\nd: \r\n\r\n2;x=1 \r\nso\r\n0\r\n\r\n")
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening, bound_http(httpx2.AsyncClient(), MAX_EVENT_BYTES, MAX_BODY_BYTES) as http:
        response = await http.get(url)
    assert (response.headers["a"], response.headers["d"], response.text) == ("b \t c", "", "so")


@pytest.mark.parametrize("value", ["", "x" * 3_000])
async def test_of_cookies_no_more_are_kept_than_a_request_can_take_along(value: str) -> None:
    sent: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        sent.append(request.headers.get("Cookie", ""))
        response = web.Response(text="It is so.")
        for number in range(3 if value else 150):
            response.set_cookie(f"a{len(sent)}-{number}", value)
        response.set_cookie("session", "kept")
        return response

    async with serving(answer) as url, bound_http(httpx2.AsyncClient(), MAX_EVENT_BYTES, MAX_BODY_BYTES) as http:
        for _ in range(5):
            assert (await http.get(url)).status_code == 200
    assert max(map(len, sent)) <= MAX_COOKIE_BYTES + len("=; ") * MAX_COOKIES


async def test_a_server_knows_a_client_again_by_a_few_cookies() -> None:
    sent: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        sent.append(request.headers.get("Cookie", ""))
        response = web.Response(text="It is so.")
        response.set_cookie("node", f"{len(sent)}")
        return response

    async with serving(answer) as url, bound_http(httpx2.AsyncClient(), 100, 100) as http:
        for _ in range(3):
            await http.get(url)
    assert sent == ["", "node=1", "node=2"]


@pytest.mark.parametrize("kind", ["text/plain", "application/json"])
async def test_an_encoding_that_takes_long_to_decode_is_not_heeded(serve: Serve, kind: str) -> None:
    headers = {"Content-Type": f"{kind}; charset=punycode"}  # whose time is quadratic
    body = b"no " + b"9" * (MAX_BODY_BYTES - 30)
    serve(web.Response(body=b'{"no": "%b"}' % body if "json" in kind else body, status=400, headers=headers))
    await asked()  # what is imported at first takes longer
    async with longest_step() as seconds:
        outcome = await asked()
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.REJECTED
    assert "no" in outcome.detail
    assert seconds() < 0.2


async def test_what_perplexity_repeats_in_each_piece_is_left_out(serve: Serve) -> None:
    """The text so far, and all sources. https://docs.perplexity.ai/docs/sonar/pro-search/stream-mode"""
    words = [f"word{number} " for number in range(1_000)]
    sources = [f"https://source.example/{number}" for number in range(50)]
    pieces = []
    for number, word in enumerate(words):
        choice = {"index": 0, "delta": {"content": word}, "message": {"content": "".join(words[: number + 1])}}
        body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "citations": sources}
        pieces.append(b"data: " + json.dumps(body | {"choices": [choice]}).encode() + b"\n\n")
    serve(web.Response(body=b"".join(pieces) + event({}, "stop"), content_type=STREAM))
    outcome = await asked()
    assert isinstance(outcome, Answer)
    assert outcome.text == "".join(words)


@pytest.mark.parametrize("name", ["openai-chat:m", "openrouter:openai/m"])
async def test_long_arguments_in_small_pieces_are_taken(
    serve: Serve, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pydantic-ai tells the id of their call with each piece."""
    at_open_router(monkeypatch)
    arguments = json.dumps({"words": "word " * 3_000})
    pieces = [arguments[start : start + 4] for start in range(0, len(arguments), 4)]
    begun: dict[str, Any] = {"index": 0, "id": "call_" + "x" * 24, "function": {"name": "look_up", "arguments": ""}}
    calls = [begun, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)]
    body = b"".join(event({"tool_calls": [call]}, more=OF_OPEN_ROUTER) for call in calls)
    serve(web.Response(body=body + event({}, "tool_calls", more=OF_OPEN_ROUTER), content_type=STREAM))
    heard: list[str] = []

    def look_up(words: str) -> str:
        heard.append(words)
        serve(
            web.Response(body=event({"content": "So."}, more=OF_OPEN_ROUTER) + event({}, "stop"), content_type=STREAM)
        )
        return "nothing"

    async with build_model("MODEL", name) as model:
        await GeneralAgent(model, tools=[Tool(look_up, takes_ctx=False)]).respond(REQUEST, lambda _text: None)
    assert heard == ["word " * 3_000]


def test_what_is_an_object_in_place_of_a_text_is_not_kept() -> None:
    """Of the phase of an item, and of the id of a call without a name, no event tells."""
    nested: dict[str, object] = {"a": {"b": {}}}
    item: dict[str, Any] = {
        "index": "x" * 9_000,
        "item_id": "x" * 9_000,
        "type": "response.output_item.added",
        "item": {"id": "i", "phase": nested},
    }
    call: dict[str, Any] = {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": nested}]}}]}
    for data in (item, call):
        shorten_response(data, {}, set())
    assert (item["index"], len(item["item_id"]), item["item"]["phase"]) == (0, MAX_ID, None)
    assert call["choices"][0]["delta"]["tool_calls"] == [{"index": 0, "id": None}]


def test_of_what_a_response_has_beside_its_parts_little_is_kept() -> None:
    attempt = ModelRequestAttempt(
        model_name="m", outcome="error", error="x" * 9_000, timestamp=NOON, duration=timedelta(0)
    )
    details = {"finish_reason": "stop", "diagnostics": {"data": "x" * 9_000}}
    kept = sanitized(
        ModelResponse([], provider_details=details, provider_response_id="x" * 9_000, failed_attempts=[attempt])
    )
    assert kept.provider_details == {"finish_reason": "stop"}
    assert len(kept.provider_response_id or "") == 256
    assert [failed.error for failed in kept.failed_attempts or ()] == [None]


async def test_an_error_that_is_none_is_none(serve: Serve) -> None:
    """As some gateways send it with each piece."""
    serve(web.Response(body=event({"content": "x" * 11_000}, "stop", more={"error": None}), content_type=STREAM))
    outcome = await asked()
    assert isinstance(outcome, Answer)
    assert outcome.text == "x" * 11_000


async def test_calls_without_names_are_limited_where_there_is_another_model_too(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which waits for the first event, and keeps the errors of those before it."""
    call = {"index": 0, "id": "c", "function": {"arguments": "{"}}
    calls = b"".join(event({"tool_calls": [call | {"index": n, "id": f"c{n}"}]}) for n in range(MAX_PARTS + 500))
    serve(web.Response(body=calls + event({}, "stop"), content_type=STREAM))
    traced: list[bool] = []

    def note(error: Exception) -> bool:
        is_next = asks_another(error)
        traced.append(error.__traceback__ is not None)
        return is_next

    monkeypatch.setattr("agents.models.asks_another", note)
    with capture_logs() as logs:
        outcome = await asked("openai-chat:m,openai-chat:sound")
    assert isinstance(outcome, Answer)
    assert "model_response_refused" in [entry["event"] for entry in logs]
    assert traced == [False]


async def test_an_event_of_a_stream_does_not_hold_itself() -> None:
    """Else its text would stay until the collector runs: one answer took 450 MB."""

    async def chunks() -> AsyncIterator[bytes]:
        yield event({"content": "x"})

    gc.disable()
    try:
        events = [weakref.ref(each) async for each in ShorteningErrors(SSEDecoder()).aiter_bytes(chunks())]
        assert [each() for each in events] == [None]
    finally:
        gc.enable()


async def test_of_large_events_of_a_server_few_come_at_a_time() -> None:
    """Each takes a multiple of its size while it is collected."""
    large, is_over = b"data: " + b"x" * (2 * MAX_EVENT_BYTES), asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": STREAM})
        await response.prepare(request)
        with suppress(ConnectionError):
            await response.write(large + b"\n\n" * ("ends" in request.query))
        await is_over.wait()
        return response

    async def read(http: Any, url: str, has_come: dict[int, asyncio.Event]) -> None:
        total = 0
        async with http.stream("GET", url) as response:
            async for piece in response.aiter_raw():
                total += len(piece)
                for size, event in has_come.items():
                    if total >= size:
                        event.set()

    nearly, over, whole = MAX_EVENT_BYTES - BYTES_AT_ONCE, MAX_EVENT_BYTES + BYTES_AT_ONCE, len(large)
    first, others = (
        [{size: asyncio.Event() for size in (nearly, over, whole)} for _ in range(LARGE_AT_ONCE)] for _ in "ab"
    )
    async with serving(answer) as url, bound_http(httpx2.AsyncClient(), 10_000_000, 10_000_000) as http:
        reading = [asyncio.create_task(read(http, url, each)) for each in first]
        await asyncio.gather(*(each[whole].wait() for each in first))
        waiting = [asyncio.create_task(read(http, f"{url}?ends", each)) for each in others]
        await asyncio.gather(*(each[nearly].wait() for each in others))
        await asyncio.wait(waiting, timeout=0.05)
        assert not any(each[over].is_set() for each in others)
        reading[0].cancel()
        await asyncio.gather(*(each[whole].wait() for each in others))  # one after the other: none of them is closed
        for task in (*reading, *waiting):
            task.cancel()
        await asyncio.gather(*reading, *waiting, return_exceptions=True)
        is_over.set()


@pytest.mark.parametrize(("size", "is_taken"), [(20, False), (200, True)])
async def test_tiny_pieces_of_an_event_count_as_what_a_client_keeps(size: int, is_taken: bool) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": STREAM})
        await response.prepare(request)
        for _ in range(20_000 // size):
            await response.write(b"x" * size)
        return response

    http = bound_http(httpx2.AsyncClient(), 30_000, 30_000)
    async with serving(answer) as url, http, http.stream("GET", url) as response:
        with nullcontext() if is_taken else pytest.raises(httpx2.RemoteProtocolError):
            async for _ in response.aiter_bytes():
                pass


@pytest.mark.parametrize("form", ["%s", "{%s"])
async def test_an_error_in_a_stream_is_short(serve: Serve, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept while the next model is asked, and with the answer."""
    at_anthropic(monkeypatch)
    large = {"error": {"type": "api_error", "message": "no", "data": "x" * 400_000}}
    body = f"event: error\ndata: {form % json.dumps(large)}\n\n"
    with pytest.raises(ModelAPIError) as raised:
        await response_to(serve, "anthropic:m", named(BEGUN) + body.encode())
    assert len(f"{raised.value}{raised.value.__cause__}") < 50_000


async def test_the_name_under_which_a_model_answers_is_cut_before_its_price_is_looked_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_open_router(monkeypatch)  # for which there are the most prices
    name = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}" * (MAX_BODY_BYTES // 2 - 1_000)
    message = {"role": "assistant", "content": "It is so."}
    choice = {"index": 0, "finish_reason": "stop", "message": message, **OF_OPEN_ROUTER}
    told = {"id": "x", "object": "chat.completion", "created": 1, "choices": [choice], "provider": "p"}
    agent = Agent(build_model("FAST_MODEL", "openrouter:openai/m"))

    async def answered(model: str) -> str | None:
        serve(web.json_response(told | {"model": model}, dumps=partial(json.dumps, ensure_ascii=False)))
        return (await agent.run("what?")).response.model_name

    async with agent:
        assert await answered("m") == "m"
        async with longest_step() as seconds:
            assert await answered(name) == name[:MAX_MODEL_NAME]
    assert seconds() < 0.15  # it was 0.45 s, and twice that for OpenRouter's own address


async def test_what_was_not_asked_for_is_not_collected(serve: Serve) -> None:
    token = {"token": "x", "logprob": 0, "bytes": [1], "top_logprobs": []}
    choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": None, "logprobs": {"content": [token] * 9}}
    part = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    body = (b"data: " + json.dumps(part).encode() + b"\n\n") * 9 + event({}, "stop")
    response = await response_to(serve, "openai-chat:m", body)
    assert response.text == "x" * 9
    assert "logprobs" not in (response.provider_details or {})


async def response_to(serve: Serve, name: str, body: bytes) -> ModelResponse:
    """What pydantic-ai makes of a stream."""
    serve(web.Response(body=body, content_type=STREAM))
    model, asked_for = build_model("MODEL", name), [ModelRequest.user_text_prompt("what?")]
    async with model, model_request_stream(model, asked_for) as stream:
        async for _ in stream:
            pass
    return stream.get()


def named(*events: dict[str, Any]) -> bytes:
    """A stream in which each event has its type as its name."""
    numbered = ({**each, "sequence_number": number} for number, each in enumerate(events))
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in numbered)


RESPONSE: dict[str, Any] = {
    "id": "r", "object": "response", "created_at": 1, "model": "m", "output": [], "tools": [],
    "parallel_tool_calls": True, "tool_choice": "auto", "status": "completed",
}  # fmt: skip
SOURCE = {"url": "https://source.example", "title": "A source", "start_index": 0, "end_index": 2}
IN_ITEM = {"item_id": "m", "output_index": 0, "content_index": 0}
FROM_WEB = {"type": "web_search_result_location", "cited_text": "x", "encrypted_index": "y", **SOURCE}
USED = {"input_tokens": 5, "output_tokens": 5}
WITH_SOURCES = {
    "openai-chat:m": event({"content": "It is so.", "annotations": [{"type": "url_citation", "url_citation": SOURCE}]})
    + event({}, "stop"),
    "openai-responses:m": named(
        {"type": "response.created", "response": RESPONSE},
        {"type": "response.output_text.delta", **IN_ITEM, "delta": "It is so.", "logprobs": []},
        {
            "type": "response.output_text.annotation.added", **IN_ITEM,
            "annotation_index": 0, "annotation": {"type": "url_citation", **SOURCE},
        },
        {"type": "response.output_text.done", **IN_ITEM, "text": "It is so.", "logprobs": []},
        {"type": "response.completed", "response": RESPONSE},
    ),
    "anthropic:m": named(
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": USED}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It is so."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": FROM_WEB}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": USED},
        {"type": "message_stop"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_SOURCES)
async def test_sources_each_of_which_would_be_looked_for_in_the_text_are_not_collected(
    serve: Serve, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_anthropic(monkeypatch)
    response = await response_to(serve, name, WITH_SOURCES[name])
    assert response.text == "It is so."
    assert [part.citations for part in response.parts if isinstance(part, TextPart)] == [None]


def counting(number: int) -> dict[str, Any]:
    """A use with counts of names of its own."""
    named_so = {f"{number}-{count}": 1 for count in range(MAX_KEYS // 2)}
    details = {"completion_tokens_details": {"x" * 10_000 + f"{number}": 1}}
    return {"usage": {**USED, "prompt_tokens": 5, "completion_tokens": 5, **named_so, **details}}


@pytest.mark.parametrize("follows", [True, False])
async def test_the_use_that_a_server_tells_anew_with_each_piece_counts_once(serve: Serve, follows: bool) -> None:
    used = [{"usage": {"prompt_tokens": 3_000, "completion_tokens": n, "total_tokens": 3_000 + n}} for n in range(201)]
    pieces = b"".join(event({"content": "so "}, more=each) for each in used[:-1])
    last = {"choices": [], **used[-1]}
    end = event({}, "stop") + event({}, more=last) if follows else event({}, "stop", more=used[-1])
    told = (await response_to(serve, "openai-chat:m", pieces + end)).usage
    assert (told.input_tokens, told.output_tokens) == (3_000, 200)


OF_OPEN_ROUTER = {"provider": "p", "native_finish_reason": None}


def at_open_router(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenRouter is at the same address."""
    monkeypatch.setattr("pydantic_ai.providers.openrouter.OpenRouterProvider.base_url", os.environ["OPENAI_BASE_URL"])
    monkeypatch.setenv("OPENROUTER_API_KEY", "key-of-the-stub")


async def test_the_use_that_a_server_tells_with_an_empty_piece_behind_the_end_counts(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_open_router(monkeypatch)
    used = {"usage": {"prompt_tokens": 3_000, "completion_tokens": 20, "total_tokens": 3_020}}
    pieces = [({"content": "so"}, None, {}), ({"content": ""}, "stop", {}), ({"content": ""}, None, used)]
    body = b"".join(event(delta, finish, more=OF_OPEN_ROUTER | more) for delta, finish, more in pieces)
    told = (await response_to(serve, "openrouter:openai/m", body)).usage
    assert (told.input_tokens, told.output_tokens) == (3_000, 20)


@pytest.mark.parametrize("kind", ["text", "parts", "texts"])
async def test_of_blank_text_that_no_event_tells_only_so_much_is_kept(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("VLLM_BASE_URL", os.environ["OPENAI_BASE_URL"])
    blank = " " * 50_000
    content = {"text": blank, "parts": [{"type": "text", "text": blank}], "texts": [blank]}[kind]
    begun = event({"content": "so"}) + event({"reasoning": "why"})
    body = begun + event({"content": content}) * 5 + event({"content": "it is"}) + event({}, "stop")
    parts = sanitized(await response_to(serve, "vllm:Qwen/Qwen3-8B", body)).parts
    texts = [part.content for part in parts if isinstance(part, TextPart)]
    assert texts[0] == "so"
    assert sum(map(len, texts)) <= MAX_OUTPUT_CHARACTERS


async def test_what_is_left_out_of_a_response_does_not_count_as_kept(serve: Serve) -> None:
    """As what Perplexity repeats in each piece."""
    repeated = {"citations": ["https://example.org/" + "x" * 5_000] * 40}
    body = event({"content": "It "}, more=repeated) * 80 + event({"content": "is so."}, "stop")
    assert len(body) > MAX_RESPONSE_BYTES
    assert (await response_to(serve, "openai-chat:m", body)).text == "It " * 80 + "is so."


async def test_an_emoji_in_two_pieces_is_one_and_half_an_emoji_is_none(serve: Serve) -> None:
    body = event({"content": "so \ud83d"}) + event({"content": "\ude00 and \ud83d"}) + event({}, "stop")
    serve(web.Response(body=body, content_type=STREAM))
    answer = await asked("openai-chat:m")
    assert isinstance(answer, Answer)
    assert answer.text == "so \U0001f600 and \ufffd"
    (said,) = sanitized(await response_to(serve, "openai-chat:m", body)).parts
    assert said.content == answer.text  # type: ignore[union-attr]


async def test_text_in_parts_is_taken(serve: Serve) -> None:
    said = [{"type": "text", "text": "It "}, "is ", {"type": "reference", "reference_ids": [1]}]
    body = event({"content": said}) + event({"content": "so."}) + event({}, "stop")
    assert (await response_to(serve, "openai-chat:m", body)).text == "It is so."


COUNTING = {
    "openai-chat:m": b"".join(event({}, more={**counting(n), "choices": []}) for n in range(9)) + event({}, "stop"),
    "openai-responses:m": named(
        {"type": "response.created", "response": RESPONSE},
        *({"type": "response.in_progress", "response": {**RESPONSE, **counting(n)}} for n in range(9)),
        {"type": "response.completed", "response": RESPONSE},
    ),
    "anthropic:m": named(
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": USED}},
        *({"type": "message_delta", "delta": {"stop_reason": "end_turn"}} | counting(n) for n in range(9)),
        {"type": "message_stop"},
    ),
}


@pytest.mark.parametrize("name", COUNTING)
async def test_counts_of_ever_new_names_are_not_collected(
    serve: Serve, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_anthropic(monkeypatch)
    used = (await response_to(serve, name, COUNTING[name])).usage
    assert used.input_tokens
    assert len(used.details) <= MAX_NAMES
    assert max(map(len, used.details), default=0) <= MAX_NAME


@pytest.mark.parametrize(
    "many",
    [
        {"output": [{"id": "f", "type": "computer_call"}] * 1_000},
        {"instructions": [{"type": "so"}] * 1_000, "tools": [{"type": "so"}] * 1_000},
        {"metadata": {f"{n}": 7 for n in range(40_000)}},
        {"text": {"verbosity": [[{}]] * 1_000}},
    ],
    ids=["output", "what the request said", "keys", "lists"],
)
async def test_an_event_of_the_responses_api_is_shortened_before_it_is_validated(
    serve: Serve, many: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    items: list[int] = []
    construct = _models.construct_type

    def count(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return len(inner) + sum(map(count, inner))

    def note(*, type_: Any, value: Any) -> object:
        items.append(count(value))
        return construct(type_=type_, value=value)

    monkeypatch.setattr("openai._base_client.construct_type", note)
    body = named(*({"type": f"response.{what}", "response": RESPONSE | many} for what in ("created", "completed")))
    response = await response_to(serve, "openai-responses:m", body)
    assert response.provider_response_id == "r"
    assert len(items) == 2
    assert max(items) < MAX_ITEMS + MAX_KEYS


def of_provider(kind: str, result: dict[str, Any], number: int) -> dict[str, Any]:
    """The end of a call of a tool that the provider itself runs."""
    item = {"id": f"{kind}-{number}", "type": kind, "status": "completed", **result}
    return {"type": "response.output_item.done", "output_index": number, "item": item}


async def test_what_a_provider_ran_by_itself_is_not_kept(serve: Serve) -> None:
    unasked = {"tools": [{"name": "n", "input_schema": {}}], "server_label": "s"}
    said = {"type": "response.output_text.delta", **IN_ITEM, "delta": "It is so.", "logprobs": []}
    done = {"type": "response.completed", "response": RESPONSE}
    ran = of_provider("mcp_list_tools", unasked, 0)
    begins = {"type": "response.created", "response": RESPONSE}
    response = await response_to(serve, "openai-responses:m", named(begins, ran, said, done))
    assert len(response.parts) == 2
    assert [type(part) for part in sanitized(response).parts] == [TextPart]


RESULT = "ж" * (MAX_EVENT_BYTES // 2 - 1_000)  # of tools that were not asked for
UNASKED: dict[str, dict[str, Any]] = {
    "mcp_call": {"name": "n", "server_label": "s", "arguments": "{}", "output": RESULT},
    "code_interpreter_call": {"code": "x", "container_id": "c", "outputs": [{"type": "logs", "logs": RESULT}]},
    "compaction": {"encrypted_content": "x" * len(RESULT)},
}


@pytest.mark.parametrize("kind", UNASKED)
@pytest.mark.parametrize("count", [1, 10])
async def test_of_what_a_provider_adds_by_itself_only_so_much_is_taken(serve: Serve, kind: str, count: int) -> None:
    events = (of_provider(kind, UNASKED[kind], number) for number in range(count))
    said = {"type": "response.output_text.delta", **IN_ITEM, "delta": "It is so.", "logprobs": []}
    done = {"type": "response.completed", "response": RESPONSE}
    body = b"".join(
        f"event: {each['type']}\ndata: {json.dumps(each, ensure_ascii=False)}\n\n".encode()
        for each in ({"type": "response.created", "response": RESPONSE}, *events, said, done)
    )
    serve(web.Response(body=body, content_type=STREAM))
    outcome = await asked("openai-responses:m")
    if count == 1:
        assert isinstance(outcome, Answer)
    else:
        assert isinstance(outcome, Failure)
        assert "went on without end" in outcome.detail


async def test_a_thought_far_behind_others_makes_none_of_those_before_it(serve: Serve) -> None:
    far = {**IN_ITEM, "content_index": 100 * MAX_ITEMS}
    body = named(
        {"type": "response.created", "response": RESPONSE},
        {"type": "response.reasoning_text.delta", **far, "delta": "So."},
        {"type": "response.completed", "response": RESPONSE},
    )
    (thought,) = (await response_to(serve, "openai-responses:m", body)).parts
    assert isinstance(thought, ThinkingPart)
    assert len((thought.provider_details or {})["raw_content"]) == 1


WIDE = "\N{GRINNING FACE}" + "x" * (MAX_EVENT_BYTES // 2)  # four bytes a character, as Python keeps it
COUNTED: dict[str, dict[str, Any]] = {
    "raw thoughts": {"type": "response.reasoning_text.delta", **IN_ITEM, "delta": WIDE},
    "namespaces of calls": {
        "type": "response.output_item.added", "output_index": 0,
        "item": {"type": "function_call", "id": "i", "call_id": "c", "name": "n", "arguments": "", "namespace": WIDE},
    },
}  # fmt: skip
COUNTED_OF_CALLS = {"index": 0, "function": {"name": "n"}, "extra_content": {"google": {"thought_signature": WIDE}}}
COUNTED_OF_CHAT: dict[str, tuple[str, dict[str, Any]]] = {
    "signatures of calls": ("openai-chat:m", {"tool_calls": [COUNTED_OF_CALLS]}),
    "formats of thoughts": (
        "openrouter:openai/m",
        {"reasoning_details": [{"type": "reasoning.text", "text": "x", "format": WIDE, "index": 0}]},
    ),
}


def each_its_own(large: dict[str, Any], count: int) -> bytes:
    """A stream of so many such events, each of which has other words."""
    told = json.dumps(large, ensure_ascii=False)
    numbered = (told.replace(WIDE, f"{number}{WIDE}") for number in range(count))
    return b"".join(f"data: {each}\n\n".encode() for each in numbered)


@pytest.mark.parametrize("kind", COUNTED)
async def test_an_answer_ends_when_too_much_is_collected_that_nobody_reads(serve: Serve, kind: str) -> None:
    serve(web.Response(body=each_its_own(COUNTED[kind], 10), content_type=STREAM))
    outcome = await asked("openai-responses:m")
    assert isinstance(outcome, Failure)
    assert "went on without end" in outcome.detail


@pytest.mark.parametrize("kind", COUNTED_OF_CHAT)
async def test_so_it_does_when_that_comes_with_calls_or_thoughts(
    serve: Serve, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_open_router(monkeypatch)
    name, delta = COUNTED_OF_CHAT[kind]
    choice = {"index": 0, "delta": delta, "finish_reason": None, **OF_OPEN_ROUTER}
    large = {"id": "x", "created": 1, "model": "m", "object": "chat.completion.chunk", **OF_OPEN_ROUTER}
    serve(web.Response(body=each_its_own(large | {"choices": [choice]}, 10), content_type=STREAM))
    outcome = await asked(name)
    assert isinstance(outcome, Failure)
    assert "went on without end" in outcome.detail


BEGUN = {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": USED}}


def at_anthropic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the stub stand in for Anthropic."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", os.environ["OPENAI_BASE_URL"].removesuffix("/v1"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-the-stub")


async def test_of_signatures_that_are_no_texts_only_so_much_is_kept(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_anthropic(monkeypatch)
    thought = {"type": "thinking", "thinking": "", "signature": [WIDE]}
    begins = {"type": "content_block_start", "index": 0, "content_block": thought}
    told = each_its_own(begins, 10).replace(b"data: ", b"event: content_block_start\ndata: ")
    serve(web.Response(body=named(BEGUN) + told, content_type=STREAM))
    outcome = await asked("anthropic:m")
    assert isinstance(outcome, Failure)
    assert f"more than {MAX_SAID:,} characters" in outcome.detail


async def test_sources_are_not_looked_at_all_together_at_the_end_of_a_text(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    class Noting:
        def validate_python(self, source: object) -> object:
            seen.append(source)
            return source

    monkeypatch.setattr(_responses_streaming, "responses_output_text_annotation_ta", Noting())
    place = {"item_id": "", "content_index": 0, "output_index": 0}
    source = {"type": "response.output_text.annotation.added", **place, "annotation": {}, "annotation_index": 0}
    body = named(
        {"type": "response.created", "response": RESPONSE},
        {"type": "response.output_text.delta", **place, "delta": "So.", "logprobs": []},
        *[source] * 9,
        {"type": "response.output_text.done", **place, "text": "So.", "logprobs": []},
        {"type": "response.completed", "response": RESPONSE},
    )
    assert (await response_to(serve, "openai-responses:m", body)).text == "So."
    assert not seen  # 300,000 of them, which a response had room for, took 0.8 s in one go


@pytest.mark.parametrize("number", [2_000_000, 2e6, -1, None, "2"])
async def test_thoughts_with_a_number_that_is_none_fill_no_list(serve: Serve, number: object) -> None:
    thought = {"type": "response.reasoning_text.delta", **IN_ITEM, "content_index": number, "delta": "Hm."}
    ended = {"type": "response.completed", "response": RESPONSE}
    response = await response_to(serve, "openai-responses:m", named(thought, ended))
    # 2e7 took 1.6 s and 154 MB, 1e10 all there was
    assert [(part.provider_details or {})["raw_content"] for part in response.parts] == [["Hm."]]


def of_anthropic(index: int, arguments: str) -> dict[str, Any]:
    delta = {"type": "input_json_delta", "partial_json": arguments}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def of_search(number: int) -> dict[str, Any]:
    result = {"call_id": "c", "execution": "server", "arguments": {"queries": [WIDE]}}
    return of_provider("tool_search_call", result, number)


KEPT: dict[str, tuple[str, Callable[[int], dict[str, Any]]]] = {
    "a refusal of chat completions": (
        "openai-chat:m",
        lambda _: {"choices": [{"index": 0, "delta": {"refusal": WIDE}}]},
    ),
    "a refusal": ("openai-responses:m", lambda _: {"type": "response.refusal.delta", **IN_ITEM, "delta": WIDE}),
    "phases": (
        "openai-responses:m",
        lambda n: {"type": "response.output_item.added", "item": {"phase": "c", "id": f"{n}"}},
    ),
    "long ids with phases": (
        "openai-responses:m",
        lambda _: {"type": "response.output_item.added", "item": {"type": "message", "phase": "c", "id": WIDE}},
    ),
    "lists as numbers of thoughts": (
        "openai-responses:m",
        lambda _: {
            "type": "response.reasoning_summary_text.delta", "item_id": "i", "output_index": 0, "delta": "x",
            "summary_index": [WIDE],
        },
    ),
    "a call without a name": (
        "openai-chat:m",
        lambda _: {"choices": [{"index": 0, "delta": {"tool_calls": [{"function": {"arguments": WIDE}}]}}]},
    ),
    "a call of Anthropic's without a name": ("anthropic:m", lambda _: of_anthropic(0, WIDE)),
    "calls of an MCP server": (
        "openai-responses:m",
        lambda n: {"type": "response.mcp_call_arguments.delta", "item_id": f"{n}", "output_index": 0, "delta": WIDE},
    ),
    "code": (
        "openai-responses:m",
        lambda _: {
            "type": "response.code_interpreter_call_code.delta", "item_id": "i", "output_index": 0, "delta": WIDE,
        },
    ),
    "searches for tools": ("openai-responses:m", of_search),
}  # fmt: skip


@pytest.mark.parametrize("kind", KEPT)
async def test_whatever_a_client_keeps_of_a_response_it_is_only_so_much(
    serve: Serve, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.bounded_client.MAX_RESPONSE_BYTES", most := 2_000_000)
    monkeypatch.setattr("agents.bounded_client.MAX_EVENTS", 7_000)
    at_anthropic(monkeypatch)
    name, made = KEPT[kind]
    count = 3 * most // len(json.dumps(made(0)))
    told = (json.dumps(made(n), ensure_ascii=False).replace(WIDE, f"{n}{WIDE}") for n in range(count))
    begun = named(BEGUN) if name == "anthropic:m" else b""
    body = begun + b"".join(f"event: {made(0).get('type', 'message')}\ndata: {each}\n\n".encode() for each in told)
    serve(web.Response(body=event({}, "stop"), content_type=STREAM))
    await asked(name)  # what is imported at first takes more
    serve(web.Response(body=body, content_type=STREAM))
    tracemalloc.start()
    try:
        assert isinstance(await asked(name), Failure)
        _, taken = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 12 * most


def to_google(_: int) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {}}] * 500}}]}


def to_mistral(number: int) -> dict[str, Any]:
    calls = [{"index": 200 * number + i, "function": {"name": "", "arguments": ""}} for i in range(200)]
    choice = {"index": 0, "delta": {"tool_calls": calls}, "finish_reason": None}
    return {"id": "x", "model": "m", "choices": [choice]}


async def assert_ended(serve: Serve, name: str, made: Callable[[int], dict[str, Any]]) -> None:
    """That the answer ends by the number of its parts."""
    body = b"".join(f"data: {json.dumps(made(number))}\n\n".encode() for number in range(50))
    serve(web.Response(body=body, content_type=STREAM))
    with capture_logs() as logs:
        assert isinstance(await asked(name), Failure)
    assert any("too many parts" in line.get("detail", "") for line in logs)


async def test_a_response_ends_with_too_many_calls_without_names(serve: Serve) -> None:
    calls = ([{"index": 40 * n + i} for i in range(40)] for n in range(50))
    events = [{"choices": [{"index": 0, "delta": {"tool_calls": each}}]} for each in calls]
    await assert_ended(serve, "openai-chat:m", events.__getitem__)


@pytest.mark.parametrize(("other", "made"), [("google", to_google), ("mistral", to_mistral)], indirect=["other"])
async def test_a_response_ends_with_too_many_parts_of_which_no_event_tells(
    serve: Serve, other: str, made: Callable[[int], dict[str, Any]]
) -> None:
    await assert_ended(serve, other, made)


@pytest.mark.parametrize("has_index", [True, False])
async def test_a_call_is_taken_whose_arguments_come_behind_its_name(serve: Serve, has_index: bool) -> None:
    pieces = [("a", '{"n":'), (None, " 1"), (None, "}"), ("b", "{"), (None, "}")]
    body = b""
    for number, (name, arguments) in enumerate(pieces):
        call = {"function": {"arguments": arguments} | ({"name": name} if name else {})}
        body += event({"tool_calls": [call | ({"index": number // 3} if has_index else {})]})
    response = await response_to(serve, "openai-chat:m", body + event({}, "tool_calls"))
    assert [(call.tool_name, call.args) for call in response.tool_calls] == [("a", '{"n": 1}'), ("b", "{}")]


async def test_what_a_server_sends_is_not_kept_or_shown_as_a_warning(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    from pydantic_ai.models.openai import _responses_streaming as streaming

    item = {"type": "computer_call", "id": "SENT-BY-SERVER", "status": WIDE}
    said = named({"type": "response.output_text.delta", **IN_ITEM, "delta": "It is so.", "logprobs": []})
    unknown = each_its_own({"type": "response.output_item.added", "item": item}, 3)
    serve(web.Response(body=said + unknown, content_type=STREAM))
    with warnings.catch_warnings():
        warnings.resetwarnings()  # as outside of tests
        ignore_warnings()
        outcome = await asked("openai-responses:m")
    assert isinstance(outcome, Answer)
    assert "SENT-BY-SERVER" not in capsys.readouterr().err
    assert "SENT-BY-SERVER" not in str(vars(streaming).get("__warningregistry__"))


JOINED = "<\N{WORD JOINER}|" + "a" * 64


@pytest.mark.parametrize("name", ["openai-chat:m", "ollama:qwen3"])
async def test_arguments_like_tokens_cut_by_joiners_stop_nothing_else(
    serve: Serve, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", os.environ["OPENAI_BASE_URL"])
    function = {"name": "search_history", "arguments": json.dumps({"query": JOINED * 5_000}, ensure_ascii=False)}
    calls = {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": function}]}}]}
    body = f"data: {json.dumps(calls, ensure_ascii=False)}\n\n".encode()
    assert len(body) < MAX_EVENT_BYTES
    serve(web.Response(body=body + event({}, "tool_calls"), content_type=STREAM))
    await asked(name)  # what is imported at first takes longer
    async with longest_step() as seconds:
        outcome = await asked(name)
    assert isinstance(outcome, Failure)
    assert seconds() < 0.2  # it was 1.5 s


def deep(length: int, depth: int) -> object:
    """A text that is written out in four times its length, in objects in each other."""
    value: object = "\U0001f600" + "\x7f" * length
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("depth", [MAX_DEPTH - 8, 400])
@pytest.mark.parametrize("kind", ["an item", "a call", "an error", "an error at Anthropic"])
async def test_objects_in_objects_stop_nothing_else(
    serve: Serve, kind: str, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes them out, as for a warning or an error, copies a long text for each of them."""
    at_anthropic(monkeypatch)
    name = "anthropic:m" if kind in ("a call", "an error at Anthropic") else "openai-responses:m"

    def body(length: int) -> bytes:
        value = deep(length, depth)
        part: dict[str, object] = {"type": "error", "error": {"type": "api_error", "message": "no", "code": value}}
        if kind == "an item":
            item = {"type": "computer_call", "id": "i", "deep": value}  # a type of which nothing is taken
            part = {"type": "response.output_item.added", "output_index": 0, "sequence_number": 1, "item": item}
        elif kind == "a call":
            block = {"type": "tool_use", "id": "i", "name": "t", "input": value}
            part = {"type": "content_block_start", "index": 0, "content_block": block}
        return f"event: {part['type']}\ndata: {json.dumps(part, ensure_ascii=False)}\n\n".encode()

    with warnings.catch_warnings():
        ignore_warnings()
        serve(web.Response(body=body(1), content_type=STREAM))
        await asked(name)  # what is imported at first takes longer
        serve(web.Response(body=body(495_000), content_type=STREAM))
        async with longest_step() as seconds:
            await asked(name)
    assert seconds() < 0.25  # it was 1.2 to 2 s


@pytest.mark.parametrize("depth", [MAX_DEPTH - 8, 900])
@pytest.mark.parametrize("name", ["openai-chat:m", "anthropic:m"])
async def test_an_error_is_not_deep(serve: Serve, name: str, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written out several times: of 64 KB and 900 objects in each other that took 1.0 to 1.6 s."""
    at_anthropic(monkeypatch)
    serve(web.json_response({"error": deep(1, depth)}, status=400))
    model, asked_for = build_model("MODEL", name), [ModelRequest.user_text_prompt("what?")]
    with pytest.raises(ModelHTTPError) as raised:
        async with model, model_request_stream(model, asked_for):
            pass
    assert raised.value.status_code == 400
    assert min(depth, MAX_DEPTH) <= repr(raised.value.body).count("{") <= MAX_DEPTH + 1


@pytest.mark.parametrize("headers", [MAX_HEADERS - 10, MAX_HEADERS + 1])
async def test_of_headers_there_are_few_as_clients_look_through_all_of_them_for_each(headers: int) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=400, headers={f"x-{number}": "" for number in range(headers)})

    async with serving(answer) as url, bound_http(httpx2.AsyncClient(), 100, 100) as http:
        with nullcontext() if headers < MAX_HEADERS else pytest.raises(httpx2.RemoteProtocolError):
            assert (await http.get(url)).status_code == 400


RARE_PAIRS = "\N{LATIN CAPITAL LETTER A WITH MACRON}x" * 60_000  # each of which is counted by itself
NAMELESS = event({"tool_calls": [{"index": 0, "function": {"arguments": RARE_PAIRS}}]})
OTHER = {"index": 0, "function": {"arguments": {"a": 1}}}
OF_ANTHROPIC = {"type": "content_block_delta", "index": 0}
HELD_BACK: dict[str, tuple[str, bytes, bytes]] = {
    "arguments, then their name": (
        "openai-chat:m", NAMELESS, event({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "t"}}]})
    ),
    "arguments, then others": ("openai-chat:m", NAMELESS, event({"tool_calls": [OTHER]})),
    "arguments, then a text": (
        "anthropic:m",
        named({**OF_ANTHROPIC, "delta": {"type": "input_json_delta", "partial_json": RARE_PAIRS}}),
        named({**OF_ANTHROPIC, "delta": {"type": "text_delta", "text": "x"}}),
    ),
    "blank text": (
        "vllm:Qwen/Qwen3-8B", event({"content": " \N{EM QUAD}" * 60_000}), event({"content": "x"}) + event({}, "stop")
    ),
    "refusals": ("openai-chat:m", event({"refusal": RARE_PAIRS}), event({}, "stop")),
}  # fmt: skip


@pytest.mark.parametrize("kind", HELD_BACK)
async def test_what_a_client_holds_back_is_only_so_much_when_it_comes(
    serve: Serve, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of which no event tells before."""
    at_anthropic(monkeypatch)
    monkeypatch.setenv("VLLM_BASE_URL", os.environ["OPENAI_BASE_URL"])
    name, piece, last = HELD_BACK[kind]
    begins = named(BEGUN) if name == "anthropic:m" else event({"content": "so"}) + event({"reasoning": "why"})
    for times in (1, MAX_RESPONSE_BYTES // (len(piece) + 100) - 1):  # at first for what is imported then
        serve(web.Response(body=begins + piece * times + last, content_type=STREAM))
        async with longest_step() as seconds:
            tracemalloc.start() if times > 1 else None
            await asked(name)
    assert seconds() < 0.4  # it was up to 1.9 s
    assert tracemalloc.get_traced_memory()[1] < 40_000_000  # it was up to 400 MB
    tracemalloc.stop()


async def test_a_call_without_a_name_whose_arguments_are_an_object_is_refused(serve: Serve) -> None:
    """To which each event could add others."""
    body = event({"content": "It is so."}) + event({"tool_calls": [OTHER]}) + event({"content": " "}) * 100
    serve(web.Response(body=body + event({}, "stop"), content_type=STREAM))
    with capture_logs() as logs:
        assert isinstance(await asked(), Failure)
    assert "model_response_refused" in [entry["event"] for entry in logs]


async def test_a_judge_that_wants_to_be_asked_to_go_on_is_asked_no_more(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pydantic-ai would ask it a thousand times."""
    at_anthropic(monkeypatch)
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "pause_turn"}
    serve(web.json_response({**message, "content": [{"type": "text", "text": "x"}], "usage": USED}))
    counted: list[int] = []
    async with build_model("JUDGE_MODEL", "anthropic:m") as model:
        judge = ModelJudge(model, bot=Me(), purse=NotingPurse(counted))
        with pytest.raises(JudgeError, match="go on"):
            await judge(QUESTION, ChannelConversation(CHANNEL, NOON, NOON, [QUESTION]))


async def test_a_server_that_is_busy_until_a_date_that_there_is_none_is_busy(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_anthropic(monkeypatch)
    never = {"retry-after-ms": "", "Retry-After": "Mon, 01 Jan 99999999 00:00:00 GMT"}
    serve(web.json_response({"error": {"type": "rate_limit_error", "message": "later"}}, status=429, headers=never))
    outcome = await asked("anthropic:m")
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.BUSY


@pytest.mark.parametrize("said_so", [{}, {"message": {"a": 1}}, {"message": None}])
async def test_an_error_whose_message_is_no_text_is_a_failure(serve: Serve, said_so: dict[str, Any]) -> None:
    serve(web.Response(body=named({"type": "error", "code": None, **said_so}), content_type=STREAM))
    outcome = await asked("openai-responses:m")
    assert isinstance(outcome, Failure)
    assert "no text" in outcome.detail


async def test_an_answer_has_few_parts_in_all_its_responses_and_what_comes_with_them_counts(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_open_router(monkeypatch)

    async def answered(parts: int, format_: str) -> Outcome:
        thoughts = [
            {"type": "reasoning.text", "text": "", "format": format_, "index": n, "signature": "s"}
            for n in range(parts)
        ]
        call = {"index": 0, "id": "c", "function": {"name": "current_time", "arguments": "{}"}}
        pieces = [{"reasoning_details": thoughts[n : n + 20]} for n in range(0, parts, 20)]
        calls = event({"tool_calls": [call]}, more=OF_OPEN_ROUTER) + event({}, "tool_calls", more=OF_OPEN_ROUTER)
        body = b"".join(event(piece, more=OF_OPEN_ROUTER) for piece in pieces) + calls
        serve(web.Response(body=body, content_type=STREAM))
        return await asked("openrouter:openai/m")

    for parts, format_ in ((MAX_PARTS // 4, "x"), (MAX_PARTS // 5, "x" * 900)):
        outcome = await answered(parts, format_)
        assert isinstance(outcome, Failure)
        assert "went on without end" in outcome.detail
    outcome = await answered(MAX_PARTS // 20, "x")
    assert isinstance(outcome, Failure)
    assert "called tools without end" in outcome.detail


ACCENTS = "\N{ARABIC HAMZA ABOVE}", "\N{ARABIC HAMZA BELOW}"  # the second belongs before the first


@pytest.mark.parametrize("name", ["openai-chat:m", "openai-chat:m,openai-chat:n"])
async def test_arguments_with_thousands_of_accents_on_a_letter_stop_nothing_else(serve: Serve, name: str) -> None:
    """Which are quoted when the model is told that they are too long."""
    question = "<" + "".join(accent * 11_500 for accent in ACCENTS)
    function = {"name": "ask_text", "arguments": json.dumps({"question": question}, ensure_ascii=False)}
    calls = {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": function}]}}]}
    body = f"data: {json.dumps(calls, ensure_ascii=False)}\n\n".encode()
    serve(web.Response(body=body + event({}, "tool_calls"), content_type=STREAM))
    await asked(name)  # what is imported at first takes longer
    async with longest_step() as seconds:
        outcome = await asked(name)
    assert isinstance(outcome, Failure)
    assert seconds() < 0.2  # it was 0.8 s with a fallback


async def test_tags_behind_a_wall_of_backticks_stop_nothing_else(serve: Serve) -> None:
    ticks = "`" * (MAX_OUTPUT_CHARACTERS // 12 * 6)  # whole fences, behind which a tag is none in code
    text = (ticks + "<think></think>" * MAX_OUTPUT_CHARACTERS)[:MAX_OUTPUT_CHARACTERS]
    serve(web.Response(body=event({"content": text}) + event({}, "stop"), content_type=STREAM))
    await asked()  # what is imported at first takes longer
    async with longest_step() as seconds:
        await asked()
    assert seconds() < 0.15  # it was 0.35 s


@pytest.mark.parametrize("pieces", [["as <\u200d|im_start|> does"], ["as <", "\u200d|im_start|> does"]])
async def test_of_tokens_that_an_open_models_server_may_heed_the_answer_has_none_of_the_joiners(
    serve: Serve, pieces: list[str]
) -> None:
    serve(
        web.Response(
            body=b"".join(event({"content": each}) for each in pieces) + event({}, "stop"), content_type=STREAM
        )
    )
    outcome = await asked()
    assert isinstance(outcome, Answer)
    assert outcome.text == "as <|im_start|> does"


async def test_nor_have_arguments_and_other_joiners_stay(serve: Serve) -> None:
    heard: list[str] = []

    def look_up(words: str) -> str:
        heard.append(words)
        return "nothing"

    arguments = json.dumps({"words": "<\u200d|im_start|> \N{MAN}\u200d\N{PERSONAL COMPUTER}"}, ensure_ascii=False)
    call = {"index": 0, "id": "c", "function": {"name": "look_up", "arguments": arguments}}
    serve(web.Response(body=event({"tool_calls": [call]}) + event({}, "tool_calls"), content_type=STREAM))
    async with build_model("MODEL", "openai-chat:m") as model:
        await GeneralAgent(model, tools=[Tool(look_up, takes_ctx=False)]).respond(REQUEST, lambda _text: None)
    assert heard[0] == "<|im_start|> \N{MAN}\u200d\N{PERSONAL COMPUTER}"


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
async def test_a_long_answer_in_small_events_is_taken(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    monkeypatch.setattr("agents.bounded_client.MAX_EVENT_BYTES", most := 50_000)
    events = [event({"content": "word "}, end=end) for _ in range(200)]
    events += [b": ping" + end] * (most // 6)
    serve(web.Response(body=b"".join(events) + event({}, "stop"), headers={"Content-Type": STREAM}))
    outcome = await asked()
    assert isinstance(outcome, Answer)
    assert outcome.text == "word " * 200


def _reasoning(events: int, encrypted: str) -> bytes:
    """An answer of OpenAI's Responses API behind so many encrypted thoughts."""
    thoughts: list[dict[str, Any]] = [
        {"type": "response.output_item.done", "output_index": n, "item": {"id": f"t{n}", "type": "reasoning"}}
        for n in range(events)
    ]
    for each in thoughts:
        each["item"] |= {"summary": [], "encrypted_content": encrypted}
    word = {"type": "response.output_text.delta", "item_id": "m", "output_index": events, "content_index": 0}
    return named(
        {"type": "response.created", "response": RESPONSE},
        *thoughts,
        {**word, "delta": "It is so.", "logprobs": []},
        {"type": "response.completed", "response": RESPONSE},
    )


@pytest.mark.parametrize(
    ("events", "encrypted", "is_taken"),
    [
        (MAX_PARTS - 1, "e", True),
        (MAX_PARTS + 1, "e", False),
        (2, "e" * (MAX_SIGNED_CHARACTERS // 4), True),
        (4, "e" * (MAX_SIGNED_CHARACTERS // 3), False),
    ],
)
async def test_thoughts_that_nobody_can_read_have_an_end(
    serve: Serve, events: int, encrypted: str, is_taken: bool
) -> None:
    serve(web.Response(body=_reasoning(events, encrypted), content_type=STREAM))
    outcome = await asked("openai-responses:m")
    assert isinstance(outcome, Answer) is is_taken
    assert is_taken or "went on without end" in outcome.detail  # type: ignore[union-attr]


@pytest.mark.parametrize("encrypted", [4_000, 100_000])
async def test_thoughts_that_nobody_can_read_are_reserved_where_they_are_sent_again(
    serve: Serve, encrypted: int
) -> None:
    call = {"id": "f", "type": "function_call", "call_id": "c", "name": "dice", "arguments": "{}"}
    begins = {"type": "response.output_item.added", "output_index": 1, "sequence_number": 9, "item": call}
    first, last = _reasoning(1, "e" * encrypted).rsplit(b"event: response.output_text.delta", 1)
    ends = last[last.index(b"event: response.completed") :]
    called = f"event: {begins['type']}\ndata: {json.dumps(begins)}\n\n".encode()
    serve(web.Response(body=first + called + ends, content_type=STREAM))

    def dice() -> int:
        serve(web.Response(body=_reasoning(0, ""), content_type=STREAM))
        return 4

    limits = Limits(turns_per_user_minute=9, daily_tokens=None, turn_tokens=40_000)
    allowance = Budget(limits, FakeClock()).allowance(NOBODY)
    async with build_model("MODEL", "openai-responses:m") as model:
        agent = GeneralAgent(model, tools=[Tool(dice)])
        outcome = await agent.respond(replace(REQUEST, allowance=allowance), lambda _text: None)
    assert isinstance(outcome, Answer if encrypted == 4_000 else Failure)
    if isinstance(outcome, Failure):
        assert outcome.kind is FailureKind.TURN_CAP


@pytest.mark.parametrize("count", [1, 1_000])
async def test_a_judge_that_calls_tools_a_thousand_times_is_not_heard(serve: Serve, count: int) -> None:
    function = {"name": "final_result", "arguments": '{"evidence": "so", "meant_for_bot": true}'}
    calls = [{"id": f"c{n}", "type": "function", "function": function} for n in range(count)]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    serve(web.json_response(body))
    question = said(ANNA, "what?")
    conversation = ChannelConversation(CHANNEL, NOON, NOON, [question])
    async with build_model("JUDGE_MODEL", "openai-chat:m") as model:
        judge = ModelJudge(model, bot=Me(), purse=NotingPurse())
        if count == 1:
            assert (await judge(question, conversation)).respond
            return
        assert len(json.dumps(body)) > MAX_BODY_BYTES
        with pytest.raises(JudgeError):
            await judge(question, conversation)


@pytest.mark.parametrize("is_called", [True, False])
async def test_a_ruling_in_thousands_of_beginnings_of_code_stops_nothing_else(serve: Serve, is_called: bool) -> None:
    """Also with white space behind the last, in which the end of the code may be."""
    ruling = "```\n{" * 7_000 + "}" + " " * 20_000 + "x"
    call = {"id": "c", "type": "function", "function": {"name": "final_result", "arguments": ruling}}
    message = {"role": "assistant", **({"tool_calls": [call]} if is_called else {"content": ruling})}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    assert len(json.dumps(body)) < MAX_BODY_BYTES
    serve(web.json_response(body))
    async with build_model("JUDGE_MODEL", "openai-chat:m") as model:
        judge = ModelJudge(model, bot=Me(), purse=NotingPurse())
        conversation = ChannelConversation(CHANNEL, NOON, NOON, [QUESTION])
        with pytest.raises(JudgeError):
            await judge(QUESTION, conversation)  # what is imported at first takes longer
        async with longest_step() as seconds:
            with pytest.raises(JudgeError):
                await judge(QUESTION, conversation)
    assert seconds() < 0.2  # it was 7 s


@pytest.mark.parametrize("answer", ["[" * 9_000, '{"id": "x", "choices": "so"}', '"so"', '{"choices": [7]}'])
async def test_a_judge_whose_answer_cannot_be_read_is_not_heard_and_counts(serve: Serve, answer: str) -> None:
    serve(web.Response(text=answer, content_type="application/json"))
    counted: list[int] = []
    async with build_model("JUDGE_MODEL", "openai-chat:m") as model:
        judge = ModelJudge(model, bot=Me(), purse=NotingPurse(counted))
        with pytest.raises(JudgeError):
            await judge(QUESTION, ChannelConversation(CHANNEL, NOON, NOON, [QUESTION]))
    assert counted[0] > OUTPUT_TOKENS


QUOTES: dict[str, Any] = {
    "FastAPI": {"detail": [{"type": "string_type", "msg": "it does not fit", "input": "my words"}]},
    "FastAPI, a list": {"detail": [{"type": "string_type", "msg": "it does not fit", "input": ["my", "my words"]}]},
    "FastAPI, an object": {"detail": [{"type": "x", "msg": "it does not fit", "input": {"content": "my words"}}]},
    "pydantic": {"error": {"message": f"it does not fit [type=string_type, input_value={['my words'] * 99}"}},
    "Groq": {"error": {"message": "it does not fit", "code": "tool_use_failed", "failed_generation": "my words"}},
    "OpenRouter": {"error": {"message": "it does not fit", "metadata": {"flagged_input": "my words"}}},
    "Ollama": {"error": {"message": "it does not fit: error parsing tool call: raw='my words', err=unexpected end"}},
    "llama.cpp": {"error": {"message": 'it does not fit; messages = [\n  {\n    "content": "my words"'}},
}


@pytest.mark.parametrize("body", QUOTES.values(), ids=QUOTES)
async def test_what_a_server_quotes_of_a_request_that_it_refuses_is_not_told_the_log(serve: Serve, body: Any) -> None:
    serve(web.json_response(body, status=422))
    outcome = await asked()
    assert isinstance(outcome, Failure)
    assert "it does not fit" in outcome.detail
    assert "my" not in outcome.detail


async def test_an_answer_that_makes_no_sense_is_not_quoted_in_the_log(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_anthropic(monkeypatch)
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "x", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    text = {"type": "text", "text": "my words"}
    call = {"type": "tool_use", "id": "call_1", "name": "t", "input": {}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": text},
        {"type": "content_block_start", "index": 0, "content_block": call},
    ]
    body = b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)
    serve(web.Response(body=body, content_type=STREAM))
    outcome = await asked("anthropic:m")
    assert isinstance(outcome, Failure)
    assert "Cannot apply a tool call delta" in outcome.detail
    assert "my words" not in outcome.detail
