"""Documents in a folder: each a JSON file that other programs can read, its backup and journal in `.store` beside it.

Whatever step of a write a kill falls on, a reader finds either the old document with its records or the new one.
"""

from __future__ import annotations

import errno
import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from state.folder_files import (
    all_aside,
    aside,
    back_up,
    exists,
    file_at,
    files,
    generation,
    head,
    last_record,
    make_backup,
    open_private,
    put,
    records,
    remove,
    set_aside,
    synchronise,
    time_of,
)
from state.folder_form import (
    DAMAGED,
    MARK_SIZE,
    MISSING,
    OWN,
    SUFFIX,
    Found,
    Places,
    beginning,
    generation_at,
    line_of,
    marked,
    name_of,
    places_of,
    says_purged,
)
from state.folder_order import Order
from state.sealing import SEALED, Seal, opened, sealed, unwrapped, wrapped
from state.stored import Stored, StoreError

MOST_OPEN = 64


@dataclass(frozen=True, slots=True)
class Journal:
    """One that is open. generation: that of the document it goes with."""

    path: Path
    file: int
    generation: int


class FolderStore:
    """A `state.stored.Store` for the one process that holds the folder. Nothing is touched before the first write.

    The folder is made with mode 700 where it is missing, and all files with 600. Files of others in it are left alone.
    """

    def __init__(self, folder: str | Path, *, seal: Seal | None = None) -> None:
        self._folder = Path(folder)
        self._seal = seal
        self._order = Order(self._folder / OWN / "order")
        self._journals: OrderedDict[str, Journal] = OrderedDict()  # the one used last at the end
        self._unflushed: set[Path] = set()
        self._is_ready = False

    def read(self, name: str) -> Stored:
        places = places_of(self._folder, name)
        found, notices = self._find(places)
        if found.is_purged:
            self._finish_purge(places, found)
        wrapped_records, damaged = records(places, found.generation)
        if damaged:
            notices.append(f"{damaged} damaged record{'s' * (damaged > 1)} of its journal skipped")
        return Stored(
            found.content if found.is_good else None,
            tuple(unwrapped(record, self._seal) for record in wrapped_records),
            f"{places.document.name}: {', '.join(notices)}." if notices else "",
        )

    def write(self, name: str, content: bytes, *, purge: bool = False) -> None:
        places = places_of(self._folder, name)
        with _refusing(repr(name), "written"):
            self._prepare(places, name)
            before, latest = file_at(places.document), generation(places)
            data = marked(sealed(content, self._seal), latest + 1, purge=purge)
            # One that is damaged, or older than records that are there, is no backup: then the new one is its own.
            is_backup = before.is_good and before.generation == latest
            is_copied = not is_backup and (before.is_good or places.backup.exists())
            self._order.note(places.stem)
            put(places.temporary, data)
            self._close_journal(places.stem)
            if is_backup and not purge:
                back_up(places)
            elif not before.is_good and before is not MISSING:
                set_aside(places.document)
            places.temporary.replace(places.document)
            synchronise(self._folder)
            if purge:
                self._drop_older(places)
            if is_copied or purge:
                put(places.temporary, data)
                make_backup(places.temporary, places)
            if purge:
                return
            remove(places.journals[(latest + 1) % 2])  # it is older than the backup

    def append(self, name: str, record: bytes) -> None:
        places = places_of(self._folder, name)
        with _refusing(repr(name), "appended to"):
            journal = self._journal(places, name)
            self._unflushed.add(journal.path)
            line = line_of(wrapped(record, self._seal), journal.generation)
            self._order.note(places.stem)  # before: a document that is a journal alone is found by it
            if os.write(journal.file, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def flush(self) -> None:
        with _refusing("The journals", "flushed"):
            while self._unflushed:
                path = next(iter(self._unflushed))
                with suppress(FileNotFoundError):
                    synchronise(path)
                    synchronise(path.parent)
                self._unflushed.discard(path)
            self._order.flush()

    def reject(self, name: str) -> None:
        with _refusing(repr(name), "set aside"), suppress(FileNotFoundError):
            set_aside(places_of(self._folder, name).document)

    def drop_aside(self) -> None:
        with _refusing("What was set aside", "deleted"):
            for path in all_aside(self._folder):
                remove(path)

    def delete(self, name: str) -> bool:
        places = places_of(self._folder, name)
        with _refusing(repr(name), "deleted"):
            self._close_journal(places.stem)
            if places.document.is_dir():
                set_aside(places.document)
            # The document goes last, so that what a kill left of it can still be found and deleted.
            there = [remove(path) for path in (*_kept_of(places), places.true_name, places.document)]
            if any(there):
                self._order.drop(places.stem)
                synchronise(self._folder)
            return any(there)

    def names(self, limit: int | None = None, offset: int = 0) -> list[str]:
        known = filter(None, map(self._name_of, self._stems()))
        return list(islice(known, offset, None if limit is None else offset + limit))

    def peek(self, name: str, size: int) -> bytes:
        begins = beginning(head(places_of(self._folder, name).document, MARK_SIZE + size))
        return (self.read(name).content or b"" if begins.startswith(SEALED) else begins)[:size]

    def latest(self, name: str) -> bytes | None:
        places = places_of(self._folder, name)
        since = generation_at(head(places.document))
        ends = [end for journal in places.journals if (end := last_record(journal)) and end[0] >= since]
        return unwrapped(max(ends)[1], self._seal) if ends else None

    def close(self) -> None:
        for stem in list(self._journals):
            self._close_journal(stem)
        self._order.close()

    def _find(self, places: Places) -> tuple[Found, list[str]]:
        """What is to be taken for the document, and what has to be said about it."""
        primary = self._opened(file_at(places.document))
        if primary.is_good:
            return primary, []
        backup = self._opened(file_at(places.backup))
        if backup.is_good:
            return backup, [f"it {primary.problem}, its backup is taken"]
        if primary is MISSING and backup is MISSING:
            return MISSING, []
        return MISSING, [f"it {primary.problem}, its backup {backup.problem}", "only its journal is taken"]

    def _opened(self, found: Found) -> Found:
        try:
            return replace(found, content=opened(found.content, self._seal)) if found.is_good else found
        except ValueError:
            return DAMAGED

    def _journal(self, places: Places, name: str) -> Journal:
        """The one to append to, open."""
        if (journal := self._journals.get(places.stem)) and journal.path.exists():
            self._journals.move_to_end(places.stem)
            return journal
        self._close_journal(places.stem)
        self._prepare(places, name)
        if says_purged(head(places.document)):
            self._finish_purge(places, file_at(places.document))
        latest = generation(places)
        path = places.journals[latest % 2]
        journal = self._journals[places.stem] = Journal(path, open_private(path, os.O_APPEND), latest)
        if len(self._journals) > MOST_OPEN:
            self._close_journal(next(iter(self._journals)))
        return journal

    def _close_journal(self, stem: str) -> None:
        if journal := self._journals.pop(stem, None):
            os.close(journal.file)

    def _finish_purge(self, places: Places, found: Found) -> None:
        """A kill may have come between writing the document and removing what it is to be rid of."""
        with suppress(OSError):
            is_left = any(path.exists() for path in (places.backup, *places.journals))
            if is_left and found.is_purged and not records(places, found.generation)[0]:
                self._drop_older(places)

    def _drop_older(self, places: Places) -> None:
        for path in _kept_of(places):
            remove(path)

    def _prepare(self, places: Places, name: str) -> None:
        """Makes the folders, and clears away what a kill left half written."""
        if not (self._is_ready and places.temporary.parent.exists()):  # somebody may have removed it
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._folder / OWN).mkdir(mode=0o700, exist_ok=True)
            for path in (places.backup, places.journals[0], places.temporary, places.true_name):
                path.parent.mkdir(mode=0o700, exist_ok=True)
            for left in places.temporary.parent.iterdir():
                remove(left)
            self._is_ready = True
        if name_of(places.stem) is None and not places.true_name.exists():
            put(places.true_name, name.encode("utf-8", "surrogatepass"))

    def _stems(self) -> Iterator[str]:
        """The one last written or appended to first; what is not in the list of their order comes last, by its time."""
        ordered = self._order.newest_first()
        there = {file.removesuffix(SUFFIX) for file in files(self._folder) if file.endswith(SUFFIX)}
        journals = self._folder / OWN / "journal"
        for stem in ordered:
            if stem in there or exists(journals / f"{stem}.0") or exists(journals / f"{stem}.1"):
                yield stem
        others = there.difference(ordered)
        if not ordered:
            others |= {file[:-2] for file in files(journals)}
        yield from sorted(others, key=lambda stem: time_of(self._folder, stem), reverse=True)

    def _name_of(self, stem: str) -> str | None:
        if name := name_of(stem):
            return name
        with suppress(OSError, UnicodeDecodeError):
            name = (self._folder / OWN / "names" / stem).read_bytes().decode("utf-8", "surrogatepass")
            return name if places_of(self._folder, name or stem).stem == stem else None
        return None


def _kept_of(places: Places) -> list[Path]:
    """All that there is of a document but itself and its name."""
    spare = places.temporary.with_name(f"{places.stem}.backup")
    return [*aside(places.document), places.backup, *places.journals, places.temporary, spare]


@contextmanager
def _refusing(what: str, done: str) -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"{what} could not be {done}: {error.strerror or error}.") from error
