"""Settings, MCP servers, remote agents and the bot's own HTTP, as the doctor looks at them."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from aiohttp import web
from pydantic import SecretStr
from yarl import URL

from agents.mcp_file import McpServer
from agents.roster import AgentEntry
from doctor.checks_around import check_agent, check_http, check_mcp_server, check_password, check_settings
from doctor.findings import State
from health import Health
from playground.server import Playground
from web.site import Site


def test_every_setting_that_cannot_be_used_is_named_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = {"THREADS": "maybe", "BURST_SECONDS": "soon", "DISCORD_TOKEN": "a secret", "MODLE": "openai:gpt-5"}
    for name, value in (wrong | {"RETENTION_DAYS": "7"}).items():
        monkeypatch.setenv(name, value)
    findings, settings = check_settings()
    assert settings
    assert settings.retention_days == 7
    assert [finding.says.split()[0] for finding in findings] == ["DISCORD_TOKEN", "THREADS", "BURST_SECONDS", "MODLE"]
    assert [finding.state for finding in findings] == [*[State.FAULT] * 3, State.WARNING]
    assert findings[1].fix == "Use off, join or open."
    assert findings[3].fix == "Rename it to MODEL, or remove it."
    assert "a secret" not in repr(findings)


def test_an_env_file_in_another_encoding_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_bytes(b"# caf\xe9\nDISCORD_TOKEN=a-token\n")
    (finding,), settings = check_settings()
    assert (finding.says, finding.fix) == (".env cannot be read.", "Save it as text in UTF-8.")
    assert settings is None


def test_of_another_discord_that_cannot_be_told_nothing_more_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCORD_API_BASE", "http://discord.example/api/v10")
    findings, settings = check_settings()
    assert settings is None
    assert [finding.state for finding in findings] == [State.FAULT]


def test_a_host_that_runs_it_without_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILWAY_PROJECT_ID", "1")
    monkeypatch.setenv("PORT", "8080")
    (finding,) = check_settings()[0]
    assert finding.says == "DISCORD_TOKEN is not set."
    assert "in the service's variables" in finding.fix


@pytest.mark.parametrize(
    "server", [McpServer("files", url="http://127.0.0.1:1/mcp"), McpServer("files", command="/no/such/program")]
)
async def test_an_mcp_server_that_does_not_start(server: McpServer) -> None:
    (finding,) = await check_mcp_server(server)
    assert (finding.check, finding.state) == ("MCP files", State.FAULT)
    assert re.fullmatch(r"The MCP server files did not start, or did not list its tools: \w.+", finding.says)
    assert "correct MCP_CONFIG" in finding.fix


async def test_a_remote_agent_that_is_there_and_one_that_is_not() -> None:
    async with Playground() as pg:
        url = pg.url
        (there,) = await check_agent(AgentEntry("docs", "ums", url, "the docs", {}))
    (away,) = await check_agent(AgentEntry("docs", "ums", url, "the docs", {"Authorization": "secret"}))
    assert (there.state, away.state) == (State.OK, State.FAULT)
    assert "The agent docs cannot be reached" in away.says
    assert "in AGENTS" in away.fix
    assert "secret" not in repr(away)


async def test_who_has_the_port() -> None:
    health = Health()
    async with Site(health).served(0) as address:
        port = URL(address).port
        (ill,) = await check_http(port)
        health.gateway_up()
        (well,) = await check_http(port)
        health.expects(range(12))
        (several,) = await check_http(port)
    (free,) = await check_http(port)
    assert [finding.state for finding in (ill, well, free)] == [State.FAULT, State.OK, State.OK]
    assert "is not well: shards 1, 2, 3" in several.says
    assert "is not well: the gateway has not been connected" in ill.says
    assert well.says == f"A bot listens on PORT {port}, and is well."
    assert (await check_http(None))[0].state is State.SKIPPED


async def test_a_port_that_another_has() -> None:
    runner = web.AppRunner(web.Application())
    await runner.setup()
    listening = socket.create_server(("", 0))
    await web.SockSite(runner, listening).start()
    (finding,) = await check_http(listening.getsockname()[1])
    await runner.cleanup()
    assert finding.state is State.FAULT
    assert "no bot answers there" in finding.says
    assert finding.fix == "Set PORT to a free one, or to 0 for any."


async def test_a_port_whose_program_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doctor.checks_around.HEALTH_SECONDS", 0.1)
    with socket.create_server(("", 0)) as silent:
        (finding,) = await check_http(silent.getsockname()[1])
    assert "no bot answers there" in finding.says


def test_the_consoles_password() -> None:
    states = [
        check_password(SecretStr(password), port)[0].state
        for password, port in (("guess me", 1), ("f0Qz-71kd-ppWe", None), ("f0Qz-71kd-ppWe", 1))
    ]
    assert states == [State.WARNING, State.WARNING, State.OK]
    [unset] = check_password(None, 1)
    assert unset.state is State.SKIPPED
    assert unset.says == "CONSOLE_PASSWORD is not set: there is no console but the playground's."
