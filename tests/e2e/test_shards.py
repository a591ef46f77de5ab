"""Several shards: each is connected, lost and caught up with on its own, and goes from one process to another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from discord.gateway import DiscordWebSocket

import discord_io.sharded_client
import persistence.lifecycle
from bot import Parley, use_server
from discord_io.sharded_client import ShardedClient
from health import Health
from persistence.snapshots import Snapshots
from service import INTENTS, _first_shard
from shards import Shards
from storage.store import StoreError
from tests.support.clock import FakeClock
from tests.support.lives import kill
from tests.support.scene import PATIENCE_SECONDS, Scene, make_bot, notify, running
from tests.support.stub_model import Reply
from tests.support.three_shards import COUNT, guild_on, mention


@pytest.fixture
def scene(three_shards: Scene) -> Scene:
    return three_shards


@asynccontextmanager
async def process(scene: Scene, *shard_ids: int, but: int | None = None) -> AsyncIterator[Parley]:
    """One of several, with these shards, once they are connected but for one."""
    bot = scene.bot = make_bot(scene, shards=Shards(COUNT, shard_ids))
    connection = asyncio.create_task(bot.start(scene.pg.token))
    try:
        await scene.until(lambda: all(bot.is_up(one) for one in shard_ids if one != but))
        yield bot
    finally:
        await bot.close()
        await asyncio.gather(connection, return_exceptions=True)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discord_io.sharded_client, "IDENTIFY_SECONDS", 0.0)


async def test_as_many_as_discord_wants_are_connected_and_answer(scene: Scene) -> None:
    async with running(scene):
        for shard_id in range(COUNT):
            await scene.answer_to(mention(scene, shard_id))
        assert sorted(session.shard for session in scene.pg.sessions) == [(one, COUNT) for one in range(COUNT)]
        assert len(scene.bot.guilds) == COUNT
    assert len(scene.sent("PUT", "/commands")) == 1


async def test_discord_is_asked_who_the_bot_is_and_how_many_shards_it_has(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    use_server(scene.pg.api_base, scene.pg.gateway_url)
    keeper = MagicMock(first=AsyncMock())
    await _first_shard(keeper, scene.pg.token, Health())
    keeper.expects.assert_called_once_with(COUNT, 1, scene.pg.bot_id)
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == []


async def test_while_one_is_lost_the_others_answer_and_it_takes_up_what_it_missed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(scene):
        bot = scene.bot
        bot.health.tick()
        assert bot.health.problem() is None
        gate = asyncio.Event()

        async def wait(*_: object, **__: object) -> None:
            await gate.wait()

        monkeypatch.setattr(bot, "may_identify", wait)
        lost = bot.wait_for("shard_disconnect", timeout=PATIENCE_SECONDS)
        scene.pg.invalidate(resumable=False, shard_id=1)
        assert await lost == 1
        missed = mention(scene, 1)
        await scene.answer_to(mention(scene, 0))
        await scene.answer_to(mention(scene, 2))
        assert bot.health.problem() == "shard 1 has not been connected for 0 s"
        assert not scene.decisions.get(missed.id)
        # It waits without a connection, on which nobody would read the answers to its heartbeats.
        await scene.until(lambda: len(scene.pg._gateway.connections) == COUNT - 1)
        gate.set()
        await scene.answer_to(missed)
        assert [bot.is_up(shard_id) for shard_id in range(COUNT)] == [True] * COUNT
        assert bot.health.reconnects == 1


async def test_each_has_its_turn_to_connect_and_identify(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discord_io.sharded_client, "IDENTIFY_SECONDS", 5.5)
    client, waited = ShardedClient(Health(), intents=INTENTS), []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        client._turns.clear()

    monkeypatch.setattr("discord_io.sharded_client.asyncio.sleep", sleep)
    await client.may_identify(0)
    await client.before_identify_hook(0)
    assert not waited
    await client.may_identify(1)
    assert len(waited) == 1
    await client.before_identify_hook(0)
    assert len(waited) == 2


async def test_one_that_cannot_be_connected_anew_holds_up_no_other_and_goes_on_with_its_session(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(scene):
        identified = scene.pg._gateway.identified
        refused = 0
        connect = scene.bot.http.ws_connect

        async def refuse_first(url: str, **how: object) -> object:
            nonlocal refused
            refused += 1
            if refused == 1:
                raise ConnectionRefusedError
            return await connect(url, **how)  # type: ignore[arg-type]

        monkeypatch.setattr(scene.bot.http, "ws_connect", refuse_first)
        monkeypatch.setattr("discord.backoff.ExponentialBackoff.delay", lambda _: 0.0)
        scene.pg.cut(shard_id=1)
        missed = mention(scene, 1)
        await scene.answer_to(mention(scene, 2))
        await scene.answer_to(missed)
        assert refused == 2
        assert scene.pg._gateway.identified == identified


async def test_one_that_is_connected_and_never_ready_is_connected_anew(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discord_io.sharded_client, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(discord_io.sharded_client, "READY_SECONDS", 0.05)
    scene.pg.withhold_ready(1)
    async with process(scene, 0, 1, but=1) as bot:
        await scene.answer_to(mention(scene, 0))
        await scene.until(lambda: scene.journal.find("shard_not_ready", shard=1))
        scene.pg.withhold_ready(1, withheld=False)
        await scene.until(lambda: bot.is_up(1))
        await scene.answer_to(mention(scene, 1))
    assert not scene.journal.find("shard_not_ready", shard=0)


@pytest.mark.parametrize("what", ["connects", "comes back"])
@pytest.mark.parametrize("stage", ["poll_event", "send_as_json"])
async def test_one_that_is_left_while_it_connects_leaves_no_connection_behind(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, stage: str, what: str
) -> None:
    reached, step = asyncio.Event(), getattr(DiscordWebSocket, stage)

    async def hang(socket: DiscordWebSocket, *args: Any, **options: Any) -> None:
        await step(socket, *args, **options)
        if socket.shard_id == 1 and not reached.is_set():
            reached.set()
            await asyncio.Event().wait()

    async with process(scene, *([0] if what == "connects" else [0, 1])) as bot:
        monkeypatch.setattr(DiscordWebSocket, stage, hang)
        if what == "connects":
            connecting = asyncio.create_task(bot.connect_shard(1))
        else:
            scene.pg.disconnect(4000, 1)
        await reached.wait()
        assert len(scene.pg._gateway.connections) == 2
        if what == "connects":
            connecting.cancel()
            await asyncio.gather(connecting, return_exceptions=True)
        await bot.disconnect_shard(1)
        await scene.until(lambda: len(scene.pg._gateway.connections) == 1)
        assert scene.pg.connected_shards == [0]


async def test_one_that_is_lost_before_it_is_ready_is_connected_anew(scene: Scene) -> None:
    """There is no session that it could RESUME, nor does it try to, again and again."""
    scene.pg.withhold_ready(1)
    async with process(scene, 0, 1, but=1) as bot:
        await scene.until(lambda: 1 in scene.pg.connected_shards)
        scene.pg.withhold_ready(1, withheld=False)
        scene.pg.cut(shard_id=1)
        await scene.until(lambda: bot.is_up(1))
        await scene.answer_to(mention(scene, 1))


async def test_one_whose_sequence_discord_does_not_know_begins_a_session_anew(scene: Scene) -> None:
    async with running(scene):
        scene.bot._AutoShardedClient__shards[1].ws.sequence = "many"  # type: ignore[assignment]
        scene.pg.cut(shard_id=1)
        missed = mention(scene, 1)
        await scene.answer_to(missed)
        assert scene.bot.is_up(1)


async def test_servers_that_the_bot_has_left_meanwhile_are_forgotten_and_others_shards_are_not(scene: Scene) -> None:
    left = guild_on(scene, 1)
    async with running(scene):
        for shard_id in range(COUNT):
            await scene.answer_to(mention(scene, shard_id))
    async with running(scene):
        scene.pg.world.guilds[left].bot_is_member = False  # which nobody is told of
        scene.pg.invalidate(resumable=False, shard_id=1)
        await scene.until(lambda: scene.journal.find("guild_left"))
        assert {guild.id for guild in scene.bot.guilds} == scene.pg.world.guilds.keys() - {left}
    assert [entry["guild"] for entry in scene.journal.find("guild_left")] == [left]


async def test_what_a_dead_process_left_of_a_shard_is_finished_by_the_one_that_takes_it(scene: Scene) -> None:
    async with process(scene, 1) as bot:
        gate = scene.held()
        asked = mention(scene, 1, "what is left?")
        await scene.until(lambda: scene.stub.requests)
        await kill(scene)
        gate.set()
    missed = mention(scene, 1, "and what did you miss?")
    async with process(scene, 2) as bot:
        scene.stub.default = lambda _: Reply("Here you are.")
        await scene.answer_to(mention(scene, 2))
        assert not scene.journal.find("turn_ended", message=asked.id)
        await bot.add_shard(1)
        await scene.answer_to(asked)
        await scene.answer_to(missed)
        await scene.answer_to(mention(scene, 1, "and now?"))


async def test_where_the_store_cannot_be_read_a_shard_is_caught_up_with_once_it_can(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistence.lifecycle, "RETRY_SECONDS", 0.0)
    async with process(scene, 1):
        gate = scene.held()
        asked = mention(scene, 1, "what is left?")
        await scene.until(lambda: scene.stub.requests)
        await kill(scene)
        gate.set()
    missed = mention(scene, 1, "and what did you miss?")
    scene.stub.default = lambda _: Reply("Here you are.")
    read, is_away = Snapshots.known_channels, [True]

    async def known_channels(snapshots: Snapshots) -> dict[int, int]:
        if is_away:
            is_away.pop()
            raise StoreError("Redis does not answer.")
        return await read(snapshots)

    monkeypatch.setattr(Snapshots, "known_channels", known_channels)
    async with process(scene, 1):
        await scene.answer_to(asked)
        await scene.answer_to(missed)
    assert not is_away


async def test_as_it_ends_a_shard_is_given_up_once_nothing_is_answered_there_and_the_last_at_the_end(
    scene: Scene,
) -> None:
    released: list[int] = []

    async def release(shard_id: int) -> None:
        released.append(shard_id)
        notify(scene.pg)

    async with process(scene, *range(COUNT)) as bot:
        gates = [scene.held("Done."), scene.held("Done.")]
        first = mention(scene, 0)
        await scene.until(lambda: len(scene.stub.requests) == 1)
        second = mention(scene, 2)
        await scene.until(lambda: len(scene.stub.requests) == 2)
        ending = asyncio.create_task(bot.shut_down(release))
        await scene.until(lambda: released == [1])
        assert {session.shard[0] for session in scene.pg.sessions} == {0, 2}
        gates[0].set()
        await scene.answer_to(first)
        await scene.until(lambda: released == [1, 0])
        gates[1].set()
        await ending
        assert released == [1, 0, 2]
        assert (await scene.answer_to(second)).content == "Done."


@pytest.mark.parametrize("three_shards", [FakeClock()], indirect=True)
async def test_what_was_missed_since_one_process_had_all_is_taken_up_by_whoever_takes_a_shard_later(
    scene: Scene,
) -> None:
    clock = scene.clock
    assert clock
    async with running(scene):
        for shard_id in range(COUNT):
            await scene.answer_to(mention(scene, shard_id))
    clock.advance(60)
    missed = [mention(scene, shard_id, "are you there?") for shard_id in range(COUNT)]
    clock.advance(60)
    async with process(scene, 0) as bot:
        await scene.answer_to(missed[0])
        await scene.until(lambda: not bot.catch_up.of(0).is_running)
        await bot.lifecycle.catch_up(0, guild_on(scene, 0).__eq__)
        assert await bot.snapshots.settled()
        await bot.add_shard(1)
        await scene.answer_to(missed[1])


async def test_a_shard_is_kept_while_it_is_not_stored_what_is_left_without_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[int] = []
    asked_for: list[bool] = []

    async def release(shard_id: int) -> None:
        released.append(shard_id)

    async with process(scene, 0, 1) as bot:
        gate = scene.held("Done.")
        asked = mention(scene, 1)
        await scene.until(lambda: scene.stub.requests)

        async def settled() -> bool:
            asked_for.append(0 in bot._shards.ids)
            notify(scene.pg)
            return asked_for[-1]

        monkeypatch.setattr(bot.snapshots, "settled", settled)
        ending = asyncio.create_task(bot.shut_down(release))
        await scene.until(lambda: False in asked_for)
        gate.set()
        await scene.answer_to(asked)
        await ending
        assert released == [1]
