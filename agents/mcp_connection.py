"""Keeps one MCP server running: starts it, lists and calls its tools, and restarts it when it dies.

pydantic-ai's MCPToolset speaks the protocol. It reports a dead process in each call, but does not restart it; so here
each run of a server has a toolset of its own. Whenever the server may have died (stderr closed, a call failed), its
tools are listed again: if that fails, too, the run is over.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, get_args
from weakref import WeakKeyDictionary

import httpx2
import structlog
from pydantic import ValidationError
from pydantic_ai import BinaryContent, ModelRetry, ToolDefinition, ToolFailed
from pydantic_core import to_json

from activity import Activity, FaultKind
from agents.bounded_client import bound_http, drop_frames
from agents.cutting import TRACEBACK, cut
from agents.mcp_file import McpServer
from discord_io.made_files import MadeFile
from discord_io.split import clipped
from files.content import Kind, kind_of

if TYPE_CHECKING:
    from pydantic_ai.mcp import MCPToolset

log = structlog.get_logger()
T = TypeVar("T")

HIDDEN = "[hidden]"
BROKE_OFF = "the connection to the server broke off."
AWAY = "the server is not running now."
REPORTED = "the tool itself reported an error."
ADDRESS = re.compile(r'(?<![\w+.-])[\w+.-]++://[^\s"]+|\b\d{1,3}(?:\.\d{1,3}){3}\b[^\s"]*')
MAX_SEARCHED = 200_000  # characters of what a server says in which secrets are looked for; of these 8 KB are told
MAX_READ = 4_000  # characters of a server's error text that are read
MAX_REASON = 300  # characters of it that are passed on
MAX_LOGGED = 500  # characters of one piece of stderr
PICTURES = ("png", "jpeg", "gif", "webp")
MAX_MADE = 4  # pictures attached to an answer
MAX_MADE_BYTES = 4_000_000  # of all of them together
HTTP_SECONDS = httpx2.Timeout(30.0, read=300.0)
MAX_RESPONSE = 8_000_000  # bytes of an event or response by HTTP: more than such pictures take
# Of an event: such pictures in base64, and some text. The package's own limit is 1 MB; it takes 20 bytes for one where
# Python takes four bytes for each sign.
MAX_EVENT = MAX_MADE_BYTES * 4 // 3 + 100_000
MAX_DESCRIPTION = 1_024  # OpenAI's limit


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in seconds. call: of a call, with the start that it may wait for; listed: tools are listed, and streams
    opened, again no sooner; stable: after so long a run, earlier failures do not count."""

    start: float = 15.0
    call: float = 30.0
    listed: float = 1.0
    first_pause: float = 5.0
    longest_pause: float = 300.0
    stable: float = 60.0

    def pause(self, failures: int, *, has_served: bool) -> float:
        """The pause before a restart after so many failures in a row: none after the first one of a server that was
        running, then ever longer."""
        doublings = failures - 1 - has_served
        return 0.0 if doublings < 0 else min(self.first_pause * 2 ** min(doublings, 16), self.longest_pause)


@dataclass(frozen=True, slots=True)
class _Trouble:
    """A failure. why: for the model; detail: for the log; kind: the same without the server's words, which may quote
    what a call gave it. is_answer: the server itself reported it."""

    why: str
    detail: str
    kind: str
    is_answer: bool = False


class Connection:
    """Keeps a server running while run() runs. tools: those that it listed last, with its own names; is_away: it failed
    and is in a pause; changed: called when either changes. activity: told when the server fails, but only of the first
    of several failures in a row, and of each failed call, unless the tool itself reports an error. why_away: why it
    last did not start, without secrets."""

    def __init__(
        self,
        server: McpServer,
        limits: Limits,
        changed: Callable[[], None] = lambda: None,
        activity: Activity | None = None,
    ) -> None:
        self._activity = activity or Activity()
        self.server = server
        self.tools: Sequence[ToolDefinition] = ()
        self.is_away = False
        self.why_away = ""
        self._limits = limits
        self._changed = changed
        self._toolset: MCPToolset[object] | None = None
        self._doubted = asyncio.Event()
        self._tried = asyncio.Event()
        # When each call may open its next stream by HTTP, by the loop's clock.
        self._next_stream: WeakKeyDictionary[object, float] = WeakKeyDictionary()

    async def tried(self) -> None:
        """Waits until the server runs, or could not be started."""
        await self._tried.wait()

    async def run(self) -> None:
        """Starts the server again and again, until cancelled."""
        clock = asyncio.get_running_loop().time
        failures = 0
        try:
            while True:
                began = clock()
                has_served = await self._live()
                if has_served or not failures:
                    self._report("mcp_failed", "could not be started, or has ended, and is started again")
                failures = 1 if has_served and clock() - began >= self._limits.stable else failures + 1
                if pause := self._limits.pause(failures, has_served=has_served):
                    self._offer(self.tools, is_away=True)
                    self._tried.set()
                    await asyncio.sleep(pause)
        finally:
            self._tried.set()  # wakes those that still wait

    async def call(self, tool: str, arguments: Mapping[str, Any], made: list[MadeFile] | None = None) -> str:
        """The result as text, or a sentence that says why there is none. made: gets the pictures in it."""
        outcome = await self._attempt(self._call(tool, arguments, [] if made is None else made), self._limits.call)
        if not isinstance(outcome, _Trouble):
            return outcome
        if not outcome.is_answer:
            self._doubted.set()
            self._report("mcp_call_failed", "failed in a call of one of its tools")
        log.info("mcp_call_failed", server=self.server.name, tool=tool, error=outcome.kind)
        return f"The tool {tool} of server {self.server.name} failed: {outcome.why}"

    async def _call(self, tool: str, arguments: Mapping[str, Any], made: list[MadeFile]) -> str:
        await self._tried.wait()
        if self._toolset is None:
            raise ToolFailed(AWAY)
        told = _text(await self._toolset.direct_call_tool(tool, dict(arguments)), made)
        return cut(self._without_secrets(told[:MAX_SEARCHED]))

    async def _live(self) -> bool:
        """Runs the server once, from its start to its end. Returns whether it started."""
        self._tried.clear()
        self._doubted = asyncio.Event()
        stack = AsyncExitStack()
        try:
            toolset = await self._attempt(self._start(stack), self._limits.start)
            if isinstance(toolset, _Trouble):
                self.why_away = toolset.detail
                log.warning("mcp_not_started", server=self.server.name, error=toolset.detail)
                return False
            log.info("mcp_started", server=self.server.name, tools=len(self.tools))
            self._toolset = toolset
            self._tried.set()
            listed: object = None
            while not isinstance(listed, _Trouble):  # until the server is dead
                await self._doubted.wait()
                self._doubted.clear()
                listed = await self._attempt(self._list(toolset), self._limits.start)
                # Some servers say at each listing that their tools have changed.
                await asyncio.sleep(0 if isinstance(listed, _Trouble) else self._limits.listed)
            log.warning("mcp_ended", server=self.server.name, error=listed.detail)
            return True
        finally:
            self._tried.clear()
            self._toolset = None
            if isinstance(closed := await self._attempt(stack.aclose(), self._limits.start), _Trouble):
                log.info("mcp_not_closed", server=self.server.name, error=closed.detail)

    async def _start(self, stack: AsyncExitStack) -> MCPToolset[object]:
        from fastmcp.client.transports import StdioTransport  # noqa: PLC0415 - only who has MCP servers needs it
        from pydantic_ai.mcp import MCPToolset  # noqa: PLC0415 - as above

        from agents.mcp_session import OPTIONS  # noqa: PLC0415 - as above

        server = self.server
        how: dict[str, Any] = {
            "tool_error_behavior": "failed",
            "cache_tools": False,
            "init_timeout": self._limits.start,
            "message_handler": self._heard,
            "log_handler": _ignore,
        }
        if server.command:
            reading, writing = os.pipe()
            pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
                partial(_Stderr, self, self._doubted), os.fdopen(reading, "rb", 0)
            )
            stack.callback(pipe.close)
            env, folder = dict(server.env), str(server.folder)
            # Our end of the pipe is closed once the process has its own, so that the pipe ends with the process.
            with os.fdopen(writing, "w") as stderr:
                transport = StdioTransport(
                    server.command, [*server.args], env, folder, keep_alive=False, log_file=stderr
                )
                toolset: MCPToolset[object] = MCPToolset(transport, **how)
                toolset.client._transport_options = OPTIONS  # noqa: SLF001 - there is no other way to give them
                await stack.enter_async_context(toolset)
        else:
            # The same client as the package would make, but bounded.
            http = httpx2.AsyncClient(headers=dict(server.headers), follow_redirects=True, timeout=HTTP_SECONDS)
            bound_http(http, MAX_RESPONSE, MAX_RESPONSE)
            http.event_hooks["request"].append(self._pace)
            stack.push_async_callback(http.aclose)
            toolset = MCPToolset(server.url, http_client=http, **how)
            if hasattr(toolset.client.transport, "max_sse_event_size"):  # not for a server of the protocol of 2024
                toolset.client.transport.max_sse_event_size = MAX_EVENT
            toolset.client._transport_options = OPTIONS  # noqa: SLF001 - as above
            await stack.enter_async_context(toolset)
        # Closed first of all: that makes calls still running fail, which the toolset waits for.
        stack.push_async_callback(toolset.client.close)
        await self._list(toolset)
        # In the newest protocol, changes are only sent to subscribers.
        if toolset.client.initialize_result is None and toolset.capabilities.tools_list_changed:
            from mcp.client.subscriptions import listen  # noqa: PLC0415 - only who has MCP servers needs it

            listening = listen(toolset.client.session, tools_list_changed=True)
            heard = await self._attempt(stack.enter_async_context(listening), self._limits.start)
            if isinstance(heard, _Trouble):
                meaning = "tools that it changes are known once it is started again"
                log.warning("mcp_not_heard", server=server.name, error=heard.detail, meaning=meaning)
        return toolset

    async def _pace(self, request: httpx2.Request) -> None:
        """Waits before a stream is opened: a server may ask the package to open one anew at once whenever it ends."""
        if request.method == "GET":
            now, call = asyncio.get_running_loop().time(), asyncio.current_task()
            begins = max(now, self._next_stream.get(call, now))
            self._next_stream[call] = begins + self._limits.listed
            await asyncio.sleep(begins - now)

    def said(self, data: bytes) -> None:
        """Logs what the process wrote to stderr."""
        text = self._without_secrets(data.decode(errors="replace"))
        log.debug("mcp_stderr", server=self.server.name, text=clipped(text, MAX_LOGGED))

    async def _heard(self, message: object) -> None:
        # Whether fastmcp wraps the message depends on its version.
        if getattr(getattr(message, "root", message), "method", "") == "notifications/tools/list_changed":
            self._doubted.set()

    async def _list(self, toolset: MCPToolset[object]) -> None:
        tools = tuple(
            ToolDefinition(
                name=tool.name,
                description=clipped(tool.description or "", MAX_DESCRIPTION),
                parameters_json_schema={"type": "object"} | tool.model_dump(by_alias=True)["inputSchema"],
            )
            for tool in await toolset.list_tools()
        )
        self._offer(tools, is_away=False)

    def _offer(self, tools: Sequence[ToolDefinition], *, is_away: bool) -> None:
        if (tools, is_away) != (self.tools, self.is_away):
            self.tools, self.is_away = tools, is_away
            self._changed()

    def _report(self, code: str, what: str) -> None:
        self._activity.fault(FaultKind.TOOL, code, f"The MCP server {self.server.name} {what}: see the log.")

    async def _attempt(self, work: Awaitable[T], seconds: float) -> T | _Trouble:
        try:
            async with asyncio.timeout(seconds):
                done = await work
        except TimeoutError:
            late = f"the server did not answer within {seconds:g} seconds."
            return _Trouble(late, late, late)
        except (ToolFailed, ModelRetry) as error:
            drop_frames(error)
            reason = self._reason(str(error))
            kind = AWAY if reason == AWAY else REPORTED
            return _Trouble(reason, reason, kind, is_answer=isinstance(error, ToolFailed))
        except asyncio.CancelledError:
            return _Trouble(BROKE_OFF, "cancelled from within", BROKE_OFF)
        except Exception as error:  # noqa: BLE001 - a foreign process and two libraries may raise anything
            drop_frames(error)
            kind = type(error).__name__
            return _Trouble(BROKE_OFF, f"{kind}: {self._reason(_words_of(error))}", kind)
        finally:
            # Cancelled from outside. The packages lose that while they end a session: run() would then never end.
            if (task := asyncio.current_task()) and task.cancelling():
                raise asyncio.CancelledError
        return done

    def _reason(self, text: str) -> str:
        """A server's error text on one line, without secrets and URLs; of a stack trace only its last line."""
        is_traceback = TRACEBACK in text
        text = self._without_secrets(text[-MAX_SEARCHED:] if is_traceback else text[:MAX_SEARCHED])
        if is_traceback:
            text = (text.strip()[-MAX_READ:].splitlines() or [""])[-1]
        return clipped(ADDRESS.sub("(address)", " ".join(text[:MAX_READ].split())), MAX_REASON)

    def _without_secrets(self, text: str) -> str:
        for secret in self.server.secrets:
            text = text.replace(secret, HIDDEN)
        return text


def _words_of(error: Exception) -> str:
    """What an error says. Of data that fails validation only the first fault: the text of such an error quotes its end,
    but is made of the whole, for each type that it may have."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{error.title}: {'.'.join(map(str, first['loc']))}: {first['msg']}"


async def _ignore(_message: object) -> None:
    """Handles what a server sends to be logged. The package would log it, also what calls gave the server, and first
    write out whatever it has in one go."""


class _Stderr(asyncio.Protocol):
    """Our end of the pipe to which a process writes its stderr."""

    def __init__(self, connection: Connection, ended: asyncio.Event) -> None:
        self._connection = connection
        self._ended = ended

    def data_received(self, data: bytes) -> None:
        self._connection.said(data)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._ended.set()


def use_mcp() -> None:
    """Imports the MCP packages, which takes a second or two, patches them, and sets up their logging."""
    import mcp.client.sse  # noqa: PLC0415 - only who has MCP servers needs it
    import mcp.client.stdio  # noqa: PLC0415 - as above
    import mcp.client.streamable_http  # noqa: PLC0415 - as above
    import mcp.client.subscriptions  # noqa: PLC0415 - as above
    import mcp.types  # noqa: PLC0415 - as above
    import pydantic_ai.mcp  # noqa: F401, PLC0415 - as above

    from agents.mcp_session import (  # noqa: PLC0415 - as above
        Lines,
        end_request,
        join_address,
        read_message,
        reconnect,
        stop_process,
    )

    # The packages write each message out for a log that nobody reads, and copy a long text for each list that it is in.
    for kind in get_args(mcp.types.JSONRPCMessage):
        kind.__str__ = object.__repr__
    mcp.types.jsonrpc_message_adapter.validate_json = read_message  # type: ignore[method-assign]  # however it comes
    mcp.client.stdio.TextReceiveStream = Lines  # type: ignore[attr-defined]  # a process that is read has no other bound
    mcp.client.sse.urljoin = join_address  # type: ignore[assignment, attr-defined]  # what a server says is its address
    http = mcp.client.streamable_http.StreamableHTTPTransport
    http._handle_reconnection = reconnect  # type: ignore[assignment, method-assign]  # noqa: SLF001 - no other way
    # Changes are heard as messages; events that nobody takes would be kept.
    mcp.client.subscriptions.ListenRoute.deliver = lambda *_: None  # type: ignore[method-assign]
    http._consume_modern_cancellation = end_request  # type: ignore[assignment, method-assign]  # noqa: SLF001 - no other way
    if sys.platform != "win32":  # where the package lets nothing live on
        mcp.client.stdio._stop_server_process = stop_process  # type: ignore[assignment]  # noqa: SLF001 - no other way

    # They log stack traces of errors that are raised to us anyway, and what servers send against the protocol. "client"
    # is also of the mcp package.
    for name in ("fastmcp", "mcp", "client"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.CRITICAL)


def _text(result: Any, made: list[MadeFile]) -> str:
    """A tool's result as text for the model. Pictures and sounds are only named; pictures become attachments."""
    match result:
        case str():
            return result
        case BinaryContent():
            return f"({result.media_type}, {len(result.data)} bytes{_attached(result, made)})"
        case list() if any(isinstance(item, BinaryContent) for item in result):
            return "\n".join(_text(item, made) for item in result)
        case _:
            return to_json(result, fallback=str).decode()


def _attached(content: BinaryContent, made: list[MadeFile]) -> str:
    """Attaches a picture to the answer if there is room for it. Returns what the model is told about that."""
    ending = content.media_type.removeprefix("image/")
    size = sum(len(file.data) for file in made) + len(content.data)
    if ending not in PICTURES or kind_of(content.data) is not Kind.PICTURE:
        return ""
    if len(made) == MAX_MADE or size > MAX_MADE_BYTES:
        return ", too much to be attached to your answer"
    made.append(MadeFile(f"picture{f'-{len(made) + 1}' if made else ''}.{ending}", content.data))
    return ", attached to your answer, where people see it"
