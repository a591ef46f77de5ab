"""A life of the bot as one of several processes, though there is no other: it hears what it missed by a replay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from unittest.mock import patch

from redis import RedisError

from cluster.connection import Cluster
from cluster.leases import SHARD, SINCE
from persistence.lifecycle import ALIVE
from persistence.open_store import open_stores
from shards import Session, Shards
from tests.support.lives import caught_up
from tests.support.scene import Scene, make_bot

LOOK_SECONDS, PATIENCE_SECONDS = 0.01, 30.0
RUNNING_SECONDS = 60
LAST_SECONDS = 60  # by the bot's clock, that it has been running when it is last known to have heard all


@asynccontextmanager
async def life_of_several(scene: Scene, url: str, settings: Mapping[str, Any]) -> AsyncIterator[None]:
    """As lives.life(). url: of its Redis."""
    cluster = Cluster(url)
    cluster.leases.names = {f"{SHARD}0": cluster.name}
    scene.journal.entries.clear()
    scene.pg.requests.clear()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await _answers(cluster):
            await asyncio.sleep(LOOK_SECONDS)
    await asyncio.to_thread(lambda: open_stores(scene.folder, url, None)().close())  # as long as no shard is anybody's
    await cluster.redis.mset(cluster.leases.names)
    await cluster.leases.renew(1)
    bot = scene.bot = make_bot(scene, {**settings, "shards": "auto"}, shards=Shards(1, [0]), cluster=cluster)
    with patch("discord_io.replay.NOTE_SECONDS", LOOK_SECONDS), patch("cluster.connection.IDENTIFY_SECONDS", 0.001):
        connection = asyncio.create_task(bot.start(scene.pg.token))
        renewing = asyncio.create_task(_renew(cluster))
        try:
            while not (bot.is_up(0) and bot.catch_up.beat() and scene.sent("PUT", "/commands")):
                await asyncio.sleep(LOOK_SECONDS)
                if connection.done():
                    connection.result()
            await caught_up(scene)
            yield
        finally:
            renewing.cancel()
            await bot.turns.drain(0)
            await bot.close()
            connection.cancel()
            await asyncio.gather(connection, renewing, return_exceptions=True)
            await cluster.redis.delete(*cluster.leases.names)
            await cluster.close()


async def _answers(cluster: Cluster) -> bool:
    """Whether Redis, which may just have been started, answers. It then counts as running for longer than a lease."""
    with suppress(RedisError):
        server, (now, _) = await cluster.redis.info("server"), await cluster.redis.time()
        await cluster.redis.set(SINCE, f"{server['run_id']} {(now - RUNNING_SECONDS) * 1_000}")
        return True
    return False


async def _renew(cluster: Cluster) -> None:
    while True:
        await asyncio.sleep(1)
        await cluster.leases.renew(1)


async def has_noted(scene: Scene) -> None:
    """Waits until the session is stored from which the next process hears what it missed."""
    assert scene.clock
    scene.clock.advance(LAST_SECONDS)
    scene.bot.catch_up.beat()
    scene.bot.snapshots.touch(ALIVE)
    assert scene.bot.parts.cluster
    sessions, stored = scene.bot.parts.cluster.sessions, asyncio.Event()
    store = sessions.store

    async def storing(by_shard: Mapping[int, Session]) -> None:
        await store(by_shard)
        if by_shard:
            stored.set()

    with patch.object(sessions, "store", storing):
        await asyncio.wait_for(stored.wait(), 10)
