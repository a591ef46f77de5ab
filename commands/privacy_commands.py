"""Commands on kept personal data: /privacy, /forget, /optout, /optin, /export."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from io import BytesIO
from typing import Protocol
from zipfile import ZIP_DEFLATED, ZipFile

import discord
from discord import app_commands

from commands.answers import Outcome, carry_out, plain
from discord_io.interactions import whisper

NOT_A_MANAGER = "Only those who manage this channel can have me forget the whole conversation."
FORGOTTEN = "Done: I have forgotten what you said, in all channels. /optout keeps me from reading more."
CHANNEL_FORGOTTEN = "Done: I have forgotten the conversation in this channel."
OPTED_OUT = "Done: I have forgotten what you said, and from now on I read only those of your messages that mention me."
OUT_ALREADY = "You have already opted out: I read only those of your messages that mention me."
OPTED_IN = "Done: from now on I read your messages again."
IN_ALREADY = "You have not opted out: I read your messages."
UNDER_WAY = (
    "I have begun, but a part of me cannot be reached at the moment. It will do this as soon as it is back, before it "
    "reads or says anything."
)
NOTHING_KEPT = "I keep nothing of what you said."
EXPORTED = "This is what I keep of what you said."
MAY_LACK = " A part of me cannot be reached at the moment: what it heard last may be missing."
TOO_LARGE = "What I keep of what you said is too large for a file in Discord, even zipped: ask my owner for it."

IN_SHORT = "**What I keep of what is said in conversations I take part in, and who receives it**"
CHOICES = "/forget deletes it, /optout keeps me from reading what does not mention me, /export gives you your messages."

EXPORT_NAME = "messages.json"
UNZIPPED_BYTES = 1_000_000


class Privacy(Protocol):
    """Operations on what is kept of people. at: the interaction's id; everything older than it is deleted.

    Each raises OSError if it could not be done completely. Each returns whether all processes have done it; a shard
    that no process has at the moment does it later.
    """

    async def forget_person(self, user_id: int, at: int) -> bool:
        """Forgets a person everywhere: memory, sessions, journals, backups, decision log."""

    async def forget_channel(self, channel_id: int, at: int) -> bool:
        """Forgets what anybody said in one channel."""

    async def opt_out(self, user_id: int, at: int) -> bool:
        """Opts a person out, and forgets them."""

    async def opt_in(self, user_id: int, at: int) -> bool:
        """Ends an opt-out. What they said meanwhile stays unread."""

    def is_opted_out(self, user_id: int) -> bool: ...

    async def settle(self) -> bool:
        """Writes pending changes to the store, which export() reads."""

    async def export(self, user_id: int) -> bytes:
        """The person's own messages as JSON in UTF-8; empty if there are none."""


def add_privacy(tree: app_commands.CommandTree, privacy: Privacy) -> None:
    @tree.command(description="Forget everything you said that I still keep, in all channels.")
    @app_commands.describe(everything="Everything that anybody said in this channel; for those who manage it")
    @app_commands.allowed_installs(guilds=True, users=True)
    @app_commands.allowed_contexts(guilds=True, dms=True)
    async def forget(interaction: discord.Interaction, everything: bool = False) -> None:
        if everything and interaction.guild_id and not interaction.permissions.manage_channels:
            await whisper(interaction, NOT_A_MANAGER)
        elif everything:
            forgetting = privacy.forget_channel(interaction.channel_id or 0, interaction.id)
            await _carry_out(interaction, _then(forgetting, CHANNEL_FORGOTTEN))
        else:
            forgetting = privacy.forget_person(interaction.user.id, interaction.id)
            await _carry_out(interaction, _then(forgetting, FORGOTTEN))

    @tree.command(description="Forget what you said, and read only those of your messages that mention me.")
    @app_commands.allowed_installs(guilds=True, users=True)
    @app_commands.allowed_contexts(guilds=True, dms=True)
    async def optout(interaction: discord.Interaction) -> None:
        # Also for those who have opted out already: the first time may have been incomplete.
        done = OUT_ALREADY if privacy.is_opted_out(interaction.user.id) else OPTED_OUT
        await _carry_out(interaction, _then(privacy.opt_out(interaction.user.id, interaction.id), done))

    @tree.command(description="Read your messages again, after /optout.")
    @app_commands.allowed_installs(guilds=True, users=True)
    @app_commands.allowed_contexts(guilds=True, dms=True)
    async def optin(interaction: discord.Interaction) -> None:
        if privacy.is_opted_out(interaction.user.id):
            await _carry_out(interaction, _then(privacy.opt_in(interaction.user.id, interaction.id), OPTED_IN))
        else:
            await whisper(interaction, IN_ALREADY)

    @tree.command(description="Give me a file with what you keep of what I said.")
    @app_commands.allowed_installs(guilds=True, users=True)
    @app_commands.allowed_contexts(guilds=True, dms=True)
    async def export(interaction: discord.Interaction) -> None:
        await _carry_out(interaction, _as_file(privacy, interaction.user.id, interaction.filesize_limit))


def add_practices(tree: app_commands.CommandTree, practices: Mapping[str, str], public_address: str | None) -> None:
    lines = [f"- **{about}**: {plain(says)}" for about, says in practices.items()]
    more = [f"All of it: <{public_address}/privacy>"] if public_address else []
    in_short = "\n".join([IN_SHORT, *lines, CHOICES, *more])

    @tree.command(description="What do I keep of what is said, and who receives it?")
    @app_commands.allowed_installs(guilds=True, users=True)
    @app_commands.allowed_contexts(guilds=True, dms=True)
    async def privacy(interaction: discord.Interaction) -> None:
        await whisper(interaction, in_short)


async def _carry_out(interaction: discord.Interaction, work: Awaitable[Outcome]) -> None:
    await carry_out(interaction, work, failed="privacy_failed")


async def _then(work: Awaitable[bool], done: str) -> Outcome:
    return done if await work else UNDER_WAY


async def _as_file(privacy: Privacy, user_id: int, filesize_limit: int) -> Outcome:
    lacks = "" if await privacy.settle() else MAY_LACK
    name, content = EXPORT_NAME, await privacy.export(user_id)
    if not content:
        return f"{NOTHING_KEPT}{lacks}"
    if len(content) > UNZIPPED_BYTES:
        name, content = f"{EXPORT_NAME}.zip", await asyncio.to_thread(_zipped, name, content)
    if len(content) > filesize_limit:
        return TOO_LARGE
    return f"{EXPORTED}{lacks}", [discord.File(BytesIO(content), name)]


def _zipped(name: str, content: bytes) -> bytes:
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return packed.getvalue()
