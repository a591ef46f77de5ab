"""Whose direct messages are answered, and who was told today that theirs are not."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import date, datetime
from functools import partial
from typing import Literal

from pydantic import JsonValue, TypeAdapter

MAX_TOLD = 10_000  # people a day; beyond that the first are forgotten, and may be told again

Mode = Literal["off", "listed", "open"]
STORED = TypeAdapter(tuple[date | None, list[int]])


class DirectMessages:
    """mode: whose are answered; off: nobody's; listed: these users'; open: everybody's. on_change: called when somebody
    is told."""

    def __init__(self, mode: Mode, users: Collection[int], on_change: Callable[[], None]) -> None:
        self.mode = mode
        self._users = users
        self._on_change = on_change
        self._day: date | None = None
        self._told: dict[int, None] = {}

    def takes(self, user_id: int) -> bool:
        return self.mode == "open" or (self.mode == "listed" and user_id in self._users)

    def tells(self, user_id: int, now: datetime) -> bool:
        """Whether somebody whose messages are not answered is to be told so now: once a day (UTC)."""
        if self._day != now.date():
            self._day, self._told = now.date(), {}
        if user_id in self._told:
            return False
        if len(self._told) >= MAX_TOLD:
            del self._told[next(iter(self._told))]
        self._told[user_id] = None
        self._on_change()
        return True

    def to_store(self) -> Callable[[], bytes]:
        """Copies who was told today. Returns a function that encodes the copy as JSON for restore()."""
        return partial(STORED.dump_json, (self._day, [*self._told]))

    def restore(self, stored: JsonValue) -> None:
        """Adds what to_store() encoded. Raises ValueError for what cannot be read."""
        day, told = STORED.validate_python(stored)
        if day is None or (self._day is not None and day < self._day):
            return
        before = self._told if day == self._day else {}
        self._day, self._told = day, dict.fromkeys([*told, *before][-MAX_TOLD:])
