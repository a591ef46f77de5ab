"""MCP servers in service: their tools are called, and one that fails costs the agent a sentence."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from activity import FaultKind
from bot import create_bot
from config import SettingError, Settings
from tests.e2e.test_asking import tool_results
from tests.support.lives import life, open_stage
from tests.support.observed import Observed
from tests.support.scene import Scene
from tests.support.stub_model import Call, Reply, StubModel

SERVER = Path(__file__).parent.parent / "support" / "mcp_server.py"
# Of a tool's schema 2 MB, which a provider takes in no request.
WIDE = """
from typing import Annotated
from mcp.server import MCPServer
from pydantic import Field
server = MCPServer("wide", log_level="ERROR")
@server.tool()
async def wide(text: Annotated[str, Field(description="x" * 2_000_000)]) -> str: return text
@server.tool()
async def narrow(text: str) -> str: return text
server.run()
"""


BOOKS = json.dumps({"mcpServers": {"books": {"command": sys.executable, "args": [str(SERVER), "books"]}}})


@pytest.fixture
async def scene(stub: StubModel, tmp_path: Path) -> AsyncIterator[Scene]:
    """A bot with an MCP server, whose tools are there."""
    config = tmp_path / "mcp.json"
    config.write_text(BOOKS)
    async with open_stage(stub, tmp_path / "state") as stage, life(stage, mcp_config=config):
        await stage.bot.parts.mcp.tried()
        yield stage


async def ask(scene: Scene, tool: str, arguments: str) -> str:
    """Has the model call a tool. Returns what it is told."""
    scene.stub.replies.extend([Reply(calls=(Call(tool, arguments),)), Reply("Done.")])
    assert (await scene.ask("Ada", "do it")).content == "Done."
    return tool_results(scene.stub.requests[-1])[-1]


@pytest.mark.slow
async def test_a_tool_of_a_servers_is_called(scene: Scene) -> None:
    assert await ask(scene, "echo", '{"text": "hello"}') == "hello"


@pytest.mark.slow
async def test_a_call_in_which_a_server_fails_is_a_fault_and_a_tools_own_no_is_none(scene: Scene) -> None:
    scene.bot.parts.activity.watch(observed := Observed())
    await ask(scene, "fail", '{"text": "no page of Ada"}')
    assert observed.faults == []
    await ask(scene, "crash", "{}")
    (failed,) = [fault for fault in observed.faults if fault.code == "mcp_call_failed"]
    assert failed.kind is FaultKind.TOOL
    assert failed.says == "The MCP server books failed in a call of one of its tools: see the log."


@pytest.mark.slow
async def test_a_picture_that_a_tool_gives_stands_below_the_answer(scene: Scene) -> None:
    assert (
        await ask(scene, "picture", "{}") == "Here:\n(image/png, 8 bytes, attached to your answer, where people see it)"
    )
    (answer,) = scene.said()
    assert [one["filename"] for one in answer.attachments] == ["picture.png"]


@pytest.mark.slow
async def test_the_setting_can_be_what_would_stand_in_the_file(
    stub: StubModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_CONFIG", BOOKS)
    async with open_stage(stub, tmp_path / "state") as stage, life(stage):
        await stage.bot.parts.mcp.tried()
        assert await ask(stage, "echo", '{"text": "hello"}') == "hello"


@pytest.mark.slow
async def test_a_server_that_crashes_costs_a_sentence_and_is_there_again(scene: Scene) -> None:
    told = await ask(scene, "crash", "{}")
    assert told.startswith("The tool crash of server books failed")
    assert await ask(scene, "echo", '{"text": "hello"}') == "hello"


@pytest.mark.slow
async def test_a_server_gets_no_key_of_ours(scene: Scene) -> None:
    told = await ask(scene, "environment", "{}")
    assert "key-of-the-stub" not in told
    assert "OPENAI" not in told


@pytest.mark.slow
async def test_a_server_with_a_huge_tool_leaves_the_bot_its_voice(stub: StubModel, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"far": {"command": sys.executable, "args": ["-c", WIDE]}}}))
    async with open_stage(stub, tmp_path / "state") as stage, life(stage, mcp_config=config):
        await stage.bot.parts.mcp.tried()
        assert await ask(stage, "narrow", '{"text": "hello"}') == "hello"
    assert all(len(json.dumps(request)) < 200_000 for request in stub.requests)


def test_a_file_that_cannot_be_used_ends_the_start_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"nowhere\.json"):
        create_bot(Settings(mcp_config=tmp_path / "nowhere.json"))
