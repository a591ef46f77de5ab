"""The file of the decision log: decisions as encrypted rows in SQLite, of bounded number."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import fields, replace
from errno import EACCES, ENOTDIR
from functools import partial
from itertools import count, groupby
from operator import attrgetter
from pathlib import Path
from time import time
from typing import Any

import orjson
import structlog
from pydantic import TypeAdapter

from followup.learning import (
    Assignment,
    Change,
    Entry,
    Mark,
    Outcome,
    Removal,
    Revision,
    Silence,
)
from storage.sealing import Seal
from storage.sqlite_store import execute_all
from storage.store import JOURNAL, WrongKeyError, look_before_opening, make_folder, strangers

log = structlog.get_logger()

FILE_NAME = "decisions.sqlite3"
ASIDE = ".damaged-"  # and the Unix time
MAX_ROWS = 100_000
LOCK_SECONDS = 1.0
UNUSABLE = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


ENTRY = TypeAdapter(Entry)
COLUMNS = [field.name for field in fields(Entry)]
VALUES = attrgetter(*COLUMNS)
PLACED = ["message_id", "channel_id", "guild_id", "at"]
# A row's content is sealed together with these columns and with `author`, a keyed hash to find a person's rows by.
CREATE = """
    CREATE TABLE decisions (
        message_id INTEGER PRIMARY KEY, channel_id INTEGER NOT NULL, guild_id INTEGER NOT NULL, at REAL NOT NULL,
        author BLOB NOT NULL, sealed BLOB NOT NULL
    )
"""
CREATE_MARK = "CREATE TABLE seal (mark TEXT NOT NULL)"  # the mark of the key that sealed the rows
SCHEMA_VERSION = 4
SEALED_SINCE = 3  # in version 3 by Fernet, and without binding the author
ADDED = ("agent", "agent_reason")  # columns since version 2
LATER = ("place",)  # fields since version 4
INSERT = "INSERT OR IGNORE INTO decisions VALUES {}"
FIND = "SELECT message_id, channel_id, guild_id, at, author, sealed FROM decisions"
UPDATE = "UPDATE decisions SET sealed = ? WHERE message_id = ?"
DELETE = "DELETE FROM decisions WHERE message_id = ?"
# Or each of thousands of removals would read all rows.
INDEXES = (
    "CREATE INDEX IF NOT EXISTS by_author ON decisions (author)",
    "CREATE INDEX IF NOT EXISTS by_channel ON decisions (channel_id)",
)
SCHEMA = {" ".join(sql.replace("IF NOT EXISTS ", "").split()) for sql in (CREATE, CREATE_MARK, *INDEXES)}
CONDITIONS = {
    "channel_id": "channel_id = ?",
    "author_id": "author = ?",
    "guild_id": "guild_id = ?",
    "through": "message_id <= ?",
    "before": "at < ?",
}
TRIM = """
    DELETE FROM decisions
    WHERE message_id <= (SELECT message_id FROM decisions ORDER BY message_id DESC LIMIT 1 OFFSET ?)
"""


class UnusableFileError(sqlite3.DatabaseError):
    """A file that is damaged, or is no decision log of a known version. Its text says which."""


class DecisionFile:
    """The SQLite file. Each call opens and closes it, so that any thread may call, one at a time."""

    def __init__(self, path: Path, seal: Seal, *, max_rows: int = MAX_ROWS, clock: Callable[[], float] = time) -> None:
        self.path = path
        self._seal = seal
        self._max_rows = max_rows
        self._clock = clock

    def check(self) -> None:
        """Raises OSError where the file cannot be created or written, as far as can be seen without writing."""
        folder = next(place for place in self.path.parents if place.exists())
        if not folder.is_dir():
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), str(folder))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(EACCES, os.strerror(EACCES), str(folder))

    def write(self, changes: Sequence[Change]) -> Path | None:
        """Carries out all changes, or none. Where there is no file, only an entry creates one.

        Upgrades a file of an earlier version. Moves an unusable file aside first; logs and returns its new path. A file
        moved aside is deleted once all its entries have expired. Raises OSError and sqlite3.Error.
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
        except UnusableFileError as error:
            names = (f"{self.path.name}{ASIDE}{moved_at}" for moved_at in count(int(self._clock())))
            journal = Path(f"{os.path.realpath(self.path)}{JOURNAL}")
            aside = self.path.replace(next(to for to in map(self.path.with_name, names) if not to.exists()))
            with suppress(FileNotFoundError):  # a new database must not be changed by the old one's
                journal.unlink()
            self._write(changes)
            log.warning(
                "decision_log_unusable",
                detail=str(error),
                moved_to=str(aside),
                meaning="the decision log could not be used as it was, and a new one was begun",
                remedy="delete the old one: what people delete is no longer deleted there",
            )
            return aside
        return None

    def bring_up(self) -> None:
        """Upgrades an existing file to this version, sealed by the first key. Raises OSError and sqlite3.Error."""
        if self.path.exists():
            self.write([])

    def is_anothers(self) -> bool:
        """Whether it is sealed by none of these keys. Changes nothing."""
        if not self.path.is_file() or strangers(self.path):
            return False
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        # The latter: of an error that quotes what is damaged.
        with suppress(sqlite3.Error, UnicodeDecodeError), closing(_connected(uri, uri=True)) as file:
            return _version(file) >= SEALED_SINCE and _mark(file) not in self._seal.marks
        return False

    def read(self) -> list[Entry]:
        """All entries, oldest message first, also of an earlier version. Changes nothing. Raises sqlite3.Error.

        Skips and logs rows that are damaged or were moved.
        """
        if not self.path.is_file():
            raise UnusableFileError("it is no file")
        if foreign := strangers(self.path):
            raise UnusableFileError(f"{foreign[0]} is none of the bot's files")
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        with _unusable(), closing(_connected(uri, uri=True)) as connection:
            version = _version(connection)
            try:
                if version >= SEALED_SINCE and _mark(connection) not in self._seal.marks:
                    raise UnusableFileError("STATE_KEY is not the key that it was sealed with")
            except WrongKeyError as error:
                raise UnusableFileError(str(error).removesuffix(".")) from None
            return self._readable(connection, version)

    def _write(self, changes: Sequence[Change]) -> None:
        make_folder(self.path.parent)
        # SQLite would create it with the umask's permissions; its journals get the file's.
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_NONBLOCK, 0o600))
        if fault := look_before_opening(self.path):
            raise UnusableFileError(fault)
        with _unusable(), closing(_connected(self.path, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            was_anew = self._seal_all(connection)
            for statement in INDEXES:
                connection.execute(statement)
            if any(isinstance(change, Removal) and change.message_ids is None for change in changes):
                self._drop_unfit(connection)
            has_dropped_words = False
            for kind, some in groupby(changes, key=type):  # in their order
                if kind is Entry:
                    self._insert(connection, some)
                else:
                    for change in some:
                        has_dropped_words |= self._apply(connection, change)
            connection.execute(TRIM, (self._max_rows,))
            connection.execute("COMMIT")
            if was_anew or has_dropped_words:
                # Or free pages, and the gaps from which SQLite moved rows, could still hold them.
                connection.execute("VACUUM")

    def _seal_all(self, connection: sqlite3.Connection) -> bool:
        """Converts the file to this version and the first key. Returns whether it rewrote any entries."""
        version, marks = _version(connection), self._seal.marks
        if version >= SEALED_SINCE:
            mark = _mark(connection)
            if (version, mark) == (SCHEMA_VERSION, marks[0]):
                return False
            if mark not in marks:
                raise UnusableFileError("it was sealed with another key")
        entries = self._readable(connection, version)
        connection.execute("DROP TABLE IF EXISTS seal")
        connection.execute("DROP TABLE IF EXISTS decisions")
        connection.execute(CREATE)
        connection.execute(CREATE_MARK)
        connection.execute("INSERT INTO seal VALUES (?)", marks[:1])
        self._insert(connection, entries)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        return bool(entries)

    def _readable(self, connection: sqlite3.Connection, version: int) -> list[Entry]:
        """The file's entries; skips and logs rows that are damaged or were moved."""
        if version < SEALED_SINCE:
            # Fields that an earlier version lacks have their defaults.
            columns = [column for column in COLUMNS if column not in LATER and (version > 1 or column not in ADDED)]
            select = f"SELECT {', '.join(columns)} FROM decisions ORDER BY message_id"  # noqa: S608 - ours
            rows = connection.execute(select).fetchall() if version else []
            entries = [ENTRY.validate_python(dict(zip(columns, row, strict=True))) for row in rows]
            if entries and not self._seal.takes_plain:
                raise UnusableFileError(f"it is of version {version}, not sealed, and with STATE_KEY that is refused")
            return entries
        entry_of, entries = (self._entry if version == SCHEMA_VERSION else self._earlier_entry), []
        for row in connection.execute(f"{FIND} ORDER BY message_id"):
            with _logging(row):
                entries.append(entry_of(row))
        return entries

    def _drop_unfit(self, connection: sqlite3.Connection) -> None:
        """Deletes rows that cannot be opened: changed without the key, they may hide the person to be removed."""
        connection.execute("REINDEX")  # a row that an index lacks would not be found
        unfit = []
        for row in connection.execute(FIND):
            unfit.append((row[0],))
            with _logging(row):
                self._opened(row)
                unfit.pop()
        connection.executemany(DELETE, unfit)

    def _apply(self, connection: sqlite3.Connection, change: Change) -> bool:
        """Returns whether words of a message, or what may be some, are gone from a row."""
        match change:
            case Removal(message_ids) if message_ids is not None:
                gone = [entry for message_id in message_ids for entry in self._found(connection, message_id)]
                connection.executemany(DELETE, [(message_id,) for message_id in message_ids])
                return any(entry is None or entry.content is not None for entry in gone)
            case Removal():
                given = {name: getattr(change, name) for name in CONDITIONS if getattr(change, name) is not None}
                if change.author_id is not None:
                    given["author_id"] = self._seal.hashed(change.author_id)
                delete = f"DELETE FROM decisions WHERE {' AND '.join(CONDITIONS[name] for name in given) or 'TRUE'}"  # noqa: S608
                return connection.execute(delete, [*given.values()]).rowcount > 0
            case Mark() | Revision() | Assignment() | Silence():
                for entry in self._found(connection, change.message_id):
                    if entry is None:
                        connection.execute(DELETE, (change.message_id,))
                        return True
                    if (changed := _changed(entry, change)) != entry:
                        connection.execute(UPDATE, (self._rows([changed])[0][-1], change.message_id))
                        return changed.content != entry.content
        return False

    def _found(self, connection: sqlite3.Connection, message_id: int) -> list[Entry | None]:
        """The message's entry, if there is one; None in place of a damaged one."""
        found: list[Entry | None] = []
        for row in connection.execute(f"{FIND} WHERE message_id = ?", (message_id,)).fetchall():
            found.append(None)
            with _logging(row):
                found[-1] = self._entry(row)
        return found

    def _insert(self, connection: sqlite3.Connection, entries: Iterable[Any]) -> None:
        execute_all(connection, INSERT, self._rows(entries))

    def _rows(self, entries: Iterable[Entry]) -> list[tuple[Any, ...]]:
        rows, contents = [], []
        for entry in entries:
            placed = [*(getattr(entry, column) for column in PLACED), self._seal.hashed(entry.author_id)]
            values = VALUES(entry)
            try:
                content = orjson.dumps(values)
            except orjson.JSONEncodeError:
                # JSON can carry lone surrogates, which UTF-8 cannot.
                fit = [v.encode(errors="replace").decode() if isinstance(v, str) else v for v in values]
                content = orjson.dumps(fit)
            rows.append(placed)
            contents.append((content, _place(placed)))
        return [(*placed, sealed) for placed, sealed in zip(rows, self._seal.seal_all(contents), strict=True)]

    def _entry(self, row: Sequence[Any]) -> Entry:
        """The entry of a row. Raises ValueError for a damaged row, and WrongKeyError for one that was moved or damaged,
        as the file is of this key.
        """
        return _decoded(self._opened(row))

    def _opened(self, row: Sequence[Any]) -> bytes:
        """The decrypted content of a row. Raises as _entry() does."""
        *placed, sealed = row
        if not isinstance(sealed, bytes):
            raise ValueError("it is no decision")
        return self._seal.open(sealed, _place(placed))

    def _earlier_entry(self, row: Sequence[Any]) -> Entry:
        """As _entry(), for version 3."""
        *placed, author, sealed = row
        if not isinstance(sealed, bytes):
            raise ValueError("it is no decision")
        entry = _decoded(self._seal.open_token(sealed))
        if [getattr(entry, column) for column in PLACED] != placed or author not in self._seal.hashes(entry.author_id):
            raise ValueError("it is of another message or person")
        return entry


def _connected(path: str | Path, **how: Any) -> sqlite3.Connection:
    connection: sqlite3.Connection = sqlite3.connect(path, timeout=LOCK_SECONDS, **how)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # or one damaged row would fail a read
    return connection


def _mark(connection: sqlite3.Connection) -> str:
    """The mark of the key that sealed the file."""
    (mark,) = connection.execute("SELECT mark FROM seal").fetchone() or ("",)
    return str(mark)


def _place(placed: Sequence[Any]) -> bytes:
    return f"decision {placed}".encode()


def _decoded(content: bytes) -> Entry:
    return ENTRY.validate_python(dict(zip(COLUMNS, orjson.loads(content), strict=False)))


@contextmanager
def _logging(row: Sequence[Any]) -> Iterator[None]:
    """Logs a row that the block refuses, and goes on after it."""
    try:
        yield
    except (ValueError, WrongKeyError):
        log.error(
            "decision_refused",
            message=row[0],
            meaning="a row of the decision log is damaged, or another program changed or moved it: it is ignored",
        )


def _version(connection: sqlite3.Connection) -> int:
    """The file's version; 0 for an empty file. Raises UnusableFileError for anything but a known decision log."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    is_new = version == 0 and tables == 0
    if not is_new and version not in range(1, SCHEMA_VERSION + 1):
        raise UnusableFileError(f"it has schema version {version} where this program knows {SCHEMA_VERSION}")
    if connection.execute("SELECT 1 FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone():
        raise UnusableFileError("it has a trigger or a view, which could keep what is deleted")
    (vacuums_itself,) = connection.execute("PRAGMA auto_vacuum").fetchone()
    if vacuums_itself:  # by one changed bit, with which VACUUM fails
        raise UnusableFileError("it is to be vacuumed by itself, as none of ours is")
    if any(hidden for *_, hidden in connection.execute("PRAGMA table_xinfo(decisions)")):
        raise UnusableFileError("it has columns that are computed, which could take for ever")
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL AND name NOT LIKE 'sqlite_%'")
    if version == SCHEMA_VERSION and not {" ".join(sql.split()) for (sql,) in found} <= SCHEMA:
        raise UnusableFileError("its schema is not ours, which could refuse what is to be deleted or changed")
    return version


def _changed(entry: Entry, change: Mark | Revision | Assignment | Silence) -> Entry:
    """The entry after a change. The first outcome stays, but TAKEN_UP gives way to an unwelcome one. MISSED applies to
    silences only, the other outcomes to answers only."""
    match change:
        case Mark() if (
            entry.outcome in (None, Outcome.TAKEN_UP)
            and entry.outcome is not change.outcome
            and entry.respond is (change.outcome is not Outcome.MISSED)
        ):
            return replace(entry, outcome=change.outcome, outcome_at=change.at)
        case Revision() if entry.content is not None:
            return replace(entry, content=change.content)
        case Assignment():
            return replace(entry, agent=change.agent, agent_reason=change.reason)
        case Silence():
            return replace(entry, respond=False, reason=change.reason)
        case _:
            return entry


@contextmanager
def _unusable() -> Iterator[None]:
    """Raises UnusableFileError for a fault of the file; passes on faults of the disk."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in UNUSABLE:
            raise UnusableFileError(str(error)) from error
        raise
    except ValueError as error:
        raise UnusableFileError("it holds what is no decision") from error
