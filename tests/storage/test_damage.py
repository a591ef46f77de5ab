"""Damaged rows: each is told in one line, and costs no other."""

from __future__ import annotations

import resource
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from persistence.stored_messages import to_message
from persistence.transcript import MESSAGE, Transcript
from persistence.writer import Writer
from state.session_form import encode_message
from storage import sqlite_store
from storage.sqlite_store import SQLiteStore
from storage.store import Key, StoreError
from tests.storage.test_sealing import fitting
from tests.support.people import ANNA, BEN, CHANNEL, said

SAID = [said(ANNA if n % 2 else BEN, f"word {n}") for n in range(6)]
CUT = st.tuples(st.just("substr(value, 1, ?)"), st.integers(0, 40))
ANY = st.none() | st.integers(-9, 9) | st.floats() | st.binary(max_size=60) | st.text("+=*.ü", max_size=8)
OTHERS = st.tuples(st.just("?"), ANY)
MOVED = st.tuples(st.just("(SELECT value FROM row WHERE id = ?)"), st.sampled_from([m.message_id for m in SAID]))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.integers(0, 5), CUT | OTHERS | MOVED))
def test_of_damaged_rows_each_costs_one_line_and_all_others_stay(damage: dict[int, tuple[str, Any]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "db"
        store = SQLiteStore(path, seal=fitting())
        write = {Key(MESSAGE, CHANNEL, m.message_id): encode_message(to_message(m)) for m in SAID}
        store.write(write)
        store.close()
        with closing(sqlite3.connect(path)) as db, db:
            sound = dict(db.execute("SELECT id, value FROM row"))
            for number, (value, given_value) in damage.items():
                sql = f"UPDATE row SET value = {value} WHERE id = ?"  # noqa: S608
                db.execute(sql, (given_value, SAID[number].message_id))
            damaged = {id_ for id_, value in db.execute("SELECT id, value FROM row") if value != sound[id_]}
        writer = Writer(lambda: SQLiteStore(path, seal=fitting()))
        with capture_logs() as logs:
            recent = Transcript(writer).recent(CHANNEL, 0)
        assert sorted(entry["id"] for entry in logs) == sorted(damaged)
        assert {entry["event"] for entry in logs} <= {"row_refused"}
        assert recent == [message for message in SAID if message.message_id not in damaged]
        writer.store.close()


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE TRIGGER t BEFORE INSERT ON row BEGIN SELECT RAISE(IGNORE); END",
        "CREATE TRIGGER t BEFORE UPDATE ON row BEGIN SELECT RAISE(IGNORE); END",
        """DROP INDEX place;
        INSERT INTO row (live, kind, channel, id, value) SELECT live, kind, channel, id, value FROM row""",
        """DROP INDEX place; CREATE UNIQUE INDEX place ON row (kind, channel, id) WHERE live AND id > 1;
        PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = replace(sql, ' AND id > 1', '') WHERE name = 'place'""",
        """ALTER TABLE row RENAME TO hidden; CREATE VIEW row AS SELECT * FROM hidden;
        CREATE TRIGGER t INSTEAD OF UPDATE ON row BEGIN SELECT 1; END""",
    ],
    ids=["drops what is stored", "keeps what is deleted", "stores each row twice", "hides a row", "a view"],
)
@pytest.mark.parametrize("is_open", [False, True])
def test_a_schema_that_another_program_changed_keeps_nothing_and_loses_nothing(
    tmp_path: Path, planted: str, is_open: bool
) -> None:
    path, deleted, other, new = tmp_path / "db", Key("a", 1, 1), Key("a", 1, 2), Key("a", 1, 3)
    with closing(SQLiteStore(path, seal=fitting())) as store:
        store.write({deleted: b"deleted", other: b"other"})
        if not is_open:
            store.close()
        with closing(sqlite3.connect(path)) as db, db:
            db.executescript(planted)
        with suppress(StoreError):  # it is noticed at the next write, which is then made again
            store.write({deleted: None, new: b"new"})
        store.write({deleted: None, new: b"new"})
    with capture_logs() as logs, closing(SQLiteStore(path, seal=fitting())) as store:
        assert [(row.id, row.value) for row in store.read("a")] == [(2, b"other"), (3, b"new")]
    assert logs == []
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT id FROM row NOT INDEXED WHERE live").fetchall() == [(2,), (3,)]


@pytest.mark.parametrize("is_read", [False, True], ids=["with a VACUUM", "with a read"])
def test_a_schema_that_was_changed_is_noticed_though_its_number_was_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_read: bool
) -> None:
    if not is_read:
        monkeypatch.setattr("storage.sqlite_store.MOST_DEAD", 0)
    path, deleted, other = tmp_path / "db", Key("a", 1, 1), Key("a", 1, 2)
    with closing(SQLiteStore(path, seal=fitting())) as store:
        store.write({deleted: b"deleted", other: b"other"})
        store.write({other: None})
        with closing(sqlite3.connect(path)) as db, db:
            version = db.execute("PRAGMA schema_version").fetchone()[0]
            db.execute("CREATE TRIGGER t BEFORE UPDATE ON row BEGIN SELECT RAISE(IGNORE); END")
            if is_read:
                store.read("a")
            db.execute(f"PRAGMA schema_version = {version}")
        store.sync()
        with suppress(StoreError):
            store.write({deleted: None})
        store.write({deleted: None})
    with closing(SQLiteStore(path, seal=fitting())) as store:
        assert store.read("a") == []


def test_a_damaged_database_that_the_disk_has_no_room_to_make_anew_stays_as_it_is(tmp_path: Path) -> None:
    path, said_before = tmp_path / "db", {Key(MESSAGE, CHANNEL, n): b"hello" * 1_000 for n in range(1, 41)}
    store = SQLiteStore(path)
    store.write(said_before)
    store.close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE INDEX another ON row (channel)")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StoreError):
            store.write({Key(MESSAGE, CHANNEL, 41): b"more"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [*tmp_path.rglob("db.0")] == []
    with capture_logs() as logs:
        assert len(store.read(MESSAGE, CHANNEL)) == len(said_before)
    assert [entry["rows_kept"] for entry in logs] == [len(said_before)]
    assert sorted(one.name for one in tmp_path.iterdir() if one.is_file()) == ["db", "db-shm", "db-wal"]
    store.close()


class KilledError(BaseException):
    """In place of a kill."""


@pytest.mark.parametrize("renamed", range(4))
def test_wherever_a_kill_ends_the_rescue_of_a_damaged_database_the_next_start_has_all_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: int
) -> None:
    before, path, rows = tmp_path / "before", tmp_path / "after" / "db", {Key("a", 1, n): b"hello" for n in (1, 2, 3)}
    with closing(SQLiteStore(before / "db")) as store:
        store.write(rows)
        with closing(sqlite3.connect(before / "db")) as db:
            db.execute("CREATE INDEX another ON row (channel)")
        shutil.copytree(before, path.parent)  # with the WAL, as a kill leaves it
    rename, left = Path.rename, [None] * renamed

    def rename_unless_killed(self: Path, target: Path) -> Path:
        if not left:
            raise KilledError
        left.pop()
        return rename(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", rename_unless_killed)
        with pytest.raises(KilledError):
            SQLiteStore(path).read("a")
    with capture_logs() as logs, closing(SQLiteStore(path)) as store:
        assert {Key("a", *row[:2]): row.value for row in store.read("a")} == rows
        store.write({Key("a", 1, 4): b"goes on"})
    assert [(entry["event"], entry["rows_kept"]) for entry in logs] == [("database_damaged", 3)]
    with closing(SQLiteStore(path)) as store:
        assert len(store.read("a")) == 4


def test_what_an_interrupted_rescue_left_goes_once_there_is_a_sound_database(tmp_path: Path) -> None:
    """As who manages the bot has restored a backup: else what is deleted from then on would stay there."""
    path, left = tmp_path / "db", tmp_path / "db.new"
    for one in (path, left):
        with closing(SQLiteStore(one)) as store:
            store.write({Key("a", 1, 1): b"hello"})
    with closing(SQLiteStore(path)) as store:
        store.write({Key("a", 1, 1): None})
        assert not left.exists()
    path.unlink()
    with closing(SQLiteStore(path)) as store:
        assert store.read("a") == []


def test_a_new_database_takes_the_place_of_the_damaged_one_only_once_all_is_in_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a disk that is nearly full its WAL may have room, and the file itself none."""
    path, connected, readers = tmp_path / "db", sqlite_store._connected, list[sqlite3.Connection]()
    with closing(SQLiteStore(path)) as store:
        store.write({Key("a", 1, 1): b"hello"})
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE INDEX another ON row (channel)")

    def connected_and_read(path: Path) -> sqlite3.Connection:
        db = connected(path)
        db.execute("PRAGMA busy_timeout = 0")
        readers.append(sqlite3.connect(path, isolation_level=None))
        readers[-1].execute("BEGIN")  # what is written from here on stays in the WAL
        readers[-1].execute("SELECT count(*) FROM row").fetchone()
        return db

    with monkeypatch.context() as patched:
        patched.setattr(sqlite_store, "_connected", connected_and_read)
        with closing(SQLiteStore(path)) as store:
            store.read("a")
    for reader in readers:
        reader.close()
    with closing(SQLiteStore(path)) as store:
        assert [row.value for row in store.read("a")] == [b"hello"]
