"""What a start costs: CPU seconds of the process until Discord has told it READY, with nothing stored yet."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

ROUNDS = 5
BOT = Path(__file__).parents[1] / "bot.py"


def starting(model: str, server: Mapping[str, str]) -> float:
    """The least of several starts. server: the addresses of a loopback Discord, and a token for it."""
    with TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            # As it is for those who run it: only the first start after an update compiles the modules.
            "PYTHONDONTWRITEBYTECODE": "",
            "DISCORD_TOKEN": server["token"],
            "DISCORD_API_BASE": server["api"],
            "DISCORD_GATEWAY_URL": server["gateway"],
            "MODEL": model,
            "OPENAI_API_KEY": "nobodys",
        }
        return min(_start({**environment, "STATE_DIR": f"{folder}/{number}"}) for number in range(ROUNDS))


def _start(environment: Mapping[str, str]) -> float:
    process = subprocess.Popen([sys.executable, BOT], env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    with process.stderr:
        lines: list[str] = []
        while '"ready"' not in (line := process.stderr.readline()):
            assert line, "it ended: " + "".join(lines)
            lines.append(line)
        process.kill()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime
