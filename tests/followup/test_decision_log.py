"""followup/decision_log.py: what is written, what goes again, and what a disk that fails costs."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import fields, replace
from hashlib import blake2b, md5, sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from structlog.testing import capture_logs

from followup import decision_file, decision_log
from followup.decision_file import FILE_NAME, SCHEMA_VERSION, DecisionFile, UnusableFileError
from followup.decision_log import DecisionLog
from followup.learning import BUTTED_IN, Assignment, Change, Entry, Mark, Outcome, Removal, Revision, Silence
from storage.sealing import read_keys
from tests.storage.conftest import KEY
from tests.storage.test_sealing import OTHER
from tests.support.people import ANNA, BEN, CHANNEL, GUILD
from tests.support.virtual_time import settle

ELSEWHERE = CHANNEL + 1
SECRET = "the cat is called Tim"
SEAL = read_keys(KEY)
OPEN_SEAL = read_keys(KEY)
OPEN_SEAL.takes_plain = True


def entry(message_id: int, **more: Any) -> Entry:
    given: dict[str, Any] = {
        "channel_id": CHANNEL,
        "guild_id": GUILD,
        "author_id": ANNA,
        "conversation": 1_000.25,
        "at": 1_000.5 + message_id,
        "respond": True,
        "reason": "followup",
        "tier": 2,
        "score": 0.75,
        "evidence": "I had spoken last",
    }
    return Entry(message_id, **(given | more))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def file(folder: Path) -> DecisionFile:
    return DecisionFile(folder / FILE_NAME, SEAL)


def ids(file: DecisionFile) -> list[int]:
    return [found.message_id for found in file.read()]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*"))


# What is written


def test_an_entry_is_read_as_it_was_written(file: DecisionFile) -> None:
    marked = entry(2, respond=False, content="hi \U0001f44e", outcome=Outcome.MISSED, outcome_at=7.5)
    written = [entry(1), marked, entry(3, agent="docs", agent_reason="named")]
    file.write(written)
    assert file.read() == written


def test_folder_and_file_are_for_their_owner_only_and_what_others_made_is_left_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    (tmp_path / "theirs").mkdir(mode=0o755)
    (tmp_path / "theirs" / "notes.txt").write_text("mine")
    try:
        for name in ("ours", "theirs"):
            DecisionFile(tmp_path / name / FILE_NAME, SEAL).write([entry(1)])
    finally:
        os.umask(before)
    modes = [(tmp_path / path).stat().st_mode & 0o777 for path in ("ours", f"ours/{FILE_NAME}", "theirs")]
    assert modes == [0o700, 0o600, 0o755]
    assert names(tmp_path / "theirs") == [FILE_NAME, "notes.txt"]
    assert (tmp_path / "theirs" / "notes.txt").read_text() == "mine"


DELETED = {"outcome": Outcome.DELETED, "outcome_at": 5.0}
MISSED = {"outcome": Outcome.MISSED, "outcome_at": 5.0}
SILENT = {"respond": False, "reason": "declined"}
NAMED = {"agent": "docs", "agent_reason": "named"}


@pytest.mark.parametrize(
    ("changes", "row"),
    [
        ([entry(1), entry(1, score=0.0)], entry(1)),
        ([entry(1), Mark(1, Outcome.DELETED, 5.0), Mark(1, Outcome.DISLIKED, 6.0)], entry(1, **DELETED)),
        ([entry(1), Mark(1, Outcome.MISSED, 5.0)], entry(1)),
        ([entry(1, respond=False), Mark(1, Outcome.MISSED, 5.0)], entry(1, respond=False, **MISSED)),
        *(([entry(1, respond=False), Mark(1, outcome, 5.0)], entry(1, respond=False)) for outcome in BUTTED_IN),
        ([entry(1), Assignment(1, "docs", "named"), entry(1)], entry(1, **NAMED)),
        ([entry(1, **NAMED), Assignment(1, "", "late")], entry(1, agent_reason="late")),
        ([entry(1, content="x", **NAMED), Silence(1, "declined")], entry(1, content="x", **SILENT, **NAMED)),
        (
            [entry(1), Silence(1, "declined"), Mark(1, Outcome.TOLD_OFF, 4.0), Mark(1, Outcome.MISSED, 5.0)],
            entry(1, **SILENT, **MISSED),
        ),
        ([entry(1), Revision(1, CHANNEL, ANNA, "new")], entry(1)),
        ([entry(1, content=SECRET), Revision(1, CHANNEL, ANNA, "\ud800")], entry(1, content="?")),
        ([entry(1, content="a\0b\ud800", evidence="")], entry(1, content="a\0b?", evidence="")),
    ],
)
def test_the_row_of_a_message_tells_what_became_of_it(file: DecisionFile, changes: list[Change], row: Entry) -> None:
    """The first outcome and the last agent stay; missed is said of silences only, and the others of answers."""
    file.write([entry(2)])
    for change in changes:
        file.write([change])
    assert file.read() == [row, entry(2)]


@pytest.mark.parametrize(
    "removal",
    [
        Removal(frozenset({1})),
        Removal(author_id=ANNA, through=1),
        Removal(guild_id=GUILD, through=1),
        Removal(before=1_001.6),
    ],
)
@pytest.mark.parametrize("written", [True, False])
async def test_what_is_gone_stays_gone_when_its_agent_is_chosen(
    folder: Path, file: DecisionFile, removal: Removal, written: bool
) -> None:
    log = DecisionLog(folder, SEAL)
    for message_id in (1, 2):
        log.add(entry(message_id, content=SECRET if message_id == 1 else None))
    if written:
        await log.flush()
    for change in (Assignment(1, "docs", "named"), Revision(1, CHANNEL, ANNA, SECRET, GUILD), removal):
        log.add(change)
    assert SECRET not in str(log._pending) or removal.before
    for message_id in (1, 2):
        log.add(Assignment(message_id, "docs", "named"))
    assert await log.flush()
    assert file.read() == [entry(2, **NAMED)]
    assert len(log) == 0


# A file of an earlier version

VERSION_1 = """
    CREATE TABLE decisions (
        message_id INTEGER PRIMARY KEY, channel_id INTEGER NOT NULL, guild_id INTEGER NOT NULL,
        author_id INTEGER NOT NULL, conversation REAL NOT NULL, at REAL NOT NULL, respond INTEGER NOT NULL,
        reason TEXT NOT NULL, tier INTEGER NOT NULL, score REAL NOT NULL, evidence TEXT NOT NULL, content TEXT,
        outcome TEXT, outcome_at REAL
    )
"""
OLD = [entry(1), entry(2, author_id=BEN, content=SECRET, outcome=Outcome.TOLD_OFF, outcome_at=7.5)]


def unsealed_log(path: Path, entries: list[Entry]) -> None:
    """As version 1 of the log left it."""
    columns = [field.name for field in fields(Entry)][:14]
    rows = [[getattr(row, column) for column in columns] for row in entries]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(f"{VERSION_1}; PRAGMA user_version = 1")
        connection.executemany(f"INSERT INTO decisions VALUES ({', '.join('?' * 14)})", rows)  # noqa: S608


@pytest.fixture
def earlier(folder: Path) -> DecisionFile:
    folder.mkdir()
    unsealed_log(folder / FILE_NAME, OLD)
    return DecisionFile(folder / FILE_NAME, OPEN_SEAL)


def sealed_row(file: DecisionFile, message_id: int) -> bytes:
    with closing(sqlite3.connect(file.path)) as connection:
        sealed = connection.execute("SELECT sealed FROM decisions WHERE message_id = ?", (message_id,)).fetchone()[0]
    assert isinstance(sealed, bytes)
    return sealed


def schema(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return [*connection.execute("PRAGMA user_version"), *connection.execute("PRAGMA table_info(decisions)")]


def test_many_decisions_take_few_statements(file: DecisionFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of each the thread may wait until the event loop lets it go on."""
    statements: list[str] = []
    connect = decision_file._connected

    def connected(path: Path, **how: Any) -> sqlite3.Connection:
        connection = connect(path, **how)
        connection.set_trace_callback(statements.append)
        return connection

    file.write([entry(1)])
    monkeypatch.setattr(decision_file, "_connected", connected)
    rows = [entry(number) for number in range(2, 400)]
    file.write([*rows[:300], Assignment(5, "docs", "named"), *rows[300:]])
    assert len(statements) < 30
    assert [row.message_id for row in file.read()] == [*range(1, 400)]
    assert file.read()[4].agent == "docs"


def test_reading_an_earlier_version_or_failing_to_write_changes_nothing(
    earlier: DecisionFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = earlier.path.read_bytes()
    assert earlier.read() == OLD
    monkeypatch.setattr(decision_file, "TRIM", "SELECT nonsense(?)")
    with pytest.raises(UnusableFileError):
        earlier._write([Assignment(1, "docs", "named")])
    assert earlier.path.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (entry(3), [*OLD, entry(3)]),
        (Assignment(1, "docs", "named"), [entry(1, agent="docs", agent_reason="named"), OLD[1]]),
        (Mark(1, Outcome.DELETED, 5.0), [entry(1, outcome=Outcome.DELETED, outcome_at=5.0), OLD[1]]),
        (Revision(2, CHANNEL, BEN, "new"), [OLD[0], replace(OLD[1], content="new")]),
        (Removal(frozenset({2})), [OLD[0]]),
        (Removal(author_id=ANNA, through=9), [OLD[1]]),
    ],
)
async def test_an_earlier_version_is_brought_up_in_place(
    earlier: DecisionFile, folder: Path, change: Change, left: list[Entry]
) -> None:
    log = DecisionLog(folder, OPEN_SEAL)
    log.add(change)
    with capture_logs() as entries:
        assert await log.flush()
    assert earlier.read() == left
    assert (entries, names(folder)) == ([], [FILE_NAME])
    new = DecisionFile(folder / "new" / FILE_NAME, SEAL)
    new.write([entry(1)])
    assert schema(earlier.path) == schema(new.path)
    assert SECRET.encode() not in earlier.path.read_bytes()
    assert b"I had spoken last" not in earlier.path.read_bytes()


# What is sealed


def test_the_file_says_neither_who_wrote_nor_what(file: DecisionFile) -> None:
    file.write([entry(1, author_id=5_300_000_001, content=SECRET, agent="docs"), entry(2, author_id=5_300_000_001)])
    with closing(sqlite3.connect(file.path)) as connection:
        (one, other) = connection.execute("SELECT * FROM decisions").fetchall()
    for known in (5_300_000_001, SECRET, "docs", "followup", "I had spoken last"):
        assert str(known) not in str(one)
    assert (5_300_000_001).to_bytes(8) not in file.path.read_bytes()
    assert one[4] == other[4]
    unkeyed = [digest(b"%d" % 5_300_000_001).digest()[:16] for digest in (sha256, blake2b, md5)]
    assert one[4] not in unkeyed


def test_another_key_before_it_has_all_written_anew_and_persons_are_found_by_it(file: DecisionFile) -> None:
    file.write([entry(1, content=SECRET), entry(2, author_id=BEN)])
    before = file.path.read_bytes()
    both = DecisionFile(file.path, read_keys(f"{OTHER},{KEY}"))
    assert both.read() == [entry(1, content=SECRET), entry(2, author_id=BEN)]
    assert file.path.read_bytes() == before
    both.bring_up()
    new = DecisionFile(file.path, read_keys(OTHER))
    new.write([Removal(author_id=ANNA)])
    assert new.read() == [entry(2, author_id=BEN)]
    with pytest.raises(UnusableFileError, match="STATE_KEY"):
        file.read()
    assert file.write([entry(3)])
    assert ids(file) == [3]


# What goes again


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (Removal(channel_id=CHANNEL, author_id=ANNA, through=4), [2, 3, 5]),
        (Removal(channel_id=CHANNEL, through=4), [3, 5]),
        (Removal(channel_id=CHANNEL, author_id=ANNA, through=9), [2, 3]),
        (Removal(channel_id=CHANNEL + 2, through=9), [1, 2, 3, 4, 5]),
        (Removal(author_id=ANNA, through=4), [2, 5]),
        (Removal(author_id=BEN, through=1), [1, 2, 3, 4, 5]),
        (Removal(guild_id=GUILD, through=4), [3, 5]),
        (Removal(guild_id=GUILD + 2, through=9), [1, 2, 3, 4, 5]),
        (Removal(before=1_003.5), [3, 4, 5]),
        (Removal(before=1_003.6), [4, 5]),
    ],
)
def test_what_is_forgotten_or_too_old_goes_from_the_file_and_from_what_waits(
    file: DecisionFile, folder: Path, change: Removal, left: list[int]
) -> None:
    rows = [
        entry(1),
        entry(2, author_id=BEN),
        entry(3, channel_id=ELSEWHERE, guild_id=GUILD + 1),
        entry(4),
        entry(5),
    ]
    file.write(rows)
    file.write([change])
    assert ids(file) == left
    log = DecisionLog(folder, SEAL)
    for row in rows:
        log.add(row)
    log.add(change)
    waiting = [pending.message_id for pending in log._pending.values() if isinstance(pending, Entry)]
    assert waiting == left


@pytest.mark.parametrize("change", [Removal(frozenset({1})), Revision(1, CHANNEL, ANNA, "x")])
def test_what_is_gone_is_not_left_in_the_files_free_space(file: DecisionFile, change: Change) -> None:
    file.write([entry(1, content=SECRET), *(entry(n, content="chatter " * 20) for n in range(2, 200))])
    sealed = sealed_row(file, 1)
    assert sealed in file.path.read_bytes()
    file.write([change])
    assert sealed not in file.path.read_bytes()
    assert [path.name for path in file.path.parent.iterdir()] == [FILE_NAME]


def test_what_concerns_no_row_makes_no_file_and_writes_none(file: DecisionFile) -> None:
    nothing: list[Change] = [
        Removal(frozenset({1})),
        Revision(2, CHANNEL, ANNA, "x"),
        Mark(3, Outcome.DELETED, 1.0),
        Assignment(4, "docs", "named"),
    ]
    file.write(nothing)
    assert not file.path.parent.exists()
    file.write([entry(9)])
    os.utime(file.path, ns=(1, 1))
    file.write(nothing)
    assert file.path.stat().st_mtime_ns == 1


# A file that cannot be used

GARBAGE = b"not a database, but long enough to be taken for one" * 100
OTHER_COLUMNS = "CREATE TABLE decisions (message_id INTEGER)"
TORN = [entry(n, content="chatter " * 50) for n in range(100)]


def _spoilt(file: DecisionFile, rows: list[Change], script: str = "", tail: bytes = b"") -> bytes:
    file.path.parent.mkdir(exist_ok=True)
    file.write(rows)
    if script:
        with closing(sqlite3.connect(file.path)) as connection:
            connection.executescript(script)
    if tail:
        file.path.write_bytes((file.path.read_bytes()[:8_192] if rows else b"") + tail)
    return file.path.read_bytes()


@pytest.mark.parametrize(
    ("rows", "script", "tail"),
    [
        ([], "", GARBAGE),
        (TORN, "", b"\xff" * 40_000),
        ([entry(1)], f"PRAGMA user_version = {SCHEMA_VERSION + 1}", b""),
        ([], "CREATE TABLE cats (name TEXT)", b""),
        *(
            ([], f"CREATE TABLE decisions (message_id INTEGER); PRAGMA user_version = {v}", b"")
            for v in (1, SCHEMA_VERSION)
        ),
    ],
    ids=["garbage", "torn", "of the future", "of somebody else", "of other columns and earlier", "of other columns"],
)
async def test_an_unusable_file_is_moved_aside_with_one_warning_and_begun_anew(
    folder: Path, file: DecisionFile, rows: list[Change], script: str, tail: bytes
) -> None:
    spoilt = _spoilt(file, rows, script, tail)
    with pytest.raises(UnusableFileError):
        file.read()
    assert file.path.read_bytes() == spoilt
    log = DecisionLog(folder, SEAL)
    with capture_logs() as entries:
        for message_id in (1_001, 1_002):
            log.add(entry(message_id))
            await log.flush()
    assert ids(file) == [1_001, 1_002]
    new, aside = names(folder)
    assert new == FILE_NAME
    assert aside.startswith(f"{FILE_NAME}.damaged-")
    assert (folder / aside).read_bytes() == spoilt
    (warning,) = entries
    assert (warning["event"], warning["moved_to"]) == ("decision_log_unusable", str(folder / aside))


# In the background


async def _at_once(work: Callable[..., Any], *given: Any) -> Any:
    """In place of a thread, for which virtual time does not wait."""
    return work(*given)


@pytest.mark.virtual_time
async def test_changes_are_written_together_every_few_seconds(
    folder: Path, file: DecisionFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asyncio, "to_thread", _at_once)
    log = DecisionLog(folder, SEAL)
    log.start()
    for message_id in (1, 2):
        await asyncio.sleep(1)
        log.add(entry(message_id))
    await asyncio.sleep(decision_log.INTERVAL_SECONDS - 2.1)
    assert names(folder) == []
    await asyncio.sleep(0.2)
    assert ids(file) == [1, 2]
    log.add(entry(3))
    await asyncio.sleep(decision_log.INTERVAL_SECONDS)
    assert ids(file) == [1, 2, 3]
    await log.close()


@pytest.mark.parametrize("is_started", [True, False])
async def test_closing_writes_the_rest(folder: Path, file: DecisionFile, is_started: bool) -> None:
    log = DecisionLog(folder, SEAL, interval_seconds=3_600)
    if is_started:
        log.start()
    log.add(entry(1))
    await log.close()
    assert ids(file) == [1]
    await log.close()


async def test_what_somebody_has_forgotten_is_gone_at_once(folder: Path, file: DecisionFile) -> None:
    log = DecisionLog(folder, SEAL, interval_seconds=3_600)
    log.add(entry(1))
    await log.flush()
    log.start()
    log.add(Removal(channel_id=CHANNEL, author_id=ANNA, through=1))
    async with asyncio.timeout(10):
        while len(log):  # noqa: ASYNC110 - it ends by the thread, without an event
            await asyncio.sleep(0)
    assert ids(file) == []
    await log.close()


async def test_nothing_is_added_once_it_is_off_but_deletions_are_followed(folder: Path, file: DecisionFile) -> None:
    file.write([entry(1), entry(2, content=SECRET), entry(3)])
    log = DecisionLog(folder, SEAL, is_on=False)
    for added in (entry(4), Mark(3, Outcome.DELETED, 1.0), Assignment(3, "docs", "named")):
        log.add(added)
    for change in (Removal(frozenset({1})), Revision(2, CHANNEL, ANNA, "x")):
        log.add(change)
    await log.close()
    assert file.read() == [entry(2, content="x"), entry(3)]


async def test_what_is_deleted_while_it_is_written_goes_with_the_next_batch(
    folder: Path, file: DecisionFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, begun = asyncio.Event(), []

    async def slowly(work: Callable[..., Any], *given: Any) -> Any:
        begun.append(given)
        await opened.wait()
        return work(*given)

    monkeypatch.setattr(asyncio, "to_thread", slowly)
    log = DecisionLog(folder, SEAL, max_rows=2)
    for message_id in (3, 1, 2):  # beyond the bound the oldest make room
        log.add(entry(message_id, content=SECRET))
    first = asyncio.create_task(log.flush())
    await settle()
    log.add(Removal(frozenset({3})))
    second = asyncio.create_task(log.flush())
    await settle()
    assert len(begun) == 1
    opened.set()
    await asyncio.gather(first, second)
    assert (ids(file), len(log)) == ([2], 0)


# A disk that fails


@pytest.fixture(params=["no folder", "locked", "full"])
def outage(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Called, it ends the outage."""
    monkeypatch.setattr(decision_file, "LOCK_SECONDS", 0.0)
    if request.param == "no folder":
        folder.write_text("a file where the folder should be")
        yield folder.unlink
    elif request.param == "locked":
        DecisionFile(folder / FILE_NAME, SEAL).write([entry(0)])
        other = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        yield lambda: other.execute("DELETE FROM decisions") and other.execute("COMMIT")
        other.close()
    else:
        connect = sqlite3.connect

        def full(*given: Any, **more: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*given, **more)
            connection.execute("PRAGMA max_page_count = 1")
            return connection

        monkeypatch.setattr(sqlite3, "connect", full)
        yield lambda: monkeypatch.setattr(sqlite3, "connect", connect)


async def test_an_outage_costs_one_warning_and_nothing_else(folder: Path, file: DecisionFile, outage: Any) -> None:
    log = DecisionLog(folder, SEAL)
    with capture_logs() as entries:
        for message_id in (1, 2, 3):
            log.add(entry(message_id))
            await log.flush()
        log.add(Removal(frozenset({2})))
        await log.flush()
        outage()
        await log.flush()
        await log.flush()
        assert ids(file) == [1, 3]
        rmtree(folder)
        folder.touch()  # noqa: ASYNC240
        log.add(entry(4))
        await log.flush()
    warning, resumed, again = entries
    assert again["event"] == warning["event"]
    assert (warning["event"], warning["log_level"]) == ("decision_log_failed", "warning")
    assert str(folder) in warning["file"]
    assert "STATE_DIR" in warning["remedy"]
    assert (resumed["event"], resumed["lost"]) == ("decision_log_resumed", 0)


@pytest.mark.parametrize("is_usable", [True, False])
async def test_a_folder_that_cannot_be_written_is_said_at_the_start_and_not_again(
    tmp_path: Path, is_usable: bool
) -> None:
    folder = tmp_path / "file" / "state"
    if not is_usable:
        (tmp_path / "file").touch()
    log = DecisionLog(folder, SEAL)
    with capture_logs() as entries:
        log.start()
        await log.close()
        events = [] if is_usable else ["decision_log_failed"]
        assert ([e["event"] for e in entries], folder.exists()) == (events, False)
        for change in (entry(1), Removal(frozenset({1})), entry(2)):
            log.add(change)
            await log.flush()
    assert [e["event"] for e in entries] == events


async def test_of_what_waits_the_oldest_additions_go_and_are_counted(folder: Path, file: DecisionFile) -> None:
    file.write([entry(0)])
    log = DecisionLog(folder, SEAL, max_pending=8)
    log.add(Removal(frozenset({0})))
    for message_id in range(1, 21):
        log.add(entry(message_id))
        assert len(log) <= 9
    await log.flush()
    found = ids(file)
    assert found == list(range(21 - len(found), 21))
    assert len(found) >= 5
    assert log.lost == 20 - len(found)


async def test_where_an_edit_had_to_make_room_no_text_that_was_taken_back_stays(
    folder: Path, file: DecisionFile
) -> None:
    file.write([entry(message_id, content=SECRET) for message_id in range(1, 11)])
    log = DecisionLog(folder, SEAL, max_pending=8)
    for message_id in range(1, 11):
        log.add(Revision(message_id, CHANNEL, ANNA, "new"))
    await log.flush()
    assert ids(file) == list(range(3, 11))
    assert {found.content for found in file.read()} == {"new"}


# Whether it is gone


async def test_flushing_tells_whether_what_was_to_go_is_gone(folder: Path, file: DecisionFile, outage: Any) -> None:
    log = DecisionLog(folder, SEAL)
    assert await log.flush()
    log.add(entry(5))
    assert await log.flush()  # it could not be written, but nothing was to go
    log.add(Removal(author_id=ANNA, through=0))
    log.add(Removal(guild_id=GUILD, through=0))
    assert not await log.flush()
    outage()
    assert await log.flush()
    assert ids(file) == [5]
    assert len(log) == 0


async def test_what_was_moved_aside_is_not_gone(folder: Path) -> None:
    _spoilt(DecisionFile(folder / FILE_NAME, SEAL), [], tail=GARBAGE)
    log = DecisionLog(folder, SEAL)
    log.add(Removal(author_id=ANNA, through=9))
    assert not await log.flush()
    assert len(names(folder)) == 2


def test_what_was_moved_aside_goes_when_all_in_it_is_too_old(folder: Path) -> None:
    _spoilt(DecisionFile(folder / FILE_NAME, SEAL), [], tail=GARBAGE)
    others = folder / f"{FILE_NAME}.damaged-not"
    others.touch()
    file = DecisionFile(folder / FILE_NAME, SEAL, clock=lambda: 1_000.0)
    file.write([entry(1)])
    file.write([Removal(before=1_000.0)])
    assert len(names(folder)) == 3
    file.write([Removal(before=1_001.0)])
    assert names(folder) == [FILE_NAME, others.name]


def test_of_two_that_are_moved_aside_in_one_second_both_are_kept(folder: Path) -> None:
    for spoilt in (b"one", b"another"):
        file = DecisionFile(folder / FILE_NAME, SEAL, clock=lambda: 1_000.0)
        file.path.parent.mkdir(exist_ok=True)
        file.path.write_bytes(spoilt + GARBAGE)
        file.write([entry(1)])
    assert [path.read_bytes() for path in sorted(folder.glob("*.damaged-*"))] == [
        b"one" + GARBAGE,
        b"another" + GARBAGE,
    ]


async def test_a_flush_that_is_broken_off_loses_no_removal(
    folder: Path, file: DecisionFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_given: Any) -> None:
        await asyncio.Event().wait()

    file.write([entry(1), entry(2)])
    log = DecisionLog(folder, SEAL)
    log.add(Removal(frozenset({1})))
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "to_thread", never)
        flushing = asyncio.create_task(log.flush())
        await settle()
        flushing.cancel()
        await asyncio.gather(flushing, return_exceptions=True)
    assert len(log) == 1
    assert await log.flush()
    assert ids(file) == [2]


async def test_an_end_before_all_that_was_to_go_is_gone_is_an_error(folder: Path) -> None:
    DecisionFile(folder / FILE_NAME, SEAL).write([entry(1)])
    log = DecisionLog(folder, SEAL)
    log.add(Removal(frozenset({1})))
    (folder / FILE_NAME).unlink()
    (folder / FILE_NAME).mkdir()
    with capture_logs() as entries:
        await log.close()
    assert [e["event"] for e in entries] == ["decision_log_failed", "decision_log_not_cleared"]
    assert entries[1]["log_level"] == "error"
