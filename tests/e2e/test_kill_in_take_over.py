"""Whoever takes a shard is killed, or told to stop, on the way, at one moment after the other, and the next goes on."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tests.support.dying import MOMENTS
from tests.support.scene import PATIENCE_SECONDS
from tests.support.several import open_several
from tests.support.stub_model import StubModel

COUNT = 2


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs Debian's package redis-server")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "told to stop"])
@pytest.mark.parametrize("time", [1, 2], ids=["of the first shard", "of the second one"])
async def test_between_a_lease_and_an_answer_nothing_is_lost_and_nothing_doubled(
    stub: StubModel, tmp_path: Path, time: int, by: signal.Signals
) -> None:
    async with open_several(stub, tmp_path, COUNT) as several:
        async with several.process() as first:
            await first.logged("sessions_stored", shards=[0, 1])
            several.ask()
            await several.pg.wait_for(lambda: len(stub.requests) == COUNT, PATIENCE_SECONDS)
            first.process.kill()
        for moment in MOMENTS:
            several.ask()
            async with several.process(moment, time, by) as ending:
                code = await ending.ended()
                assert code == (0 if by is signal.SIGTERM else -by), (moment, ending.log, ending.other)
        several.ask()
        async with several.process() as last:
            await several.answered()
            last.terminate()
            assert await last.ended() == 0
