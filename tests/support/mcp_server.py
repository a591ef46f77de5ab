"""A real MCP server, by the `mcp` package: `python mcp_server.py NAME [old] [noisy]` over stdio, or
`python mcp_server.py NAME http AUTHORIZATION` over HTTP, for those who send that header, at the address that it prints.

old: it knows the protocol only as it was up to 2025. noisy: it begins with garbage.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import Any

from mcp.server import MCPServer
from mcp.server.lowlevel import server as lowlevel
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.runner import serve_loop
from mcp.types import ImageContent, TextContent
from pydantic import BaseModel, Field

GARBAGE = b'this is no JSON\n{"jsonrpc": "2.0"}\n[]\n\n'
PNG = "iVBORw0KGgo="  # how one begins
NO_TEXT = b"\xff\xfe\n"  # after which the client reads no more
NAME, *MODES = sys.argv[1:]
server = MCPServer(NAME, log_level="ERROR")
# The mcp package takes stdout for itself, and gives print() stderr.
wire = os.dup(1)


@server.tool()
async def echo(text: str) -> str:
    """Says it again."""
    return text


@server.tool(name="look up!")
async def look_up(name: str) -> dict[str, Any]:
    """Its result has a structure."""
    return {"name": name, "server": NAME, "pid": os.getpid()}


@server.tool()
async def fail(text: str) -> str:
    """Fails as a tool says it."""
    raise ToolError(text)


@server.tool()
async def crash() -> str:
    """Ends the process at once."""
    os._exit(3)


@server.tool()
async def hang() -> str:
    """Never answers."""
    await asyncio.Event().wait()
    return ""


@server.tool()
async def much(size: int, of: str = "x") -> str:
    """As many characters."""
    return of * size


@server.tool()
async def pieces(count: int, text: str) -> list[TextContent]:
    """The text so many times."""
    return [TextContent(type="text", text=text)] * count


class Word(BaseModel):
    word: str = Field(json_schema_extra={"pattern": "^(a+)+$"})  # told only: what is none is sent as well


@server.tool()
async def word(text: str) -> Word:
    """Says it again, with a schema of which a pattern takes twice as long for each letter more."""
    return Word(word=text)


@server.tool()
async def picture() -> list[TextContent | ImageContent]:
    """A text and a picture."""
    return [TextContent(type="text", text="Here:"), ImageContent(type="image", data=PNG, mime_type="image/png")]


@server.tool()
async def environment() -> dict[str, str]:
    """All that it was given."""
    return dict(os.environ)


@server.tool()
async def babble(text: str) -> str:
    """Writes it to stderr, and garbage to stdout."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - as servers do
    os.write(wire, GARBAGE)
    return "babbled"


@server.tool()
async def choke() -> str:
    """Writes to stdout what is no text."""
    os.write(wire, NO_TEXT)
    return "choked"


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Has a tool more, and says so."""
    server.add_tool(echo, name=name)
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "grown"


def over_http(authorization: str) -> None:
    import uvicorn
    from starlette.responses import Response

    app = server.streamable_http_app()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        allowed = dict(scope.get("headers", ())).get(b"authorization") == authorization.encode()
        await (app if allowed or scope["type"] != "http" else Response(status_code=401))(scope, receive, send)

    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)  # noqa: T201 - the test reads it
    uvicorn.Server(uvicorn.Config(guarded, log_level="error")).run(sockets=[listening])


if "old" in MODES:
    lowlevel.serve_dual_era_loop = serve_loop  # type: ignore[attr-defined]
if "noisy" in MODES:
    os.write(wire, GARBAGE)
if "http" in MODES:
    over_http(MODES[1])
else:
    server.run()
