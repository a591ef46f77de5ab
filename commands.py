"""The slash and context-menu commands: `/why`, `/forget`, and "Why?" on a message. All answers are ephemeral."""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
import discord
import structlog
from discord import app_commands

from decider import LoggedDecision, RecentDecisions

log = structlog.get_logger()

SHOWN = 5
NOTHING_KNOWN = (
    "I remember no decision about that. I keep the last ones only, and none of messages from before I was started, "
    "in direct messages, in threads, or by bots."
)

Forget = Callable[[int, int | None, int], None]
"""(channel id, author id or None for the whole conversation, id of the command) -> nothing older is remembered."""


def add_commands(tree: app_commands.CommandTree, decisions: RecentDecisions, forget: Forget) -> None:
    """Adds the commands to the tree."""

    @tree.command(description="Why did I answer, or not answer, the last messages in this channel?")
    @app_commands.guild_only()
    async def why(interaction: discord.Interaction) -> None:
        latest = decisions.latest(interaction.channel_id or 0, SHOWN)
        lines = [f"- {_link(interaction, entry)} {entry.decision.in_words()}" for entry in latest]
        await _tell(interaction, "\n".join(lines) or NOTHING_KNOWN)

    @tree.context_menu(name="Why?")
    @app_commands.guild_only()
    async def why_this(interaction: discord.Interaction, message: discord.Message) -> None:
        question_id = (
            message.reference.message_id if message.reference and message.author == interaction.client.user else None
        )
        entry = decisions.find(question_id or message.id)
        words = entry.decision.in_words() if entry else NOTHING_KNOWN
        await _tell(interaction, words[:1].upper() + words[1:])

    @tree.command(name="forget", description="Forget what I remember of you in this channel.")
    @app_commands.describe(everything="The whole conversation, of everybody: for those who manage the channel")
    @app_commands.guild_only()
    async def forget_me(interaction: discord.Interaction, everything: bool = False) -> None:
        if everything and not interaction.permissions.manage_channels:
            await _tell(interaction, "Only those who manage this channel can have me forget the whole conversation.")
            return
        forget(interaction.channel_id or 0, None if everything else interaction.user.id, interaction.id)
        whose = "the conversation in this channel" if everything else "what you said in this channel"
        await _tell(interaction, f"Done: I have forgotten {whose}.")


async def sync(tree: app_commands.CommandTree) -> None:
    """Tells Discord of the commands. Without that the bot still answers; it is logged, no more."""
    try:
        await tree.sync()
    except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
        log.warning("command_sync_failed", detail=str(error))


async def _tell(interaction: discord.Interaction, text: str) -> None:
    try:
        await interaction.response.send_message(text, ephemeral=True, allowed_mentions=discord.AllowedMentions.none())
    except (discord.HTTPException, aiohttp.ClientError) as error:
        log.warning("interaction_failed", channel=interaction.channel_id, detail=str(error))  # after 3 s it is void


def _link(interaction: discord.Interaction, entry: LoggedDecision) -> str:
    return f"https://discord.com/channels/{interaction.guild_id}/{entry.channel_id}/{entry.message_id}"
