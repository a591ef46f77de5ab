"""One MCP server: started, listed, called, and started again when it dies.

pydantic-ai's MCPToolset does the talking. It reports a dead process in each call, but does not start it again; here
each life of a server has a toolset of its own. Whatever may have ended a life (stderr closes, a call fails) has the
tools listed anew: where that fails as well, the life is over.
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
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2
import structlog
from pydantic_ai import BinaryContent, ModelRetry, ToolDefinition, ToolFailed
from pydantic_core import to_json

from agents.bounded_client import bound_http
from agents.cutting import cut
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
ADDRESS = re.compile(r"(?<![\w+.-])[\w+.-]++://\S+|\b\d{1,3}(?:\.\d{1,3}){3}\b\S*")
MAX_READ = 4_000  # characters of what a server says went wrong, of which then are told
MAX_REASON = 300
MAX_LOGGED = 500  # characters of what its process writes to stderr at once
PICTURES = ("png", "jpeg", "gif", "webp")
MAX_MADE = 4  # pictures that are attached to an answer
MAX_MADE_BYTES = 4_000_000  # of them all
HTTP_SECONDS = httpx2.Timeout(30.0, read=300.0)
MAX_RESPONSE = 8_000_000  # bytes that come at once by HTTP: more than such pictures take
MAX_DESCRIPTION = 1_024  # what OpenAI takes


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds. call: with the start that it may have to wait for; stable: who lived as long has not failed before."""

    start: float = 15.0
    call: float = 30.0
    first_pause: float = 5.0
    longest_pause: float = 300.0
    stable: float = 60.0

    def pause(self, failures: int, *, has_served: bool) -> float:
        """How long a server is left alone after as many failures in a row: not at all when it served until the first
        of them, then ever longer."""
        doublings = failures - 1 - has_served
        return 0.0 if doublings < 0 else min(self.first_pause * 2 ** min(doublings, 16), self.longest_pause)


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Nothing came of it. why: for the model; detail: for the log. is_answer: the server itself said so."""

    why: str
    detail: str
    is_answer: bool = False


class Connection:
    """Keeps a server running, as long as run() runs. tools: the last that it listed, under its own names; is_away: it
    failed, and is left alone for a while; changed: called when either is another; failed: when it fails, though not
    each time in a row; call_failed: when a call does, unless the tool itself says no. why_away: why it last did not
    start, without secrets."""

    def __init__(
        self,
        server: McpServer,
        limits: Limits,
        changed: Callable[[], None],
        failed: Callable[[str], None] = lambda _name: None,
        call_failed: Callable[[str], None] = lambda _name: None,
    ) -> None:
        self._failed = failed
        self._call_failed = call_failed
        self.server = server
        self.tools: Sequence[ToolDefinition] = ()
        self.is_away = False
        self.why_away = ""
        self._limits = limits
        self._changed = changed
        self._toolset: MCPToolset[object] | None = None
        self._doubted = asyncio.Event()
        self._tried = asyncio.Event()

    async def tried(self) -> None:
        """Once it runs, or could not be started."""
        await self._tried.wait()

    async def run(self) -> None:
        """Starts it again and again, until cancelled."""
        clock = asyncio.get_running_loop().time
        failures = 0
        try:
            while True:
                began = clock()
                has_served = await self._live()
                if has_served or not failures:
                    self._failed(self.server.name)
                failures = 1 if has_served and clock() - began >= self._limits.stable else failures + 1
                if pause := self._limits.pause(failures, has_served=has_served):
                    self._offer(self.tools, is_away=True)
                    self._tried.set()
                    await asyncio.sleep(pause)
        finally:
            self._tried.set()  # nobody waits for what comes no more

    async def call(self, tool: str, arguments: Mapping[str, Any], made: list[MadeFile] | None = None) -> str:
        """The result as text, or a sentence that says why there is none. made: gets the pictures in it."""
        outcome = await self._attempt(self._call(tool, arguments, [] if made is None else made), self._limits.call)
        if not isinstance(outcome, _Trouble):
            return outcome
        if not outcome.is_answer:
            self._doubted.set()
            self._call_failed(self.server.name)
        log.info("mcp_call_failed", server=self.server.name, tool=tool, error=outcome.detail)
        return f"The tool {tool} of server {self.server.name} failed: {outcome.why}"

    async def _call(self, tool: str, arguments: Mapping[str, Any], made: list[MadeFile]) -> str:
        await self._tried.wait()
        if self._toolset is None:
            raise ToolFailed(AWAY)
        return cut(self._without_secrets(_text(await self._toolset.direct_call_tool(tool, dict(arguments)), made)))

    async def _live(self) -> bool:
        """One life, from its start to its end. Returns whether there was one."""
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
            while not isinstance(listed, _Trouble):  # until it is dead
                await self._doubted.wait()
                self._doubted.clear()
                listed = await self._attempt(self._list(toolset), self._limits.start)
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
        }
        if server.command:
            reading, writing = os.pipe()
            pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
                partial(_Stderr, self, self._doubted), os.fdopen(reading, "rb", 0)
            )
            stack.callback(pipe.close)
            env, folder = dict(server.env), str(server.folder)
            # Our end of the pipe goes once the process has its own: then the pipe ends when the process does.
            with os.fdopen(writing, "w") as stderr:
                transport = StdioTransport(
                    server.command, [*server.args], env, folder, keep_alive=False, log_file=stderr
                )
                toolset: MCPToolset[object] = MCPToolset(transport, **how)
                toolset.client._transport_options = OPTIONS  # noqa: SLF001 - there is no other way to give them
                await stack.enter_async_context(toolset)
        else:
            # As the package would make it.
            http = httpx2.AsyncClient(headers=dict(server.headers), follow_redirects=True, timeout=HTTP_SECONDS)
            bound_http(http, MAX_RESPONSE, MAX_RESPONSE)
            stack.push_async_callback(http.aclose)
            toolset = MCPToolset(server.url, http_client=http, **how)
            toolset.client._transport_options = OPTIONS  # noqa: SLF001 - as above
            await stack.enter_async_context(toolset)
        # At the end first of all: what is still called fails by it, and is waited for behind it.
        stack.push_async_callback(toolset.client.close)
        await self._list(toolset)
        # A session of the newest protocol tells of changes only to those who listen.
        if toolset.client.initialize_result is None and toolset.capabilities.tools_list_changed:
            from mcp.client.subscriptions import listen  # noqa: PLC0415 - only who has MCP servers needs it

            listening = listen(toolset.client.session, tools_list_changed=True)
            heard = await self._attempt(stack.enter_async_context(listening), self._limits.start)
            if isinstance(heard, _Trouble):
                meaning = "tools that it changes are known once it is started anew"
                log.warning("mcp_not_heard", server=server.name, error=heard.detail, meaning=meaning)
        return toolset

    def said(self, data: bytes) -> None:
        """Logs what its process wrote to stderr."""
        text = self._without_secrets(data.decode(errors="replace"))
        log.debug("mcp_stderr", server=self.server.name, text=clipped(text, MAX_LOGGED))

    async def _heard(self, message: object) -> None:
        # What fastmcp hands on is wrapped or not, by its version.
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

    async def _attempt(self, work: Awaitable[T], seconds: float) -> T | _Trouble:
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError:
            late = f"the server did not answer within {seconds:g} seconds."
            return _Trouble(late, late)
        except (ToolFailed, ModelRetry) as error:
            reason = self._reason(str(error))
            return _Trouble(reason, reason, is_answer=isinstance(error, ToolFailed))
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            return _Trouble(BROKE_OFF, "cancelled from within")
        except Exception as error:  # noqa: BLE001 - anything may come of a process of others and two libraries
            return _Trouble(BROKE_OFF, f"{type(error).__name__}: {self._reason(str(error))}")

    def _reason(self, text: str) -> str:
        """What a server says went wrong, in a line without secrets and addresses; of a stack trace its end."""
        text = self._without_secrets(text)
        if "Traceback (most recent call last)" in text:
            text = text.strip().splitlines()[-1]
        return clipped(ADDRESS.sub("(address)", " ".join(text[:MAX_READ].split())), MAX_REASON)

    def _without_secrets(self, text: str) -> str:
        for secret in self.server.secrets:
            text = text.replace(secret, HIDDEN)
        return text


class _Stderr(asyncio.Protocol):
    """The end of a pipe to which a process writes its stderr."""

    def __init__(self, connection: Connection, ended: asyncio.Event) -> None:
        self._connection = connection
        self._ended = ended

    def data_received(self, data: bytes) -> None:
        self._connection.said(data)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._ended.set()


def use_mcp() -> None:
    """Imports what MCP needs, which takes a second or two, and has it log as the rest does."""
    import mcp.client.stdio  # noqa: PLC0415 - only who has MCP servers needs it
    import mcp.types  # noqa: PLC0415 - as above
    import pydantic_ai.mcp  # noqa: F401, PLC0415 - as above

    from agents.mcp_session import Lines, read_message, stop_process  # noqa: PLC0415 - as above

    mcp.types.jsonrpc_message_adapter.validate_json = read_message  # type: ignore[method-assign]  # however it comes
    mcp.client.stdio.TextReceiveStream = Lines  # type: ignore[attr-defined]  # a process that is read has no other bound
    if sys.platform != "win32":  # where the package lets nothing live on
        mcp.client.stdio._stop_server_process = stop_process  # type: ignore[assignment]  # noqa: SLF001 - no other way

    # Both report with stack traces what comes back to us as an error, and what servers print beside the protocol.
    for name in ("fastmcp", "mcp"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(logging.CRITICAL)


def _text(result: Any, made: list[MadeFile]) -> str:
    """As the model reads it. A picture or a sound is only named; pictures are made files of the answer."""
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
    """Makes a picture a file of the answer where there is room for it. Returns what the model is told of that."""
    ending = content.media_type.removeprefix("image/")
    size = sum(len(file.data) for file in made) + len(content.data)
    if ending not in PICTURES or kind_of(content.data) is not Kind.PICTURE:
        return ""
    if len(made) == MAX_MADE or size > MAX_MADE_BYTES:
        return ", too much to be attached to your answer"
    made.append(MadeFile(f"picture{f'-{len(made) + 1}' if made else ''}.{ending}", content.data))
    return ", attached to your answer, where people see it"
