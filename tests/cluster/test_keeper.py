"""Which shards a process takes and when, beside others in a real Redis; and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from redis import RedisError
from structlog.testing import capture_logs

from cluster import keeper as keeper_module
from cluster.connection import Cluster
from cluster.keeper import CALM_SECONDS, GIVING, PATIENCE_SECONDS, SPARE_SECONDS, HeldError, Keeper
from cluster.leases import ALONE, COUNT, SHARD, SINCE, Seen
from shards import IDENTIFY_SECONDS
from tests.cluster.conftest import Join, settle

COUNT_OF_ALL = 4
BOT_ID = 5


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks again at once."""
    monkeypatch.setattr(keeper_module, "RENEW_SECONDS", 0)
    monkeypatch.setattr(keeper_module, "RETRY_SECONDS", 0)


@dataclass
class FakeBot:
    """Connects what it is told to; those of `broken` not at first. It does not leave those that are used."""

    process: Process
    broken: set[int] = field(default_factory=set)
    used: set[int] = field(default_factory=set)

    def is_up(self, shard_id: int) -> bool:
        return shard_id in self.process.keeper.shards.ids

    async def add_shard(self, shard_id: int) -> None:
        if shard_id in self.broken:
            self.broken.discard(shard_id)
            raise OSError("the disk is full")
        self.process.keeper.shards.add(shard_id)

    async def leave_shard(self, shard_id: int) -> bool:
        if shard_id in self.used:
            return False
        self.process.keeper.shards.drop(shard_id)
        return True


class Process:
    """One with a keeper, whose clock is turned by hand."""

    def __init__(self, cluster: Cluster, *wanted: int, count: int | None = COUNT_OF_ALL, bot_id: int = BOT_ID) -> None:
        self.seconds = 0.0
        self.ended = asyncio.Event()
        self.cluster = cluster
        self.keeper = Keeper(cluster, count, wanted, end=self.ended.set, clock=lambda: self.seconds)
        self.keeper.expects(8, 2, bot_id)
        self.bot = FakeBot(self)

    @property
    def ids(self) -> list[int]:
        return self.cluster.leases.ids

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Once it has its first shard."""
        async with self.keeper.renewing():
            await self.keeper.first()
            async with self.keeper.taking(self.bot):
                yield


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_two_processes_have_half_each_and_one_alone_all_after_a_while(join: Join) -> None:
    one, other = Process(join()), Process(join())
    await other.cluster.leases.renew(COUNT_OF_ALL)
    async with one.running():
        await until(lambda: len(one.ids) == 2)
        async with other.running():
            await until(lambda: sorted(one.ids + other.ids) == [0, 1, 2, 3])
            assert other.keeper.shards.ids == other.ids
        # What it gave back at its end is the other's, whose share is all now.
        await until(lambda: len(one.ids) == COUNT_OF_ALL)


async def test_beyond_its_share_it_takes_what_nobody_took_for_a_while(join: Join) -> None:
    process, idle = Process(join()), join()
    await idle.leases.renew(COUNT_OF_ALL)  # as one does that never comes to take its own
    async with process.running():
        await until(lambda: len(process.ids) == 2)
        process.seconds += SPARE_SECONDS
        seen = await process.keeper._look()
        assert seen
        assert process.keeper._choice(seen) == []  # the other may wait for its IDENTIFY
        process.seconds += IDENTIFY_SECONDS
        await until(lambda: len(process.ids) == COUNT_OF_ALL)


async def test_what_nobody_may_take_yet_does_not_count_as_left_by_others(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, idle = Process(join()), join()
    await idle.leases.renew(COUNT_OF_ALL)
    await idle.redis.set(SINCE, "anotherrun 0")  # it has just been started
    renew, looks = process.cluster.leases.renew, 0

    async def counted(count: int, *, is_member: bool = True) -> Seen:
        nonlocal looks
        looks += 1
        return await renew(count, is_member=is_member)

    async def look_again(times: int = 6) -> None:
        until_then = looks + times
        await until(lambda: looks >= until_then)

    monkeypatch.setattr(process.cluster.leases, "renew", counted)
    async with process.keeper.renewing():
        first = asyncio.create_task(process.keeper.first())
        await look_again()
        process.seconds += SPARE_SECONDS
        await look_again()
        await settle(idle)
        await first
        async with process.keeper.taking(process.bot):
            await until(lambda: len(process.ids) >= 2)
            await look_again()
            assert len(process.ids) == 2


async def test_while_others_take_theirs_it_leaves_them_the_rest(join: Join) -> None:
    """As at a start of all, where each IDENTIFY waits for the one before."""
    process, slow = Process(join()), join()
    slow.leases.bot_id = BOT_ID
    await slow.leases.renew(COUNT_OF_ALL)
    async with process.running():
        await until(lambda: len(process.ids) == 2)
        await process.keeper._look()
        process.seconds += SPARE_SECONDS + IDENTIFY_SECONDS - 1
        assert await slow.leases.take(2, COUNT_OF_ALL)
        await process.keeper._look()
        process.seconds += 2
        seen = await process.keeper._look()
        assert seen
        assert process.keeper._choice(seen) == []
        process.seconds += SPARE_SECONDS + IDENTIFY_SECONDS
        await until(lambda: sorted(process.ids) == [0, 1, 3])


async def test_who_comes_too_many_stands_by_and_goes_by_the_count_of_the_others(join: Join) -> None:
    one, spare = Process(join(), count=1), Process(join(), count=None)
    async with spare.keeper.renewing():
        async with one.running():
            with capture_logs() as logs:
                waiting = asyncio.create_task(spare.keeper.first())
                await until(lambda: logs)
                assert spare.keeper.shards.ids == []
        await waiting
        assert spare.keeper.shards.ids == [0]
    assert [entry["event"] for entry in logs] == ["standing_by"]


async def test_who_has_many_gives_to_who_has_few_one_at_a_time_once_all_is_calm(join: Join) -> None:
    full, fresh = Process(join()), Process(join())
    async with full.running():
        await until(lambda: len(full.ids) == COUNT_OF_ALL)
        full.bot.used = {3}
        async with fresh.keeper.renewing():
            first = asyncio.create_task(fresh.keeper.first())
            await until(lambda: full.keeper._members.get(fresh.cluster.name) == 0)
            seen = await full.keeper._look()
            assert seen
            full.seconds += CALM_SECONDS - 1
            await full.keeper._give(full.bot, seen)
            assert full.ids == [0, 1, 2, 3]
            full.seconds += 1
            await first
            async with fresh.keeper.taking(fresh.bot):
                await until(lambda: full.keeper._members.get(fresh.cluster.name) == 1)
                full.seconds += CALM_SECONDS
                await full.keeper._give(full.bot, seen)  # another has just given one, for all that is known
                assert (full.ids, fresh.ids) == ([0, 1, 3], [2])
                await full.cluster.give_up(GIVING)
                await until(lambda: (full.ids, fresh.ids) == ([0, 3], [2, 1]))
                assert full.keeper.shards.ids == [0, 3]


async def test_one_that_breaks_as_it_leaves_a_shard_ends(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    process, fresh = Process(join()), join()
    fresh.leases.bot_id = BOT_ID

    async def fail(_: int) -> bool:
        raise OSError("the line broke")

    async with process.running():
        await until(lambda: len(process.ids) == COUNT_OF_ALL)
        await fresh.leases.renew(COUNT_OF_ALL)
        monkeypatch.setattr(process.bot, "leave_shard", fail)
        await until(lambda: fresh.name in process.keeper._members)
        process.seconds += CALM_SECONDS
        with capture_logs() as logs:
            await process.ended.wait()
    assert "shard_not_left" in {entry["event"] for entry in logs}


async def test_who_has_one_more_than_another_keeps_it(join: Join) -> None:
    process, others = Process(join()), [join(), join()]
    for shard_id, other in enumerate(others, 2):
        other.leases.bot_id = BOT_ID
        await other.leases.renew(COUNT_OF_ALL)
        await other.leases.take(shard_id, COUNT_OF_ALL)
    async with process.running():
        await until(lambda: len(process.ids) == 2)
        process.seconds += CALM_SECONDS
        seen = await process.keeper._look()
        assert seen
        await process.keeper._give(process.bot, seen)
        assert process.ids == [0, 1]


async def test_to_who_may_have_none_nothing_is_given(join: Join) -> None:
    """As to one of a later deploy, which waits with another SHARD_COUNT, and to one with SHARD_IDS."""
    process, later, fixed = Process(join()), Process(join(), count=8), Process(join(), 0)
    async with process.running():
        await until(lambda: len(process.ids) == COUNT_OF_ALL)
        for other in (later, fixed):
            for _ in range(2):
                await other.keeper._look()
        seen = await process.keeper._look()
        assert seen
        assert list(seen.members) == [process.cluster.name]


async def test_one_that_ends_takes_none_any_more(join: Join) -> None:
    process, idle = Process(join()), join()
    await idle.leases.renew(COUNT_OF_ALL)
    async with process.running():
        await until(lambda: len(process.ids) == 2)
        await process.keeper.leave()
        await process.keeper.release(process.ids[0])
        assert len((await idle.leases.renew(COUNT_OF_ALL)).members) == 1
        await until(lambda: len(process.ids) == 1)


async def test_one_that_ends_gives_nothing_back_before_the_connection_it_began_is_closed(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, idle = Process(join()), join()
    await idle.leases.renew(COUNT_OF_ALL)
    begun, closed = asyncio.Event(), asyncio.Event()

    async def add_shard(_shard_id: int) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            closed.set()

    monkeypatch.setattr(process.bot, "add_shard", add_shard)
    async with process.running():
        await begun.wait()
        leave = process.cluster.leases.leave

        async def leave_once_closed() -> None:
            assert closed.is_set()
            await leave()

        monkeypatch.setattr(process.cluster.leases, "leave", leave_once_closed)
        await process.keeper.leave()
        assert len(process.ids) == 2


async def test_a_shard_that_is_anothers_by_now_ends_the_process(join: Join) -> None:
    process, other = Process(join(), 0), join()
    with capture_logs() as logs:
        async with process.running():
            await other.redis.set(f"{SHARD}0", other.name)
            await process.ended.wait()
    assert [entry["shards"] for entry in logs if entry["event"] == "shard_lost"][:1] == [(0,)]


async def test_one_that_gets_none_of_its_own_shards_says_so_after_a_while(join: Join) -> None:
    holder, second = Process(join(), 0, 1), Process(join(), 0, 1)
    async with holder.running(), second.keeper.renewing():
        await until(lambda: len(holder.ids) == 2)
        waiting = asyncio.create_task(second.keeper.first())
        await until(lambda: second.keeper._told)
        second.seconds += PATIENCE_SECONDS + 1
        with pytest.raises(HeldError, match="SHARD_IDS names what another process has \\(0, 1\\)"):
            await waiting


async def test_beside_one_that_runs_alone_it_says_so_after_a_while(join: Join) -> None:
    process = Process(join())
    await process.cluster.redis.set(ALONE, "1")
    async with process.keeper.renewing():
        waiting = asyncio.create_task(process.keeper.first())
        await until(lambda: process.keeper._told)
        process.seconds += PATIENCE_SECONDS + 1
        with pytest.raises(HeldError, match="REDIS_URL is in use by a process that runs alone"):
            await waiting


async def test_another_bots_redis_is_not_shared(join: Join) -> None:
    here, there = Process(join()), Process(join(), bot_id=BOT_ID + 1)
    async with here.running(), there.keeper.renewing():
        waiting = asyncio.create_task(there.keeper.first())
        await until(lambda: there.keeper._told)
        assert there.ids == []
        there.seconds += PATIENCE_SECONDS + 1
        with pytest.raises(HeldError, match="in use by another bot"):
            await waiting


async def test_another_count_than_that_of_the_others_is_waited_with_until_they_have_ended(join: Join) -> None:
    old, new = Process(join(), count=2), Process(join(), count=8)
    async with new.keeper.renewing():
        async with old.running():
            waiting = asyncio.create_task(new.keeper.first())
            await until(lambda: new.keeper._told)
            new.seconds += PATIENCE_SECONDS + 1
            assert "shards of 2, not of 8" in new.keeper._told
        await new.cluster.redis.delete(COUNT)  # as it is gone of itself when nobody renews it
        await waiting


async def test_a_shard_that_cannot_be_added_is_given_back_and_the_others_go_on(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper_module, "SPARE_SECONDS", 0)
    process = Process(join())
    process.bot.broken = {1}
    with capture_logs() as logs:
        async with process.running():
            await until(lambda: len(process.keeper.shards.ids) == COUNT_OF_ALL)
    assert {"event": "shard_released", "log_level": "info", "shard": 1} in logs
    assert [entry["shard"] for entry in logs if entry["event"] == "shard_not_added"] == [1]


async def test_a_redis_that_does_not_answer_is_told_of_once_and_asked_again(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(join())
    with capture_logs() as logs:
        async with process.running():
            pool = process.cluster.redis.connection_pool
            monkeypatch.setattr(pool, "get_connection", _refused)
            await until(lambda: any(entry["event"] == "leases_not_renewed" for entry in logs))
            monkeypatch.undo()
            await until(lambda: any(entry["event"] == "leases_renewed" for entry in logs))
            assert not process.ended.is_set()


async def test_a_stop_asks_a_redis_that_hangs_once(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_module, "FAREWELL_SECONDS", 0.01)
    process, asked = Process(join()), []

    async def hang(*shard_ids: object) -> None:
        asked.append(shard_ids)
        await asyncio.Event().wait()

    async with process.running():
        await until(lambda: len(process.ids) == COUNT_OF_ALL)
        monkeypatch.setattr(process.cluster.leases, "leave", hang)
        monkeypatch.setattr(process.cluster.leases, "release", hang)
        monkeypatch.setattr(process.keeper, "_look", hang)
    assert asked


async def _refused(*_: object, **__: object) -> None:
    raise RedisError("refused")


async def test_a_process_ends_if_an_error_of_its_own_ended_the_renewal_of_its_leases(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would answer nobody any more once they have run out, and say nothing."""
    process = Process(join())

    async def broken(_keeper: Keeper) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Keeper, "_look", broken)
    with capture_logs() as logs:
        async with process.keeper.renewing():
            await asyncio.wait_for(process.ended.wait(), 10)
    assert "renewal_broken" in [entry["event"] for entry in logs]
