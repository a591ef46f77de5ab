"""The bots that are measured, each as a process that is started, looked at and killed."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from playground.server import Playground

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
KEY = "key-of-the-stub"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Bot:
    """command: how it is started. environment: what it has beside the addresses. is_llmcord: reads config.yaml."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    is_llmcord: bool = False


def parley() -> Bot:
    """As somebody runs it who has set nothing but its token and model."""
    return Bot("Parley", (sys.executable, str(ROOT / "bot.py")), {"MODEL": "openai-chat:stub"})


def minimal() -> Bot:
    return Bot("minimal bot", (sys.executable, str(HERE / "minimal_bot.py")), {"MODEL": "stub"})


def llmcord(command: str) -> Bot:
    """Started by its command in a folder with a config.yaml that names the loopback Discord's token, and the stub."""
    return Bot("llmcord", tuple(shlex.split(command)), {"PYTHONPATH": str(HERE / "loopback")}, is_llmcord=True)


def config_yaml(token: str, model_url: str) -> str:
    """llmcord's settings, as its own example has them; JSON is YAML."""
    anybody: dict[str, list[int]] = {"allowed_ids": [], "blocked_ids": []}
    return json.dumps(
        {
            "bot_token": token,
            "client_id": None,
            "status_message": None,
            "max_text": 100_000,
            "max_images": 5,
            "max_messages": 25,
            "use_plain_responses": False,
            "allow_dms": True,
            "permissions": {"users": {"admin_ids": [], **anybody}, "roles": anybody, "channels": anybody},
            "providers": {"stub": {"base_url": model_url, "api_key": KEY}},
            "models": {"stub/stub": None},
            "system_prompt": "You are a helpful assistant in a Discord channel. Answer briefly.",
        }
    )


@asynccontextmanager
async def started(bot: Bot, pg: Playground, model_url: str, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs the bot in the folder, without this process' environment, and kills it at the end. Its log is log.txt."""
    if bot.is_llmcord:
        (folder / "config.yaml").write_text(config_yaml(pg.token, model_url), encoding="utf-8")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "DISCORD_TOKEN": pg.token,
        "DISCORD_API_BASE": pg.api_base,
        "DISCORD_GATEWAY_URL": pg.gateway_url,
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": KEY,
        **bot.environment,
    }
    with (folder / "log.txt").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *bot.command, cwd=folder, env=environment, stdout=log, stderr=log
        )
    try:
        yield process
    except TimeoutError:
        last = (folder / "log.txt").read_text(encoding="utf-8").splitlines()[-1:]
        raise RuntimeError(f"{bot.name} did not connect; its log ends with {last}.") from None
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def memory(pid: int) -> float:
    """Megabytes of memory of a process and its children."""
    kilobytes = 0
    for each in _family(pid):
        lines = Path(f"/proc/{each}/status").read_text(encoding="utf-8").splitlines()
        kilobytes += next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)
    return kilobytes / 1024


def cpu(pid: int) -> float:
    """Seconds of CPU that a process and its children have used, also those that have ended."""
    ticks = 0
    for each in _family(pid):
        stat = Path(f"/proc/{each}/stat").read_text(encoding="utf-8")
        behind_name = stat.rpartition(")")[2].split()  # the program's name may have spaces, and parentheses too
        ticks += sum(map(int, behind_name[11:15]))
    return ticks / TICKS_PER_SECOND


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(member for child in children for member in _family(int(child)))]
