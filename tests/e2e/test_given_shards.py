"""A shard that one process gives to another while both go on, and gets back: what is kept of it goes with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import running_bot
from bot import Parley
from cluster import connection as connections
from cluster import leases
from cluster.connection import Cluster
from commands.privacy_commands import CHANNEL_FORGOTTEN, FORGOTTEN, OPTED_OUT
from decision import Reason
from persistence.cluster_privacy import ClusterPrivacy
from persistence.open_store import check_stores
from playground.model import Message
from shards import Shards
from storage.store import StoreError
from tests.cluster.conftest import settle
from tests.cluster.test_keeper import until
from tests.support.clock import FakeClock
from tests.support.redis_server import redis_url  # noqa: F401 - a fixture
from tests.support.scene import PATIENCE_SECONDS, Scene, make_bot
from tests.support.stub_model import Call, Reply
from tests.support.three_shards import COUNT, guild_on, mention
from turns.endings import RESTARTING

pytestmark = pytest.mark.slow

GIVEN = 1
DATABASES = cycle(range(5, 16))  # a test's own: bots of the one before may still be writing


@pytest.fixture
async def address(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:  # noqa: F811
    """Of a Redis in which all is kept: a socket, as no owner has it."""
    monkeypatch.setattr(connections, "IDENTIFY_SECONDS", 0.001)
    for name in ("LEASE_SECONDS", "SURE_SECONDS"):  # nobody renews any here
        monkeypatch.setattr(leases, name, 600.0)
    url = f"{redis_url}?db={next(DATABASES)}"
    monkeypatch.setattr("wiring_state.where", lambda settings: (settings.state_dir, url, None))
    cluster = Cluster(url)
    await cluster.redis.flushdb()
    await settle(cluster)
    await cluster.close()
    await asyncio.to_thread(check_stores, tmp_path, url, None)
    return url


@pytest.fixture
def scene(three_shards: Scene) -> Scene:
    return three_shards


class Process:
    """One of several over the same Redis."""

    def __init__(self, scene: Scene, url: str, name: str, **settings: Any) -> None:
        self.scene = scene
        self.cluster = Cluster(url)
        self.shards = Shards(COUNT, [])
        self._settings = {"state_dir": scene.folder / name, **settings}
        self.bot: Parley

    @asynccontextmanager
    async def running(self, *shard_ids: int) -> AsyncIterator[None]:
        for shard_id in shard_ids:
            assert await self.cluster.leases.take(shard_id, COUNT)
            self.shards.add(shard_id)
        self.bot = bot = self.scene.bot = make_bot(self.scene, self._settings, shards=self.shards, cluster=self.cluster)
        connection = asyncio.create_task(bot.start(self.scene.pg.token))
        try:
            await self.scene.until(lambda: all(map(bot.is_up, shard_ids)))
            await self.caught_up(*shard_ids)
            yield
        finally:
            await bot.close()
            await asyncio.gather(connection, return_exceptions=True)
            await self.cluster.close()

    async def caught_up(self, *shard_ids: int) -> None:
        await until(lambda: all(self.bot.catch_up.of(shard_id).beat() for shard_id in shard_ids))

    async def release(self, shard_id: int) -> None:
        await self.cluster.leases.release([shard_id])

    async def give(self) -> None:
        while not await self.bot.leave_shard(GIVEN):  # noqa: ASYNC110 - a turn ends behind its answer
            await asyncio.sleep(0)
        await self.release(GIVEN)

    async def take(self) -> None:
        assert await self.cluster.leases.take(GIVEN, COUNT)
        await self.bot.add_shard(GIVEN)
        await until(lambda: self.bot.is_up(GIVEN))  # which nothing in Discord may tell of


@asynccontextmanager
async def two(scene: Scene, url: str, **settings: Any) -> AsyncIterator[tuple[Process, Process]]:
    async with AsyncExitStack() as stack:
        one, other = (Process(scene, url, name, **settings) for name in ("one", "other"))
        await stack.enter_async_context(one.running(0, GIVEN))
        await stack.enter_async_context(other.running(2))
        yield one, other


def answers(scene: Scene, asked: Message) -> list[str]:
    return [
        one.content
        for one in scene.pg.messages(asked.channel_id)
        if one.reference and one.reference.message_id == asked.id
    ]


async def test_what_was_said_goes_with_it_and_comes_back_with_it(scene: Scene, address: str) -> None:
    async with two(scene, address) as (one, other):
        scene.stub.replies += [Reply("First."), Reply("Second."), Reply("Third.")]
        first = mention(scene, GIVEN, "one?")
        assert (await scene.answer_to(first)).content == "First."
        channel_id = first.channel_id
        await one.give()
        assert one.bot.conversations.get(channel_id) is None
        assert channel_id not in one.bot.snapshots.channels
        assert {guild.shard_id for guild in one.bot.guilds} == {0}
        assert guild_on(scene, GIVEN) in {guild.id for guild in scene.pg.world.guilds.values()}
        second = mention(scene, GIVEN, "two?")  # while nobody has it
        await other.take()
        assert (await scene.answer_to(second)).content == "Second."
        assert "First." in scene.told()
        await other.caught_up(GIVEN)
        await other.give()
        await one.take()
        third = mention(scene, GIVEN, "three?")
        assert (await scene.answer_to(third)).content == "Third."
        assert "Second." in scene.told()
        await one.caught_up(GIVEN)
        assert [answers(scene, asked) for asked in (first, second, third)] == [["First."], ["Second."], ["Third."]]
        conversation = one.bot.conversations.get(channel_id)
        assert conversation
        said = [message.message_id for message in conversation.messages]
        assert len(said) == len(set(said)) == 6


async def test_what_is_deleted_while_another_process_has_it_is_told_nobody_when_it_comes_back(
    scene: Scene, address: str
) -> None:
    async with two(scene, address) as (one, other):
        channel, ada = scene.pg.channel("general", guild_on(scene, GIVEN)), scene.pg.person("Ada")
        said = [scene.pg.post(channel, ada, f"a secret, number {number}") for number in range(20)]
        await scene.answer_to(mention(scene, GIVEN))
        assert "a secret" in scene.told()
        await one.give()
        await other.take()
        await other.caught_up(GIVEN)
        last = other.bot.wait_for("raw_message_delete", check=lambda deleted: deleted.message_id == said[-1].id)
        heard = asyncio.create_task(last)
        await asyncio.sleep(0)
        for message in said:
            scene.pg.delete(message)
        await heard
        assert not [m for m in one.bot.cached_messages if m.channel.id == channel]
        assert not one.bot.decisions.latest(channel, 5)
        await other.give()
        await one.take()
        await scene.answer_to(mention(scene, GIVEN, "and now?"))
        assert "a secret" not in scene.told()


async def test_a_pause_that_another_process_ended_is_over_when_it_comes_back(scene: Scene, address: str) -> None:
    async with two(scene, address) as (one, other):
        guild_id = guild_on(scene, GIVEN)
        one.bot.parts.guild_settings.pause(guild_id)
        await one.give()
        await other.take()
        assert other.bot.parts.guild_settings.is_paused(guild_id)
        await other.caught_up(GIVEN)
        other.bot.parts.guild_settings.pause(guild_id, on=False)
        await other.give()
        await one.take()
        assert not one.bot.parts.guild_settings.is_paused(guild_id)


async def test_status_says_of_which_process_it_is(scene: Scene, address: str) -> None:
    async with two(scene, address):
        channel, ada = scene.pg.channel("general", guild_on(scene, GIVEN)), scene.pg.person("Ada")
        scene.pg.allow(channel, "manage_guild", member=ada)
        told = await scene.pg.reply_to(scene.pg.command(channel, ada, "status", {}, None), timeout=PATIENCE_SECONDS)
    assert "I run as several, and its shards are 0, 1 of 3.)" in told.content


async def test_a_notice_to_the_owner_is_posted_by_one_of_them(
    scene: Scene, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims: list[tuple[str, bool]] = []
    claim = Cluster.claim

    async def told(cluster: Cluster, what: str, seconds: int) -> bool:
        claims.append((what, await claim(cluster, what, seconds)))
        return claims[-1][1]

    monkeypatch.setattr(Cluster, "claim", told)
    channel = scene.pg.channel("help")
    async with two(scene, address, notice_channel=channel, budgets="1000 tokens a day", guild_tokens=0):
        scene.stub.replies += [Reply("Much.", tokens=820), Reply("Little.")]
        for shard_id in (GIVEN, 2):
            await scene.answer_to(mention(scene, shard_id))
        await until(lambda: len(claims) == 2)
        await scene.until(lambda: scene.pg.messages(channel))
    what = "A budget is nearly spent:1,000 tokens a day:0"
    assert claims == [(what, True), (what, False)]
    assert len(scene.pg.messages(channel)) == 1


async def test_it_stays_while_something_is_answered_there(scene: Scene, address: str) -> None:
    async with two(scene, address) as (one, _):
        gate = scene.held("Done.")
        asked = mention(scene, GIVEN)
        await scene.until(lambda: scene.stub.requests)
        assert not await one.bot.leave_shard(GIVEN)
        gate.set()
        assert (await scene.answer_to(asked)).content == "Done."
        assert one.shards.ids == [0, GIVEN]


async def test_it_stays_while_new_messages_wait_there_behind_what_was_missed(scene: Scene, address: str) -> None:
    async with two(scene, address) as (one, _):
        one.bot.catch_up.of(GIVEN).hold_back()  # as where it connected anew
        asked = mention(scene, GIVEN)
        await until(lambda: asked.id in {message.id for message in one.bot.cached_messages})
        assert not await one.bot.leave_shard(GIVEN)
        one.bot.take_up_missed(GIVEN)
        await scene.answer_to(asked)
        await one.give()


async def test_it_stays_and_is_served_while_it_cannot_be_stored(
    scene: Scene, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two(scene, address) as (one, _):

        async def fail() -> bool:
            return False

        monkeypatch.setattr(one.bot.snapshots, "settled", fail)
        assert not await one.bot.leave_shard(GIVEN)
        await scene.answer_to(mention(scene, GIVEN))


async def test_what_is_said_as_it_is_left_is_answered_also_where_it_comes_back_at_once(
    scene: Scene, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two(scene, address) as (one, _):
        disconnect, asked = one.bot.disconnect_shard, list[Message]()

        async def ask_before(shard_id: int) -> None:
            if not asked:
                asked.append(mention(scene, GIVEN))
                await until(lambda: scene.decisions.get(asked[0].id))
            await disconnect(shard_id)

        monkeypatch.setattr(one.bot, "disconnect_shard", ask_before)
        await one.give()
        assert scene.decisions.pop(asked[0].id)[0].reason is Reason.SHUTTING_DOWN
        await one.take()
        await scene.answer_to(asked[0])


async def test_of_one_that_could_not_be_taken_nothing_is_left(
    scene: Scene, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two(scene, address) as (one, other):
        first = mention(scene, GIVEN, "one?")
        await scene.answer_to(first)
        await one.give()
        assert await other.cluster.leases.take(GIVEN, COUNT)

        async def fail(*_: object) -> None:
            raise StoreError("Redis does not answer.")

        with monkeypatch.context() as patched:
            patched.setattr(ClusterPrivacy, "take", fail)
            with pytest.raises(StoreError):
                await other.bot.add_shard(GIVEN)
        assert other.bot.conversations.get(first.channel_id) is None
        assert other.shards.ids == [2]
        await other.cluster.leases.release([GIVEN])
        await one.take()
        await scene.answer_to(mention(scene, GIVEN, "two?"))
        assert "one?" in scene.told()


@pytest.mark.parametrize("three_shards", [FakeClock()], indirect=True)
async def test_what_was_said_while_a_process_wrote_its_last_answer_is_said_in_the_same_conversation(
    scene: Scene, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes the shard may wait for its IDENTIFY for longer than a conversation lives."""
    clock = scene.clock
    assert clock
    async with two(scene, address) as (one, other):
        gate = scene.held("First.")
        mention(scene, GIVEN, "one?")
        await scene.until(lambda: scene.stub.requests)
        ending = asyncio.create_task(one.bot.shut_down(one.release))
        await until(lambda: one.bot.parts.gate.is_shutting_down)
        second = mention(scene, GIVEN, "two?")
        await until(lambda: scene.decisions.get(second.id))
        gate.set()
        await ending

        async def wait(_: int) -> None:
            clock.advance(200)
            other.bot.parts.sweep()

        monkeypatch.setattr(other.bot, "may_identify", wait)
        scene.stub.replies.append(Reply("Second."))
        await other.take()
        assert (await scene.answer_to(second)).content == "Second."
        assert "First." in scene.told()


@pytest.mark.parametrize("stage", ["its first words stand", "nothing of it stands"])
async def test_what_a_process_has_no_time_to_answer_is_answered_by_the_next_in_the_same_message(
    scene: Scene, address: str, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    monkeypatch.setattr(running_bot, "DRAIN_SECONDS", 0.0)
    async with two(scene, address) as (one, other):
        scene.halted() if stage == "its first words stand" else scene.held()
        first = mention(scene, GIVEN, "one?")
        await scene.until(lambda: answers(scene, first) if stage == "its first words stand" else scene.stub.requests)
        second = mention(scene, GIVEN, "two?")  # which waits for its turn
        await until(lambda: len(one.bot.parts.pending.of(first.channel_id).questions) == 2)
        await one.bot.shut_down(one.release)
        scene.stub.replies += [Reply("First."), Reply("Second.")]
        await other.take()
        await scene.answer_to(second)
        assert [answers(scene, asked) for asked in (first, second)] == [["First."], ["Second."]]
    assert len(scene.pg.messages(first.channel_id)) == 4


async def test_what_a_tool_has_done_for_an_answer_is_not_done_again_by_the_next(
    scene: Scene, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_bot, "DRAIN_SECONDS", 0.0)
    async with two(scene, address) as (one, other):
        scene.stub.replies.append(Reply(calls=(Call("search_history", '{"words": "tea"}'),)))
        scene.held()
        first = mention(scene, GIVEN, "one?")
        await scene.until(lambda: len(scene.stub.requests) == 2)
        second = mention(scene, GIVEN, "two?")
        await until(lambda: len(one.bot.parts.pending.of(first.channel_id).questions) == 2)
        await one.bot.shut_down(one.release)
        scene.stub.replies.append(Reply("Second."))
        await other.take()
        await scene.answer_to(second)
        assert [answers(scene, asked) for asked in (first, second)] == [[RESTARTING], ["Second."]]


@pytest.mark.parametrize("how", ["forget", "everything", "optout before", "everything before"])
async def test_what_was_forwarded_from_a_server_of_another_process_goes_with_whoever_said_it(
    scene: Scene, address: str, how: str
) -> None:
    async with two(scene, address, direct_messages="open") as (one, _):
        ben, chloe = scene.pg.person("Ben"), scene.pg.person("Chloe")
        there, dm = scene.pg.channel("general", guild_on(scene, 2)), scene.pg.dm(ben)
        scene.pg.allow(there, "manage_channels", member=chloe)
        hers = scene.pg.post(there, chloe, "my code is swordfish")

        async def use(name: str, **options: Any) -> str:
            used = scene.pg.command(there, chloe, name, options)
            return (await scene.pg.reply_to(used, timeout=PATIENCE_SECONDS)).content

        async def ask(text: str = "", **how: Any) -> None:
            question = scene.pg.post(dm, ben, text, **how)
            await scene.outcome(question)

        if how == "optout before":
            assert await use("optout") == OPTED_OUT
        if how == "everything before":
            assert await use("forget", everything=True) == CHANNEL_FORGOTTEN
        await ask(forward=hers)
        assert ("swordfish" in scene.told()) is not how.endswith("before")
        if how == "forget":
            assert await use("forget") == FORGOTTEN
        if how == "everything":
            assert await use("forget", everything=True) == CHANNEL_FORGOTTEN
        await ask("and now?")
        assert "swordfish" not in scene.told()
        assert "swordfish" not in str(await one.bot.snapshots.recent(dm, 0))
