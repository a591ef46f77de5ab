"""Limits responses of model and MCP servers before they are parsed: not compressed, and not too large.

Providers' clients decompress, collect and parse whatever comes: a compressed response of 600 KB may become 600 MB, and
while an event is parsed, nothing else runs.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from http.cookiejar import CookieJar
from importlib import import_module
from typing import Any

import h11
import structlog
from pydantic_ai.exceptions import AgentRunError, ModelAPIError, UserError
from pydantic_ai.messages import ToolCallPartDelta
from pydantic_ai.models import Model, StreamedResponse

from agents.failures import MAX_CAUSES, may_be_billed, was_sent
from agents.shortening import (
    KEPT,
    KEPT_PART_BYTES,
    MAX_ERROR_CHARACTERS,
    MAX_SAID,
    TEXT,
    parts_in,
    shorten_error,
    shorten_response,
)
from tls import without_slow_ciphers

log = structlog.get_logger()

MAX_EVENT_BYTES = 512 * 1024  # of a stream; the last event of OpenAI's Responses API repeats the whole answer
LARGE_AT_ONCE = 2  # events and bodies of an MCP server that are larger
# Of a response that is no stream: a judge's, or an error. Also of an event whose lists are not shortened.
MAX_BODY_BYTES = 64 * 1024
# As which each comma and opening bracket of the latter counts: Mistral's client takes 55 us for a choice.
PART_BYTES = 16
# Of a response, in which each comma and opening bracket counts as KEPT_PART_BYTES: so much memory its client may keep,
# eight times over where it joins texts with one wide sign. 22,000 tokens fit in, each in an event as OpenRouter sends
# thoughts, and no answer has as many.
MAX_RESPONSE_BYTES = 12 * 1024 * 1024
# Of one that is shortened, as it is sent: each of Perplexity's pieces repeats the answer so far, and its sources.
MAX_SENT_BYTES = 64 * 1024 * 1024
MAX_EVENTS = 40_000
MAX_PARTS = 1_000  # of an answer: each takes the longer to add the more there are
LEAST_BYTES = 100  # as which each piece of an event or body counts at least
MAX_LINES = 10_000  # of an event: Anthropic's client takes 3 us for each, in one go
PATIENCE_SECONDS = 40.0  # of the 60 after which an answer of which nothing came is given up
BYTES_AT_ONCE = 4_096  # passed on before other tasks run: 1,400 empty events
MAX_HEAD_BYTES = 16 * 1024  # of headers, and of trailers: each line takes 3 us, in one go
MAX_HEADERS = 200  # the clients look through all of them for each
# What is kept of the cookies of all servers of a client, which each request takes along: many servers refuse a request
# with 8 KB of headers.
MAX_COOKIES, MAX_COOKIE_BYTES = 50, 4_096
LOST: ContextVar[Callable[[], object]] = ContextVar("LOST", default=lambda: None)
OUTDATED: ContextVar[Callable[[], bool]] = ContextVar("OUTDATED", default=lambda: False)
IS_TOO_MUCH: ContextVar[Callable[[], bool]] = ContextVar("IS_TOO_MUCH", default=lambda: False)
COLLECTED = "parley_collected"  # of a request: its response is read as a whole, whatever its type
BLANK = b"\xef\xbb\xbf \t\r\n"  # bytes before the first that matters: a byte order mark and white space


class OutdatedError(AgentRunError):
    """What a request says was edited, deleted or forgotten before it could be sent again, or to another model."""

    def __init__(self) -> None:
        super().__init__("what it says was edited, deleted or forgotten meanwhile")


@contextmanager
def noting_lost(note: Callable[[], object]) -> Iterator[None]:
    """Calls `note` for each request to which no response came, and which is then sent again, or to another model."""
    token = LOST.set(note)
    try:
        yield
    finally:
        LOST.reset(token)


@contextmanager
def not_repeating(is_outdated: Callable[[], bool]) -> Iterator[None]:
    """Raises OutdatedError where a request would be sent again, or to another model, and is_outdated() by then."""
    token = OUTDATED.set(is_outdated)
    try:
        yield
    finally:
        OUTDATED.reset(token)


def bound_parts(model: Model) -> None:
    """Makes a model refuse a response that has more than MAX_PARTS parts, or a call of a tool without a name that has
    objects, which is looked at whenever a piece of it came: no event tells of such calls, and a model with fallbacks
    waits for the first event."""
    kind: Any = type(model)

    class Bounded(kind):  # type: ignore[misc]
        @asynccontextmanager
        async def request_stream(self, *what: Any, **how: Any) -> AsyncIterator[StreamedResponse]:
            async with _of_few_parts(super().request_stream(*what, **how)) as stream:
                yield stream

    Bounded.__name__ = kind.__name__
    model.__class__ = Bounded


@asynccontextmanager
async def _of_few_parts(opening: AbstractAsyncContextManager[StreamedResponse]) -> AsyncIterator[StreamedResponse]:
    async with opening as stream:
        parts = stream._parts_manager._parts  # noqa: SLF001 - there is no other way

        def is_too_much() -> bool:
            nameless = (part for part in parts if isinstance(part, ToolCallPartDelta))
            with_objects = (isinstance(part.args_delta, dict) or part.provider_details for part in nameless)
            return len(parts) > MAX_PARTS or any(with_objects)

        token = IS_TOO_MUCH.set(is_too_much)
        try:
            yield stream
        finally:
            IS_TOO_MUCH.reset(token)


def asks_another(error: Exception) -> bool:
    """Whether the next of several models is asked after this error. Notes a request that may be billed as lost. Raises
    OutdatedError."""
    if isinstance(error, UserError) or (isinstance(error, AgentRunError) and not isinstance(error, ModelAPIError)):
        return False  # anything else a client may raise at what its server answers
    if may_be_billed(error):
        LOST.get()()
    if OUTDATED.get()():
        raise OutdatedError
    drop_frames(error)
    return True


def drop_frames(error: BaseException) -> None:
    """Drops an error's traceback, and those of its causes and parts: they hold all of a response, while the error is
    kept, as by the task that raised it."""
    errors: list[BaseException | None] = [error]
    for each in errors:  # the list grows meanwhile
        if each and len(errors) < 2 * MAX_CAUSES:
            each.__traceback__ = None
            errors += each.__cause__, each.__context__, *getattr(each, "exceptions", ())


def bound(provider: Any, *, waits: float = PATIENCE_SECONDS) -> None:
    """Limits the responses to a pydantic-ai provider, also those to an HTTP client that it creates later. waits: for so
    many seconds at most, if a server says when it takes a request again; if that is later, it has failed.

    Not xAI's and Amazon Bedrock's: they use no such client, and limit a message to 20 and 24 MB themselves.
    """
    client, kind = provider.client, type(provider.client)
    is_shortened = hasattr(kind, "_process_response_data")  # OpenAI's, Anthropic's and Groq's
    max_event, part = (MAX_EVENT_BYTES, 0) if is_shortened else (MAX_BODY_BYTES, PART_BYTES)
    most = MAX_SENT_BYTES if is_shortened else MAX_RESPONSE_BYTES
    limit = partial(bound_http, max_event=max_event, max_body=MAX_BODY_BYTES, part=part, most=most)
    if provider.name == "huggingface":
        clients = import_module("huggingface_hub.utils._http")  # an extra
        clients.set_async_client_factory(lambda: limit(clients.default_async_client_factory()))
    if http := provider._own_http_client:  # noqa: SLF001 - no provider makes it public
        limit(http)
        create = provider._http_client_factory  # noqa: SLF001
        provider._http_client_factory = lambda: limit(create())  # noqa: SLF001
    if is_shortened:
        client.__class__ = _shortening(kind, waits)


def _shortening(kind: Any, waits: float) -> type:
    """The class of a client, with shorter responses."""
    counts: set[str] = set()

    class Shortening(kind):  # type: ignore[misc]
        """Shortens parsed data, does not wait for long, and tells of what is sent once more. No public method sees
        that; copies of the client have this class, too."""

        def _process_response_data(self, *, data: object, **how: Any) -> Any:
            response = how["response"]
            shorten_response(data, response.extensions, counts)
            _refuse_much(response)
            return super()._process_response_data(data=data, **how)

        def _make_sse_decoder(self) -> Any:
            return ShorteningErrors(super()._make_sse_decoder())

        def _make_status_error_from_response(self, response: Any) -> Any:
            return super()._make_status_error_from_response(_shortened(response))

        def _parse_retry_after_header(self, response_headers: Any = None) -> float | None:
            with suppress(ValueError, OverflowError):  # at a date that there is none
                seconds: float | None = super()._parse_retry_after_header(response_headers)
                return seconds
            return None

        def _should_retry(self, response: Any) -> bool:
            seconds = self._parse_retry_after_header(response.headers)
            return not (seconds and seconds > waits) and super()._should_retry(response)

        async def _sleep_for_retry(self, *, response: Any, **how: Any) -> None:
            if response is None and was_sent(sys.exception()):
                LOST.get()()
            await super()._sleep_for_retry(response=response, **how)
            if OUTDATED.get()():
                raise OutdatedError

    Shortening.__name__ = kind.__name__  # the client's user agent has the name of its class
    return Shortening


def _refuse_much(response: Any) -> None:
    library = sys.modules[type(response).__module__]
    if response.extensions[TEXT] > MAX_SAID:
        raise _refused(library, f"it says more than {MAX_SAID:,} characters")
    if response.extensions[KEPT] > MAX_RESPONSE_BYTES:
        raise _refused(library, f"more than {MAX_RESPONSE_BYTES:,} bytes to be kept")


def bound_http(http: Any, max_event: int, max_body: int, part: int = 0, *, most: int | None = None) -> Any:
    """Limits the responses to an AsyncClient of httpx2 or httpx, and returns it. max_event, max_body: bytes of an event
    of a stream, and of any other response, or one that is read as a whole; part: as how many each comma and opening
    bracket counts; most: bytes of all events of a stream, of which there may be MAX_EVENTS then: its user collects what
    they say; None: any."""
    _bound_heads()
    for transport in (http._transport, *http._mounts.values()):  # noqa: SLF001 - whoever made the client gave no context
        if pool := getattr(transport, "_pool", None):
            without_slow_ciphers(pool._ssl_context)  # noqa: SLF001
    http.headers["Accept-Encoding"] = "identity"
    http.cookies = FewCookies()
    http.event_hooks["response"].append(
        partial(_bound, max_event, max_body, part, most, asyncio.Semaphore(LARGE_AT_ONCE))
    )
    send = http.send

    async def noting(request: Any, *, stream: bool = False, **how: Any) -> Any:
        request.extensions[COLLECTED] = not stream
        return await send(request, stream=stream, **how)

    http.send = noting
    return http


def _bound_heads() -> None:
    """Limits what comes around the body of a response, for all clients of httpx2 and httpx: a client has no setting for
    it. And makes h11 read a line in one pass: it would try each way to share blanks between two patterns."""
    head, chunk = h11._readers.header_field_re.pattern, h11._readers.chunk_header_re.pattern  # noqa: SLF001 - no other way
    h11._readers.header_field_re = re.compile(re.sub(rb"\[ \\t\]\*(?!\+)", rb"[ \\t]*+", head))  # noqa: SLF001
    h11._readers.chunk_header_re = re.compile(chunk.replace(b";.*", rb";[^\r\n]*+"))  # noqa: SLF001
    for core in filter(None, map(sys.modules.get, ("httpcore2", "httpcore"))):
        kind: Any = core.AsyncHTTP11Connection
        # A head that is not complete may have the first, and another read completes it.
        kind.MAX_INCOMPLETE_EVENT_SIZE = kind.READ_NUM_BYTES = MAX_HEAD_BYTES // 2


async def _bound(
    max_event: int, max_body: int, part: int, most: int | None, large: asyncio.Semaphore, response: Any
) -> None:
    library = sys.modules[type(response).__module__]  # httpx2, or httpx where an extra has it
    if len(response.headers.raw) > MAX_HEADERS:
        raise _refused(library, f"it has more than {MAX_HEADERS} headers")
    packed = response.headers.get("content-encoding", "identity")
    if packed.strip().lower() != "identity":
        raise _refused(library, f"it is packed as {packed[:40]}, for which it was not asked")
    response.encoding = "utf-8"  # whatever it says: of some the time is quadratic, as punycode's
    is_called_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    is_stream = response.is_success and is_called_stream and not response.request.extensions[COLLECTED]
    if isinstance(response.stream, library.AsyncByteStream):
        kind = type("Bounded", (_Bounded, library.AsyncByteStream), {})
        response.stream = kind(library, response.stream, max_event, max_body, part, most, large, is_stream)


class FewCookies(CookieJar):
    """Keeps a few cookies, by which a server with several processes leads a client to the same again. If a server sets
    more than a request can take along, all are dropped."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        super().extract_cookies(response, request)
        if len(self) > MAX_COOKIES or sum(len(f"{kept.name}{kept.value}") for kept in self) > MAX_COOKIE_BYTES:
            self.clear()


@dataclass(frozen=True)
class ShorteningErrors:
    """Decodes the events of a stream as a client's own decoder does. Shortens those that tell an error: the client
    raises it, and writes it out, before any other method sees it."""

    decoder: Any

    async def aiter_bytes(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        async for event in self.decoder.aiter_bytes(chunks):
            if event.event == "error":
                event._data = _short_text(event.data)  # noqa: SLF001 - there is no other way
            else:
                event.__class__ = _short_kind(event.__class__)  # an event with a method of its own would hold itself
            yield event


@cache
def _short_kind(kind: type[Any]) -> type:
    """The class of an event of a stream that shortens an error in it."""

    class Short(kind):  # type: ignore[misc]
        def json(self) -> Any:
            data = super().json()
            if isinstance(data, dict) and data.get("error"):
                shorten_error(data)
            return data

    return Short


def _shortened(response: Any) -> Any:
    """An error with a shorter body."""
    with suppress(RuntimeError):  # it was not read
        kind, told = type(response), {"headers": response.headers, "request": response.request}
        shortened = kind(response.status_code, content=_short_text(response.text).encode(), **told)
        shortened.encoding = "utf-8"  # whatever its headers say, as above
        return shortened
    return response


def _short_text(text: str) -> str:
    """What says an error, shortened: it is written out several times, and kept while others are asked."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):  # it is no JSON, or nested too deeply
        return text[:MAX_ERROR_CHARACTERS]
    shorten_error(data)
    return json.dumps(data)


@dataclass(eq=False)
class _Bounded:
    """Streams a response's bytes. library: that of the response. max_event: bytes of one event, which may have
    MAX_LINES lines; max_body: of the whole response if it is no stream of events; part, most: as bound_http(); large:
    held while an event or body is larger than MAX_EVENT_BYTES. is_stream: its type says it is one; but what does not
    begin with a field's name is bounded as what clients may parse in one go, whatever its type. The lines of a stream
    are passed on with one kind of end, as clients do not agree on which ends make a blank line."""

    library: Any
    stream: Any
    max_event: int
    max_body: int
    part: int
    most: int | None
    large: asyncio.Semaphore
    is_stream: bool
    is_large: bool = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = event = events = 0
        tail = last = b""
        has_begun = False
        async for chunk in self.stream:
            for start in range(0, len(chunk), BYTES_AT_ONCE):
                await asyncio.sleep(0)  # also before the first: thousands of chunks may have come at once
                piece = chunk[start : start + BYTES_AT_ONCE]
                if not has_begun and (first := piece.lstrip(BLANK)):
                    has_begun = True
                    self.is_stream = self.is_stream and (first[:1].isalpha() or first.startswith(b":"))
                total += len(piece) + KEPT_PART_BYTES * parts_in(piece)
                if self.is_stream:
                    rest, last = piece.removeprefix(b"\n") if last == b"\r" else piece, piece[-1:]
                    piece = rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                seen = tail + piece
                begun, *others = seen.split(b"\n\n") if self.is_stream else [seen]
                kept = max(0, LEAST_BYTES - len(piece))  # clients keep the pieces of what has begun
                sizes = [event + kept - self._size(tail) + self._size(begun), *map(self._size, others)]
                event, tail = sizes[-1], (others or [begun])[-1][-1:]
                events += len(others)
                at_once = self.max_event if self.is_stream else self.max_body
                if max(sizes) > at_once:
                    raise _refused(self.library, f"more than {at_once:,} bytes or {MAX_LINES:,} lines at once")
                if self.most is not None and (total > self.most or events > MAX_EVENTS):
                    raise _refused(self.library, f"more than {self.most:,} bytes or {MAX_EVENTS:,} events in all")
                if IS_TOO_MUCH.get()():
                    raise _refused(self.library, "it has too many parts")
                if event <= MAX_EVENT_BYTES:
                    self._make_way()
                elif not self.is_large:
                    self.is_large = await self.large.acquire()
                yield piece

    def _size(self, piece: bytes) -> int:
        """The bytes of a piece of an event, in which the end of a line counts as many as a line may have, and a comma
        or bracket as `part`."""
        line = self.max_event // MAX_LINES if self.is_stream else 0
        return len(piece) + line * piece.count(b"\n") + self.part * parts_in(piece)

    def _make_way(self) -> None:
        if self.is_large:
            self.is_large = False
            self.large.release()

    async def aclose(self) -> None:
        self._make_way()
        await self.stream.aclose()


def _refused(library: Any, why: str) -> Exception:
    log.warning("model_response_refused", detail=why)
    error: Exception = library.RemoteProtocolError(f"The response was refused: {why}.")
    return error
