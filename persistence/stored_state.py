"""What earlier processes stored, as it is read: of channels, guilds and shards, and of the processes themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import orjson

from persistence.channel_guilds import GUILD_OF
from shards import DIRECT, Shards
from storage.store import Store

Encode = Callable[[], bytes]
"""Gives a snapshot as JSON; called in the writer's thread, so what it holds must not change."""
ByKind = dict[str, Any]
"""Snapshots by their kind."""
Listed = Mapping[str, Sequence[int]]
"""Channels by the kind of what there is of them."""
SHARD_COUNT = "shard_count"  # the row of how many shards those of shards are; null where one process had all


def as_json(value: Any) -> Encode | None:
    return None if value is None else partial(orjson.dumps, value)


class Kept(Protocol):
    """Of which snapshots are taken: of each channel, guild or shard, or, with 0, of the process."""

    def snapshot(self, channel_id: int) -> Encode | None:
        """As of now; None: there is nothing to keep."""

    def restore(self, channel_id: int, stored: Any) -> None:
        """Takes back what snapshot() gave. Raises ValueError for what cannot be read.

        Of the process it is called for what each of several left, and adds that to what there is.
        """

    def leave(self, channel_id: int) -> None:
        """Drops from memory what another process has from now on; nothing changes in Discord. Not of the process."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """What there is from before. channels: by their ids, the one used last first; transcripts: with their guilds.

    process: what processes kept, by the id of its rows, which is the shard that each of them had first.
    shards: of each shard what was kept of it, by the id of the rows. lacking: rows that are still to be stored.
    """

    process: Mapping[int, ByKind]
    shards: Mapping[int, Mapping[int, ByKind]]
    channels: Mapping[int, ByKind]
    transcripts: Mapping[int, int]
    lacking: Mapping[int, ByKind] = field(default_factory=dict)

    def has(self, kind: str) -> bool:
        """Whether there is any of this kind of shards."""
        return any(kind in by_kind for rows in self.shards.values() for by_kind in rows.values())


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of snapshots, and of what each is taken. of_guilds: those of channels that are of guilds, by their ids.

    if_damaged: what is taken in place of one that is damaged.
    """

    of_channels: dict[str, Kept] = field(default_factory=dict)
    of_guilds: set[str] = field(default_factory=set)
    of_shards: dict[str, Kept] = field(default_factory=dict)
    of_process: dict[str, Kept] = field(default_factory=dict)
    if_damaged: dict[str, str | None] = field(default_factory=dict)

    def listed(self, store: Store) -> Listed:
        """The channels of which there is anything, by its kind.

        To be read before their guilds are: where one of these rows is, the guild's is, too, and other processes write.
        """
        return {kind: store.channels(kind) for kind in self.of_channels}

    def read(
        self,
        store: Store,
        transcripts: Mapping[int, int],
        listed: Listed,
        guilds: Mapping[int, int],
        shards: Shards,
        shard_ids: Collection[int] | None,
    ) -> StoredState:
        """What is stored of these shards; None: of all, also what is not listed. guilds: of channels; 0: not stored."""
        wanted = [DIRECT] if shard_ids is None else shard_ids

        def shard_of(row_id: int) -> int:
            """Also of a row from when there were more."""
            return DIRECT if shard_ids is None else row_id % (shards.count or 1)

        found = self._of_channels(store, listed, guilds, shards, shard_ids)
        latest_first = [channel for channel in reversed(transcripts) if channel in found]
        of_shards = _by_id(store, self.of_shards)
        count, before = None if shard_ids is None else shards.count or 1, _shard_count(store)
        lacking = {} if count is None else _lacking(of_shards, count, before)
        rows = of_shards | lacking
        return StoredState(
            {id_: by_kind for id_, by_kind in _by_id(store, self.of_process).items() if shard_of(id_) in wanted},
            {s: {id_: by_kind for id_, by_kind in rows.items() if shard_of(id_) == s} for s in wanted},
            {channel: found[channel] for channel in dict.fromkeys([*latest_first, *found])},
            transcripts,
            lacking if count == before else lacking | {0: {SHARD_COUNT: count}},
        )

    def _of_channels(
        self,
        store: Store,
        listed: Listed,
        guilds: Mapping[int, int],
        shards: Shards,
        shard_ids: Collection[int] | None,
    ) -> dict[int, ByKind]:
        found: dict[int, ByKind] = {}
        for kind in self.of_channels:
            channels = None
            if shard_ids is not None:
                guild_of = (lambda guild_id: guild_id) if kind in self.of_guilds else (lambda c: guilds.get(c, 0))
                channels = [c for c in listed[kind] if shards.of(guild_of(c)) in shard_ids]
            for row in store.read(kind, channels):
                found.setdefault(row.channel, {})
                value = self.if_damaged.get(kind) if row.value is None else orjson.loads(row.value)
                if value is not None:
                    found[row.channel][kind] = value
        return found


def read_guilds(
    store: Store, kinds: Kinds, listed: Listed, known: Collection[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """The guilds of the listed channels of which that is stored beside the transcripts; and those that nothing but what
    is stored of the channel tells, as a process that has all shards left it. known: of which the transcripts tell it.
    """
    stored = {row.channel: orjson.loads(row.value) for row in store.read(GUILD_OF) if row.value}
    told: dict[int, int] = {}
    for kind in kinds.of_channels.keys() - kinds.of_guilds:
        unknown = [c for c in listed[kind] if c not in known and c not in stored]
        for row in store.read(kind, unknown):
            value = None if row.value is None else orjson.loads(row.value)
            if isinstance(value, dict) and (guild_id := value.get("guild_id")):
                told[row.channel] = guild_id
    return stored, told


def _shard_count(store: Store) -> int | None:
    stored = [orjson.loads(row.value) for row in store.read(SHARD_COUNT, 0) if row.value is not None]
    return stored[0] if stored else None


def _lacking(of_shards: Mapping[int, ByKind], count: int, before: int | None) -> dict[int, ByKind]:
    """For shards that have servers of others now, as there were more or fewer, what is stored of those, under ids that
    are theirs; for shards of which nothing is stored all that there is. before: how many there were, where known.

    All at once: what is stored of others is of now as soon as these are taken.
    """
    without = set(range(count)) - {id_ % count for id_ in of_shards}
    shared = math.gcd(count, before or count)  # two shards have servers in common where these remainders are the same
    return {
        s + count * (id_ + 1): by_kind
        for s in range(count)
        for id_, by_kind in of_shards.items()
        if s in without or ((id_ - s) % shared == 0 and (id_ - s) % count)
    }


def _by_id(store: Store, kinds: Collection[str]) -> dict[int, ByKind]:
    found: dict[int, ByKind] = {}
    for kind in kinds:
        for row in store.read(kind, 0):
            if row.value is not None:
                found.setdefault(row.id, {})[kind] = orjson.loads(row.value)
    return found
