"""Several guilds, on as many shards as the bot is told to use."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import aiohttp
import discord
import pytest

from playground.limits import Limits
from playground.server import Playground
from tests.playground.support import INTENTS, Api, Wire, point_discord_at


@pytest.fixture
async def pg() -> AsyncIterator[Playground]:
    """Six more guilds than the first, on four shards, of which two may identify at a time."""
    async with Playground(shards=4, max_concurrency=2, limits=Limits.off()) as playground:
        for number in range(6):
            playground.add_guild(f"Guild {number}", ("general", "trips"))
        yield playground


class Sharded(discord.AutoShardedClient):
    """A client with all shards, which does not wait between them."""

    def __init__(self) -> None:
        super().__init__(intents=INTENTS, guild_ready_timeout=0.05)
        self.ready = asyncio.Event()

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        pass

    async def on_ready(self) -> None:
        self.ready.set()


def guilds_on(pg: Playground, shard_id: int) -> set[int]:
    return {guild_id for guild_id in pg.world.guilds if (guild_id >> 22) % 4 == shard_id}


async def test_each_shard_sees_its_guilds_alone(pg: Playground, http: aiohttp.ClientSession) -> None:
    for shard_id in (0, 1):
        here = guilds_on(pg, shard_id)
        assert 1 <= len(here) <= 2
        async with Wire(pg, http) as wire:
            ready = await wire.identify(shard=[shard_id, 4])
            assert {int(guild["id"]) for guild in ready["guilds"] if guild["unavailable"]} == here
            created = [(await wire.receive())["d"] for _ in here]
            assert {int(guild["id"]) for guild in created} == here
            for guild_id in pg.world.guilds:
                pg.post(pg.channel("general", guild_id), pg.person("Ada"), str(guild_id))
            heard = [(await wire.receive())["d"] for _ in here]
            assert {int(message["guild_id"]) for message in heard} == here
            assert all(message["content"] == message["guild_id"] for message in heard)


async def test_discord_py_has_all_shards_and_posts_in_each(pg: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    pg._gateway.max_concurrency = None  # discord.py waits 5 s for each shard behind the first
    async with Sharded() as client:
        point_discord_at(pg, monkeypatch)
        task = asyncio.create_task(client.start(pg.token))
        await client.ready.wait()
        assert client.shard_count == 4
        assert {guild.id: guild.shard_id for guild in client.guilds} == {
            guild_id: (guild_id >> 22) % 4 for guild_id in pg.world.guilds
        }
        for guild in client.guilds:
            assert guild.default_role.id == guild.id
            assert guild.me.top_role.managed
            await guild.text_channels[0].send(guild.name)
            [said] = pg.messages(pg.channel("general", guild.id))
            assert said.content == guild.name
        pg.cut(2)
        await pg.wait_for(lambda: pg.connected_shards == [0, 1, 3])
        await pg.wait_for(lambda: pg.connected_shards == [0, 1, 2, 3])
        await client.close()
        await task


async def test_an_identify_too_early_for_its_bucket_is_refused(http: aiohttp.ClientSession) -> None:
    now = 0.0
    async with Playground(shards=4, max_concurrency=2, clock=lambda: now) as pg, contextlib.AsyncExitStack() as stack:
        first, second, third = [await stack.enter_async_context(Wire(pg, http)) for _ in range(3)]
        await first.identify(shard=[0, 4])
        await second.identify(shard=[1, 4])
        await third.send(2, {"token": "playground", "intents": 0, "shard": [2, 4]})
        assert await third.receive() == {"op": 9, "d": False, "s": None, "t": None}
        assert pg.identifies == (2, 1)
        now = 5.0
        await third.identify(0, shard=[2, 4])
        assert pg.connected_shards == [0, 1, 2]


async def test_a_shard_that_there_is_not_and_one_with_too_many_guilds_are_refused(http: aiohttp.ClientSession) -> None:
    async with Playground(shards=2) as pg:
        for shard in ([0, 1], [0, 4], [2, 2]):
            async with Wire(pg, http) as wire:
                await wire.send(2, {"token": "playground", "intents": 1, "shard": shard})
                assert await wire.close_code() == 4010
    async with Playground() as pg:
        for number in range(2_500):
            pg.add_guild(str(number))
        async with Wire(pg, http) as wire:
            await wire.send(2, {"token": "playground", "intents": 1})
            assert await wire.close_code() == 4011
        async with Wire(pg, http) as wire:
            assert len((await wire.identify(1, shard=[0, 2]))["guilds"]) in (1_250, 1_251)


async def test_a_shard_may_be_taken_and_never_become_ready(pg: Playground, http: aiohttp.ClientSession) -> None:
    pg.withhold_ready(1)
    async with Wire(pg, http) as wire:
        await wire.send(2, {"token": "playground", "intents": 1, "shard": [1, 4]})
        await pg.wait_for(lambda: pg.connected_shards == [1])
        await wire.send(1)
        assert (await wire.receive())["op"] == 11  # nothing came before it


async def test_the_bot_is_told_its_shards_and_of_its_guilds_in_pages(pg: Playground, api: Api) -> None:
    status, told = await api.call("GET", "/gateway/bot")
    assert (status, told["shards"], told["session_start_limit"]["max_concurrency"]) == (200, 4, 2)
    left = min(pg.world.guilds)
    pg.remove_bot(left)
    ids = sorted(pg.world.guilds)[1:]
    _, first = await api.call("GET", "/users/@me/guilds?limit=4")
    _, second = await api.call("GET", f"/users/@me/guilds?limit=4&after={first[-1]['id']}")
    assert [int(guild["id"]) for guild in (*first, *second)] == ids
    assert await api.code("GET", f"/guilds/{left}/channels") == (403, 50001)
    _, channels = await api.call("GET", f"/guilds/{ids[0]}/channels")
    assert [channel["name"] for channel in channels] == ["general", "trips"]


async def test_a_role_is_of_its_guild_alone(pg: Playground) -> None:
    ada, away = pg.person("Ada"), pg.world.guilds[min(pg.world.guilds)]
    role = pg.world.add_role("Managers", 1 << 4, guild=away, mentionable=True)
    pg.give_role(ada, role.id)
    assert pg.post(pg.channel("trips", away.id), ada, f"<@&{role.id}>").mention_roles == (role.id,)
    assert pg.post(pg.channel("general"), ada, f"<@&{role.id}>").mention_roles == ()
    assert role.id not in pg.world.guild.roles
