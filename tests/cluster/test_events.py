"""cluster/events.py: what something else wrote to the stream of privacy requests, in a real Redis."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from cluster.events import APPLIED, LAST, START, STREAM, Events, What
from tests.cluster.conftest import Join


@pytest.mark.parametrize("how", ["id", "type"])
async def test_a_stream_that_takes_no_more_events_is_begun_anew(join: Join, how: str) -> None:
    here = join()
    events = Events(here)
    await events.add(What.OPT_OUT, 7)
    if how == "id":
        await here.redis.xadd(STREAM, {"a": "b"}, id=f"{2**64 - 1}-{2**64 - 1}")
        (_, last) = await events.following(START)
        assert last.what is None
        assert await events.following(last.id) == []
    else:
        await here.redis.delete(STREAM)
        await here.redis.set(STREAM, "x")
    with capture_logs() as logs:
        assert await events.last() == START
    assert [entry["event"] for entry in logs] == ["privacy_requests_dropped"]
    assert START < await events.add(What.OPT_IN, 7) < LAST
    assert [event.what for event in await events.following(START)] == [What.OPT_IN]


@pytest.mark.parametrize("is_adding", [True, False])
async def test_whoever_uses_a_stream_of_another_type_repairs_it(join: Join, is_adding: bool) -> None:
    here = join()
    events = Events(here)
    await here.redis.set(STREAM, "x")
    if is_adding:
        assert await events.add(What.OPT_OUT, 7) > START
    else:
        assert await events.following((5, 0)) == []
    assert await here.redis.type(STREAM) == ("stream" if is_adding else "none")


async def test_what_is_done_counts_as_unknown_where_something_else_wrote_it_and_is_stored_anew(join: Join) -> None:
    here = join()
    events = Events(here)
    assert await here.leases.take(0, 2)
    await here.redis.set(f"{APPLIED}2", "x")
    assert await events.applied(2) == {}
    await events.apply([0], (5, 6), 2)
    assert await events.applied(2) == {0: (5, 6)}


@pytest.mark.parametrize("shard_id", ["9" * 5_000, "\u0662"])
async def test_what_no_shard_has_done_is_passed_over(join: Join, shard_id: str) -> None:
    here = join()
    await here.redis.hset(f"{APPLIED}2", mapping={shard_id: "0-0", "0": f"{10**20 - 1}-0", "1": "5-6"})
    assert await Events(here).applied(2) == {1: (5, 6)}
