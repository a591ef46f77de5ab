"""Which documents of a folder were written or appended to last: a list of their stems, the newest at its end.

Asking the system for the times of 10,000 files would take longer than reading this. By it a document is found, too,
that has only a journal as yet. Losing it costs one slow listing, so it is no error where it cannot be written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GONE = "/"  # before a stem; never in one
LEAST_LINES = 2_000


class Order:
    """Nothing is opened before it is first used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._newest = ""
        self._file: int | None = None
        self._lines = 0
        self._is_unflushed = False
        self._most_lines = LEAST_LINES

    def note(self, stem: str) -> None:
        """It was written or appended to just now."""
        if stem == self._newest:
            return
        with suppress(OSError):
            self._add(stem)
            self._newest = stem

    def drop(self, stem: str) -> None:
        """It was deleted."""
        self._newest = ""
        with suppress(OSError):
            self._add(GONE + stem)

    def flush(self) -> None:
        """Has on disk for certain what was noted."""
        if self._file is not None and self._is_unflushed:
            os.fsync(self._file)
            self._is_unflushed = False

    def newest_first(self) -> list[str]:
        return list(_newest_first(self._read()))

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file, self._newest = None, ""

    def _add(self, line: str) -> None:
        if self._file is None or self._lines >= self._most_lines:
            self._file = self._opened()
        os.write(self._file, f"{line}\n".encode())
        self._is_unflushed = True
        self._lines += 1

    def _opened(self) -> int:
        """Its descriptor, having left out what is said twice if that is most of it."""
        self.close()
        said = self._read()
        stems = list(_newest_first(said))
        if len(said) > 2 * len(stems) + LEAST_LINES // 2:
            shorter = self._path.with_suffix(".new")
            shorter.write_text("".join(f"{stem}\n" for stem in reversed(stems)), "utf-8", "replace")
            shorter.chmod(0o600)
            shorter.replace(self._path)
            said = stems
        self._lines, self._most_lines = len(said), 2 * len(stems) + LEAST_LINES
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _read(self) -> list[str]:
        try:
            return self._path.read_text("utf-8", "replace").split("\n")[:-1]
        except OSError:
            return []


def _newest_first(lines: list[str]) -> Iterator[str]:
    gone = set()
    for line in dict.fromkeys(reversed(lines)):
        if line.startswith(GONE):
            gone.add(line[1:])
        elif line and line not in gone:
            yield line
