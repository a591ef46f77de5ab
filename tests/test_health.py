"""health.py: whether the process can serve, and who notices when it cannot."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator

import aiohttp
import pytest

from health import LATE_TICK_SECONDS, PATIENCE_SECONDS, Health, watch_gateway, watch_loop
from web.site import Site


class Seconds:
    """A monotonic clock that is turned by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def health(seconds: Seconds) -> Health:
    return Health(seconds)


@pytest.fixture
async def url(health: Health) -> AsyncIterator[str]:
    async with Site(health).served(0) as address:
        yield address


def test_before_the_first_connection_it_cannot_serve(health: Health, seconds: Seconds) -> None:
    seconds.now += 4
    assert health.problem() == "the gateway has not been connected for 4 s"


def test_connected_and_turning_it_serves(health: Health) -> None:
    health.gateway_up()
    assert health.problem() is None


def test_a_loop_that_does_not_turn_is_a_problem(health: Health, seconds: Seconds) -> None:
    health.gateway_up()
    seconds.now += LATE_TICK_SECONDS
    assert health.problem() is None
    seconds.now += 1
    assert health.problem() == "the event loop stands still"
    health.tick()
    assert health.problem() is None


def test_a_gateway_is_lost_when_it_stays_down_for_five_minutes(health: Health, seconds: Seconds) -> None:
    health.gateway_up()
    health.gateway_down()
    seconds.now += 200
    health.gateway_down()  # again, as each failed attempt reports
    seconds.now += PATIENCE_SECONDS - 200
    assert not health.gateway_is_lost()
    seconds.now += 1
    assert health.gateway_is_lost()
    health.gateway_up()
    assert not health.gateway_is_lost()


def test_a_gateway_that_never_came_up_is_lost_too(health: Health, seconds: Seconds) -> None:
    seconds.now += PATIENCE_SECONDS + 1
    assert health.gateway_is_lost()


def test_it_serves_while_all_its_shards_are_connected_and_says_which_are_not(health: Health, seconds: Seconds) -> None:
    health.expects(range(13))
    for shard_id in range(13):
        health.gateway_up(shard_id)
    assert health.problem() is None
    health.gateway_down(3)
    seconds.now += 5
    assert health.problem() == "shard 3 has not been connected for 5 s"
    assert [health.is_up(shard_id) for shard_id in (2, 3)] == [True, False]
    for shard_id in range(12):
        health.gateway_down(shard_id)
    assert health.problem() == "shards 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more have not been connected for 5 s"
    seconds.now += PATIENCE_SECONDS
    health.tick()
    assert health.gateway_is_lost()
    assert health.reconnects == 0
    for shard_id in range(12):
        health.gateway_up(shard_id)
    assert health.reconnects == 12
    assert health.problem() is None


def test_shards_that_wait_for_their_turn_are_not_lost(health: Health, seconds: Seconds) -> None:
    health.expects([0, 1])
    health.gateway_up(0)
    seconds.now += PATIENCE_SECONDS
    health.waits([1])
    seconds.now += 2
    health.tick()
    assert not health.gateway_is_lost()
    assert health.problem() == "shard 1 has not been connected for 2 s"
    health.leaves(1)
    assert health.problem() is None


def test_a_process_that_waits_for_shards_is_well(health: Health, seconds: Seconds) -> None:
    health.expects([])
    seconds.now += PATIENCE_SECONDS + 1
    health.tick()
    assert health.problem() is None
    assert not health.gateway_is_lost()


@pytest.mark.virtual_time
async def test_the_watch_over_the_gateway_ticks_until_it_is_lost(seconds: Seconds) -> None:
    ticks: list[float] = []

    class Ticking(Health):
        def tick(self) -> None:
            super().tick()
            seconds.now += 1
            ticks.append(seconds.now)

    await watch_gateway(Ticking(seconds))
    assert len(ticks) == PATIENCE_SECONDS + 1


def test_a_loop_that_stands_still_for_five_minutes_ends_the_process(health: Health, seconds: Seconds) -> None:
    seconds.now += PATIENCE_SECONDS + 1
    stuck = threading.Event()
    watch_loop(health, stuck.set, interval_seconds=0.001)
    assert stuck.wait(5)


def test_a_loop_that_turns_is_left_alone_and_the_watch_can_be_ended() -> None:
    looked = threading.Event()
    stuck = threading.Event()

    class Looked(Health):
        def loop_is_stuck(self) -> bool:
            looked.set()
            return super().loop_is_stuck()

    ended = watch_loop(Looked(), stuck.set, interval_seconds=0.001)
    assert looked.wait(5)
    ended.set()
    for thread in threading.enumerate():
        if thread.name == "watch_loop":
            thread.join(5)
    assert not stuck.is_set()


async def test_healthz_tells_the_host(health: Health, url: str) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/healthz") as response:
            assert (response.status, await response.text()) == (503, "the gateway has not been connected for 0 s")
        health.gateway_up()
        async with session.get(f"{url}/healthz", headers={"Host": "healthcheck.railway.app"}) as response:
            assert (response.status, await response.text()) == (200, "ok")


async def test_nothing_else_is_served(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        for method, path, status in (("GET", "/", 404), ("POST", "/healthz", 405)):
            async with session.request(method, url + path) as response:
                assert response.status == status


async def test_a_port_that_is_taken_is_an_oserror(url: str) -> None:
    with pytest.raises(OSError, match=r"(?i)address already in use"):
        async with Site(Health()).served(int(url.rsplit(":", 1)[1])):
            pass
