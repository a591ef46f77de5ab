"""Permissions in the playground's guilds: roles, overwrites of channels, and what results from them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from playground import errors, permissions
from playground.model import PRIVATE_THREAD, Channel, Event, Guild, Role
from playground.permissions import Overwrite
from playground.places import Places


class Access(Places):
    """Roles and permissions of the places.

    As Discord without the members intent, it sends the bot all roles, but of the members' roles only the bot's own.
    """

    # Roles

    def add_role(
        self,
        name: str,
        permissions: int = 0,
        *,
        color: int = 0,
        mentionable: bool = False,
        guild: Guild | None = None,
    ) -> Role:
        """Add a role above all others of a guild, by default the first. It adds `permissions` to everyone's."""
        guild = guild or self.guild
        role = Role(self.next_id(), name, permissions, len(guild.roles), color, mentionable)
        guild.roles[role.id] = role
        self.emit(Event(name="GUILD_ROLE_CREATE", guild=guild, role=role))
        return role

    def change_role(self, role_id: int, **changes: Any) -> Role:
        """Set fields of a role. The id of the @everyone role is the guild's."""
        guild = self.guild_with(role_id)
        with self._told_of_access(guild):
            role = guild.roles[role_id] = replace(guild.roles[role_id], **changes)
            self.emit(Event(name="GUILD_ROLE_UPDATE", guild=guild, role=role))
        return role

    def delete_role(self, role_id: int) -> None:
        """Delete a role, also from its members and from channels. ApiError 50028 for @everyone and the bot's own."""
        guild = self.guild_with(role_id)
        role = guild.roles[role_id]
        if role.managed or role.id == guild.id:
            raise errors.invalid_role()
        with self._told_of_access(guild):
            guild.member_roles = {user: own - {role.id} for user, own in guild.member_roles.items()}
            del guild.roles[role.id]
            self.emit(Event(name="GUILD_ROLE_DELETE", guild=guild, role=role))
            for channel in guild.channels.values():
                if channel.overwrites.pop(role.id, None) is not None:
                    self.emit(Event(name="CHANNEL_UPDATE", channel=channel))

    def give_role(self, user_id: int, role_id: int, *, given: bool = True) -> None:
        """Give a role to a member, or take it away."""
        guild = self.guild_with(role_id)
        own = guild.member_roles.get(self.user(user_id).id, frozenset())
        with self._told_of_access(guild):
            guild.member_roles[user_id] = own | {role_id} if given else own - {role_id}
            self.emit(Event(name="GUILD_MEMBER_UPDATE", guild=guild, user_id=user_id))

    def rejoin(self, user_id: int, guild_id: int) -> None:
        """Somebody leaves a guild and comes back now. Their roles are gone; a bot hears nothing of it."""
        guild = self.guilds[guild_id]
        guild.member_roles.pop(self.user(user_id).id, None)
        guild.joined[user_id] = self._now()

    @contextmanager
    def _told_of_access(self, guild: Guild | None) -> Iterator[None]:
        """After a change sends the bot the threads of channels that it could not see before."""
        before = self._seen(guild)
        yield
        for channel_id in self._seen(guild) - before:
            self.emit(Event(name="THREAD_LIST_SYNC", channel=self.channels[channel_id]))

    def _seen(self, guild: Guild | None) -> set[int]:
        channels = guild.channels.values() if guild else ()
        return {one.id for one in channels if self.may(one, self.bot.id, "view_channel")}

    # Permissions

    def permissions(self, channel: Channel, user_id: int) -> int:
        """The permission integer of a user in a channel. The owner has all permissions.

        A thread has the permissions of its parent. A private one is visible only to its members and to those who may
        manage threads.
        """
        if channel.thread is not None:
            own = self.permissions(self.channels[channel.parent_id or 0], user_id)
            hidden = channel.type == PRIVATE_THREAD and user_id not in channel.thread.members
            return 0 if hidden and not own & permissions.BITS["manage_threads"] else own
        if channel.guild_id is None:
            inside = channel.group or (channel.recipient_id, self.bot.id)
            return permissions.DIRECT if user_id in inside else 0
        guild = self.guild_of(channel)
        if guild is None:
            base = 0 if user_id == self.bot.id else permissions.EVERYONE
            return permissions.in_channel(base, [one for one in channel.overwrites.values() if one.id == user_id])
        if user_id == self.owner_id:
            return permissions.ALL
        if user_id == self.bot.id and not guild.bot_is_member:
            return 0
        own_roles = guild.roles_of(user_id)
        base = guild.roles[guild.id].permissions
        for role in own_roles:
            base |= role.permissions
        of_roles = [channel.overwrites[one.id] for one in own_roles if one.id in channel.overwrites]
        layers = (
            channel.overwrites.get(guild.id),
            permissions.together(of_roles),
            channel.overwrites.get(user_id),
        )
        return permissions.in_channel(base, [one for one in layers if one is not None])

    def may(self, channel: Channel, user_id: int, *names: str) -> bool:
        wanted = permissions.bits(names)
        return self.permissions(channel, user_id) & wanted == wanted

    def overwrite(self, channel_id: int, target_id: int, *, allow: int = 0, deny: int = 0) -> None:
        """Add to what a channel allows and denies to a member or role.

        The channels of a category that have the same overwrites change with it, since Discord syncs them.
        """
        channel = self.channel(channel_id)
        guild = self.guild_of(channel)
        synced = [one for one in self.channels_of(channel) if one.overwrites == channel.overwrites]
        old = channel.overwrites.get(target_id) or Overwrite(
            target_id, member=guild is None or target_id not in guild.roles
        )
        new = replace(old, allow=old.allow & ~deny | allow, deny=old.deny & ~allow | deny)
        with self._told_of_access(guild):
            for one in (channel, *synced):
                one.overwrites[target_id] = new
                self.emit(Event(name="CHANNEL_UPDATE", channel=one))
