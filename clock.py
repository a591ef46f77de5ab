"""The clock that is given to whatever needs the time, so that tests can turn it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Returns the time, with its time zone."""


def utc_now() -> datetime:
    """The machine's time."""
    return datetime.now(UTC)
