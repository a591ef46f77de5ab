"""What a start costs: CPU seconds of a process until Discord has told it READY, with nothing stored yet."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROUNDS = 5
ROOT = Path(__file__).parents[1]
OURS, MINIMAL = [str(ROOT / "bot.py")], ["-m", "bench.peers.minimal_bot"]


def starting(server: Mapping[str, str]) -> tuple[float, float, float]:
    """The least of several starts, by turns: of the minimal bot, of ours with the demo model, and with OpenAI's.

    server: the addresses of a loopback Discord, and a token for it.
    """
    with TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            # As it is for those who run it: only the first start after an update compiles the modules.
            "PYTHONDONTWRITEBYTECODE": "",
            "DISCORD_TOKEN": server["token"],
            "DISCORD_API_BASE": server["api"],
            "DISCORD_GATEWAY_URL": server["gateway"],
            "OPENAI_API_KEY": "nobodys",
        }
        rounds = []
        for number in range(ROUNDS):
            ours = [
                _start(OURS, '"ready"', {**environment, "MODEL": model, "STATE_DIR": f"{folder}/{model}{number}"})
                for model in ("demo", "openai-chat:stub")
            ]
            # discord.py's own line, as it is told READY
            rounds.append((_start(MINIMAL, "connected to Gateway", {**environment, "MODEL": "stub"}), *ours))
    minimal, demo, openai = (min(of) for of in zip(*rounds, strict=True))
    return minimal, demo, openai


def _start(arguments: Sequence[str], ready: str, environment: Mapping[str, str]) -> float:
    """ready: that stands in the line by which it says that it is."""
    command = [sys.executable, *arguments]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    with process.stderr:
        lines: list[str] = []
        while ready not in (line := process.stderr.readline()):
            assert line, "it ended: " + "".join(lines)
            lines.append(line)
        process.kill()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime
