"""A holder of state that is kept once for the process, whatever shards it has."""

from __future__ import annotations

from typing import Any, Protocol

from persistence.holders import Holder
from persistence.stored_state import Encode


class Stored(Protocol):
    def to_store(self) -> Encode: ...

    def restore(self, stored: Any) -> None: ...


class ProcessHolder(Holder):
    """Stores an object's state once for the process."""

    def __init__(self, kept: Stored) -> None:
        self._kept = kept

    def snapshot(self, channel_id: int) -> Encode | None:  # noqa: ARG002 - there is one
        return self._kept.to_store()

    def restore(self, channel_id: int, stored: Any) -> None:  # noqa: ARG002
        self._kept.restore(stored)
