"""An OpenAI-compatible model server on loopback: it speaks the chat-completions protocol and does as it is told."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

Body = dict[str, Any]
BEFORE = -1  # before anything of an answer is sent


@dataclass(frozen=True)
class Call:
    """A call of a tool. arguments: JSON, or what a model takes for it."""

    name: str
    arguments: str
    id: str = "call-1"


@dataclass(frozen=True)
class Reply:
    """One scripted answer. gate: waited for after the first chunk. status: an error instead of an answer, in words.

    pace: told the text so far after each chunk, and waited for before the next. calls: made after the text. finish: how
    it says that it ended; empty: as it did. code: the provider's of the error; empty: the status. thoughts: what it
    thinks before, told apart from its words. error: ends the answer behind its text, as some do within a 200.
    """

    text: str = ""
    status: int = 200
    gate: asyncio.Event | None = None
    before: asyncio.Event | None = None
    endless: bool = False
    cut_after: int | None = None
    raw: bytes | None = None
    tokens: int = 15
    chunk: int = 200
    pace: Callable[[str], Awaitable[object]] | None = None
    calls: tuple[Call, ...] = ()
    words: str = "provider-words"
    finish: str = ""
    code: str = ""
    thoughts: str = ""
    error: Body | None = None


class StubModel:
    """Answers with the scripted replies in order, then with `default`."""

    def __init__(self) -> None:
        self.replies: deque[Reply] = deque()
        self.default: Callable[[Body], Reply] = lambda body: Reply(f"You said: {last_line(body)}")
        self.judge_says: Callable[[Body], Reply | bool] = lambda _body: False
        self.judge_gate: asyncio.Event | None = None
        self.evidence: Callable[[Body], str] = lambda _body: "the stub says so"  # as the judge and the coordinator
        self.picks = ""  # the agent that it picks as the coordinator's model
        self.hears: Callable[[bytes], str] = lambda _data: "buy milk"  # as a model that transcribes
        self.rewriter_says: Callable[[Body], Reply] = lambda _body: Reply()
        self.requests: list[Body] = []
        self.headers: Mapping[str, str] = {}  # of the request that is being answered, when one of the above is called
        self.judged: list[Body] = []
        self.rewritten: list[Body] = []
        self.answer_tokens = 5  # of a reply's, those of its text, as the conversation's size counts them
        self.arrived = asyncio.Event()
        self.on_request: Callable[[], None] = lambda: None
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self, *, also: Iterable[web.RouteDef] = ()) -> None:
        """also: what else is served at its address."""
        app = web.Application()
        app.router.add_routes(also)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        self._runner = web.AppRunner(app, shutdown_timeout=0.001)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        assert self._runner.addresses
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body: Body = await request.json()
        if not request.headers.get("Authorization", "").startswith("Bearer "):
            return web.json_response({"error": {"message": "no key", "code": "invalid_api_key"}}, status=401)
        self.headers = request.headers
        if not body.get("stream"):
            return await (self._judge(request, body) if body.get("tools") else self._rewrite(body))
        self.requests.append(body)
        self.arrived.set()
        self.on_request()
        if refusal := self.refused(body):
            return refusal
        reply = self.replies.popleft() if self.replies else self.default(body)
        if reply.before:
            await reply.before.wait()
        if reply.status != 200:
            return error_response(reply.status, reply.words, reply.code)
        if reply.cut_after == BEFORE and request.transport:
            request.transport.abort()
        return await self._stream(request, body, reply)

    def refused(self, _body: Body) -> web.Response | None:
        """What a provider does not take, whatever is scripted."""
        return None

    def thought(self, text: str) -> Body:
        """A delta with a thought."""
        return {"reasoning_content": text}

    def used(self, tokens: int) -> Body:
        return _usage(tokens, self.answer_tokens)

    async def _transcribe(self, request: web.Request) -> web.Response:
        file = (await request.post())["file"]
        assert isinstance(file, web.FileField)
        self.headers = request.headers
        return web.json_response({"text": self.hears(file.file.read())})

    async def _rewrite(self, body: Body) -> web.Response:
        self.rewritten.append(body)
        says = self.rewriter_says(body)
        if says.before:
            await says.before.wait()
        if says.status != 200:
            return error_response(says.status)
        choice = {"message": {"role": "assistant", "content": says.text}, "finish_reason": "stop"}
        return web.json_response(_envelope(body, choice) | {"usage": _usage(says.tokens)})

    async def _judge(self, request: web.Request, body: Body) -> web.Response:
        self.judged.append(body)
        self.on_request()
        says = self.judge_says(body)
        if isinstance(says, Reply):
            if says.before:
                await says.before.wait()
            if says.cut_after is not None and request.transport:
                request.transport.abort()
            return error_response(says.status)
        if self.judge_gate:
            await self.judge_gate.wait()
        tool = body["tools"][0]["function"]
        forms = {name: form for name, form in tool["parameters"]["properties"].items() if name != "evidence"}
        ruling = json.dumps({"evidence": self.evidence(body)} | dict.fromkeys(forms, self.picks or says))
        call = {"id": "1", "type": "function", "function": {"name": tool["name"], "arguments": ruling}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return web.json_response(
            _envelope(body, {"message": message, "finish_reason": "tool_calls"}) | {"usage": _usage(7)}
        )

    async def _stream(self, request: web.Request, body: Body, reply: Reply) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if reply.raw is not None:
            await response.write(reply.raw)
            return response
        for start in range(0, len(reply.thoughts), reply.chunk):
            await self._send(response, body, self.thought(reply.thoughts[start : start + reply.chunk]), None)
        for number, start in enumerate(range(0, len(reply.text), reply.chunk)):
            if reply.cut_after is not None and number >= reply.cut_after:
                assert request.transport
                request.transport.abort()
                return response
            await self._send(response, body, {"content": reply.text[start : start + reply.chunk]}, None)
            if reply.gate and number == 0:
                await reply.gate.wait()
            if reply.pace:
                await reply.pace(reply.text[: start + reply.chunk])
        while reply.endless:
            await self._send(response, body, {"content": "and so on, " * 50}, None)
            await asyncio.sleep(0)
        if reply.error:
            broken = _envelope(body, {"delta": {"content": ""}, "finish_reason": "error"})
            await _write(response, broken | {"object": "chat.completion.chunk", "error": reply.error})
            return response
        for index, call in enumerate(reply.calls):
            await self._call(response, body, index, call)
        await self._send(response, body, {}, reply.finish or ("tool_calls" if reply.calls else "stop"))
        await _write(
            response, _envelope(body, None) | {"object": "chat.completion.chunk", "usage": self.used(reply.tokens)}
        )
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _call(self, response: web.StreamResponse, body: Body, index: int, call: Call) -> None:
        """A call in two pieces, as providers stream them: which tool, then the arguments."""
        name = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        await self._send(response, body, {"tool_calls": [name]}, None)
        arguments = {"index": index, "function": {"arguments": call.arguments}}
        await self._send(response, body, {"tool_calls": [arguments]}, None)

    async def _send(self, response: web.StreamResponse, body: Body, delta: Body, finish: str | None) -> None:
        await _write(
            response, _envelope(body, {"delta": delta, "finish_reason": finish}) | {"object": "chat.completion.chunk"}
        )


def texts(body: Body) -> list[str]:
    """The text of each message in a request, in order."""
    contents = [m.get("content") or "" for m in body["messages"]]
    return [c if isinstance(c, str) else "".join(p.get("text", "[image]") for p in c) for c in contents]


def last_line(body: Body) -> str:
    """The newest thing that a person said."""
    return texts(body)[-1].strip().splitlines()[-2].split(": ", 1)[-1]


def _envelope(body: Body, choice: Body | None) -> Body:
    return {
        "id": "stub", "object": "chat.completion", "created": 1, "model": body["model"],
        "choices": [] if choice is None else [{"index": 0, **choice}],
    }  # fmt: skip


def _usage(tokens: int, of_answer: int = 5) -> Body:
    total = max(tokens, of_answer)
    return {"prompt_tokens": total - of_answer, "completion_tokens": of_answer, "total_tokens": total}


def error_response(status: int, words: str = "provider-words", code: str = "") -> web.Response:
    error = {"message": words, "code": code or str(status), "type": "x"}
    # The client tries again at once: no test waits for its patience.
    return web.json_response({"error": error}, status=status, headers={"retry-after-ms": "1"})


async def _write(response: web.StreamResponse, payload: Body) -> None:
    await response.write(b"data: " + json.dumps(payload).encode() + b"\n\n")
