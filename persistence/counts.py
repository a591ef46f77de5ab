"""Stores the counts of each guild, at most once a minute."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from clock import Clock
from counts import Counts, Faults
from persistence.holders import Forget, Holder, Holders
from persistence.snapshots import Snapshots
from persistence.stored_state import Encode
from shards import Shards

COUNTS, THIS_HOUR = "counts", "counts_of_this_hour"
EVERY = timedelta(minutes=1)


class CountsHolder(Holder):
    """The counts of past hours and days, which change once an hour. Drops all counts of guilds that the bot left."""

    def __init__(self, counts: Counts, faults: Faults, snapshots: Snapshots, shards: Shards, clock: Clock) -> None:
        self._shards = shards
        self._counts = counts
        self._faults = faults
        self._snapshots = snapshots
        self._clock = clock
        self._stored_at = clock()

    def forget(self, what: Forget) -> None:
        if what.guild_id is not None:
            self._left(what.guild_id)

    def connected(self, shard_id: int, guild_ids: set[int]) -> None:
        """Drops the counts of all guilds on a shard but these, which the bot is still in."""
        for guild_id in self._counts.guild_ids - guild_ids:
            if self._shards.of(guild_id) == shard_id:
                self._left(guild_id)

    def _left(self, guild_id: int) -> None:
        self._counts.left(guild_id)
        self._faults.left(guild_id)
        self.store()

    def snapshot(self, channel_id: int) -> Encode | None:  # noqa: ARG002 - there is one
        return self._counts.before()

    def restore(self, channel_id: int, stored: Any) -> None:  # noqa: ARG002
        self._counts.restore(stored)

    def sweep(self) -> None:
        """Stores the counts if they have changed and a minute has passed."""
        is_due = self._counts.has_changed or self._counts.has_turned
        if is_due and abs(self._clock() - self._stored_at) >= EVERY:
            self.store()

    def store(self) -> None:
        """Queues the counts to be stored."""
        self._stored_at = self._clock()
        self._snapshots.touch(THIS_HOUR)
        if self._counts.has_turned:
            self._snapshots.touch(COUNTS)


class ThisHourHolder(Holder):
    """The counts of the current hour."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def snapshot(self, channel_id: int) -> Encode | None:  # noqa: ARG002 - there is one
        return self._counts.this_hour()

    def restore(self, channel_id: int, stored: Any) -> None:  # noqa: ARG002
        self._counts.restore(stored)


def register_counts(
    holders: Holders,
    counts: Counts,
    faults: Faults,
    snapshots: Snapshots,
    shards: Shards,
    clock: Clock,
) -> CountsHolder:
    """Registers the holders of the counts."""
    holder = CountsHolder(counts, faults, snapshots, shards, clock)
    holders.register(holder, of_process=COUNTS)
    holders.register(ThisHourHolder(counts), of_process=THIS_HOUR)
    return holder
