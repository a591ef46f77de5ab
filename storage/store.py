"""What a store is: the port behind which whatever has to survive a restart is kept, as rows of bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pydantic import ValidationError

ANY = 2**63 - 1  # above all ids


class StoreError(OSError):
    """What is stored cannot be reached or written. Its text is one sentence."""


class WrongKeyError(StoreError):
    """What is stored is sealed, and no key at hand opens it."""


class LostLeaseError(StoreError):
    """Another process has what this one held, which stores nothing any more."""


def unquoted(error: Exception) -> str:
    """What is wrong with what is stored, in a line that quotes nothing of it."""
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:200]
    return " ".join(str(error).split())[:200]


class Key(NamedTuple):
    """A row's place. channel: 0 for what is of no channel. id: of a message; 0 for what a channel has only one of."""

    kind: str
    channel: int
    id: int = 0


class Row(NamedTuple):
    """value: None where what is stored there is damaged, or was stored in another row's place."""

    channel: int
    id: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Stored:
    """A session's document, None where there is none; its records since then, oldest first; and what was damaged."""

    content: bytes | None
    records: tuple[bytes, ...] = ()
    notice: str = ""


class EmptiedError(StoreError):
    """All that was stored is gone; what is written from now on stays."""


Opened = Callable[[bytes], bytes]
"""Gives what is stored in plain words."""


class Leases(Protocol):
    """What this process holds of what several share, each under a key of Redis in which its holder's name stands."""

    @property
    def names(self) -> Mapping[str, str]:
        """The keys, and this process' name in each. Read in another thread: replaced as a whole, never changed."""


class Store(Protocol):
    """Rows of JSON by kind, channel and id. One thread at a time. Raises StoreError for what it cannot do."""

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
        """The rows of a kind, in all channels, some or one, by their ids, the highest first if newest.

        since, before: only ids from the one up to, and without, the other. Damage is logged. Raises WrongKeyError.
        """

    def channels(self, kind: str) -> list[int]:
        """Those with rows of this kind, the one with the newest id last."""

    def kinds(self) -> list[str]:
        """Those of which there are rows."""

    def is_sealed(self) -> bool:
        """Whether any row is."""

    def write(self, changes: Mapping[Key, bytes | None]) -> None:
        """Stores these values and deletes where there is None, all of it or nothing: it survives a kill."""

    def sync(self) -> None:
        """Has on disk for certain what was written, and nothing any more of what was replaced or deleted.

        Raises EmptiedError where it has lost all that it had.
        """

    def set_aside(self) -> str:
        """Moves all rows to where drop_aside() deletes them, and says where that is."""

    def drop_aside(self, before: float) -> None:
        """Deletes what was set aside as damaged and last written before this time, in seconds since 1970."""

    def close(self) -> None: ...
