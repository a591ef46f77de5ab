"""followup/decision_file.py: rows that another program changed, and files of an earlier version."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from cryptography.fernet import Fernet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from followup import decision_file
from followup.decision_file import COLUMNS, FILE_NAME, DecisionFile, UnusableFileError
from followup.learning import Assignment, Entry, Removal, Revision
from persistence.open_store import check_stores, find_seal
from storage.sealing import read_keys
from tests.followup.test_decision_log import ELSEWHERE, entry, unsealed_log
from tests.storage.conftest import KEY
from tests.support.lives import all_on_disk
from tests.support.people import ANNA, BEN, CHANNEL, GUILD

CHANGES = [
    "sealed = (SELECT sealed FROM decisions WHERE message_id = 2)",
    "sealed = substr(sealed, 1, 20)",
    "sealed = 'applauded'",
    "author = (SELECT author FROM decisions WHERE message_id = 2)",
    "author = CAST(x'ff41' AS TEXT)",
    f"channel_id = {ELSEWHERE}",
    "guild_id = 5",
    "at = 9e9",
    "message_id = 1001",
]
SECRETS = re.compile(rb"secret-\d+\.")
OTHERS = entry(2, author_id=BEN)


@pytest.fixture
def file(tmp_path: Path) -> DecisionFile:
    return DecisionFile(tmp_path / FILE_NAME, read_keys(KEY))


@contextmanager
def changing(file: DecisionFile) -> Iterator[sqlite3.Connection]:
    """As another program does."""
    with closing(sqlite3.connect(file.path)) as db, db:
        yield db


def stored(file: DecisionFile) -> list[int]:
    with changing(file) as db:
        return [message_id for (message_id,) in db.execute("SELECT message_id FROM decisions ORDER BY message_id")]


def refused(logs: list[Any]) -> list[int]:
    return [entry["message"] for entry in logs if entry["event"] == "decision_refused"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_row_that_another_program_changed_does_not_count_and_goes_when_something_has_to(
    file: DecisionFile, change: str
) -> None:
    file.write([entry(1), OTHERS])
    with changing(file) as db:
        db.execute(f"UPDATE decisions SET {change} WHERE message_id = 1")  # noqa: S608
    with capture_logs() as logs:
        assert file.read() == [OTHERS]
    changed = 1001 if "message_id =" in change.partition("(")[0] else 1
    assert refused(logs) == [changed]
    again = DecisionFile(file.path, read_keys(KEY))
    with capture_logs() as logs:
        again.write([Removal(author_id=ANNA, through=5)])  # whom it could not be found by any more
    assert (refused(logs), stored(file)) == ([changed], [2])


def test_a_row_that_does_not_fit_goes_when_something_is_noted_of_it(file: DecisionFile) -> None:
    file.write([entry(1), OTHERS])
    with changing(file) as db:
        db.execute("UPDATE decisions SET author = x'00' WHERE message_id = 1")
    file.write([Assignment(1, "docs", "named")])
    assert stored(file) == [2]


# As version 3 left it


def left(file: DecisionFile, entries: list[Entry]) -> None:
    """Sealed by Fernet, and without the author."""
    file.write(entries)
    with changing(file) as db:
        for each in entries:
            token = Fernet(KEY).encrypt(orjson.dumps([getattr(each, column) for column in COLUMNS]))
            db.execute("UPDATE decisions SET sealed = ? WHERE message_id = ?", (token, each.message_id))
        db.execute("PRAGMA user_version = 3")


@pytest.mark.parametrize("keys", [KEY, f"{'b' * 43}=,{KEY}"], ids=["the same key", "another before it"])
def test_what_version_3_sealed_is_read_and_sealed_anew_at_the_start(file: DecisionFile, keys: str) -> None:
    left(file, [entry(1, content="the cat is called Tim"), OTHERS])
    before = file.path.read_bytes()
    now = DecisionFile(file.path, read_keys(keys))
    for _ in range(2):
        assert now.read() == [entry(1, content="the cat is called Tim"), OTHERS]
        assert b"gAAAAA" in before
        now.bring_up()
    assert b"gAAAAA" not in file.path.read_bytes()
    now.write([Removal(author_id=ANNA)])
    assert now.read() == [OTHERS]


@pytest.mark.parametrize("change", [change for change in CHANGES if "substr" not in change])
def test_a_row_of_version_3_that_was_changed_is_left_behind(file: DecisionFile, change: str) -> None:
    left(file, [entry(1), OTHERS])
    with changing(file) as db:
        db.execute(f"UPDATE decisions SET {change} WHERE message_id = 1")  # noqa: S608
    with capture_logs() as logs:
        file.bring_up()
    assert (len(refused(logs)), stored(file)) == (1, [2])


# In place of one that was sealed


def test_a_file_in_which_another_program_left_a_trigger_is_set_aside(file: DecisionFile) -> None:
    file.write([entry(1)])
    with changing(file) as db:
        db.execute("CREATE TRIGGER t BEFORE DELETE ON decisions BEGIN SELECT RAISE(IGNORE); END")
    with capture_logs() as logs:
        file.write([Removal(author_id=ANNA)])
    assert stored(file) == []
    assert [each["event"] for each in logs] == ["decision_log_unusable"]


def test_a_file_that_one_changed_bit_makes_read_only_is_set_aside(file: DecisionFile) -> None:
    file.write([entry(1)])
    with file.path.open("r+b") as bytes_:
        bytes_.seek(18)
        bytes_.write(b"\3")
    with capture_logs() as logs:
        file.write([entry(2)])
    assert stored(file) == [2]
    assert [each["event"] for each in logs] == ["decision_log_unusable"]


def test_a_file_whose_table_refuses_changes_is_set_aside(file: DecisionFile) -> None:
    file.write([entry(1)])
    with changing(file) as db:
        db.executescript(
            """
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, 'sealed BLOB NOT NULL', 'sealed BLOB NOT NULL CHECK (FALSE)')
            """
        )
    with capture_logs() as logs:
        file.write([entry(2)])
    assert stored(file) == [2]
    assert [each["event"] for each in logs] == ["decision_log_unusable"]


@pytest.mark.parametrize(
    ("there", "changed"),
    [(b"CREATE TABLE seal (mark", b"CREATE TABLE seal (mar\xeb"), (bytes(4), b"\0\0\0\1")],
    ids=["name", "auto-vacuum"],
)
def test_a_file_with_one_changed_bit_is_set_aside_when_it_is_brought_up(
    file: DecisionFile, there: bytes, changed: bytes
) -> None:
    file.write([entry(1)])
    content = file.path.read_bytes()
    at = 52 if there == bytes(4) else content.index(there)
    assert content[at : at + len(there)] == there
    file.path.write_bytes(content[:at] + changed + content[at + len(there) :])
    assert not file.is_anothers()
    with capture_logs() as logs:
        file.bring_up()
        file.write([entry(2)])
    assert stored(file) == [2]
    assert [each["event"] for each in logs] == ["decision_log_unusable"]


def test_a_file_that_computes_what_it_holds_is_set_aside(file: DecisionFile) -> None:
    with changing(file) as db:
        db.executescript("CREATE TABLE decisions (at, sealed AS (hex(zeroblob(at)))); PRAGMA user_version = 3")
    with capture_logs() as logs:
        file.write([entry(2)])
    assert stored(file) == [2]
    assert [each["event"] for each in logs] == ["decision_log_unusable"]


@pytest.mark.parametrize("end", ["", "-journal"])
def test_a_pipe_in_place_of_the_file_or_beside_it_holds_up_nothing(file: DecisionFile, end: str) -> None:
    file.write([entry(1)])
    path = file.path.with_name(file.path.name + end)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with capture_logs() as logs:
        file.write([entry(2)])
    assert [found.message_id for found in file.read()] == ([1, 2] if end else [2])
    assert [each["event"] for each in logs] == ["file_refused" if end else "decision_log_unusable"]


def test_a_row_that_another_program_took_out_of_an_index_is_removed(file: DecisionFile) -> None:
    file.write([entry(1)])
    with changing(file) as db:
        db.executescript(
            """
            DROP INDEX by_author; CREATE INDEX by_author ON decisions (author) WHERE message_id > 1;
            PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, ' WHERE message_id > 1', '') WHERE name = 'by_author'
            """
        )
    file.write([Removal(author_id=ANNA)])
    assert stored(file) == []


def test_an_unsealed_file_is_refused_and_set_aside_with_a_key_of_the_owners(file: DecisionFile) -> None:
    unsealed_log(file.path, [entry(2)])
    content = file.path.read_bytes()
    with pytest.raises(UnusableFileError, match="not sealed"):
        file.read()
    with capture_logs() as logs:
        file.bring_up()
    assert file.read() == []
    (warning,) = logs
    assert (warning["event"], "not sealed" in warning["detail"]) == ("decision_log_unusable", True)
    assert Path(warning["moved_to"]).read_bytes() == content


# Damage of any kind

VALUES = (
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.binary(max_size=80) | st.text("aé🦊", max_size=8)
)
DAMAGE = st.dictionaries(
    st.integers(1, 6), st.tuples(st.sampled_from(["channel_id", "guild_id", "at", "author", "sealed"]), VALUES)
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(DAMAGE)
def test_of_damaged_rows_each_costs_one_line_and_all_others_stay(damage: dict[int, tuple[str, Any]]) -> None:
    sound = [entry(n, author_id=BEN if n % 2 else ANNA, channel_id=CHANNEL, guild_id=GUILD) for n in range(1, 7)]
    with TemporaryDirectory() as folder:
        file = DecisionFile(Path(folder) / FILE_NAME, read_keys(KEY))
        file.write(sound)
        with changing(file) as db:
            for message_id, (column, value) in damage.items():
                sql = f"UPDATE OR IGNORE decisions SET {column} = ? WHERE message_id = ?"  # noqa: S608
                db.execute(sql, (value, message_id))
            placed = {
                row[0]: row[1:] for row in db.execute("SELECT message_id, channel_id, guild_id, at FROM decisions")
            }
        changed = {each.message_id for each in sound if placed[each.message_id] != (CHANNEL, GUILD, each.at)}
        with capture_logs() as logs:
            found = DecisionFile(file.path, read_keys(KEY)).read()
        assert changed <= set(refused(logs)) <= set(damage)
        assert found == [each for each in sound if each.message_id not in refused(logs)]
        with capture_logs() as logs_of_removal:
            DecisionFile(file.path, read_keys(KEY)).write([Removal(author_id=ANNA, through=9)])
        assert refused(logs_of_removal) == refused(logs)
        assert file.read() == [each for each in found if each.author_id == BEN]


def test_nothing_of_the_words_that_are_gone_stays_in_room_that_is_not_used(tmp_path: Path) -> None:
    """SQLite leaves copies where it moves rows between its pages, also with secure_delete."""
    check_stores(tmp_path, None, None)
    file, chance = DecisionFile(tmp_path / FILE_NAME, find_seal(tmp_path, None, None)), Random(11)
    words: dict[int, bytes] = {}
    for step in range(40):
        message_id = chance.randrange(60)
        was_said = words.pop(message_id, None)
        if was_said and chance.random() < 0.3:
            file.write([Removal(frozenset({message_id}))])
            continue
        words[message_id] = b"secret-%d." % step
        text = f"{words[message_id].decode()} {'x' * chance.randrange(400)}"
        file.write([Revision(message_id, CHANNEL, ANNA, text) if was_said else entry(message_id, content=text)])
        assert {found for _, found in all_on_disk(tmp_path, SECRETS)} == {*words.values()}


@pytest.mark.parametrize("whose", ["author_id", "channel_id"])
def test_to_forget_many_does_not_read_all_rows_for_each(
    file: DecisionFile, whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write([entry(number, **{whose: number}) for number in range(1, 1_001)])
    steps = 0

    def note() -> int:
        nonlocal steps
        steps += 1_000
        return 0

    connected = decision_file._connected

    def noting(*path: Any, **how: Any) -> sqlite3.Connection:
        connection = connected(*path, **how)
        connection.set_progress_handler(note, 1_000)
        return connection

    monkeypatch.setattr(decision_file, "_connected", noting)
    file.write([Removal(**{whose: number}, through=2_000) for number in range(2, 1_001)])  # type: ignore[arg-type]
    assert stored(file) == [1]
    assert steps < 200_000
