"""Limits responses of model and MCP servers before they are parsed: not compressed, and not too large.

Providers' clients decompress, collect and parse whatever comes: a compressed response of 600 KB may become 600 MB, and
while an event is parsed, nothing else runs.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from http.cookiejar import CookieJar
from importlib import import_module
from typing import Any

import structlog
from pydantic_ai.exceptions import AgentRunError, ModelAPIError, UserError
from pydantic_ai.models import StreamedResponse

from agents.failures import may_be_billed, was_sent

log = structlog.get_logger()

MAX_EVENT_BYTES = 512 * 1024  # of a stream; the last event of OpenAI's Responses API repeats the whole answer
# Of a response that is no stream: a judge's, or an error. Also of an event whose lists are not shortened.
MAX_BODY_BYTES = 64 * 1024
# As which each comma and opening bracket of the latter counts: Mistral's client takes 55 us for a choice.
PART_BYTES = 16
# Of a response, in which each comma and opening bracket counts as KEPT_PART_BYTES: so much memory its client may keep,
# eight times over where it joins texts with one wide sign. 22,000 tokens fit in, each in an event as OpenRouter sends
# thoughts, and no answer has as many.
MAX_RESPONSE_BYTES = 12 * 1024 * 1024
KEPT_PART_BYTES = 8
MAX_EVENTS = 40_000
MAX_LINES = 10_000  # of an event: Anthropic's client takes 3 us for each, in one go
PATIENCE_SECONDS = 40.0  # of the 60 after which an answer of which nothing came is given up
BYTES_AT_ONCE = 4_096  # passed on before other tasks run: 1,400 empty events
MAX_ITEMS = 40  # in all lists of an event or body together: OpenAI's client takes 0.8 ms for each that fits no type
MAX_KEYS = 500  # in all its objects together: each value may take 60 us
MAX_DEPTH = 20  # of lists and objects in each other: whoever writes them out, as for a warning, copies a text for each
# Of all texts of an event or body together, and of one key: twice what an answer may have, as some servers tell each
# thought twice. What is done to a text takes up to 4 us a character.
MAX_CHARACTERS = 128_000
MAX_KEY = 1_000
# Not read, but kept to be sent again.
OPAQUE = frozenset({"encrypted_content", "signature", "thought_signature", "data", "blob"})
MAX_NAMES = 100  # of the counts in which a server tells the use, which pydantic-ai collects over the whole response
MAX_NAME = 64  # characters of one
# Characters of the name under which a model says that it answers: pydantic-ai looks up its price, and takes up to 14 us
# for each of them.
MAX_MODEL_NAME = 256
MAX_HEAD_BYTES = 16 * 1024  # of headers, of trailers, and of one read: each line takes 3 us, in one go
# What is kept of the cookies of all servers of a client, which each request takes along: many servers refuse a request
# with 8 KB of headers.
MAX_COOKIES, MAX_COOKIE_BYTES = 50, 4_096
LOST: ContextVar[Callable[[], object]] = ContextVar("LOST", default=lambda: None)
OUTDATED: ContextVar[Callable[[], bool]] = ContextVar("OUTDATED", default=lambda: False)
IS_TOO_MUCH: ContextVar[Callable[[], bool]] = ContextVar("IS_TOO_MUCH", default=lambda: False)
COLLECTED = "parley_collected"  # of a request: its response is read as a whole, whatever its type
HAS_ENDED = "parley_has_ended"  # of a response of chat completions: it said why it ended
NO_NEWS = "response.web_search_call.searching"  # an event of which nothing is taken
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


@asynccontextmanager
async def of_few_parts(
    opening: AbstractAsyncContextManager[StreamedResponse], most: int
) -> AsyncIterator[StreamedResponse]:
    """Opens the stream of a response, and refuses it if it has more than so many parts, which is looked at whenever a
    piece of it came: of calls of tools that have no name no event tells."""
    async with opening as stream:
        parts = stream._parts_manager  # noqa: SLF001 - there is no other way
        token = IS_TOO_MUCH.set(lambda: len(parts._parts) > most)  # noqa: SLF001
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
    return True


def bound(provider: Any, *, waits: float = PATIENCE_SECONDS) -> None:
    """Limits the responses to a pydantic-ai provider, also those to an HTTP client that it creates later. waits: for so
    many seconds at most, if a server says when it takes a request again; if that is later, it has failed.

    Not xAI's and Amazon Bedrock's: they use no such client, and limit a message to 20 and 24 MB themselves.
    """
    client, kind = provider.client, type(provider.client)
    is_shortened = hasattr(kind, "_process_response_data")  # OpenAI's, Anthropic's and Groq's
    max_event, part = (MAX_EVENT_BYTES, 0) if is_shortened else (MAX_BODY_BYTES, PART_BYTES)
    limit = partial(bound_http, max_event=max_event, max_body=MAX_BODY_BYTES, part=part, is_collected=True)
    if provider.name == "huggingface":
        clients = import_module("huggingface_hub.utils._http")  # an extra
        clients.set_async_client_factory(lambda: limit(clients.default_async_client_factory()))
    if http := provider._own_http_client:  # noqa: SLF001 - no provider makes it public
        limit(http)
        create = provider._http_client_factory  # noqa: SLF001
        provider._http_client_factory = lambda: limit(create())  # noqa: SLF001
    if is_shortened:
        counts: set[str] = set()

        class Shortening(kind):  # type: ignore[misc, valid-type]
            """Shortens parsed data, does not wait for long, and tells of what is sent once more. No public method sees
            that; copies of the client have this class, too."""

            def _process_response_data(self, *, data: object, **how: Any) -> Any:
                _bound_data(data, how["response"].extensions, counts)
                return super()._process_response_data(data=data, **how)

            def _make_sse_decoder(self) -> Any:
                return ShorteningErrors(super()._make_sse_decoder())

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
        client.__class__ = Shortening


def bound_http(http: Any, max_event: int, max_body: int, part: int = 0, *, is_collected: bool = False) -> Any:
    """Limits the responses to an AsyncClient of httpx2 or httpx, and returns it. max_event, max_body: bytes of an event
    of a stream, and of any other response, or one that is read as a whole; part: as how many each comma and opening
    bracket counts; is_collected: its user collects what all events of a stream say, so they are limited in all, too."""
    _bound_heads()
    http.headers["Accept-Encoding"] = "identity"
    http.cookies = FewCookies()
    http.event_hooks["response"].append(partial(_bound, max_event, max_body, part, is_collected))
    send = http.send

    async def noting(request: Any, *, stream: bool = False, **how: Any) -> Any:
        request.extensions[COLLECTED] = not stream
        return await send(request, stream=stream, **how)

    http.send = noting
    return http


def _bound_heads() -> None:
    """Limits what comes around the body of a response, for all clients of httpx2 and httpx: a client has no setting for
    it."""
    for core in filter(None, map(sys.modules.get, ("httpcore2", "httpcore"))):
        kind: Any = core.AsyncHTTP11Connection
        kind.MAX_INCOMPLETE_EVENT_SIZE = kind.READ_NUM_BYTES = MAX_HEAD_BYTES


async def _bound(max_event: int, max_body: int, part: int, is_collected: bool, response: Any) -> None:
    library = sys.modules[type(response).__module__]  # httpx2, or httpx where an extra has it
    packed = response.headers.get("content-encoding", "identity")
    if packed.strip().lower() != "identity":
        raise _refused(library, f"it is packed as {packed[:40]}, for which it was not asked")
    response.encoding = "utf-8"  # whatever it says: of some the time is quadratic, as punycode's
    is_called_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    is_stream = response.is_success and is_called_stream and not response.request.extensions[COLLECTED]
    if isinstance(response.stream, library.AsyncByteStream):
        kind = type("Bounded", (_Bounded, library.AsyncByteStream), {})
        response.stream = kind(library, response.stream, max_event, max_body, part, is_collected, is_stream)


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
            event.json = partial(_parsed, event.event, event.json)
            yield event


def _parsed(event: str | None, parse: Callable[[], Any]) -> Any:
    data = parse()
    if event == "error" or (isinstance(data, dict) and "error" in data):
        shorten(data, MAX_ITEMS, MAX_KEYS, MAX_CHARACTERS, MAX_DEPTH)
    return data


def _bound_data(data: object, so_far: dict[str, Any], counts: set[str]) -> None:
    if isinstance(data, dict):
        leave_out(data, so_far)
        cut_model_name(data)
    shorten(data, MAX_ITEMS, MAX_KEYS, MAX_CHARACTERS, MAX_DEPTH)
    leave_out_counts(data, counts)


def leave_out(data: dict[str, Any], so_far: dict[str, Any]) -> None:
    """Leaves out of an event or body what is not asked for, and what would hold up all else or count twice.

    so_far: what is known of the response. An event may have fields of several providers' at once.
    """
    if isinstance(response := data.get("response"), dict):  # repeats the request, and the events before
        response |= {"instructions": None, "tools": [], "output": []}
    if data.get("object") == "response":
        data |= {"instructions": None, "tools": []}
    if isinstance(choices := data.get("choices"), list):
        del choices[1:]  # only the first is read
        for choice in filter(lambda each: isinstance(each, dict), choices):
            _leave_out_of_choice(choice, data, so_far)
    match data:  # the sources, each of which pydantic-ai looks for in the text
        case {"type": "response.output_text.annotation.added"}:
            data["type"] = NO_NEWS
        case {"type": "content_block_delta", "delta": {"type": "citations_delta"}}:
            data["delta"] = {"type": "text_delta", "text": ""}
        case {"type": "response.reasoning_text.delta"} if data.get("content_index") not in range(MAX_ITEMS):
            data["content_index"] = 0  # else as many empty texts are made for those before; it may be 1e9, too


def _leave_out_of_choice(choice: dict[str, Any], data: dict[str, Any], so_far: dict[str, Any]) -> None:
    choice.pop("logprobs", None)
    for said in (choice.get("delta"), choice.get("message")):
        if isinstance(said, dict):
            said.pop("annotations", None)
    so_far[HAS_ENDED] = so_far.get(HAS_ENDED) or bool(choice.get("finish_reason"))
    if "delta" in choice and not so_far[HAS_ENDED]:
        data.pop("usage", None)  # some servers tell the use so far with each piece, which pydantic-ai would add up


def cut_model_name(data: dict[str, Any]) -> None:
    """Cuts the name under which the model says that it answers."""
    for holder in (data, data.get("response"), data.get("message")):
        if isinstance(holder, dict) and isinstance(name := holder.get("model"), str):
            holder["model"] = name[:MAX_MODEL_NAME]


def leave_out_counts(data: object, known: set[str]) -> None:
    """Leaves out of the use that an event or body tells the counts whose names are not known. known: the first
    MAX_NAMES that came; those of this one are added."""
    if not isinstance(data, dict):
        return
    holding = (data, *(data.get(name) for name in ("response", "message", "x_groq")))
    nested = [each.get("usage") for each in holding if isinstance(each, dict)]
    for each in nested:  # the list grows meanwhile
        if isinstance(each, dict):
            for name in [*each]:
                if name in known or (len(known) < MAX_NAMES and len(name) <= MAX_NAME):
                    known.add(name)
                else:
                    del each[name]
            nested += each.values()
        elif isinstance(each, list):
            nested += each


def shorten(data: object, items: int, keys: int, characters: int, depth: int = sys.maxsize) -> None:
    """Cuts the lists in parsed data to so many items in all, the objects to so many keys, and the texts, but for opaque
    ones, to so many characters. Empties lists and objects that are in so many others."""
    level: list[object] = [data]
    while level:
        nested: list[object] = []
        for each in level:
            if isinstance(each, list):
                del each[items:]
                items -= len(each)
                characters -= _cut_texts(each, enumerate(each), characters)
                nested += each
            elif isinstance(each, dict):
                for key in [key for place, key in enumerate(each) if place >= keys or len(key) > MAX_KEY]:
                    del each[key]
                keys -= len(each)
                characters -= _cut_texts(each, each.items(), characters)
                nested += each.values()
        level, depth = nested, depth - 1
        if depth == 0:
            items = keys = 0


def _cut_texts(holder: Any, inner: Iterable[tuple[Any, object]], room: int) -> int:
    """Cuts the texts in a list or object to so many characters, and returns how many they have then."""
    before = room
    for key, text in inner:
        if isinstance(text, str) and key not in OPAQUE:
            if len(text) > room:
                holder[key] = text[:room]
            room -= min(len(text), room)
    return before - room


@dataclass(eq=False)
class _Bounded:
    """Streams a response's bytes. library: that of the response. max_event: bytes of one event, which may have
    MAX_LINES lines; max_body: of the whole response if it is no stream of events; part, is_collected: as bound_http().
    is_stream: its type says it is one; but what does not begin with a field's name is bounded as what clients may parse
    in one go, whatever its type. The lines of a stream are passed on with one kind of end, as clients do not agree on
    which ends make a blank line."""

    library: Any
    stream: Any
    max_event: int
    max_body: int
    part: int
    is_collected: bool
    is_stream: bool

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
                total += len(piece) + KEPT_PART_BYTES * _parts(piece)
                if self.is_stream:
                    rest, last = piece.removeprefix(b"\n") if last == b"\r" else piece, piece[-1:]
                    piece = rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                seen = tail + piece
                begun, *others = seen.split(b"\n\n") if self.is_stream else [seen]
                sizes = [event - self._size(tail) + self._size(begun), *map(self._size, others)]
                event, tail = sizes[-1], (others or [begun])[-1][-1:]
                events += len(others)
                most = self.max_event if self.is_stream else self.max_body
                is_much = self.is_collected and (total > MAX_RESPONSE_BYTES or events > MAX_EVENTS)
                if max(sizes) > most or is_much:
                    at_once = f"{most:,} bytes or {MAX_LINES:,} lines at once"
                    in_all = f"{MAX_RESPONSE_BYTES:,} bytes or {MAX_EVENTS:,} events in all"
                    raise _refused(self.library, f"more than {at_once}, or {in_all}")
                if IS_TOO_MUCH.get()():
                    raise _refused(self.library, "it has too many parts")
                yield piece

    def _size(self, piece: bytes) -> int:
        """The bytes of a piece of an event, in which the end of a line counts as many as a line may have, and a comma
        or bracket as `part`."""
        line = self.max_event // MAX_LINES if self.is_stream else 0
        return len(piece) + line * piece.count(b"\n") + self.part * _parts(piece)

    async def aclose(self) -> None:
        await self.stream.aclose()


def _parts(piece: bytes) -> int:
    return piece.count(b",") + piece.count(b"{") + piece.count(b"[")


def _refused(library: Any, why: str) -> Exception:
    log.warning("model_response_refused", detail=why)
    error: Exception = library.RemoteProtocolError(f"The response was refused: {why}.")
    return error
