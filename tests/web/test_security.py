"""The bot's HTTP as somebody meets it who wants more than they should have: what no browser would send."""

from __future__ import annotations

import asyncio
import hmac
import resource
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
from yarl import URL

from bot import create_bot
from config import Settings
from health import Health
from web import site
from web.console import access, app
from web.console.access import Password
from web.shown import Shown
from web.site import Site

PASSWORD = "correct horse"
EVIL = "evil.example"
LOGIN = b"password=correct+horse"
ASKED = b"GET /healthz HTTP/1.1\r\nHost: bot.example\r\n\r\n"


@dataclass
class Server:
    """A server with a console, that is talked to in bytes."""

    port: int

    async def sends(self, method: str, path: str, *headers: str, body: bytes = b"", host: str = "bot.example") -> str:
        """The whole answer, headers and all; empty where there is none."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
        if body:
            lines += ["Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}"]
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        answer = b""
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        with suppress(ConnectionError):
            answer = await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        return answer.decode()


@pytest.fixture(scope="module")
def shown() -> Shown:
    return create_bot(Settings(decision_log="off")).shown


@pytest.fixture
async def server(shown: Shown) -> AsyncIterator[Server]:
    served = Site(Health(), password=PASSWORD)
    served.show(shown)
    async with served.served(0, "127.0.0.1") as address:
        yield Server(URL(address).port or 0)


def status(answer: str) -> int:
    return int(answer.split(" ", 2)[1])


@pytest.mark.parametrize("path", ["/console", "/console/login", "/console/nothing", "/healthz", "/privacy", "/nothing"])
async def test_no_answer_leads_to_a_host_that_the_request_made_up(server: Server, path: str) -> None:
    forwarded = [f"X-Forwarded-Host: {EVIL}", f"Forwarded: host={EVIL}", f"X-Original-URL: //{EVIL}"]
    answer = await server.sends("GET", path, *forwarded, host=EVIL)
    assert EVIL not in answer
    assert "aiohttp" not in answer, "which version answers is nobody's business"


@pytest.mark.parametrize(
    "path", ["//evil.example/console", "/console%0d%0aSet-Cookie:%20evil=1", "/console?next=//evil"]
)
async def test_no_path_becomes_a_header_or_leads_elsewhere(server: Server, path: str) -> None:
    head = (await server.sends("GET", path)).partition("\r\n\r\n")[0].lower()
    assert "set-cookie" not in head
    assert "location: /console/login" in head or status(head) == 404


@pytest.mark.parametrize("origin", ["http://[", "://", "null", "https://evil.example\t", "https://bot.example:port"])
async def test_an_origin_that_is_another_or_cannot_be_is_refused(server: Server, origin: str) -> None:
    answer = await server.sends("POST", "/console/login", f"Origin: {origin}", body=LOGIN)
    assert (status(answer), "set-cookie" in answer.lower()) == (403, False)


@pytest.mark.parametrize("host", ["[", "a b", "evil@bot.example", "bot.example:port", ""])
async def test_a_host_that_cannot_be_is_no_fault_of_ours_and_no_reason_for_an_open_cookie(
    server: Server, host: str
) -> None:
    answer = await server.sends("POST", "/console/login", body=LOGIN, host=host)
    assert status(answer) in (303, 400)
    assert "Set-Cookie" not in answer or "SameSite=Strict; Secure" in answer


@pytest.mark.parametrize(
    ("charset", "encoding", "body"),
    [
        ("utf-8", "identity", b"password=\xff"),
        ("undefined", "identity", LOGIN),
        ("zlib", "identity", LOGIN),
        ("\xff", "identity", LOGIN),
        ("utf-8", "gzip", b"not packed"),
    ],
)
async def test_a_form_that_cannot_be_read_is_no_fault_of_ours(
    server: Server, charset: str, encoding: str, body: bytes
) -> None:
    form = f"Content-Type: application/x-www-form-urlencoded; charset={charset}"
    more = [form, f"Content-Length: {len(body)}", f"Content-Encoding: {encoding}", "", ""]
    answer = await server.sends("POST", "/console/login", "\r\n".join(more) + body.decode("latin-1"))
    assert (status(answer), "set-cookie" in answer.lower()) == (400, False)


@pytest.mark.parametrize("path", ["/console", "/console/login"])
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain"])
@pytest.mark.parametrize("parameters", [';"', ";a", ";"])
async def test_a_content_type_that_takes_long_to_parse_is_not_parsed(
    server: Server, path: str, kind: str, parameters: str
) -> None:
    many = parameters * (8_000 // len(parameters))
    begun = time.process_time()
    answer = await server.sends("POST", path, f"Content-Type: {kind}{many}", "Content-Length: 1", "", "x")
    assert time.process_time() - begun < 0.1
    assert status(answer) in (400, 415)


async def test_tries_that_are_begun_at_once_count_as_those_one_after_another(server: Server) -> None:
    begun = []
    for n in range(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        head = ["POST /console/login HTTP/1.1", "Host: bot.example", "Connection: close", f"X-Forwarded-For: {n // 10}"]
        head += ["Content-Type: application/x-www-form-urlencoded", "Content-Length: 14", "Expect: 100-continue"]
        writer.write("\r\n".join([*head, "", ""]).encode())
        assert b"100 Continue" in await reader.readuntil(b"\r\n\r\n"), "it waits for the form"
        begun.append((reader, writer))
    for _, writer in begun:
        writer.write(b"password=wrong")
    answers = [(await reader.read()).decode() for reader, _ in begun]
    for _, writer in begun:
        writer.close()
    assert sorted(map(status, answers)) == [403] * 10 + [429] * 10


@pytest.mark.parametrize("sent", [b"", ASKED[:-4], ASKED])
async def test_a_connection_on_which_nothing_is_asked_ends(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "IDLE_SECONDS", 0.05)
    async with Site(Health()).served(0, "127.0.0.1") as address:
        reader, writer = await asyncio.open_connection("127.0.0.1", URL(address).port)
        writer.write(sent)
        async with asyncio.timeout(30):
            answer = await reader.read()
        assert answer[:12] == (b"HTTP/1.1 503" if sent == ASKED else b"")
        writer.close()


async def test_a_form_that_does_not_come_is_waited_for_so_long(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "FORM_SECONDS", 0.01)
    form = ["Content-Type: application/x-www-form-urlencoded", "Content-Length: 9"]
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write("\r\n".join(["POST /console/login HTTP/1.1", "Host: bot.example", *form, "", "half"]).encode())
    async with asyncio.timeout(30):
        assert await reader.readuntil(b"\r\n") == b"HTTP/1.1 408 Request Timeout\r\n"
    writer.close()


@pytest.mark.parametrize(("most", "files"), [(3, 1_024), (4_096, 7), (3, resource.RLIM_INFINITY)])
async def test_beyond_so_many_connections_each_new_one_is_answered_and_ends_the_oldest(
    most: int, files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "MOST_CONNECTIONS", most)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    async with Site(Health()).served(0, "127.0.0.1") as address:
        await _fill(Server(URL(address).port or 0))


async def _fill(server: Server) -> None:
    idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(3)]
    for reader, writer in idle:
        writer.write(ASKED)
        await reader.readuntil(b"\r\n\r\n")
    newest: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    for reader, writer in idle:  # each new one, which is answered, ends the oldest
        newest.append(await asyncio.open_connection("127.0.0.1", server.port))
        newest[-1][1].write(ASKED)
        assert (await newest[-1][0].readuntil(b"\r\n")).startswith(b"HTTP/1.1 503")
        async with asyncio.timeout(30):
            with suppress(ConnectionResetError):
                await reader.read()
        writer.close()
    assert status(await server.sends("GET", "/healthz")) == 503
    for _, writer in newest:
        writer.close()


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override: POST", "X-HTTP-Method: POST", "X-Method-Override: DELETE"])
async def test_no_header_and_no_field_changes_the_method(server: Server, header: str) -> None:
    asked = await server.sends("GET", "/console/login?password=correct+horse&_method=POST", header)
    assert (status(asked), "set-cookie" in asked.lower()) == (200, False)
    posted = await server.sends("POST", "/console/logout", header.replace("POST", "GET"), body=b"_method=GET")
    assert status(posted) == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
async def test_other_methods_do_nothing(server: Server, method: str) -> None:
    for path in ("/console", "/console/login", "/healthz", "/privacy"):
        assert 400 <= status(await server.sends(method, path)) < 500


async def test_a_request_has_room_for_so_much_and_no_more(server: Server) -> None:
    assert status(await server.sends("GET", "/healthz", f"Cookie: parley_console={'x' * 9_000}")) == 400
    assert status(await server.sends("GET", f"/{'x' * 9_000}")) in (400, 414)
    answer = await server.sends("GET", "/healthz", *(f"X-{n}: {'x' * 4_000}" for n in range(200)))
    assert not answer or status(answer) == 400, "who still sends as the connection is closed may get no answer"


@pytest.mark.slow
async def test_many_requests_at_once_with_bodies_in_tiny_pieces_take_little_memory(server: Server) -> None:
    body = b"1\r\n:\r\n" * 10_000 + b"0\r\n\r\n"
    many = (b"POST /nothing HTTP/1.1\r\nHost: bot.example\r\nTransfer-Encoding: chunked\r\n\r\n" + body) * 200
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    tracemalloc.start()
    writer.write(many)  # which asyncio copies once
    with suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(5):
            await writer.drain()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    writer.transport.abort()
    assert most < 3 * len(many)


@pytest.mark.parametrize(
    "path",
    [
        "/console/static/..%2f..%2f..%2f.env",
        "/privacy/../../.env",
        "/console/static//etc/passwd",
        "/.env",
        "/..%5c.env",
    ],
)
async def test_no_file_is_reached_by_its_path(server: Server, path: str) -> None:
    assert status(await server.sends("GET", path)) in (303, 404)


@pytest.mark.parametrize("given", ["", "c", "correct hors", "correct horsf", "x" * 500, "\udcff", PASSWORD])
def test_each_password_is_compared_in_the_same_way_whatever_of_it_is_right(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    class Watched:
        """Stands for the module hmac."""

        @staticmethod
        def compare_digest(one: bytes, other: bytes) -> bool:
            compared.append((len(one), len(other)))
            return hmac.compare_digest(one, other)

    monkeypatch.setattr(access, "hmac", Watched)
    assert Password(PASSWORD).accepts(given, "here") is (given == PASSWORD)
    assert compared == [(32, 32)]
