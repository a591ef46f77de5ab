"""Rows in one SQLite file, from which deleted data is really erased.

`secure_delete` alone does not ensure that: when SQLite moves cells between pages, copies stay in the gaps. So rows are
only ever added at the end. A row that is deleted, or whose value outgrows it, is overwritten in place, its value with
zeros and its ids with other numbers, and marked as dead; a VACUUM frees the space now and then. Each sync empties the
WAL.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import structlog

from storage.sealing import Seal, pack, read_row
from storage.store import ANY, ENDS, Key, Row, StoreError, look_before_opening, make_folder

log = structlog.get_logger()

VERSION = 1
ASIDE = "aside"  # the folder in STATE_DIR for what could not be used
MOST_DEAD = 16_000_000  # bytes
SETTINGS = "PRAGMA secure_delete = ON; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
CREATE = """
    CREATE TABLE IF NOT EXISTS row (
        number INTEGER PRIMARY KEY AUTOINCREMENT, live INTEGER, kind TEXT, channel INTEGER, id INTEGER, value BLOB
    );
    CREATE UNIQUE INDEX IF NOT EXISTS place ON row (kind, channel, id) WHERE live;
    PRAGMA user_version = 1;
"""
SCHEMA = [" ".join(each.replace("IF NOT EXISTS ", "").split()) for each in CREATE.split(";")[:2]]
FIND_SCHEMA = (
    "SELECT sql FROM sqlite_master WHERE sql NOT NULL AND (type != 'table' OR name = 'row') ORDER BY type DESC"
)
# A row that is ours: SQLite keeps values of any type in any column, whoever adds them.
OURS = "live AND typeof(kind) = 'text' AND typeof(channel) = 'integer' AND typeof(id) = 'integer'"
MOST_NUMBERS = 2**62  # of rows: behind the last, SQLite calls the disk full
FIND_LAST = """
    SELECT 1 FROM sqlite_sequence WHERE typeof(seq) != 'integer' OR seq > ? UNION ALL SELECT 1 FROM row WHERE number > ?
"""
AT_ONCE = 100  # rows in a statement
FIND = """
    WITH wanted (kind, channel, id) AS (VALUES {})
    SELECT number, ifnull(length(value), 0), kind, channel, id FROM wanted CROSS JOIN row USING (kind, channel, id)
    WHERE live
"""
ERASE = "UPDATE row SET live = 0, channel = ?, id = ?, value = zeroblob(length(value)) WHERE number = ?"
FIND_LEFT = "SELECT 1 FROM row WHERE NOT live AND (channel, id) IS NOT (as_long(channel), as_long(id)) LIMIT 1"
ERASE_LEFT = "UPDATE row SET channel = as_long(channel), id = as_long(id) WHERE NOT live"
ADD = "INSERT INTO row (kind, channel, id, value, live) SELECT *, 1 FROM (VALUES {})"
IN_CHANNELS = "AND channel IN (SELECT value FROM json_each(?))"
IN_USE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
DAMAGES = {*IN_USE, sqlite3.SQLITE_ERROR}  # the last: for a schema that is not ours


class SQLiteStore:
    """A `storage.store.Store`. Makes nothing before the first write; the file has mode 600, a new folder 700."""

    owed: Callable[[], Mapping[Key, bytes]]

    def __init__(self, path: Path, *, seal: Seal | None = None) -> None:
        self.owed = dict
        self._path = path
        self._new = path.with_name(f"{path.name}.new")  # what could be read of a damaged one, until it takes its place
        self._seal = seal
        self._db: sqlite3.Connection | None = None
        self._dead = 0
        self._schema = 0  # its version when it was checked
        self._is_damaged = False

    def read(
        self,
        kind: str,
        channel: int | Collection[int] | None = None,
        *,
        since: int = 0,
        before: int = ANY,
        limit: int = ANY,
        newest: bool = False,
    ) -> list[Row]:
        channels = [channel] if isinstance(channel, int) else [*(channel or ())]
        where, of = ("", ()) if channel is None else (IN_CHANNELS, (f"{channels}",))
        order = "DESC" if newest else "ASC"
        sql = f"""
            SELECT channel, id, value FROM row WHERE {OURS} AND kind = ? {where} AND id >= ? AND id < ?
            ORDER BY channel {order}, id {order} LIMIT ?
        """  # noqa: S608 - nothing in it comes from outside
        return [
            read_row(Key(kind, channel, id_), value.rstrip(b" ") if isinstance(value, bytes) else None, self._seal)
            for channel, id_, value in self._ask(sql, (kind, *of, since, before, limit))
        ]

    def kinds(self) -> list[str]:
        return [kind for (kind,) in self._ask(f"SELECT DISTINCT kind FROM row WHERE {OURS}", ())]  # noqa: S608 - as above

    def channels(self, kind: str) -> list[int]:
        sql = f"SELECT channel FROM row WHERE {OURS} AND kind = ? GROUP BY channel ORDER BY max(id)"  # noqa: S608 - as above
        return [channel for (channel,) in self._ask(sql, (kind,))]

    def write(self, changes: Mapping[Key, bytes | None]) -> None:
        packed = pack({**self.owed(), **changes}, self._seal)
        with self._working("written") as db:
            db.execute("BEGIN")
            # Opened again, it is checked. The number alone can be put back.
            if _schema_version(db) != self._schema or _schema(db) != SCHEMA:
                raise StoreError(f"{self._path}: another program changed its schema.")
            self._put(db, packed)
            db.execute("COMMIT")
        self.owed = dict

    def sync(self) -> None:
        if self._db is None:
            return
        with self._working("brought to the disk") as db:
            if self._dead > MOST_DEAD:
                db.execute("DELETE FROM row WHERE NOT live")
                db.execute("VACUUM")
                self._dead, self._schema = 0, _schema_version(db)
            if db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                raise StoreError(f"{self._path} is being read by another program: deleted data is still in it.")

    def drop_aside(self, before: float) -> None:
        aside = self._path.parent / ASIDE
        try:
            if aside.is_symlink():  # what is in another folder is not ours to delete
                raise OSError(f"{aside} is a link")
            for path in [*aside.glob("*")]:
                if path.lstat().st_mtime < before:
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        except OSError as error:
            raise StoreError(f"What was set aside could not be deleted: {error}.") from error

    def close(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()

    def _put(self, db: sqlite3.Connection, rows: Mapping[Key, bytes | None]) -> None:
        """Writes rows in few statements: after each one, other threads may hold this one up for milliseconds."""
        left = dict(rows)
        for number, size, *place in execute_all(db, FIND, [*rows]):
            if (value := rows[key := Key(*place)]) is None or len(value) > size:
                db.execute(ERASE, (_as_long(key.channel), _as_long(key.id), number))
                self._dead += size
            else:
                db.execute("UPDATE row SET value = ? WHERE number = ?", (value.ljust(size), number))
                del left[key]
        # Rows without an id change often, and get room to grow.
        new = [(*k, v if k.id else v.ljust(1 << len(v).bit_length())) for k, v in left.items() if v is not None]
        execute_all(db, ADD, new)

    def _ask(self, sql: str, arguments: tuple[object, ...]) -> list[Any]:
        """Runs a query; a file that cannot be opened for writing, as on a full disk, is opened read-only."""
        if self._db is None and not (self._path.exists() or self._new.exists()):
            return []
        try:
            with self._working("read") as db:
                return db.execute(sql, arguments).fetchall()
        except StoreError as refused:
            try:
                path = self._path.resolve()
                wal = path.with_name(f"{path.name}-wal")
                # Without a WAL nothing need be written to read it. What is in one must be read, too.
                how = "" if wal.exists() and wal.stat().st_size else "&immutable=1"
                uri = f"file:{quote(str(path))}?mode=ro{how}"
                with closing(sqlite3.connect(uri, uri=True)) as db:
                    is_begun = db.execute("SELECT 1 FROM sqlite_master").fetchone()  # else there was no room for that
                    return db.execute(sql, arguments).fetchall() if is_begun else []
            except (sqlite3.Error, OSError):
                raise refused from None

    @contextmanager
    def _working(self, done: str) -> Iterator[sqlite3.Connection]:
        """Opens the file if needed; after an error it is opened again next time, as it may have been replaced."""
        try:
            if self._db is None or not self._path.exists():
                self.close()
                make_folder(self._path.parent)
                self._db = self._opened()
                self._schema = _schema_version(self._db)
            yield self._db
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            self.close()
            # The check on opening does not find all damage.
            self._is_damaged = _is_damage(error, IN_USE)
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{self._path} could not be {done}: {error}.") from error

    def _opened(self) -> sqlite3.Connection:
        if self._is_damaged and self._path.is_file():
            return self._rescued("it failed in use")
        if self._new.exists() and not self._path.exists():
            for end in ENDS[1:]:  # the damaged one's
                self._path.with_name(self._path.name + end).unlink(missing_ok=True)
            return self._replaced("a process was killed while it made it anew", self._path.parent / ASIDE)
        try:
            db = _connected(self._path)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not _is_damage(error, DAMAGES):
                raise
            return self._rescued(str(error))
        except IsADirectoryError:
            return self._rescued("it is a folder")
        self._drop_new()  # of a rescue that was interrupted before a backup took the place of the damaged one
        return db

    def _rescued(self, detail: str) -> sqlite3.Connection:
        """Sets a damaged file aside, and makes a new one with the rows that can be read of it."""
        rows = _salvaged(self._path) if self._path.is_file() else {}
        # In place of the damaged one only once it is whole: this may be killed, or the disk full.
        self._drop_new()
        with closing(_connected(self._new)) as db:
            db.execute("BEGIN")
            self._put(db, rows)
            db.execute("COMMIT")
            if db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:  # the WAL does not go with it
                raise StoreError(f"{self._new} is being read by another program.")
        aside = set_aside(self._path, self._path.parent / ASIDE)
        for end in ENDS[1:]:
            with suppress(FileNotFoundError):
                self._path.with_name(self._path.name + end).rename(aside.with_name(aside.name + end))
        return self._replaced(detail, aside)

    def _drop_new(self) -> None:
        for end in ENDS:
            self._new.with_name(self._new.name + end).unlink(missing_ok=True)

    def _replaced(self, detail: str, aside: Path) -> sqlite3.Connection:
        """Puts the new file in place of the damaged one, which was set aside there."""
        db = _connected(self._new.rename(self._path))
        self._is_damaged = False
        (kept,) = db.execute("SELECT count(*) FROM row WHERE live").fetchone()
        log.error("database_damaged", file=str(self._path), detail=detail, rows_kept=kept, set_aside=str(aside))
        return db


def set_aside(path: Path, folder: Path) -> Path:
    """Moves an unusable file into this folder, which is made if it is missing, under an unused name."""
    folder.mkdir(mode=0o700, exist_ok=True)
    return path.rename(next(to for n in range(1_000_000) if not (to := folder / f"{path.name}.{n}").exists()))


def _is_damage(error: Exception, damages: Collection[int]) -> bool:
    """Whether an error means damage; if a name in the schema is damaged, the error itself cannot be decoded."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, UnicodeDecodeError) or (code is not None and code & 0xFF in damages)


def _damage(what: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(what)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _connected(path: Path) -> sqlite3.Connection:
    """Raises sqlite3.DatabaseError for a database that is damaged, or that another version wrote."""
    if path.is_dir():
        raise IsADirectoryError(path)
    path.touch(mode=0o600)
    path.chmod(0o600)
    if fault := look_before_opening(path):
        raise _damage(fault)
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.text_factory = partial(str, encoding="utf-8", errors="replace")  # of what is damaged, which is refused then
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        # A row that the index lacks is neither read nor deleted.
        (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        if version not in (0, VERSION) or found != "ok":
            raise _damage(found if found != "ok" else f"it is of version {version}")
        db.executescript(SETTINGS if version else SETTINGS + CREATE)
        # A trigger that somebody left there could keep what is deleted, or drop what is stored.
        if _schema(db) != SCHEMA:
            raise _damage("its schema is not ours")
        if db.execute(FIND_LAST, [MOST_NUMBERS] * 2).fetchone():
            raise _damage("its numbers are used up")
        # Until 2026-11-29 a deleted row kept its ids. Only where there are some: else each reader would lock the file.
        db.create_function("as_long", 1, _as_long, deterministic=True)
        if db.execute(FIND_LEFT).fetchone():
            db.execute(ERASE_LEFT)
    except BaseException:
        db.close()
        raise
    return db


def _schema(db: sqlite3.Connection) -> list[str]:
    return [" ".join(sql.split()) for (sql,) in db.execute(FIND_SCHEMA)]


def _schema_version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA schema_version").fetchone()[0]
    return version


def execute_all(db: sqlite3.Connection, sql: str, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Runs a statement with these rows of values in place of its {}, a hundred at a time. Returns all results."""
    found = []
    for start in range(0, len(rows), AT_ONCE):
        part = rows[start : start + AT_ONCE]
        values = ", ".join(f"({', '.join('?' * len(row))})" for row in part)
        found += db.execute(sql.format(values), [*chain(*part)]).fetchall()
    return found


def _as_long(id_: Any) -> Any:
    """A number that tells only the size of this one, and takes as much room, so that SQLite overwrites it in place."""
    return 1 << id_.bit_length() - 1 if isinstance(id_, int) and id_ > 0 else id_


def _salvaged(path: Path) -> dict[Key, bytes]:
    """The rows that can be read of a damaged database; their values are checked when they are read again."""
    rows: dict[Key, bytes] = {}
    number, step = 0, 1
    sql = "SELECT number, kind, channel, id, value FROM row NOT INDEXED WHERE live AND number > ? ORDER BY number"
    look_before_opening(path)
    with suppress(sqlite3.Error, UnicodeDecodeError, OverflowError), closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA writable_schema = ON")  # else a truncated file is not read at all
        while step < 2**40:  # after an unreadable page there may be readable ones
            try:
                for last, kind, channel, id_, value in db.execute(sql, (number,)):
                    number, step = last, 1
                    rows[Key(str(kind), int(channel), int(id_))] = bytes(value)
                break
            except (sqlite3.DatabaseError, TypeError, ValueError):
                number, step = number + step, step * 2
    return rows
