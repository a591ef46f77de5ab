"""The roles of people: without the members intent, only what they do themselves tells these to the bot."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterable

import discord

from conversation import ConversationManager
from discord_io.discord_wire import FAILED
from discord_io.incoming_messages import has_permissions, permissions_of, reads_history
from discord_io.who_may_read import may_see
from place import Place

MOST_KNOWN = 10_000  # of those who did something last, about 1 kB each
LOOK_UP_SECONDS = 1.5
NOBODY = 0  # no person's id


class Members:
    """The roles that people had when they last did something, and what they may read with these now."""

    def __init__(self, client: discord.Client, conversations: ConversationManager) -> None:
        self._client = client
        self._conversations = conversations
        self._known: OrderedDict[tuple[int, int], discord.Member] = OrderedDict()
        self._current: set[tuple[int, int]] = set()  # of these, whose roles were not missed to change

    def note(self, user: discord.Member) -> Collection[int]:
        """Notes somebody's roles, and where they see nothing with these. Returns the channels where they may have had
        other permissions before."""
        key = user.guild.id, user.id
        before = self._known.pop(key, None) if key in self._current else None
        self._known[key] = user
        self._current.add(key)
        if len(self._known) > MOST_KNOWN:
            self._current.discard(self._known.popitem(last=False)[0])
        if before and before._roles == user._roles:  # noqa: SLF001 - user.roles sorts them
            return ()
        places = {place.id: place for place in (*user.guild.channels, *user.guild.threads)}
        self._conversations.unseen(user.id, places, lambda one: not sees(places[one], user))
        return places

    def missed(self) -> None:
        """Has roles looked up anew for what begins from now on, as events were missed. What runs goes on with those
        known before: its people are no newcomers because of a reconnection."""
        self._current.clear()

    def came_back(self, guild: discord.Guild) -> None:
        """Notes who does not see a channel any more where they speak with the bot: events may have been missed."""
        for place in (*guild.channels, *guild.threads):
            conversation = self._conversations.get(place.id)
            for user_id in conversation.participants if conversation else ():
                member = self._known.get((guild.id, user_id))
                if member and not sees(place, member):
                    self._conversations.unseen(user_id, [place.id], lambda _: True)

    async def look_up(self, place: Place, user_ids: Iterable[int]) -> None:
        """Asks Discord for the roles of these people where they are not known and decide what they may read."""
        guild = self._client.get_guild(place.guild_id)
        if guild is None or self.read_history(place, NOBODY) is not False:
            return
        unknown = [one for one in user_ids if (guild.id, one) not in self._current]
        for user_id in unknown:
            try:
                async with asyncio.timeout(LOOK_UP_SECONDS):
                    self.note(await guild.fetch_member(user_id))
            except TimeoutError:  # an answer to many must not wait for each of them
                break
            except FAILED:
                continue  # as of who left the server
        for key in {(guild.id, one) for one in unknown} - self._current:  # what was missed may be that they lost a role
            self._known.pop(key, None)

    def read_history(self, place: Place, user_id: int) -> bool | None:
        """Whether somebody may read the history there now; None: the place is not known. Whose roles are unknown counts
        as without it, unless everybody has it."""
        if not place.guild_id:
            return True
        guild = self._client.get_guild(place.guild_id)  # Client.get_channel() would look into every guild
        if (channel := guild and guild.get_channel_or_thread(place.channel_id)) is None:
            return None
        member = self._known.get((place.guild_id, user_id))
        return reads_history(channel, permissions_of(member, channel) if member else None)


def sees(place: discord.abc.GuildChannel | discord.Thread, user: discord.Member) -> bool:
    """Whether somebody with these roles sees new messages there, where that is known; else True."""
    return not has_permissions(place) or may_see(place, place.permissions_for(user))
