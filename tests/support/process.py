"""The real program as a process of its own: `python bot.py` with an environment, read line by line, and signalled."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tests.support.scene import PATIENCE_SECONDS

PROGRAM = Path(__file__).parents[2] / "bot.py"


@dataclass(slots=True)
class Program:
    """A running program. log: the lines of its stderr that are JSON; other: those that are not."""

    process: asyncio.subprocess.Process
    out: list[str] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def read(self) -> None:
        """Reads both its outputs until they end."""
        assert self.process.stdout
        assert self.process.stderr
        out, err = self.process.stdout, self.process.stderr
        await asyncio.gather(self._read(out, self.out.append), self._read(err, self._note))

    async def _read(self, stream: asyncio.StreamReader, keep: Callable[[str], None]) -> None:
        async for line in stream:
            keep(line.decode().rstrip("\n"))
            async with self._changed:
                self._changed.notify_all()

    def _note(self, line: str) -> None:
        if line.startswith("{"):
            self.log.append(orjson.loads(line))
        else:
            self.other.append(line)

    async def printed(self) -> str:
        """Its first line on stdout."""
        await self.until(lambda: bool(self.out))
        return self.out[0]

    async def logged(self, event: str, **fields: Any) -> dict[str, Any]:
        """The first entry that begins with these words in which these fields stand so, once there is one."""
        await self.until(lambda: bool(self._find(event, fields)))
        return self._find(event, fields)[0]

    def _find(self, event: str, fields: dict[str, Any]) -> list[dict[str, Any]]:
        return [e for e in self.log if f"{e['event']} ".startswith(f"{event} ") and fields.items() <= e.items()]

    async def until(self, predicate: Callable[[], bool]) -> None:
        async with asyncio.timeout(2 * PATIENCE_SECONDS), self._changed:
            await self._changed.wait_for(predicate)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        """Its exit code."""
        async with asyncio.timeout(2 * PATIENCE_SECONDS):
            return await self.process.wait()


@asynccontextmanager
async def program(folder: Path, *arguments: str, **environment: str) -> AsyncIterator[Program]:
    """Runs it in the folder with this environment only; it is killed at the end if it has not ended."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "BURST_SECONDS": "0", **environment}
    async with command(folder, [sys.executable, str(PROGRAM), *arguments], environment) as running:
        yield running


@asynccontextmanager
async def command(folder: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[Program]:
    """The same of any program."""
    process = await asyncio.create_subprocess_exec(
        *arguments,
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    running = Program(process)
    reading = asyncio.create_task(running.read())
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading


async def finished(folder: Path, *arguments: str, **environment: str) -> tuple[int, Program]:
    """Runs it to its own end: exit code and what it wrote."""
    async with program(folder, *arguments, **environment) as running:
        code = await running.ended()
    return code, running
