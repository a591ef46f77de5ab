"""What is done to the files of one document: each step by itself, as `state.folder` puts them together."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from state.folder_form import (
    MARK_SIZE,
    MISSING,
    OWN,
    SUFFIX,
    Found,
    Places,
    generation_at,
    lines_in,
    read_line,
    unmarked,
)

MOST_ASIDE = 3  # damaged files of one document; with one more the oldest goes
ASIDE = ".damaged-"
SET_ASIDE = re.compile(rf"{re.escape(SUFFIX)}{re.escape(ASIDE)}\d+$")

Line = tuple[int, bytes]
"""The generation of a record, and the record as it is wrapped."""


def file_at(path: Path) -> Found:
    """The document there. Whatever there is instead of one is no error."""
    try:
        return unmarked(path.read_bytes())
    except FileNotFoundError:
        return MISSING
    except OSError as error:
        return Found(problem=f"cannot be read ({error.strerror})")


def head(path: Path, size: int = MARK_SIZE) -> bytes:
    """The first bytes; empty for what cannot be read."""
    try:
        with path.open("rb", buffering=0) as file:
            return file.read(size)
    except OSError:
        return b""


def put(path: Path, data: bytes) -> None:
    """Has it on disk for certain, there being nothing at that path to lose."""
    try:
        with os.fdopen(open_private(path, os.O_TRUNC), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)  # a full disk has better use for the room
        raise


def open_private(path: Path, flags: int) -> int:
    """A descriptor for writing, of a file with mode 600 whatever the umask is."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)
    os.fchmod(file, 0o600)
    return file


def synchronise(path: Path) -> None:
    """Has a file, or the entries of a folder, on disk for certain."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def back_up(places: Places) -> None:
    """Makes the document its backup as well, whose place it takes in one step."""
    spare = places.temporary.with_name(f"{places.stem}.backup")
    spare.unlink(missing_ok=True)
    try:
        os.link(places.document, spare)
    except OSError:  # not every file system has links
        put(spare, places.document.read_bytes())
    make_backup(spare, places)
    spare.unlink(missing_ok=True)  # a rename between two links to one file does nothing


def make_backup(spare: Path, places: Places) -> None:
    """Has that file for the backup."""
    if places.backup.is_dir():
        remove(places.backup)
    spare.replace(places.backup)


def set_aside(document: Path) -> None:
    """Out of the way, under a name that nothing has."""
    numbers = sorted(int(path.name.rpartition("-")[2]) for path in aside(document))
    for number in numbers[: 1 - MOST_ASIDE]:
        remove(document.with_name(f"{document.name}{ASIDE}{number}"))
    document.rename(document.with_name(f"{document.name}{ASIDE}{max(numbers, default=0) + 1}"))


def aside(document: Path) -> list[Path]:
    """What was set aside of it."""
    begins = f"{document.name}{ASIDE}"
    there = [name for name in files(document.parent) if name.startswith(begins) and name[len(begins) :].isdecimal()]
    return [document.with_name(name) for name in there]


def all_aside(folder: Path) -> list[Path]:
    """What was set aside of any document there."""
    return [folder / name for name in files(folder) if SET_ASIDE.search(name)]


def remove(path: Path) -> bool:
    """Gives whether there was anything. A folder that somebody put among the documents is left alone."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except IsADirectoryError:
        if OWN not in path.parts:
            return False
        shutil.rmtree(path)
    return True


def exists(path: Path) -> bool:
    """Of any path, also one that no file can have."""
    return os.path.exists(path)  # noqa: PTH110 - the other one raises


def files(folder: Path) -> list[str]:
    with suppress(OSError):
        return os.listdir(folder)  # noqa: PTH208 - 10,000 paths would take their time
    return []


def time_of(folder: Path, stem: str) -> float:
    """When a document was last written; 0 where it has none."""
    with suppress(OSError):
        return (folder / f"{stem}{SUFFIX}").stat().st_mtime
    return 0


def generation(places: Places) -> int:
    """The latest that anything of the document is of."""
    documents = [generation_at(head(path)) for path in (places.document, places.backup)]
    return max(*documents, *map(_generation_of_journal, places.journals))


def records(places: Places, since: int) -> tuple[list[bytes], int]:
    """Those of this generation and later, oldest first and wrapped, and how many damaged ones there are besides."""
    found: list[Line] = []
    damaged = 0
    for journal in places.journals:
        lines = _lines(journal)
        sound = [line for line in lines if line]
        current = [line for line in sound if line[0] >= since]
        found += current
        damaged += (len(lines) - len(sound)) * bool(current or not sound)
    return [record for _, record in sorted(found, key=lambda line: line[0])], damaged


def last_record(journal: Path) -> Line | None:
    return next(filter(None, map(read_line, reversed(lines_in(_content(journal))))), None)


def _generation_of_journal(journal: Path) -> int:
    return generation_at(head(journal)) or max((line[0] for line in _lines(journal) if line), default=0)


def _lines(journal: Path) -> list[Line | None]:
    """Of each line what it holds, None for a damaged one."""
    return list(map(read_line, lines_in(_content(journal))))


def _content(journal: Path) -> bytes:
    """What cannot be read is given as one damaged line."""
    try:
        return journal.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError:
        return b"?"
