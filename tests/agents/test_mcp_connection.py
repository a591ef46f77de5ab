"""agents/mcp_connection.py: real server processes, and all that they do instead of answering."""

from __future__ import annotations

import asyncio
import base64
import gc
import gzip
import json
import logging
import os
import re
import signal
import sys
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import pytest_asyncio
from aiohttp import web
from mcp.client.subscriptions import ListenRoute, ResourceUpdated
from mcp.types import SubscriptionFilter
from pydantic import ValidationError
from structlog.testing import capture_logs

from agents.mcp_connection import MAX_MADE, MAX_MADE_BYTES, MAX_RESPONSE, REPORTED, Connection, Limits, use_mcp
from agents.mcp_file import McpServer
from agents.mcp_servers import McpTools
from agents.mcp_session import (
    MAX_BITS,
    MAX_ITEMS,
    MAX_LINE,
    MAX_LISTED,
    MAX_LISTED_BYTES,
    MAX_OPEN,
    MAX_PARTS,
    MAX_REQUIRED,
    MAX_TEXT,
    MAX_WIDE,
    Lines,
    bound_result,
    leave_out_numbers,
    read_message,
)
from agents.shortening import SHORT
from discord_io.made_files import MadeFile
from tests.support.steps import longest_step

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
SECRET = "s3cret-of-the-server"
ENV = {"PATH": os.environ["PATH"], "HOME": "/", "API_KEY": SECRET}
# As the mcp package has it; Python adds LC_CTYPE itself.
THE_PACKAGES = {"LOGNAME", "SHELL", "TERM", "USER", "LC_CTYPE"}
SOON = Limits(start=10, call=10, listed=0.01, first_pause=0.01, longest_pause=0.01)
TOOLS = "echo, look up!, fail, crash, hang, much, pieces, word, picture, environment, babble, choke, grow".split(", ")
SCHEMA = {"type": "object"}
PATIENCE = 20


def real(name: str, *modes: str) -> McpServer:
    return McpServer(name, sys.executable, (str(SERVER), name, *modes), ENV, SERVER.parent, secrets=frozenset({SECRET}))


def shell(script: str) -> McpServer:
    """What is no MCP server, and starts faster."""
    return McpServer("shell", "sh", ("-c", script), ENV)


class Watched(Connection):
    """Says when it changes and when it ended, and has what came on stderr."""

    def __init__(self, server: McpServer, limits: Limits = SOON) -> None:
        self.change = asyncio.Event()
        self.ended = asyncio.Event()
        self.stderr: asyncio.Queue[bytes] = asyncio.Queue()
        super().__init__(server, limits, self._note)

    def _note(self) -> None:
        self.change.set()
        self.change = asyncio.Event()

    async def _live(self) -> bool:
        self.ended.clear()
        try:
            return await super()._live()
        finally:
            self.ended.set()

    def said(self, data: bytes) -> None:
        self.stderr.put_nowait(data)
        super().said(data)


@asynccontextmanager
async def running(server: McpServer, limits: Limits = SOON) -> AsyncIterator[Watched]:
    """It runs, and has been tried."""
    connection = Watched(server, limits)
    task = asyncio.create_task(connection.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await connection.tried()
        yield connection
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def serving(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[McpServer]:
    """An MCP server over HTTP that answers so."""
    app = web.Application()
    app.router.add_route("*", "/{any:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield McpServer("far", url=f"http://127.0.0.1:{runner.addresses[0][1]}/mcp")
    finally:
        await runner.cleanup()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Watched]:
    use_mcp()
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setenv("DISCORD_TOKEN", "ours")
    async with running(real("real")) as connection:
        monkeypatch.undo()
        yield connection


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not end by itself is ended sooner."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)
    monkeypatch.setattr("mcp.client.stdio.FORCE_KILL_TIMEOUT", 0.1)


async def pid(connection: Watched) -> int:
    """Of its process, once it answers."""
    async with asyncio.timeout(PATIENCE):
        while not (told := await connection.call("look up!", {"name": "x"})).startswith("{"):
            if connection.is_away:
                await connection.change.wait()
    return int(json.loads(told)["pid"])


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


# Answers


async def test_its_tools_are_listed(server: Watched) -> None:
    assert [tool.name for tool in server.tools][: len(TOOLS)] == TOOLS
    echo = server.tools[0]
    assert echo.description == "Says it again."
    assert echo.parameters_json_schema["type"] == "object"
    assert echo.parameters_json_schema["required"] == ["text"]


@pytest.mark.parametrize("text", ["again", "", "é\u2028\n", "[1, 2]"])
async def test_a_result_is_text(server: Watched, text: str) -> None:
    assert await server.call("echo", {"text": text}) == text


async def test_a_result_with_a_structure_is_json(server: Watched) -> None:
    told = json.loads(await server.call("look up!", {"name": "Ben"}))
    assert (told["name"], told["server"]) == ("Ben", "real")


async def test_a_result_is_not_compared_with_a_schema_whose_pattern_may_take_for_ever(server: Watched) -> None:
    word = "a" * 22 + "!"
    assert json.loads(await server.call("word", {"text": word})) == {"word": word}


async def test_a_result_is_shortened_before_what_it_lists_is_validated(server: Watched) -> None:
    assert json.loads(await server.call("pieces", {"count": 5_000, "text": ""})) == [""] * MAX_ITEMS


async def test_a_text_is_cut_before_it_is_parsed_as_json(server: Watched) -> None:
    told = await server.call("pieces", {"count": 1, "text": f"[{'{}, ' * (MAX_TEXT // 4)}1]"})
    assert told.startswith("[{}, {}, {}")  # as it came, and not as it would be written again
    assert MAX_TEXT - 100 < size_of(told) <= MAX_TEXT
    told = await server.call("pieces", {"count": 4, "text": "x" * (MAX_TEXT // 2 - 1)})
    assert MAX_TEXT - 100 < size_of(told) <= MAX_TEXT + 4 * SHORT


def size_of(told: str) -> int:
    """The size that a result had before it was cut for the model."""
    told_of = re.search(r" of ([\d,]+) bytes\)$", told)
    assert told_of
    return int(told_of[1].replace(",", ""))


async def test_pictures_are_named_and_attached_to_the_answer_as_far_as_there_is_room(server: Watched) -> None:
    made: list[MadeFile] = []
    for _ in range(MAX_MADE):
        told = await server.call("picture", {}, made)
        assert told == "Here:\n(image/png, 8 bytes, attached to your answer, where people see it)"
    assert "too much to be attached" in await server.call("picture", {}, made)
    assert [file.name for file in made] == ["picture.png", "picture-2.png", "picture-3.png", "picture-4.png"]


async def test_calls_run_at_once(server: Watched) -> None:
    hanging = asyncio.create_task(server.call("hang", {}))
    assert await server.call("echo", {"text": "meanwhile"}) == "meanwhile"
    assert not hanging.done()
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging


async def test_its_environment_is_what_was_given(server: Watched) -> None:
    told = json.loads(await server.call("environment", {}))
    assert told.keys() - THE_PACKAGES == ENV.keys()
    assert told["API_KEY"] == "[hidden]"


async def test_what_it_writes_to_stderr_is_a_debug_line_without_secrets(server: Watched) -> None:
    with capture_logs() as logs:
        await server.call("babble", {"text": f"{SECRET} {'x' * 2_000}"})
        async with asyncio.timeout(PATIENCE):
            while SECRET.encode() not in await server.stderr.get():
                pass
    line = logs[-1]
    assert (line["event"], line["log_level"], line["server"]) == ("mcp_stderr", "debug", "real")
    assert line["text"].startswith("[hidden] xxx")
    assert len(line["text"]) <= 500


async def test_tools_that_change_are_listed_again(server: Watched) -> None:
    await grow(server, "more")
    await grow(server, "most")


CHANGES = """
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    told = {"tools": [{"name": str(time.monotonic()), "inputSchema": {"type": "object"}}]}
    if asked["method"] == "initialize":
        told = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}}}
        told["serverInfo"] = {"name": "changing", "version": "1"}
    if asked["method"] == "tools/list":
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told}), flush=True)
"""


async def test_a_server_whose_tools_change_at_each_listing_is_not_asked_all_the_time() -> None:
    listed: set[float] = set()
    async with running(McpServer("x", sys.executable, ("-c", CHANGES), ENV), replace(SOON, listed=0.2)) as connection:
        async with asyncio.timeout(PATIENCE):
            while len(listed) < 4:
                listed |= {float(tool.name) for tool in connection.tools}
                await connection.change.wait()
    first, *_, last = sorted(listed)
    assert last - first >= 0.2


async def grow(connection: Watched, name: str) -> None:
    """It has a tool more, and that is listed in time."""
    assert await connection.call("grow", {"name": name}) == "grown"
    async with asyncio.timeout(PATIENCE):
        while name not in (tool.name for tool in connection.tools):
            await connection.call("echo", {"text": "x"})


async def test_a_server_of_the_old_protocol_serves_as_well_even_if_it_begins_with_garbage() -> None:
    async with running(real("old", "old", "noisy")) as connection:
        assert await connection.call("echo", {"text": "old"}) == "old"
        assert await connection.call("babble", {"text": ""}) == "babbled"
        await grow(connection, "more")
        assert await connection.call("crash", {}) == "The tool crash of server old failed: Connection closed"


# Failures


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("no such page", "no such page"),
        (f"bad key {SECRET}", "bad key [hidden]"),
        ("cannot reach https://10.0.0.1:80/x?key=y now", "cannot reach (address) now"),
        ("cannot reach 10.0.0.1:8080", "cannot reach (address)"),
        ("two\n\n  lines", "two lines"),
    ],
)
async def test_what_a_tool_says_went_wrong_is_a_line(server: Watched, said: str, told: str) -> None:
    with capture_logs() as logs:
        sentence = await server.call("fail", {"text": said})
    assert [entry["error"] for entry in logs if entry["event"] == "mcp_call_failed"] == [REPORTED]
    assert sentence == f"The tool fail of server real failed: Error executing tool fail: {told}"


@pytest.mark.parametrize(("tool", "given"), [("fail", "text"), ("echo", "wrong")])
async def test_what_a_tool_says_went_wrong_is_not_in_the_log(server: Watched, tool: str, given: str) -> None:
    """It may quote what people said."""
    with capture_logs() as logs:
        await server.call(tool, {given: "bluebell"})
    assert [entry["tool"] for entry in logs if entry["event"] == "mcp_call_failed"] == [tool]
    assert "bluebell" not in str(logs)


async def test_of_a_stack_trace_its_end_is_told(server: Watched) -> None:
    said = 'Traceback (most recent call last):\n  File "x.py", line 1\nKeyError: 5\n'
    assert await server.call("fail", {"text": said}) == "The tool fail of server real failed: KeyError: 5"


async def test_what_went_wrong_at_length_is_clipped_before_it_is_read(server: Watched) -> None:
    assert len(await server.call("fail", {"text": "x" * 300_000})) < 400


@pytest.mark.parametrize(("tool", "about"), [("echo", "text"), ("nothing", "nothing")])
async def test_a_call_that_the_server_refuses_is_told(server: Watched, tool: str, about: str) -> None:
    told = await server.call(tool, {"wrong": 1})
    assert told.startswith(f"The tool {tool} of server real failed: ")
    assert about in told.partition("failed")[2]
    assert "\n" not in told


async def test_a_tool_that_hangs_is_left(server: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    before = await pid(server)
    with monkeypatch.context() as patch:
        patch.setattr(server, "_limits", Limits(call=0.05))
        told = await server.call("hang", {})
    assert told == "The tool hang of server real failed: the server did not answer within 0.05 seconds."
    assert await pid(server) == before


async def test_a_crash_in_a_call_is_told_and_the_next_call_works(server: Watched) -> None:
    before = await pid(server)
    other = asyncio.create_task(server.call("hang", {}))
    await server.call("echo", {"text": "x"})
    assert (await server.call("crash", {})).startswith("The tool crash of server real failed: ")
    assert (await other).startswith("The tool hang of server real failed: ")
    assert await pid(server) != before
    assert not is_there(before)
    assert not server.is_away


async def test_a_server_that_is_killed_while_nobody_calls_it_is_started_again(server: Watched) -> None:
    before = await pid(server)
    os.kill(before, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE):
        await server.ended.wait()
    assert await pid(server) != before


async def test_a_server_that_writes_what_is_no_text_is_started_again(
    server: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await pid(server)
    with monkeypatch.context() as patch:
        patch.setattr(server, "_limits", replace(SOON, start=0.1, call=0.2))
        assert "did not answer within 0.2 seconds" in await server.call("choke", {})
        await server.call("echo", {"text": "x"})
    assert await pid(server) != before


# By HTTP


@pytest.mark.parametrize("of", ["x", "\N{GRINNING FACE}"])
async def test_a_line_without_end_is_not_kept(of: str) -> None:
    use_mcp()
    most, more = MAX_LINE // len(json.dumps(of)[1:-1]), 100_000  # than is read at once
    async with running(real("endless"), SOON) as endless:
        before = await pid(endless)
        assert of in await endless.call("much", {"size": most // 2, "of": of})
        assert "failed: " in await endless.call("much", {"size": most + more, "of": of})
        async with asyncio.timeout(PATIENCE):
            await endless.ended.wait()
            await endless.tried()
        assert await pid(endless) != before


async def test_a_line_is_kept_up_to_its_length() -> None:
    rest = b"x" * MAX_LINE
    pieces = [rest, b"\n", rest, b"\n", b"x", rest]
    sending, receiving = anyio.create_memory_object_stream[bytes](len(pieces))
    for each in pieces:
        sending.send_nowait(each)
    lines = Lines(receiving)
    for _ in range(2):  # in one piece, as the package searches all of what has begun with each
        assert await lines.receive() == f"{rest.decode()}\n"
    with pytest.raises(anyio.BrokenResourceError):
        await lines.receive()
    sending.close()
    receiving.close()


async def test_a_line_with_an_emoji_takes_no_four_bytes_for_all_other_signs() -> None:
    message = '{"jsonrpc": "2.0", "id": 1, "result": {"said": "\N{GRINNING FACE}' + "x" * 5_000_000 + '"}}'
    sending, receiving = anyio.create_memory_object_stream[bytes](1)
    sending.send_nowait(f"{message}\n".encode())
    line = await Lines(receiving).receive()
    assert sys.getsizeof(line) < len(message) + 1_000
    for each in (line, message, message.encode()):
        assert read_message(each).result == json.loads(message)["result"]
    with pytest.raises(ValidationError):
        read_message(message.replace("x", "\N{GRINNING FACE}", MAX_WIDE))
    sending.close()
    receiving.close()


@pytest.mark.parametrize("text", ["", "[{,"])
async def test_a_message_of_too_many_parts_is_not_parsed(server: Watched, text: str) -> None:
    before, count = await pid(server), MAX_PARTS // 5
    assert "pieces" in await server.call("echo", {"text": "pieces" + '[{,"\\' * MAX_PARTS})  # in a text they are none
    assert (await server.call("pieces", {"count": count, "text": text})).startswith("[")
    with capture_logs() as logs, pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "_limits", replace(SOON, call=2.0))
        told = await server.call("pieces", {"count": 2 * count, "text": text})
    assert "did not answer" in told
    assert "mcp_message_refused" in [line["event"] for line in logs]
    assert await pid(server) == before


PINGS = """
import json, sys, time
told = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}}
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "tools/call":
        for number in range(5_000):
            print(json.dumps({"jsonrpc": "2.0", "id": number, **json.loads(sys.argv[1])}), flush=True)
        time.sleep(60)
    if "id" in asked:
        result = about if asked["method"] == "initialize" else told
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize(
    "request_",
    [{"method": "ping"}, {"method": "x" * 2_000}, {"method": "ping", "id": "x" * 2_000}],
    ids=["pings", "a long method", "a long id"],
)
async def test_requests_of_a_server_that_takes_no_answers_do_not_pile_up(
    request_: dict[str, str],
    hurried: None,  # noqa: ARG001
) -> None:
    of = McpServer("x", sys.executable, ("-c", PINGS, json.dumps(request_)), ENV)
    async with running(of, replace(SOON, call=2.0)) as connection:
        before = len(asyncio.all_tasks())
        assert "did not answer" in await connection.call("t", {})
        few = 10 if "x" in str(request_) else MAX_OPEN + 10  # of long ones none is kept
        assert len(asyncio.all_tasks()) < before + few


ASKS = """
import json, sys
kind = sys.argv[1]
asked_of_us = {"role": "user", "content": [{}] * 40_000}
request = {"method": "sampling/createMessage", "params": {"maxTokens": 1, "messages": [asked_of_us]}}
needed = {"inputRequests": {str(number): {"method": "roots/list"} for number in range(30_000)}}
results = {
    "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}},
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"},
    "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}], "resultType": "complete"},
    "tools/call": {"content": []} if kind == "request" else {"resultType": "input_required", **needed},
}
for name, result in results.items():
    result |= {"serverInfo": {"name": "p", "version": "1"}, "ttlMs": 0, "cacheScope": "private"}
for line in sys.stdin:
    asked = json.loads(line)
    if "method" not in asked or "id" not in asked:
        continue
    told = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "tools/call" and kind == "request":
        print(json.dumps({"jsonrpc": "2.0", "id": 1, **request}), flush=True)
    if asked["method"] not in results or (asked["method"] == "server/discover" and kind == "request"):
        told["error"] = {"code": -32601, "message": "unknown"}
    else:
        told["result"] = results[asked["method"]]
    print(json.dumps(told), flush=True)
"""


@pytest.mark.parametrize("kind", ["request", "input_required"])
async def test_what_a_server_asks_of_us_is_shortened_before_it_is_validated(kind: str) -> None:
    async with running(McpServer("x", sys.executable, ("-c", ASKS, kind), ENV)) as connection:
        await connection.call("t", {})  # what is imported at first takes longer
        async with longest_step() as seconds:
            told = await connection.call("t", {})
    assert told == "[]" if kind == "request" else "failed" in told
    assert seconds() < 0.2  # it was 0.4 to 0.8 s


HEADERS = """
import json, sys
length = int(sys.argv[1])
named = {f"a{count}": {"type": "string", "x-mcp-header": f"a{count}"} for count in range(1_000)}
large = {"type": "object", "properties": {"k" * length: {"type": "object", "properties": named}}}
results = {
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
    "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}, {"name": "u", "inputSchema": large}]},
}
for result in results.values():
    result |= {"serverInfo": {"name": "p", "version": "1"}, "ttlMs": 0, "cacheScope": "private"}
    result["resultType"] = "complete"
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") in results:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]}), flush=True)
"""


async def test_the_headers_that_a_large_tool_wants_its_arguments_in_take_little_memory() -> None:
    """A path of names is kept for each of them, of which the first may be as long as the message."""
    use_mcp()
    tracemalloc.start()
    try:
        async with McpTools([McpServer("x", sys.executable, ("-c", HEADERS, "300000"), ENV)]) as tools:
            with capture_logs() as logs:
                await tools.tried()
            assert [tool.name for tool in tools.definitions()] == ["t"]
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert next((line["event"], line["tools"]) for line in logs if "tools" in line) == ("mcp_tools_too_large", "u")
    assert most < 50_000_000  # it was 300 MB, and more for a longer name


COUNTS = """
import json, sys
number = "9" * int(sys.argv[1])
large = "{" + ",".join(f'"{count}":{number}' for count in range(1_800)) + "}"
tools = [{"name": "t", "inputSchema": {"type": "object"}}]
tools += [{"name": "u", "inputSchema": {"type": "object", "default": "LARGE"}}]
results = {
    "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}},
    "tools/list": {"tools": tools},
    "tools/call": {"content": [], "structuredContent": {"first": 2**1_000, "then": "LARGE"}},
}
for line in sys.stdin:
    asked = json.loads(line)
    if "method" not in asked or "id" not in asked:
        continue
    told = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] not in results:
        told["error"] = {"code": -32601, "message": "unknown"}
    else:
        told["result"] = results[asked["method"]] | {"serverInfo": {"name": "p", "version": "1"}}
    print(json.dumps(told).replace('"LARGE"', large), flush=True)
"""


async def test_numbers_that_take_long_to_write_are_left_out(hurried: None) -> None:  # noqa: ARG001
    async def told_of(digits: int) -> str:
        async with McpTools([McpServer("x", sys.executable, ("-c", COUNTS, str(digits)), ENV)]) as tools:
            await tools.tried()
            return await tools.call("t", {})

    await told_of(1)  # what is imported at first takes longer
    async with longest_step() as seconds:
        told = await told_of(4_290)
    assert f'"first":{2**1_000},' in told
    assert '"0":null' in told
    assert seconds() < 0.2  # it was 0.3 s


async def test_numbers_that_json_does_not_have_are_left_out() -> None:
    """A tool with one, and with one that is too large for orjson, made each request fail."""
    data = {"a": [float("inf"), float("nan"), 2**MAX_BITS, 1.5], "b": {"c": float("-inf"), "d": 2**70}}
    leave_out_numbers(data)
    assert data == {"a": [None, None, None, 1.5], "b": {"c": None, "d": 2**70}}


UNLIKE = """
import json, sys
kind, length = sys.argv[1], int(sys.argv[2])
signs = chr(0x1F600) + chr(0xAD) * length  # which take four bytes each, and are written as escapes
number = "9" * 4_290
large = "{" + ",".join(f'"{count}":{number}' for count in range(length // 2_200)) + "}"
results = {
    "initialize": {
        "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}
    },
    "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"unlike": signs}] if kind == "result" else []},
}
if kind == "start":
    results["initialize"] = {"unlike": signs}
for line in sys.stdin:
    asked = json.loads(line)
    if "method" not in asked or "id" not in asked:
        continue
    told = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "tools/call" and kind == "notification":
        params = '{"level": %s, "data": 1}' % large
        print('{"jsonrpc": "2.0", "method": "notifications/message", "params": %s}' % params, flush=True)
    if asked["method"] not in results:
        told["error"] = {"code": -32601, "message": "unknown"}
    else:
        told["result"] = results[asked["method"]]
    sys.stdout.buffer.write(json.dumps(told, ensure_ascii=False).encode() + b"\\n")
    sys.stdout.buffer.flush()
"""


@pytest.mark.parametrize("kind", ["result", "notification", "start"])
async def test_what_is_not_of_the_protocol_is_not_quoted_at_length(kind: str, hurried: None) -> None:  # noqa: ARG001
    async def told_of(length: int) -> str:
        async with running(McpServer("x", sys.executable, ("-c", UNLIKE, kind, str(length)), ENV)) as connection:
            return await connection.call("t", {})

    use_mcp()
    await told_of(2_200)  # what is imported at first takes longer
    async with longest_step() as seconds:
        told = await told_of(3_800_000)
    assert told == "[]" if kind == "notification" else "failed" in told
    assert seconds() < 0.2  # it was 0.35 to 1.4 s


async def test_nor_is_a_body_that_is_no_message() -> None:
    body = json.dumps({"unlike": "\U0001f600" + "\u00ad" * 3_800_000}, ensure_ascii=False).encode()

    async def answer(request: web.Request) -> web.Response:
        asked = await request.json() if request.method == "POST" else {}
        told: dict[str, object] = {"result": {"tools": [{"name": "t", "inputSchema": SCHEMA}]}}
        if asked.get("method") == "tools/call" and asked["params"]["arguments"]:
            return web.Response(body=body, content_type="application/json")
        if asked.get("method") == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "unlike", "version": "1"}}
            told = {"result": {"protocolVersion": "2025-06-18", **about}}
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], **told} if "id" in asked else {})

    use_mcp()
    async with serving(answer) as server, running(server) as connection:
        await connection.call("t", {})  # what is imported at first takes longer
        async with longest_step() as seconds:
            told = await connection.call("t", {"unlike": True})
    assert "Field required" in told
    assert seconds() < 0.3  # it was 1.4 s, and took 320 MB


@pytest.mark.parametrize("depth", [0, 150])
async def test_a_message_of_a_server_by_http_is_not_written_out(depth: int) -> None:
    """The package writes it out for its log, though nobody reads that: of each list in a list it makes a copy."""

    async def answer(request: web.Request) -> web.Response:
        asked = await request.json() if request.method == "POST" else {}
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "deep", "version": "1"}}
        results: dict[str, Any] = {
            "initialize": {"protocolVersion": "2025-06-18", **about},
            "tools/list": {"tools": [{"name": "t", "inputSchema": SCHEMA}]},
        }
        if asked.get("method") == "tools/call":
            signs: object = "\U0001f600" + "\x7f" * asked["params"]["arguments"]["length"]  # written as \x7f
            for _ in range(depth):
                signs = [signs]
            results["tools/call"] = {"content": [], "structuredContent": {"signs": signs}}
        told = {"jsonrpc": "2.0", "id": asked.get("id"), "result": results.get(asked.get("method", ""))}
        if not told["result"]:
            return web.Response(status=405)
        body = f"data: {json.dumps(told, ensure_ascii=False)}\n\n"
        return web.Response(text=body, content_type="text/event-stream")

    use_mcp()
    async with serving(answer) as server, running(server) as connection:
        await connection.call("t", {"length": 1})  # what is imported at first takes longer
        async with longest_step() as seconds:
            told = await connection.call("t", {"length": MAX_LINE // 2})
    assert told.startswith('{"signs":' + "[" * depth + '"\U0001f600\x7f')
    assert seconds() < 0.3  # it was 0.4 s, and 8 s in lists


LOUD = """
import json, sys
told = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "logging": {}}}
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "tools/call":
        for level in ("info", "critical", "alert", "emergency"):
            params = {"level": level, "data": asked["params"]["arguments"]}
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": params}), flush=True)
    if "id" in asked:
        results = {"initialize": about | {"serverInfo": {"name": "p", "version": "1"}}, "tools/call": {"content": []}}
        result = results.get(asked["method"], told)
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


async def test_what_a_server_sends_to_be_logged_is_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("fastmcp", "mcp"):
        assert logging.getLogger(name).level == logging.CRITICAL
    async with running(McpServer("x", sys.executable, ("-c", LOUD), ENV)) as connection:
        assert await connection.call("t", {"text": "what Ann said"}) == "[]"
        await asyncio.sleep(0.1)
    assert "what Ann said" not in caplog.text


async def test_a_server_is_reached_by_http_with_its_headers() -> None:
    command = [sys.executable, str(SERVER), "far", "http", f"Bearer {SECRET}"]
    far = await asyncio.create_subprocess_exec(*command, env=ENV, stdout=asyncio.subprocess.PIPE)
    try:
        assert far.stdout
        url = (await far.stdout.readline()).decode().strip()
        server = McpServer("far", url=url, headers={"Authorization": f"Bearer {SECRET}"}, secrets=frozenset({SECRET}))
        async with running(server) as connection:
            assert await connection.call("echo", {"text": "from afar"}) == "from afar"
            await grow(connection, "more")
            far.kill()
            await far.wait()
            told = await connection.call("echo", {"text": "gone"})
            assert told.startswith("The tool echo of server far failed: ")
            assert url not in told
    finally:
        with suppress(ProcessLookupError):
            far.kill()
        await far.wait()


async def test_a_stream_that_ends_at_once_is_not_opened_again_at_once_though_the_server_says_so() -> None:
    opened: list[float] = []
    often = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        if request.method == "GET":
            opened.append(asyncio.get_running_loop().time())
            if len(opened) == 4:
                often.set()
            return web.Response(text="id: 1\nretry: 0\ndata:\n\n", content_type="text/event-stream")
        asked = await request.json() if request.method == "POST" else {}
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "brief", "version": "1"}}
        match asked.get("method"):
            case "initialize":
                told: dict[str, object] = {"result": {"protocolVersion": asked["params"]["protocolVersion"], **about}}
            case "tools/list":
                told = {"result": {"tools": []}}
            case _:
                told = {"error": {"code": -32601, "message": "unknown"}}
        body = {"jsonrpc": "2.0", "id": asked["id"], **told} if "id" in asked else {}
        return web.json_response(body, headers={"Mcp-Session-Id": "one"})

    apart = 0.1
    limits = replace(SOON, listed=apart)
    async with serving(answer) as server, running(server, limits):
        await often.wait()
    assert opened[3] - opened[0] > 1.5 * apart  # the first may have come late


def with_one_tool(asked: dict[str, Any]) -> web.Response:
    """What a server with the tool t answers to all but its calls."""
    about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "brief", "version": "1"}}
    told: dict[str, object] = {"error": {"code": -32601, "message": "unknown"}}
    if asked.get("method") == "initialize":
        told = {"result": {"protocolVersion": asked["params"]["protocolVersion"], **about}}
    elif asked.get("method") == "tools/list":
        told = {"result": {"tools": [{"name": "t", "inputSchema": SCHEMA}]}}
    return web.json_response({"jsonrpc": "2.0", "id": asked["id"], **told} if "id" in asked else {})


@pytest.mark.parametrize("long_id", [False, True])
async def test_the_stream_of_a_request_is_opened_again_but_not_within_the_one_before(long_id: bool) -> None:
    """Which would keep its events, and end after some hundred times."""
    use_mcp()
    opened, often, asked_as = 0, 300, 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal opened, asked_as
        asked = await request.json() if request.method == "POST" else {}
        if request.method == "GET" or asked.get("method") == "tools/call":
            asked_as = asked.get("id", asked_as)
            opened += request.method == "GET" and "Last-Event-ID" in request.headers
            result = json.dumps(
                {"jsonrpc": "2.0", "id": asked_as, "result": {"content": [{"type": "text", "text": "so"}]}}
            )
            text = f"data: {result}\n\n" if opened == often else ""
            text += f"id: {opened}{'x' * (long_id * 3_000)}\nretry: 0\ndata:\n\n"
            return web.Response(text=text, content_type="text/event-stream")
        return with_one_tool(asked)

    async with serving(answer) as server, running(server, replace(SOON, listed=0)) as connection:
        told = await connection.call("t", {})
        assert (told, opened) == ("so", often) or (long_id and "exhausted" in told and opened == 0)


async def test_calls_do_not_wait_for_each_others_streams() -> None:
    use_mcp()
    turns: Counter[str] = Counter()

    async def answer(request: web.Request) -> web.Response:
        asked = await request.json() if request.method == "POST" else {}
        if request.method == "GET" or asked.get("method") == "tools/call":
            call = request.headers.get("Last-Event-ID") or str(asked.get("id", ""))
            turns[call] += 1
            result = {"jsonrpc": "2.0", "id": int(call or 0), "result": {"content": [{"type": "text", "text": "so"}]}}
            text = f"id: {call}\nretry: 0\ndata: {json.dumps(result) if turns[call] == 4 else ''}\n\n"
            return web.Response(text=text, content_type="text/event-stream")
        return with_one_tool(asked)

    apart, clock = 0.2, asyncio.get_running_loop().time
    async with serving(answer) as server, running(server, replace(SOON, listed=apart)) as connection:
        began = clock()
        assert await asyncio.gather(*(connection.call("t", {}) for _ in range(8))) == ["so"] * 8
        assert 2 * apart <= clock() - began < 10 * apart  # one after the other they took 24


async def test_events_of_a_subscription_that_nobody_takes_are_not_kept() -> None:
    use_mcp()
    route = ListenRoute()
    route.set_acked(SubscriptionFilter(resource_subscriptions=["x"]))
    for number in range(9):
        route.deliver(ResourceUpdated(uri=f"{number}"))
    assert not route._pending


async def test_pictures_of_a_server_by_http_may_take_as_much_in_an_event_as_an_answer_has_room_for() -> None:
    picture = b"\x89PNG\r\n\x1a\n".ljust(MAX_MADE_BYTES, b"\0")

    async def answer(request: web.Request) -> web.Response:
        asked = await request.json() if request.method == "POST" else {}
        shown = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(picture).decode()}
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "painter", "version": "1"}}
        results = {
            "initialize": {"protocolVersion": "2025-06-18", **about},
            "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [shown]},
        }
        told = {"jsonrpc": "2.0", "id": asked.get("id"), "result": results.get(asked.get("method", ""))}
        if not told["result"]:
            return web.Response(status=405)
        return web.Response(text=f"data: {json.dumps(told)}\n\n", content_type="text/event-stream")

    made: list[MadeFile] = []
    async with serving(answer) as server, running(server) as connection:
        await connection.call("t", {}, made)
    assert [file.data for file in made] == [picture]


@pytest.mark.parametrize("is_packed", [True, False])
async def test_what_is_packed_or_too_much_at_once_is_refused_before_it_takes_memory(is_packed: bool) -> None:
    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Accept-Encoding"] == "identity"
        body = b"{" + b"0" * MAX_RESPONSE
        if is_packed:
            return web.Response(body=gzip.compress(body), headers={"Content-Encoding": "gzip"})
        return web.Response(body=body, content_type="application/json")

    with capture_logs() as entries:
        async with serving(answer) as server, running(server):
            pass
    refused = [entry["detail"] for entry in entries if entry["event"] == "model_response_refused"]
    assert refused[0].startswith("it is packed as gzip" if is_packed else f"more than {MAX_RESPONSE:,} bytes")


@pytest.mark.parametrize("description", ["x" * 700_000, ""])
async def test_a_listing_without_end_is_not_asked_for_once_it_has_too_much_in_all(description: str) -> None:
    pages = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal pages
        asked = await request.json() if request.method == "POST" else {}
        if asked.get("method") == "initialize":
            version = asked["params"]["protocolVersion"]
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "endless", "version": "1"}}
            told: dict[str, object] = {"result": {"protocolVersion": version, **about}}
        elif asked.get("method") == "tools/list":
            pages += 1
            names = [f"tool-{pages}-{number}" for number in range(1 if description else 400)]
            tools = [{"name": name, "description": description, "inputSchema": SCHEMA} for name in names]
            told = {"result": {"tools": tools, "nextCursor": f"{pages}"}}
        else:
            told = {"error": {"code": -32601, "message": "unknown"}}
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], **told} if "id" in asked else {})

    async with serving(answer) as server, running(server) as connection:
        assert len(connection.tools) == (MAX_LISTED_BYTES // len(description) + 1 if description else MAX_LISTED)
        assert pages == 3


@asynccontextmanager
async def listing(*tools: object) -> AsyncIterator[Watched]:
    """The connection to a server with these tools."""

    async def answer(request: web.Request) -> web.Response:
        asked = await request.json() if request.method == "POST" else {}
        told: dict[str, object] = {"result": {"tools": tools}}
        if asked.get("method") == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "shiny", "version": "1"}}
            told = {"result": {"protocolVersion": "2025-06-18", **about}}
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], **told} if "id" in asked else {})

    use_mcp()
    async with serving(answer) as server, running(server) as connection:
        yield connection


async def test_what_is_not_read_of_a_tool_is_not_validated() -> None:
    icons = [{"no source": ""}] * 40_000  # 50,000 with one took 0.5 s
    async with listing({"name": "t", "inputSchema": SCHEMA, "icons": icons}) as connection:
        assert [tool.name for tool in connection.tools] == ["t"]


SOUND: dict[str, Any] = {
    "type": "object",
    "properties": {"zone": {"enum": [f"{n}" for n in range(600)]}},
    "required": ["zone"],
}


@pytest.mark.parametrize(
    ("wrong", "left"),
    [
        (SOUND, SOUND),
        (SOUND | {"properties": SOUND["properties"] | {f"{n}": 5 for n in range(1_000)}}, SOUND),
        (SOUND | {"properties": []}, {"type": "object", "required": ["zone"]}),
        (SOUND | {"required": [1] * 1_000}, {"type": "object", "properties": SOUND["properties"]}),
        (SOUND | {"required": None}, {"type": "object", "properties": SOUND["properties"]}),
        (SOUND | {"type": "array", "$schema": 5}, SOUND),
        ({"properties": {"a": {"required": ["a"] * (MAX_REQUIRED + 1)}}}, {"type": "object", "properties": {"a": {}}}),
        ({}, {"type": "object"}),
        (None, {"type": "object"}),
    ],
    ids=["sound", "properties", "no properties", "required", "nothing", "type", "long", "empty", "none"],
)
async def test_what_is_wrong_with_a_tool_is_left_out_and_the_rest_and_all_other_tools_stay(
    wrong: object, left: dict[str, object]
) -> None:
    """Of what is wrong the package collects each fault."""
    tools: list[object] = [{"name": f"t{n}", "description": 5, "inputSchema": wrong} for n in range(40)]
    tools += [{"name": 5, "inputSchema": SCHEMA}, {"inputSchema": SCHEMA}, "none"]
    async with longest_step() as seconds, listing({"name": "sound", "inputSchema": SCHEMA}, *tools) as connection:
        assert [tool.parameters_json_schema for tool in connection.tools] == [SCHEMA] + [left] * 40
    assert seconds() < 0.3  # it was 0.7 s with 42 tools, and one such tool was the end of all others


@pytest.mark.parametrize("count", [3, 5_000])
async def test_what_would_be_cut_of_a_structure_is_told_as_the_text_that_says_the_same(count: int) -> None:
    structure = {"rows": [1] * count}
    answer = {"content": [{"type": "text", "text": json.dumps(structure)}], "structuredContent": structure}
    bound_result(answer)
    assert ("structuredContent" in answer) is (count == 3)
    assert json.loads(answer["content"][0]["text"]) == {"rows": [1] * count}  # type: ignore[index]


@pytest.mark.parametrize(
    "answer",
    [
        '{"error": {"code": 1, "message": LONG}}',
        '{"error": {"code": 1, "message": "no", "data": LONG}}',
        '{"result": {"content": 5, "structuredContent": {"data": LONG}}}',
        '{"result": {"content": [], "isError": True, "structuredContent": {"data": LONG}}}',
    ],
    ids=["message", "data", "result", "failed"],
)
async def test_of_a_call_that_failed_little_is_kept(answer: str) -> None:
    script = f"{FAILS}\nserve({answer})"
    async with running(McpServer("x", sys.executable, ("-c", script), ENV)) as connection:
        await connection.call("t", {})  # what is imported at first stays
        gc.collect()
        gc.disable()
        tracemalloc.start()
        for _ in range(4):
            assert "failed" in await connection.call("t", {})
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        gc.enable()
    assert kept < 10_000_000  # it was 32 MB, with a cycle for each


FAILS = """
import json, sys
LONG = "\\U0001f600" + "x" * 2_000_000
def serve(told):
    tools = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}}
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            about["protocolVersion"] = "2025-06-18"
            answers = {"initialize": {"result": about}, "tools/call": told, "tools/list": {"result": tools}}
            answer = answers.get(asked["method"], {"error": {"code": -32601, "message": "unknown"}})
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


SCREEN = {"type": "image", "mimeType": "image/png", "data": "A" * 400_000}
WORDS = {"type": "text", "text": "no such page"}
TRACE = "Traceback (most recent call last):" + '\n  File "/srv/app.py", line 1, in f' * 900


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"result": {"isError": True, "content": [SCREEN, WORDS]}}, "no such page"),
        ({"result": {"isError": True, "content": [WORDS, SCREEN]}}, "no such page"),
        ({"error": {"data": "x" * 9_000, "code": 1, "message": "the city is not known"}}, "the city is not known"),
        ({"error": {"code": 1, "message": f"{TRACE}\nValueError: not known"}}, "ValueError: not known"),
    ],
    ids=["picture first", "picture last", "data first", "traceback"],
)
async def test_what_went_wrong_is_told_whatever_comes_with_it(answer: dict[str, Any], told: str) -> None:
    async def post(request: web.Request) -> web.Response:
        asked = await request.json() if request.method == "POST" else {}
        if asked.get("method") == "tools/call":
            return web.json_response({"jsonrpc": "2.0", "id": asked["id"], **answer})
        return with_one_tool(asked) if asked else web.Response(status=405)

    async with serving(post) as server, running(server) as connection:
        said = await connection.call("t", {})
        assert said.startswith(f"The tool t of server far failed: {told}")
        assert not connection._doubted.is_set() or "error" in answer


async def test_a_result_without_content_is_one() -> None:
    answer: dict[str, Any] = {"content": None, "structuredContent": {"a": 1}}
    bound_result(answer)
    assert answer == {"content": [], "structuredContent": {"a": 1}}


@pytest.mark.parametrize(
    ("escaped", "told"),
    [
        (r"\ud83d\ude00", "\U0001f600"),
        (r"cut\ud83d", "cut?"),
        (r"\\ud83d\ude00", r"\ud83d?"),
        (r"\ud83d\ud83d\ude00 \n", "?\U0001f600 \n"),
        (r"\ud83", None),
    ],
)
async def test_half_an_emoji_costs_no_message(escaped: str, told: str | None) -> None:
    """JavaScript leaves it where it cuts a text."""
    message = f'{{"jsonrpc": "2.0", "id": 1, "result": {{"said": "{escaped}"}}}}'
    if told is None:
        with pytest.raises(ValidationError):
            read_message(message)
    else:
        assert read_message(message).result == {"said": told}


async def test_a_listing_keeps_nothing_of_those_before_it_nor_more_than_is_read() -> None:
    asked_for = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal asked_for
        asked = await request.json() if request.method == "POST" else {}
        told: dict[str, object] = {"error": {"code": -32601, "message": "unknown"}}
        if asked.get("method") == "initialize":
            about = {"capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "new", "version": "1"}}
            told = {"result": {"protocolVersion": "2025-06-18", **about}}
        elif asked.get("method") == "tools/list":
            asked_for += 1
            cursor = (asked.get("params") or {}).get("cursor")
            page = {
                "tools": [{"name": f"t{asked_for}", "inputSchema": SCHEMA}],
                "nextCursor": "x" * (9_000 if cursor else 9),
            }
            told = {"result": {**page, "unread": "x" * 9_000}}
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], **told} if "id" in asked else {})

    use_mcp()
    async with serving(answer) as server, running(server) as connection:
        toolset = connection._toolset
        assert toolset is not None
        for _ in range(4):
            await connection._list(toolset)
        assert [tool.name for tool in connection.tools] == ["t9", "t10"]
        session: Any = toolset.client.session
        assert set(session._tool_output_schemas) <= {"t9", "t10"}
        assert set(session._tool_listed_versions) | set(session._x_mcp_header_maps) <= {"t9", "t10"}


async def test_the_address_that_a_server_of_the_oldest_protocol_tells_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SERVED_AT", "/sse")
    marks = "\u0301\u0316" * 15_000  # which are sorted pair by pair

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(f"event: endpoint\ndata: //a{marks}\n\n".encode())
        await asyncio.sleep(PATIENCE)
        return response

    use_mcp()
    async with serving(answer) as server, longest_step() as seconds, running(server, replace(SOON, start=2.0)) as far:
        assert far.is_away
    assert seconds() < 0.2  # it was 0.35 s, and four times that for twice as many


async def test_the_request_of_a_call_that_is_given_up_is_closed() -> None:
    is_closed = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        asked = await request.json() if request.method == "POST" else {}
        told: dict[str, object] = {"result": {"tools": [{"name": "hang", "inputSchema": SCHEMA}]}}
        if asked.get("method") == "initialize":
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "slow", "version": "1"}}
            told = {"result": {"protocolVersion": "2025-06-18", **about}}
        elif asked.get("method") == "server/discover":
            told = {"error": {"code": -32601, "message": "unknown"}}
        elif asked.get("method") == "tools/call":
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            with suppress(ConnectionError):
                while True:  # so that its silence ends nothing
                    await response.write(b": ping\n\n")
                    await asyncio.sleep(0.01)
            is_closed.set()
            return response
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], **told} if "id" in asked else {})

    use_mcp()
    async with (
        serving(answer) as server,
        running(server, replace(SOON, call=0.2)) as connection,
        asyncio.timeout(PATIENCE),
    ):
        assert "did not answer within" in await connection.call("hang", {})
        await is_closed.wait()


# Those that never start


@pytest.mark.parametrize(
    ("server", "error"),
    [
        (shell("exit 1"), "MCPError: Connection closed"),
        (shell("echo garbage; exit 1"), "MCPError: Connection closed"),
        (shell("exec sleep 1000"), "the server did not answer within 0.3 seconds."),
        (shell("while read x; do echo garbage; done"), "the server did not answer within 0.3 seconds."),
        (McpServer("none", "no-such-program", env=ENV), "No such file or directory: 'no-such-program'"),
        (McpServer("none", "sh", ("\0",), ENV), "embedded null byte"),
        (McpServer("none", "sh", folder=Path("no-such-folder")), "No such file or directory"),
        (McpServer("none", url="http://127.0.0.1:9/mcp"), "All connection attempts failed"),
    ],
)
@pytest.mark.usefixtures("hurried")
async def test_a_server_that_never_starts_is_logged_and_left_alone(server: McpServer, error: str) -> None:
    with capture_logs() as logs:
        async with running(server, Limits(start=0.3)) as connection:
            assert connection.is_away
            told = await connection.call("echo", {})
    assert told.endswith("failed: the server is not running now.")
    line = next(line for line in logs if line["event"] == "mcp_not_started")
    assert (line["log_level"], line["server"]) == ("warning", server.name)
    assert error in line["error"]


@pytest.mark.usefixtures("hurried")
async def test_a_process_that_never_starts_to_talk_is_ended(tmp_path: Path) -> None:
    server = shell(f"echo $$ > {tmp_path}/pid; trap '' TERM; while true; do sleep 1000; done")
    async with running(server, Limits(start=0.3)):
        process = int((tmp_path / "pid").read_text())
        assert not is_there(process)


@pytest.mark.usefixtures("hurried")
async def test_a_process_that_is_still_starting_ends_with_us() -> None:
    connection = Watched(shell("echo $$ >&2; exec sleep 1000"))
    task = asyncio.create_task(connection.run())
    async with asyncio.timeout(PATIENCE):
        process = int(await connection.stderr.get())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_there(process)


async def test_it_ends_when_told_to_while_a_server_that_has_died_is_being_closed() -> None:
    """The packages close it in several steps."""
    use_mcp()

    async def killed(steps: int) -> bool:
        connection = Watched(real("old", "old"))
        task = asyncio.create_task(connection.run())
        await connection.tried()
        await connection.call("crash", {})
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        ended, _ = await asyncio.wait({task}, timeout=PATIENCE)
        task.cancel()
        return bool(ended)

    assert all([await killed(steps) for steps in range(0, 24, 3)])


async def has_ended(process: int) -> None:
    """Once it is no more, or only its parent does not know yet."""
    ending = await asyncio.create_subprocess_exec(
        "sh", "-c", f"while grep -qs '^State:.[^Z]' /proc/{process}/status; do sleep 0.01; done"
    )
    async with asyncio.timeout(PATIENCE):
        await ending.wait()


async def test_what_a_server_has_started_ends_with_it(tmp_path: Path) -> None:
    use_mcp()
    script = f'sleep 1000 & echo $! > {tmp_path}/child; exec "{sys.executable}" "{SERVER}" parent'
    async with running(shell(script)) as connection:
        first = await pid(connection)
        child = int((tmp_path / "child").read_text())
        await connection.call("crash", {})
        assert await pid(connection) != first
        await has_ended(child)
    await has_ended(int((tmp_path / "child").read_text()))


async def test_a_server_that_ignores_its_end_is_killed_even_where_nobody_waits_for_that(tmp_path: Path) -> None:
    use_mcp()
    script = f'trap \'\' TERM; "{sys.executable}" "{SERVER}" deaf; echo $$ > {tmp_path}/pid; '
    script += "echo >&2; while true; do sleep 1000; done"
    connection = Watched(shell(script))
    task = asyncio.create_task(connection.run())
    async with asyncio.timeout(PATIENCE):
        await connection.tried()
        task.cancel()
        await connection.stderr.get()  # its input is closed, which it ignores
        for waiting in asyncio.all_tasks() - {asyncio.current_task()}:
            waiting.cancel()
        await asyncio.wait([task])
        await has_ended(int((tmp_path / "pid").read_text()))


async def test_a_server_that_failed_is_tried_again_and_ends_with_us(tmp_path: Path) -> None:
    start = f'if test -e {tmp_path}/mark; then exec "{sys.executable}" "{SERVER}" again; fi; touch {tmp_path}/mark'
    async with running(shell(start)) as connection, asyncio.timeout(PATIENCE):
        assert connection.is_away
        await connection.change.wait()
        assert not connection.is_away
        process = await pid(connection)
        hanging = asyncio.create_task(connection.call("hang", {}))
        assert await connection.call("echo", {"text": "here"}) == "here"
    assert not is_there(process)
    assert (await hanging).startswith("The tool hang of server shell failed: ")


@pytest.mark.parametrize(
    ("failures", "has_served", "seconds"),
    [
        (1, True, 0), (2, True, 5), (3, True, 10), (8, True, 300),
        (1, False, 5), (2, False, 10), (3, False, 20), (6, False, 160), (7, False, 300), (10**9, False, 300),
    ],
)  # fmt: skip
async def test_the_pause_grows_with_each_failure(failures: int, has_served: bool, seconds: float) -> None:
    assert Limits().pause(failures, has_served=has_served) == seconds
