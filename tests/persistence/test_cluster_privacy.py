"""What people ask for reaches all shards, whichever process has them, now or later. With a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot import Parley
from cluster.connection import Cluster
from cluster.events import STREAM
from cluster.leases import SHARD
from config import Settings
from conversation import MessageRecord
from decider import FollowupRules
from discord_io.backlog import id_at
from persistence.cluster_privacy import ClusterPrivacy
from shards import Shards
from state.message import Appended
from tests.support.people import ANNA, BEN, said
from tests.support.redis_server import redis_url  # noqa: F401 - a fixture

COUNT = 4
GUILDS = [(number + COUNT) << 22 for number in range(COUNT)]  # one on each shard
CHANNELS = [guild + 1 for guild in GUILDS]


class Process:
    """A bot that is not connected to Discord, and the shards that it has."""

    def __init__(self, url: str, folder: Path, *shard_ids: int) -> None:
        settings = Settings(model="demo", state_dir=folder, decision_log="off")
        settings = settings.model_copy(update={"redis_url": SecretStr(url)})  # a socket, as no owner has it
        self.shards = Shards(COUNT, shard_ids)
        self.cluster = Cluster(url)
        self.bot = Parley(settings, followup=FollowupRules(60), shards=self.shards, cluster=self.cluster)
        assert self.bot.parts.requests
        self.requests: ClusterPrivacy = self.bot.parts.requests
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> Process:
        names = {f"{SHARD}{shard_id}": self.cluster.name for shard_id in self.shards.ids}
        await self.cluster.redis.mset(names)
        self.cluster.leases.names = names
        await self.bot.lifecycle.take(self.shards.ids)
        self._following = asyncio.create_task(self.requests.keep())
        return self

    async def die(self) -> None:
        """What it was told is stored; nothing else is done."""
        if self._following:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self.bot.close()
        await self.cluster.close()

    async def said(self, number: int, *records: MessageRecord) -> None:
        """In the channel on this shard."""
        for record in records:
            if self.bot.conversations.get(CHANNELS[number]) is None:
                self.bot.conversations.start(CHANNELS[number], [record])
            else:
                self.bot.conversations.record_message(CHANNELS[number], record)
            self.bot.snapshots.append(Appended(CHANNELS[number], GUILDS[number], record))
        assert await self.bot.snapshots.settled()

    def heard(self, number: int) -> list[str]:
        conversation = self.bot.conversations.get(CHANNELS[number])
        return [message.content for message in conversation.messages] if conversation else []

    async def stored(self, number: int) -> list[str]:
        return [record.content for record in await self.bot.snapshots.recent(CHANNELS[number], 1)]


Start = Callable[..., Awaitable[Process]]


@pytest.fixture
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A connection to a Redis in which there is nothing."""
    cluster = Cluster(f"{request.getfixturevalue('redis_url')}?db=2")
    await cluster.redis.flushdb()
    yield cluster
    await cluster.close()


@pytest.fixture
async def start(request: pytest.FixtureRequest, client: Cluster, tmp_path: Path) -> AsyncIterator[Start]:
    """Starts a process with these shards."""
    started: list[Process] = []
    assert not await client.redis.dbsize()

    async def one_more(*shard_ids: int) -> Process:
        url = f"{request.getfixturevalue('redis_url')}?db=2"
        started.append(Process(url, tmp_path / str(len(started)), *shard_ids))
        return await started[-1].start()

    yield one_more
    for process in started:
        await process.die()


def now(content: str, author: int = ANNA) -> MessageRecord:
    at = datetime.now(UTC)
    return said(author, content, at, message_id=id_at(at) + said(author).message_id)


async def test_a_person_is_forgotten_and_not_read_any_more_on_all_shards(start: Start, client: Cluster) -> None:
    one, other = await start(0, 1), await start(2, 3)
    await one.said(1, now("a secret"), now("hello", BEN))
    await other.said(2, now("a secret"), now("hello", BEN))
    assert await one.requests.opt_out(ANNA, now("").message_id)
    for process, number in ((one, 1), (other, 2)):
        assert process.requests.is_opted_out(ANNA)
        assert (process.heard(number), await process.stored(number)) == (["hello"], ["hello"])
        assert process.bot.parts.consent.is_forgotten(CHANNELS[number], said(ANNA, message_id=1))
    assert await client.redis.xlen(STREAM) == 0  # nobody has to do it any more
    assert await other.requests.opt_in(ANNA)
    assert not one.requests.is_opted_out(ANNA)
    assert not (await start(1)).requests.is_opted_out(ANNA)
