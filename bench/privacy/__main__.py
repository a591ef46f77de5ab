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
from unittest.mock import patch

import tests.support
from bench.privacy.venues import Venues
from bench.privacy.walk import Walk
from bench.privacy.watch import Servers
from bench.shards.processes import Redis
from tests.support.clock import FakeClock
from tests.support.lives import open_stage
from tests.support.remote_agent import RemoteAgent
from tests.support.stub_model import StubModel
from tests.support.stub_responses import StubResponses

SHOWN = 40  # of the last things that happened
KINDS = "response", "conversation"  # of OPENAI_STATE
AGENTS = '[[agent]]\nname = "docs"\nkind = "ums"\nurl = "{}"\nabout = "Knows the handbook."\n'
ECHO = Path(tests.support.__file__).with_name("mcp_server.py")
SERVERS = json.dumps({"mcpServers": {"books": {"command": sys.executable, "args": [str(ECHO), "books"]}}})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.privacy", description=__doc__)
    parser.add_argument("--walks", type=int, default=20)
    parser.add_argument("--steps", type=int, default=60, help="in each life of the bot")
    parser.add_argument("--lives", type=int, default=2)
    parser.add_argument("--redis", action="store_true", help="keep things in Redis instead of a file")
    parser.add_argument("--openai-state", action="store_true", help="have OpenAI keep conversations, too")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="of the first walk")
    given = parser.parse_args()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # a bot that is killed hangs up on its model
    wrong = 0
    for seed in range(given.seed, given.seed + given.walks):
        how = {"in_redis": given.redis, "at_openai": given.openai_state}
        walk = asyncio.run(_take(seed, given.steps, given.lives, **how))
        options = f"{' --redis' if given.redis else ''}{' --openai-state' if given.openai_state else ''}"
        print(f"--seed {seed}{options} --walks 1: {len(walk.found)} found", flush=True)
        if walk.found:
            print("\n".join(walk.log[-SHOWN:]))
        wrong += bool(walk.found)
    print(f"{given.walks} walks of {given.lives} lives with {given.steps} steps each: {wrong} with something found")
    return 1 if wrong else 0


async def _take(seed: int, steps: int, lives: int, **how: bool) -> Walk:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return await walked(Path(folder) / "state", seed, steps=steps, lives=lives, **how)


async def walked(
    folder: Path, seed: int, *, steps: int, lives: int, in_redis: bool = False, at_openai: bool = False
) -> Walk:
    """A walk, which ends where something is found. folder, in_redis: where the bot keeps things; at_openai: whether
    OpenAI keeps conversations, too."""
    stub, docs, openai, venues = StubModel(), RemoteAgent(), StubResponses(), Venues()
    redis = Redis(folder.parent) if in_redis else None
    await stub.start(also=openai.routes())
    await docs.start()
    await venues.start()
    if redis:
        await redis.start()
        await asyncio.to_thread(folder.mkdir)  # which the bot makes for its log only
    ours = {"OPENAI_BASE_URL": stub.url, "OPENAI_API_KEY": "key-of-the-stub"}
    try:
        with patch.dict(os.environ, ours), patch("miniapps.venues.REQUEST_INTERVAL_SECONDS", 0.0):
            async with open_stage(stub, folder, clock=FakeClock()) as scene:
                walk = Walk(scene, Servers(docs, openai, venues), seed)
                walk.settings |= {"agents": AGENTS.format(docs.url), "mcp_config": SERVERS}
                if seed % 2:
                    walk.settings |= {"nominatim_url": venues.url}
                if at_openai:
                    walk.settings |= {"model": "openai:gpt-5", "openai_state": KINDS[seed // 2 % 2]}
                if redis:
                    walk.keep_in(redis.url)
                await walk.take(steps, lives)
                return walk
    finally:
        for server in (stub, docs, venues):
            await server.stop()
        if redis:
            await redis.end(SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
