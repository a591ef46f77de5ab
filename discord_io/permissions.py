"""The permissions that the bot uses: which it is invited with, which it needs in a channel, and which are missing."""

from __future__ import annotations

import discord

from understanding.links import DISCORD

# Without these it is silent in a channel.
ESSENTIAL = ("view_channel", "send_messages", "send_messages_in_threads")
WANTED = (*ESSENTIAL, "read_message_history", "embed_links", "attach_files", "add_reactions")
# For opening threads for longer conversations, and for what the agent does only when it is allowed to.
ON_DEMAND = ("create_public_threads", "pin_messages", "send_polls")
INVITED = discord.Permissions(**dict.fromkeys((*WANTED, *ON_DEMAND), True))
# Their names in Discord's settings, where these differ from the permission's name.
SHOWN = {"view_channel": "View Channels", "send_messages_in_threads": "Send Messages in Threads"}


def invite_link(application_id: int, site: str = DISCORD) -> str:
    """The link to add the bot to a server, with the permissions that it uses and no more. site: Discord's address."""
    link = discord.utils.oauth_url(application_id, permissions=INVITED, scopes=("bot", "applications.commands"))
    return link.replace("%20", "+").replace(DISCORD, site, 1)


def missing(allowed: discord.Permissions, *, is_forum: bool = False, threads: str = "join") -> list[str]:
    """The permissions that the bot lacks in a channel. threads: the setting. In a forum it only posts in threads."""
    wanted = [name for name in WANTED if not (is_forum and name == "send_messages")]
    if threads == "off":
        wanted.remove("send_messages_in_threads")
    if threads == "open" and not is_forum:
        wanted.append("create_public_threads")
    return [name for name in wanted if not getattr(allowed, name)]


def shown(permission: str) -> str:
    """A permission's name in Discord's settings."""
    return SHOWN.get(permission, permission.replace("_", " ").title())
