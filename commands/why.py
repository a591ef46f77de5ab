"""Why it spoke or did not: the last decisions of a channel, and the one on a message."""

from __future__ import annotations

import discord
from discord import app_commands

from commands.answers import tell
from decider import RecentDecisions
from discord_io.split import MAX_LENGTH, clipped
from understanding.links import DISCORD, message_link

SHOWN, MAX_WORDS = 5, 60  # decisions; characters of a message
MAX_LINE = MAX_LENGTH // SHOWN - len("\n")
NOTHING_KNOWN = (
    "I remember no decision about that. I keep the last ones only, and none of messages from before I was started, "
    "in direct messages, or by bots."
)


def add_why(tree: app_commands.CommandTree, decisions: RecentDecisions, site: str = DISCORD) -> None:
    """site: where links to messages lead."""

    @tree.command(description="Why did I answer, or not answer, the last messages in this channel?")
    @app_commands.guild_only()
    async def why(interaction: discord.Interaction) -> None:
        latest = decisions.latest(interaction.channel_id or 0, SHOWN)
        known = {message.id: message.content for message in interaction.client.cached_messages}
        may_read = interaction.permissions.read_message_history
        lines = []
        for entry in latest:
            words = _first_words(known.get(entry.message_id, "")) if may_read else ""
            outcome, _, reason = entry.decision.in_words().partition(": ")
            link = message_link(site, interaction.guild_id, interaction.channel_id, entry.message_id)
            lines.append(clipped(f"- <@{entry.author_id}>{words}: [{outcome}]({link}), {reason}", MAX_LINE))
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


def _first_words(content: str) -> str:
    """What a message begins with, on one line and without formatting; empty where it has no text."""
    words = clipped(discord.utils.escape_markdown(" ".join(content[: 4 * MAX_WORDS].split())), MAX_WORDS)
    return f" “{words}”" if words else ""
