"""The guild of each channel of which anything is kept, by which what is stored is found again shard by shard.

Only where several processes have the shards: the rows of one that has all tell of transcripts' channels alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import orjson

from shards import DIRECT, Shards
from storage.store import Key

GUILD_OF = "guild_of"
"""The kind of the rows; of a channel with a transcript that tells it, too."""


class ChannelGuilds:
    """look: gives the guild of a channel as Discord told it, 0 for direct messages, None where it did not."""

    def __init__(self, shards: Shards, look: Callable[[int], int | None]) -> None:
        self._shards = shards
        self._look = look
        self._known: dict[int, int] = {}
        self._stored: set[int] = set()

    def note(self, channel_id: int, guild_id: int) -> None:
        if not self._shards.are_all:
            self._known[channel_id] = guild_id

    def add(self, stored: Mapping[int, int], told: Mapping[int, int], kept: Mapping[int, object]) -> None:
        """What was stored of further shards, and what is not stored yet. kept: those of which anything is, by now."""
        self._stored |= stored.keys() & kept.keys()
        self._known |= {
            channel_id: found[channel_id] for found in (told, stored) for channel_id in found.keys() & kept.keys()
        }

    def known(self, channel_id: int) -> int:
        """0: where it was not stored, nor said here."""
        return self._known.get(channel_id, 0)

    def is_ours(self, channel_id: int) -> bool:
        """Whether this process has the channel's shard; also where nobody knows which that is."""
        if self._shards.are_all:
            return True
        guild_id = self.guild(channel_id)
        return guild_id is None or self._shards.has(guild_id)

    def leave(self, channel_id: int) -> None:
        """Another process has it from now on."""
        self._known.pop(channel_id, None)
        self._stored.discard(channel_id)

    def rows(self, channel_ids: Collection[int], kept: Collection[int]) -> dict[Key, bytes | None]:
        """The rows that change as these channels are stored. kept: those of which anything is."""
        if self._shards.are_all:
            return {}
        rows: dict[Key, bytes | None] = {}
        for channel_id in channel_ids:
            if channel_id not in kept:
                self._known.pop(channel_id, None)
                if channel_id in self._stored:
                    self._stored.discard(channel_id)
                    rows[Key(GUILD_OF, channel_id)] = None
            elif channel_id not in self._stored and (guild_id := self.guild(channel_id)) is not None:
                self._stored.add(channel_id)
                self._known[channel_id] = guild_id
                rows[Key(GUILD_OF, channel_id)] = orjson.dumps(guild_id)
        return rows

    def store_anew(self) -> None:
        """What was stored is gone."""
        self._stored.clear()

    def guild(self, channel_id: int) -> int | None:
        """None: nobody knows it."""
        known = self._known.get(channel_id)
        return self._look(channel_id) if known is None else known


class Wanted:
    """What is to be read of these shards. shard_ids: None: all. guilds: of channels, as far as that is stored."""

    def __init__(self, shards: Shards, shard_ids: Collection[int] | None) -> None:
        self._shards = shards
        self._shard_ids = shard_ids

    def guild(self, guild_id: int) -> bool:
        return self._shard_ids is None or self._shards.of(guild_id) in self._shard_ids

    def shard_of(self, row_id: int) -> int:
        """The shard of a row that is one's, or of a process: also of one that was stored when there were more."""
        return DIRECT if self._shard_ids is None else row_id % (self._shards.count or 1)

    def row(self, row_id: int) -> bool:
        return self._shard_ids is None or self.shard_of(row_id) in self._shard_ids

    @property
    def shards(self) -> Collection[int]:
        return [DIRECT] if self._shard_ids is None else self._shard_ids
