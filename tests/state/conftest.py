"""What the tests of sessions share."""

from __future__ import annotations

import pytest

NAMES = (
    "123",
    "../../etc/passwd",
    "..",
    ".",
    ".hidden",
    "a/b\\c",
    "nul\0byte",
    "x" * 300,
    "é" * 300,
    "🦊 fox",
    "%2E%2E",
    "CON",
    "a.json",
    "-dash",
    " ",
    "a=b",
    "line\nfeed",
)


@pytest.fixture
def _hasty_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for the disk, where a test saves thousands of times."""
    monkeypatch.setattr("os.fsync", lambda _file: None)
