"""What earlier processes stored, as it is read: of channels, guilds and shards, and of the processes themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from persistence.channel_guilds import GUILD_OF
from storage.store import Store

Encode = Callable[[], bytes]
"""Gives a snapshot as JSON; called in the writer's thread, so what it holds must not change."""
ByKind = dict[str, Any]
"""Snapshots by their kind."""


class Kept(Protocol):
    """Of which snapshots are taken: of each channel, guild or shard, or, with 0, of the process."""

    def snapshot(self, channel_id: int) -> Encode | None:
        """As of now; None: there is nothing to keep."""

    def restore(self, channel_id: int, stored: Any) -> None:
        """Takes back what snapshot() gave. Raises ValueError for what cannot be read.

        Of the process it is called for what each of several left, and adds that to what there is.
        """


@dataclass(frozen=True, slots=True)
class StoredState:
    """What there is from before. channels: by their ids, the one used last first; transcripts: with their guilds.

    process: what processes kept, by the id of its rows, which is the shard that each of them had first.
    shards: of each shard what was kept of it, by the id of the rows; where that is nothing, what was kept of others.
    """

    process: Mapping[int, ByKind]
    shards: Mapping[int, Mapping[int, ByKind]]
    channels: Mapping[int, ByKind]
    transcripts: Mapping[int, int]

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

    def of_channel(self, store: Store, channels: Callable[[str], Collection[int] | None]) -> dict[int, ByKind]:
        """What is stored of channels. channels: gives those to read of a kind; None: all."""
        found: dict[int, ByKind] = {}
        for kind in self.of_channels:
            for row in store.read(kind, channels(kind)):
                found.setdefault(row.channel, {})
                value = self.if_damaged.get(kind) if row.value is None else orjson.loads(row.value)
                if value is not None:
                    found[row.channel][kind] = value
        return found

    def of_processes(self, store: Store, is_wanted: Callable[[int], bool]) -> dict[int, ByKind]:
        """What processes stored of themselves. is_wanted: asked with the ids of rows."""
        return _by_id(store, self.of_process, is_wanted)

    def of_each_shard(
        self, store: Store, shard_ids: Collection[int], shard_of: Callable[[int], int]
    ) -> dict[int, dict[int, ByKind]]:
        """What is stored of these shards. shard_of: gives that of a row's id."""
        rows = _by_id(store, self.of_shards, lambda _: True)
        own = {s: {id_: by_kind for id_, by_kind in rows.items() if shard_of(id_) == s} for s in shard_ids}
        return {shard_id: of_shard or rows for shard_id, of_shard in own.items()}


def channels_wanted(
    store: Store, kinds: Kinds, guilds: Mapping[int, int], is_wanted: Callable[[int], bool]
) -> Callable[[str], Collection[int]]:
    """Gives the channels of a kind whose guilds are wanted. guilds: as far as they are stored; else it is as in 0."""

    def channels(kind: str) -> list[int]:
        if kind in kinds.of_guilds:
            return [guild_id for guild_id in store.channels(kind) if is_wanted(guild_id)]
        return [channel_id for channel_id in store.channels(kind) if is_wanted(guilds.get(channel_id, 0))]

    return channels


def read_guilds(store: Store) -> dict[int, int]:
    """The guilds of the channels of which that is stored beside the transcripts."""
    return {row.channel: orjson.loads(row.value) for row in store.read(GUILD_OF) if row.value}


def _by_id(store: Store, kinds: Collection[str], is_wanted: Callable[[int], bool]) -> dict[int, ByKind]:
    found: dict[int, ByKind] = {}
    for kind in kinds:
        for row in store.read(kind, 0):
            if row.value is not None and is_wanted(row.id):
                found.setdefault(row.id, {})[kind] = orjson.loads(row.value)
    return found
