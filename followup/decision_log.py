"""The decision log: what was decided within conversations, and what became of it, in an SQLite file of bounded size.

Whoever notes a change waits for nothing: a thread writes what has come together every few seconds, and what goes at
once. A kill loses what was not written yet; a disk that fails costs one warning, and the oldest of what has to wait.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, fields
from errno import EACCES, ENOTDIR
from itertools import chain, count
from pathlib import Path
from time import time
from typing import Any

import structlog
from pydantic import TypeAdapter

from followup.learning import (
    Addition,
    Assignment,
    Change,
    Entry,
    Mark,
    Outcome,
    Removal,
    Removals,
    Revision,
    Silence,
)

log = structlog.get_logger()

FILE_NAME = "decisions.sqlite3"
ASIDE = ".damaged-"  # and the Unix time
MAX_ROWS = 100_000
MAX_PENDING = 10_000
INTERVAL_SECONDS = 5.0
LOCK_SECONDS = 1.0
UNUSABLE = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


ENTRY = TypeAdapter(Entry)
COLUMNS = [field.name for field in fields(Entry)]
CREATE = """
    CREATE TABLE decisions (
        message_id INTEGER PRIMARY KEY, channel_id INTEGER NOT NULL, guild_id INTEGER NOT NULL,
        author_id INTEGER NOT NULL, conversation REAL NOT NULL, at REAL NOT NULL, respond INTEGER NOT NULL,
        reason TEXT NOT NULL, tier INTEGER NOT NULL, score REAL NOT NULL, evidence TEXT NOT NULL, content TEXT,
        outcome TEXT, outcome_at REAL
    )
"""
ADDED = ("agent", "agent_reason")  # in version 2
# Each step leads to the next version. A file of any earlier one takes those that it lacks.
STEPS = (
    (CREATE,),
    tuple(f"ALTER TABLE decisions ADD COLUMN {column} TEXT NOT NULL DEFAULT ''" for column in ADDED),
)
SCHEMA_VERSION = len(STEPS)
INSERT = f"INSERT OR IGNORE INTO decisions ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
# The first outcome stays, and each kind is of one sort of decision only.
MARK = "UPDATE decisions SET outcome = ?, outcome_at = ? WHERE message_id = ? AND outcome IS NULL AND respond = ?"
ASSIGN = "UPDATE decisions SET agent = ?, agent_reason = ? WHERE message_id = ?"
SILENCE = "UPDATE decisions SET respond = 0, reason = ? WHERE message_id = ?"
REVISE = "UPDATE decisions SET content = ? WHERE message_id = ? AND content IS NOT NULL"
DELETE = "DELETE FROM decisions WHERE message_id = ?"
REMOVE = """
    DELETE FROM decisions
    WHERE channel_id = coalesce(:channel_id, channel_id) AND author_id = coalesce(:author_id, author_id)
        AND guild_id = coalesce(:guild_id, guild_id) AND message_id <= coalesce(:through, message_id)
        AND (:before IS NULL OR at < :before)
"""
TRIM = """
    DELETE FROM decisions
    WHERE message_id <= (SELECT message_id FROM decisions ORDER BY message_id DESC LIMIT 1 OFFSET ?)
"""


class UnusableFileError(sqlite3.DatabaseError):
    """A file that is damaged, or is no decision log of a version known here. Its text says which."""


class DecisionFile:
    """The SQLite file. Each call opens and closes it, so that any thread may make it, one at a time."""

    def __init__(self, path: Path, *, max_rows: int = MAX_ROWS, clock: Callable[[], float] = time) -> None:
        self.path = path
        self._max_rows = max_rows
        self._clock = clock

    def check(self) -> None:
        """Raises OSError where the file cannot be made or written, as far as that shows without writing."""
        folder = next(place for place in self.path.parents if place.exists())
        if not folder.is_dir():
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(folder))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(EACCES, os.strerror(EACCES), str(folder))

    def write(self, changes: Sequence[Change]) -> Path | None:
        """Carries out all changes, or none. Where there is no file, only an entry makes one.

        A file of an earlier version is brought to this one. An unusable file is moved aside first; returns where to.
        Such a file goes when all that is in it has expired. Raises OSError and sqlite3.Error.
        """
        for change in changes:
            if isinstance(change, Removal) and change.before is not None:
                for aside in self.path.parent.glob(f"{self.path.name}{ASIDE}*"):
                    moved_at = aside.name.rpartition("-")[2]
                    if moved_at.isdecimal() and int(moved_at) < change.before:
                        aside.unlink(missing_ok=True)
        if not self.path.exists() and not any(isinstance(change, Entry) for change in changes):
            return None
        try:
            self._write(changes)
        except UnusableFileError:
            aside = self.path.replace(self.path.with_name(f"{self.path.name}{ASIDE}{int(self._clock())}"))
            self._write(changes)
            return aside
        return None

    def read(self) -> list[Entry]:
        """All entries, oldest message first, also of an earlier version. Changes nothing. Raises sqlite3.Error."""
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        with _unusable(), closing(sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS)) as connection:
            version = _version(connection)
            # What a file of an earlier version does not say yet is left at its default.
            columns = [column for column in COLUMNS if version > 1 or column not in ADDED]
            select = f"SELECT {', '.join(columns)} FROM decisions ORDER BY message_id"  # noqa: S608 - ours
            rows = connection.execute(select).fetchall() if version else []
            return [ENTRY.validate_python(dict(zip(columns, row, strict=True))) for row in rows]

    def _write(self, changes: Sequence[Change]) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite would make it as readable as the umask allows; its journals take the file's mode.
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        with _unusable(), closing(sqlite3.connect(self.path, timeout=LOCK_SECONDS, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            if (version := _version(connection)) < SCHEMA_VERSION:
                for statement in chain.from_iterable(STEPS[version:]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            for change in changes:
                _apply(connection, change)
            connection.execute(TRIM, (self._max_rows,))
            connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    """The file's, 0 where nothing is in it yet. Raises UnusableFileError for what is no decision log known here."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    is_new = version == 0 and tables == 0
    if not is_new and version not in range(1, SCHEMA_VERSION + 1):
        raise UnusableFileError(f"it has schema version {version} where this program knows {SCHEMA_VERSION}")
    return version


def _apply(connection: sqlite3.Connection, change: Change) -> None:
    match change:
        case Entry():
            connection.execute(INSERT, [_storable(getattr(change, column)) for column in COLUMNS])
        case Mark():
            answered = change.outcome is not Outcome.MISSED
            connection.execute(MARK, (change.outcome, change.at, change.message_id, answered))
        case Revision():
            connection.execute(REVISE, (_storable(change.content), change.message_id))
        case Assignment():
            connection.execute(ASSIGN, (_storable(change.agent), change.reason, change.message_id))
        case Silence():
            connection.execute(SILENCE, (change.reason, change.message_id))
        case Removal(message_ids) if message_ids is not None:
            connection.executemany(DELETE, [(message_id,) for message_id in message_ids])
        case Removal():
            connection.execute(REMOVE, asdict(change))


def _storable(value: Any) -> Any:
    """SQLite takes no lone surrogates, which JSON can carry."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


@contextmanager
def _unusable() -> Iterator[None]:
    """Tells a file that is to blame from a disk that is."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in UNUSABLE:
            raise UnusableFileError(str(error)) from error
        raise
    except ValueError as error:
        raise UnusableFileError("it holds what is no decision") from error


class DecisionLog:
    """Takes changes at once and has them written later. To be used in one event loop.

    folder: made where it is missing. is_on: False: nothing is added, but what is there follows deletions still.
    lost: how many changes had to make room since the disk began to fail. max_pending: of what is added or edited;
    removals have a bound of their own.
    """

    def __init__(
        self,
        folder: Path,
        *,
        is_on: bool = True,
        max_rows: int = MAX_ROWS,
        max_pending: int = MAX_PENDING,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self._file = DecisionFile(folder / FILE_NAME, max_rows=max_rows)
        self._is_on = is_on
        self._max_pending = max_pending
        self._interval = interval_seconds
        self._pending: dict[int, Addition] = {}
        self._removals = Removals()
        self._leaving: list[Removal] = []
        self._numbers = count()
        self._writing = asyncio.Lock()
        self._wake = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._is_failing = self._is_closed = False
        self.lost = 0

    def __len__(self) -> int:
        return len(self._pending) + len(self._removals) + len(self._leaving)

    def add(self, change: Change) -> None:
        """Notes a change. What goes is also dropped from what is not written yet."""
        if isinstance(change, Removal):
            # What is said of a row by its id alone says nothing once the row is gone.
            rows = [(n, waits) for n, waits in self._pending.items() if isinstance(waits, Entry | Revision)]
            for number in [n for n, row in rows if change.covers(row)]:
                del self._pending[number]
            self._removals.add(change)
            self._wake.set()  # what somebody wants gone does not wait
        elif self._is_on or isinstance(change, Revision):
            self._pending[next(self._numbers)] = change
            if len(self._pending) > self._max_pending:
                self._make_room()

    def _make_room(self) -> None:
        """Drops the oldest quarter. The row of a message that was edited goes too, for it says what was taken back."""
        for number in list(self._pending)[: max(1, self._max_pending // 4)]:
            change = self._pending.pop(number)
            if isinstance(change, Revision):
                self._removals.add(Removal(frozenset({change.message_id})))
            self.lost += 1

    def start(self) -> None:
        """Begins to write in the background."""
        self._writer = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Writes the rest."""
        self._is_closed = True
        self._wake.set()
        if self._writer:
            await self._writer
        if not await self.flush() and self._leaving:
            log.error(
                "decision_log_not_cleared",
                file=str(self._file.path),
                meaning="what people deleted or had forgotten could not be taken out of the decision log",
                remedy="delete the file",
            )

    async def flush(self) -> bool:
        """Writes what has come together. Where that fails, it stays for the next time.

        Returns whether nothing is left anywhere of what was to go when it was called.
        """
        async with self._writing:
            for removal in self._leaving:  # those of the last batch, if that was not written to its end
                self._removals.add(removal)
            removals = self._leaving = self._removals.take()
            additions = dict(self._pending)
            if not removals and not additions:
                return True
            try:
                # Removals come first: what they mean of the additions was dropped as they came.
                aside = await asyncio.to_thread(self._file.write, [*removals, *additions.values()])
            except (OSError, sqlite3.Error) as error:
                self._warn(error)
                return not removals
            self._leaving = []
            for number in additions:
                self._pending.pop(number, None)
            if aside:
                log.warning(
                    "decision_log_unusable",
                    moved_to=str(aside),
                    meaning="the decision log was damaged or of another version, and a new one was begun",
                    remedy="delete the old one: it no longer follows what people delete",
                )
            # Without an entry there may have been nothing to write.
            if self._is_failing and any(isinstance(change, Entry) for change in additions.values()):
                log.info("decision_log_resumed", lost=self.lost)
                self._is_failing, self.lost = False, 0
            return not (aside and removals)

    async def _write(self) -> None:
        try:
            if self._is_on:
                await asyncio.to_thread(self._file.check)
        except OSError as error:
            self._warn(error)
        while not self._is_closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._wake.wait()
            self._wake.clear()
            await self.flush()

    def _warn(self, error: Exception) -> None:
        """Once per outage."""
        if not self._is_failing:
            log.warning(
                "decision_log_failed",
                file=str(self._file.path),
                error=str(error),
                meaning="the bot goes on, and decisions wait in memory until they can be written",
                remedy="make STATE_DIR a folder that can be written, or set DECISION_LOG=off",
            )
        self._is_failing = True
