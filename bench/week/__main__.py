"""`make week`: seven days in 50 channels, and what was offered in them. Exits with 1 where a bound is not held.

The bot's pulse comes every 5 s of the week, all 120,960 of them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.week.checks import Check, Outcome, check, outcome
from bench.week.record import Kind, Record
from bench.week.week import Week, spend_week
from tests.support.stub_model import StubModel

MAX_FINDINGS = 5
COLUMNS = [one for one in Outcome if one is not Outcome.UNEXPLAINED]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.week", description=__doc__)
    parser.add_argument("--channels", type=int, default=50)
    parser.add_argument("--days", type=float, default=7)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="what it draws lots by")
    arguments = parser.parse_args()
    print(f"--channels {arguments.channels} --days {arguments.days:g} --seed {arguments.seed}", flush=True)
    began = perf_counter()
    week = asyncio.run(_spend(arguments))
    records = list(week.records.values())
    checks = [*check(records), Check("errors that the bot logged", str(len(week.errors)), "0", week.errors)]
    rows = [[kind, *_counts([r for r in records if r.kind is kind])] for kind in Kind]
    rows.append(["all", *_counts(records)])
    table = _markdown(["kind of channel", "channels", "offers", *COLUMNS], rows)
    held = [[one.what, f"{one.measured}{' **over**' if one.findings else ''}", one.bound] for one in checks]
    bounds = _markdown(["what", "measured", "bound"], held)
    said, replies = (sum(map(len, per)) for per in ([r.said for r in records], [r.replies for r in records]))
    asked = [asked for record in records for asked in record.asked.values()]
    ways = ", ".join(f"{count} {how}" for how, count in Counter(one.how for one in asked).most_common())
    seconds = perf_counter() - began
    print(f"{said:,} messages of people, {replies:,} replies of the bot's, {week.pulses:,} pulses, in {seconds:.0f} s")
    print(f"{len(asked):,} questions and errors: {ways}")
    print("\n".join(["", *table, "", *bounds]))
    for one in checks:
        for finding in one.findings[:MAX_FINDINGS]:
            print(f"{one.what}: {finding}")
    return 1 if any(one.findings for one in checks) else 0


async def _spend(arguments: argparse.Namespace) -> Week:
    stub = StubModel()
    await stub.start()
    os.environ.update(OPENAI_BASE_URL=stub.url, OPENAI_API_KEY="key-of-the-stub")
    try:
        with TemporaryDirectory() as folder:
            return await spend_week(
                Path(folder), stub, channels=arguments.channels, days=arguments.days, seed=arguments.seed
            )
    finally:
        await stub.stop()


def _counts(records: Sequence[Record]) -> list[int]:
    offers = [outcome(record, offer) for record in records for offer in record.offers]
    return [len(records), len(offers), *(offers.count(column) for column in COLUMNS)]


def _markdown(head: Sequence[object], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


if __name__ == "__main__":
    sys.exit(main())
