"""persistence/writer.py: one thread does all, in order, and what fails costs nobody anything."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from persistence.writer import Writer
from storage.sqlite_store import SQLiteStore
from storage.store import Key, LostLeaseError, StoreError


class Disk(SQLiteStore):
    """A database that can be made to fail."""

    fails = is_lost = False
    writes = held = 0  # held: how many changes it was given last

    def write(self, changes: Mapping[Key, bytes | None]) -> None:
        self.writes += 1
        self.held = len(changes)
        if self.is_lost:
            raise LostLeaseError("another has it")
        if self.fails:
            raise StoreError("no room")
        super().write(changes)


class Bench:
    """A writer, and what its work does."""

    def __init__(self, folder: Path) -> None:
        self.disk = Disk(folder / "db")
        self.writer = Writer(lambda: self.disk)
        self.done: list[int] = []
        self.threads: set[str] = set()

    def put(self, number: int, *, fails: bool = False) -> None:
        def work() -> None:
            self.done.append(number)
            self.threads.add(threading.current_thread().name)
            self.writer.write(Key("said", 5, number), b"1")
            if fails:
                raise ZeroDivisionError

        self.writer.put(work)

    def stored(self) -> list[int]:
        return [row.id for row in self.disk.read("said", 5)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_all_is_done_in_order_in_one_thread_and_stored_in_one_transaction(bench: Bench) -> None:
    for number in range(100):
        bench.put(number)
    assert await bench.writer.run(lambda: len(bench.done)) == 100
    assert bench.disk.writes == 1
    bench.put(100)
    await bench.writer.close()
    assert bench.done == bench.stored() == [*range(101)]
    assert bench.threads == {"writer"}


async def test_what_can_wait_goes_with_what_cannot(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("persistence.writer.WAITING_SECONDS", 3_600)
    done = [threading.Event() for _ in range(3)]
    bench.writer.put(done[0].set, can_wait=True)
    bench.writer.put(done[1].set)
    bench.writer.put(done[2].set, can_wait=True)
    assert await asyncio.to_thread(done[2].wait, 5)
    assert done[0].is_set()
    assert done[1].is_set()
    await bench.writer.close()


async def test_what_is_awaited_raises_where_it_is_awaited_and_the_rest_goes_on(bench: Bench) -> None:
    with pytest.raises(ZeroDivisionError):
        await bench.writer.run(lambda: 1 / 0)
    assert await bench.writer.run(lambda: 1) == 1
    await bench.writer.close()


async def test_an_outage_is_logged_once_and_all_is_stored_when_it_is_over(bench: Bench) -> None:
    bench.put(1)
    assert await bench.writer.settled()
    for _ in range(2):
        bench.disk.fails = True
        with capture_logs() as logs:
            for number in range(2, 5):
                bench.put(number)
                assert not await bench.writer.settled()
        assert [entry["event"] for entry in logs] == ["store_failed"]
        read = await bench.writer.run(lambda: bench.writer.read("said", 5, limit=3))
        assert [row.id for row in read] == [1, 2, 3]
        bench.disk.fails = False
        assert await bench.writer.settled()
        assert bench.stored() == [1, 2, 3, 4]
    await bench.writer.close()


async def test_what_could_not_be_read_is_tried_again(bench: Bench) -> None:
    is_there = threading.Event()

    def work() -> None:
        if not is_there.is_set():
            raise StoreError("away")
        bench.writer.write(Key("said", 5, 1), b"1")

    with capture_logs():
        bench.writer.put(work)
        assert not await bench.writer.settled()
        is_there.set()
        assert await bench.writer.settled()
    assert bench.stored() == [1]
    await bench.writer.close()


async def test_a_change_is_never_made_before_what_was_to_be_before_it(bench: Bench) -> None:
    """Though the store is back just as it would be. What is only added later may come before a change."""
    done, is_there, is_tried = list[str](), threading.Event(), threading.Event()

    def work(name: str) -> None:
        if not is_there.is_set():
            if is_tried.is_set():
                is_there.set()
            raise StoreError("away")
        done.append(name)

    for name, channel_id, adds in [("add", 5, True), ("remove", 5, False), ("more", 5, True), ("other", 6, False)]:
        bench.writer.put(partial(work, name), channel_id, adds=adds)
    is_tried.set()
    assert await bench.writer.settled()
    assert done == ["more", "other", "add", "remove"]
    await bench.writer.close()


async def test_where_too_much_is_to_be_tried_again_no_row_stays_as_it_was_before_a_change(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its channel is dropped instead, before what comes later; what would only have been added is lost, and that is
    told once."""
    monkeypatch.setattr("persistence.writer.MOST_UNDONE", 4)
    done, is_there, dropped = list[str](), threading.Event(), list[int]()

    def work(name: str) -> None:
        if not is_there.is_set():
            raise StoreError("away")
        done.append(name)

    def drop(channel_id: int) -> None:
        work("drop")
        dropped.append(channel_id)

    bench.writer.drop = drop
    with capture_logs() as logs:
        for name, channel_id in [("lost", 6), ("5", 5), ("6", 6), ("5 again", 5), ("6 again", 6), ("added", 6)]:
            bench.writer.put(partial(work, name), channel_id, adds=name in ("lost", "added"))
            assert not await bench.writer.settled()
        is_there.set()
        assert await bench.writer.settled()
    assert (dropped, done) == ([5], ["drop", "6", "5 again", "6 again", "added"])
    assert [entry["event"] for entry in logs] == ["store_failed", "store_behind"]
    await bench.writer.close()


async def test_a_change_that_memory_holds_no_more_leaves_nothing_as_it_was_before(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("persistence.writer.MOST_PENDING", 3)
    for number in range(1, 7):
        bench.put(number)
    assert await bench.writer.settled()
    bench.disk.fails = True
    with capture_logs() as logs:
        for number in range(1, 6):
            bench.put(number)
            assert not await bench.writer.settled()
    bench.disk.fails = False
    assert await bench.writer.settled()
    assert bench.stored() == [3, 4, 5, 6]
    assert [entry["event"] for entry in logs] == ["store_failed", "store_behind"]
    await bench.writer.close()


async def test_however_much_is_added_while_the_store_fails_memory_holds_only_so_much(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("persistence.writer.MOST_PENDING", 3)
    bench.disk.fails = True
    with capture_logs():
        for number in range(1, 10):
            bench.writer.put(partial(bench.writer.write, Key("said", 5, number), b"1", is_new=True))
            assert not await bench.writer.settled()
            assert bench.disk.held <= 4
    bench.disk.fails = False
    assert await bench.writer.settled()
    assert bench.stored() == [7, 8, 9]


async def test_what_is_added_again_after_it_was_deleted_leaves_nothing_of_before_where_memory_is_full(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("persistence.writer.MOST_PENDING", 1)
    bench.put(1)
    assert await bench.writer.settled()
    bench.disk.fails = True
    with capture_logs():
        for value, is_new in ((None, False), (b"2", True)):
            bench.writer.put(partial(bench.writer.write, Key("said", 5, 1), value, is_new=is_new))
        bench.put(2)
        assert not await bench.writer.settled()
    bench.disk.fails = False
    assert await bench.writer.settled()
    assert bench.stored() == [2]
    await bench.writer.close()


async def test_what_belongs_to_no_channel_is_held_however_many_messages_come_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as an opt-out."""
    monkeypatch.setattr("persistence.writer.MOST_PENDING", 3)
    bench.disk.fails = True
    bench.writer.put(partial(bench.writer.write, Key("optedout", 0, 7), b"1"))
    for number in range(1, 6):
        bench.put(number)
    assert not await bench.writer.settled()
    bench.disk.fails = False
    assert await bench.writer.settled()
    assert [row.value for row in bench.disk.read("optedout", 0)] == [b"1"]
    await bench.writer.close()


async def test_what_reads_while_it_is_tried_again_has_nothing_tried_within_it(bench: Bench) -> None:
    tried = 0

    def work() -> None:
        nonlocal tried
        tried += 1
        bench.writer.read("said", 5)
        raise StoreError("away")

    with capture_logs():
        for number in range(1, 11):
            bench.writer.put(work)
            assert not await bench.writer.settled()
            assert tried <= 4 * number
            tried = 0
    await bench.writer.close()


async def test_a_bug_in_one_piece_of_work_is_logged_and_costs_the_others_nothing(bench: Bench) -> None:
    with capture_logs() as logs:
        bench.put(1, fails=True)
        bench.put(2)
        await bench.writer.close()
    assert bench.stored() == [1, 2]
    assert [entry["event"] for entry in logs] == ["store_broken"]


async def test_what_breaks_when_nobody_waits_for_it_any_more_is_logged(bench: Bench) -> None:
    gate = threading.Event()
    bench.writer.put(gate.wait)
    with capture_logs() as logs:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await bench.writer.run(lambda: 1 / 0)
        gate.set()
        await bench.writer.close()
    assert [entry["event"] for entry in logs] == ["store_broken"]


async def test_a_disk_that_hangs_is_not_waited_for_long(bench: Bench) -> None:
    gate = threading.Event()
    bench.writer.put(gate.wait)
    with capture_logs() as logs:
        assert not await bench.writer.settled(seconds=0.01)
    assert [entry["event"] for entry in logs] == ["store_late"]
    assert not await bench.writer.settled(seconds=1_000)  # nobody waits for it again
    gate.set()
    await bench.writer.run(lambda: None)
    assert await bench.writer.settled()
    await bench.writer.close()


async def test_what_comes_after_a_close_waits_for_what_still_hangs(bench: Bench) -> None:
    gate = threading.Event()
    bench.writer.put(gate.wait)
    with capture_logs():
        assert not await bench.writer.settled(seconds=0.01)
        bench.put(1)
        await bench.writer.close()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await bench.writer.run(lambda: None)
    assert not bench.done
    gate.set()
    assert await bench.writer.run(lambda: [*bench.done]) == [1]
    await bench.writer.close()
    assert bench.stored() == [1]


async def test_closed_twice_or_never_used_it_is_closed(bench: Bench) -> None:
    await bench.writer.close()
    assert await bench.writer.run(lambda: 1) == 1
    await bench.writer.close()
    await bench.writer.close()


async def test_what_another_process_has_by_now_is_written_to_no_more_and_that_is_said_once(bench: Bench) -> None:
    bench.disk.is_lost = True
    with capture_logs() as logs:
        for number in range(3):
            bench.put(number)
            assert not await bench.writer.settled()
        bench.disk.is_lost = False
        await bench.writer.close()
    assert [entry["event"] for entry in logs] == ["store_lost"]
    assert (bench.done, bench.stored(), bench.disk.writes) == ([0, 1, 2], [], 1)
