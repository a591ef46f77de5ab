"""Links to messages."""

from __future__ import annotations

DISCORD = "https://discord.com"


def message_link(site: str, guild_id: int | None, channel_id: int | None, message_id: int) -> str:
    """The address of a message. site: of Discord's client; guild_id: 0 or None in a direct message."""
    return f"{site}/channels/{guild_id or '@me'}/{channel_id}/{message_id}"
