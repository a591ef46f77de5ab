"""The settings in force in Discord's channels, threads and categories, found by way of discord.py's cache."""

from __future__ import annotations

from collections.abc import Collection

import discord

from clock import Clock
from place_settings.fields import Level
from place_settings.guild_settings import Categories, GuildSettings
from place_settings.inheritance import InForce


def categories_of(client: discord.Client, guild_id: int) -> Categories | None:
    """The category of each channel of a guild; None: the guild is not available yet."""
    guild = client.get_guild(guild_id)
    if guild is None or guild.unavailable:
        return None
    known = {channel.id for channel in guild.channels}
    return {c.id: c.category_id if c.category_id in known else None for c in guild.channels}


def guild_of(client: discord.Client, channel_id: int) -> int | None:
    """The guild of a channel or thread; 0: direct messages; None: the channel is not in the cache."""
    channel = client.get_channel(channel_id)
    guild = getattr(channel, "guild", None)
    return None if channel is None else guild.id if guild else 0


def category_of(channel: object) -> int | None:
    """The category of a channel, or of a thread's channel."""
    if isinstance(channel, discord.Thread):
        channel = channel.parent
    return channel.category_id if isinstance(channel, discord.abc.GuildChannel) else None


class Places:
    """client: connected. forum_tags: the names of tags that mark a post as a question to everybody."""

    def __init__(
        self,
        client: discord.Client,
        settings: GuildSettings,
        *,
        forum_tags: Collection[str] = (),
        clock: Clock,
    ) -> None:
        self._client = client
        self.settings = settings
        self._forum_tags = {tag.casefold() for tag in forum_tags}
        self._clock = clock

    def held(self, channel: object) -> InForce:
        """The settings in force in a channel, a thread or a direct message."""
        if isinstance(channel, discord.Thread):
            return self.settings.in_channel(channel.guild.id, channel.id, channel.parent_id, category_of(channel))
        if isinstance(channel, discord.abc.GuildChannel):
            return self.settings.in_channel(channel.guild.id, channel.id, None, channel.category_id)
        return self.settings.in_channel(0, getattr(channel, "id", 0))

    def has_offers(self, channel: object) -> bool:
        """Whether it offers help there; also in posts with one of the tags, unless offers are switched off there."""
        held = self.held(channel)
        if held.refuses_unasked or held.settings.offers:
            return not held.refuses_unasked
        if not (self._forum_tags and isinstance(channel, discord.Thread)):
            return False
        is_owners = held.sources["offers"] in ((), (Level.OWNER,))  # the server has not set it
        return is_owners and any(tag.name.casefold() in self._forum_tags for tag in channel.applied_tags)

    def wants_offers(self, channel_id: int) -> bool | None:
        """The same by the channel's id; None: the channel is not in the cache."""
        channel = self._client.get_channel(channel_id)
        return None if channel is None else self.has_offers(channel)

    def has_judge(self, channel_id: int) -> bool:
        """Whether the judge is asked there before an offer is made."""
        return bool(self.held(self._client.get_channel(channel_id)).settings.judge)

    def is_blocked(self, channel_id: int, user_id: int) -> bool:
        """Whether somebody is on the list of users who are not answered there."""
        return user_id in (self.held(self._client.get_channel(channel_id)).settings.blocked_users or ())

    def switch_offers(self, channel_id: int, guild_id: int, *, on: bool, by: int) -> None:
        """Switches offers on or off in a channel. by: the id of the user who does."""
        guild_id = guild_id or getattr(getattr(self._client.get_channel(channel_id), "guild", None), "id", 0)
        self.settings.change(guild_id, channel_id, Level.CHANNEL, {"offers": on}, by=by, now=self._clock())

    def rearranged(self, guild_id: int) -> None:
        """Updates the settings after channels of a guild were moved or deleted, perhaps while the bot was away."""
        self.settings.rearranged(guild_id, self._clock())
