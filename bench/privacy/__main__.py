"""`python -m bench.privacy`: random walks of four people with the real bot in the loopback Discord. Exits with 1 if
the model was told, or anything stored still holds, what was deleted, forgotten, opted out or is for others to read.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import sys
from pathlib import Path
from signal import SIGTERM
from tempfile import TemporaryDirectory

import tests.support
from bench.privacy.walk import SETTINGS, Walk
from bench.shards.processes import Redis
from tests.support.clock import FakeClock
from tests.support.lives import life, open_stage
from tests.support.remote_agent import RemoteAgent
from tests.support.stub_model import StubModel

SHOWN = 40  # of the last things that happened
STEPS_ALONE = 6  # while the bot is away
AGENTS = '[[agent]]\nname = "docs"\nkind = "ums"\nurl = "{}"\nabout = "Knows the handbook."\n'
ECHO = Path(tests.support.__file__).with_name("mcp_server.py")
SERVERS = json.dumps({"mcpServers": {"books": {"command": sys.executable, "args": [str(ECHO), "books"]}}})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.privacy", description=__doc__)
    parser.add_argument("--walks", type=int, default=20)
    parser.add_argument("--steps", type=int, default=60, help="in each life of the bot")
    parser.add_argument("--lives", type=int, default=2)
    parser.add_argument("--redis", action="store_true", help="keep things in Redis instead of a file")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="of the first walk")
    given = parser.parse_args()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # a bot that is killed hangs up on its model
    wrong = 0
    for seed in range(given.seed, given.seed + given.walks):
        walk = asyncio.run(_take(seed, given.steps, given.lives, in_redis=given.redis))
        print(f"--seed {seed}{' --redis' if given.redis else ''} --walks 1: {len(walk.found)} found", flush=True)
        if walk.found:
            print("\n".join(walk.log[-SHOWN:]))
        wrong += bool(walk.found)
    print(f"{given.walks} walks of {given.lives} lives with {given.steps} steps each: {wrong} with something found")
    return 1 if wrong else 0


async def _take(seed: int, steps: int, lives: int, *, in_redis: bool) -> Walk:
    stub = StubModel()
    await stub.start()
    os.environ.update(OPENAI_BASE_URL=stub.url, OPENAI_API_KEY="key-of-the-stub")
    try:
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            return await walked(stub, Path(folder) / "state", seed, steps=steps, lives=lives, in_redis=in_redis)
    finally:
        await stub.stop()


async def walked(stub: StubModel, folder: Path, seed: int, *, steps: int, lives: int, in_redis: bool = False) -> Walk:
    """A walk, which ends where something is found. folder, in_redis: where the bot keeps things."""
    docs, redis = RemoteAgent(), Redis(folder.parent) if in_redis else None
    await docs.start()
    if redis:
        await redis.start()
        await asyncio.to_thread(folder.mkdir)  # which the bot makes for its log only
    try:
        async with open_stage(stub, folder, clock=FakeClock()) as scene:
            walk = Walk(scene, docs, seed)
            settings = SETTINGS | {"agents": AGENTS.format(docs.url), "mcp_config": SERVERS}
            if redis:
                walk.keep_in(redis.url)
                settings["redis_url"] = redis.url
            for _ in range(lives):
                with walk.wakes():
                    async with life(scene, model="openai-chat:stub", **settings):
                        await walk.caught_up()
                        for _ in range(steps):
                            await walk.step()
                            if walk.found:
                                return walk
                        await walk.ends()
                for _ in range(STEPS_ALONE):
                    await walk.step()
            return walk
    finally:
        await docs.stop()
        if redis:
            await redis.end(SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
