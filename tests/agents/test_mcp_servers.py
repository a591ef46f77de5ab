"""agents/mcp_servers.py: many servers as one toolset, and the general agent that uses it."""

from __future__ import annotations

import json
import os
import re
import runpy
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import ToolDefinition
from pydantic_ai.messages import ModelMessage, ModelRequest, RetryPromptPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from structlog.testing import capture_logs

from activity import Activity
from agents.gateway import AgentRequest, Answer
from agents.general import GeneralAgent
from agents.mcp_connection import Limits
from agents.mcp_file import MAX_TOOL_BYTES, McpServer
from agents.mcp_servers import MAX_TOOLS, MAX_TOTAL_BYTES, McpTools, _names
from counts import Faults
from place import Place
from tests.support.clock import NOON
from tests.support.people import ANNA, said

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "tests" / "support" / "mcp_server.py"
ENV = {"PATH": os.environ["PATH"], "HOME": "/"}
NEVER = McpServer("never", "false", env=ENV)


def real(name: str) -> McpServer:
    return McpServer(name, sys.executable, (str(SERVER), name), ENV)


def definition(name: str, size: int = 30) -> ToolDefinition:
    """Of as many bytes as JSON."""
    padding = size - len(json.dumps([name, {"x": ""}], separators=(",", ":"), ensure_ascii=False).encode())
    return ToolDefinition(name=name, parameters_json_schema={"x": "x" * padding})


def calling(*calls: tuple[str, str]) -> FunctionModel:
    """Calls a tool in each response, then tells what came of the calls."""
    left = list(calls)

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        if left:
            name, arguments = left.pop(0)
            assert name in {tool.name for tool in info.function_tools}
            yield {0: DeltaToolCall(name=name, json_args=arguments, tool_call_id=f"call-{len(left)}")}
            return
        parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
        assert not any(isinstance(part, RetryPromptPart) for part in parts)
        yield " | ".join(str(part.content) for part in parts if isinstance(part, ToolReturnPart)) or "nothing"

    return FunctionModel(stream_function=stream)


async def answer(model: FunctionModel, tools: McpTools) -> str:
    agent = GeneralAgent(model, lent=tools)
    question = said(ANNA)
    outcome = await agent.respond(
        AgentRequest([], [question], [question], Place(bot_name="Parley", guild="The Guild", channel="general"), NOON),
        lambda _text: None,
    )
    assert isinstance(outcome, Answer), outcome
    return outcome.text


# The general agent


@pytest.mark.slow
async def test_a_failing_server_does_not_end_the_turn() -> None:
    async with McpTools([NEVER, real("wiki")], taken={"much"}) as tools:
        assert tools.definitions() == []
        await tools.tried()
        names = {tool.name for tool in tools.definitions()}
        assert {"echo", "look_up_", "wiki_much"} <= names
        assert "much" not in names
        told = await answer(
            calling(
                ("wiki_much", '{"size": 5}'),
                ("crash", "{}"),
                ("look_up_", '{"name": "Ben"}'),
                ("fail", '{"text": "no such page"}'),
            ),
            tools,
        )
        assert re.fullmatch(
            r"xxxxx \| The tool crash of server wiki failed: Connection closed"
            r' \| \{"name":"Ben","server":"wiki","pid":\d+\}'
            r" \| The tool fail of server wiki failed: Error executing tool fail: no such page",
            told,
        )
    assert await tools.call("echo", {}) == "The tool echo of server wiki failed: the server is not running now."


@pytest.mark.slow
async def test_servers_that_never_start_leave_the_agent_its_own_tools() -> None:
    activity = Activity()
    activity.watch(faults := Faults(activity.now))
    async with McpTools([NEVER, NEVER], limits=Limits(start=5), activity=activity) as tools:
        await tools.tried()
        assert [fault.code for fault in faults.last()] == ["mcp_failed", "mcp_failed"]
        assert tools.definitions() == []
        assert await answer(calling(), tools) == "nothing"
        assert await tools.call("echo", {}) == "The tool echo is not there now."


async def test_only_who_has_servers_needs_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fastmcp", "mcp", "pydantic_ai.mcp"):
        monkeypatch.setitem(sys.modules, name, None)  # then to import it fails
    for path in {*(ROOT / "agents").glob("mcp_*.py")} - {ROOT / "agents" / "mcp_session.py"}:
        runpy.run_path(str(path))
    async with McpTools([]) as tools:
        await tools.tried()
        assert tools.definitions() == []


# Names


@pytest.mark.parametrize(
    ("tools", "taken", "names"),
    [
        ([("a", "search"), ("b", "read")], (), ["search", "read"]),
        ([("a", "search"), ("b", "search")], (), ["a_search", "b_search"]),
        ([("a", "search"), ("b", "find")], ("search",), ["a_search", "find"]),
        ([("my wiki!", "search"), ("b", "search")], (), ["my_wiki__search", "b_search"]),
        ([("a", "look up"), ("a", "look.up"), ("a", "look/up")], (), ["a_look_up", "a_look_up_2", "a_look_up_3"]),
        ([("a", "search"), ("b", "search"), ("c", "a_search")], (), ["a_search", "b_search", "a_search_2"]),
        ([("a", "search"), ("b", "find")], ("search", "a_search"), ["a_search_2", "find"]),
        ([("a", "天気"), ("b", "")], (), ["__", "tool"]),
        ([("a", "x" * 100)], (), ["x" * 64]),
        ([("a", "x" * 100), ("a", "x" * 100)], (), ["a_" + "x" * 62, "a_" + "x" * 60 + "_2"]),
    ],
)
def test_names_are_what_providers_take_and_stand_once(
    tools: list[tuple[str, str]], taken: tuple[str, ...], names: list[str]
) -> None:
    assert _names(tools, taken) == names
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)


def offering(*tools: list[str | ToolDefinition]) -> McpTools:
    """Of servers called 0, 1, ..., which are not running, and list these tools."""
    servers = McpTools([McpServer(str(number), "x") for number in range(len(tools))])
    for connection, listed in zip(servers._connections, tools, strict=True):
        connection.tools = [definition(tool) if isinstance(tool, str) else tool for tool in listed]
    servers._offer()
    return servers


def test_names_stay_while_a_server_is_away() -> None:
    servers = offering(["search", "read"], ["search"])
    servers._connections[0].is_away = True
    servers._offer()
    assert [tool.name for tool in servers.definitions()] == ["1_search"]
    servers._connections[0].is_away = False
    servers._offer()
    assert [tool.name for tool in servers.definitions()] == ["0_search", "read", "1_search"]


def test_there_are_not_more_than_the_model_can_oversee() -> None:
    with capture_logs() as logs:
        servers = offering([f"tool-{number}" for number in range(MAX_TOOLS - 1)], ["last", "left out"])
    assert len(servers.definitions()) == MAX_TOOLS
    assert servers.definitions()[-1].name == "last"
    assert [(line["event"], line["tools"]) for line in logs] == [("mcp_tools_left_out", MAX_TOOLS + 1)]


@pytest.mark.parametrize(
    ("name", "size", "told"),
    [
        ("t", MAX_TOOL_BYTES + 1, "t"),
        ("天気", MAX_TOOL_BYTES + 1, "天気"),
        ("t", 2_000_000, "t"),
        ("x" * MAX_TOOL_BYTES, MAX_TOOL_BYTES + 20, f"{'x' * 63}…"),
    ],
)
def test_a_tool_that_is_too_large_is_left_out_and_named(name: str, size: int, told: str) -> None:
    with capture_logs() as logs:
        servers = offering([definition("just", MAX_TOOL_BYTES), definition(name, size), "small"], ["other"])
    assert [tool.name for tool in servers.definitions()] == ["just", "small", "other"]
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("mcp_tools_too_large", "warning")
    assert (line["server"], line["tools"]) == ("0", told)


def test_all_tools_together_are_not_more_than_a_request_takes() -> None:
    fitting = MAX_TOTAL_BYTES // MAX_TOOL_BYTES
    with capture_logs() as logs:
        servers = offering([definition(f"t{number}", MAX_TOOL_BYTES) for number in range(fitting - 1)], ["a"], ["b"])
        assert [line["event"] for line in logs] == []
        servers._connections[1].tools = [definition("a", MAX_TOOL_BYTES)]
        servers._offer()
    assert [tool.name for tool in servers.definitions()] == [*(f"t{number}" for number in range(fitting - 1)), "a"]
    assert [(line["event"], line["tools"], line["most"]) for line in logs] == [
        ("mcp_tools_left_out", fitting + 1, fitting)
    ]


async def test_the_toolset_has_what_is_defined() -> None:
    servers = offering(["search"], ["search"])
    ctx: Any = None
    tools = await servers.toolset.get_tools(ctx)
    assert [tool.tool_def for tool in tools.values()] == servers.definitions()
    assert list(tools) == ["0_search", "1_search"]


def test_long_names_take_short_to_make_plain() -> None:
    began = time.thread_time()
    assert len(set(_names([(f"s{n}", "!" * 16_000) for n in range(490)], ()))) == 490
    assert time.thread_time() - began < 0.3  # it was 1.3 s
