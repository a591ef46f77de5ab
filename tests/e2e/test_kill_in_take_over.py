"""Whoever takes a shard is killed on the way, at one moment after the other, and the next one goes on."""

from __future__ import annotations

import shutil
import signal
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from random import Random

import pytest

from bench.kill.day import KEY, SETTINGS
from bench.kill.findings import doubled, lost
from bench.kill.marked_model import MarkedModel
from bench.shards.crowd import Crowd
from bench.shards.loopback import Loopback
from bench.shards.processes import Redis
from tests.support.dying import MOMENTS, NEVER
from tests.support.process import Program, command
from tests.support.scene import PATIENCE_SECONDS, notify
from tests.support.stub_model import StubModel

COUNT = 2
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs Debian's package redis-server")
@pytest.mark.parametrize("time", [1, 2], ids=["of the first shard", "of the second one"])
async def test_a_kill_between_a_lease_and_an_answer_loses_nothing_and_doubles_nothing(
    stub: StubModel, tmp_path: Path, time: int
) -> None:
    async with Loopback(servers=8, shards=COUNT, max_concurrency=COUNT) as pg:
        crowd = Crowd(pg, Random(1), asked_share=0.0)
        stub.default = marked = MarkedModel(Random(1), 0.5, lambda: notify(pg), crowd.asked_by)
        pg.world.listen(marked.listen)

        def process(moment: str = NEVER) -> AbstractAsyncContextManager[Program]:
            environment = SETTINGS | {
                "PYTHONPATH": str(ROOT),
                "HOME": str(tmp_path),
                "DISCORD_TOKEN": pg.token,
                "DISCORD_API_BASE": pg.api_base,
                "DISCORD_GATEWAY_URL": pg.gateway_url,
                "OPENAI_API_KEY": KEY,
                "OPENAI_BASE_URL": stub.url,
                "REDIS_URL": redis.url,
                "SHARDS": "auto",
                "SHARD_COUNT": str(COUNT),
                "BURST_SECONDS": "0",
            }
            return command(tmp_path, [sys.executable, "-m", "tests.support.dying", moment, str(time)], environment)

        def ask() -> None:
            for shard_id in range(COUNT):
                crowd.ask_on(shard_id)

        redis = Redis(tmp_path)
        await redis.start()
        try:
            async with process() as first:
                await first.logged("sessions_stored", shards=[0, 1])
                ask()
                await pg.wait_for(lambda: len(stub.requests) == COUNT, PATIENCE_SECONDS)
                first.process.kill()
            for moment in MOMENTS:
                ask()
                async with process(moment) as dying:
                    assert await dying.ended() == -signal.SIGKILL, (moment, dying.log, dying.other)
            ask()
            async with process() as last:
                await pg.wait_for(lambda: not lost(crowd.evidence(())), PATIENCE_SECONDS)
                last.terminate()
                assert await last.ended() == 0
        finally:
            await redis.end(signal.SIGKILL)
    evidence = crowd.evidence(())
    assert (lost(evidence), doubled(evidence)) == ([], [])
