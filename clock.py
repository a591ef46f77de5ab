"""The clock that is given to whatever needs the time, so that tests can turn it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

Clock = Callable[[], datetime]
"""Returns the time, with its time zone."""

utc_now: Clock = partial(datetime.now, UTC)
"""The machine's time."""
