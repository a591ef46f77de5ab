"""What was said on a shard while nobody served it comes by the session of its last process, not channel by channel."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from aiohttp import WSMessage, WSMsgType, web
from discord.gateway import DiscordWebSocket
from yarl import URL

from bot import Parley
from cluster import connection as connections
from cluster.connection import Cluster
from cluster.leases import SHARD
from cluster.sessions import Sessions
from discord_io import replay
from discord_io.replay import may_have_token
from persistence import catchup
from persistence.lifecycle import ALIVE
from playground.model import Message
from shards import Session, Shards
from tests.support.clock import FakeClock
from tests.support.lives import kill, open_stage
from tests.support.redis_server import redis_url  # noqa: F401 - a fixture
from tests.support.scene import Scene, make_bot, notify
from tests.support.stub_model import StubModel

pytestmark = pytest.mark.slow

CHANNELS, ASKED_EVERY = 500, 50  # as often as one person may ask
LATE_SECONDS = 0.1
FEW = 20  # requests for the history of channels; an answer takes one


@pytest.fixture
async def scene(stub: StubModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    """A busy server, of which the bot may read hardly anything once it is back."""
    monkeypatch.setattr(catchup, "MAX_REQUESTS", FEW)
    monkeypatch.setattr(connections, "IDENTIFY_SECONDS", 0.001)
    monkeypatch.setattr(replay, "NOTE_SECONDS", 0.001)
    names = [f"channel-{number}" for number in range(CHANNELS)]
    async with open_stage(stub, tmp_path / "state", clock=FakeClock(), channels=["general", *names]) as stage:
        yield stage


@pytest.fixture
def address(redis_url: str) -> str:  # noqa: F811
    with redis.Redis.from_url(url := f"{redis_url}?db=4") as client:
        client.flushdb()
    return url


@asynccontextmanager
async def process(scene: Scene, url: str, until: Callable[[], bool] | None = None) -> AsyncIterator[Sessions]:
    """The only one at the moment, once it has caught up, or until that."""
    assert scene.clock
    cluster = Cluster(url)
    store = cluster.sessions.store

    async def told(by_shard: Mapping[int, Session]) -> None:
        await store(by_shard)
        if by_shard:
            scene.journal.entries.append({"event": "sessions_stored"})
        notify(scene.pg)  # also of what nobody else tells: that it has caught up

    cluster.sessions.store = told  # type: ignore[method-assign]
    scene.pg.requests.clear()
    scene.journal.entries.clear()
    cluster.leases.names = {f"{SHARD}0": cluster.name}
    await cluster.redis.mset(cluster.leases.names)
    await cluster.leases.renew(1)
    bot = scene.bot = make_bot(scene, shards=Shards(1, [0]), cluster=cluster)
    connection = asyncio.create_task(bot.start(scene.pg.token))
    try:
        await scene.until(until or (lambda: bot.is_up(0) and bot.catch_up.beat()))
        yield cluster.sessions
    finally:
        await bot.close()
        connection.cancel()
        await asyncio.gather(connection, return_exceptions=True)
        await cluster.close()


async def noted(scene: Scene) -> None:
    """It has been there for some time, and is known to have heard all."""
    assert scene.clock
    await scene.until(lambda: scene.bot.replays and scene.bot.replays._noted.get(0))
    scene.clock.advance(60)
    scene.bot.catch_up.beat()
    scene.bot.snapshots.touch(ALIVE)
    scene.journal.entries.clear()
    await scene.until(lambda: scene.journal.find("sessions_stored"))


def missed(scene: Scene) -> list[Message]:
    """What is asked, while in all channels people talk."""
    assert scene.clock
    scene.clock.advance(20)
    asked = []
    for number in range(CHANNELS):
        channel = f"channel-{number}"
        if number % ASKED_EVERY == 0:
            asked.append(scene.mention("Ada", "and you?", channel=channel))
        else:
            scene.say("Ben", "nothing of interest", channel=channel)
    return asked


async def test_after_a_kill_all_questions_are_answered_once_by_hardly_any_request(scene: Scene, address: str) -> None:
    async with process(scene, address):
        await noted(scene)
        await kill(scene)
    scene.pg.delete(scene.mention("Chloe", "deleted"))
    edited = scene.mention("Chloe", "edited")
    scene.pg.edit(edited, f"<@{scene.pg.bot_id}> as it stands now")
    asked = [edited, *missed(scene)]
    async with process(scene, address):
        for question in asked:
            await scene.answer_to(question)
        await scene.at_rest()
        assert [m.reference.message_id for m in scene.said() if m.reference] == [edited.id]
        assert any("as it stands now" in str(request) for request in scene.stub.requests)
        assert len(scene.stub.requests) == len(asked)
        assert len(scene.sent("GET", "/messages")) < FEW
    assert scene.journal.find("replayed", channels=CHANNELS + 1)
    assert not scene.journal.find("catch_up_cut")


async def test_a_process_that_is_told_to_stop_leaves_its_session_to_the_next(scene: Scene, address: str) -> None:
    async def released(_shard_id: int) -> None:
        pass

    async with process(scene, address):
        await noted(scene)
        await scene.bot.shut_down(released)
    asked = missed(scene)
    async with process(scene, address):
        for question in asked:
            await scene.answer_to(question)
        assert len(scene.sent("GET", "/messages")) < FEW
    assert scene.journal.find("replayed", channels=CHANNELS)


async def test_what_heard_what_was_missed_has_no_connection_any_more_as_the_shard_identifies(
    scene: Scene, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected, is_identifying = list[list[int]](), asyncio.Event()
    identifies, receive = Cluster.identifies, web.WebSocketResponse.receive

    async def look(cluster: Cluster, shard_id: int) -> None:
        connected.append(scene.pg.connected_shards)
        is_identifying.set()
        await identifies(cluster, shard_id)

    async def receive_late(socket: web.WebSocketResponse, timeout: float | None = None) -> WSMessage:  # noqa: ASYNC109
        """The gateway has other things to do before it reads that a connection is closed."""
        frame = await receive(socket, timeout)
        if frame.type is WSMsgType.CLOSE:
            with suppress(TimeoutError):
                await asyncio.wait_for(is_identifying.wait(), LATE_SECONDS)
        return frame

    async with process(scene, address):
        await noted(scene)
        await kill(scene)
    monkeypatch.setattr(Cluster, "identifies", look)
    monkeypatch.setattr(web.WebSocketResponse, "receive", receive_late)
    async with process(scene, address):
        assert scene.journal.find("session_resumed")
    assert connected == [[]]


@pytest.mark.parametrize("is_resumed", [False, True])
async def test_a_shard_that_is_left_before_it_could_identify_has_no_connection_any_more(
    scene: Scene, address: str, monkeypatch: pytest.MonkeyPatch, *, is_resumed: bool
) -> None:
    async with process(scene, address):
        await noted(scene)
        await kill(scene)
    waiting = []

    async def may_identify(_bot: Parley, shard_id: int) -> None:
        waiting.append(shard_id)
        await asyncio.Event().wait()

    monkeypatch.setattr(Parley, "may_identify", may_identify)
    async with process(scene, address, lambda: scene.pg.connected_shards == [0]):
        if is_resumed:
            scene.say("Ada", "hello")
            await scene.until(lambda: waiting)
        assert bool(waiting) == is_resumed
        await scene.bot.disconnect_shard(0)
        await scene.until(lambda: not scene.pg.connected_shards)


async def test_what_was_answered_in_the_last_second_is_not_answered_again(scene: Scene, address: str) -> None:
    async with process(scene, address):
        await noted(scene)
        await scene.bot.snapshots.settled()
        before = scene.folder.with_name("before")
        shutil.copytree(scene.folder, before)
        answered = scene.mention("Ada", "hello")
        await scene.answer_to(answered)
        await kill(scene)
        scene.folder = before
    asked = scene.mention("Ben", "hello", channel="channel-0")
    async with process(scene, address):
        await scene.answer_to(asked)
        assert scene.journal.find("replayed", channels=2)
        assert not scene.decisions.get(answered.id, [])[1:]
        assert len(scene.said()) == 1


@pytest.mark.parametrize(
    "why",
    [
        "Discord has none any more",
        "it does not reach back as far",
        "it is elsewhere",
        "it is from when there were more shards",
    ],
)
async def test_without_such_a_session_it_is_read_channel_by_channel(scene: Scene, address: str, why: str) -> None:
    async with process(scene, address) as sessions:
        await noted(scene)
        known = await sessions.load(0)
        assert known
        await kill(scene)
        asked = scene.mention("Ada", "hello")
        if why == "Discord has none any more":
            scene.pg._gateway.sessions.clear()
        elif why == "it is elsewhere":
            await sessions.store({0: replace(known, url="wss://gateway.discord.gg.example/")})
        elif why == "it is from when there were more shards":
            await sessions.store({0: replace(known, count=2)})
        else:
            await sessions.store({0: replace(known, at=known.at + timedelta(seconds=55))})
    async with process(scene, address):
        await scene.answer_to(asked)
        assert [request.path for request in scene.sent("GET", f"/channels/{asked.channel_id}/messages")]
        assert not scene.journal.find("replayed", channels=1)
        assert bool(scene.journal.find("replay_refused")) == (why == "it is elsewhere")
        assert bool(scene.journal.find("no_replay")) == (why == "Discord has none any more")
        assert bool(scene.journal.find("session_resumed")) == (why == "it does not reach back as far")


def test_the_token_is_sent_to_the_gateway_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", URL("wss://gateway.discord.gg/"))
    assert may_have_token("wss://gateway-us-east1-b.discord.gg")
    for elsewhere in (
        "ws://gateway-us-east1-b.discord.gg",
        "wss://discord.gg.example",
        "ws://127.0.0.1:80",
        "",
        "//:x",
    ):
        assert not may_have_token(elsewhere)
    monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", URL("wss://gateway.example/"))
    assert may_have_token("wss://gateway.example/?v=10")
    assert not may_have_token("wss://gateway-us-east1-b.discord.gg")
