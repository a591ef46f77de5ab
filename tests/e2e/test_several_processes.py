"""Real processes over one Redis: one is added, or comes with another number of shards, while people go on asking."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import redis.asyncio as redis

from cluster.connection import PREFIX
from cluster.leases import held
from tests.support.process import Program
from tests.support.several import open_several
from tests.support.stub_model import StubModel, texts

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs Debian's package redis-server"),
]


async def took(program: Program, count: int) -> None:
    """It has taken so many shards by now."""
    await program.until(lambda: sum(entry["event"] == "shard_taken" for entry in program.log) == count)


async def test_a_process_that_is_added_to_those_that_have_all_gets_its_share(stub: StubModel, tmp_path: Path) -> None:
    async with (
        open_several(stub, tmp_path, 4) as several,
        redis.Redis.from_url(several.redis.url, decode_responses=True) as client,
        several.process() as first,
    ):
        await first.logged("sessions_stored", shards=[0, 1, 2, 3])
        several.ask()
        async with several.process(STATE_DIR=f"{tmp_path}/two") as second:
            await second.logged("standing_by")
            several.ask()
            await took(second, 2)
            several.ask()
            await several.answered()
            assert sorted(map(len, (await held(client)).shards.values())) == [2, 2]
            second.terminate()
            assert await second.ended() == 0


async def test_with_another_number_of_shards_one_waits_for_the_others_and_goes_on_with_what_they_had(
    stub: StubModel, tmp_path: Path
) -> None:
    async with (
        open_several(stub, tmp_path, 2) as several,
        redis.Redis.from_url(several.redis.url, decode_responses=True) as client,
    ):
        several.pg._gateway.shards = None  # it takes any number
        channel = next(iter(several.pg.guilds_on(1)[0].channels))
        async with several.process() as first:
            await first.logged("sessions_stored", shards=[0, 1])
            several.crowd.ask(channel)
            several.ask()
            await several.answered()
            async with several.process(SHARD_COUNT="3", STATE_DIR=f"{tmp_path}/two") as second:
                waits = await second.logged("waiting_for_other_process")
                assert waits["why"].startswith("Others still have shards of 2, not of 3")
                several.ask()
                first.terminate()
                several.ask()
                await took(second, 3)
                await several.answered()
                several.crowd.ask(channel)
                await several.answered()
                second.terminate()
                assert (await first.ended(), await second.ended()) == (0, 0)
        told = "\n".join(texts(stub.requests[-1]))
        assert "k1 " in told or "k1?" in told
        assert "That is all, e" in told  # the answer to it
        (day,) = await client.keys(f"{PREFIX}charged:????-??-??")
        assert int((await client.hgetall(day))["total:0:tokens"]) == 15 * len(stub.requests)
