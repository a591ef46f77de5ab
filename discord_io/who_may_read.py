"""Who can read a channel, by roles and overwrites only: the bot has no list of members.

A thread can be read by all who can read its channel, a private one by its members only. A voice channel can also be
read by guests: people whom an invitation lets into that channel only, whatever everybody's role allows.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import NamedTuple, TypeGuard

import discord

Channel = discord.TextChannel | discord.VoiceChannel | discord.StageChannel | discord.Thread
WithRules = Channel | discord.ForumChannel  # whose rules are those of its posts

# The permission to read new messages, which is all that some readers of a channel have.
SEES = "view_channel"
NEEDED = (SEES, "read_message_history")
NEEDED_WITH_VOICE = (*NEEDED, "connect")
PERMISSIONS: dict[tuple[str, ...], discord.Permissions] = {
    names: discord.Permissions(**dict.fromkeys(names, True)) for names in (NEEDED, NEEDED_WITH_VOICE)
}
ADMINISTRATOR = discord.Permissions.VALID_FLAGS["administrator"]
VOICE = discord.ChannelType.voice, discord.ChannelType.stage_voice


def needed_to_read(channel: WithRules) -> tuple[str, ...]:
    """The permissions without which somebody cannot read what was said; the text of a voice channel needs one more."""
    return NEEDED_WITH_VOICE if channel.type in VOICE else NEEDED


def may_read(channel: WithRules, allowed: discord.Permissions) -> bool:
    """Whether these permissions let somebody read the channel; a private thread: if they are a member."""
    return PERMISSIONS[needed_to_read(channel)] <= allowed


async def is_in(channel: Channel, user_id: int) -> bool:
    """Whether somebody is a member of a private thread, by asking Discord; True for any other channel."""
    if not _is_private(channel):
        return True
    try:
        await channel.fetch_member(user_id)
    except discord.NotFound:
        return False
    return True


def _is_private(channel: WithRules) -> TypeGuard[discord.Thread]:
    return isinstance(channel, discord.Thread) and channel.is_private()


def _has_guests(channel: WithRules) -> bool:
    """Whether people can be there who see no other channel of the guild."""
    return channel.type in VOICE


def has_rules(channel: object) -> TypeGuard[Channel]:
    """Whether its roles and overwrites are known; those of a thread are its channel's."""
    return isinstance(channel, Channel) and _rules(channel) is not None


def _rules(channel: WithRules) -> discord.abc.GuildChannel | None:
    return channel.parent if isinstance(channel, discord.Thread) else channel


def is_read_by_all_of(there: WithRules, here: WithRules) -> bool:
    """Whether everybody who sees new messages here can read the history there, whatever roles they have.

    False if it depends on who has which roles together. Also False for an age-restricted channel elsewhere: Discord
    checks people's age there, and does not tell bots. Somebody in a timeout, who cannot connect to a voice channel
    meanwhile, counts as without it.
    """
    rules_there, rules_here = _rules(there), _rules(here)
    if rules_there is None or rules_here is None:
        return False
    if there != here and (_is_private(there) or _has_guests(here)):
        return False
    if there.is_nsfw() and not here.is_nsfw():
        return False
    if here.guild.default_role.permissions.administrator:
        return True
    return not any(_is_lacked(name, rules_there, rules_here) for name in needed_to_read(there))


def is_seen_by_all_of(there: object, here: object) -> bool:
    """Whether everybody who sees new messages here sees that channel, and so its name. False for a thread: its title is
    somebody's words."""
    if not (has_rules(here) and isinstance(there, discord.abc.GuildChannel)) or (_has_guests(here) and there != here):
        return False
    rules = _rules(here)
    return here.guild.default_role.permissions.administrator or not (rules and _is_lacked(SEES, there, rules))


class _Role(NamedTuple):
    """What matters of a role, or of a member's own overwrite. sees, has: granted in the guild. sees_here, has_there:
    what the overwrites here and there set; None: nothing."""

    sees: bool = False
    has: bool = False
    sees_here: bool | None = None
    has_there: bool | None = None


def _is_lacked(permission: str, there: discord.abc.GuildChannel, here: discord.abc.GuildChannel) -> bool:
    """Whether somebody may see this channel and lack the permission in that one.

    Trying two roles is enough: one that allows to see this channel, and one that denies the permission in that one.
    """
    to_see, needed = (discord.Permissions.VALID_FLAGS[name] for name in (SEES, permission))
    set_here, set_there = _set_in(here, to_see), _set_in(there, needed)

    def read(target_id: int, granted: int) -> _Role:
        return _Role(granted & to_see != 0, granted & needed != 0, set_here.get(target_id), set_there.get(target_id))

    guild = here.guild
    granted = {role.id: role.permissions.value for role in guild.roles}
    everybody = read(guild.id, granted[guild.id])
    members = {*set_here, *set_there} - {guild.me.id, *granted}
    own = {_Role(), *(read(member, 0) for member in members)}
    # Equal roles count once. Administrators can read everything, and the bot itself does not count.
    apart = {guild.id, guild.self_role.id if guild.self_role else 0}
    others = (one for one in granted.items() if not (one[1] & ADMINISTRATOR or one[0] in apart))
    roles = {_Role(), *(read(*one) for one in others)}
    return any(
        _holds([(r.sees, r.sees_here) for r in (everybody, *two)], member.sees_here)
        and not _holds([(r.has, r.has_there) for r in (everybody, *two)], member.has_there)
        for two in combinations_with_replacement(roles, 2)
        for member in own
    )


def _set_in(channel: discord.abc.GuildChannel, flag: int) -> dict[int, bool]:
    """The ids of roles and members whose overwrites allow (True) or deny the permission with this flag.

    Not read by channel.overwrites, which makes an object of each: 30 ms where there are a thousand.
    """
    return {one.id: one.allow & flag != 0 for one in channel._overwrites if (one.allow | one.deny) & flag}  # noqa: SLF001


def _holds(roles: list[tuple[bool, bool | None]], own: bool | None) -> bool:
    """Whether somebody with these roles, @everyone first, has a permission in a channel.

    Each role: whether it grants it in the guild, and what its overwrite in the channel sets. own: the member's
    overwrite.
    """
    (_, for_all), *others = roles
    said = {says for _, says in others}
    if own is not None:
        return own
    if True in said or False in said:
        return True in said
    return any(granted for granted, _ in roles) if for_all is None else for_all
