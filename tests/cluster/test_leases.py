"""Leases of shards, in a real Redis: by one process each, and by nobody else while they may be held."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs

from cluster.leases import ALONE, COUNT, LEASE_SECONDS, MEMBERS, SHARD, SINCE, SURE_SECONDS, Leases, held
from tests.cluster.conftest import Join, settle


async def test_a_shard_is_one_processs_until_that_releases_it(join: Join) -> None:
    one, other = join().leases, join().leases
    assert await one.take(2, 4)
    assert await one.take(0, 4)
    assert not await other.take(2, 4)
    assert (one.ids, other.ids) == ([2, 0], [])
    assert (await other.renew(4)).free == {1, 3}
    await one.release([2])
    assert one.ids == [0]
    assert await other.take(2, 4)


async def test_a_lease_that_is_anothers_by_now_is_lost(join: Join) -> None:
    """As after 15 s in which the process stood still."""
    here, there = join(), join()
    await here.leases.take(0, 2)
    await here.leases.take(1, 2)
    await here.redis.delete(f"{SHARD}0")
    await there.leases.take(0, 2)
    assert (await here.leases.renew(2)).lost == (0,)
    await here.leases.release([0, 1])
    assert (await there.leases.renew(2)).free == {1}  # what is another's is not released


async def test_where_redis_lost_all_its_holder_comes_first(join: Join) -> None:
    here, there = join(), join()
    await here.leases.take(0, 2)
    await here.redis.flushdb()
    assert not (await there.leases.renew(2)).is_settled
    assert not await there.leases.take(0, 2)
    seen = await here.leases.renew(2)
    assert (seen.lost, seen.is_settled, seen.count) == ((), False, 2)
    await settle(here)
    assert not await there.leases.take(0, 2)
    assert await there.leases.take(1, 2)


async def test_a_redis_that_was_started_anew_is_waited_for_too(join: Join) -> None:
    here = join()
    await here.redis.set(SINCE, "anotherrun 0")
    assert not await here.leases.take(0, 2)
    assert not (await here.leases.renew(2)).is_settled
    await settle(here)
    assert (await here.leases.renew(2)).is_settled


async def test_keys_that_something_else_wrote_to_are_repaired_and_told_of(join: Join) -> None:
    here, there = join(), join()
    assert await here.leases.take(0, 2)
    for key in (f"{SHARD}0", f"{SHARD}1", COUNT, MEMBERS, SINCE):
        await here.redis.delete(key)
        await (here.redis.set(key, "1") if key == MEMBERS else here.redis.hset(key, "a", "b"))
    with capture_logs() as logs:
        seen = await here.leases.renew(2)
        await here.leases.renew(2)
    assert [entry["event"] for entry in logs] == ["keys_repaired"]
    assert (seen.lost, list(seen.members)) == ((), [here.name])
    await settle(here)
    assert not await there.leases.take(0, 2)
    assert not await there.leases.take(1, 2)  # somebody who has it may set it again
    assert 0 < await here.redis.pttl(f"{SHARD}1") <= LEASE_SECONDS * 1_000


async def test_values_that_somebody_else_wrote_there_are_no_reason_to_end(join: Join) -> None:
    here = join()
    assert await here.leases.take(0, 2)
    await here.redis.zadd(MEMBERS, {b"\xff\xfe": 9e15})
    await here.redis.set(COUNT, f"999999999 {here.leases.bot_id}")
    assert (await held(here.redis)).count is None
    await here.redis.set(COUNT, b"\xff abc")
    seen = await here.leases.renew(2)
    assert (seen.lost, seen.count, here.name in seen.members) == ((), 2, True)


async def test_those_that_end_count_no_more(join: Join) -> None:
    one, other = join().leases, join().leases
    await one.renew(4)
    assert len((await other.renew(4)).members) == 2
    await one.leave()
    assert len((await other.renew(4)).members) == 1
    await one.renew(4, is_member=False)  # what it still has it renews
    assert len((await other.renew(4)).members) == 1


async def test_nobody_takes_shards_of_another_count(join: Join) -> None:
    one, other = join(), join()
    await one.leases.take(0, 4)
    assert not await other.leases.take(5, 8)
    assert (await other.leases.renew(8)).count == 4
    await one.leases.release([0])
    await one.redis.delete(COUNT)  # as it is gone of itself when nobody renews it
    assert await other.leases.take(5, 8)


async def test_nobody_takes_any_beside_a_process_that_shares_with_nobody(join: Join) -> None:
    here = join()
    await here.redis.set(ALONE, "1")
    assert (await here.leases.renew(2)).is_alone_taken
    assert not await here.leases.take(0, 2)


async def test_one_whose_answer_was_lost_is_taken_again(join: Join) -> None:
    here = join()
    await here.redis.set(f"{SHARD}0", here.name)
    assert (await here.leases.renew(2)).free == {0, 1}
    assert await here.leases.take(0, 2)


async def test_what_was_not_renewed_in_time_is_not_sure(join: Join) -> None:
    here, now = join(), [100.0]
    leases = Leases(here.redis, here.name, lambda: now[0])
    assert leases.are_sure  # of none nobody else has any
    await leases.take(0, 2)
    now[0] += SURE_SECONDS - 1
    assert leases.are_sure
    await leases.take(1, 2)
    now[0] += 1
    assert not leases.are_sure
    waiting = asyncio.create_task(leases.sure())
    await leases.renew(2)
    await waiting
