"""The processes of the bench: a Redis that can be restarted, and the bot's, each started again whenever it ends."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import redis.asyncio as redis

BOT = Path(__file__).parents[2] / "bot.py"
RESTART_SECONDS = 1.0  # until the host starts again what has ended
END_SECONDS = 60.0
SETTLED_SECONDS = 30.0  # a start takes at most
CANNOT_WORK = 2  # the exit code of settings that cannot work
PAGE, TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Use:
    """What a process takes, over all its lives. rss: (at, bytes), of each life in order."""

    rss: list[list[tuple[float, int]]] = field(default_factory=list)
    cpu: float = 0.0
    _cpu_of_life: float = 0.0

    def begin(self) -> None:
        self.rss.append([])
        self.cpu += self._cpu_of_life
        self._cpu_of_life = 0.0

    def note(self, pid: int, now: float) -> None:
        """Reads it where the process still runs."""
        with suppress(OSError, IndexError, ValueError):
            rss = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
            if not rss:  # it has ended
                return
            self.rss[-1].append((now, rss))
            times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            self._cpu_of_life = (int(times[11]) + int(times[12])) / TICKS

    @property
    def last_life(self) -> tuple[int, int]:
        """RSS once its start was over, and at its end."""
        seen = self.rss[-1] or [(0.0, 0)]
        settled = [rss for at, rss in seen if at - seen[0][0] >= SETTLED_SECONDS]
        return (settled or [seen[-1][1]])[0], seen[-1][1]

    @property
    def cpu_seconds(self) -> float:
        return self.cpu + self._cpu_of_life


class Redis:
    """A redis-server that appends all to a file, and so has it again after a restart."""

    def __init__(self, folder: Path) -> None:
        self.use = Use()
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}"

    async def start(self) -> None:
        binary = shutil.which("redis-server")
        if binary is None:
            sys.exit("There is no redis-server here: install Debian's package of that name.")
        options = {"bind": "127.0.0.1", "port": self._port, "dir": self._folder, "appendonly": "yes", "save": ""}
        arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        self.process = await asyncio.create_subprocess_exec(binary, *arguments, stdout=asyncio.subprocess.DEVNULL)
        self.use.begin()

    async def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        await self.process.wait()

    async def empty(self) -> None:
        """It loses all that it has."""
        async with redis.Redis.from_url(self.url) as client:
            await client.flushall()

    async def restart(self, number: signal.Signals, away: float) -> None:
        await self.end(number)
        await asyncio.sleep(away)
        await self.start()


class Bot:
    """`python bot.py`, kept running. log: the file that it writes; ended: how it ended by itself, each time.

    is_to_end: whether it is no wonder that this life ends.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir()
        self.log = folder / "log.jsonl"
        self.use = Use()
        self.ended: list[str] = []
        self._folder = folder
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **environment}
        self._deployed = 0
        self._stopping = False

    async def _start(self) -> None:
        environment = self._environment | {"STATE_DIR": str(self._folder / f"state-{self._deployed}")}
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, str(BOT), cwd=self._folder, env=environment, stdout=log, stderr=log
            )
        self.use.begin()
        self.is_to_end = False

    async def run(self) -> None:
        """Until it is stopped. RuntimeError where its settings cannot work."""
        await self._start()
        while not self._stopping:
            process = self.process
            code = await process.wait()
            is_replaced = process is not self.process
            if not self.is_to_end and not ((self._stopping or is_replaced) and code == 0):
                self.ended.append(f"{code}: {self._last_line()}")
            if code == CANNOT_WORK:
                raise RuntimeError(f"The bot cannot work: {self._last_line()}")
            if not (self._stopping or is_replaced):
                await asyncio.sleep(RESTART_SECONDS)
                await self._start()

    async def deploy(self) -> None:
        """Starts it anew, and stops the old one while the new one starts. Until that has ended."""
        old = self.process
        self._deployed += 1  # a new one has a disk of its own
        await self._start()
        old.terminate()
        await old.wait()

    def kill(self) -> None:
        self.is_to_end = True
        self.use.note(self.process.pid, asyncio.get_running_loop().time())
        self.process.kill()

    async def stop(self) -> None:
        """By SIGTERM; killed where it takes too long, which counts as an end of its own."""
        self._stopping = True
        with suppress(ProcessLookupError):
            self.process.terminate()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()

    def _last_line(self) -> str:
        lines = self.log.read_bytes().splitlines()
        return lines[-1].decode(errors="replace")[:300] if lines else ""
