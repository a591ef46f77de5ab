"""Checks of the settings themselves, MCP servers, remote agents, and the bot's own HTTP server."""

from __future__ import annotations

import asyncio
import os
import re
import socket

import aiohttp
from pydantic import SecretStr

from agents.mcp_connection import Connection, Limits, use_mcp
from agents.mcp_file import McpServer
from agents.roster import AgentEntry
from config import SettingError, Settings, load_settings
from doctor.findings import SECONDS, Finding, fault, of_sentence, ok, skipped, warning
from environment import check_token, misspelt

START_SECONDS = SECONDS - 1.0
SHORT_PASSWORD = 12
SERVER_ERROR = 500
HEALTH_SECONDS = 3.0  # timeout for a bot on this machine
LISTENS = "A bot listens on PORT"
NOT_WELL = re.compile(
    r"the event loop stands|(the gateway|shards? [\d, ]+( and \d+ more)?) ha(s|ve) not been connected"
)


def check_settings() -> tuple[list[Finding], Settings | None]:
    """Finds invalid and misspelt settings. Returns the findings, and the settings without the invalid ones.

    The settings are None if they cannot be used without the invalid one, as one that names another Discord: without it
    the token would go to the real one.
    """
    findings: list[Finding] = []
    settings = None
    while settings is None:
        try:
            settings = load_settings()
        except SettingError as error:
            findings.append(of_sentence("settings", error))
            variable = str(error).partition(" ")[0]
            if not os.environ.get(variable) or variable.startswith(("DISCORD_API", "DISCORD_GATEWAY")):
                break
            os.environ[variable] = ""  # so that the rest can be checked
    for name, meant in misspelt(os.environ).items():
        says = f"{name} is not a setting, and is ignored; it looks like {meant}."
        findings.append(warning("settings", says, f"Rename it to {meant}, or remove it."))
    if settings:
        try:
            check_token(settings, os.environ)
        except SettingError as error:
            findings.append(of_sentence("settings", error))
    return findings or [ok("settings", "All settings are valid.")], settings


async def check_mcp_server(server: McpServer) -> list[Finding]:
    """Whether an MCP server starts, or can be reached, and lists its tools."""
    check = f"MCP {server.name}"
    await asyncio.to_thread(use_mcp)
    connection = Connection(server, Limits(start=START_SECONDS))
    running = asyncio.create_task(connection.run())
    try:
        await connection.tried()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    if connection.is_away:
        how = "Run its command by hand" if server.command else "Look at its url and headers"
        says = (
            f"The MCP server {server.name} did not start, or did not list its tools: {connection.why_away.rstrip('.')}."
        )
        fix = f"{how}, and correct MCP_CONFIG."
        return [fault(check, says, fix)]
    return [ok(check, f"It offers {len(connection.tools)} tools.")]


async def check_agent(agent: AgentEntry) -> list[Finding]:
    """Whether something answers at a remote agent's address. Starts no conversation there."""
    check = f"agent {agent.name}"
    fix = f"Start the agent {agent.name}, or correct its url and headers in AGENTS."
    try:
        async with aiohttp.ClientSession() as http, http.get(agent.url, allow_redirects=False) as response:
            if response.status < SERVER_ERROR:
                return [ok(check, f"The agent {agent.name} can be reached.")]
            return [fault(check, f"The agent {agent.name} fails (HTTP {response.status}).", fix)]
    except (aiohttp.ClientError, OSError) as error:
        return [fault(check, f"The agent {agent.name} cannot be reached ({type(error).__name__}).", fix)]


async def check_http(port: int | None) -> list[Finding]:
    """Whether the bot can listen on PORT, or one listens there already."""
    if port is None:
        return [skipped("http", "PORT is not set: in service there are no /healthz and no console.")]
    try:
        dual = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        socket.create_server(("", port), family=family, dualstack_ipv6=dual).close()
    except OSError as error:
        return [await _who_listens(port, str(error.strerror))]
    return [ok("http", f"PORT {port} is free." if port else "The bot takes any port that is free.")]


async def _who_listens(port: int, why: str) -> Finding:
    try:
        async with (
            asyncio.timeout(HEALTH_SECONDS),
            aiohttp.ClientSession() as http,
            http.get(f"http://localhost:{port}/healthz", allow_redirects=False) as response,
        ):
            said = (await response.content.read(200)).decode()
    except (aiohttp.ClientError, OSError, UnicodeDecodeError):
        said = ""
    if said == "ok":
        return ok("http", f"{LISTENS} {port}, and is well.")
    if NOT_WELL.match(said):
        fix = "Look at the log of that process, and restart it if it does not recover within 5 minutes."
        return fault("http", f"{LISTENS} {port}, and is not well: {said}.", fix)
    fix = "Set PORT to a free one, or to 0 for any."
    return fault("http", f"PORT {port} cannot be used ({why}), and no bot answers there.", fix)


def check_password(secret: SecretStr | None, port: int | None) -> list[Finding]:
    """Whether CONSOLE_PASSWORD is long enough: it protects the console from whoever can reach PORT."""
    if secret is None:
        return [skipped("console", "CONSOLE_PASSWORD is not set: there is no console but the playground's.")]
    if (length := len(secret.get_secret_value())) < SHORT_PASSWORD:
        says = f"CONSOLE_PASSWORD has {length} characters, which is short enough to guess."
        return [warning("console", says, f"Set it to {SHORT_PASSWORD} random characters at least.")]
    if port is None:
        return [warning("console", "CONSOLE_PASSWORD is set, but not PORT: there is no console.", "Set PORT, too.")]
    return [ok("console", "CONSOLE_PASSWORD is set, and long enough.")]
