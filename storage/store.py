"""The port of a store, which keeps what has to survive a restart as rows of bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from os import SEEK_END
from os.path import realpath
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple, Protocol

import structlog
from pydantic import ValidationError

log = structlog.get_logger()

ANY = 2**63 - 1  # above all ids
JOURNAL = "-journal"
ENDS = "", "-wal", "-shm", JOURNAL  # of the names of a database's files
NAMES_ANOTHER = bytes.fromhex("d9d505f920a163d7")  # at the end of a journal: https://www.sqlite.org/fileformat.html, 3


class StoreError(OSError):
    """The store cannot be reached or written. Its text is one sentence."""


class WrongKeyError(StoreError):
    """The rows are sealed, and none of the keys opens them."""


class LostLeaseError(StoreError):
    """Another process has this one's lease, so this one stores nothing any more."""


def unquoted(error: Exception) -> str:
    """Says in one line what is wrong with a stored value, without quoting it."""
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:200]
    return " ".join(str(error).split())[:200]


def make_folder(folder: Path) -> None:
    """Makes a folder, and those above it that are missing, for its owner only. Raises OSError."""
    for above in reversed(folder.parents):
        if not above.exists():
            above.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def look_before_opening(path: Path) -> str:
    """Says what is wrong with a database file that SQLite itself would not call damage; empty: nothing. Deletes what
    strangers() finds. Not to be called while this process has the database open: to close a file ends its locks. Raises
    OSError where it cannot be read.
    """
    for part in strangers(path):
        with suppress(FileNotFoundError):
            part.unlink()
            log.error("file_refused", file=str(part), meaning="another program put it there: it is deleted")
    try:
        if not S_ISREG(path.stat().st_mode):
            return "it is no file"
        with path.open("rb") as file:
            # One changed bit makes it read-only: https://www.sqlite.org/fileformat.html, 1.3.3.
            return "" if file.read(19)[18:] in (b"", b"\1", b"\2") else "it is of an unknown version of SQLite"
    except FileNotFoundError:
        return ""


def strangers(path: Path) -> list[Path]:
    """What is beside a database file under the name of a part of it, and that SQLite must not find there: what is no
    file, such as a pipe, for which it would wait, and a journal that names another file, which it would delete."""
    found = []
    for end in ENDS[1:]:
        part = Path(f"{realpath(path)}{end}")  # beside what a link leads to
        with suppress(OSError):  # another process may delete it meanwhile; what else is wrong, SQLite says
            mode = part.stat().st_mode
            is_other = not (S_ISREG(mode) or S_ISDIR(mode))
            if is_other or (end == JOURNAL and S_ISREG(mode) and _names_another(part)):
                found.append(part)
    return found


def _names_another(journal: Path) -> bool:
    with journal.open("rb") as file:
        file.seek(max(0, file.seek(0, SEEK_END) - len(NAMES_ANOTHER)))
        return file.read() == NAMES_ANOTHER


class Key(NamedTuple):
    """A row's place. channel: 0: of no channel. id: a message's; 0: a channel has only one row of this kind."""

    kind: str
    channel: int
    id: int = 0


class Row(NamedTuple):
    """value: None: the stored value is damaged, or belongs to another row."""

    channel: int
    id: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Stored:
    """A session as read. content: its document; None: there is none. records: those since then, oldest first. notice:
    what was damaged."""

    content: bytes | None
    records: tuple[bytes, ...] = ()
    notice: str = ""


class EmptiedError(StoreError):
    """The store has lost all its data; what is written from now on stays."""


Opened = Callable[[bytes], bytes]
"""Decodes stored bytes, and decrypts them if they are sealed."""


class Leases(Protocol):
    """The leases in Redis that this process holds: each is a key whose value is the name of its holder."""

    @property
    def names(self) -> Mapping[str, str]:
        """This process' name by each key. Other threads read it, so it is replaced as a whole, never changed."""


class Store(Protocol):
    """Rows of JSON by kind, channel and id. One thread at a time. Raises StoreError where something fails.

    owed: gives rows that are stored together with the next ones, as they could not be stored before.
    """

    owed: Callable[[], Mapping[Key, bytes]]

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
        """The rows of a kind, in all channels, some or one, sorted by channel and id, the highest first if newest.

        since, before: only ids from `since` up to, but not including, `before`. Damage is logged. Raises WrongKeyError.
        """

    def channels(self, kind: str) -> list[int]:
        """The channels with rows of this kind, the one with the highest id last."""

    def kinds(self) -> list[str]:
        """The kinds that have rows."""

    def write(self, changes: Mapping[Key, bytes | None]) -> None:
        """Stores these values, and deletes rows with None: all or nothing, so that it survives a kill."""

    def sync(self) -> None:
        """Syncs what was written to disk, and erases what was replaced or deleted.

        Raises EmptiedError if the store has lost all its data.
        """

    def drop_aside(self, before: float) -> None:
        """Deletes what was set aside as damaged and last written before this time, in epoch seconds."""

    def close(self) -> None: ...
