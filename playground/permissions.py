"""Discord's permission bits, and how roles and channel overwrites combine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

BITS: Mapping[str, int] = {
    "administrator": 1 << 3,
    "manage_channels": 1 << 4,
    "manage_guild": 1 << 5,
    "add_reactions": 1 << 6,
    "view_channel": 1 << 10,
    "send_messages": 1 << 11,
    "manage_messages": 1 << 13,
    "embed_links": 1 << 14,
    "attach_files": 1 << 15,
    "read_message_history": 1 << 16,
    "mention_everyone": 1 << 17,
    "use_external_emojis": 1 << 18,
    "connect": 1 << 20,
    "use_application_commands": 1 << 31,
    "manage_threads": 1 << 34,
    "create_public_threads": 1 << 35,
    "create_private_threads": 1 << 36,
    "send_messages_in_threads": 1 << 38,
    "send_polls": 1 << 49,
    "use_external_apps": 1 << 50,
    "pin_messages": 1 << 51,  # Discord: no longer part of manage_messages since 2026-02-23
}
ALL = (1 << 53) - 1


def bits(names: Iterable[str]) -> int:
    """The permission integer of these names (discord.py's spelling). KeyError for an unknown name."""
    total = 0
    for name in names:
        total |= BITS[name]
    return total


# What a new guild grants to @everyone, of the permissions above.
_FOR_MANAGERS = {"administrator", "pin_messages", *(name for name in BITS if name.startswith("manage_"))}
EVERYONE = bits(set(BITS) - _FOR_MANAGERS)
# The permissions that the bot's invitation asks for, and what Discord grants besides.
INVITED = bits(
    (
        "view_channel",
        "send_messages",
        "send_messages_in_threads",
        "read_message_history",
        "embed_links",
        "attach_files",
        "add_reactions",
        "use_external_emojis",
        "create_public_threads",
        "pin_messages",
        "send_polls",
    )
)
# The app_permissions of an interaction where the bot is no member, or in direct messages.
ELSEWHERE = bits(("attach_files", "embed_links", "mention_everyone"))
# The permissions in direct messages: nobody manages anything there, and there are no threads.
DIRECT = EVERYONE & ~bits(one for one in BITS if one.endswith("_threads")) | BITS["pin_messages"]


@dataclass(frozen=True, slots=True)
class Overwrite:
    """What a channel allows and denies to a role or member. `member`: whether `id` is a member's."""

    id: int
    member: bool
    allow: int = 0
    deny: int = 0


def together(overwrites: Iterable[Overwrite]) -> Overwrite:
    """The overwrites of all of somebody's roles as one: what one role allows, another cannot deny."""
    allow = deny = 0
    for overwrite in overwrites:
        allow, deny = allow | overwrite.allow, deny | overwrite.deny
    return Overwrite(0, member=False, allow=allow, deny=deny)


def in_channel(base: int, overwrites: Iterable[Overwrite]) -> int:
    """Apply overwrites, in Discord's order (everyone, roles, member), to the permissions of the roles."""
    if base & BITS["administrator"]:
        return ALL
    for overwrite in overwrites:
        base = base & ~overwrite.deny | overwrite.allow
    return base if base & BITS["view_channel"] else 0
