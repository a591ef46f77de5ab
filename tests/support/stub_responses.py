"""OpenAI's Responses API on loopback: it keeps responses and conversations, and answers as it is told.

It refuses what OpenAI was seen to refuse, in OpenAI's words. As there, a conversation gets what was asked and answered
once the answer is complete, and takes one request at a time.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.support.stub_model import Body, Reply


class StubResponses:
    """Answers what it does not refuse with the scripted replies in order, then with `default`.

    requests: each as it came. seen: of each that was answered the whole context, what was kept and what came with it,
    as texts. responses, conversations: the context that is kept by each id, as items. An answer that breaks off is not
    kept.
    """

    def __init__(self) -> None:
        self.replies: deque[Reply] = deque()
        self.default: Callable[[Body], Reply] = lambda _body: Reply(f"You said: {self.seen[-1][-1]}")
        self.requests: list[Body] = []
        self.headers: Mapping[str, str] = {}  # of the request that is being answered, when `default` is called
        self.on_request: Callable[[], None] = lambda: None
        self.seen: list[list[str]] = []
        self.responses: dict[str, list[Body]] = {}
        self.conversations: dict[str, list[Body]] = {}
        self.creation: Callable[[], web.Response] | None = None  # instead of a conversation
        self.drips = False  # begins to say that it made a conversation, a byte at a time, and never ends
        self.arrived = asyncio.Event()
        self.url = ""
        self._made: Counter[str] = Counter()
        self._busy: set[str | None] = set()
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application(middlewares=[_with_key])
        app.router.add_routes(self.routes())
        self._runner = web.AppRunner(app, shutdown_timeout=0.001)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/responses", self._respond),
            web.post("/v1/conversations", self._create),
            web.get("/v1/conversations/{id}", self._show),
            web.delete("/v1/{kind:responses|conversations}/{id}", self._delete),
        ]

    def forget(self, kept_id: str) -> None:
        """As if this response or conversation had expired, or somebody had deleted it."""
        del (self.responses if kept_id in self.responses else self.conversations)[kept_id]

    def forget_all(self) -> None:
        self.responses.clear()
        self.conversations.clear()

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        body: Body = await request.json()
        self.requests.append(body)
        self.headers = request.headers
        self.arrived.set()
        self.on_request()
        conversation, previous = body.get("conversation"), body.get("previous_response_id")
        if refusal := self._no_such_state(conversation, previous):
            return refusal
        state = self.conversations[conversation] if conversation else self.responses.get(previous or "", [])
        context = [*state, *body["input"]]
        if refusal := _does_not_fit(context):
            return refusal
        self.seen.append(texts(context))
        self._busy.add(conversation)
        try:
            return await self._answer(request, body, context)
        finally:
            self._busy.discard(conversation)

    def _no_such_state(self, conversation: str | None, previous: str | None) -> web.Response | None:
        if conversation and previous:
            # The empty quotes are OpenAI's.
            both = "Ensure you are only providing one of: 'pre..._id' or 'conversation'."
            return _error(400, f"Mutually exclusive parameters: ''. {both}", code="mutually_exclusive_parameters")
        if conversation and conversation not in self.conversations:
            return _unknown("conversation", conversation)
        if conversation and conversation in self._busy:
            locked = "Another process is currently operating on this conversation. Please retry in a few seconds."
            return _error(400, locked, "conversation", "conversation_locked")
        if previous and previous not in self.responses:
            unknown = f"Previous response with id '{previous}' not found."
            return _error(400, unknown, "previous_response_id", "previous_response_not_found")
        return None

    async def _answer(self, request: web.Request, body: Body, context: list[Body]) -> web.StreamResponse:
        reply = self.replies.popleft() if self.replies else self.default(body)
        if reply.before:
            await reply.before.wait()
        if reply.status != 200:
            return _error(reply.status, reply.words, code=str(reply.status))
        begun = _response(self._new("resp"), body)
        done = begun | {"status": "completed", "output": self._output(reply), "usage": _usage(reply.tokens)}
        if not body.get("stream"):
            self._keep(body, done, context)
            return web.json_response(done)
        wire = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await wire.prepare(request)
        try:
            await _Stream(wire.write, reply).send_all(begun, done, lambda: self._keep(body, done, context))
        except ConnectionResetError:  # cut by the script, or the client has hung up
            if request.transport:
                request.transport.abort()
        return wire

    def _output(self, reply: Reply) -> list[Body]:
        content = [{"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}]
        said: Body = {"type": "message", "id": self._new("msg"), "role": "assistant", "content": content}
        calls: list[Body] = [
            {"type": "function_call", "id": self._new("fc"), "call_id": c.id, "name": c.name, "arguments": c.arguments}
            for c in reply.calls
        ]
        return [item | {"status": "completed"} for item in ([said, *calls] if reply.text or reply.endless else calls)]

    def _keep(self, body: Body, done: Body, context: Sequence[Body]) -> None:
        context = [*context, *done["output"]]
        if body.get("store") is not False:
            self.responses[done["id"]] = context
        if body.get("conversation") in self.conversations:
            self.conversations[body["conversation"]] = context

    def _new(self, kind: str) -> str:
        self._made[kind] += 1
        return f"{kind}_{self._made[kind]}"

    async def _create(self, request: web.Request) -> web.StreamResponse:
        if self.drips:
            wire = web.StreamResponse(headers={"Content-Type": "application/json"})
            await wire.prepare(request)
            with suppress(ConnectionResetError):  # the client has hung up
                while True:
                    await wire.write(b" ")
                    await asyncio.sleep(0.01)
            return wire
        if self.creation:
            return self.creation()
        body: Body = await request.json() if request.can_read_body else {}
        made = self._new("conv")
        self.conversations[made] = body.get("items") or []
        return _conversation(made)

    async def _show(self, request: web.Request) -> web.Response:
        shown = request.match_info["id"]
        return _conversation(shown) if shown in self.conversations else _unknown("conversation", shown)

    async def _delete(self, request: web.Request) -> web.Response:
        kind, deleted = request.match_info["kind"].removesuffix("s"), request.match_info["id"]
        if (self.responses if kind == "response" else self.conversations).pop(deleted, None) is None:
            return _unknown(kind, deleted)
        return web.json_response({"id": deleted, "object": f"{kind}.deleted", "deleted": True})


@dataclass
class _Stream:
    """The events of one response, numbered as they are sent."""

    write: Callable[[bytes], Awaitable[None]]
    reply: Reply
    sent: int = field(default=0, init=False)

    async def send_all(self, begun: Body, done: Body, keep: Callable[[], None]) -> None:
        """keep: called before the client can know that the answer is complete.

        Raises ConnectionResetError where the script cuts it.
        """
        if self.reply.raw is not None:
            await self.write(self.reply.raw)
            return
        await self._send("response.created", response=begun)
        await self._send("response.in_progress", response=begun)
        for index, item in enumerate(done["output"]):
            await (self._message if item["type"] == "message" else self._call)(index, item)
            await self._send("response.output_item.done", output_index=index, item=item)
        keep()
        await self._send("response.completed", response=done)

    async def _message(self, index: int, item: Body) -> None:
        (part,) = item["content"]
        where = {"item_id": item["id"], "output_index": index, "content_index": 0}
        added = item | {"status": "in_progress", "content": []}
        await self._send("response.output_item.added", output_index=index, item=added)
        await self._send("response.content_part.added", **where, part=part | {"text": ""})
        for number, (delta, so_far) in enumerate(_pieces(self.reply)):
            if number == self.reply.cut_after:
                raise ConnectionResetError
            await self._send("response.output_text.delta", **where, delta=delta, logprobs=[])
            if self.reply.gate and number == 0:
                await self.reply.gate.wait()
            if self.reply.pace:
                await self.reply.pace(so_far)
        await self._send("response.output_text.done", **where, text=part["text"], logprobs=[])
        await self._send("response.content_part.done", **where, part=part)

    async def _call(self, index: int, item: Body) -> None:
        where = {"item_id": item["id"], "output_index": index}
        added = item | {"status": "in_progress", "arguments": ""}
        await self._send("response.output_item.added", output_index=index, item=added)
        await self._send("response.function_call_arguments.delta", **where, delta=item["arguments"])
        await self._send("response.function_call_arguments.done", **where, arguments=item["arguments"])

    async def _send(self, kind: str, **fields: Any) -> None:
        event = {"type": kind, "sequence_number": self.sent, **fields}
        self.sent += 1
        await self.write(f"event: {kind}\ndata: {json.dumps(event)}\n\n".encode())
        await asyncio.sleep(0)


def texts(items: Sequence[Body]) -> list[str]:
    """The text of each item, in order: what was said, what a tool was asked, what it answered."""
    return [_text(item) for item in items]


def _text(item: Body) -> str:
    if item.get("type") == "function_call":
        return f"{item['name']}({item['arguments']})"
    said = item["output"] if item.get("type") == "function_call_output" else item["content"]
    return said if isinstance(said, str) else "".join(part.get("text", "[image]") for part in said)


def _pieces(reply: Reply) -> Iterator[tuple[str, str]]:
    """The deltas of the text, each with all of the text up to its end."""
    for start in range(0, len(reply.text), reply.chunk):
        yield reply.text[start : start + reply.chunk], reply.text[: start + reply.chunk]
    while reply.endless:
        yield "and so on, " * 50, reply.text


def _does_not_fit(context: Sequence[Body]) -> web.Response | None:
    """The refusal of an item that is there twice, and of a call or a result without the other."""
    ids = [item["id"] for item in context if "id" in item]
    if len(set(ids)) < len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        advice = "Remove duplicate items from your input and try again."
        return _error(400, f"Duplicate item found with id {twice}. {advice}", "input")
    open_calls: list[str] = []
    for item in context:
        if item.get("type") == "function_call":
            open_calls.append(item["call_id"])
        elif item.get("type") == "function_call_output" and item["call_id"] in open_calls:
            open_calls.remove(item["call_id"])
        elif item.get("type") == "function_call_output":
            alone = f"No tool call found for function call output with call_id {item['call_id']}."
            return _error(400, alone, "input")
    return _error(400, f"No tool output found for function call {open_calls[0]}.", "input") if open_calls else None


def _response(made: str, body: Body) -> Body:
    """What OpenAI says of a response that has just begun."""
    conversation = body.get("conversation")
    return {
        "id": made, "object": "response", "created_at": 1, "status": "in_progress", "model": body["model"],
        "error": None, "incomplete_details": None, "instructions": body.get("instructions"), "metadata": {},
        "output": [], "parallel_tool_calls": True, "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []), "usage": None, "store": body.get("store") is not False,
        "previous_response_id": body.get("previous_response_id"),
        "conversation": {"id": conversation} if conversation else None,
    }  # fmt: skip


def _usage(tokens: int) -> Body:
    return {
        "input_tokens": tokens - 5, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": tokens,
    }  # fmt: skip


def _conversation(made: str) -> web.Response:
    return web.json_response({"id": made, "object": "conversation", "created_at": 1, "metadata": {}})


def _unknown(kind: str, unknown: str) -> web.Response:
    return _error(404, f"{kind.capitalize()} with id '{unknown}' not found.")


def _error(status: int, message: str, param: str | None = None, code: str | None = None) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    # The client tries again at once: no test waits for its patience.
    return web.json_response({"error": error}, status=status, headers={"retry-after-ms": "1"})


@web.middleware
async def _with_key(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    if not request.headers.get("Authorization", "").startswith("Bearer "):
        return _error(401, "You didn't provide an API key.")
    return await handler(request)
