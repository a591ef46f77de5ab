"""Runs worker.py in a process of its own, so that no file can crash the bot or use up its memory."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

WORKER = Path(__file__).with_name("worker.py")
SECONDS = 30.0
ENDING_SECONDS = 1.0  # in which a worker that has written everything may still end by itself
MAX_OUTPUT = 4_000_000  # bytes
ENVIRONMENT = {"PILLOW_BLOCK_SIZE": "1m"}  # the step in which Pillow allocates memory; nothing else, and no key


async def run(job: str, room: int, chunks: AsyncIterator[bytes]) -> tuple[dict[str, Any], bytes]:
    """Returns what the worker reports about a file, and its text or picture.

    job, room: as in worker.py. The chunks are piped to the worker, so that the bot has only one in memory at a time.
    """
    worker = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(WORKER),
        job,
        str(room),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env=ENVIRONMENT,
        cwd="/",
    )
    try:
        async with asyncio.timeout(SECONDS):
            told = await _talk(worker, chunks)
            await worker.wait()
            return told
    except TimeoutError:
        return {"problem": "late"}, b""
    finally:
        # If a worker that has just ended is killed, asyncio misses its exit and warns of that.
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDING_SECONDS if worker.stdout and worker.stdout.at_eof() else 0):
                await worker.wait()
        with suppress(ProcessLookupError):
            worker.kill()
        await worker.wait()


async def _talk(worker: asyncio.subprocess.Process, chunks: AsyncIterator[bytes]) -> tuple[dict[str, Any], bytes]:
    assert worker.stdin is not None  # noqa: S101 - for the types
    assert worker.stdout is not None  # noqa: S101 - as above
    with suppress(BrokenPipeError, ConnectionResetError):  # it has read enough
        async for chunk in chunks:
            worker.stdin.write(chunk)
            await worker.stdin.drain()
    worker.stdin.close()
    said = b""
    while chunk := await worker.stdout.read(MAX_OUTPUT):
        said += chunk[: MAX_OUTPUT + 1 - len(said)]
    if len(said) > MAX_OUTPUT:  # a truncated picture is useless
        return {"problem": "complex"}, b""
    head, _, body = said.partition(b"\n")
    try:
        return dict(orjson.loads(head)), body
    except (orjson.JSONDecodeError, ValueError, TypeError):  # the worker was killed in the middle of its work
        return {"problem": "complex"}, b""
