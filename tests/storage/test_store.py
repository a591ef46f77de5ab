"""What every store of rows does, in a database and in Redis alike; and what the database does when it is damaged."""

from __future__ import annotations

import os
import random
import re
import sqlite3
import stat
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from redis.client import Pipeline
from structlog.testing import capture_logs

from doctor.checks_storage import check_folder
from followup.decision_file import DecisionFile
from persistence.lock import in_use
from storage.redis_store import RedisStore
from storage.sealing import Seal
from storage.sqlite_store import SQLiteStore
from storage.state_key import KeyFile
from storage.store import EmptiedError, Key, LostLeaseError, Row, StoreError, strangers
from tests.followup.test_decision_log import entry
from tests.storage.conftest import KEY, OpenStore
from tests.storage.test_sealing import fitting

LARGE = 2**62


def test_what_was_never_written_is_not_there_and_reading_touches_nothing(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    assert (store.read("said"), store.read("said", 5), store.channels("said")) == ([], [], [])
    store.sync()
    store.drop_aside(LARGE)
    store.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [b"1", b"{}", b'{"a":"' + b"x" * 100_000 + b'"}', "🦊\n\0".encode()])
def test_a_value_is_read_as_it_was_written_also_by_the_next_process(open_store: OpenStore, value: bytes) -> None:
    open_store().write({Key("said", 5, LARGE): value})
    assert open_store().read("said", 5) == [Row(5, LARGE, value)]


def test_the_last_value_counts_be_it_longer_shorter_or_none(open_store: OpenStore) -> None:
    store = open_store()
    for size in (10, 5_000, 3, 4, 90_000, 2):
        for id_ in (0, 7):
            store.write({Key("said", 5, id_): b"x" * size})
        assert open_store().read("said", 5) == [Row(5, id_, b"x" * size) for id_ in (0, 7)]
    store.write({Key("said", 5): None, Key("said", 5, 8): None})
    assert open_store().read("said", 5) == [Row(5, 7, b"xx")]


def test_rows_come_in_the_order_of_their_ids_and_in_pages(open_store: OpenStore) -> None:
    store = open_store()
    ids = random.Random(1).sample(range(1, 10**18), 50)
    store.write({Key("said", 5, id_): b"%d" % id_ for id_ in ids} | {Key("said", 6, 1): b"1", Key("else", 5, 1): b"1"})
    ids.sort()

    def read(**how: int) -> list[int]:
        return [row.id for row in open_store().read("said", 5, **how)]  # type: ignore[arg-type]

    assert read() == ids
    assert read(since=ids[3], before=ids[9]) == ids[3:9]
    assert read(limit=7) == ids[:7]
    assert read(since=ids[-1] + 1) == read(limit=0) == []
    assert read(before=ids[40], limit=3, newest=True) == ids[39:36:-1]
    assert [row.channel for row in store.read("said")] == [5] * 50 + [6]


def test_of_many_channels_those_are_read_that_are_asked_for(open_store: OpenStore) -> None:
    store, channels = open_store(), range(1, 1_300)  # more than are read at once
    store.write({Key("said", c, id_): b"%d" % c for c in channels for id_ in (1, 2)})
    assert [(row.channel, row.id) for row in store.read("said")] == [(c, id_) for c in channels for id_ in (1, 2)]
    assert store.read("said", {900, 3, 5_000}, since=2) == [Row(3, 2, b"3"), Row(900, 2, b"900")]
    assert store.read("said", limit=3, newest=True) == [
        Row(1299, 2, b"1299"),
        Row(1299, 1, b"1299"),
        Row(1298, 2, b"1298"),
    ]
    assert store.read("said", ()) == []


def test_the_channel_with_the_newest_row_is_the_last_and_one_without_rows_is_none(open_store: OpenStore) -> None:
    store = open_store()
    store.write({Key("said", 5, 10): b"1", Key("said", 6, 20): b"1", Key("said", 7, 15): b"1", Key("else", 8): b"1"})
    store.write({Key("said", 5, 3): b"1"})
    assert open_store().channels("said") == [5, 7, 6]
    store.write({Key("said", 6, 20): None})
    assert open_store().channels("said") == [5, 7]


def test_what_goes_is_in_no_file_once_it_is_synchronised(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    store.write({Key("said", 5, 1): b"sesame", Key("said", 5, 2): b"stays", Key("snapshot", 5): b"sesame too"})
    store.write({Key("said", 5, 1): None, Key("snapshot", 5): b"{}"})
    store.sync()
    assert not _mention(tmp_path, b"sesame")


@pytest.mark.parametrize("size", [1, 7, 8, 16, 24, 33, 48, 60])
def test_no_id_of_what_goes_stays_in_a_file_though_its_room_is_not_free_yet(tmp_path: Path, size: int) -> None:
    store, ids = SQLiteStore(tmp_path / "db"), random.Random(size).sample(range(3 * 2**58, 2**60), 200)
    people = [*map(partial(Key, "opted_out", 0), ids[:50])]
    others = [Key(kind, channel + 2**size) for kind in ("a", "z") for channel in range(50)]
    mixed = random.Random(1).sample([*people, *others], 150)
    for key in mixed:
        store.write({key: b"true"})
    store.write(dict.fromkeys(people))
    store.write({Key("left", ids[100], 2**size + 1): b"true"})
    store.write({Key("left", ids[100], 2**size + 1): None})
    store.sync()
    assert not [id_ for id_ in ids if _mention(tmp_path, id_.to_bytes(8))]
    assert sum(len(store.read(kind)) for kind in store.kinds()) == len(others)
    store.close()


def test_ids_that_an_earlier_version_left_of_deleted_rows_go_as_the_file_is_opened(tmp_path: Path) -> None:
    person, other, smaller = 3 * 2**58 + 12_345, 3 * 2**58 + 54_321, 200
    store = SQLiteStore(tmp_path / "db")
    store.write({Key("opted_out", channel, who): b"true" for who in (person, other) for channel in (0, smaller)})
    store.close()
    with closing(sqlite3.connect(tmp_path / "db")) as db, db:
        db.execute("UPDATE row SET live = 0, value = zeroblob(length(value)) WHERE id = ?", (person,))
    store = SQLiteStore(tmp_path / "db")
    assert store.read("opted_out") == [Row(channel, other, b"true") for channel in (0, smaller)]
    store.sync()
    assert not _mention(tmp_path, person.to_bytes(8))
    assert _mention(tmp_path, other.to_bytes(8))
    store.write({Key("opted_out", 0, person): b"true"})
    assert store.read("opted_out", 0) == [Row(0, person, b"true"), Row(0, other, b"true")]
    store.close()


def test_of_thousands_of_changes_none_leaves_words_in_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where SQLite moves rows between pages it leaves copies, even with secure_delete."""
    monkeypatch.setattr("storage.sqlite_store.MOST_DEAD", 500_000)
    choice, store = random.Random(1), SQLiteStore(tmp_path / "db")
    live: dict[Key, bytes] = {}
    for number in range(3_000):
        word = b"T%07dX" % number
        known = choice.choice(list(live)) if live and choice.random() < 0.6 else None
        key = known or Key("said", choice.randint(1, 4), choice.choice([0, number]))
        value = (
            None if known and choice.random() < 0.5 else word + choice.randbytes(choice.choice([9, 200, 4_000])) + word
        )
        store.write({key: value})
        live.pop(key, None)
        if value is not None:
            live[key] = word
        if number % 500 == 499:
            store.sync()
            found = {word for path in tmp_path.iterdir() for word in re.findall(rb"T\d{7}X", path.read_bytes())}
            assert found == set(live.values())
    assert (tmp_path / "db").stat().st_size < 10_000_000
    assert len(live) == sum(len(store.read("said", channel)) for channel in range(1, 5))
    store.close()


def test_all_of_a_write_is_stored_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SQLiteStore(tmp_path / "db")
    store.write({Key("said", 5, 1): b"old", Key("said", 5, 2): b"old"})
    put = store._put

    def failing(db: sqlite3.Connection, rows: Mapping[Key, bytes | None]) -> None:
        put(db, rows)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(store, "_put", failing)
    with pytest.raises(StoreError, match="could not be written"):
        store.write({Key("said", 5, 1): b"new", Key("said", 5, 2): b"new"})
    assert [row.value for row in store.read("said", 5)] == [b"old", b"old"]
    store.close()


def test_what_is_written_together_takes_few_statements_whatever_stood_there(tmp_path: Path) -> None:
    """Between two of them the thread may wait for the others."""
    store = SQLiteStore(tmp_path / "db")
    store.write({Key("said", 5, number): b"old words" for number in range(1, 250)})
    changes: dict[Key, bytes | None] = {Key("said", 6, number): b"new" for number in range(1, 250)}
    changes |= {Key("said", 5, 1): b"new", Key("said", 5, 2): b"much longer words", Key("said", 5, 3): None}
    statements: list[str] = []
    assert store._db
    store._db.set_trace_callback(statements.append)
    store.write(changes)
    assert len(statements) < 15
    kept = {row.id: row.value for row in store.read("said", 5)}
    assert len(kept) == 248
    assert (kept[1], kept[2], kept[249]) == (b"new", b"much longer words", b"old words")
    assert len(store.read("said", 6)) == 249
    store.close()


def test_the_files_are_the_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    with _umask(0):
        store = SQLiteStore(tmp_path / "above" / "new" / "db")
        store.write({Key("said", 5): b"{}"})
        with in_use(tmp_path / "as the lock" / "new"):
            pass
        KeyFile(tmp_path / "as the key" / "new").keep("a key")
        DecisionFile(tmp_path / "as the log" / "new" / "log", Seal([KEY])).write([entry(1)])
        check_folder(tmp_path / "as the doctor" / "new")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "above" / "new").iterdir()}
    assert modes == dict.fromkeys(("db", "db-wal", "db-shm"), 0o600)
    folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert len(folders) == 10
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
    store.close()


# A row in another's place


@pytest.mark.parametrize("seal", [None, fitting()], ids=["plain", "sealed"])
@pytest.mark.parametrize(
    "change",
    [
        "channel = 6",
        "id = 8",
        "kind = 'else'",
        "value = x'00'",
        "value = value || 'x'",
        "value = CAST(x'ff41' AS TEXT)",
    ],
)
def test_a_row_that_belongs_elsewhere_or_is_damaged_is_not_accepted(
    tmp_path: Path, change: str, seal: Seal | None
) -> None:
    store = SQLiteStore(tmp_path / "db", seal=seal)
    store.write({Key("said", 5, 7): b"mine", Key("said", 5, 9): b"mine"})
    store.close()
    with sqlite3.connect(tmp_path / "db") as db:
        db.execute(f"UPDATE row SET {change} WHERE id = 7")  # noqa: S608
    db.close()
    with capture_logs() as logs:
        rows = [*store.read("said"), *store.read("else")]
    assert [entry["event"] for entry in logs] == ["row_refused"]
    assert sorted(str(row.value) for row in rows) == ["None", str(b"mine")]
    store.close()


# Damage


def _flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for place in random.Random(1).sample(range(len(data)), 40):
        data[place] ^= 1 << place % 8
    path.write_bytes(data)


def _page_lost(path: Path) -> None:
    data = path.read_bytes()
    middle = len(data) // 2 // 4_096 * 4_096
    path.write_bytes(data[:middle] + os.urandom(4_096) + data[middle + 4_096 :])


def _of_another_version(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()


def _name_damaged(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"indexplacerow", b"indexpl\xffcerow"))


def _column_renamed(path: Path) -> None:
    """By one bit, to what is no UTF-8; SQLite takes it all the same."""
    path.write_bytes(path.read_bytes().replace(b"kind TEXT", b"kin\xe4 TEXT"))


def _made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _of_unknown_version(path: Path) -> None:
    """One bit of the number of the version that writes it is changed: SQLite only reads it then."""
    with path.open("r+b") as file:
        file.seek(18)
        file.write(b"\3")


def _run(statement: str, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(statement)


def _with_the_last_number(path: Path) -> None:
    _run("INSERT INTO row (number, live) VALUES (9223372036854775807, 0)", path)
    _run("UPDATE sqlite_sequence SET seq = 5", path)


def _made_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES: list[tuple[Callable[[Path], object], int]] = [
    (lambda path: os.truncate(path, path.stat().st_size // 2), 100),
    (_page_lost, 250),
    (_of_another_version, 400),
    (_name_damaged, 400),
    (_column_renamed, 0),
    (_flipped, 0),
    (lambda path: path.write_bytes(b""), 0),
    (lambda path: path.write_bytes(b"nonsense" * 1_000), 0),
    (_made_a_folder, 0),
    (_of_unknown_version, 400),
    (partial(_run, "UPDATE sqlite_sequence SET seq = 9223372036854775807"), 400),
    (partial(_run, "UPDATE sqlite_sequence SET seq = 'abc'"), 400),
    (_with_the_last_number, 400),
    (_made_a_pipe, 0),
]


@pytest.mark.parametrize("kind", ["said", "other", b"\0", None])
@pytest.mark.parametrize("channel", [1.5, "abc", b"\0", None])
def test_rows_of_odd_types_that_somebody_added_are_as_if_they_were_not_there(
    tmp_path: Path, kind: object, channel: object
) -> None:
    path = tmp_path / "db"
    store = SQLiteStore(path)
    store.write({Key("said", 5, 7): b"words"})
    odd = "INSERT INTO row (live, kind, channel, id, value) VALUES (1, ?, ?, ?, x'00')"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(odd, (kind, channel, 7))
        db.execute(odd, (kind, 5, channel))
    assert store.read("said") == [Row(5, 7, b"words")]
    assert (store.channels("said"), store.kinds()) == ([5], ["said"])
    assert (store.read("other"), store.channels("other")) == ([], [])
    store.write({Key("said", 5, 7): None})
    assert store.read("said") == []
    store.close()


def test_what_a_link_leads_to_is_not_deleted_with_what_was_set_aside(tmp_path: Path) -> None:
    store, aside, elsewhere = SQLiteStore(tmp_path / "db"), tmp_path / "aside", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "theirs").touch()
    aside.symlink_to(elsewhere)
    with pytest.raises(StoreError, match="aside is a link"):
        store.drop_aside(LARGE)
    aside.unlink()
    aside.mkdir()
    (aside / "folder").symlink_to(elsewhere)
    (aside / "nothing").symlink_to("nowhere")
    store.drop_aside(LARGE)
    assert not [*aside.iterdir()]
    assert (elsewhere / "theirs").exists()


@pytest.mark.parametrize(("damage", "least"), DAMAGES)
def test_a_damaged_database_is_set_aside_and_what_can_be_read_is_kept(
    tmp_path: Path, damage: Callable[[Path], object], least: int
) -> None:
    path = tmp_path / "db"
    store = SQLiteStore(path)
    store.write({Key("said", 5, id_): b"%d" % id_ * 200 for id_ in range(1, 401)})
    store.close()
    damage(path)
    is_empty = path.is_file() and not path.stat().st_size
    with capture_logs() as logs:
        found = [row for row in store.read("said", 5) if row.value is not None]
    assert len(found) >= least
    assert all(row.value == b"%d" % row.id * 200 for row in found)
    damaged = [entry for entry in logs if entry["event"] == "database_damaged"]
    assert len(damaged) == (not is_empty)
    if damaged:
        assert Path(damaged[0]["set_aside"]).exists()
        assert damaged[0]["rows_kept"] >= len(found)
        store.drop_aside(0)
        assert Path(damaged[0]["set_aside"]).exists()
        store.drop_aside(LARGE)
        assert not Path(damaged[0]["set_aside"]).exists()
    store.write({Key("said", 6, 1): b"goes on"})
    with capture_logs() as logs:
        assert SQLiteStore(path).read("said", 6) == [Row(6, 1, b"goes on")]
    assert not logs
    store.close()


def _naming(path: Path) -> bytes:
    """A journal that has SQLite undo nothing and delete that file: https://www.sqlite.org/fileformat.html, 3."""
    magic, page = bytes.fromhex("d9d505f920a163d7"), 4_096
    name = str(path).encode()
    head = (magic + struct.pack(">IIIII", 0, 1, 3, 512, page)).ljust(512, b"\0")
    return head + struct.pack(">I", 2**30 // page + 1) + name + struct.pack(">II", len(name), sum(name)) + magic


@pytest.mark.parametrize("is_link", [False, True])
@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
def test_what_somebody_put_beside_a_database_is_deleted_and_no_other_file(
    tmp_path: Path, end: str, is_link: bool
) -> None:
    path, others = tmp_path / "db", tmp_path / "others"
    if is_link:
        path.with_name("link").symlink_to(path)
    others.write_text("theirs")
    store = SQLiteStore(path)
    store.write({Key("said", 5, 1): b"words"})
    store.sync()
    store.close()
    beside = path.with_name(path.name + end)
    beside.unlink(missing_ok=True)
    for put in (partial(os.mkfifo, beside), lambda: path.with_name("db-journal").write_bytes(_naming(others))):
        put()
        with capture_logs() as logs:
            assert SQLiteStore(path.with_name("link") if is_link else path).read("said", 5) == [Row(5, 1, b"words")]
        assert [entry["event"] for entry in logs] == ["file_refused"]
    assert others.read_text() == "theirs"


def test_what_a_running_process_makes_and_deletes_beside_its_database_is_left(tmp_path: Path) -> None:
    path, is_over = tmp_path / "db", threading.Event()

    def write() -> None:
        """As the decision log does: each transaction makes a journal and deletes it."""
        for number in range(150):
            with closing(sqlite3.connect(path)) as db, db:
                db.execute("CREATE TABLE IF NOT EXISTS t (n)")
                db.execute("INSERT INTO t VALUES (?)", (number,))
        is_over.set()

    thread = threading.Thread(target=write)
    thread.start()
    with capture_logs() as logs:
        while not is_over.is_set():
            assert strangers(path) == []
    thread.join()
    assert not logs
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM t").fetchone() == (150,)


def test_damage_that_shows_only_in_use_is_mended_with_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT | 3 << 8  # of an index
        raise error

    store = SQLiteStore(tmp_path / "db")
    store.write({Key("said", 5, 1): b"1"})
    monkeypatch.setattr(store, "_put", failing)
    with pytest.raises(StoreError, match="malformed"):
        store.write({Key("said", 5, 2): b"2"})
    monkeypatch.undo()
    with capture_logs() as logs:
        store.write({Key("said", 5, 2): b"2"})
        store.write({Key("said", 5, 3): b"3"})
    assert [entry["event"] for entry in logs] == ["database_damaged"]
    assert [row.value for row in store.read("said", 5)] == [b"1", b"2", b"3"]
    store.close()


def test_a_file_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "db")
    store.write({Key("said", 5, 1): b"1"})
    (tmp_path / "db").unlink()
    store.write({Key("said", 5, 2): b"2"})
    store.close()
    assert store.read("said", 5) == [Row(5, 2, b"2")]
    store.close()


# Redis


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "unix:///nowhere/socket"])
def test_a_redis_that_is_not_there_is_said_in_one_sentence(url: str) -> None:
    store = RedisStore(url, "test")
    for work in (lambda: store.read("a"), lambda: store.write({Key("a", 1): b"{}"}), lambda: store.channels("a")):
        with pytest.raises(StoreError, match=r"could not be .* in Redis") as refused:
            work()
        assert "\n" not in str(refused.value)
    store.close()


def test_an_address_that_is_none_of_a_redis_is_refused() -> None:
    with pytest.raises(ValueError, match="redis://"):
        RedisStore("http://nowhere", "test")


@dataclass
class Held:
    names: dict[str, str]


def test_what_a_process_writes_without_its_leases_is_not_written_none_of_it(redis_url: str) -> None:
    held = Held({"lease:0": "a", "lease:1": "a"})
    store = RedisStore(redis_url, "fenced", leases=held)
    store.redis.mset({"lease:0": "a", "lease:1": "a"})
    store.write({Key("said", 5, 1): b"1"})
    store.redis.delete("lease:1")
    with pytest.raises(StoreError, match="lease:1 in Redis has run out") as refused:
        store.write({Key("said", 5, 1): None, Key("said", 5, 2): b"2"})
    assert not isinstance(refused.value, LostLeaseError)
    store.redis.set("lease:1", "b")
    with pytest.raises(LostLeaseError, match=r"lease:1 in Redis now belongs to another process \(b\)"):
        store.write({Key("said", 5, 2): b"2"})
    held.names = {}
    with pytest.raises(StoreError, match="has none"):
        store.write({Key("said", 5, 2): b"2"})
    held.names = {"lease:0": "a"}
    store.write({Key("said", 5, 3): b"3"})
    assert [row.id for row in store.read("said", 5)] == [1, 3]
    store.close()


def test_a_key_of_another_type_costs_no_other_rows_and_is_repaired(redis_url: str) -> None:
    store = RedisStore(redis_url, "odd")
    store.write({Key("said", channel, 1): b"words" for channel in (5, 6, 7)})
    store.redis.hset("odd:said:5", mapping={"nan": "x", "5 ": "x", "1e400": "x"})
    for name, is_read, told in (
        ("odd:said:6", True, ["rows_refused", "keys_repaired"]),
        ("odd:said", True, ["keys_repaired"]),
        ("odd:said", False, ["keys_repaired"]),
    ):
        store.redis.delete(name)
        store.redis.set(name, "x")
        with capture_logs() as logs:
            if is_read and name == "odd:said":
                assert store.kinds() == ["said"]
            if is_read:
                assert [row.channel for row in store.read("said")] == ([5, 7] if told[1:] else [5, 6, 7])
            store.write({Key("said", 6, 2): b"more", Key("said", 7, 1): b"more"})
        assert [entry["event"] for entry in logs] == told
    assert store.read("said") == [Row(5, 1, b"words"), Row(6, 2, b"more"), Row(7, 1, b"more")]
    store.expect(Key("said", 5, 1))
    store.sync()
    store.redis.delete("odd:said:5")
    store.redis.set("odd:said:5", "x")
    with pytest.raises(EmptiedError):
        store.sync()
    store.close()


def test_a_row_that_another_process_deletes_while_it_is_read_is_none(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = RedisStore(redis_url, "raced"), RedisStore(redis_url, "raced")
    store.write({Key("said", 5, 1): b"1", Key("said", 5, 2): b"2"})
    ask = Pipeline.hmget

    def late(pipe: Any, *asked: Any) -> Any:
        other.write({Key("said", 5, 1): None})
        return ask(pipe, *asked)

    monkeypatch.setattr(Pipeline, "hmget", late)
    with capture_logs() as logs:
        assert store.read("said", 5) == [Row(5, 2, b"2")]
    assert logs == []


def _mention(folder: Path, word: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word in path.read_bytes()]


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
