"""`python -m bench.load`: 1,000 mentions at once, each in a channel of its own, and a model that takes 5 s.

The bot runs here; the loopback Discord and the model are a process of their own. Exits with 1 where a bound is not
held.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import platform
import sys
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time
from typing import Any

from bench.__main__ import connected, world
from bot import create_bot, use_server
from config import Settings
from web.logs import configure_logging

TICK_SECONDS = 0.01
PATIENCE_SECONDS = 600.0
PEOPLE = 250
MAX_LAG_SECONDS = 0.1


async def lags(ended: asyncio.Event) -> tuple[list[float], list[float]]:
    """How late the event loop was in each tick, and what CPU it had used in it, which is its own share in that.

    In seconds, sorted. A stall counts for every tick that fell into it.
    """
    now = asyncio.get_running_loop().time
    late, used = [], []
    while not ended.is_set():
        due, before = now() + TICK_SECONDS, thread_time()
        await asyncio.sleep(TICK_SECONDS)
        late += _ticks(now() - due)
        used += _ticks(thread_time() - before)
    return sorted(late), sorted(used)


def _ticks(stall: float) -> list[float]:
    return [stall - passed * TICK_SECONDS for passed in range(max(0, int(stall / TICK_SECONDS)) + 1)]


async def rush(
    folder: Path, mentions: int, seconds: float, at_once: int
) -> tuple[dict[str, Any], list[float], list[float]]:
    async with world(channels=mentions) as peer:
        at = await peer.hear()
        use_server(at["api"], at["gateway"])
        os.environ.update(OPENAI_BASE_URL=at["model"], OPENAI_API_KEY="loopback")
        settings = Settings(model="openai-chat:stub", state_dir=folder, turns_at_once=at_once)
        bot = create_bot(settings, guild_ready_timeout=0.05)
        gc.freeze()  # as bot.py does
        async with connected(bot, at["token"]):
            ended = asyncio.Event()
            watching = asyncio.create_task(lags(ended))
            told = await peer.tell("rush", count=mentions, people=PEOPLE, seconds=seconds, patience=PATIENCE_SECONDS)
            ended.set()
            return told, *(await watching)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mentions", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the model takes")
    parser.add_argument("--at-once", type=int, default=64, help="TURNS_AT_ONCE")
    arguments = parser.parse_args()
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
    ):
        configure_logging("info", (), nowhere)
        told, late, used = asyncio.run(rush(Path(folder), arguments.mentions, arguments.seconds, arguments.at_once))
    most = told["at_once"]
    lag, held_up = (ticks[len(ticks) * 99 // 100] for ticks in (late, used))
    ideal = arguments.seconds * ceil(arguments.mentions / 2 / arguments.at_once)
    errors = arguments.mentions - told["answered"]
    first = told["p50"] or float("inf")
    rows = [
        ("answered", f"{told['answered']:,}", f"{arguments.mentions:,}", errors == 0),
        ("first text, median", f"{first:.1f} s", f"{2 * ideal:.0f} s", first <= 2 * ideal),
        ("first text of the last", f"{told['last'] or 0:.1f} s", "", True),
        ("requests of the model at once, at most", str(most), str(arguments.at_once), most <= arguments.at_once),
        ("event loop late, p99", f"{1000 * lag:.0f} ms", f"{1000 * MAX_LAG_SECONDS:.0f} ms", lag <= MAX_LAG_SECONDS),
        ("of that by CPU of its own, p99", f"{1000 * held_up:.0f} ms", "", True),
        ("event loop late, at most", f"{1000 * late[-1]:.0f} ms", "", True),
    ]
    where = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}"
    print(f"{datetime.now(UTC):%Y-%m-%d}, {where}, TURNS_AT_ONCE={arguments.at_once}")
    print("\n| what | measured | bound |\n|---|---|---|")
    for what, measured, bound, held in rows:
        print(f"| {what} | {measured}{'' if held else ' **over**'} | {bound} |")
    for text in told["else"]:
        print(f"\nSaid instead: {text}")
    return 0 if all(held for *_, held in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
