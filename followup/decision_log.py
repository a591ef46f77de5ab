"""The decision log: what was decided within conversations, and what became of it, in an SQLite file of bounded size,
sealed.

Whoever notes a change waits for nothing: a thread writes what has come together every few seconds, and what goes at
once. A kill loses what was not written yet; a disk that fails costs one warning, and the oldest of what has to wait.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, fields, replace
from errno import EACCES, ENOTDIR
from itertools import count
from pathlib import Path
from time import time
from typing import Any

import orjson
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
from storage.sealing import Seal
from storage.store import WrongKeyError

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
PLACED = ["message_id", "channel_id", "guild_id", "at"]
# What else a row says is sealed together with where it stands; by `author`, a keyed hash, a person's rows are found.
CREATE = """
    CREATE TABLE decisions (
        message_id INTEGER PRIMARY KEY, channel_id INTEGER NOT NULL, guild_id INTEGER NOT NULL, at REAL NOT NULL,
        author BLOB NOT NULL, sealed BLOB NOT NULL
    )
"""
CREATE_MARK = "CREATE TABLE seal (mark TEXT NOT NULL)"  # of the key that sealed
SCHEMA_VERSION = 3  # up to version 2 nothing was sealed
ADDED = ("agent", "agent_reason")  # in version 2
INSERT = "INSERT OR IGNORE INTO decisions VALUES (?, ?, ?, ?, ?, ?)"
FIND = "SELECT message_id, channel_id, guild_id, at, sealed FROM decisions"
UPDATE = "UPDATE decisions SET sealed = ? WHERE message_id = ?"
DELETE = "DELETE FROM decisions WHERE message_id = ?"
REMOVE = """
    DELETE FROM decisions
    WHERE channel_id = coalesce(:channel_id, channel_id) AND author = coalesce(:author, author)
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

    def __init__(self, path: Path, seal: Seal, *, max_rows: int = MAX_ROWS, clock: Callable[[], float] = time) -> None:
        self.path = path
        self._seal = seal
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

    def bring_up(self) -> None:
        """Has what is there in the form of this version, sealed by the first key. Raises OSError and sqlite3.Error."""
        if self.path.exists():
            self._write([])

    def read(self) -> list[Entry]:
        """All entries, oldest message first, also of an earlier version. Changes nothing. Raises sqlite3.Error."""
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        with _unusable(), closing(sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS)) as connection:
            version = _version(connection)
            if version < SCHEMA_VERSION:
                return _earlier(connection, version)
            try:
                return [self._entry(row) for row in connection.execute(f"{FIND} ORDER BY message_id")]
            except WrongKeyError as error:
                raise UnusableFileError(str(error).removesuffix(".")) from None

    def _write(self, changes: Sequence[Change]) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite would make it as readable as the umask allows; its journals take the file's mode.
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        with _unusable(), closing(sqlite3.connect(self.path, timeout=LOCK_SECONDS, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            was_anew = self._seal_all(connection)
            for change in changes:
                self._apply(connection, change)
            connection.execute(TRIM, (self._max_rows,))
            connection.execute("COMMIT")
            if was_anew:
                connection.execute("VACUUM")  # or what was there before could stand in room that nothing uses

    def _seal_all(self, connection: sqlite3.Connection) -> bool:
        """Brings the file to this version and this key. Returns whether there was something to write anew."""
        version, marks = _version(connection), self._seal.marks
        if version == SCHEMA_VERSION:
            (mark,) = connection.execute("SELECT mark FROM seal").fetchone() or ("",)
            if mark == marks[0]:
                return False
            if mark not in marks:
                raise UnusableFileError("it was sealed with another key")
            entries = list(self._readable(connection))
            connection.execute("DROP TABLE seal")
        else:
            entries = _earlier(connection, version)
        connection.execute("DROP TABLE IF EXISTS decisions")
        connection.execute(CREATE)
        connection.execute(CREATE_MARK)
        connection.execute("INSERT INTO seal VALUES (?)", marks[:1])
        connection.executemany(INSERT, map(self._row, entries))
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        return bool(entries)

    def _readable(self, connection: sqlite3.Connection) -> Iterator[Entry]:
        """Without what is damaged."""
        for row in connection.execute(FIND):
            with suppress(ValueError, WrongKeyError):
                yield self._entry(row)

    def _apply(self, connection: sqlite3.Connection, change: Change) -> None:
        match change:
            case Entry():
                connection.execute(INSERT, self._row(change))
            case Removal(message_ids) if message_ids is not None:
                connection.executemany(DELETE, [(message_id,) for message_id in message_ids])
            case Removal():
                author = None if change.author_id is None else self._seal.hashed(change.author_id)
                connection.execute(REMOVE, asdict(change) | {"author": author})
            case _:
                row = connection.execute(f"{FIND} WHERE message_id = ?", (change.message_id,)).fetchone()
                if row is None:
                    return
                try:
                    entry = self._entry(row)
                except (ValueError, WrongKeyError):  # damaged: the file is of this key
                    connection.execute(DELETE, (change.message_id,))
                    return
                if (changed := _changed(entry, change)) != entry:
                    connection.execute(UPDATE, (self._row(changed)[-1], change.message_id))

    def _row(self, entry: Entry) -> list[Any]:
        sealed = self._seal.seal(orjson.dumps([_storable(getattr(entry, column)) for column in COLUMNS]))
        return [*(getattr(entry, column) for column in PLACED), self._seal.hashed(entry.author_id), sealed]

    def _entry(self, row: Sequence[Any]) -> Entry:
        """Raises ValueError for a row that is no decision or stands elsewhere, and WrongKeyError."""
        *placed, sealed = row
        if not isinstance(sealed, bytes):
            raise ValueError("it is no decision")
        entry = ENTRY.validate_python(dict(zip(COLUMNS, orjson.loads(self._seal.open(sealed)), strict=False)))
        if [getattr(entry, column) for column in PLACED] != placed:
            raise ValueError("it is of another message")
        return entry


def _version(connection: sqlite3.Connection) -> int:
    """The file's, 0 where nothing is in it yet. Raises UnusableFileError for what is no decision log known here."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    is_new = version == 0 and tables == 0
    if not is_new and version not in range(1, SCHEMA_VERSION + 1):
        raise UnusableFileError(f"it has schema version {version} where this program knows {SCHEMA_VERSION}")
    return version


def _earlier(connection: sqlite3.Connection, version: int) -> list[Entry]:
    """The entries of a file of an earlier version. What it does not say yet is left at its default."""
    columns = [column for column in COLUMNS if version > 1 or column not in ADDED]
    select = f"SELECT {', '.join(columns)} FROM decisions ORDER BY message_id"  # noqa: S608 - ours
    rows = connection.execute(select).fetchall() if version else []
    return [ENTRY.validate_python(dict(zip(columns, row, strict=True))) for row in rows]


def _changed(entry: Entry, change: Mark | Revision | Assignment | Silence) -> Entry:
    """The first outcome stays, and each kind is of one sort of decision only."""
    match change:
        case Mark() if entry.outcome is None and entry.respond is (change.outcome is not Outcome.MISSED):
            return replace(entry, outcome=change.outcome, outcome_at=change.at)
        case Revision() if entry.content is not None:
            return replace(entry, content=change.content)
        case Assignment():
            return replace(entry, agent=change.agent, agent_reason=change.reason)
        case Silence():
            return replace(entry, respond=False, reason=change.reason)
        case _:
            return entry


def _storable(value: Any) -> Any:
    """UTF-8 takes no lone surrogates, which JSON can carry."""
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
        seal: Seal,
        *,
        is_on: bool = True,
        max_rows: int = MAX_ROWS,
        max_pending: int = MAX_PENDING,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self._file = DecisionFile(folder / FILE_NAME, seal, max_rows=max_rows)
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
