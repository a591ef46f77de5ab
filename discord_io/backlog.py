"""What stands in the channels that we have not been told of: where there is any, and the messages themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import discord

from conversation import MessageRecord
from discord_io.channel_history import answer_among, read_since
from discord_io.streamed_reply import Posted

LIMIT = 100  # what Discord gives at once
READABLE = (discord.TextChannel, discord.VoiceChannel, discord.StageChannel)
Message = discord.Message
Readable = discord.TextChannel | discord.VoiceChannel | discord.StageChannel


@dataclass(frozen=True, slots=True)
class News:
    """A channel in which something was said. newest: the id of its last message."""

    guild_id: int
    channel_id: int
    newest: int


class Backlog:
    """client: connected. channels: the only ones that count, empty: all. to_record: reads a message."""

    def __init__(
        self,
        client: discord.Client,
        channels: Collection[int],
        to_record: Callable[[discord.Message], MessageRecord],
    ) -> None:
        self._client = client
        self._channels = channels
        self.to_record = to_record

    def news(self, after: int) -> list[News]:
        """The channels whose last message is newer than this id, as GUILD_CREATE told us, the newest first.

        Only those whose history may be read. Makes no request.
        """
        found = [
            News(channel.guild.id, channel.id, newest)
            for guild in self._client.guilds
            for channel in guild.channels
            if isinstance(channel, READABLE) and (newest := channel.last_message_id or 0) > after
            if self._may_read(channel) and (not self._channels or channel.id in self._channels)
        ]
        return sorted(found, key=lambda news: news.newest, reverse=True)

    def _may_read(self, channel: Readable) -> bool:
        allowed = channel.permissions_for(channel.guild.me)
        return allowed.view_channel and allowed.read_message_history

    async def since(self, guild_id: int, channel_id: int, after: int) -> list[discord.Message] | None:
        """The first 100 messages after this id, oldest first; None where they cannot be had."""
        channel = self._client.get_channel(channel_id)
        if isinstance(channel, READABLE) and not self._may_read(channel):
            return None  # Discord would say that there are none
        return await read_since(self._client, guild_id, channel_id, after, LIMIT)

    def answer(self, messages: Sequence[discord.Message], reply_to: int, later: Collection[int]) -> list[Posted]:
        """What of these messages is our answer to one, the first part first. later: the ids noted of its parts."""
        return answer_among(messages, self._me, reply_to, later)

    def replied_to(self, messages: Sequence[discord.Message]) -> set[int]:
        """The messages to which one of these, by us, replies."""
        ours = (m.reference for m in messages if m.author.id == self._me)
        return {reference.message_id for reference in ours if reference and reference.message_id}

    @property
    def _me(self) -> int:
        return self._client.user.id if self._client.user else 0


def id_at(moment: datetime) -> int:
    """The least id that a message of this moment can have."""
    return discord.utils.time_snowflake(moment)
