"""Anthropic's Messages API on loopback: it answers as it is told, refuses what Anthropic refuses, and bills its cache.

A prompt is its tools, its rules and its messages, block by block. What stands up to a mark is cached from the next
request on, if it has 1,024 tokens; a mark finds what was cached at it, or at one of the 20 blocks before it.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from hashlib import sha256
from itertools import accumulate, chain, pairwise
from typing import Any

from aiohttp import web

from tests.support.stub_model import Body, Reply

MIN_CACHED = 1_024  # tokens
LOOK_BACK = 20  # blocks
MAX_MARKS = 4
OVERLOADED = 529


class StubAnthropic:
    """Answers what it does not refuse with the scripted replies in order, then with `default`.

    requests: each as it came. billed: of each that was answered the tokens of its prompt: read from the cache, written
    to it, and neither.
    """

    def __init__(self) -> None:
        self.replies: deque[Reply] = deque()
        self.default: Callable[[Body], Reply] = lambda _body: Reply("I see.")
        self.requests: list[Body] = []
        self.billed: list[tuple[int, int, int]] = []
        self.on_request: Callable[[], None] = lambda: None
        self.url = ""
        self._signed: dict[str, str] = {}
        self._cached: set[str] = set()
        self._made = 0
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/v1/messages", self._message)
        self._runner = web.AppRunner(app, shutdown_timeout=0.001)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _message(self, request: web.Request) -> web.StreamResponse:
        body: Body = await request.json()
        self.requests.append(body)
        self.on_request()
        if not (request.headers.get("x-api-key") or request.headers.get("Authorization")):
            return _error(401, "authentication_error", "x-api-key header is required")
        if "anthropic-version" not in request.headers:
            return _error(400, "invalid_request_error", "anthropic-version: header is required")
        if problem := next(chain(self._problems(body), _calls_without_results(body["messages"])), None):
            return _error(400, "invalid_request_error", problem)
        reply = self.replies.popleft() if self.replies else self.default(body)
        if reply.status != 200:
            kinds = {400: "invalid_request_error", 429: "rate_limit_error", OVERLOADED: "overloaded_error"}
            kind = kinds.get(reply.status, "api_error")
            return _error(reply.status, kind, reply.words)
        assert body.get("stream"), "only streams are spoken here"
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await self._stream(response.write, body, reply)
        return response

    def _problems(self, body: Body) -> Iterator[str]:
        """Why Anthropic would not take it."""
        if not body.get("max_tokens"):
            yield "max_tokens: Field required"
        if len({tool["name"] for tool in body.get("tools", [])}) < len(body.get("tools", [])):
            yield "tools: Tool names must be unique."
        marks = sum("cache_control" in block for block in _blocks(body)) + ("cache_control" in body)
        if marks > MAX_MARKS:
            yield f"A maximum of 4 blocks with cache_control may be provided. Found {marks}."
        messages = body["messages"]
        if not messages or messages[0]["role"] != "user":
            yield "messages: first message must use the user role"
        for block in _blocks(body):
            if block.get("type") == "text" and not block["text"].strip():
                yield "messages: text content blocks must contain non-whitespace text"
            if block.get("type") == "thinking" and self._signed.get(block["signature"]) != block["thinking"]:
                yield "messages: Invalid `signature` in `thinking` block"

    def _bill(self, body: Body) -> tuple[int, int, int]:
        """What is read from the cache, written to it, and neither, in tokens."""
        blocks = list(_blocks(body))
        plain = [json.dumps({k: v for k, v in b.items() if k != "cache_control"}, sort_keys=True) for b in blocks]
        sizes = [0, *accumulate(len(text) // 4 for text in plain)]
        keys = [*accumulate(plain, lambda known, text: sha256((known + text).encode()).hexdigest())]
        marks = {i for i, block in enumerate(blocks) if "cache_control" in block}
        marks |= {len(blocks) - 1} if "cache_control" in body else set()
        hits = [at for m in marks for at in range(max(0, m - LOOK_BACK), m + 1) if keys[at] in self._cached]
        read = sizes[max(hits) + 1] if hits else 0
        written = max([sizes[m + 1] for m in marks if sizes[m + 1] >= MIN_CACHED], default=0)
        self._cached |= {keys[m] for m in marks if sizes[m + 1] >= MIN_CACHED}
        return read, max(0, written - read), sizes[-1] - max(written, read)

    async def _stream(self, write: Callable[[bytes], Awaitable[None]], body: Body, reply: Reply) -> None:
        async def send(kind: str, **fields: Any) -> None:
            await write(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode())

        read, written, rest = bill = self._bill(body)
        self.billed.append(bill)
        used = {"input_tokens": rest, "cache_creation_input_tokens": written, "cache_read_input_tokens": read}
        self._made += 1
        message = {"id": f"msg_{self._made}", "type": "message", "role": "assistant", "model": body["model"]}
        message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": used | {"output_tokens": 1}}
        await send("message_start", message=message)
        await send("ping")
        for index, (begun, deltas) in enumerate(self._said(reply)):
            await send("content_block_start", index=index, content_block=begun)
            for delta in deltas:
                await send("content_block_delta", index=index, delta=delta)
            await send("content_block_stop", index=index)
        if reply.error:
            await send("error", error=reply.error)
            return
        if reply.cut_after is not None:  # it ends as if it were whole, before it says what it used
            return
        stop = reply.finish or ("tool_use" if reply.calls else "end_turn")
        usage = used | {"output_tokens": reply.tokens}
        await send("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=usage)
        await send("message_stop")

    def _said(self, reply: Reply) -> Iterator[tuple[Body, list[Body]]]:
        """The blocks of an answer: how each begins, and its deltas."""
        if reply.thoughts:
            signature = f"signature-{len(self._signed)}"
            self._signed[signature] = reply.thoughts
            thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(reply.thoughts, reply.chunk)]
            deltas = [*thoughts, {"type": "signature_delta", "signature": signature}]
            yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
        if reply.text:
            text = [{"type": "text_delta", "text": piece} for piece in _pieces(reply.text, reply.chunk)]
            yield {"type": "text", "text": ""}, text
        for call in reply.calls:
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(call.arguments, 9)]
            yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, deltas


def _calls_without_results(messages: list[Body]) -> Iterator[str]:
    for message, following in pairwise([*messages, {"role": "user", "content": []}]):
        called = {block["id"] for block in _content(message) if block["type"] == "tool_use"}
        given = {block["tool_use_id"] for block in _content(following) if block["type"] == "tool_result"}
        if called - given:
            yield f"`tool_use` ids were found without `tool_result` blocks immediately after: {called - given}"
        if given - called:
            yield f"unexpected `tool_use_id` found in `tool_result` blocks: {given - called}"


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _content(message: Body) -> list[Body]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _blocks(body: Body) -> Iterator[Body]:
    yield from body.get("tools", [])
    system = body.get("system", [])
    yield from [{"type": "text", "text": system}] if isinstance(system, str) else system
    for message in body["messages"]:
        for block in _content(message):
            yield {**block, "role": message["role"]}


def _error(status: int, kind: str, words: str) -> web.Response:
    body = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"}
    return web.json_response(body, status=status, headers={"retry-after-ms": "1"})
