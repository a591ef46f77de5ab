"""Who may read a channel's history: the bot has no list of members, and asks Discord for the roles of those who ask."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import discord

from discord_io.discord_wire import FAILED
from discord_io.who_may_read import WithRules, is_read_by_all_of, may_read
from place import Place

# Discord tells some five members of a server a second, and 64 answers may begin at once. Where it tells none for so
# long, it hardly takes the answer either.
LOOK_UP_SECONDS = 15.0


class Readers:
    """Finds out who may read the history of a place, at the moment."""

    def __init__(self, client: discord.Client) -> None:
        self._client = client

    async def newcomers(self, place: Place, people: Collection[int]) -> frozenset[int] | None:
        """Those of these people who may not read the history there; None: the bot does not see the place at the moment,
        as while Discord does not serve its server.

        Asks Discord only where it depends on the roles; those of whom it tells nothing in time count as newcomers.
        """
        if not place.guild_id:
            return frozenset()
        guild = self._client.get_guild(place.guild_id)  # Client.get_channel() would look into every guild
        # Of a thread its channel, whose rules hold there: the thread is unknown once somebody has archived it.
        channel = guild and guild.get_channel(place.parent_id or place.channel_id)
        if guild is None or not isinstance(channel, WithRules):
            return None
        if is_read_by_all_of(channel, channel):
            return frozenset()
        deadline = asyncio.get_running_loop().time() + LOOK_UP_SECONDS  # one for all: an answer to many waits once
        reads = await asyncio.gather(*(_reads(guild, channel, who, deadline) for who in people))
        return frozenset(who for who, may in zip(people, reads, strict=True) if not may)

    def named_now(self, place: Place) -> Place:
        """The place, without a thread's title if that was changed since."""
        guild = self._client.get_guild(place.guild_id)
        thread = guild and guild.get_thread(place.channel_id)
        return place.untitled if thread and thread.name != place.channel else place


async def _reads(guild: discord.Guild, channel: WithRules, user_id: int, deadline: float) -> bool:
    try:
        async with asyncio.timeout_at(deadline):
            return may_read(channel, channel.permissions_for(await guild.fetch_member(user_id)))
    except FAILED:
        return False  # as of who left the server
