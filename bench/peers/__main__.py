"""`python -m bench.peers [--llmcord COMMAND]`: Parley beside its peers, and a table of it.

Each bot is a process of its own before a loopback Discord with Discord's rate limits, alone at its time, with the same
questions and a model that takes the same time for all. The runs of the bots alternate.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import platform
import re
import shutil
import sys
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median
from tempfile import mkdtemp

from bench.peers.bots import ROOT, Bot, llmcord, minimal, parley
from bench.peers.run import Measured, kill, measure
from bench.peers.timed_model import LONG, SHORT

PAGE = ROOT / "docs" / "measurements.md"
PART = re.compile(r"(?<=<!-- by python -m bench.peers --write -->\n).*?(?=<!-- end -->)", re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--llmcord", metavar="COMMAND", help="how llmcord is started, where it is installed")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--asks", type=int, default=30, help="questions one by one in a run")
    parser.add_argument("--answers", type=int, default=300, help="to questions 20 at a time, in a run")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="what the moments of kills are drawn by")
    parser.add_argument("--write", action="store_true", help="puts the table into docs/measurements.md")
    arguments = parser.parse_args()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # of requests whose client was killed
    bots = [parley(), minimal(), *([llmcord(arguments.llmcord)] if arguments.llmcord else [])]
    folder = Path(mkdtemp(prefix="parley-peers-"))
    load = os.getloadavg()[0]
    measured = asyncio.run(run(bots, folder, arguments))
    text = f"\n{where(load)}\n\n{table(measured)}\n\n"
    print(text)
    if arguments.write:
        PAGE.write_text(PART.sub(lambda _: text, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    if not any(each.unanswered for each in measured.values()):
        shutil.rmtree(folder)
        return 0
    print(f"Some did not answer without any kill; their logs are in {folder}.")
    return 1


async def run(bots: list[Bot], folder: Path, arguments: argparse.Namespace) -> dict[str, Measured]:
    measured = {bot.name: Measured() for bot in bots}
    for number in range(arguments.runs):
        for bot in bots:
            here = _made(folder / f"{bot.name} {number}")
            tell(f"{bot.name}, run {number + 1} of {arguments.runs}")
            await measure(bot, here, measured[bot.name], asks=arguments.asks, answers=arguments.answers)
    for bot in bots:
        tell(f"{bot.name}, {arguments.kills} kills")
        here = _made(folder / f"{bot.name} killed")
        await kill(bot, here, measured[bot.name], kills=arguments.kills, seed=arguments.seed)
    return measured


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def table(measured: dict[str, Measured]) -> str:
    rows = [["", *measured], ["---"] * (len(measured) + 1)]
    columns = [_column(each) for each in measured.values()]
    rows += [[what, *(column[what] for column in columns)] for what in columns[0]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _column(of: Measured) -> dict[str, str]:
    return {
        "start until Discord has said READY": f"{median(of.start):.1f} s",
        "memory when idle": f"{median(of.idle):.0f} MB",
        "memory after the answers of a run": f"{median(of.busy):.0f} MB",
        "CPU of an answer, 20 at a time": f"{1000 * median(of.cpu):.0f} ms",
        "mention to the model's request, median and p95": _spread(of.request),
        "mention to the first text of the answer": _spread(of.first),
        "mention to the whole answer": _spread(of.whole),
        f"REST calls of an answer of {SHORT.characters} characters": _calls(of.short),
        f"REST calls of an answer of {LONG.characters:,} characters": _calls(of.long),
        "not answered without any kill": f"{of.unanswered}",
        "asked shortly before a kill, and lost": f"{of.cut_lost} of {of.cut}",
        "asked while it was down, and lost": f"{of.away_lost} of {of.away}",
        "answered twice": f"{of.doubled}",
    }


def _spread(seconds: list[float]) -> str:
    in_order = sorted(seconds)
    return (
        f"{1000 * median(in_order):,.0f}, {1000 * in_order[len(in_order) * 95 // 100]:,.0f} ms" if seconds else "none"
    )


def _calls(answers: list[Counter[str]]) -> str:
    kinds = Counter[str]()
    for each in answers:
        kinds += each
    parts = ", ".join(f"{count / len(answers):.1f} {kind}" for kind, count in kinds.most_common())
    return f"{fmean(each.total() for each in answers):.1f} ({parts})" if answers else "none"


def where(load_before: float) -> str:
    """When and on what it was measured."""
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    cores = f"{os.cpu_count()} cores ({names[0] if names else platform.machine()})"
    with_what = f"discord.py {version('discord.py')}, pydantic-ai {version('pydantic-ai-slim')}"
    load = f"load {load_before:.0f} before and {os.getloadavg()[0]:.0f} after"
    return f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {with_what}, {cores}, {load}:"


if __name__ == "__main__":
    sys.exit(main())
