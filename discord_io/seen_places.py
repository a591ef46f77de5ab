"""The guilds that the bot is in, with their channels and threads, from discord.py's cache."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import discord

from discord_io.incoming_messages import MessageReader
from discord_io.who_may_read import SEES, has_rules, needed_to_read
from place import SeenPlace
from place_settings.fields import Level


class SeenPlaces:
    """client: connected. reader: knows which titles of threads may be shown."""

    def __init__(self, client: discord.Client, reader: MessageReader) -> None:
        self._client = client
        self._reader = reader

    def guilds(self) -> Mapping[int, str]:
        """The names of the guilds, by id."""
        return {guild.id: guild.name or "" for guild in self._client.guilds}

    def places(self, guild_id: int) -> Sequence[SeenPlace]:
        """All places of a guild in Discord's order: channels after their category, threads after their channel."""
        if (guild := self._client.get_guild(guild_id)) is None:
            return []
        places: list[SeenPlace] = []
        threads: defaultdict[int, list[discord.Thread]] = defaultdict(list)
        for thread in guild.threads:
            threads[thread.parent_id].append(thread)
        for category, channels in guild.by_category():
            category_id = category.id if category else None
            if category:
                places.append(SeenPlace(category.id, Level.CATEGORY, "category", category.name))
            for channel in channels:
                kind = channel.type.name.replace("_", " ")
                places.append(SeenPlace(channel.id, Level.CHANNEL, kind, channel.name, category_id=category_id))
                places += (
                    SeenPlace(
                        thread.id,
                        Level.THREAD,
                        thread.type.name.replace("_", " "),
                        self._reader.title(thread),
                        parent_id=channel.id,
                        category_id=category_id,
                        owner_id=thread.owner_id,
                    )
                    for thread in threads.pop(channel.id, ())
                )
        return places

    def latencies(self) -> Mapping[int, float]:
        """The latency of the gateway in seconds, by connected shard."""
        latencies = [(0, self._client.latency)]
        if isinstance(self._client, discord.AutoShardedClient):
            latencies = self._client.latencies
        return {shard_id: seconds for shard_id, seconds in latencies if math.isfinite(seconds)}

    def lacks(self, guild_id: int, place_id: int) -> Sequence[str]:
        """The permissions that the bot lacks to answer in a place, by Discord's names."""
        guild = self._client.get_guild(guild_id)
        channel = guild.get_channel_or_thread(place_id) if guild else None
        if isinstance(channel, discord.ForumChannel):  # where the bot answers in posts
            needed = [SEES, "read_message_history", "send_messages_in_threads"]
        elif has_rules(channel):
            writes = "send_messages_in_threads" if isinstance(channel, discord.Thread) else "send_messages"
            needed = [*needed_to_read(channel), writes]
        else:
            return ()
        allowed = channel.permissions_for(channel.guild.me)
        return [name.replace("_", " ").title().replace(" In ", " in ") for name in needed if not getattr(allowed, name)]
