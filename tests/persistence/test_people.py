"""persistence/people.py: rows of people who opted out or had themselves forgotten, over restarts and processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import orjson
import pytest
from structlog.testing import capture_logs

from discord_io.backlog import id_at
from persistence.people import FORGOTTEN, FORGOTTEN_CHANNEL, OPTED_OUT, People
from persistence.snapshots import Snapshots
from state.consent import Consent, Forgotten
from state.optout import OptOut
from storage.sqlite_store import SQLiteStore
from storage.store import Key
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, CHANNEL, CLEO

OTHER = CHANNEL + 1


def people(folder: Path, stores: Callable[[int], bool] = lambda _: True) -> tuple[People, Snapshots]:
    """As a process has them that keeps its rows in this folder."""
    opted_out, forgotten = OptOut(), Forgotten()
    snapshots = Snapshots(lambda: SQLiteStore(folder / "db"), Consent(opted_out, forgotten))
    return People(opted_out, forgotten, snapshots, stores, lambda: NOON), snapshots


def known(kept: People) -> tuple[set[int], set[int], int, int]:
    """Who of three opted out, which of two channels was forgotten, and up to when two people were."""
    out = {who for who in (ANNA, BEN, CLEO) if who in kept.opted_out}
    channels = {channel for channel in (CHANNEL, OTHER) if kept.forgotten.at(channel, None) > 0}
    return out, channels, kept.forgotten.at(None, ANNA), kept.forgotten.at(None, BEN)


def rows(folder: Path) -> dict[str, dict[int, bytes | None]]:
    store = SQLiteStore(folder / "db")
    found = {
        kind: {row.id: row.value for row in store.read(kind)} for kind in (OPTED_OUT, FORGOTTEN, FORGOTTEN_CHANNEL)
    }
    store.close()
    return found


async def test_what_is_stored_is_known_after_a_restart(tmp_path: Path) -> None:
    kept, snapshots = people(tmp_path)
    kept.opt(ANNA, 4, out=True)
    kept.opt(BEN, 5, out=True)
    kept.opt(BEN, 6, out=False)
    kept.forget(None, ANNA, 7)
    kept.forget(OTHER, None, 8)
    await snapshots.close()
    later, snapshots = people(tmp_path)
    await later.load()
    assert known(later) == ({ANNA}, {OTHER}, 7, 6)
    later.sweep(7, 0)
    await snapshots.close()
    assert rows(tmp_path) == {OPTED_OUT: {ANNA: b"true"}, FORGOTTEN: {}, FORGOTTEN_CHANNEL: {OTHER: b"8"}}


async def test_lists_of_an_earlier_version_become_rows(tmp_path: Path) -> None:
    marks = [[[None, BEN], 7], [[CHANNEL, None], 8]]
    old = SQLiteStore(tmp_path / "db")
    old.write({Key(OPTED_OUT, 0): orjson.dumps([ANNA, CLEO]), Key(FORGOTTEN, 0): orjson.dumps(marks)})
    old.close()
    for _ in range(2):
        kept, snapshots = people(tmp_path)
        await kept.load()
        assert known(kept) == ({ANNA, CLEO}, {CHANNEL}, -1, 7)
        await snapshots.close()
        opted_out = {ANNA: b"true", CLEO: b"true"}
        assert rows(tmp_path) == {OPTED_OUT: opted_out, FORGOTTEN: {BEN: b"7"}, FORGOTTEN_CHANNEL: {CHANNEL: b"8"}}


@pytest.mark.parametrize("stored", [b'"x"', b"1", b"[[1]]", b'{"a":1}', b'[[[1,"a"],2]]', b"[0]", b'["11"]'])
async def test_a_list_that_is_none_is_left_as_it_is_and_said(tmp_path: Path, stored: bytes) -> None:
    old = SQLiteStore(tmp_path / "db")
    old.write(dict.fromkeys((Key(OPTED_OUT, 0), Key(FORGOTTEN, 0)), stored) | {Key(OPTED_OUT, 0, BEN): b"true"})
    old.close()
    kept, snapshots = people(tmp_path)
    with capture_logs() as logs:
        await kept.load()
    assert [entry["kind"] for entry in logs] == [OPTED_OUT, FORGOTTEN]
    assert known(kept)[0] == {BEN}
    await snapshots.close()
    assert rows(tmp_path)[FORGOTTEN] == {0: stored}


async def test_of_a_row_that_is_damaged_it_is_known_whose_it_is(tmp_path: Path) -> None:
    """What they said up to now counts as forgotten, also when it is read once more."""
    kept, snapshots = people(tmp_path)
    kept.opt(ANNA, 4, out=True)
    kept.forget(None, ANNA, 7)
    kept.forget(OTHER, None, 8)
    await snapshots.close()
    with closing(sqlite3.connect(tmp_path / "db")) as db:
        db.execute("UPDATE row SET value = 'x'")
        db.commit()
    for _ in range(2):
        later, snapshots = people(tmp_path)
        await later.load()
        assert known(later) == ({ANNA}, {OTHER}, id_at(NOON), -1)
        assert later.forgotten.at(OTHER, None) == id_at(NOON)
        await snapshots.close()


async def test_of_several_processes_one_stores_what_is_of_a_person_and_each_what_it_forgot(tmp_path: Path) -> None:
    for whose in (ANNA, BEN):
        kept, snapshots = people(tmp_path, stores=whose.__eq__)
        for who, out in ((ANNA, whose == ANNA), (BEN, whose == BEN)):
            kept.opt(who, 5, out=out)
            kept.forget(None, who, 7 if out else 6)
        kept.forget(whose, None, 9)
        await snapshots.close()
    found = rows(tmp_path)
    assert found[OPTED_OUT] == {ANNA: b"true", BEN: b"true"}
    assert found[FORGOTTEN] == {ANNA: b"7", BEN: b"7"}
    assert found[FORGOTTEN_CHANNEL].keys() == {ANNA, BEN}
