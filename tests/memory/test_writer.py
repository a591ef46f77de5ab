"""memory/writer.py: one thread does all, in order, and what fails costs nobody anything."""

from __future__ import annotations

import threading

import pytest
from structlog.testing import capture_logs

from memory.writer import Writer


class Work:
    """Notes what is done, and where."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self.threads: set[str] = set()

    def __call__(self, what: object) -> None:
        self.done.append(what)
        self.threads.add(threading.current_thread().name)


def failing(error: Exception) -> None:
    raise error


async def test_all_is_done_in_order_in_one_thread_of_its_own() -> None:
    writer, work = Writer(), Work()
    for number in range(100):
        writer.put(lambda number=number: work(number))  # type: ignore[misc]
    assert await writer.run(lambda: len(work.done)) == 100
    writer.put(lambda: work("last"))
    await writer.close()
    assert work.done == [*range(100), "last"]
    assert work.threads == {"writer"}


async def test_what_was_put_before_anything_else_is_done_when_it_closes() -> None:
    writer, work = Writer(), Work()
    writer.put(lambda: work("only"))
    await writer.close()
    assert work.done == ["only"]


async def test_what_is_awaited_raises_where_it_is_awaited_and_the_rest_goes_on() -> None:
    writer = Writer()
    with pytest.raises(KeyError):
        await writer.run(lambda: failing(KeyError("x")))
    assert await writer.run(lambda: 1) == 1
    await writer.close()


async def test_an_outage_is_logged_once_and_the_next_one_again() -> None:
    writer, work = Writer(), Work()
    with capture_logs() as logs:
        for _ in range(3):
            writer.put(lambda: failing(OSError("no room")))
        assert not await writer.settled()
        writer.put(lambda: work("there is room"))
        assert await writer.settled()
        writer.put(lambda: failing(OSError("no room")))
        assert not await writer.settled()
    assert [entry["event"] for entry in logs] == ["store_failed"] * 2
    await writer.close()


async def test_a_bug_in_one_piece_of_work_is_logged_and_costs_the_others_nothing() -> None:
    writer, work = Writer(), Work()
    with capture_logs() as logs:
        writer.put(lambda: failing(ZeroDivisionError()))
        writer.put(lambda: work("next"))
        await writer.close()
    assert work.done == ["next"]
    assert [entry["event"] for entry in logs] == ["store_broken"]


async def test_a_disk_that_hangs_is_not_waited_for_long() -> None:
    writer, gate = Writer(), threading.Event()
    writer.put(gate.wait)
    with capture_logs() as logs:
        assert not await writer.settled(seconds=0.01)
    assert [entry["event"] for entry in logs] == ["store_late"]
    assert not await writer.settled(seconds=1_000)  # nobody waits for it again
    gate.set()
    await writer.run(lambda: None)
    assert await writer.settled()
    await writer.close()


async def test_closed_twice_or_never_used_it_is_closed() -> None:
    writer = Writer()
    await writer.close()
    assert await writer.run(lambda: 1) == 1
    await writer.close()
    await writer.close()
