"""What people ask for reaches all shards, whichever process has them, now or later. With a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import SecretStr

from bot import Parley
from cluster import events as events_module
from cluster.connection import Cluster
from cluster.events import APPLIED, STREAM, Event, Events, What
from cluster.leases import SHARD
from config import Settings
from conversation import MessageRecord
from decider import Decision, FollowupRules, Reason
from discord_io.backlog import id_at
from doctor.checks_storage import check_instance
from doctor.findings import State
from followup.decision_file import FILE_NAME, DecisionFile
from followup.learning import Entry
from persistence import cluster_privacy
from persistence.cluster_privacy import ClusterPrivacy
from persistence.lock import InUseError, in_use
from persistence.open_store import check_stores, find_seal
from shards import Shards
from state.message import Appended
from storage.store import StoreError
from tests.support.people import ANNA, BEN, CLEO, said
from tests.support.redis_server import redis_url  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow

COUNT = 4
GUILDS = [(number + COUNT) << 22 for number in range(COUNT)]  # one on each shard
CHANNELS = [guild + 1 for guild in GUILDS]


class Process:
    """A bot that is not connected to Discord, and the shards that it has."""

    def __init__(self, url: str, folder: Path, *shard_ids: int, count: int = COUNT) -> None:
        self.url, self.folder = url, folder
        settings = Settings(model="demo", state_dir=folder, decision_log="off")
        settings = settings.model_copy(update={"redis_url": SecretStr(url)})  # a socket, as no owner has it
        self.shards = Shards(count, shard_ids)
        self.cluster = Cluster(url)
        self.bot = Parley(settings, followup=FollowupRules(60), shards=self.shards, cluster=self.cluster)
        assert self.bot.parts.requests
        self.requests: ClusterPrivacy = self.bot.parts.requests
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> Process:
        await asyncio.to_thread(check_stores, self.folder, self.url, None)
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


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is waited for in vain is looked for again at once."""
    monkeypatch.setattr(cluster_privacy, "LOOK_SECONDS", 0.005)
    monkeypatch.setattr(cluster_privacy, "PAUSE_SECONDS", 0.005)
    monkeypatch.setattr(events_module, "BLOCK_SECONDS", 0.1)


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

    async def one_more(*shard_ids: int, count: int = COUNT) -> Process:
        url = f"{request.getfixturevalue('redis_url')}?db=2"
        started.append(Process(url, tmp_path / str(len(started)), *shard_ids, count=count))
        return await started[-1].start()

    yield one_more
    for process in started:
        await process.die()


def now(content: str, author: int = ANNA) -> MessageRecord:
    at = datetime.now(UTC)
    return said(author, content, at, message_id=id_at(at) + said(author).message_id)


async def test_what_something_else_writes_where_progress_is_noted_stops_no_request(
    start: Start, client: Cluster
) -> None:
    one, other = await start(0, 1), await start(2)
    await client.redis.hset(f"{APPLIED}{COUNT}", mapping={"x": "1-0", "-1": "1-0", "3": "1", "1": "1-2-3"})
    last = await start(3)
    await last.said(3, now("a secret"), now("hello", BEN))
    assert await one.requests.opt_out(ANNA, now("").message_id)
    assert last.heard(3) == await last.stored(3) == ["hello"]
    assert other.requests.is_opted_out(ANNA)


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
    meanwhile = now("said while they are opted out")
    assert await other.requests.opt_in(ANNA, meanwhile.message_id)
    assert not one.requests.is_opted_out(ANNA)
    assert one.bot.parts.consent.is_forgotten(CHANNELS[1], meanwhile)
    assert not (await start(1)).requests.is_opted_out(ANNA)


async def test_what_was_asked_while_nobody_had_a_shard_is_done_by_whoever_takes_it(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_privacy, "ANSWER_SECONDS", 0.0)
    one, other = await start(0, 1), await start(2, 3)
    await one.said(1, now("a secret"), now("hello", BEN))
    await other.said(2, now("a secret"), now("hello", BEN))
    await other.die()
    assert not await one.requests.opt_out(ANNA, now("").message_id)
    assert not await one.requests.opt_in(ANNA, now("").message_id)
    await one.said(1, now("later"))
    third = await start(2, 3)
    assert third.heard(2) == await third.stored(2) == ["hello"]
    assert not third.requests.is_opted_out(ANNA)
    assert third.bot.parts.consent.is_forgotten(CHANNELS[2], said(ANNA, message_id=1))
    assert one.heard(1) == ["hello", "later"]  # there it had been done
    monkeypatch.undo()
    assert await one.requests.settle()


async def test_what_was_forwarded_from_a_channel_is_forgotten_with_it_by_whoever_takes_the_shard_where_it_is(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_privacy, "ANSWER_SECONDS", 0.0)
    one, other = await start(0, 1), await start(2, 3)
    await one.said(1, now("a secret"))
    forward = replace(now("[forwarded] a secret", BEN), drew_on=frozenset({ANNA, CHANNELS[1]}))
    await other.said(2, forward, now("hello", BEN))
    await other.die()
    assert not await one.requests.forget_channel(CHANNELS[1], now("").message_id)
    assert one.heard(1) == await one.stored(1) == []
    third = await start(2, 3)
    assert third.heard(2) == await third.stored(2) == ["hello"]
    assert third.bot.parts.consent.is_forgotten(CHANNELS[1], said(ANNA, message_id=1))


async def test_no_process_goes_on_alone_before_that_is_done(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cluster_privacy, "ANSWER_SECONDS", 0.0)
    one, other = await start(0, 1), await start(2, 3)
    await other.said(2, now("a secret"))
    await other.die()
    assert not await one.requests.opt_out(ANNA, now("").message_id)
    await one.die()
    with pytest.raises(InUseError, match="/optout"), in_use(tmp_path / "alone", one.url, 0.0):
        pytest.fail("it would tell its model the secret")
    assert check_instance(tmp_path / "alone", one.url).state is State.FAULT
    third = await start(0, 1, 2, 3)
    assert await third.stored(2) == []
    await third.die()
    with in_use(tmp_path / "alone", one.url, 0.0):
        pass


async def test_whoever_died_with_something_else_stored_is_set_right(start: Start, client: Cluster) -> None:
    one, other = await start(0, 1), await start(2, 3)
    theirs = next(process for process in (one, other) if process.shards.has(ANNA))
    rest = one if theirs is other else other
    await theirs.die()
    events = Events(client)
    for what in (What.OPT_OUT, What.OPT_IN, What.OPT_OUT):
        await events.add(what, ANNA, 1)
    assert not await client.redis.exists("parley:rows:opted_out:0")
    taken = await start(*theirs.shards.ids)
    assert await rest.requests.settle()
    assert await client.redis.hkeys("parley:rows:opted_out:0") == [str(ANNA)]
    assert taken.requests.is_opted_out(ANNA)
    assert rest.requests.is_opted_out(ANNA)


async def test_what_somebody_asks_again_and_again_is_done_once(
    start: Start, client: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await start(0, 1), await start(2, 3)
    await other.said(2, now("a secret"))
    await other.die()
    done: list[What] = []
    carry_out = ClusterPrivacy._carry_out

    async def count(self: ClusterPrivacy, event: Event, shard_ids: Collection[int], **how: Any) -> None:
        assert event.what
        done.append(event.what)
        await carry_out(self, event, shard_ids, **how)

    events = Events(client)
    for what in (What.FORGET, What.SETTLE) * 100:
        await events.add(what, ANNA if what is What.FORGET else 0, now("").message_id)
    monkeypatch.setattr(ClusterPrivacy, "_carry_out", count)
    third = await start(2, 3)
    assert third.heard(2) == await third.stored(2) == []
    assert len(done) < 20
    assert await one.requests.settle()


async def test_a_shard_that_is_left_is_left_alone(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    one = await start(0, 1, 2, 3)
    await one.said(1, now("a secret"))
    await one.requests.leave([1])
    monkeypatch.setattr(cluster_privacy, "ANSWER_SECONDS", 0.0)
    assert not await one.requests.forget_person(ANNA, now("").message_id)
    assert one.heard(1) == await one.stored(1) == ["a secret"]


async def test_the_decision_log_of_whoever_was_away_forgets_too(start: Start) -> None:
    await start(0, 1)
    other = await start(2, 3)
    await other.die()
    file = DecisionFile(other.folder / FILE_NAME, find_seal(other.folder, other.url, None))
    first = now("").message_id
    rows = [(CHANNELS[2], ANNA), (CHANNELS[3], BEN), (CHANNELS[2], BEN)]
    file.write(
        [Entry(first + i, row[0], 1, row[1], 0.0, 0.0, True, "mention", 1, 1.0, "") for i, row in enumerate(rows)]
    )
    third = await start(2, 3)
    assert await third.requests.forget_person(ANNA, now("").message_id + 10)
    assert await third.requests.forget_channel(CHANNELS[3], now("").message_id + 10)
    await third.die()
    await (await Process(other.url, other.folder, 2, 3).start()).die()
    assert [(entry.channel_id, entry.author_id) for entry in file.read()] == [(CHANNELS[2], BEN)]


async def test_a_shard_that_could_not_be_connected_is_left_to_whoever_takes_it(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_privacy, "ANSWER_SECONDS", 0.1)
    one, other = await start(0, 1), await start(2, 3)
    await other.said(3, now("a secret"), now("hello", BEN))
    other.shards.drop(3)  # as the keeper does then
    assert not await one.requests.forget_person(ANNA, now("").message_id)
    third = await start(3)
    assert third.heard(3) == await third.stored(3) == ["hello"]


async def test_of_a_shard_that_another_process_has_by_now_nothing_is_said_to_be_done(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_privacy, "ANSWER_SECONDS", 0.1)
    one, paused = await start(0, 1), await start(2, 3)
    third = await start(2, 3)  # whose leases it has by now
    await third.said(2, now("a secret"), now("hello", BEN))
    await third.die()
    assert not await one.requests.forget_person(ANNA, now("").message_id)
    assert paused.heard(2) == []
    fourth = await start(2, 3)
    assert fourth.heard(2) == await fourth.stored(2) == ["hello"]
    assert await one.requests.settle()


async def test_what_could_not_be_noted_is_noted_once_it_can_be(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _other = await start(0, 1), await start(2, 3)
    apply, is_away = Events.apply, [True, True]

    async def refuse(events: Events, *how: Any) -> None:
        if is_away and is_away.pop():
            raise StoreError("Redis is away")
        await apply(events, *how)

    monkeypatch.setattr(Events, "apply", refuse)
    assert await one.requests.settle()
    assert not is_away


async def test_of_what_is_asked_again_while_nobody_has_a_shard_the_last_waits_and_nothing_is_lost(
    start: Start, client: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "MANY", 10)
    one, other = await start(0, 1), await start(2, 3)
    await other.said(2, now("a secret"), now("hello", BEN))
    await other.die()
    events = Events(client)
    await client.redis.xadd(STREAM, {"something": "else"})
    await events.add(What.OPT_OUT, ANNA, now("").message_id)
    for _ in range(50):
        await events.add(What.FORGET, CLEO, 1)
        await events.add(What.SETTLE)
    assert await client.redis.xlen(STREAM) < 20
    third = await start(2, 3)
    assert third.heard(2) == await third.stored(2) == ["hello"]
    assert third.requests.is_opted_out(ANNA)
    assert await one.requests.settle()


async def test_an_export_holds_what_other_processes_keep(start: Start) -> None:
    one, other = await start(0, 1), await start(2, 3)
    await one.said(1, now("here"))
    await other.said(2, now("there"), now("not mine", BEN))
    assert await one.requests.settle()
    messages = orjson.loads(await one.requests.export(ANNA))["messages"]
    told = {(message["server"], message["content"]) for message in messages}
    assert told == {(str(GUILDS[1]), "here"), (str(GUILDS[2]), "there")}


async def test_what_could_not_be_stored_is_tried_again_and_what_is_said_since_stays(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await start(0, 1, 2, 3)
    await one.said(1, now("a secret"))
    tried = asyncio.Event()

    async def fail(*_: object) -> None:
        tried.set()
        raise StoreError("no room")

    with monkeypatch.context() as full:
        full.setattr(one.bot.snapshots, "forget_person", fail)
        full.setattr(cluster_privacy, "ANSWER_SECONDS", 0.0)
        assert not await one.requests.forget_person(ANNA, now("").message_id)
        await tried.wait()
        await one.said(1, now("a question"))
    assert await one.requests.settle()
    assert one.heard(1) == await one.stored(1) == ["a question"]


async def test_a_request_that_cannot_be_read_keeps_none_behind_it_from_being_done(
    start: Start, client: Cluster
) -> None:
    one = await start(0, 1, 2, 3)
    await one.said(1, now("a secret"))
    await client.redis.xadd(STREAM, {"something": "else"})
    for user, at in (("nobody", 1), (2**63, 1), (ANNA, 2**64), (-1, 1)):
        await client.redis.xadd(STREAM, {"what": What.FORGET.value, "user": user, "at": at})
    assert await one.requests.forget_person(ANNA, now("").message_id)
    assert one.heard(1) == []
    await one.die()
    await start(0, 1, 2, 3)  # also whoever comes later


async def test_while_redis_is_away_it_is_done_here_and_everywhere_once_that_is_back(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await start(0, 1), await start(2, 3)
    await one.said(1, now("a secret"))
    await other.said(2, now("a secret"), now("hello", BEN))

    async def refuse(*_: object, **__: object) -> None:
        raise StoreError("Redis is away")

    with monkeypatch.context() as away:
        away.setattr(Events, "add", refuse)
        away.setattr(one.bot.snapshots, "forget_person", refuse)
        with pytest.raises(StoreError, match="away"):
            await one.requests.opt_out(ANNA, now("").message_id)
        assert one.heard(1) == []
        assert one.requests.is_opted_out(ANNA)
        await one.said(1, now("an aside"))
    assert await one.requests.settle()
    assert other.requests.is_opted_out(ANNA)
    assert other.heard(2) == await other.stored(2) == ["hello"]
    assert one.heard(1) == await one.stored(1) == ["an aside"]


async def test_a_channel_that_could_not_be_forgotten_is_by_whoever_takes_its_shard_next(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the process was killed, for one."""
    monkeypatch.setattr(cluster_privacy, "ANSWER_SECONDS", 0.0)
    one = await start(0, 1, 2, 3)
    await one.said(1, now("a secret"))

    async def fail(*_: object) -> None:
        raise StoreError("no room")

    with monkeypatch.context() as full:
        full.setattr(one.bot.snapshots, "forget_where", fail)
        with pytest.raises(StoreError, match="room"):
            await one.requests.forget_channel(CHANNELS[1], now("").message_id)
        await one.said(1, now("a question"))
        await one.die()
    other = await start(0, 1, 2, 3)
    assert await other.stored(1) == ["a question"]


async def test_what_was_said_while_opted_out_is_quoted_by_no_process_after_opting_in(start: Start) -> None:
    one, other = await start(0, 1), await start(2, 3)
    assert await one.requests.opt_out(ANNA, now("").message_id)
    decisions = other.bot.parts.decisions
    decisions.add(
        now("a secret").message_id, CHANNELS[2], ANNA, Decision(False, Reason.OPTED_OUT), GUILDS[2], is_ignored=True
    )
    decisions.add(
        now("hello", BEN).message_id, CHANNELS[2], BEN, Decision(False, Reason.NO_TRIGGER), GUILDS[2], is_ignored=True
    )
    assert await one.requests.opt_in(ANNA, now("").message_id)
    assert [entry.author_id for entry in decisions.latest(CHANNELS[2], 2)] == [BEN]


async def test_whoever_opts_out_and_in_at_once_is_the_same_to_all(start: Start, client: Cluster) -> None:
    one, other = await start(0, 1), await start(2, 3)
    for _ in range(20):
        out, back = one.requests.opt_out(ANNA, now("").message_id), other.requests.opt_in(ANNA, 0)
        assert all(await asyncio.gather(out, back))
        is_out = one.requests.is_opted_out(ANNA)
        assert other.requests.is_opted_out(ANNA) is is_out
        assert await client.redis.hkeys("parley:rows:opted_out:0") == ([str(ANNA)] if is_out else [])


async def test_what_is_asked_behind_the_loss_of_the_stream_is_done(start: Start, client: Cluster) -> None:
    one, other = await start(0, 1), await start(2, 3)
    await one.said(1, now("a secret"))
    await other.said(2, now("a secret"))
    assert await one.requests.settle()
    await client.redis.delete(STREAM, f"{APPLIED}{COUNT}")
    assert await one.requests.opt_out(ANNA, now("").message_id)
    for process, number in ((one, 1), (other, 2)):
        assert process.requests.is_opted_out(ANNA)
        assert process.heard(number) == await process.stored(number) == []


@pytest.mark.parametrize("count", [1, 2, 3, 6])
async def test_where_there_are_more_or_fewer_shards_what_one_of_the_old_had_not_done_is_done(
    start: Start, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(cluster_privacy, "ANSWER_SECONDS", 0.0)
    one, other = await start(0, 1), await start(2, 3)
    await other.said(3, now("a secret"), now("hello", BEN))
    await other.die()
    assert not await one.requests.forget_person(ANNA, now("").message_id)
    await one.die()
    anew = await start(*range(count), count=count)
    assert anew.heard(3) == await anew.stored(3) == ["hello"]
