"""A steady stream of messages, mixed as on servers: most are said where nobody calls the bot."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from bench.load.lag import Lags, watched
from bench.load.run import Row, answered, counted, lag_rows, resident, running

CHANNELS = 2_000
MENTIONS, LIVE = 0.005, 0.05  # shares of the messages: that call the bot; that are said where it was called lately
SECONDS = 1.0  # that the model takes
PATIENCE_SECONDS = 120.0
GROWTH = 1.05  # from the middle to the end; before, what is kept for minutes fills up
SAMPLE_SECONDS = 5.0


def talk(rate: float, minutes: float) -> dict[str, Any]:
    """What the other side is told."""
    how = {"mentions": MENTIONS, "live": LIVE, "seconds": SECONDS, "patience": PATIENCE_SECONDS}
    return {"rate": rate, "minutes": minutes, **how}


async def steady(folder: Path, rate: float, minutes: float, max_lag_seconds: float) -> list[Row]:
    sizes = list[float]()
    async with running(folder, CHANNELS) as peer, watched() as lags:
        watching = asyncio.create_task(watch(sizes))
        told = await peer.tell("talk", **talk(rate, minutes))
        watching.cancel()
    return [
        answered(told, told["asked"]),
        *rows_of(told, lags, sizes, max_lag_seconds),
    ]


def rows_of(told: dict[str, Any], lags: Lags, sizes: list[float], max_lag_seconds: float) -> list[Row]:
    start, middle, end = sizes[0], sizes[len(sizes) // 2], sizes[-1]
    return [
        Row("messages", f"{told['posted']:,}; {told['answers']:,} answered"),
        *counted(told),
        *lag_rows(lags, max_lag_seconds),
        Row("memory at the start, in the middle, at the end", f"{start:.0f}, {middle:.0f}, {end:.0f} MB"),
        Row("the end against the middle", f"{end / middle:.3f}", f"{GROWTH}", end <= GROWTH * middle),
        Row("the other side behind its own schedule at the end", f"{told['behind']:.2f} s"),
        *(Row("said instead", text) for text in told["else"]),
    ]


async def watch(sizes: list[float]) -> None:
    while True:
        sizes.append(resident())
        await asyncio.sleep(SAMPLE_SECONDS)
