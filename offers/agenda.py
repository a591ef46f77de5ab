"""When which channel is to be looked at: what is due costs, what waits costs nothing."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from datetime import datetime

FEW = 10


class Agenda:
    """One time for each channel, the earliest that it was given."""

    def __init__(self) -> None:
        self._heap: list[tuple[datetime, int]] = []
        self._at: dict[int, datetime] = {}

    def __len__(self) -> int:
        return len(self._heap)

    def wake(self, channel_id: int, at: datetime | None) -> None:
        """The channel is to be looked at then, at the latest; None: no need."""
        planned = self._at.get(channel_id)
        if at is not None and (planned is None or at < planned):
            self._at[channel_id] = at
            heapq.heappush(self._heap, (at, channel_id))
            if len(self._heap) > 2 * len(self._at) + FEW:  # most of it was overtaken by earlier times
                self._heap = [(time, channel) for channel, time in self._at.items()]
                heapq.heapify(self._heap)

    def due(self, now: datetime) -> list[int]:
        """The channels whose time has come, each once, earliest first; they have none any more."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, channel_id = heapq.heappop(self._heap)
            if self._at.get(channel_id) == at:  # else it was woken earlier since
                del self._at[channel_id]
                found.append(channel_id)
        return found

    def wake_all(self, channel_ids: Iterable[int], now: datetime) -> None:
        """All are due now, whatever was planned."""
        self._at = dict.fromkeys(channel_ids, now)
        self._heap = [(now, channel_id) for channel_id in self._at]
