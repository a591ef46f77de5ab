"""Why it spoke or did not: the last decisions of a channel, and the one on a message."""

from __future__ import annotations

import discord
from discord import app_commands

from commands.answers import tell
from decider import RecentDecisions
from discord_io.split import MAX_LENGTH, clipped
from understanding.links import DISCORD, message_link

SHOWN = 5
MAX_LINE = MAX_LENGTH // SHOWN - len("\n")
NOTHING_KNOWN = (
    "I remember no decision about that. I keep the last ones only, and none of messages from before I was started, "
    "in direct messages, in threads, or by bots."
)


def add_why(tree: app_commands.CommandTree, decisions: RecentDecisions, site: str = DISCORD) -> None:
    """site: where links to messages lead."""

    @tree.command(description="Why did I answer, or not answer, the last messages in this channel?")
    @app_commands.guild_only()
    async def why(interaction: discord.Interaction) -> None:
        latest = decisions.latest(interaction.channel_id or 0, SHOWN)
        links = [message_link(site, interaction.guild_id, interaction.channel_id, e.message_id) for e in latest]
        lines = [clipped(f"- {link} {e.decision.in_words()}", MAX_LINE) for link, e in zip(links, latest, strict=True)]
        await tell(interaction, "\n".join(lines) or NOTHING_KNOWN)

    @tree.context_menu(name="Why?")
    @app_commands.guild_only()
    async def why_this(interaction: discord.Interaction, message: discord.Message) -> None:
        question_id = (
            message.reference.message_id if message.reference and message.author == interaction.client.user else None
        )
        entry = decisions.find(message.id) or decisions.find(question_id or 0)
        words = entry.decision.in_words() if entry else NOTHING_KNOWN
        await tell(interaction, words[:1].upper() + words[1:])
