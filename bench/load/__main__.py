"""`python -m bench.load`: what one process carries; each figure beside its bound. Exits with 1 where one is not held.

The bot runs here; the loopback Discord and its model are a process of their own, and a bare event loop beside them
tells how late the machine makes whoever sleeps.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.load.memory import memory
from bench.load.run import Row
from bench.load.rush import rush
from bench.load.soak import soak
from bench.load.steady import steady
from web.logs import configure_logging

Scenario = Callable[[Path], Coroutine[None, None, list[Row]]]


def chosen(arguments: argparse.Namespace) -> Iterator[tuple[str, Scenario]]:
    if arguments.scenario == "rush":
        for mentions in arguments.mentions:
            what = f"{mentions:,} mentions at once, TURNS_AT_ONCE={arguments.at_once}"
            yield what, partial(rush, mentions=mentions, at_once=arguments.at_once)
    if arguments.scenario == "memory":
        for channels in arguments.channels:
            yield f"{channels:,} live conversations of 50 messages", partial(memory, channels=channels)
    if arguments.scenario == "soak":
        for store in ("SQLite, disk full now and then", "Redis, restarted now and then"):
            what = f"{arguments.minutes:g} minutes of faults, {store}"
            yield what, partial(soak, minutes=arguments.minutes, with_redis=store.startswith("Redis"))
    if arguments.scenario == "steady":
        for rate in arguments.rate:
            lag = 0.01 if rate <= 200 else 0.1
            what = f"{rate:,} messages a second for {arguments.minutes:g} minutes"
            yield what, partial(steady, rate=rate, minutes=arguments.minutes, max_lag_seconds=lag)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("--scenario", choices=["rush", "steady", "soak", "memory"], default="rush")
    parser.add_argument("--mentions", type=int, nargs="+", default=[1_000, 5_000], help="rush: so many at once")
    parser.add_argument("--at-once", type=int, default=64, help="rush: TURNS_AT_ONCE")
    parser.add_argument("--channels", type=int, nargs="+", default=[2_000], help="memory: so many conversations")
    parser.add_argument("--rate", type=int, nargs="+", default=[200, 1_000], help="steady: messages a second")
    parser.add_argument("--minutes", type=float, default=10, help="steady and soak: how long")
    arguments = parser.parse_args()
    is_held = True
    print(f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {os.cpu_count()} cores, load {_load()}")
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        configure_logging("info", (), nowhere)
        for what, scenario in chosen(arguments):
            with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                rows = asyncio.run(scenario(Path(folder)))
            print(f"\n{what}, load {_load()}\n\n| what | measured | bound |\n|---|---|---|")
            for row in rows:
                print(f"| {row.what} | {row.measured}{'' if row.is_held else ' **over**'} | {row.bound} |", flush=True)
            is_held = is_held and all(row.is_held for row in rows)
    return 0 if is_held else 1


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    sys.exit(main())
