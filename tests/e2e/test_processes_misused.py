"""What may be wrong with several processes and where they run, each once over real processes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import redis.asyncio as redis

from bench.kill.findings import doubled
from cluster.leases import held
from tests.support.several import open_several
from tests.support.stub_model import StubModel, texts

COUNT = 2
STORED = tuple(f"parley:rows:{kind}" for kind in ("alive", "conversation:", "message:"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs Debian's package redis-server"),
]


async def test_of_two_processes_with_one_shard_the_later_one_waits_says_so_and_ends(
    stub: StubModel, tmp_path: Path
) -> None:
    async with (
        open_several(stub, tmp_path, COUNT) as several,
        several.process(SHARDS="", SHARD_IDS="0-1") as first,
    ):
        await first.logged("sessions_stored", shards=[0, 1])
        several.ask()
        async with several.process(SHARDS="", SHARD_IDS="1", PATIENCE="4", STATE_DIR=f"{tmp_path}/two") as second:
            says = "SHARD_IDS names what another process has (1): stop that one, or give this one others."
            assert (await second.logged("waiting_for_other_process"))["why"] == says
            several.ask()
            assert await second.ended() == 1
            assert second.other == [says]
        await several.answered()
        assert several.pg.identifies == (COUNT, 0)


async def test_a_redis_that_loses_all_it_has_is_told_anew_by_those_who_have_shards(
    stub: StubModel, tmp_path: Path
) -> None:
    async with (
        open_several(stub, tmp_path, COUNT) as several,
        redis.Redis.from_url(several.redis.url, decode_responses=True) as client,
    ):
        channel = next(iter(several.pg.guilds_on(1)[0].channels))
        async with several.process() as first:
            await first.logged("sessions_stored", shards=[0, 1])
            several.crowd.ask(channel)
            several.ask()
            await several.answered()
            holders = (await held(client)).shards
            before = {key for key in await client.keys() if str(key).startswith(STORED)}
            await client.flushall()
            several.ask()
            await several.answered()
            while not before <= set(await client.keys()):
                assert first.process.returncode is None
            assert (await held(client)).shards == holders
            first.process.kill()
            await first.ended()
        several.ask()
        async with several.process() as second:
            await several.answered()
            several.crowd.ask(channel)
            await several.answered()
            second.terminate()
            assert await second.ended() == 0
        told = "\n".join(texts(stub.requests[-1]))
        assert "k1 " in told or "k1?" in told  # what was said before


async def test_a_shard_that_never_becomes_ready_keeps_no_other_and_the_process_ends_in_the_end(
    stub: StubModel, tmp_path: Path
) -> None:
    async with open_several(stub, tmp_path, COUNT) as several:
        several.pg._gateway.max_concurrency = None  # here nothing is too early
        several.pg.withhold_ready(1)
        async with several.process(PATIENCE="16") as first:
            await first.logged("sessions_stored", shards=[0])
            several.crowd.ask_on(0)
            await several.answered()
            await first.logged("shard_not_ready", shard=1)
            gives_up = await first.logged("giving_up")
            assert gives_up["why"].startswith("shard 1 has not been connected for ")
            assert await first.ended() == 1
        several.pg.withhold_ready(1, withheld=False)
        several.ask()
        async with several.process() as second:
            await several.answered()
            second.terminate()
            assert await second.ended() == 0


@pytest.mark.parametrize(("first", "second"), [(30, 30), (30, -30), (-30, 30)])
async def test_whatever_the_clocks_of_machines_say_nothing_is_lost_and_nothing_doubled(
    stub: StubModel, tmp_path: Path, first: int, second: int
) -> None:
    """Seconds that they are ahead of Discord's."""
    async with open_several(stub, tmp_path, COUNT) as several:
        async with several.process(CLOCK_AHEAD=str(first)) as killed:
            await killed.logged("sessions_stored", shards=[0, 1])
            several.ask()
            await several.answered()
            killed.process.kill()
            await killed.ended()
        several.ask()
        async with several.process(CLOCK_AHEAD=str(second)) as last:
            several.ask()
            await several.answered()
            last.terminate()
            assert await last.ended() == 0
        assert doubled(several.crowd.evidence(())) == []
