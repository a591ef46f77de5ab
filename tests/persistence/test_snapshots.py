"""persistence/snapshots.py: what it is told is there for the next process, in the order in which it was told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from persistence.snapshots import Encode, Snapshots, as_json
from storage.sqlite_store import SQLiteStore
from storage.store import Key, Store, StoreError
from tests.support.lives import on_disk
from tests.support.people import ANNA, BEN, CHANNEL, GUILD, said

OTHER = CHANNEL + 1


class Bench:
    """What snapshots are taken of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.channels: dict[int, Any] = {}
        self.alive: Any = None
        self.snapshots = Snapshots(
            self._open, channel={"things": self._things}, process={"alive": lambda _: as_json(self.alive)}
        )

    def _open(self) -> Store:
        return SQLiteStore(self.folder / "db")

    def _things(self, channel_id: int) -> Encode | None:
        return as_json(self.channels.get(channel_id))

    def next(self) -> Bench:
        return Bench(self.folder)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "state")


async def test_at_the_very_first_start_there_is_nothing_and_nothing_is_touched(bench: Bench) -> None:
    kept = await bench.snapshots.load()
    assert (kept.process, dict(kept.channels), dict(kept.transcripts)) == ({}, {}, {})
    assert not bench.folder.exists()
    await bench.snapshots.close()


async def test_what_is_told_is_there_for_the_next(bench: Bench) -> None:
    bench.channels, bench.alive = {CHANNEL: ["a"], OTHER: {"b": 1}}, "now"
    bench.snapshots.touch("things", CHANNEL)
    bench.snapshots.touch("things", OTHER)
    bench.snapshots.touch_process("alive")
    message = said(ANNA, "hello")
    bench.snapshots.append(CHANNEL, GUILD, message)
    await bench.snapshots.close()
    snapshots = bench.next().snapshots
    kept = await snapshots.load()
    assert kept.process == {"alive": "now"}
    assert kept.channels == {CHANNEL: {"things": ["a"]}, OTHER: {"things": {"b": 1}}}
    assert set(kept.transcripts) == {CHANNEL}
    assert await snapshots.recent(CHANNEL, 0) == [message]
    assert set(snapshots.channels) == {CHANNEL, OTHER}
    await snapshots.close()


async def test_a_question_is_stored_before_the_transcript_says_that_it_was_seen(bench: Bench) -> None:
    done: list[str] = []
    put = bench.snapshots._writer.put

    def noted(work: Callable[[], object]) -> None:
        done.append(getattr(work, "func", work).__name__)
        put(work)

    bench.snapshots._writer.put = noted  # type: ignore[method-assign]
    bench.channels = {CHANNEL: "a question"}
    bench.snapshots.touch("things", CHANNEL)
    bench.snapshots.append(CHANNEL, GUILD, said(ANNA, "hello"))
    assert await bench.snapshots.settled()
    assert done == ["_store", "add"]
    await bench.snapshots.close()


async def test_edits_and_deletions_cost_nothing_where_the_message_cannot_be(bench: Bench) -> None:
    old, new = said(ANNA, "hello"), said(ANNA, "later")
    bench.snapshots.append(CHANNEL, GUILD, old)
    assert bench.snapshots.may_hold(CHANNEL, old.message_id)
    assert not bench.snapshots.may_hold(CHANNEL, new.message_id)
    assert not bench.snapshots.may_hold(OTHER, old.message_id)
    work: list[object] = []
    bench.snapshots._writer.put = work.append  # type: ignore[method-assign, assignment]
    bench.snapshots.revised(CHANNEL, new)
    bench.snapshots.removed(CHANNEL, {new.message_id})
    bench.snapshots.removed(OTHER, {old.message_id})
    bench.snapshots.removed(CHANNEL, set())
    assert not work
    bench.snapshots.removed(CHANNEL, {old.message_id, new.message_id})
    assert len(work) == 1


async def test_of_a_transcript_from_before_any_message_may_be_in_it(bench: Bench) -> None:
    bench.snapshots.append(CHANNEL, GUILD, said(ANNA, "hello"))
    await bench.snapshots.close()
    snapshots = bench.next().snapshots
    await snapshots.load()
    assert snapshots.may_hold(CHANNEL, said(ANNA, "later").message_id)
    await snapshots.close()


async def test_what_goes_is_in_no_file(bench: Bench) -> None:
    snapshots = bench.snapshots
    edited, deleted, forgotten = (said(ANNA, f"secret{n}") for n in range(3))
    for message in (edited, deleted, forgotten):
        snapshots.append(CHANNEL, GUILD, message)
    snapshots.append(CHANNEL, GUILD, said(BEN, "stays"))
    snapshots.revised(CHANNEL, said(ANNA, "new words", message_id=edited.message_id))
    snapshots.removed(CHANNEL, {deleted.message_id})
    assert await snapshots.settled()
    assert on_disk(bench.folder, "new words")
    assert not on_disk(bench.folder, "secret0")
    assert not on_disk(bench.folder, "secret1")
    await snapshots.forget_person(ANNA)
    assert not on_disk(bench.folder, "secret2")
    assert on_disk(bench.folder, "stays")
    await snapshots.expire(said(BEN).timestamp + timedelta(days=9_999))
    assert not on_disk(bench.folder, "stays")
    await snapshots.close()


async def test_the_export_is_ones_own_words_with_their_places(bench: Bench) -> None:
    mine, theirs = said(ANNA, "mine"), said(BEN, "theirs")
    bench.snapshots.append(CHANNEL, GUILD, mine)
    bench.snapshots.append(CHANNEL, GUILD, theirs)
    exported = orjson.loads(await bench.snapshots.export(ANNA))
    assert exported == {
        "user": str(ANNA),
        "messages": [
            {
                "server": str(GUILD),
                "channel": str(CHANNEL),
                "message": str(mine.message_id),
                "at": mine.timestamp.isoformat(),
                "content": "mine",
            }
        ],
    }
    await bench.snapshots.close()


async def test_a_disk_that_fails_is_told_to_who_waits(bench: Bench) -> None:
    bench.folder.write_text("a file in the folder's place")
    bench.channels = {CHANNEL: 1}
    bench.snapshots.touch("things", CHANNEL)
    with capture_logs() as logs:
        assert not await bench.snapshots.settled()
    assert [entry["event"] for entry in logs] == ["store_failed"]
    bench.folder.unlink()
    bench.snapshots.touch("things", CHANNEL)
    assert await bench.snapshots.settled()
    await bench.snapshots.close()


async def test_settled_tells_of_what_was_told_before_it_alone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.channels = {CHANNEL: ["a"], OTHER: ["b"]}
    write, is_going, go_on = SQLiteStore.write, threading.Event(), threading.Event()

    def slow(store: SQLiteStore, changes: Mapping[Key, bytes | None]) -> None:
        if any(key.channel == OTHER for key in changes):
            is_going.set()
            assert go_on.wait(5)
        write(store, changes)

    monkeypatch.setattr(SQLiteStore, "write", slow)
    bench.snapshots.touch("things", CHANNEL)
    settled = asyncio.create_task(bench.snapshots.settled())
    await asyncio.sleep(0)
    bench.snapshots.touch("things", OTHER)
    bench.snapshots._flush()
    bench.snapshots._writer._hand_over()
    assert is_going.wait(5)  # the first is stored, and the second is being written when it is told of the first
    try:
        async with asyncio.timeout(2):
            assert await settled
        assert on_disk(bench.folder, '["a"]')
        assert not on_disk(bench.folder, '["b"]')
    finally:
        go_on.set()
        await bench.snapshots.close()


@pytest.mark.parametrize("fails", [CHANNEL, OTHER])
async def test_settled_does_not_tell_of_what_failed_after_it(
    bench: Bench, fails: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.channels = {CHANNEL: ["a"], OTHER: ["b"]}
    write = SQLiteStore.write

    def failing(store: SQLiteStore, changes: Mapping[Key, bytes | None]) -> None:
        if any(key.channel == fails for key in changes):
            raise StoreError("no room")
        write(store, changes)

    monkeypatch.setattr(SQLiteStore, "write", failing)
    with capture_logs():
        bench.snapshots.touch("things", CHANNEL)
        first = asyncio.create_task(bench.snapshots.settled())
        await asyncio.sleep(0)
        bench.snapshots.touch("things", OTHER)
        second = asyncio.create_task(bench.snapshots.settled())
        assert (await first, await second) == (fails != CHANNEL, False)
    monkeypatch.undo()
    await bench.snapshots.close()


@pytest.mark.parametrize("goes", ["forget_person", "expire", "forget_where"])
async def test_what_could_not_be_removed_raises(bench: Bench, goes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.snapshots.append(CHANNEL, GUILD, said(ANNA, "hello"))
    assert await bench.snapshots.settled()

    def fail(*_: object, **__: object) -> None:
        raise StoreError("no room")

    monkeypatch.setattr(SQLiteStore, "write", fail)
    argument = {"forget_person": ANNA, "expire": said(BEN).timestamp + timedelta(days=9_999)}.get(goes)
    removal = partial(getattr(bench.snapshots, goes), argument or (lambda _channel, _guild: True))
    with pytest.raises(OSError, match="could not be written"), capture_logs():
        await removal()
    monkeypatch.undo()
    await bench.snapshots.close()


async def test_a_snapshot_that_ended_leaves_no_words_and_one_that_was_only_marked_waits(bench: Bench) -> None:
    bench.channels = {CHANNEL: "a secret"}
    bench.snapshots.mark("things", CHANNEL)
    assert await bench.snapshots.settled()
    assert not on_disk(bench.folder, "a secret")
    bench.snapshots.touch("things", CHANNEL)
    assert await bench.snapshots.settled()
    assert on_disk(bench.folder, "a secret")
    bench.channels = {}
    bench.snapshots.purge(CHANNEL)
    assert await bench.snapshots.settled()
    assert not on_disk(bench.folder, "a secret")
    assert not bench.snapshots.has(CHANNEL)
    await bench.snapshots.close()


async def test_the_channel_in_which_something_was_said_last_comes_first(bench: Bench) -> None:
    bench.channels = {CHANNEL: 1, OTHER: 1}
    for channel_id in (OTHER, CHANNEL):
        bench.snapshots.touch("things", channel_id)
        bench.snapshots.append(channel_id, GUILD, said(ANNA, "hello"))
    await bench.snapshots.close()
    later = bench.next().snapshots
    assert list((await later.load()).channels) == [CHANNEL, OTHER]
    await later.close()
