"""Limits responses of model and MCP servers before they are parsed: not compressed, and not too large.

Providers' clients decompress, collect and parse whatever comes: a compressed response of 600 KB may become 600 MB, and
while an event is parsed, nothing else runs.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import structlog

log = structlog.get_logger()

MAX_EVENT_BYTES = 512 * 1024  # of a stream; the last event of OpenAI's Responses API repeats the whole answer
MAX_BODY_BYTES = 64 * 1024  # of a response that is no stream: a judge's, or an error
MAX_RESPONSE_BYTES = 32 * 1024 * 1024
MAX_ITEMS = 1_000  # in all lists of an event or body together: each is validated on its own, a choice in 40 us
BLANK_LINE = re.compile(rb"\n\n|\r\n\r\n|\r\r")  # ends an event


def bound(client: Any) -> None:
    """Limits the responses to a provider's client, if its HTTP client is of the kind of OpenAI's and Anthropic's."""
    http = getattr(client, "_client", None)
    if isinstance(http, httpx2.AsyncClient):
        bound_http(http, MAX_EVENT_BYTES, MAX_BODY_BYTES)
        kind: Any = type(client)

        class Shortening(kind):  # type: ignore[misc]
            """Shortens parsed data. No public method sees all of it; copies of the client have this class, too."""

            def _process_response_data(self, *, data: object, **how: Any) -> Any:
                if isinstance(data, dict) and isinstance(choices := data.get("choices"), list):
                    del choices[1:]  # only the first is read
                shorten(data)
                return super()._process_response_data(data=data, **how)

        Shortening.__name__ = kind.__name__  # the client's user agent has the name of its class
        client.__class__ = Shortening


def bound_http(http: httpx2.AsyncClient, max_event: int, max_body: int) -> None:
    """Limits the responses to an HTTP client. max_event, max_body: bytes of an event of a stream, and of any other
    response."""

    async def bound_response(response: httpx2.Response) -> None:
        packed = response.headers.get("content-encoding", "identity")
        if packed.strip().lower() != "identity":
            raise _refused(f"it is packed as {packed[:40]}, for which it was not asked")
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream, max_event if is_stream else max_body, is_stream)

    http.headers["Accept-Encoding"] = "identity"
    http.event_hooks["response"].append(bound_response)


def shorten(data: object) -> None:
    """Cuts the lists in parsed data to MAX_ITEMS items in all."""
    room, nested = MAX_ITEMS, [data]
    for each in nested:  # the list grows meanwhile
        if isinstance(each, list):
            del each[room:]
            room -= len(each)
        nested += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()


class _Bounded(httpx2.AsyncByteStream):
    """Streams a response's bytes. max_bytes: of one event, or of the whole response if it is no stream of events."""

    def __init__(self, stream: httpx2.AsyncByteStream, max_bytes: int, is_stream: bool) -> None:
        self._stream = stream
        self._max = max_bytes
        self._is_stream = is_stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = event = 0
        tail = b""
        async for chunk in self._stream:
            seen = tail + chunk
            begun, *others = BLANK_LINE.split(seen) if self._is_stream else [seen]
            begun_size = event - len(tail) + len(begun)
            event, tail = len(others[-1]) if others else begun_size, seen[-3:]
            total += len(chunk)
            if max(begun_size, *map(len, others), 0) > self._max or total > MAX_RESPONSE_BYTES:
                raise _refused(f"more than {self._max:,} bytes at once, or {MAX_RESPONSE_BYTES:,} in all")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _refused(why: str) -> httpx2.RemoteProtocolError:
    log.warning("model_response_refused", detail=why)
    return httpx2.RemoteProtocolError(f"The response was refused: {why}.")
