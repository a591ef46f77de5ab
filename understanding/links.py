"""Links to messages: where the server's own client shows them."""

from __future__ import annotations

DISCORD = "https://discord.com"


def message_link(site: str, guild_id: int | None, channel_id: int | None, message_id: int) -> str:
    return f"{site}/channels/{guild_id}/{channel_id}/{message_id}"
