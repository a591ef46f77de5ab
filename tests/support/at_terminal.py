"""The real program at a terminal, driven as somebody does who reads what it prints and types."""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.support.process import PROGRAM
from tests.support.scene import PATIENCE_SECONDS

INTERRUPT, END = "\x03", "\x04"  # Ctrl-C, of which the terminal makes SIGINT, and Ctrl-D


class AtTerminal:
    """A running program. shown: all that its terminal has shown."""

    def __init__(self, process: asyncio.subprocess.Process, master: int) -> None:
        self.shown = ""
        self._process = process
        self._master = master
        self._read_to = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a letter may come in two reads
        self._is_over = False
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(master, self._read)

    def _read(self) -> None:
        try:
            self.shown += self._decoder.decode(os.read(self._master, 65536)).replace("\r\n", "\n")
        except OSError:  # its other end is closed
            self._loop.remove_reader(self._master)
            self._is_over = True
        self._changed.set()

    async def sees(self, text: str) -> None:
        """Waits until this is shown behind what was waited for before."""
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * PATIENCE_SECONDS):
                while text not in self.shown[self._read_to :] and not self._is_over:
                    self._changed.clear()
                    await self._changed.wait()
        found = self.shown.find(text, self._read_to)
        assert found >= 0, f"{text!r} was not shown behind {self.shown[self._read_to :]!r}"
        self._read_to = found + len(text)

    def types(self, text: str, end: str = "\n") -> None:
        os.write(self._master, f"{text}{end}".encode())

    async def answers(self, question: str, text: str, end: str = "\n") -> None:
        """Waits for the question, and types this."""
        await self.sees(question)
        self.types(text, end)

    def close(self) -> None:
        self._loop.remove_reader(self._master)
        os.close(self._master)

    async def ended(self) -> int:
        """Its exit code."""
        async with asyncio.timeout(2 * PATIENCE_SECONDS):
            return await self._process.wait()


@asynccontextmanager
async def at_terminal(folder: Path, *arguments: str, **environment: str) -> AsyncIterator[AtTerminal]:
    """Runs it in the folder with this environment only; it is killed at the end if it has not ended."""
    master, terminal = os.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        *arguments,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb", **environment},
        preexec_fn=lambda: os.login_tty(terminal),
    )
    os.close(terminal)
    running = AtTerminal(process, master)
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        running.close()
