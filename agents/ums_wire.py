"""The protocol of remote agents (UMS): two HTTP calls with limits; the answer comes as a whole or as a stream.

    POST {url}/conversations            {}                                          -> {"id": ...}
    POST {url}/conversations/{id}/chat  {"message": {"role": "user", "content": ...}} -> {"content": ...}

or, if the answer's type is text/event-stream, events with the data {"delta": ...}, perhaps followed by [DONE].

If it may decline, the request has "may_decline": true beside the message; it declines with {"declined": true, "why":
...}, also as the first event, or with status 204.
"""

from __future__ import annotations

import asyncio
import codecs
import io
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from aiohttp import AddrInfoType, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from yarl import URL

from agents.gateway import FailureKind
from tls import tls_context

MAX_BODY_BYTES = 1_000_000
# Of JSON. While it is parsed nothing else runs: 330,000 lists in 1 MB take 0.3 s. The longest answer takes some 150 KB.
MAX_JSON = 192 * 1024
BYTES_AT_ONCE = 4_096  # decoded before other tasks run
# Of a connection's receive buffer, of which Linux makes twice as many: aiohttp parses all that is in it in one go, and
# 256 KB of interim responses (status 103), of which a server may send any number before its own, take 0.25 s.
BUFFER_BYTES = 8 * 1024
DONE = "[DONE]"

KINDS = {
    400: FailureKind.REJECTED,
    401: FailureKind.MISCONFIGURED,
    402: FailureKind.NO_CREDIT,
    403: FailureKind.MISCONFIGURED,
    422: FailureKind.REJECTED,
    429: FailureKind.BUSY,
}


class RemoteError(Exception):
    """A remote agent did not answer as it should. Its text continues a sentence that begins with the agent's name."""

    def __init__(self, kind: FailureKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class RefusedError(RemoteError):
    """The remote agent refused a request, by its status."""


class GoneError(RefusedError):
    """The remote agent does not know the conversation (any more)."""


class SilenceError(Exception):
    """A remote agent declines to answer. Its text says why, in the agent's words."""


class Remote:
    """A remote agent's address, and an HTTP session with it, which is made when first needed and closed by `aclose`.

    Besides RemoteError, the calls raise what aiohttp does: TimeoutError, ClientError, OSError.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, connect_seconds: float, stall_seconds: float) -> None:
        self._conversations = URL(url) / "conversations"
        self._headers = {"accept": "application/json, text/event-stream"} | {n.lower(): headers[n] for n in headers}
        self._timeout = ClientTimeout(connect=connect_seconds, sock_read=stall_seconds)
        self._http: ClientSession | None = None

    async def begin(self) -> str:
        """Makes a conversation. Returns its id."""
        async with self._session.post(self._conversations, json={}, allow_redirects=False) as response:
            _check(response)
            made = _object(await _body(response)).get("id")
        # "." and ".." in a path would lead elsewhere.
        if not isinstance(made, str) or made in ("", ".", ".."):
            raise _unreadable("no id of a conversation")
        return made

    async def chat(self, conversation_id: str, content: str, *, may_decline: bool) -> AsyncGenerator[str, None]:
        """The answer, piece by piece. Raises GoneError and SilenceError before the first."""
        url = self._conversations.joinpath(quote(conversation_id, safe=""), "chat", encoded=True)
        body: dict[str, Any] = {"message": {"role": "user", "content": content}}
        if may_decline:
            body["may_decline"] = True
        # JSON escapes a character beyond 16 bits as two surrogates, which may come in two deltas.
        halves = codecs.getincrementaldecoder("utf-16-le")("replace")
        async with self._session.post(url, json=body, allow_redirects=False) as response:
            if response.status == 404:
                raise GoneError(FailureKind.UNAVAILABLE, "does not know the conversation that it has just begun")
            _check(response)
            if response.status == HTTPStatus.NO_CONTENT:  # whatever its content type is
                raise SilenceError
            pieces = _deltas(response) if _is_stream(response) else _whole(response)
            async for piece in pieces:
                yield halves.decode(piece.encode("utf-16-le", "surrogatepass"))

    async def aclose(self) -> None:
        if self._http:
            await self._http.close()

    @property
    def _session(self) -> ClientSession:
        if self._http is None or self._http.closed:
            # Connections are not reused, as a POST over one that the server is just closing would fail. Cookies are not
            # kept either: one channel's must not reach another's conversation.
            connector = TCPConnector(limit=0, force_close=True, socket_factory=_small_socket, ssl=tls_context())
            self._http = ClientSession(
                connector=connector, cookie_jar=DummyCookieJar(), headers=self._headers, timeout=self._timeout
            )
        return self._http


async def event_data(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The data of each event of a stream, by the WHATWG's rules for server-sent events.

    Events with another name than "message" are ignored, as browsers do by default; "error" raises RemoteError. Data
    after the last blank line counts as an event, too, even if it was truncated.
    """
    name, data = "", list[str]()
    async for line in _lines(chunks):
        field, _, value = line.partition(":")
        match field:
            case "data":
                data.append(value.removeprefix(" "))
            case "event":
                name = value.removeprefix(" ")
            case "" if not line:
                if name == "error":
                    raise _reported()
                if any(data) and name in ("", "message"):
                    yield "\n".join(data)
                name, data = "", []


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The decoded lines without their line ends, followed by an empty one."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8-sig")("replace"), translate=True)
    line = ""
    async for chunk in chunks:
        for start in range(0, len(chunk), BYTES_AT_ONCE):
            first, *others = decoder.decode(chunk[start : start + BYTES_AT_ONCE]).split("\n")
            line += first
            for other in others:
                yield line
                line = other
            await asyncio.sleep(0)
    yield line + decoder.decode(b"", final=True).rstrip("\n")
    yield ""


async def _deltas(response: ClientResponse) -> AsyncIterator[str]:
    has_spoken = False
    async for data in event_data(_bounded(response)):
        if data.strip() == DONE:
            return
        event = _object(data)
        if "error" in event:
            raise _reported()
        if not has_spoken:
            _heed_decline(event)
        delta = _text(event.get("delta", ""))  # an event without one is a heartbeat, or about something else
        has_spoken |= bool(delta.strip())
        yield delta


async def _whole(response: ClientResponse) -> AsyncIterator[str]:
    answer = _object(await _body(response))
    _heed_decline(answer)
    yield _text(answer.get("content"))


def _small_socket(address: AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    return made


def _is_stream(response: ClientResponse) -> bool:
    # Without the parameters, for which aiohttp's own parser may take 0.5 s.
    kind, _, _ = response.headers.get("content-type", "").partition(";")
    return kind.strip().lower() == "text/event-stream"


def _heed_decline(answer: Mapping[str, Any]) -> None:
    if answer.get("declined") is True:
        raise SilenceError(answer.get("why") or "")


def _check(response: ClientResponse) -> None:
    status = response.status
    if 300 <= status < 400:
        # Credentials are only sent to the address that the owner gave.
        raise RefusedError(FailureKind.MISCONFIGURED, f"redirects (status {status}), which is not followed")
    if not 200 <= status < 300:
        raise RefusedError(KINDS.get(status, FailureKind.UNAVAILABLE), f"answered with status {status}")


async def _bounded(response: ClientResponse) -> AsyncIterator[bytes]:
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise _unreadable(f"more than {MAX_BODY_BYTES:,} bytes")
        yield part


async def _body(response: ClientResponse) -> bytes:
    return b"".join([part async for part in _bounded(response)])


def _object(content: str | bytes) -> dict[str, Any]:
    if len(content) > MAX_JSON:
        raise _unreadable(f"more than {MAX_JSON:,} bytes of JSON")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        raise _unreadable("no JSON") from None
    if not isinstance(value, dict):
        raise _unreadable("JSON, but no object")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _unreadable("no text where that belongs")
    return value


def _reported() -> RemoteError:
    return RemoteError(FailureKind.UNAVAILABLE, "reported an error in its answer")


def _unreadable(what: str) -> RemoteError:
    return RemoteError(FailureKind.UNAVAILABLE, f"gave an answer that cannot be used: {what}")
