"""What the tests of persistence share."""

from __future__ import annotations

from pathlib import Path

import pytest

from persistence.snapshots import Snapshots
from state.consent import Consent, Forgotten
from state.optout import OptOut
from storage.sqlite_store import SQLiteStore
from storage.store import StoreError
from tests.support.redis_server import redis_url

__all__ = ["redis_url"]


def open_snapshots(folder: Path, forgotten: Forgotten | None = None) -> Snapshots:
    """As a process has them that keeps its rows in this folder."""
    return Snapshots(lambda: SQLiteStore(folder / "db"), Consent(OptOut(), forgotten or Forgotten()))


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nothing can be written until it is undone."""

    def fail(*_: object) -> None:
        raise StoreError("no room")

    monkeypatch.setattr(SQLiteStore, "write", fail)
    return monkeypatch
