"""Sessions as JSON files in a folder that other programs can read, with backups and journals in its folder `.store`.

A session's file is a JSON object whose first keys are a mark: a checksum over all that follows, and the generation,
which is how often the file was written. Each line of a journal has the generation of the file that it adds to, so that
no kill between two steps of a write loses a message or counts it twice:

    {"crc32":"0c5e3a2f","generation":7,"id":...
    5b1d22e0 7 {"message":...

A file without a mark was put there by somebody else: if it is a JSON object, it is read as generation 0.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote
from zlib import crc32

import orjson

from storage.store import Opened, Stored, StoreError

OWN = ".store"  # the subfolder for everything except the documents
SUFFIX = ".json"
LONGEST = 180  # characters of a file's name; longer ones are cut, and end with a hash
CUT = "="  # never occurs in a quoted name
HEADER_BYTES = 4_096
MARK = re.compile(rb'\{"crc32":"([0-9a-f]{8})",("generation":(\d{1,20})(?:,"purged":true)?)([,}])')
MARK_BEGINS = b'{"crc32":"........","generation":'
LINE = re.compile(rb"([0-9a-f]{8}) ((\d{1,20})([ =*].*))", re.DOTALL)
ID = re.compile(rb'[{,]"id":("(?:[^"\\]|\\.)*")')
MOST_OPEN = 64
MOST_ASIDE = 3  # damaged files kept of one session; beyond that the oldest is deleted


class Places(NamedTuple):
    """The paths of one session's files. journals: one for even generations, one for odd ones."""

    stem: str
    document: Path
    backup: Path
    journals: tuple[Path, Path]
    temporary: Path


@dataclass(frozen=True, slots=True)
class Found:
    """The content of a file. problem: what is wrong with it, as the rest of a sentence; empty: nothing."""

    content: bytes = b""
    generation: int = 0
    problem: str = ""


MISSING = Found(problem="is missing")
DAMAGED = Found(problem="is damaged")


class SessionFiles:
    """Reads and writes the folder. Only one process may write to it. Nothing is changed before the first write.

    A missing folder is made with mode 700, and all files with 600. Other programs' files in it are left alone.
    Raises StoreError, and ValueError for the empty name.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        # Open ones: descriptor, generation; the one used last at the end.
        self._journals: dict[str, tuple[int, int]] = {}
        self._unflushed: set[Path] = set()
        self._latest = 0

    def read(
        self, name: str, opened: Opened = lambda content: content, record: Opened = lambda line: line[1:]
    ) -> Stored:
        """Reads what can be read. Damage raises no error: the notice says what could not be read.

        opened, record: decode a document, and a record, whose first character tells its form.
        """
        places = places_of(self._folder, name)
        found, notices = _opened(_file_at(places.document), opened), []
        if found.problem:
            backup = _opened(_file_at(places.backup), opened)
            if not backup.problem:
                notices = [f"it {found.problem}, its backup is taken"]
            elif not (found is MISSING and backup is MISSING):
                notices = [f"it {found.problem}, its backup {backup.problem}", "only its journal is taken"]
            found = backup
        since = 0 if found.problem else found.generation
        journals = [_lines(journal) for journal in places.journals]
        lines = sorted((line for j in journals for line in j if line and line[0] >= since), key=itemgetter(0))
        # Damage in a journal that is older as a whole does not matter.
        current = [j for j in journals if not any(j) or max(line[0] for line in j if line) >= since]
        damaged = sum(j.count(None) for j in current)
        if damaged:
            notices.append(f"{damaged} damaged record{'s' * (damaged > 1)} of its journal skipped")
        notice = f"{places.document.name}: {', '.join(notices)}." if notices else ""
        return Stored(None if found.problem else found.content, tuple(record(line[1]) for line in lines), notice)

    def write(self, name: str, content: bytes) -> None:
        """Replaces the document in one step, by way of a temporary file, and keeps a backup. Drops its records."""
        places = places_of(self._folder, name)
        with _refusing(name, "written"):
            self._prepare()
            before, latest = _file_at(places.document), _generation(places)
            data = _marked(content, latest + 1)
            _put(places.temporary, data)
            self._close_journal(places.stem)
            is_backup = not before.problem and before.generation == latest
            if is_backup:
                _put(places.backup.with_suffix(".new"), places.document.read_bytes())
                _move(places.backup.with_suffix(".new"), places.backup)
            elif before.problem and before is not MISSING:
                _set_aside(places.document)
            places.temporary.replace(places.document)
            self._touch(places.document)
            _synchronise(self._folder)
            if not is_backup:  # a document that is damaged, or older than the records, is no good backup
                _put(places.temporary, data)
                _move(places.temporary, places.backup)
            _remove(places.journals[(latest + 1) % 2])  # it is older than the backup

    def append(self, name: str, record: bytes) -> None:
        """Appends a record of one line. It survives a kill of the process at once, and a power cut once flushed."""
        places = places_of(self._folder, name)
        with _refusing(name, "appended to"):
            file, generation = self._journal(places)
            self._unflushed.add(places.journals[generation % 2])
            body = b"%d %s" % (generation, record)
            # It begins and ends with a line feed, so that damage to the line before does not reach it.
            line = b"\n%08x %s\n" % (crc32(body), body)
            if os.write(file, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            try:
                self._touch(places.document)
            except OSError:  # the document is lost, only the journal is left
                self._touch(file)

    def flush(self) -> None:
        """Syncs to disk what was appended."""
        with _refusing("The journals", "flushed"):
            while self._unflushed:
                path = next(iter(self._unflushed))
                with suppress(FileNotFoundError):
                    _synchronise(path)
                    _synchronise(path.parent)
                self._unflushed.discard(path)

    def reject(self, name: str) -> None:
        """Renames a document in which the reader found an error, as one that is damaged."""
        with _refusing(name, "set aside"), suppress(FileNotFoundError):
            _set_aside(places_of(self._folder, name).document)

    def delete(self, name: str) -> bool:
        """Deletes the document, its backup and its journals. Returns whether there was anything."""
        places = places_of(self._folder, name)
        with _refusing(name, "deleted"):
            self._close_journal(places.stem)
            if places.document.is_dir():
                _set_aside(places.document)
            # The document is deleted last, so that after a kill the session can still be found and deleted.
            kept = (*_aside(places.document), places.backup, *places.journals, places.temporary, places.document)
            there = [_remove(path) for path in kept]
            if any(there):
                _synchronise(self._folder)
            return any(there)

    def names(self, limit: int | None = None, offset: int = 0) -> list[str]:
        """The names of all sessions, the last written or appended to first. Calls stat() once for each."""
        times: dict[str, int] = {}
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if (name := entry.name).endswith(SUFFIX):
                    times[name[: -len(SUFFIX)]] = entry.stat(follow_symlinks=False).st_mtime_ns
        documents = frozenset(times)
        with suppress(OSError), os.scandir(self._folder / OWN / "journal") as entries:
            for entry in entries:
                if (stem := (name := entry.name)[:-2]) not in documents and name.endswith((".0", ".1")):
                    times[stem] = max(entry.stat(follow_symlinks=False).st_mtime_ns, times.get(stem, 0))
        newest = filter(None, map(self._name_of, sorted(times, key=times.__getitem__, reverse=True)))
        return list(islice(newest, offset, None if limit is None else offset + limit))

    def head(self, name: str) -> tuple[bytes, bytes | None]:
        """The first bytes of the document, unchecked (empty: none), and the last appended record (None: none)."""
        places = places_of(self._folder, name)
        begins = _head(places.document)
        mark = MARK.match(begins)
        since = int(mark[3]) if mark else 0
        ends = [line for j in places.journals for line in _lines(j)[-1:] if line and line[0] >= since]
        return _without(mark, begins) if mark else begins, max(ends)[1][1:] if ends else None

    def file_of(self, name: str) -> Path:
        return places_of(self._folder, name).document

    def close(self) -> None:
        for stem in list(self._journals):
            self._close_journal(stem)

    def _journal(self, places: Places) -> tuple[int, int]:
        """The open journal to append to: its descriptor and generation."""
        known = self._journals.pop(places.stem, None)
        if known and places.journals[known[1] % 2].exists():
            self._journals[places.stem] = known
            return known
        if known:
            os.close(known[0])
        self._prepare()
        latest = _generation(places)
        journal = self._journals[places.stem] = (_open_private(places.journals[latest % 2], os.O_APPEND), latest)
        if len(self._journals) > MOST_OPEN:
            self._close_journal(next(iter(self._journals)))
        return journal

    def _close_journal(self, stem: str) -> None:
        if journal := self._journals.pop(stem, None):
            os.close(journal[0])

    def _prepare(self) -> None:
        for folder in (self._folder, *(self._folder / OWN / sub for sub in ("", "backup", "journal", "temporary"))):
            folder.mkdir(mode=0o700, parents=folder is self._folder, exist_ok=True)

    def _touch(self, file: Path | int) -> None:
        """Sets the time by which sessions are listed; the system's own times are too coarse."""
        self._latest = max(time.time_ns(), self._latest + 1)
        os.utime(file, ns=(self._latest, self._latest))

    def _name_of(self, stem: str) -> str | None:
        """The session's name, of a shortened one as the document has it; None for a file that is no session's."""
        with suppress(ValueError):
            name = unquote(stem, errors="surrogatepass")
            if CUT in stem:
                found = ID.search(_head(self._folder / f"{stem}{SUFFIX}"))
                name = str(orjson.loads(found[1])) if found else ""
            return name if name and _stem_of(name) == stem else None
        return None


@lru_cache(maxsize=1_024)
def places_of(folder: Path, name: str) -> Places:
    """Raises ValueError for the empty name."""
    if not name:
        raise ValueError("A session's id must not be empty.")
    stem, own = _stem_of(name), folder / OWN
    return Places(
        stem,
        folder / f"{stem}{SUFFIX}",
        own / "backup" / f"{stem}{SUFFIX}",
        (own / "journal" / f"{stem}.0", own / "journal" / f"{stem}.1"),
        own / "temporary" / stem,
    )


def _stem_of(name: str) -> str:
    """A file's name without its suffix: unique to the session, and never a path out of the folder."""
    quoted = quote(name, safe="", errors="surrogatepass")
    if quoted.startswith("."):
        quoted = "%2E" + quoted[1:]
    if len(quoted) <= LONGEST:
        return quoted
    return quoted[:LONGEST] + CUT + sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _marked(content: bytes, generation: int) -> bytes:
    """A JSON object with its mark."""
    rest = content[1:].lstrip()
    body = b'"generation":%d' % generation + (b"" if rest.startswith(b"}") else b",") + rest
    return b'{"crc32":"%08x",' % crc32(body) + body


def _unmarked(data: bytes) -> Found:
    """The content of a session's file without its mark, once its checksum is checked."""
    mark = MARK.match(data)
    if mark is None:
        # It may have been a mark before a few of its bits were flipped.
        alike = sum(a == b for a, b in zip(MARK_BEGINS, data, strict=False))
        with suppress(orjson.JSONDecodeError):
            if alike <= len(MARK_BEGINS) // 2 and isinstance(orjson.loads(data), dict):
                return Found(data)
        return DAMAGED
    if crc32(memoryview(data)[mark.start(2) :]) != int(mark[1], 16):
        return DAMAGED
    return Found(_without(mark, data), int(mark[3]))


def _without(mark: re.Match[bytes], data: bytes) -> bytes:
    return b"{" + data[mark.end() :] if mark[4] == b"," else b"{}"


def _opened(found: Found, opened: Opened) -> Found:
    try:
        return found if found.problem else Found(opened(found.content), found.generation)
    except ValueError:
        return DAMAGED


def _file_at(path: Path) -> Found:
    """The document at a path. Raises nothing: what is missing or unreadable is told in `problem`."""
    try:
        return _unmarked(path.read_bytes())
    except FileNotFoundError:
        return MISSING
    except OSError as error:
        return Found(problem=f"cannot be read ({error.strerror})")


def _head(path: Path) -> bytes:
    """The first bytes of a file; empty if it cannot be read."""
    with suppress(OSError), path.open("rb", buffering=0) as file:
        return file.read(HEADER_BYTES)
    return b""


def _generation(places: Places) -> int:
    """The latest generation of the session's document, backup and journals."""
    marks = [MARK.match(_head(path)) for path in (places.document, places.backup)]
    lines = [line[0] for journal in places.journals for line in _lines(journal) if line]
    return max([0, *lines, *(int(mark[3]) for mark in marks if mark)])


def _lines(journal: Path) -> list[tuple[int, bytes] | None]:
    """The generation and content of each line; None for a damaged one, and for a journal that cannot be read."""
    try:
        read = map(LINE.fullmatch, filter(None, journal.read_bytes().split(b"\n")))
        return [(int(m[3]), m[4]) if m and crc32(m[2]) == int(m[1], 16) else None for m in read]
    except FileNotFoundError:
        return []
    except OSError:
        return [None]


def _put(path: Path, data: bytes) -> None:
    """Writes a file and syncs it to disk. Overwrites whatever is at that path."""
    try:
        if path.is_dir():
            _remove(path)
        with os.fdopen(_open_private(path, os.O_TRUNC), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)  # a full disk needs the space
        raise


def _move(path: Path, to: Path) -> None:
    if to.is_dir():
        _remove(to)
    path.replace(to)


def _open_private(path: Path, flags: int) -> int:
    """Opens a file for writing, with mode 600 whatever the umask is. Returns its descriptor."""
    if path.is_dir():
        _remove(path)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)
    os.fchmod(file, 0o600)
    return file


def _synchronise(path: Path) -> None:
    """Syncs a file, or the entries of a folder, to disk."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _aside(document: Path) -> list[Path]:
    """The damaged files that were kept of a document, oldest first."""
    begins = f"{document.name}.damaged-"
    with suppress(OSError):
        names = [name for name in os.listdir(document.parent) if name.startswith(begins)]  # noqa: PTH208 - 10,000 paths
        numbers = sorted(int(name[len(begins) :]) for name in names if name[len(begins) :].isdecimal())
        return [document.with_name(f"{begins}{number}") for number in numbers]
    return []


def _set_aside(document: Path) -> None:
    """Renames a damaged document to an unused name."""
    there = _aside(document)
    for path in there[: 1 - MOST_ASIDE]:
        _remove(path)
    last = int(there[-1].name.rpartition("-")[2]) if there else 0
    document.rename(document.with_name(f"{document.name}.damaged-{last + 1}"))


def _remove(path: Path) -> bool:
    """Deletes a file. Returns whether there was one. Leaves a folder that somebody put among the documents alone."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except IsADirectoryError:
        if OWN not in path.parts:
            return False
        shutil.rmtree(path)
    return True


@contextmanager
def _refusing(what: str, done: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{what!r} could not be {done}: {error.strerror or error}.") from error
