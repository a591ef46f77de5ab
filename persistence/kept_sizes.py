"""Counts and measures what is kept, so that the owner can see whether the disk fills up."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from followup.decision_file import FILE_NAME
from persistence.open_store import DATABASE
from persistence.snapshots import Snapshots
from storage.sqlite_store import ASIDE
from storage.state_key import KEY_FILE

FILES = {
    DATABASE: "the database: transcripts, conversations, settings, figures",
    FILE_NAME: "the decision log",
    ASIDE: "damaged data, set aside",
}
BESIDE = ("", "-wal", "-shm", "-journal")  # the endings of SQLite's files


@dataclass(frozen=True, slots=True)
class Sizes:
    """files: for each, what it is and its size in bytes. channels: how many have a snapshot, by its kind. transcripts:
    how many channels have one. free: bytes left on the disk; None: unknown. key: where the encryption key is.
    """

    files: Mapping[str, tuple[str, int]]
    channels: Mapping[str, int]
    transcripts: int
    free: int | None
    key: str


class KeptSizes:
    """Measures what is kept. has_own_key: whether the owner has set STATE_KEY, so that no key lies beside the data."""

    def __init__(
        self, state_dir: Path, snapshots: Snapshots, *, in_redis: bool, has_own_key: bool, retention_days: int
    ) -> None:
        self.state_dir = state_dir
        self.in_redis = in_redis
        self.retention_days = retention_days
        self._snapshots = snapshots
        self._has_own_key = has_own_key

    async def measured(self) -> Sizes:
        files, free = await asyncio.to_thread(self._files)
        if self._has_own_key:
            key = "STATE_KEY, apart from the data"
        elif self.in_redis:
            key = "made at the first start, in Redis beside the data"
        elif (self.state_dir / KEY_FILE).exists():
            key = f"{KEY_FILE}, beside the data"
        else:
            key = "none yet: it is made when the first data is stored"
        return Sizes(files, self._snapshots.counts(), self._snapshots.transcripts, free, key)

    def _files(self) -> tuple[dict[str, tuple[str, int]], int | None]:
        found = {}
        for name, about in FILES.items():
            paths = [self.state_dir / f"{name}{ending}" for ending in BESIDE]
            paths += [*(self.state_dir / name).rglob("*")] if name == ASIDE else []
            size = 0
            for path in paths:
                with suppress(OSError):
                    size += path.stat().st_size if path.is_file() else 0
            if size:
                found[name] = about, size
        try:
            free = shutil.disk_usage(self.state_dir).free
        except OSError:
            free = None
        return found, free
