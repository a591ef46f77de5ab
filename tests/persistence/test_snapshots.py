"""persistence/snapshots.py: what it is told is there for the next process, in the order in which it was told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from discord_io.backlog import id_at
from persistence.export import CLICKED
from persistence.holders import Holder
from persistence.stored_state import Encode, as_json
from persistence.transcript import Transcript
from state.message import Appended
from storage.sqlite_store import SQLiteStore
from storage.store import Key, StoreError
from tests.persistence.conftest import open_snapshots
from tests.support.clock import NOON
from tests.support.lives import on_disk
from tests.support.people import ANNA, BEN, CHANNEL, GUILD, replied, said

OTHER = CHANNEL + 1
LONG_AFTER = said(BEN).timestamp + timedelta(days=9_999)


class Bench(Holder):
    """What snapshots are taken of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: dict[int, Any] = {}
        self.restored: dict[int, Any] = {}
        self.snapshots = open_snapshots(folder)
        self.snapshots.register(self, of_channels="things", of_process="alive")

    def snapshot(self, channel_id: int) -> Encode | None:
        return as_json(self.kept.get(channel_id))

    def restore(self, channel_id: int, stored: Any) -> None:
        self.restored[channel_id] = stored

    def leave(self, channel_id: int) -> None: ...


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path / "state")
    yield bench
    await bench.snapshots.close()


async def test_at_the_very_first_start_there_is_nothing(bench: Bench) -> None:
    kept = await bench.snapshots.load()
    assert (kept.process, kept.channels, kept.transcripts) == ({}, {}, {})


async def test_what_is_told_is_there_for_the_next_and_where_something_was_said_last_comes_first(bench: Bench) -> None:
    bench.kept = {CHANNEL: ["a"], OTHER: {"b": 1}, 0: "now"}
    for channel_id, message in ((OTHER, said(BEN, "there")), (CHANNEL, said(ANNA, "hello"))):
        bench.snapshots.touch("things", channel_id)
        bench.snapshots.append(Appended(channel_id, GUILD, message))
    bench.snapshots.touch("alive")
    await bench.snapshots.close()
    later = Bench(bench.folder)
    kept = await later.snapshots.load()
    assert kept.process == {0: {"alive": "now"}}
    assert list(kept.channels.items()) == [(CHANNEL, {"things": ["a"]}), (OTHER, {"things": {"b": 1}})]
    assert kept.transcripts == {OTHER: GUILD, CHANNEL: GUILD}
    assert await later.snapshots.recent(CHANNEL, 0) == [message]
    assert set(later.snapshots.channels) == {CHANNEL, OTHER}
    assert later.snapshots.may_hold(CHANNEL, said(ANNA, "later").message_id)  # of one from before it is not known
    later.snapshots.restore_process(kept)
    for channel_id, stored in kept.channels.items():
        later.snapshots.restore(channel_id, stored)
    assert later.restored == bench.kept
    await later.snapshots.close()


async def test_what_cannot_be_encoded_costs_nothing_that_is_stored_with_it(bench: Bench) -> None:
    bench.kept = {CHANNEL: 1 << 64, OTHER: "there"}
    with capture_logs() as logs:
        for channel_id in bench.kept:
            bench.snapshots.touch("things", channel_id)
        bench.snapshots.append(Appended(OTHER, GUILD, said(BEN, "there")))
        await bench.snapshots.close()
    assert [entry["event"] for entry in logs] == ["store_broken"]
    assert (await Bench(bench.folder).snapshots.load()).channels == {OTHER: {"things": "there"}}


async def test_a_question_is_stored_before_the_transcript_says_that_it_was_seen(bench: Bench) -> None:
    done: list[str] = []
    put = bench.snapshots._writer.put

    def noted(work: Callable[[], object], channel_id: int = 0, **how: bool) -> None:
        done.append(getattr(work, "func", work).__name__)
        put(work, channel_id, **how)

    bench.snapshots._writer.put = noted  # type: ignore[method-assign]
    bench.kept = {CHANNEL: "a question"}
    bench.snapshots.touch("things", CHANNEL)
    bench.snapshots.append(Appended(CHANNEL, GUILD, said(ANNA, "hello")))
    assert await bench.snapshots.settled()
    assert done == ["_store", "add"]


async def test_edits_and_deletions_cost_nothing_where_the_message_cannot_be(bench: Bench) -> None:
    old, new = said(ANNA, "hello"), said(ANNA, "later")
    bench.snapshots.append(Appended(CHANNEL, GUILD, old))
    assert bench.snapshots.may_hold(CHANNEL, old.message_id)
    put = bench.snapshots._writer.put
    work: list[object] = []
    bench.snapshots._writer.put = lambda *of: work.append(of)  # type: ignore[method-assign]
    bench.snapshots.revised(CHANNEL, new)
    bench.snapshots.removed(CHANNEL, {new.message_id})
    bench.snapshots.removed(OTHER, {old.message_id})
    bench.snapshots.removed(CHANNEL, set())
    assert not work
    bench.snapshots.removed(CHANNEL, {old.message_id, new.message_id})
    assert len(work) == 1
    bench.snapshots._writer.put = put  # type: ignore[method-assign]


async def test_what_goes_while_the_store_cannot_be_read_is_in_no_file_though_it_is_too_much_to_be_held(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreError("away")

    monkeypatch.setattr("persistence.writer.MOST_UNDONE", 4)
    snapshots, messages = bench.snapshots, [said(ANNA, f"secret{number}") for number in range(9)]
    for message in messages:
        snapshots.append(Appended(CHANNEL, GUILD, message))
    snapshots.append(Appended(OTHER, GUILD, said(BEN, "hello")))
    assert await snapshots.settled()
    with monkeypatch.context() as outage, capture_logs() as logs:
        outage.setattr(SQLiteStore, "read", fail)
        for message in messages:
            snapshots.revised(CHANNEL, replace(message, content="other words"))
        assert not await snapshots.settled()
    assert "store_behind" in [entry["event"] for entry in logs]
    assert await snapshots.settled()
    assert on_disk(bench.folder, "hello")
    assert not on_disk(bench.folder, "secret")


async def test_what_comes_and_goes_while_the_store_cannot_be_read_is_in_no_file_though_an_older_change_is_given_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreError("away")

    monkeypatch.setattr("persistence.writer.MOST_UNDONE", 3)
    snapshots, old, new = bench.snapshots, said(ANNA, "hello"), said(ANNA, "secret")
    for channel_id, message in ((CHANNEL, old), (OTHER, kept := said(BEN, "hello there"))):
        snapshots.append(Appended(channel_id, GUILD, message))
    assert await snapshots.settled()
    with monkeypatch.context() as outage:
        outage.setattr(SQLiteStore, "read", fail)
        snapshots.removed(CHANNEL, {old.message_id})
        snapshots.append(Appended(CHANNEL, GUILD, new))
        snapshots.removed(CHANNEL, {new.message_id})
        snapshots.revised(OTHER, kept)
        assert not await snapshots.settled()
    assert await snapshots.settled()
    assert not on_disk(bench.folder, "secret")


async def test_what_goes_is_in_no_file_of_any_channel(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Transcript.change.__kwdefaults__ or {}, "limit", 2)
    monkeypatch.setattr("persistence.snapshots.EXPIRED_AT_ONCE", 2)
    snapshots, later = bench.snapshots, LONG_AFTER + timedelta(days=1)
    edited, deleted, *forgotten = (said(ANNA, f"secret{n}") for n in range(8))
    for message in (edited, deleted, *(said(BEN, f"old{n}") for n in range(5)), *forgotten, said(BEN, "new", later)):
        snapshots.append(Appended(CHANNEL, GUILD, message))
    snapshots.append(Appended(OTHER, GUILD, replied(ANNA, "your secret2")))
    snapshots.revised(CHANNEL, said(ANNA, "other words", message_id=edited.message_id))
    snapshots.removed(CHANNEL, {deleted.message_id})
    assert await snapshots.settled()
    assert on_disk(bench.folder, "other words")
    assert not on_disk(bench.folder, "secret0") + on_disk(bench.folder, "secret1")
    await snapshots.forget_person(ANNA)
    assert not on_disk(bench.folder, "secret") + on_disk(bench.folder, "other words")
    assert on_disk(bench.folder, "old4")
    await snapshots.expire(LONG_AFTER)
    assert not on_disk(bench.folder, "old")
    assert [record.content for record in await snapshots.recent(CHANNEL, 0)] == ["new"]


async def test_of_a_channel_whose_words_are_all_too_old_nothing_is_known_any_more(bench: Bench) -> None:
    """Each thread is a channel of its own, and there is no end to them."""
    before = NOON + timedelta(days=1)
    for channel_id in range(OTHER + 1, OTHER + 50):
        bench.snapshots.append(Appended(channel_id, GUILD, said(ANNA, "old", message_id=id_at(NOON))))
    bench.snapshots.append(Appended(OTHER, GUILD, said(ANNA, "new", before, message_id=id_at(before))))
    await bench.snapshots.expire(before)
    assert [*bench.snapshots._newest] == [OTHER]


async def test_the_export_is_ones_own_words_with_their_places(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Transcript.change.__kwdefaults__ or {}, "limit", 2)
    mine = [said(ANNA, f"mine {n}") for n in range(5)]
    for message in (*mine[:3], said(BEN, f"of {ANNA}"), *mine[3:]):
        bench.snapshots.append(Appended(CHANNEL, GUILD, message))
    exported = orjson.loads(await bench.snapshots.export(ANNA))
    assert exported["user"] == str(ANNA)
    assert exported["messages"] == [
        {
            "server": str(GUILD),
            "channel": str(CHANNEL),
            "message": str(message.message_id),
            "at": message.timestamp.isoformat(),
            "content": message.content,
        }
        for message in mine
    ]
    assert await bench.snapshots.export(BEN + 9) == b""


async def test_the_export_of_a_click_has_not_the_words_of_its_button_which_may_be_somebody_elses(bench: Bench) -> None:
    label = replace(said(ANNA, "what Ben said"), is_label=True, drew_on=frozenset({BEN}))
    bench.snapshots.append(Appended(CHANNEL, GUILD, label))
    exported = orjson.loads(await bench.snapshots.export(ANNA))
    assert [each["content"] for each in exported["messages"]] == [CLICKED]


async def test_a_disk_that_fails_is_told_to_who_waits(bench: Bench) -> None:
    bench.folder.write_text("a file in the folder's place")
    bench.kept = {CHANNEL: 1}
    bench.snapshots.touch("things", CHANNEL)
    with capture_logs() as logs:
        assert not await bench.snapshots.settled()
    assert [entry["event"] for entry in logs] == ["store_failed"]
    bench.folder.unlink()
    bench.snapshots.touch("things", CHANNEL)
    assert await bench.snapshots.settled()


async def test_settled_tells_of_what_was_told_before_it_alone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.kept = {CHANNEL: ["a"], OTHER: ["b"]}
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
    bench.snapshots.flush()
    bench.snapshots._writer._hand_over()
    assert is_going.wait(5)  # the first is stored, and the second is being written when it is told of the first
    try:
        async with asyncio.timeout(2):
            assert await settled
        assert on_disk(bench.folder, '["a"]')
        assert not on_disk(bench.folder, '["b"]')
    finally:
        go_on.set()


@pytest.mark.parametrize("fails", [CHANNEL, OTHER])
async def test_settled_does_not_tell_of_what_failed_after_it(
    bench: Bench, fails: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.kept = {CHANNEL: ["a"], OTHER: ["b"]}
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


@pytest.mark.parametrize("goes", ["forget_person", "expire", "forget_where"])
async def test_what_could_not_be_removed_raises(bench: Bench, goes: str, request: pytest.FixtureRequest) -> None:
    bench.snapshots.append(Appended(CHANNEL, GUILD, said(ANNA, "hello")))
    assert await bench.snapshots.settled()
    request.getfixturevalue("full_disk")
    argument = {"forget_person": ANNA, "expire": LONG_AFTER}.get(goes)
    removal = partial(getattr(bench.snapshots, goes), argument or (lambda _channel, _guild: True))
    with pytest.raises(OSError, match="could not be written"), capture_logs():
        await removal()


async def test_a_snapshot_that_ended_leaves_no_words_and_one_that_was_only_marked_waits(bench: Bench) -> None:
    bench.kept = {CHANNEL: "a secret"}
    bench.snapshots.mark("things", CHANNEL)
    assert await bench.snapshots.settled()
    assert not on_disk(bench.folder, "a secret")
    bench.snapshots.touch("things", CHANNEL)
    assert await bench.snapshots.settled()
    assert on_disk(bench.folder, "a secret")
    bench.kept = {}
    bench.snapshots.purge(CHANNEL)
    assert await bench.snapshots.settled()
    assert not on_disk(bench.folder, "a secret")
    assert not bench.snapshots.has(CHANNEL)
