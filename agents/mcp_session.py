"""Limits on what the MCP packages accept from a server. Imported, as these packages, only if there are MCP servers."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from math import isfinite
from typing import Any, TypeGuard
from urllib.parse import urljoin

import mcp.client.stdio
import mcp.types
import structlog
from anyio import BrokenResourceError
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from fastmcp.client.transports.base import TransportOptions, VersionAwareClientSession
from mcp.client.streamable_http import MAX_RECONNECTION_ATTEMPTS, StreamableHTTPTransport
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCNotification
from pydantic import ConfigDict, TypeAdapter
from pydantic_core import from_json, to_json

from agents.cutting import MAX_BYTES, TRACEBACK
from agents.mcp_file import MAX_TOOL_BYTES
from agents.shortening import OPAQUE, STRING, parts_in, shorten

log = structlog.get_logger()

MAX_LISTED = 1_000  # tools that are looked at
OF_LISTINGS = {"tools", "nextCursor", "ttlMs", "cacheScope", "resultType"}
MAX_LISTED_BYTES = 2_000_000  # of all pages of a listing: behind those no other is asked for
MAX_LINE = 8_000_000  # bytes that a process writes as one message
MAX_WIDE = 100_000  # emojis in a message: with one of them Python takes four bytes for each other sign, too
MAX_ITEMS = 1_000  # in all lists of a result together
MAX_OTHER_BYTES = 1_000_000  # of an answer that is neither a listing nor a result, such as the server's name
# Characters of all texts in a result together, which many servers tell twice. What looks like JSON is parsed; of what
# comes of it the model is told 8 KB.
MAX_TEXT = 200_000
MAX_PARTS = 100_000  # lists, objects and what is in them, in a message: each takes up to 1 us, and 200 bytes
# Items of lists, and keys of objects, in what a server asks of us, which is refused anyway, but for pings. Each takes
# up to 40 us and 4 KB.
MAX_ASKED = 100
MAX_ASKED_CHARACTERS = 1_000  # of it, and of its method and number
MAX_MESSAGE = 10_000  # characters of an error's; of these 300 are told
MAX_REQUIRED = 500  # arguments of a tool, or of an object in them
MAX_TOOL_NAME = 1_000  # characters
PART_BYTES = 8  # as which each list, object and what is in them counts in a listing
# Of a whole number, as of the largest fraction: one of 4,000 digits takes 90 us each time it is written.
MAX_BITS = 1_024
MAX_ADDRESS = 2_000  # characters, also of a cursor and of an event's id
MAX_OPEN = 64  # requests of a server, such as pings, until it has taken the answers; each takes 5 KB
WIDE = re.compile("[\U00010000-\U0010ffff]")
MAX_HALVED = 1_000_000  # characters of a message in which halves of emojis are replaced


class Session(VersionAwareClientSession):
    """A session that never validates a result against the server's schema: its patterns may take for ever, and the
    model is to read results that do not match, too. Cuts listings, results and requests before each item is validated.
    Does not answer a server's requests while it does not take the answers."""

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        self._listed = self._listed_bytes = 0
        self._named: set[str] = set()  # tools in this listing
        self._send = self._dispatcher.send_raw_request
        self._dispatcher.send_raw_request = self._send_bounded  # type: ignore[method-assign]
        self._open = 0  # requests of the server
        dispatcher: Any = self._dispatcher
        self._dispatch, self._answer = dispatcher._dispatch_request, dispatcher._handle_request  # noqa: SLF001 - no other way
        dispatcher._dispatch_request, dispatcher._handle_request = self._dispatch_bounded, self._answer_one  # noqa: SLF001

    async def _dispatch_bounded(self, request: Any, *how: Any) -> None:
        if self._open < MAX_OPEN and len(f"{request.method}{request.id}") <= MAX_ASKED_CHARACTERS:
            self._open += 1
            shorten(request.params, MAX_ASKED, MAX_ASKED, MAX_ASKED_CHARACTERS, opaque=())
            await self._dispatch(request, *how)

    async def _answer_one(self, *request: Any) -> None:
        try:
            await self._answer(*request)
        finally:
            self._open -= 1

    async def _send_bounded(self, method: str, params: Any, *args: Any, **how: Any) -> dict[str, Any]:
        answer = await self._send(method, params, *args, **how)
        if method == "tools/list" and isinstance(answer.get("tools"), list):
            self._bound_listing(answer, is_first=not (params or {}).get("cursor"))
        elif method == "tools/call":
            bound_result(answer)
        else:
            leave_out_numbers(answer)
            shorten(answer, MAX_ITEMS, MAX_ITEMS, MAX_TEXT)
            if len(to_json(answer)) > MAX_OTHER_BYTES:
                answer.clear()  # which is refused, but does not take long to quote
        return answer

    def _bound_listing(self, answer: dict[str, Any], *, is_first: bool) -> None:
        """Bounds a page of a listing, which may be the last then."""
        leave_out_numbers(answer)
        if is_first:
            self._listed, self._listed_bytes, self._named = 0, 0, set()
        tools = answer["tools"]
        told = to_json(tools)
        self._listed_bytes += len(told) + PART_BYTES * parts_in(told.decode())
        read = [_read_of(tool) for tool in tools[: MAX_LISTED - self._listed] if _has_name(tool)]
        self._listed += len(tools)
        cursor = answer.get("nextCursor")
        for name in answer.keys() - OF_LISTINGS:
            del answer[name]
        answer["tools"] = read
        self._named |= {tool["name"] for tool in read}
        is_much = self._listed >= MAX_LISTED or self._listed_bytes > MAX_LISTED_BYTES
        if not is_much and cursor and isinstance(cursor, str) and len(cursor) <= MAX_ADDRESS:
            return
        answer.pop("nextCursor", None)
        # Of a listing with several pages the package keeps what earlier listings had.
        for kept in (self._tool_output_schemas, self._tool_listed_versions, self._x_mcp_header_maps):
            for name in kept.keys() - self._named:
                kept.pop(name, None)


def bound_result(answer: dict[str, Any]) -> None:
    """Bounds the result of a call. What has a structure and would be cut is left out where the same seems to be there
    as text: of the text the model is told that it was cut."""
    if answer.get("content", ...) is None:
        answer["content"] = []
    content, structure = answer.get("content"), answer.get("structuredContent")
    items = [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []
    for item in items:
        for name in ("_meta", "annotations"):  # which nobody reads
            item.pop(name, None)
    if answer.get("isError") is True:  # only its texts are read
        answer["content"] = [item for item in items if not _has_bytes(item)]
    leave_out_numbers(answer)
    told = to_json(structure)
    shorten(answer, MAX_ITEMS, MAX_PARTS, MAX_TEXT, opaque=() if answer.get("isError") is True else OPAQUE)
    shorten(structure, MAX_ITEMS, MAX_PARTS, MAX_TEXT, opaque=())  # pictures are in the content
    if structure is not None and to_json(structure) != told:
        text = "".join(text for item in items if isinstance(text := item.get("text"), str)).lstrip()
        if text.startswith(("{", "[")) and len(text) >= min(len(told) // 2, MAX_BYTES):
            del answer["structuredContent"]
    shorten(answer.get("inputRequests"), MAX_ASKED, MAX_ASKED, MAX_TEXT)


def _has_bytes(item: dict[str, Any]) -> bool:
    resource = item.get("resource")
    blob = resource.get("blob") if isinstance(resource, dict) else None
    return item.get("type") in ("image", "audio") or isinstance(blob, str)


def _has_name(tool: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(tool, dict) and isinstance(name := tool.get("name"), str) and 0 < len(name) <= MAX_TOOL_NAME


def _read_of(tool: dict[str, Any]) -> dict[str, Any]:
    """What is read of a tool in a listing: of the rest, each icon takes 10 us to validate. Of too large a schema only
    its size, for which the tool is left out: the package keeps a path of names for each argument in it that a header is
    to repeat, and one name may be as long as the message."""
    read: dict[str, Any] = {"name": tool["name"], "inputSchema": _sound(tool.get("inputSchema"))}
    if isinstance(description := tool.get("description"), str):
        read["description"] = description[:MAX_TOOL_BYTES]
    if (size := len(to_json(read["inputSchema"]))) > MAX_TOOL_BYTES:
        read["inputSchema"] = {"type": "object", "$comment": " " * size}
    return read


def _sound(schema: object) -> dict[str, Any]:
    """The schema of a tool's arguments without what the package would refuse, one fault after another, and all other
    tools with it; and without long lists of required arguments, through which some providers' schemas look for each."""
    sound = {**schema, "type": "object"} if isinstance(schema, dict) else {"type": "object"}
    properties, required = sound.get("properties", {}), sound.get("required", [])
    if not isinstance(properties, dict):
        del sound["properties"]
    elif not all(isinstance(each, dict | bool) for each in properties.values()):
        sound["properties"] = {name: each for name, each in properties.items() if isinstance(each, dict | bool)}
    if not (isinstance(required, list) and all(isinstance(each, str) for each in required)):
        del sound["required"]
    if not isinstance(sound.get("$schema", ""), str):
        del sound["$schema"]
    for each in _holders(sound):
        if isinstance(each, dict) and isinstance(needed := each.get("required"), list) and len(needed) > MAX_REQUIRED:
            del each["required"]
    return sound


def leave_out_numbers(data: object) -> None:
    """Leaves out of parsed data the numbers that are too large, and those that JSON does not have."""
    for each in _holders(data):
        for key, value in each.items() if isinstance(each, dict) else enumerate(each):
            is_large = isinstance(value, int) and value.bit_length() > MAX_BITS
            if is_large or (isinstance(value, float) and not isfinite(value)):
                each[key] = None


def _holders(data: object) -> Iterator[Any]:
    """All lists and objects in parsed data."""
    nested = [data]
    for each in nested:  # the list grows meanwhile
        if isinstance(each, dict | list):
            yield each
            nested += each.values() if isinstance(each, dict) else each


class Lines(TextReceiveStream):
    """The output of a process, in whole lines: the package would search all of one that has begun again with each
    piece. Ends at one that is too long. Emojis are escaped, as they may be in JSON, so that its other signs take a byte
    each, and not four."""

    _begun = 0

    async def receive(self) -> str:
        pieces: list[str] = []
        while not pieces or "\n" not in pieces[-1]:
            pieces.append(text := WIDE.sub(_escaped, await super().receive()))
            _, newline, line = text.rpartition("\n")
            self._begun = (0 if newline else self._begun) + len(line.encode(errors="replace"))
            if self._begun > MAX_LINE:
                raise BrokenResourceError
        return "".join(pieces)


# The package's own quotes the whole message, in the text of an error, for each type that it might have been.
_message = TypeAdapter[Any](mcp.types.JSONRPCMessage, config=ConfigDict(hide_input_in_errors=True))


def read_message(data: str | bytes | bytearray, /, **how: Any) -> Any:
    """Parses a message of a server, but refuses one with too many parts to be parsed in one go."""
    text = data if isinstance(data, str) else data.decode(errors="replace")
    text, count = WIDE.subn(_escaped, text, MAX_WIDE)
    if count:
        data = text
    # Each part has two strings at most: a message of more has too many parts, and to take them all out takes long.
    if count == MAX_WIDE or (parts_in(text) > MAX_PARTS and parts_in(STRING.sub("", text, 2 * MAX_PARTS)) > MAX_PARTS):
        most = f"{MAX_PARTS:,} parts, or {MAX_WIDE:,} characters of four bytes"
        log.warning("mcp_message_refused", detail=f"it has more than {most}")
        data = ""  # which is no JSON
    try:
        parsed = from_json(data)
    except ValueError:
        parsed = _parsed_with_halves(text) if data else None  # which is refused
    if isinstance(parsed, dict) and isinstance(error := parsed.get("error"), dict):
        _bound_error(error)
    return _message.validate_python(parsed, **how)  # JSON would be kept in a copy for each type that it is not


def _bound_error(error: dict[str, Any]) -> None:
    message = error.pop("message", None)
    shorten(error, MAX_ASKED, MAX_ASKED, MAX_ASKED_CHARACTERS, opaque=())
    message = message if isinstance(message, str) else ""  # else the call would wait for its time limit
    is_traceback = len(message) > MAX_MESSAGE and TRACEBACK in message  # of which the end is read
    error["message"] = f"{TRACEBACK}\n{message[-MAX_MESSAGE:]}" if is_traceback else message[:MAX_MESSAGE]


def _escaped(wide: re.Match[str]) -> str:
    """An emoji as JSON may have it in a string, where it does not make all other characters take as much room."""
    return json.dumps(wide[0])[1:-1]


def _parsed_with_halves(text: str) -> Any:
    """Parses a message with half an emoji in it, as JavaScript leaves where it cuts a text; None: it is no JSON."""
    if len(text) > MAX_HALVED:
        return None
    try:
        return from_json(json.dumps(json.loads(text), ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        return None


def join_address(url: str, told: str) -> str:
    """The address that a server tells, relative to that under which it is known. Raises ValueError if it is too long:
    Python sorts its accents pair by pair, and keeps the last 128 addresses."""
    if len(told) > MAX_ADDRESS:
        raise ValueError(f"The server tells an address of more than {MAX_ADDRESS:,} characters.")
    return urljoin(url, told)


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


_reconnect = StreamableHTTPTransport._handle_reconnection  # noqa: SLF001 - as above
NEXT: ContextVar[list[tuple[str, int | None, int]] | None] = ContextVar("NEXT", default=None)


async def reconnect(
    transport: StreamableHTTPTransport, request: Any, last_id: str, retry_ms: int | None = None, attempt: int = 0
) -> None:
    """Opens a request's stream again, and so on: the package does so within the one before, which keeps its events."""
    if (later := NEXT.get()) is not None:
        later.append((last_id, retry_ms, attempt))
        return
    later = [(last_id, retry_ms, attempt)]
    token = NEXT.set(later)
    try:
        while later:
            last_id, retry_ms, attempt = later.pop()
            given_up = MAX_RECONNECTION_ATTEMPTS if len(last_id) > MAX_ADDRESS else attempt
            await _reconnect(transport, request, last_id, retry_ms, given_up)
    finally:
        NEXT.reset(token)


OPTIONS = TransportOptions(session_class=Session)
