"""Limits on what the MCP packages accept from a server. Imported, as these packages, only if there are MCP servers."""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from typing import Any

import mcp.client.stdio
import mcp.types
import structlog
from anyio import BrokenResourceError
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from fastmcp.client.transports.base import TransportOptions, VersionAwareClientSession
from mcp.client.streamable_http import StreamableHTTPTransport
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCNotification
from pydantic import ConfigDict, TypeAdapter
from pydantic_core import from_json, to_json

from agents.bounded_client import shorten
from agents.mcp_file import MAX_TOOL_BYTES

log = structlog.get_logger()

MAX_LISTED = 1_000  # tools that are looked at
TOLD = ("name", "description", "inputSchema")  # of a tool; never the schema of its results
MAX_LISTED_BYTES = 2_000_000  # of all pages of a listing: behind those no other is asked for
MAX_LINE = 8_000_000  # bytes that a process writes as one message
MAX_WIDE = 4_000_000  # characters of one with signs for which Python takes four bytes for each; it is kept three times
MAX_ITEMS = 1_000  # in all lists of a result together
MAX_OTHER_BYTES = 1_000_000  # of an answer that is neither a listing nor a result, such as the server's name
# Characters of all texts in a result together, which many servers tell twice. What looks like JSON is parsed; of what
# comes of it the model is told 8 KB.
MAX_TEXT = 200_000
MAX_PARTS = 100_000  # lists, objects and what is in them, in a message: each takes up to 1 us, and 200 bytes
# Items of lists, and keys of objects, in what a server asks of us, which is refused anyway, but for pings. Each takes
# up to 40 us and 4 KB.
MAX_ASKED = 100
# Of a whole number, as of the largest fraction: one of 4,000 digits takes 90 us each time it is written.
MAX_BITS = 1_024
MAX_OPEN = 64  # requests of a server, such as pings, until it has taken the answers; each takes 5 KB
WIDE = re.compile("[\U00010000-\U0010ffff]")
STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


class Session(VersionAwareClientSession):
    """A session that never validates a result against the server's schema: its patterns may take for ever, and the
    model is to read results that do not match, too. Cuts listings, results and requests before each item is validated.
    Does not answer a server's requests while it does not take the answers."""

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self._listed = self._listed_bytes = 0
        self._send = self._dispatcher.send_raw_request
        self._dispatcher.send_raw_request = self._send_bounded  # type: ignore[method-assign]
        self._open = 0  # requests of the server
        dispatcher: Any = self._dispatcher
        self._dispatch, self._answer = dispatcher._dispatch_request, dispatcher._handle_request  # noqa: SLF001 - no other way
        dispatcher._dispatch_request, dispatcher._handle_request = self._dispatch_bounded, self._answer_one  # noqa: SLF001

    async def _dispatch_bounded(self, request: Any, *how: Any) -> None:
        if self._open < MAX_OPEN:
            self._open += 1
            shorten(request.params, MAX_ASKED, MAX_ASKED, MAX_TEXT)
            await self._dispatch(request, *how)

    async def _answer_one(self, *request: Any) -> None:
        try:
            await self._answer(*request)
        finally:
            self._open -= 1

    async def _send_bounded(self, method: str, params: Any, *args: Any, **how: Any) -> dict[str, Any]:
        answer = await self._send(method, params, *args, **how)
        leave_out_numbers(answer)
        if method == "tools/list" and isinstance(tools := answer.get("tools"), list):
            if not (params or {}).get("cursor"):
                self._listed = self._listed_bytes = 0
            answer["tools"] = [_read_of(tool) for tool in tools[: MAX_LISTED - self._listed]]
            self._listed += len(tools)
            self._listed_bytes += len(to_json(answer))
            if self._listed >= MAX_LISTED or self._listed_bytes > MAX_LISTED_BYTES:
                answer.pop("nextCursor", None)
        else:
            shorten(answer, MAX_ITEMS, MAX_PARTS, MAX_TEXT)
            if method != "tools/call" and len(to_json(answer)) > MAX_OTHER_BYTES:
                answer.clear()  # which is refused, but does not take long to quote
        if method == "tools/call":
            shorten(answer.get("inputRequests"), MAX_ASKED, MAX_ASKED, MAX_TEXT)
        return answer


def _read_of(tool: object) -> object:
    """What is read of a tool in a listing: of the rest, each icon takes 10 us to validate. Of too large a schema only
    its size, for which the tool is left out: the package keeps a path of names for each argument in it that a header is
    to repeat, and one name may be as long as the message."""
    if not isinstance(tool, dict):
        return tool
    read = {name: tool[name] for name in TOLD if name in tool}
    for name in TOLD:
        if isinstance(text := read.get(name), str):
            read[name] = text[:MAX_TOOL_BYTES]
    if (size := len(to_json(tool.get("inputSchema")))) > MAX_TOOL_BYTES:
        read["inputSchema"] = {"type": "object", "$comment": " " * size}
    return read


def leave_out_numbers(data: object) -> None:
    """Leaves out of parsed data the whole numbers that are too large."""
    nested = [data]
    for each in nested:  # the list grows meanwhile
        if isinstance(each, dict | list):
            for key, value in each.items() if isinstance(each, dict) else enumerate(each):
                if isinstance(value, int) and value.bit_length() > MAX_BITS:
                    each[key] = None
                elif isinstance(value, dict | list):
                    nested.append(value)


class Lines(TextReceiveStream):
    """The output of a process. Ends at a line that is too long: the package would search all of it again with each
    piece."""

    _begun = _characters = 0
    _is_wide = False

    async def receive(self) -> str:
        text = await super().receive()
        _, newline, line = text.rpartition("\n")
        if newline:
            self._begun, self._characters, self._is_wide = 0, 0, False
        self._begun += len(line.encode(errors="replace"))
        self._characters += len(line)
        self._is_wide = self._is_wide or WIDE.search(line) is not None
        if self._begun > MAX_LINE or (self._is_wide and self._characters > MAX_WIDE):
            raise BrokenResourceError
        return text


# The package's own quotes the whole message, in the text of an error, for each type that it might have been.
_message = TypeAdapter[Any](mcp.types.JSONRPCMessage, config=ConfigDict(hide_input_in_errors=True))


def read_message(data: str | bytes | bytearray, /, **how: Any) -> Any:
    """Parses a message of a server, but refuses one with too many parts to be parsed in one go."""
    text = data if isinstance(data, str) else data.decode(errors="replace")
    # Each part has two strings at most: a message of more has too many parts, and to take them all out takes long.
    if _parts(text) > MAX_PARTS and _parts(STRING.sub("", text, 2 * MAX_PARTS)) > MAX_PARTS:
        log.warning("mcp_message_refused", detail=f"it has more than {MAX_PARTS:,} parts")
        data = ""  # which is no JSON
    try:
        parsed = from_json(data)
    except ValueError:
        parsed = None  # which is refused
    return _message.validate_python(parsed, **how)  # JSON would be kept in a copy for each type that it is not


def _parts(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


_stop = mcp.client.stdio._stop_server_process  # noqa: SLF001 - the package offers no other way


async def stop_process(process: Process) -> None:
    """Stops a process as the package does, then kills its process group: the package leaves child processes of one that
    ends by itself, and stops early when cancelled. Children that left the group are not found."""
    try:
        await _stop(process)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


_cancel = StreamableHTTPTransport._consume_modern_cancellation  # noqa: SLF001 - as above


def end_request(transport: StreamableHTTPTransport, message: SessionMessage) -> bool:
    """Closes the HTTP request of a call that is given up, also where the protocol (up to 2025) has the server told of
    that by a message instead: it may ignore that, and keep the request open."""
    is_told = _cancel(transport, message)
    sent = message.message
    if isinstance(sent, JSONRPCNotification) and sent.method == "notifications/cancelled":
        post = transport._in_flight_posts.get((sent.params or {}).get("requestId"))  # type: ignore[arg-type]  # noqa: SLF001
        if post:
            post.scope.cancel()
    return is_told


OPTIONS = TransportOptions(session_class=Session)
