"""Minutes of one fault after another, while people talk: nothing may be lost or answered twice.

The other side has the gateway drop, the session be over, requests be refused with 429, the model stall and fail. Here
the disk is full now and then, or Redis is restarted.
"""

from __future__ import annotations

import asyncio
import resource
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.load.lag import watched
from bench.load.run import Row, running
from bench.load.steady import CHANNELS, rows_of, talk, watch

RATE = 100.0
MAX_LAG_SECONDS = 0.1
EVERY_SECONDS, FULL_SECONDS = 30.0, 5.0
ROOM = 4_096  # bytes that a file may have while the disk is full


async def soak(folder: Path, minutes: float, *, with_redis: bool) -> list[Row]:
    sizes = list[float]()
    async with _store(with_redis) as settings, running(folder, CHANNELS, **settings) as peer, watched() as lags:
        watching = asyncio.create_task(watch(sizes))
        told = await peer.tell("soak", **talk(RATE, minutes))
        watching.cancel()
    return [
        Row("mentions answered; said what was wrong", f"{told['answered']:,}; {told['asked'] - told['answered']:,}"),
        *rows_of(told, lags, sizes, MAX_LAG_SECONDS),
    ]


@asynccontextmanager
async def _store(with_redis: bool) -> AsyncIterator[dict[str, str]]:
    """The settings of a store that fails now and then."""
    if with_redis:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder, socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
            probe.close()
            server = _Redis(folder, port)
            failing = asyncio.create_task(server.restart_often())
            try:
                yield {"redis_url": f"redis://127.0.0.1:{port}"}
            finally:
                failing.cancel()
                server.stop()
        return
    failing = asyncio.create_task(_fill_disk())
    try:
        yield {}
    finally:
        failing.cancel()
        _limit_files(resource.RLIM_INFINITY)


async def _fill_disk() -> None:
    """No file of this process can grow for some seconds: as on a full disk, and nobody has to be root for it."""
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        _limit_files(ROOM)
        await asyncio.sleep(FULL_SECONDS)
        _limit_files(resource.RLIM_INFINITY)


def _limit_files(size: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))


class _Redis:
    """A server that keeps what it is given on disk."""

    def __init__(self, folder: str, port: int) -> None:
        binary = shutil.which("redis-server")
        if binary is None:
            raise SystemExit("There is no redis-server here: install Debian's package of that name.")
        kept = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        self._command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, *kept]
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        assert any("eady to accept connections" in line for line in process.stdout)
        return process

    async def restart_often(self) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            self.stop()
            await asyncio.sleep(FULL_SECONDS)
            self._process = await asyncio.to_thread(self._start)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
