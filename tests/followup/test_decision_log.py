"""followup/decision_log.py: what is written, what goes again, and what a disk that fails costs."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from structlog.testing import capture_logs

from followup import decision_log as module
from followup.decision_log import FILE_NAME, SCHEMA_VERSION, DecisionFile, DecisionLog, UnusableFileError
from followup.learning import Assignment, Change, Entry, Mark, Outcome, Removal, Removals, Revision, Silence
from tests.support.people import ANNA, BEN, CHANNEL, GUILD
from tests.support.virtual_time import settle

ELSEWHERE = CHANNEL + 1
SECRET = "the cat is called Tim"


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
    return DecisionFile(folder / FILE_NAME)


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


def test_folder_and_file_are_for_their_owner_only(file: DecisionFile) -> None:
    before = os.umask(0)
    try:
        file.write([entry(1)])
    finally:
        os.umask(before)
    assert file.path.parent.stat().st_mode & 0o777 == 0o700
    assert file.path.stat().st_mode & 0o777 == 0o600


def test_files_of_others_are_left_alone(file: DecisionFile) -> None:
    file.path.parent.mkdir(mode=0o755)
    other = file.path.with_name("notes.txt")
    other.write_text("mine")
    file.write([entry(1)])
    assert other.read_text() == "mine"
    assert file.path.parent.stat().st_mode & 0o777 == 0o755
    assert {path.name for path in file.path.parent.iterdir()} == {"notes.txt", FILE_NAME}


def test_what_is_written_twice_is_there_once(file: DecisionFile) -> None:
    file.write([entry(1)])
    file.write([entry(1, score=0.0), entry(2)])
    assert file.read() == [entry(1), entry(2)]


def test_beyond_the_bound_the_oldest_make_room(folder: Path) -> None:
    file = DecisionFile(folder / FILE_NAME, max_rows=5)
    for message_id in (3, 1, 2, 4, 5, 8, 7, 6):
        file.write([entry(message_id)])
    assert ids(file) == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("text", ["\ud800", "a\0b", ""])
def test_any_text_can_be_stored(file: DecisionFile, text: str) -> None:
    file.write([entry(1, content=text, evidence=text), entry(2, content="x"), Revision(2, CHANNEL, ANNA, text)])
    assert [found.content for found in file.read()] == [text.replace("\ud800", "?")] * 2


# What became of it


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("respond", [True, False])
def test_missed_is_said_of_silences_only_and_the_others_of_answers(
    file: DecisionFile, outcome: Outcome, respond: bool
) -> None:
    file.write([entry(1, respond=respond), Mark(1, outcome, 5.0)])
    (found,) = file.read()
    fits = respond is not (outcome is Outcome.MISSED)
    assert (found.outcome, found.outcome_at) == ((outcome, 5.0) if fits else (None, None))


def test_the_first_outcome_stays(file: DecisionFile) -> None:
    file.write([entry(1), Mark(1, Outcome.DELETED, 5.0), Mark(1, Outcome.DISLIKED, 6.0)])
    assert file.read() == [entry(1, outcome=Outcome.DELETED, outcome_at=5.0)]


# What is left unanswered after all


def test_a_silence_takes_back_the_answer_and_leaves_the_rest_of_the_row(file: DecisionFile) -> None:
    file.write([entry(1, content="x"), entry(2), Assignment(1, "docs", "last"), Silence(1, "declined")])
    declined = entry(1, respond=False, reason="declined", content="x", agent="docs", agent_reason="last")
    assert file.read() == [declined, entry(2)]


def test_a_silence_can_be_missed_from_then_on_and_is_no_butting_in(file: DecisionFile) -> None:
    file.write([entry(1), Silence(1, "declined"), Mark(1, Outcome.TOLD_OFF, 4.0), Mark(1, Outcome.MISSED, 5.0)])
    (found,) = file.read()
    assert found.outcome is Outcome.MISSED


# Who answers


def test_an_assignment_is_said_of_its_row_only(file: DecisionFile) -> None:
    file.write([entry(1), entry(2), Assignment(1, "docs", "named")])
    assert file.read() == [entry(1, agent="docs", agent_reason="named"), entry(2)]


def test_the_agent_that_was_chosen_last_stays(file: DecisionFile) -> None:
    file.write([entry(1), Assignment(1, "docs", "named")])
    file.write([Assignment(1, "", "late")])
    assert file.read() == [entry(1, agent_reason="late")]


def test_an_assignment_leaves_the_rest_of_the_row_alone(file: DecisionFile) -> None:
    file.write([entry(1, content="x"), Mark(1, Outcome.DISLIKED, 5.0), Assignment(1, "docs", "chosen")])
    (found,) = file.read()
    assert found == entry(1, content="x", outcome=Outcome.DISLIKED, outcome_at=5.0, agent="docs", agent_reason="chosen")


def test_a_decision_that_is_written_again_keeps_its_agent(file: DecisionFile) -> None:
    file.write([entry(1), Assignment(1, "docs", "named"), entry(1)])
    assert file.read() == [entry(1, agent="docs", agent_reason="named")]


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
    log = DecisionLog(folder)
    for message_id in (1, 2):
        log.add(entry(message_id))
    if written:
        await log.flush()
    log.add(Assignment(1, "docs", "named"))
    log.add(removal)
    for message_id in (1, 2):
        log.add(Assignment(message_id, "docs", "named"))
    assert await log.flush()
    assert file.read() == [entry(2, agent="docs", agent_reason="named")]
    assert len(log) == 0


async def test_assignments_that_wait_are_bounded_and_those_that_are_lost_do_no_harm(
    folder: Path, file: DecisionFile
) -> None:
    file.write([entry(message_id) for message_id in range(1, 21)])
    log = DecisionLog(folder, max_pending=8)
    for message_id in range(1, 21):
        log.add(Assignment(message_id, "docs", "named"))
        assert len(log) <= 8
    with capture_logs() as entries:
        assert await log.flush()
    agents = [found.agent for found in file.read()]
    assert agents == [""] * log.lost + ["docs"] * (20 - log.lost)
    assert log.lost >= 12
    assert entries == []


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


@pytest.fixture
def earlier(file: DecisionFile) -> DecisionFile:
    """As version 1 of the log left it."""
    file.path.parent.mkdir()
    columns = [field.name for field in fields(Entry)][:14]
    with sqlite3.connect(file.path) as connection:
        connection.execute(VERSION_1)
        connection.execute("PRAGMA user_version = 1")
        rows = [[getattr(row, column) for column in columns] for row in OLD]
        connection.executemany(f"INSERT INTO decisions VALUES ({', '.join('?' * 14)})", rows)  # noqa: S608
    connection.close()
    return file


def schema(file: DecisionFile) -> tuple[int, list[Any]]:
    connection = sqlite3.connect(file.path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    columns = connection.execute("PRAGMA table_info(decisions)").fetchall()
    connection.close()
    return version, columns


def test_reading_an_earlier_version_changes_nothing(earlier: DecisionFile) -> None:
    before = earlier.path.read_bytes()
    assert earlier.read() == OLD
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
    log = DecisionLog(folder)
    log.add(change)
    with capture_logs() as entries:
        assert await log.flush()
    assert earlier.read() == left
    assert (entries, names(folder)) == ([], [FILE_NAME])
    new = DecisionFile(folder / "new" / FILE_NAME)
    new.write([entry(1)])
    assert schema(earlier) == schema(new)


def test_where_the_write_fails_an_earlier_version_stays_as_it_was(
    earlier: DecisionFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TRIM", "SELECT nonsense(?)")
    before = earlier.path.read_bytes()
    with pytest.raises(UnusableFileError):
        earlier._write([Assignment(1, "docs", "named")])
    assert earlier.path.read_bytes() == before


# What goes again


def test_a_deleted_message_takes_its_row_with_it(file: DecisionFile) -> None:
    file.write([entry(1), entry(2), entry(3)])
    file.write([Removal(frozenset({1, 3, 99}))])
    assert ids(file) == [2]


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
    log = DecisionLog(folder)
    for row in rows:
        log.add(row)
    log.add(change)
    waiting = [pending.message_id for pending in log._pending.values() if isinstance(pending, Entry)]
    assert waiting == left


def test_an_edit_replaces_content_where_it_is_kept(file: DecisionFile) -> None:
    file.write([entry(1), entry(2, content=SECRET)])
    file.write([Revision(1, CHANNEL, ANNA, "new"), Revision(2, CHANNEL, ANNA, "new"), Revision(3, CHANNEL, ANNA, "x")])
    assert [found.content for found in file.read()] == [None, "new"]


@pytest.mark.parametrize("change", [Removal(frozenset({1})), Revision(1, CHANNEL, ANNA, "x")])
def test_what_is_gone_is_not_left_in_the_files_free_space(file: DecisionFile, change: Change) -> None:
    file.write([entry(1, content=SECRET), *(entry(n, content="chatter " * 20) for n in range(2, 200))])
    assert SECRET.encode() in file.path.read_bytes()
    file.write([change])
    assert SECRET.encode() not in file.path.read_bytes()
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


def _garbage(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to be taken for one" * 100)


def _torn(path: Path) -> None:
    DecisionFile(path).write([entry(n, content="chatter " * 50) for n in range(100)])
    path.write_bytes(path.read_bytes()[:8_192] + b"\xff" * 40_000)


def _of_the_future(path: Path) -> None:
    DecisionFile(path).write([entry(1)])
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()


def _of_somebody_else(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE cats (name TEXT)")
    connection.close()


def _of_other_columns(path: Path, version: int = SCHEMA_VERSION) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE decisions (message_id INTEGER)")
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def _of_other_columns_and_earlier(path: Path) -> None:
    _of_other_columns(path, 1)


def _spoilt(folder: Path, spoil: Callable[[Path], None]) -> bytes:
    folder.mkdir()
    spoil(folder / FILE_NAME)
    return (folder / FILE_NAME).read_bytes()


UNUSABLE = [_garbage, _torn, _of_the_future, _of_somebody_else, _of_other_columns, _of_other_columns_and_earlier]


@pytest.mark.parametrize("spoil", UNUSABLE)
async def test_an_unusable_file_is_moved_aside_with_one_warning_and_begun_anew(
    folder: Path, spoil: Callable[[Path], None]
) -> None:
    spoilt = _spoilt(folder, spoil)
    log = DecisionLog(folder)
    with capture_logs() as entries:
        for message_id in (1_001, 1_002):
            log.add(entry(message_id))
            await log.flush()
    assert ids(DecisionFile(folder / FILE_NAME)) == [1_001, 1_002]
    new, aside = names(folder)
    assert new == FILE_NAME
    assert aside.startswith(f"{FILE_NAME}.damaged-")
    assert (folder / aside).read_bytes() == spoilt
    (warning,) = entries
    assert (warning["event"], warning["moved_to"]) == ("decision_log_unusable", str(folder / aside))


@pytest.mark.parametrize("spoil", UNUSABLE)
def test_reading_an_unusable_file_changes_nothing(file: DecisionFile, spoil: Callable[[Path], None]) -> None:
    before = _spoilt(file.path.parent, spoil)
    with pytest.raises(UnusableFileError):
        file.read()
    assert file.path.read_bytes() == before


def test_a_row_that_is_no_decision_is_said_to_be_none(file: DecisionFile) -> None:
    file.write([entry(1)])
    with sqlite3.connect(file.path) as connection:
        connection.execute("UPDATE decisions SET outcome = 'applauded'")
    connection.close()
    with pytest.raises(UnusableFileError, match="no decision"):
        file.read()


# In the background


async def _at_once(work: Callable[..., Any], *given: Any) -> Any:
    """In place of a thread, for which virtual time does not wait."""
    return work(*given)


@pytest.mark.virtual_time
async def test_changes_are_written_together_every_few_seconds(
    folder: Path, file: DecisionFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asyncio, "to_thread", _at_once)
    log = DecisionLog(folder)
    log.start()
    for message_id in (1, 2):
        await asyncio.sleep(1)
        log.add(entry(message_id))
    await asyncio.sleep(module.INTERVAL_SECONDS - 2.1)
    assert names(folder) == []
    await asyncio.sleep(0.2)
    assert ids(file) == [1, 2]
    log.add(entry(3))
    await asyncio.sleep(module.INTERVAL_SECONDS)
    assert ids(file) == [1, 2, 3]
    await log.close()


async def test_closing_writes_the_rest(folder: Path, file: DecisionFile) -> None:
    log = DecisionLog(folder, interval_seconds=3_600)
    log.start()
    log.add(entry(1))
    await log.close()
    assert ids(file) == [1]
    await log.close()


async def test_one_that_was_never_started_is_written_when_it_is_closed(folder: Path, file: DecisionFile) -> None:
    log = DecisionLog(folder)
    log.add(entry(1))
    await log.close()
    assert ids(file) == [1]


async def test_what_somebody_has_forgotten_is_gone_at_once(folder: Path, file: DecisionFile) -> None:
    log = DecisionLog(folder, interval_seconds=3_600)
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
    log = DecisionLog(folder, is_on=False)
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
    log = DecisionLog(folder)
    log.add(entry(1, content=SECRET))
    log.add(entry(2))
    first = asyncio.create_task(log.flush())
    await settle()
    log.add(Removal(frozenset({1})))
    second = asyncio.create_task(log.flush())
    await settle()
    assert len(begun) == 1
    opened.set()
    await asyncio.gather(first, second)
    assert ids(file) == [2]
    assert len(log) == 0


# A disk that fails


@pytest.fixture(params=["no folder", "locked", "full"])
def outage(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Called, it ends the outage."""
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.0)
    if request.param == "no folder":
        _take_place(folder)
        yield lambda: _give_place(folder)
    elif request.param == "locked":
        DecisionFile(folder / FILE_NAME).write([entry(0)])
        other = sqlite3.connect(folder / FILE_NAME, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        yield lambda: other.execute("DELETE FROM decisions") and other.execute("COMMIT")
        other.close()
    else:
        connect = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: _filled(connect(*given, **more)))
        yield lambda: monkeypatch.setattr(sqlite3, "connect", connect)


def _filled(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.execute("PRAGMA max_page_count = 1")
    return connection


async def test_an_outage_costs_one_warning_and_nothing_else(folder: Path, file: DecisionFile, outage: Any) -> None:
    log = DecisionLog(folder)
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
    warning, resumed = entries
    assert (warning["event"], warning["log_level"]) == ("decision_log_failed", "warning")
    assert str(folder) in warning["file"]
    assert "STATE_DIR" in warning["remedy"]
    assert (resumed["event"], resumed["lost"]) == ("decision_log_resumed", 0)


def _take_place(folder: Path) -> None:
    rmtree(folder, ignore_errors=True)
    folder.write_text("a file where the folder should be")


def _give_place(folder: Path) -> None:
    folder.unlink()


async def test_a_new_outage_is_a_new_warning(folder: Path) -> None:
    log = DecisionLog(folder)
    with capture_logs() as entries:
        for message_id in (1, 2):
            _take_place(folder)
            log.add(entry(message_id))
            await log.flush()
            _give_place(folder)
            await log.flush()
    assert [e["event"] for e in entries] == ["decision_log_failed", "decision_log_resumed"] * 2


async def test_a_folder_that_cannot_be_written_is_said_at_the_start_and_not_again(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = DecisionLog(tmp_path / "file" / "state")
    with capture_logs() as entries:
        log.start()
        await log.close()
        assert [e["event"] for e in entries] == ["decision_log_failed"]
        for change in (entry(1), Removal(frozenset({1})), entry(2)):
            log.add(change)
            await log.flush()
    assert [e["event"] for e in entries] == ["decision_log_failed"]


async def test_it_starts_and_ends_without_a_word_and_without_a_file(folder: Path) -> None:
    log = DecisionLog(folder / "below")
    with capture_logs() as entries:
        log.start()
        await log.close()
    assert entries == []
    assert names(folder) == []


async def test_of_what_waits_the_oldest_additions_go_and_are_counted(folder: Path, file: DecisionFile) -> None:
    file.write([entry(0)])
    log = DecisionLog(folder, max_pending=8)
    log.add(Removal(frozenset({0})))
    for message_id in range(1, 21):
        log.add(entry(message_id))
        assert len(log) <= 9
    await log.flush()
    found = ids(file)
    assert found == list(range(21 - len(found), 21))
    assert len(found) >= 5
    assert log.lost == 20 - len(found)


async def test_ten_thousand_deletions_in_an_outage_cost_no_other_row(folder: Path, file: DecisionFile) -> None:
    file.write([entry(message_id) for message_id in range(20_000)])
    log = DecisionLog(folder)
    for message_id in range(1, 20_000):
        log.add(Removal(frozenset({message_id})))
    assert await log.flush()
    assert ids(file) == [0]


async def test_where_removals_are_too_many_all_that_was_written_goes(folder: Path, file: DecisionFile) -> None:
    file.write([entry(0)])
    log = DecisionLog(folder)
    log._removals = Removals(most=8)
    log.add(entry(1))
    for message_id in range(100, 120):
        log.add(Removal(frozenset({message_id})))
        assert len(log) <= 9
    await log.flush()
    assert ids(file) == [1]


async def test_where_an_edit_had_to_make_room_no_text_that_was_taken_back_stays(
    folder: Path, file: DecisionFile
) -> None:
    file.write([entry(message_id, content=SECRET) for message_id in range(1, 11)])
    log = DecisionLog(folder, max_pending=8)
    for message_id in range(1, 11):
        log.add(Revision(message_id, CHANNEL, ANNA, "new"))
    await log.flush()
    assert ids(file) == list(range(3, 11))
    assert {found.content for found in file.read()} == {"new"}


# Whether it is gone


async def test_flushing_tells_whether_what_was_to_go_is_gone(folder: Path, file: DecisionFile, outage: Any) -> None:
    log = DecisionLog(folder)
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
    _spoilt(folder, _garbage)
    log = DecisionLog(folder)
    log.add(Removal(author_id=ANNA, through=9))
    assert not await log.flush()
    assert len(names(folder)) == 2


def test_what_was_moved_aside_goes_when_all_in_it_is_too_old(folder: Path) -> None:
    _spoilt(folder, _garbage)
    others = folder / f"{FILE_NAME}.damaged-not"
    others.touch()
    file = DecisionFile(folder / FILE_NAME, clock=lambda: 1_000.0)
    file.write([entry(1)])
    file.write([Removal(before=1_000.0)])
    assert len(names(folder)) == 3
    file.write([Removal(before=1_001.0)])
    assert names(folder) == [FILE_NAME, others.name]


async def test_a_flush_that_is_broken_off_loses_no_removal(
    folder: Path, file: DecisionFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_given: Any) -> None:
        await asyncio.Event().wait()

    file.write([entry(1), entry(2)])
    log = DecisionLog(folder)
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
    DecisionFile(folder / FILE_NAME).write([entry(1)])
    log = DecisionLog(folder)
    log.add(Removal(frozenset({1})))
    (folder / FILE_NAME).unlink()
    (folder / FILE_NAME).mkdir()
    with capture_logs() as entries:
        await log.close()
    assert [e["event"] for e in entries] == ["decision_log_failed", "decision_log_not_cleared"]
    assert entries[1]["log_level"] == "error"


def test_a_waiting_entry_keeps_no_content_of_what_is_deleted(folder: Path) -> None:
    log = DecisionLog(folder)
    log.add(entry(1, content=SECRET))
    log.add(Revision(1, CHANNEL, ANNA, SECRET))
    log.add(replace(entry(2), content="x"))
    log.add(Removal(frozenset({1})))
    assert SECRET not in str(log._pending)
    assert len(log) == 2
