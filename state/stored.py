"""What a store of documents is: the port that whatever has to survive a restart is kept behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class StoreError(OSError):
    """What is stored cannot be reached or written. Its text is one sentence."""


class WrongKeyError(StoreError):
    """What is stored is sealed, and no key at hand opens it."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A document as it was found. content: None where there is none.

    records: what was appended since that content was written, oldest first. notice: what was damaged and what was done
    about it, in one line; empty where all was well.
    """

    content: bytes | None
    records: tuple[bytes, ...] = ()
    notice: str = ""


class Store(Protocol):
    """Documents of one kind by name, each a JSON object with a journal of records behind it. One thread at a time.

    A name is any text but the empty one, which is refused with a ValueError. All raise StoreError where they cannot do
    what they are asked to.
    """

    def read(self, name: str) -> Stored:
        """Damage is no error: what can be read is given, and the notice says what could not.

        Raises WrongKeyError, and StoreError where nothing can be read at all.
        """

    def write(self, name: str, content: bytes, *, purge: bool = False) -> None:
        """Replaces the document. Its records until now are contained in what is written, and count no more.

        purge: nothing of what was before stays: no backup, no older journal, nothing set aside.
        Raises ValueError for what is no JSON object.
        """

    def append(self, name: str, record: bytes) -> None:
        """Adds any bytes to the journal: they survive the end of the process, and a power cut once flushed."""

    def flush(self) -> None:
        """Has on disk for certain what was appended."""

    def reject(self, name: str) -> None:
        """Sets the document aside as if it were damaged: the reader found that it is not what it should be."""

    def drop_aside(self) -> None:
        """Deletes all that was set aside, of whatever document: somebody's words may be in it that are to be gone."""

    def delete(self, name: str) -> bool:
        """Deletes the document, its records, and all that was kept of them. Gives whether there was anything."""

    def names(self, limit: int | None = None, offset: int = 0) -> list[str]:
        """Of all documents, the one last written or appended to first."""

    def peek(self, name: str, size: int) -> bytes:
        """The first bytes of the document, unchecked; empty where there is none."""

    def latest(self, name: str) -> bytes | None:
        """The record that was appended last; None where there is none since the document was written."""

    def close(self) -> None: ...
