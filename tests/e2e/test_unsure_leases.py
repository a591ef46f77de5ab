"""A process whose leases were not renewed in time, as after it stood still, or while Redis is away."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cluster import connection as connections
from cluster.connection import Cluster
from cluster.leases import SURE_SECONDS, Leases
from persistence import lifecycle
from playground.limits import Limits
from playground.server import Playground
from shards import Shards
from tests.cluster.conftest import settle
from tests.support.redis_server import redis_url  # noqa: F401 - a fixture
from tests.support.scene import PATIENCE_SECONDS, Scene, make_bot, notify, recorded
from tests.support.stub_model import StubModel


@pytest.mark.slow
async def test_what_is_said_waits_until_it_is_known_whose_the_shards_are(
    stub: StubModel,
    tmp_path: Path,
    redis_url: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "IDENTIFY_SECONDS", 0.001)
    monkeypatch.setattr(lifecycle, "BEAT_SECONDS", 0.0)
    now = [100.0]
    cluster = Cluster(f"{redis_url}?db=4")
    await cluster.redis.flushdb()
    await settle(cluster)
    cluster.leases = Leases(cluster.redis, cluster.name, lambda: now[0])
    assert await cluster.leases.take(0, 1)
    async with Playground(limits=Limits.off()) as pg, recorded(pg) as journal:
        stub.on_request = lambda: notify(pg)
        scene = Scene(pg, stub, journal, tmp_path)
        bot = scene.bot = make_bot(scene, shards=Shards(1, [0]), cluster=cluster)
        connection = asyncio.create_task(bot.start(pg.token))
        try:
            await scene.until(lambda: bot.is_up(0))
            await scene.answer_to(scene.mention("Ada", "hello"))
            now[0] += SURE_SECONDS
            looks = asyncio.Queue[None]()
            monkeypatch.setattr(bot.snapshots, "sync", lambda: looks.put_nowait(None))
            await looks.get()
            alive_at = bot.catch_up.of(0).alive_at
            heard = bot.wait_for("message", check=lambda m: "are you" in m.content, timeout=PATIENCE_SECONDS)
            asked, _ = scene.mention("Ada", "are you there?"), await heard
            for _ in range(3):
                await looks.get()
            assert not scene.decisions.get(asked.id)
            assert bot.catch_up.of(0).alive_at == alive_at
            await cluster.leases.renew(1)
            await scene.answer_to(asked)
        finally:
            await bot.close()
            await asyncio.gather(connection, return_exceptions=True)
            await cluster.close()
