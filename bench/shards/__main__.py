"""`python -m bench.shards`: the bot in several processes, of which one after the other is killed.

10,000 servers on 16 shards, 500 messages a second; the loopback Discord, the model and Redis are processes of their
own. Exits with 1 where a question is lost or answered twice, or a shard was not served again within a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import platform
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import cycle
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import orjson

from bench.__main__ import Peer
from bench.kill.day import KEY, SETTINGS
from bench.shards.faults import Faults
from bench.shards.processes import Bot, Redis, Use

START_SECONDS, SHARD_SECONDS = 60.0, 10.0  # that a start takes at most, and each shard more
MOST_SECONDS = 60.0  # until a shard is served again
SETTLE_SECONDS, PAUSE_SECONDS = 180.0, 5.0
REDIS_AWAY_SECONDS = 2.0
WATCH_SECONDS = 2.0
SHOWN = 10  # findings that are printed
NO_CAP = str(10**12)  # nobody reaches it, and every call is counted


class Run:
    """One run, in a folder."""

    def __init__(self, folder: Path, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.redis = Redis(folder)
        self.bots: list[Bot] = []
        self.world_use = Use()
        self.folder = folder

    async def spend(self) -> dict[str, Any]:
        """Gives what the world counted."""
        await self.redis.start()
        try:
            async with self._world() as peer, self._running(peer):
                await self._connected(peer, START_SECONDS + SHARD_SECONDS * self.arguments.shards)
                print(f"{datetime.now(UTC):%H:%M:%S} all shards are connected", flush=True)
                await peer.tell("talk", rate=self.arguments.rate)
                await self._trouble(peer)
                await peer.tell("hush")
                with suppress(TimeoutError):  # until nothing is left to be answered, or nothing more comes of it
                    async with asyncio.timeout(SETTLE_SECONDS):
                        while (await peer.tell("unanswered", logs=self._logs))["count"]:
                            await asyncio.sleep(PAUSE_SECONDS)
                await asyncio.sleep(PAUSE_SECONDS)
                counted = await peer.tell("count", logs=self._logs)
                await asyncio.gather(*(bot.stop() for bot in self.bots))
                return {**counted, "after_stop": await peer.tell("count", logs=self._logs)}
        finally:
            await self.redis.end(signal.SIGKILL)

    @asynccontextmanager
    async def _world(self) -> AsyncIterator[Peer]:
        told = self.arguments
        options = {
            "servers": told.servers,
            "shards": told.shards,
            "max_concurrency": told.max_concurrency,
            "asked_share": told.asked,
            "seed": told.seed,
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.shards.world", orjson.dumps(options).decode(),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=100_000_000,
        )  # fmt: skip
        self.world_use.begin()
        watching = asyncio.create_task(self._watch(process.pid))
        try:
            yield Peer(process)
        finally:
            watching.cancel()
            process.kill()
            await process.wait()

    async def _watch(self, world: int) -> None:
        now = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            self.world_use.note(world, now())
            self.redis.use.note(self.redis.process.pid, now())
            for bot in self.bots:
                bot.use.note(bot.process.pid, now())

    @asynccontextmanager
    async def _running(self, peer: Peer) -> AsyncIterator[None]:
        """The bot's processes."""
        at, told = await peer.hear(), self.arguments
        environment = SETTINGS | {
            **dict.fromkeys(("PERSON_TOKENS", "GUILD_TOKENS", "DAILY_TOKENS"), NO_CAP),
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": at["model"],
            "DISCORD_TOKEN": at["token"],
            "DISCORD_API_BASE": at["api"],
            "DISCORD_GATEWAY_URL": at["gateway"],
            "REDIS_URL": self.redis.url,
            "BURST_SECONDS": "0",
        }
        if told.processes > 1:
            environment |= {"SHARDS": "auto", "SHARD_COUNT": str(told.shards)}
        self.bots += [Bot(self.folder / f"bot-{number}", environment) for number in range(told.processes)]
        running = asyncio.gather(*(bot.run() for bot in self.bots))
        here = asyncio.current_task()
        running.add_done_callback(lambda ended: ended.exception() and here and here.cancel())
        await asyncio.sleep(0)
        try:
            yield
        finally:
            for bot in self.bots:
                await bot.stop()
            with suppress(asyncio.CancelledError):
                await running

    async def _connected(self, peer: Peer, seconds: float) -> None:
        wanted = list(range(self.arguments.shards))
        async with asyncio.timeout(seconds):
            while (await peer.tell("state"))["shards"] != wanted:
                await asyncio.sleep(0.5)

    async def _trouble(self, peer: Peer) -> None:
        """The kills and the restarts of Redis, at their times."""
        told, now = self.arguments, asyncio.get_running_loop().time
        if told.faults:
            await Faults(self.bots, self.redis, peer).happen()
            return
        begun, seconds = now(), 60 * told.minutes
        one = cycle(self.bots)
        kills = range(1, math.ceil(seconds / told.kill_every))
        acts = [(told.kill_every * number, partial(self._kill, peer, one)) for number in kills]
        numbers = cycle((signal.SIGKILL, signal.SIGTERM))
        for number, by in zip(range(told.redis_restarts), numbers, strict=False):
            # Between two kills, not with one.
            at = seconds * (number + 1) / (told.redis_restarts + 1) // told.kill_every * told.kill_every
            acts.append((at + told.kill_every / 2, partial(self._restart_redis, by)))
        acts += [(seconds * (n + 1) / (told.deploys + 1), partial(self._deploy, peer)) for n in range(told.deploys)]
        for at, act in sorted(acts, key=lambda pair: pair[0]):
            await asyncio.sleep(begun + at - now())
            await act()
        await asyncio.sleep(begun + seconds - now())

    async def _kill(self, peer: Peer, bots: Any) -> None:
        bot = next(bots)
        await peer.tell("kill")
        bot.kill()
        print(f"{datetime.now(UTC):%H:%M:%S} killed process {self.bots.index(bot)}", flush=True)

    async def _deploy(self, peer: Peer) -> None:
        """One process after the other."""
        for number, bot in enumerate(self.bots):
            print(f"{datetime.now(UTC):%H:%M:%S} deploying process {number} anew", flush=True)
            await bot.deploy()
            await self._connected(peer, START_SECONDS + SHARD_SECONDS * self.arguments.shards)

    async def _restart_redis(self, by: signal.Signals) -> None:
        print(f"{datetime.now(UTC):%H:%M:%S} restarting Redis by {by.name}", flush=True)
        await self.redis.restart(by, REDIS_AWAY_SECONDS)

    @property
    def _logs(self) -> list[str]:
        return [str(bot.log) for bot in self.bots]

    def complaints(self) -> Counter[tuple[str, str]]:
        """The warnings and errors in the logs."""
        found: Counter[tuple[str, str]] = Counter()
        for bot in self.bots:
            for line in bot.log.read_bytes().splitlines():
                if b'"level":"warning"' in line or b'"level":"error"' in line:
                    told = orjson.loads(line)
                    found[told["level"], told["event"].partition("\n")[0]] += 1
        return found


def _report(run: Run, counted: dict[str, Any], seconds: float) -> bool:
    """Prints what was counted. Whether all bounds are held."""
    told, last = run.arguments, counted["after_stop"]
    taken = counted["taken_over"]
    longest = max([*taken, *counted["open"].values()], default=0.0)
    rows = [
        ("messages sent", f"{last['sent']:,}", "", True),
        ("questions asked by mention", f"{last['asked']:,}", "", True),
        ("to be answered, follow-ups too", f"{last['accepted']:,}", "", True),
        ("answered", f"{last['answered']:,}", "", True),
        ("could not be answered, and who had called was told", f"{last['failed']:,}", "", True),
        ("lost", str(last["lost"]), "0", not last["lost"]),
        ("answered twice", str(last["doubled"]), "0", not last["doubled"]),
        ("first text, p50", _seconds(last["first_p50"]), "", True),
        ("first text, p99", _seconds(last["first_p99"]), "", True),
        ("shards taken over after a kill", str(len(taken)), "", True),
        ("until a shard is served again, p50", _seconds(taken[len(taken) // 2] if taken else None), "", True),
        ("until a shard is served again, at most", _seconds(longest), f"{MOST_SECONDS:.0f} s", longest <= MOST_SECONDS),
        ("shards interrupted otherwise", str(len(counted["interrupted"])), "", True),
        ("of these, at most", _seconds(max(counted["interrupted"], default=None)), "", True),
        ("one shard with two connections", str(counted["more_than_one"]), "0", not counted["more_than_one"]),
        ("IDENTIFYs, and of them too early", f"{counted['identified']}, {counted['too_early']}", "", True),
        ("ends that nobody ordered", str(sum(len(bot.ended) for bot in run.bots)), "", True),
    ]
    print(f"\n{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {os.cpu_count()} cores")
    print(
        f"{told.processes} processes, {told.servers:,} servers, {told.shards} shards, {told.rate:g} messages a second"
    )
    print("\n| what | measured | bound |\n|---|---|---|")
    for what, measured, bound, held in rows:
        print(f"| {what} | {measured}{'' if held else ' **over**'} | {bound} |")
    print("\n| process | lives | RSS: last one after 30 s | at its end | CPU of a core |\n|---|---|---|---|---|")
    bots = [(f"bot {number}", bot.use) for number, bot in enumerate(run.bots)]
    for name, use in (*bots, ("Redis", run.redis.use), ("loopback Discord, people and model", run.world_use)):
        begun, ended = (f"{rss / 2**20:.0f} MB" for rss in use.last_life)
        print(f"| {name} | {len(use.rss)} | {begun} | {ended} | {100 * use.cpu_seconds / seconds:.0f} % |")
    print()
    for number, bot in enumerate(run.bots):
        for line in bot.ended:
            print(f"Process {number} ended with {line}")
    for (level, event), times in run.complaints().most_common():
        print(f"Logged {times} times: {level} {event}")
    (run.folder / "findings.txt").write_text("\n".join(last["findings"]), encoding="utf-8")
    for finding in last["findings"][:SHOWN]:
        print(finding)
    return all(held for *_, held in rows)


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f} s"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.shards", description=__doc__)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--servers", type=int, default=10_000)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--max-concurrency", type=int, default=1, help="shards that may identify within 5 s")
    parser.add_argument("--rate", type=float, default=500, help="messages a second")
    parser.add_argument("--asked", type=float, default=0.01, help="the share of them that mention the bot")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kill-every", type=float, default=300, help="seconds")
    parser.add_argument("--redis-restarts", type=int, default=2)
    parser.add_argument("--deploys", type=int, default=0, help="rolling ones: a new process starts, an old one stops")
    parser.add_argument("--faults", action="store_true", help="those of faults.py instead of kills and deploys")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="what people draw lots by")
    arguments = parser.parse_args()
    folder = Path(mkdtemp(prefix="parley-shards-"))
    print(f"--seed {arguments.seed}, in {folder}", flush=True)
    run = Run(folder, arguments)

    async def timed() -> tuple[dict[str, Any], float]:
        begun = asyncio.get_running_loop().time()
        return await run.spend(), asyncio.get_running_loop().time() - begun

    held = _report(run, *asyncio.run(timed()))
    if held:
        shutil.rmtree(folder)
    else:
        print(f"\nThe logs are in {folder}, and all findings in findings.txt there.")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
