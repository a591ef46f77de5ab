"""A Discord that wants three shards, with a server on each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playground.model import Message
from tests.support.clock import FakeClock
from tests.support.lives import open_stage
from tests.support.scene import Scene
from tests.support.stub_model import StubModel

COUNT = 3


@asynccontextmanager
async def open_three(stub: StubModel, folder: Path, clock: FakeClock | None = None) -> AsyncIterator[Scene]:
    async with open_stage(stub, folder, clock=clock, shards=COUNT) as stage:
        for name in ("two", "three"):
            stage.pg.add_guild(name)
        yield stage


def guild_on(scene: Scene, shard_id: int) -> int:
    return next(one for one in scene.pg.world.guilds if (one >> 22) % COUNT == shard_id)


def mention(scene: Scene, shard_id: int, text: str = "hello") -> Message:
    """Somebody asks the bot in the server of this shard."""
    channel = scene.pg.channel("general", guild_on(scene, shard_id))
    return scene.pg.post(channel, scene.pg.person("Ada"), f"<@{scene.pg.bot_id}> {text}")
