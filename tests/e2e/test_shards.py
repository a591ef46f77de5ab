"""Several shards: each is connected, lost and caught up with on its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from playground.limits import Limits
from playground.model import Message
from playground.server import Playground
from tests.support.scene import Scene, notify, recorded, running
from tests.support.stub_model import StubModel

COUNT = 3


@pytest.fixture
async def scene(stub: StubModel, tmp_path: Path) -> AsyncIterator[Scene]:
    """A Discord that wants three shards, with a server on each."""
    async with Playground(limits=Limits.off(), shards=COUNT) as pg, recorded(pg) as journal:
        stub.on_request = lambda: notify(pg)
        for name in ("two", "three"):
            pg.add_guild(name)
        yield Scene(pg, stub, journal, tmp_path / "state")


def guild_on(scene: Scene, shard_id: int) -> int:
    return next(one for one in scene.pg.world.guilds if (one >> 22) % COUNT == shard_id)


def mention(scene: Scene, shard_id: int, text: str = "hello") -> Message:
    """Somebody asks the bot in the server of this shard."""
    channel = scene.pg.channel("general", guild_on(scene, shard_id))
    return scene.pg.post(channel, scene.pg.person("Ada"), f"<@{scene.pg.bot_id}> {text}")


async def test_as_many_as_discord_wants_are_connected_and_answer(scene: Scene) -> None:
    async with running(scene):
        for shard_id in range(COUNT):
            await scene.answer_to(mention(scene, shard_id))
        assert sorted(session.shard for session in scene.pg.sessions) == [(one, COUNT) for one in range(COUNT)]
        assert len(scene.bot.guilds) == COUNT
    assert len(scene.sent("PUT", "/commands")) == 1
