"""What is set for Discord's channels, threads and categories, as the cache knows where they stand."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

import discord

from place_settings.fields import Level
from place_settings.guild_settings import Categories, GuildSettings
from place_settings.inheritance import InForce


def categories_of(client: discord.Client, guild_id: int) -> Categories | None:
    """In which category each channel of a guild is; None where Discord has not told of the guild."""
    guild = client.get_guild(guild_id)
    if guild is None or guild.unavailable:
        return None
    known = {channel.id for channel in guild.channels}
    return {c.id: c.category_id if c.category_id in known else None for c in guild.channels}


def guild_of(client: discord.Client, channel_id: int) -> int | None:
    """The guild of a channel or thread; 0 of direct messages; None where Discord has not told of it."""
    channel = client.get_channel(channel_id)
    guild = getattr(channel, "guild", None)
    return None if channel is None else guild.id if guild else 0


def category_of(channel: object) -> int | None:
    """The category in which a channel, or the channel of a thread, is."""
    if isinstance(channel, discord.Thread):
        channel = channel.parent
    return channel.category_id if isinstance(channel, discord.abc.GuildChannel) else None


class Places:
    """client: connected. forum_tags: the names of those tags by which a post is a question to the room."""

    def __init__(
        self,
        client: discord.Client,
        settings: GuildSettings,
        *,
        forum_tags: Collection[str] = (),
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self.settings = settings
        self._forum_tags = {tag.casefold() for tag in forum_tags}
        self._clock = clock

    def held(self, channel: object) -> InForce:
        """What holds in a channel, a thread or a direct message."""
        if isinstance(channel, discord.Thread):
            return self.settings.in_channel(channel.guild.id, channel.id, channel.parent_id, category_of(channel))
        if isinstance(channel, discord.abc.GuildChannel):
            return self.settings.in_channel(channel.guild.id, channel.id, None, channel.category_id)
        return self.settings.in_channel(0, getattr(channel, "id", 0))

    def has_offers(self, channel: object) -> bool:
        """Whether it offers help there; so it does in a post with one of the tags, unless the server has set it off."""
        held = self.held(channel)
        if not (self._forum_tags and isinstance(channel, discord.Thread)):
            return held.makes_offers()
        return held.makes_offers(is_wanted=any(t.name.casefold() in self._forum_tags for t in channel.applied_tags))

    def wants_offers(self, channel_id: int) -> bool | None:
        """The same by its id; None where the cache does not know the channel."""
        channel = self._client.get_channel(channel_id)
        return None if channel is None else self.has_offers(channel)

    def has_judge(self, channel_id: int) -> bool:
        """Whether a judge is asked there before something is offered."""
        return bool(self.held(self._client.get_channel(channel_id)).settings.judge)

    def is_blocked(self, channel_id: int, user_id: int) -> bool:
        """Whether somebody is not answered there, whichever roles they have."""
        return user_id in (self.held(self._client.get_channel(channel_id)).settings.blocked_users or ())

    def switch_offers(self, channel_id: int, guild_id: int, *, on: bool, by: int) -> None:
        """Sets for a channel whether it offers help there. by: whose id."""
        guild_id = guild_id or getattr(getattr(self._client.get_channel(channel_id), "guild", None), "id", 0)
        self.settings.change(guild_id, channel_id, Level.CHANNEL, {"offers": on}, by=by, now=self._clock())

    def rearranged(self, guild_id: int) -> None:
        """Channels of a guild were moved or deleted, perhaps while the bot was away."""
        self.settings.rearranged(guild_id, self._clock())
