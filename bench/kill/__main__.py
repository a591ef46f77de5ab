"""`python -m bench.kill`: kills the bot 200 times and prints three numbers, and two of a busy server.

Exits with 1 where one of them is not 0.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import shutil
import sys
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

from bench.kill.busy import spend_busy_hour
from bench.kill.day import spend_day
from bench.kill.findings import WHAT


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.kill", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="what it draws lots by")
    arguments = parser.parse_args()
    # Of requests whose client was killed.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    folder = Path(mkdtemp(prefix="parley-kill-"))
    print(f"--kills {arguments.kills} --seed {arguments.seed}, in {folder}", flush=True)
    day = asyncio.run(spend_day(folder, kills=arguments.kills, seed=arguments.seed, tell=partial(print, flush=True)))
    result = day.count()
    for what, findings in zip(WHAT, result, strict=True):
        print(f"{what}: {len(findings)}")
    busy = folder / "busy"
    busy.mkdir()
    unanswered, doubled = asyncio.run(spend_busy_hour(busy, seed=arguments.seed))
    print(f"on a busy server, not answered: {len(unanswered)}, answered twice: {len(doubled)}", flush=True)
    if not any([*result, unanswered, doubled]):
        shutil.rmtree(folder)
        return 0
    (folder / "report.txt").write_text("\n".join(day.report(result)), encoding="utf-8")
    print(f"What happened stands in {folder}/report.txt.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
