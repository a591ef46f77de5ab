"""The bot of a load run: in this process, with the loopback Discord and its model in another."""

from __future__ import annotations

import gc
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.__main__ import Peer, connected, world
from bench.load.lag import Lags, p99
from bot import Parley, create_bot, use_server
from command_line import tune_memory
from config import Settings

PAGE = os.sysconf("SC_PAGE_SIZE")


class Row(NamedTuple):
    """A line of the table. bound: what it is held to, empty: nothing."""

    what: str
    measured: str
    bound: str = ""
    is_held: bool = True


@asynccontextmanager
async def running(folder: Path, channels: int, **settings: Any) -> AsyncIterator[Peer]:
    """A bot in so many channels of one server. Gives the other side of it."""
    async with running_bot(folder, channels, **settings) as (_, peer):
        yield peer


@asynccontextmanager
async def running_bot(
    folder: Path, channels: int, options: Mapping[str, Any] | None = None, **settings: Any
) -> AsyncIterator[tuple[Parley, Peer]]:
    """The same with the bot itself. options: of create_bot."""
    async with world(channels, "bench.load.world") as peer:
        at = await peer.hear()
        use_server(at["api"], at["gateway"])
        os.environ.update(OPENAI_BASE_URL=at["model"], OPENAI_API_KEY="loopback")
        chosen = Settings(model="openai-chat:stub", state_dir=folder, **settings)
        bot = create_bot(chosen, guild_ready_timeout=0.05, **(options or {}))
        gc.freeze()  # as bot.py does, and:
        tune_memory()
        async with connected(bot, at["token"]):
            yield bot, peer


def resident() -> float:
    """Megabytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE / 1e6


def answered(told: dict[str, Any], asked: int) -> Row:
    asked -= told["refused"]
    return Row("mentions answered, without an error", f"{told['answered']:,}", f"{asked:,}", told["answered"] == asked)


def counted(told: dict[str, Any]) -> list[Row]:
    """How many were not answered at all, or twice, and how long people waited."""
    rows = [Row("refused, which people were told once each", f"{told['refused']:,}")] if told["refused"] else []
    rows += [Row("lost, doubled", f"{told['lost']}, {told['doubled']}", "0, 0", not (told["lost"] or told["doubled"]))]
    if told["p50"] is not None:
        rows.append(Row("first text, p50 and p99", f"{told['p50']:.2f} s, {told['p99']:.2f} s"))
    return rows


def lag_rows(lags: Lags, most_seconds: float) -> list[Row]:
    """How late the event loop was, beside the machine's own share in it."""
    late, used, machine = p99(lags.late), p99(lags.used), p99(lags.machine)
    most, alone = lags.late[-1], lags.machine[-1]
    return [
        Row("event loop late, p99", f"{1e3 * late:.1f} ms", f"{1e3 * most_seconds:.0f} ms", late <= most_seconds),
        Row("the loop's own CPU in a tick of 10 ms, p99", f"{1e3 * used:.1f} ms"),
        Row("a bare loop beside it late, p99: the machine's share", f"{1e3 * machine:.1f} ms"),
        Row("event loop late, at most; the bare one", f"{1e3 * most:.0f} ms; {1e3 * alone:.0f} ms"),
    ]
