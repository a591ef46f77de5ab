"""A remote agent (UMS) on loopback: it keeps its conversations, and answers as it is told."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from aiohttp import web

STREAM = "text/event-stream"


@dataclass(frozen=True)
class RemoteReply:
    """One scripted answer. chunks: the body, each written by itself. status: by itself an answer without a body.

    before: waited for before anything is sent; gate: after the first chunk. cut: the connection breaks behind the last.
    """

    chunks: Sequence[bytes] = ()
    type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    before: asyncio.Event | None = None
    gate: asyncio.Event | None = None
    cut: bool = False


def whole(text: str, **how: Any) -> RemoteReply:
    """The answer as JSON."""
    return RemoteReply([json.dumps({"content": text}).encode()], **how)


def streamed(*deltas: str, **how: Any) -> RemoteReply:
    """The answer as events, one for each delta, in chunks of their own."""
    return RemoteReply([delta_event(delta) for delta in deltas], **({"type": STREAM} | how))


def delta_event(delta: object) -> bytes:
    return b"data: " + json.dumps({"delta": delta}).encode() + b"\n\n"


@dataclass(frozen=True)
class Asked:
    """A request that came. path: as it was sent."""

    path: str
    headers: Mapping[str, str]
    body: Any


class RemoteAgent:
    """Answers with the scripted answers in order, then with `default`; a conversation it does not know is a 404.

    creations: how it answers the making of a conversation, by default with an id of its own.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.known: set[str] = set()
        self.ids: deque[str] = deque()
        self.creations: deque[RemoteReply] = deque()
        self.answers: deque[RemoteReply] = deque()
        self.default: Callable[[str], RemoteReply] = lambda content: whole(f"You said: {content}")
        self.arrived = asyncio.Event()
        self.url = ""
        self._runner: web.AppRunner | None = None

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    @property
    def chats(self) -> list[dict[str, Any]]:
        """The bodies of its questions, of whichever conversation."""
        return [asked.body for asked in self.asked if asked.path.endswith("/chat")]

    @property
    def contents(self) -> list[str]:
        """What it was told, by whichever conversation."""
        return [body["message"]["content"] for body in self.chats]

    async def start(self) -> None:
        app = web.Application()
        app.router.add_route("*", r"/{any:[\s\S]*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.001)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/ums"

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        assert request.method == "POST"
        body = await request.json()
        self.asked.append(Asked(request.raw_path, dict(request.headers), body))
        self.arrived.set()
        match request.raw_path.split("/")[1:]:
            case ["ums", "conversations"]:
                return await self._send(request, self._create())
            case ["ums", "conversations", conversation, "chat"]:
                return await self._send(request, self._chat(unquote(conversation), body["message"]["content"]))
        raise web.HTTPNotFound

    def _create(self) -> RemoteReply:
        if self.creations:
            return self.creations.popleft()
        made = self.ids.popleft() if self.ids else f"conv-{len(self.known) + 1}"
        self.known.add(made)
        return RemoteReply([json.dumps({"id": made}).encode()], status=201)

    def _chat(self, conversation: str, content: str) -> RemoteReply:
        if conversation not in self.known:
            return RemoteReply(status=404)
        return self.answers.popleft() if self.answers else self.default(content)

    async def _send(self, request: web.Request, said: RemoteReply) -> web.StreamResponse:
        if said.before:
            await said.before.wait()
        response = web.StreamResponse(status=said.status, headers={"Content-Type": said.type} | dict(said.headers))
        await response.prepare(request)
        for number, chunk in enumerate(said.chunks):
            await response.write(chunk)
            if said.gate and number == 0:
                await said.gate.wait()
        if said.cut:
            assert request.transport
            request.transport.abort()
        return response
