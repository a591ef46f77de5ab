"""`python bot.py doctor [--json]`: runs all checks at once, prints the findings, and sets the exit code."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import SecretStr

from agents.mcp_file import load_mcp
from agents.roster import load_roster
from config import SettingError, Settings
from doctor.checks_around import LISTENS, check_agent, check_http, check_mcp_server, check_password, check_settings
from doctor.checks_discord import check_application, check_commands, check_guilds, no_token
from doctor.checks_models import check_budgets, check_built, check_models, check_transcriber, names_in
from doctor.checks_shards import check_gateway, check_processes
from doctor.checks_storage import check_disk, check_folder, check_instance, check_key, check_modes, check_volume
from doctor.discord_rest import DiscordRest
from doctor.findings import (
    SECONDS,
    Finding,
    as_json,
    as_lines,
    bounded,
    exit_code,
    of_sentence,
    skipped,
    without,
)
from doctor.setup import set_up
from doctor.terminal import is_terminal
from environment import secrets_of
from owner import apart_in_playground, loaded, where
from state.prices import Prices, load_prices
from web.logs import configure_logging

T = TypeVar("T")
Commands = Callable[[Settings], Sequence[Mapping[str, Any]]]
"""The commands that the bot would register. Raises ValueError for wrong settings, as SettingError."""


def doctor_command(arguments: Sequence[str], commands: Commands) -> int:
    """Runs the command. Returns the exit code: 0 all is well, 1 warnings only, 2 faults."""
    parser = argparse.ArgumentParser(
        prog="python bot.py doctor",
        description="Says what is wrong with the bot and around it, and how to fix it.",
        epilog="Where neither token nor model is set it asks for them, at a terminal. "
        "Exit codes: 0 all is well, 1 there are warnings, 2 there are faults.",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="a list of findings, and nothing else, on stdout")
    form.add_argument("--setup", action="store_true", help="ask for what is missing, and write .env")
    given = parser.parse_args(arguments)
    findings, settings = check_settings()
    if settings is not None:
        configure_logging("error", secrets_of(settings))
        nothing_set = settings.discord_token is None and not os.environ.get("MODEL")
        if given.setup or (nothing_set and not given.json and is_terminal()):
            if wrong := [finding for finding in findings if finding.fix]:
                sys.stdout.write(f"{as_lines(wrong, coloured=False)}\n\n")
            return set_up(settings)
        findings += asyncio.run(examine(apart_in_playground(settings), commands))
        findings = without(secrets_of(settings), findings)
    out = sys.stdout
    if given.json:
        out.write(f"{as_json(findings)}\n")
    else:
        is_shown = out.isatty()
        width = shutil.get_terminal_size().columns if is_shown else 100
        counts = [(sum(one.state == state for one in findings), state) for state in ("fault", "warning")]
        counted = [f"{count} {state}{'s' if count > 1 else ''}" for count, state in counts if count]
        summary = f"{' and '.join(counted)}." if counted else "All is well."
        out.write(f"{as_lines(findings, coloured=is_shown, width=width)}\n\n{summary}\n")
    return exit_code(findings)


async def examine(settings: Settings, commands: Commands) -> list[Finding]:
    """Runs all checks except that of the settings. The findings are in a fixed order."""
    findings: list[Finding] = []
    prices = Prices(dict(_loaded(load_prices, settings.prices, findings)))
    servers = _loaded(load_mcp, settings.mcp_config, findings)
    agents = _loaded(load_roster, settings.agents, findings)
    # First the check that loads the models' modules, or that would count as time of the others.
    findings += _unasked_models(settings, prices)
    try:
        wanted = commands(settings)
    except ValueError:  # of settings, the model or STATE_KEY: their own checks report these
        wanted = None
    checks: list[Awaitable[list[Finding]]] = [
        _discord(settings, wanted),
        *_asked_models(settings, prices),
        *(bounded(f"MCP {server.name}", check_mcp_server(server), SECONDS + 5) for server in servers),
        *(bounded(f"agent {agent.name}", check_agent(agent)) for agent in agents),
        _kept_and_served(settings),
    ]
    discord, *others = await asyncio.gather(*checks)
    return [
        *discord,
        *(finding for found in others for finding in found),
        *check_password(settings.console_password, settings.port),
        *findings,
    ]


def _loaded(
    load: Callable[[Path | str, Mapping[str, str]], tuple[T, ...]],
    setting: Path | SecretStr | None,
    findings: list[Finding],
) -> tuple[T, ...]:
    """Loads a file of the owner's. An invalid one is added to the findings."""
    try:
        return loaded(load, setting)
    except SettingError as error:
        findings.append(of_sentence("settings", error))
        return ()


async def _discord(settings: Settings, wanted: Sequence[Mapping[str, Any]] | None) -> list[Finding]:
    if settings.discord_token is None:
        return [no_token(), skipped("servers", "Without a token, servers and permissions cannot be checked.")]
    async with DiscordRest(settings.discord_token.get_secret_value(), settings.discord_api_base) as rest:
        findings, application = await check_application(rest)
        if application is None:
            return [*findings, skipped("servers", "Until then, servers, permissions and commands cannot be checked.")]
        checks = [
            bounded("gateway", check_gateway(rest, settings.shard_count)),
            bounded("servers", check_guilds(rest, application, settings.channels, settings.threads)),
        ]
        if wanted is not None:
            checks.append(bounded("commands", check_commands(rest, application, wanted)))
        return [*findings, *(finding for found in await asyncio.gather(*checks) for finding in found)]


def _asked_models(settings: Settings, prices: Prices) -> list[Awaitable[list[Finding]]]:
    """Checks of the models that are called."""
    named = [("MODEL", settings.model), *(("MODELS", name) for name in settings.models if name != settings.model)]
    if settings.judge_model:
        named.append(("JUDGE_MODEL", settings.judge_model))
    return [bounded(variable, check_models(variable, names, prices), SECONDS + 5) for variable, names in named]


def _unasked_models(settings: Settings, prices: Prices) -> list[Finding]:
    """Checks of the models that are not called, and of the budgets."""
    named = {"COORDINATOR_MODEL": settings.coordinator_model, "REWRITE_MODEL": settings.rewrite_model}
    findings = [check_built(variable, names) for variable, names in named.items() if names]
    if settings.transcribe_model:
        findings.append(check_transcriber(settings.transcribe_model))
    used = [settings.model, *settings.models, *filter(None, (settings.judge_model, *named.values()))]
    return [*findings, check_budgets(settings.budgets, settings.daily_tokens, prices.unknown(names_in(used)))]


async def _kept_and_served(settings: Settings) -> list[Finding]:
    served = await bounded("http", check_http(settings.port))
    runs_here = any(finding.state == "ok" and finding.says.startswith(LISTENS) for finding in served)
    kept = asyncio.to_thread(_storage, *where(settings), runs_here=runs_here, is_shared=settings.is_one_of_several)
    findings = await bounded("storage", kept)
    if settings.is_one_of_several and settings.redis_url and _answers(findings):
        url, count, ids = settings.redis_url.get_secret_value(), settings.shard_count, settings.shard_ids
        findings += await bounded("processes", check_processes(url, count, ids))
    return [*findings, *served]


def _storage(
    state_dir: Path, redis_url: str | None, keys: str | None, *, runs_here: bool, is_shared: bool = False
) -> list[Finding]:
    """Checks of the storage. is_shared: other processes may use the same Redis."""
    folder, key = check_folder(state_dir), check_key(state_dir, redis_url, keys)
    is_asked = folder.state == "ok" and _answers(key)
    return [
        folder,
        check_modes(state_dir),
        check_disk(state_dir),
        *key,
        *([check_instance(state_dir, None if is_shared else redis_url, runs_here=runs_here)] if is_asked else []),
        *check_volume(state_dir, redis_url, os.environ),
    ]


def _answers(findings: Sequence[Finding]) -> bool:
    """Whether Redis answers, by these findings: no other check waits for one that does not."""
    return not any(one.check == "redis" and one.state == "fault" for one in findings)
