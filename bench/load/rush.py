"""Many mentions at once, each in a channel of its own, and a model that takes seconds."""

from __future__ import annotations

from math import ceil
from pathlib import Path

from bench.load.lag import watched
from bench.load.run import Row, answered, counted, lag_rows, running

PEOPLE = 250
PATIENCE_SECONDS = 900.0
SECONDS = 5.0  # that the model takes
MAX_LAG_SECONDS = 0.1


async def rush(folder: Path, mentions: int, at_once: int) -> list[Row]:
    async with running(folder, mentions, turns_at_once=at_once) as peer, watched() as lags:
        told = await peer.tell("rush", count=mentions, people=PEOPLE, seconds=SECONDS, patience=PATIENCE_SECONDS)
    # With so many at once half of the answers can stand after so long at best.
    ideal, first, most = SECONDS * ceil(mentions / 2 / at_once), told["p50"] or float("inf"), told["at_once"]
    return [
        answered(told, mentions),
        *counted(told),
        Row(
            "the same, p50, against twice what TURNS_AT_ONCE allows",
            f"{first:.1f} s",
            f"{2 * ideal:.0f} s",
            first <= 2 * ideal,
        ),
        Row("first text of the last", f"{told['last'] or 0:.1f} s"),
        Row("requests of the model at once, at most", str(most), str(at_once), most <= at_once),
        *lag_rows(lags, MAX_LAG_SECONDS),
        *(Row("said instead", text) for text in told["else"]),
    ]
