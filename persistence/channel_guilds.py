"""Stores the guild of each channel of which anything is kept, so that each shard's state can be found.

Only where several processes share the shards; else only transcripts store the guilds of their channels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import orjson

from shards import Shards
from storage.store import Key

GUILD_OF = "guild_of"
"""The kind of the rows. There is one also for a channel whose transcript has the guild."""


class ChannelGuilds:
    """The guilds of channels. note() and rows() are only for where several processes share the shards.

    look: returns the guild of a channel from discord.py's cache; 0: direct messages; None: not there.
    """

    def __init__(self, shards: Shards, look: Callable[[int], int | None]) -> None:
        self._shards = shards
        self._look = look
        self._known: dict[int, int] = {}
        self._stored: set[int] = set()

    def note(self, channel_id: int, guild_id: int) -> None:
        self._known[channel_id] = guild_id

    def add(self, stored: Mapping[int, int], told: Mapping[int, int], kept: Mapping[int, object]) -> None:
        """Adds guilds of further shards' channels. stored: those with a row; told: those without. kept: the channels
        of which anything is kept; others are ignored."""
        self._stored |= stored.keys() & kept.keys()
        self._known |= {
            channel_id: found[channel_id] for found in (told, stored) for channel_id in found.keys() & kept.keys()
        }

    def known(self, channel_id: int) -> int:
        """The guild of a channel; 0: unknown."""
        return self._known.get(channel_id, 0)

    def is_ours(self, channel_id: int) -> bool:
        """Whether this process has the channel's shard, or nobody knows which shard that is."""
        return self._shards.are_all or (guild_id := self.guild(channel_id)) is None or self._shards.has(guild_id)

    def leave(self, channel_id: int) -> None:
        """Drops a channel, as another process serves it from now on."""
        self._known.pop(channel_id, None)
        self._stored.discard(channel_id)

    def rows(self, channel_ids: Collection[int], kept: Collection[int]) -> dict[Key, bytes | None]:
        """The rows to write when these channels are stored. kept: the channels of which anything is kept."""
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
        """Stores all rows again, as the store has lost them."""
        self._stored.clear()

    def guild(self, channel_id: int) -> int | None:
        """The guild of a channel; None: unknown."""
        known = self._known.get(channel_id)
        return self._look(channel_id) if known is None else known
