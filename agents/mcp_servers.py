"""The tools that MCP servers lend the general agent: those of all servers, as one toolset of pydantic-ai."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Self

import structlog
from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema, to_json

from activity import Activity
from agents.gateway import Asked
from agents.mcp_connection import MAX_LOGGED, Connection, Limits, use_mcp
from agents.mcp_file import MAX_TOOL_BYTES, McpServer
from discord_io.made_files import MadeFile
from discord_io.split import clipped

log = structlog.get_logger()

MAX_TOOLS = 64
MAX_TOTAL_BYTES = 131_072  # of the names and schemas of all tools together
MAX_NAME = 64  # what providers accept, of letters, digits, - and _
# The server itself validates the rest.
ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))


@dataclass(frozen=True, slots=True)
class _Offered:
    """A tool with the name that the model knows."""

    connection: Connection
    own_name: str
    definition: ToolDefinition


class McpTools:
    """Keeps the servers running while it is entered, without waiting for them: offers the tools that are available now,
    and restarts servers that fail. Enter it before the loop is busy, as its imports take a second or two.

    taken: the names of other tools, which a server's tools must not have. activity: told of servers and calls
    that fail.
    """

    def __init__(
        self,
        servers: Sequence[McpServer],
        *,
        taken: Collection[str] = (),
        limits: Limits | None = None,
        activity: Activity | None = None,
    ) -> None:
        limits = limits or Limits()
        self._connections = [Connection(server, limits, self._offer, activity) for server in servers]
        self._taken = frozenset(taken)
        self._offered: dict[str, _Offered] = {}
        self._running: list[asyncio.Task[None]] = []
        self.toolset: AbstractToolset[Any] = _Toolset(self)

    async def __aenter__(self) -> Self:
        if self._connections:
            use_mcp()
        self._running = [
            asyncio.create_task(connection.run(), name=f"mcp-{connection.server.name}")
            for connection in self._connections
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    async def tried(self) -> None:
        """Waits until each server runs, or could not be started."""
        await asyncio.gather(*(connection.tried() for connection in self._connections))

    def definitions(self) -> list[ToolDefinition]:
        """The tools that the model may call now, with names of letters, digits, - and _."""
        return [offered.definition for offered in self._offered.values()]

    async def call(self, name: str, arguments: Mapping[str, Any], made: list[MadeFile] | None = None) -> str:
        """The result as text, or a sentence that says why there is none. made: gets the pictures in it."""
        if offered := self._offered.get(name):
            return await offered.connection.call(offered.own_name, arguments, made)
        return f"The tool {name} is not there now."

    def _offer(self) -> None:
        """Updates the offered tools. Names do not depend on which servers are away, as they are in the history."""
        known = []
        for connection in self._connections:
            # Leaves out tools that would make requests too large for the model.
            large = [clipped(tool.name, MAX_NAME) for tool in connection.tools if _size(tool) > MAX_TOOL_BYTES]
            if large:
                told = clipped(", ".join(large), MAX_LOGGED)
                log.warning("mcp_tools_too_large", server=connection.server.name, tools=told, most_bytes=MAX_TOOL_BYTES)
            known += [(connection, tool) for tool in connection.tools if _size(tool) <= MAX_TOOL_BYTES]
        names = _names([(connection.server.name, tool.name) for connection, tool in known], self._taken)
        there = [
            (name, _Offered(connection, tool.name, replace(tool, name=name)))
            for name, (connection, tool) in zip(names, known, strict=True)
            if not connection.is_away
        ]
        sizes = accumulate(_size(offered.definition) for _, offered in there[:MAX_TOOLS])
        most = sum(size <= MAX_TOTAL_BYTES for size in sizes)
        if len(there) > most:
            log.warning("mcp_tools_left_out", tools=len(there), most=most)
        self._offered = dict(there[:most])


class _Toolset(AbstractToolset[Any]):
    """The toolset that pydantic-ai calls. It has no state of a run, so all runs share it."""

    def __init__(self, tools: McpTools) -> None:
        self._tools = tools

    @property
    def id(self) -> str:
        return "mcp"

    async def get_tools(self, _ctx: RunContext[object]) -> dict[str, ToolsetTool[object]]:
        return {
            definition.name: ToolsetTool(toolset=self, tool_def=definition, max_retries=1, args_validator=ARGUMENTS)
            for definition in self._tools.definitions()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[object], _tool: ToolsetTool[object]
    ) -> str:
        return await self._tools.call(name, tool_args, ctx.deps.made if isinstance(ctx.deps, Asked) else None)


def _size(tool: ToolDefinition) -> int:
    return len(to_json([tool.name, tool.parameters_json_schema]))


def _names(tools: Sequence[tuple[str, str]], taken: Iterable[str]) -> list[str]:
    """A unique name for each tool, given as (server, name): its own; if that clashes, with its server's name before it;
    if that clashes, too, with a number after it."""
    counts = Counter([*taken, *(_plain(name) for _, name in tools)])
    used = set(taken)
    numbers: dict[str, int] = {}  # the last number of each name, as thousands of tools may have the same
    names = []
    for server, name in tools:
        plain = _plain(name) if counts[_plain(name)] == 1 else _plain(f"{server}_{name}")
        unused, number = plain, numbers.get(plain, 1)
        while unused in used:
            number += 1
            unused = f"{plain[: MAX_NAME - len(str(number)) - 1]}_{number}"
        numbers[plain] = number
        used.add(unused)
        names.append(unused)
    return names


def _plain(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name[:MAX_NAME]) or "tool"
