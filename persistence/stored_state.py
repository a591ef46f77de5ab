"""Reads what earlier processes stored: of channels, guilds and shards, and of the processes themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from persistence.channel_guilds import GUILD_OF
from shards import DIRECT, Shards
from storage.store import Store

Encode = Callable[[], bytes]
"""Encodes a snapshot as JSON; called in the writer's thread, so what it refers to must not change."""
ByKind = dict[str, Any]
"""Snapshots by their kind."""
Listed = Mapping[str, Sequence[int]]
"""The channels that have a snapshot, by its kind."""
SHARD_COUNT = "shard_count"  # the row with the number of shards at the time; null: one process had all


def as_json(value: Any) -> Encode | None:
    return None if value is None else partial(orjson.dumps, value)


class Kept:
    """Keeps state of which snapshots are stored: of each channel, guild or shard, or, with 0, of the process."""

    def snapshot(self, channel_id: int) -> Encode | None:  # noqa: ARG002 - most keep nothing over a restart
        """The current state; None: nothing to store."""
        return None

    def restore(self, channel_id: int, stored: Any) -> None:
        """Restores what snapshot() encoded. Raises ValueError for what cannot be read.

        With 0 it is called once for each earlier process, and adds that process' state to the current one.
        """

    def leave(self, channel_id: int) -> None:
        """Drops a channel from memory, as another process serves it from now on; changes nothing in Discord. Never
        called with 0."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """The stored state of earlier processes. channels: snapshots by channel, the last used first. transcripts: the
    guild of each channel with a transcript.

    process: snapshots of processes, by the id of their rows: the shard that each process had first. shards: by shard,
    its snapshots by the id of their rows. lacking: rows that are still to be stored.
    """

    process: Mapping[int, ByKind]
    shards: Mapping[int, Mapping[int, ByKind]]
    channels: Mapping[int, ByKind]
    transcripts: Mapping[int, int]
    lacking: Mapping[int, ByKind] = field(default_factory=dict)

    def has(self, kind: str) -> bool:
        """Whether any shard has a snapshot of this kind."""
        return any(kind in by_kind for rows in self.shards.values() for by_kind in rows.values())


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of snapshots, with who keeps each. of_guilds: those of of_channels whose rows are by guild id.

    if_damaged: what is used in place of a damaged snapshot, by its kind.
    """

    of_channels: dict[str, Kept] = field(default_factory=dict)
    of_guilds: set[str] = field(default_factory=set)
    of_shards: dict[str, Kept] = field(default_factory=dict)
    of_process: dict[str, Kept] = field(default_factory=dict)
    if_damaged: dict[str, str | None] = field(default_factory=dict)

    def listed(self, store: Store) -> Listed:
        """The channels that have a snapshot, by its kind.

        Read it before the guilds: other processes write meanwhile, and a channel's guild is stored with its snapshot.
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
        """Reads what is stored of these shards; None: all, listed or not. guilds: by channel; 0: unknown."""
        wanted = [DIRECT] if shard_ids is None else shard_ids

        def shard_of(row_id: int) -> int:
            """The shard of a row, also of one that was stored when there were more shards."""
            return DIRECT if shard_ids is None else row_id % (shards.count or 1)

        found = self._of_channels(store, listed, guilds, shards, shard_ids)
        latest_first = [channel for channel in reversed(transcripts) if channel in found]
        of_shards = _by_id(store, self.of_shards)
        count = None if shard_ids is None else shards.count or 1
        before = next((orjson.loads(row.value) for row in store.read(SHARD_COUNT, 0) if row.value is not None), None)
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
    """Reads the guilds of the listed channels: those that have a row of their own, and those found in the channel's
    snapshots, as a process that had all shards stored them. known: the channels whose transcript has the guild.
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


def _lacking(of_shards: Mapping[int, ByKind], count: int, before: int | None) -> dict[int, ByKind]:
    """The rows that shards lack after their number has changed. before: the earlier number, where known.

    A shard that has guilds of other shards now gets copies of their rows, under ids of its own; a shard without any
    row gets copies of all. All are made at once, as rows are overwritten as soon as their shards are served.
    """
    without = set(range(count)) - {id_ % count for id_ in of_shards}
    shared = math.gcd(count, before or count)  # an old and a new shard share guilds if they are equal modulo this
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
