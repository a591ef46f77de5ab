"""/why: why the bot spoke or did not: the last decisions in a channel, or the one on a message."""

from __future__ import annotations

from dataclasses import replace

import discord
from discord import app_commands

from commands.answers import plain
from commands.privacy_commands import Privacy
from decider import LoggedDecision, Reason, RecentDecisions
from discord_io.interactions import whisper
from discord_io.split import MAX_LENGTH, clipped
from discord_io.who_may_read import has_rules, may_read
from understanding.links import DISCORD, message_link

SHOWN, MAX_WORDS = 5, 60  # decisions shown; characters quoted of a message
WHOSE_YOU = "-# “You” is whoever wrote the message."
MAX_LINE = (MAX_LENGTH - len(WHOSE_YOU)) // SHOWN - len("\n")
NOTHING_KNOWN = (
    "I remember no decision about that. I keep only the latest ones, and none on messages by bots or from before I "
    "was started."
)
UNNAMED = "somebody who asked not to be read"


def add_why(tree: app_commands.CommandTree, decisions: RecentDecisions, privacy: Privacy, site: str = DISCORD) -> None:
    """Adds /why. privacy: knows who has opted out, and is not named or quoted; site: what message links begin with."""

    def in_words(interaction: discord.Interaction, entry: LoggedDecision) -> str:
        decision, may = entry.decision, interaction.permissions
        is_unnamed = decision.partner is not None and privacy.is_opted_out(decision.partner)
        told = decision if reads_history(interaction) else decision.unquoting
        is_theirs = interaction.user.id == entry.author_id or may.manage_channels or may.manage_guild
        if decision.reason is Reason.NOT_ALLOWED and not is_theirs:
            told = replace(told, evidence="")  # only those who manage the place see who is on which list
        # A message may have made the model write this text, so links and headings in it are escaped.
        told = replace(told, evidence=plain(told.evidence), agent=plain(told.agent))
        return (replace(told, partner=None) if is_unnamed else told).in_words()

    def reads_history(interaction: discord.Interaction) -> bool:
        channel, may = interaction.channel, interaction.permissions
        if interaction.guild_id is None:
            return True
        return may_read(channel, may) if has_rules(channel) else may.read_message_history

    @tree.command(description="Why did I answer, or not answer, the last messages in this channel?")
    @app_commands.allowed_contexts(guilds=True, dms=True)
    async def why(interaction: discord.Interaction) -> None:
        latest = decisions.latest(interaction.channel_id or 0, SHOWN)
        known = {message.id: message.content for message in interaction.client.cached_messages}
        may_read = reads_history(interaction)
        lines = []
        for entry in latest:
            if privacy.is_opted_out(entry.author_id):
                whose = UNNAMED
            else:
                content = known.get(entry.message_id, "") if may_read else ""
                words = clipped(plain(content[: 4 * MAX_WORDS]), MAX_WORDS)
                whose = f"<@{entry.author_id}>" + (f" “{words}”" if words else "")
            outcome, _, reason = in_words(interaction, entry).partition(": ")
            link = message_link(site, interaction.guild_id, interaction.channel_id, entry.message_id)
            lines.append(clipped(f"- {whose}: [{outcome}]({link}), {reason}", MAX_LINE))
        if any(entry.author_id != interaction.user.id for entry in latest):
            lines.append(WHOSE_YOU)
        await whisper(interaction, "\n".join(lines) or NOTHING_KNOWN)

    @tree.context_menu(name="Why?")
    @app_commands.allowed_contexts(guilds=True, dms=True)
    async def why_this(interaction: discord.Interaction, message: discord.Message) -> None:
        entry = decisions.find(message.id) or decisions.find(_answered(message, interaction.client) or 0)
        words = in_words(interaction, entry) if entry else NOTHING_KNOWN
        whose = f"\n{WHOSE_YOU}" if entry and entry.author_id != interaction.user.id else ""
        await whisper(interaction, words[:1].upper() + words[1:] + whose)


def _answered(message: discord.Message, client: discord.Client) -> int | None:
    """The id of the question that a message of ours answers. Of a long answer, only the first message replies to it."""
    if message.author != client.user:
        return None
    here = (m for m in reversed(client.cached_messages) if m.channel.id == message.channel.id and m.id <= message.id)
    ours = (m for m in here if m.author == client.user)
    references = (m.reference.message_id for m in (message, *ours) if m.reference)
    return next(references, None)
