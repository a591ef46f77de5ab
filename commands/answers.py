"""Ephemeral responses to commands. If Discord refuses one, that is logged and not raised."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import wraps
from typing import Any

import discord
import structlog
from discord import app_commands

from activity import Activity, FaultKind
from discord_io.interactions import ids_of, respond, whisper
from discord_io.split import MAX_LENGTH, split

log = structlog.get_logger()

# Discord's inline markdown, and URLs, which stay. discord.py's escape_markdown skips the text between two links.
MARKS = re.compile(r"(https?://[^\s<\[]+)|([\\_~|*`\[])")

INCOMPLETE = "That could not be done completely. Whoever runs me can find the reason in my log; please try again later."

BROKEN = "Something went wrong, and it is my fault. Whoever runs me can find it in my log; please try again later."
OUTDATED = "That command has changed since Discord showed it to you. Reload Discord, and use it again."

# Discord allows a user-installed app five follow-ups to a response.
MAX_PARTS = 6
TOO_LONG = "\n-# There is more, but it does not fit here."

# The text of the response, or text and files.
Outcome = str | tuple[str, Sequence[discord.File]]
Choices = list[app_commands.Choice[str]]


async def carry_out(interaction: discord.Interaction, work: Awaitable[Outcome], *, failed: str) -> None:
    """Defers the response, does work that may take longer than the 3 s Discord waits, and responds with its outcome.

    The work is done even if Discord refuses the response: what somebody asks to delete is deleted. failed: the log
    event when the work raises OSError.
    """
    await defer(interaction)
    await follow_up(interaction, work, failed=failed)


async def defer(interaction: discord.Interaction) -> bool:
    """Defers the response, so that it may take longer than 3 s. False: Discord had already stopped waiting."""
    # Without a timeout: if Discord took it but says so late, the answer must still follow.
    return await respond(interaction, interaction.response.defer(ephemeral=True, thinking=True), seconds=None)


async def follow_up(interaction: discord.Interaction, work: Awaitable[Outcome], *, failed: str) -> None:
    """Responds to a deferred interaction. failed: as for carry_out."""
    try:
        outcome = await work
    except OSError as error:
        log.error(failed, **ids_of(interaction), detail=str(error))
        outcome = INCOMPLETE
    text, files = (outcome, ()) if isinstance(outcome, str) else outcome
    parts = split(text)
    if len(parts) > MAX_PARTS:
        parts = [*parts[: MAX_PARTS - 1], f"{parts[MAX_PARTS - 1][: MAX_LENGTH - len(TOO_LONG)]}{TOO_LONG}"]
    nobody = discord.AllowedMentions.none()
    if files:
        first = interaction.edit_original_response(content=parts[0], attachments=files, allowed_mentions=nobody)
        await respond(interaction, first, seconds=None)
    else:
        await respond(interaction, _edit_original(interaction, parts[0]), seconds=None)
    for part in parts[1:]:
        sent = interaction.followup.send(part, ephemeral=True, suppress_embeds=True, allowed_mentions=nobody)
        await respond(interaction, sent, seconds=None)


async def _edit_original(interaction: discord.Interaction, text: str) -> None:
    """Like edit_original_response, which has no parameter for flags, with embeds suppressed.

    For a preview Discord would open any address in the text, and a message could have made the model write one that
    gives away what the model was told.
    """
    ids: dict[str, Any] = {"webhook_id": interaction.application_id, "webhook_token": interaction.token}
    route = discord.http.Route("PATCH", "/webhooks/{webhook_id}/{webhook_token}/messages/@original", **ids)
    flags = discord.MessageFlags(suppress_embeds=True).value
    body = {"content": text, "flags": flags, "allowed_mentions": discord.AllowedMentions.none().to_dict()}
    await interaction.client.http.request(route, json=body)


async def break_off(activity: Activity, interaction: discord.Interaction, error: Exception) -> None:
    """Logs and counts an error of the bot's own that ended the work on an interaction, and tells the user."""
    if isinstance(error, app_commands.CommandNotFound | app_commands.CommandSignatureMismatch):
        log.warning("command_outdated", **ids_of(interaction), detail=str(error))
        await whisper(interaction, OUTDATED)
        return
    log.error("interaction_broken", **ids_of(interaction), interaction=interaction.id, exc_info=error)
    says = "An error of the bot's own ended a command or a click: its log has the details."
    where = interaction.guild_id or 0, interaction.channel_id or 0
    activity.fault(FaultKind.INTERNAL, "interaction_broken", says, *where)
    if interaction.type is discord.InteractionType.autocomplete:  # which takes choices, and no words
        return
    if interaction.response.is_done():
        await respond(interaction, interaction.followup.send(BROKEN, ephemeral=True), seconds=None)
    else:
        await whisper(interaction, BROKEN)


def or_none(suggest: Callable[..., Awaitable[Choices]]) -> Callable[..., Coroutine[Any, Any, Choices]]:
    """Decorates an autocomplete: after an error it suggests nothing, and the error is handled as one of a command is.
    discord.py would only log it."""

    @wraps(suggest)
    async def suggest_or_none(*arguments: Any) -> Choices:
        try:
            return await suggest(*arguments)
        except Exception as error:  # noqa: BLE001 - the edge of a suggestion: whoever runs the bot is told
            interaction: discord.Interaction[Any] = arguments[-2]
            await interaction.client.tree.on_error(interaction, error)
            return []

    return suggest_or_none


def plain(words: str) -> str:
    """The text on one line, with Discord's markdown escaped."""
    return MARKS.sub(lambda mark: mark[1] or f"\\{mark[2]}", " ".join(words.split()))


def channel_of(interaction: discord.Interaction) -> int:
    """Id of the channel in which a command is used; in a thread, of the thread's parent."""
    channel = interaction.channel
    return channel.parent_id if isinstance(channel, discord.Thread) else interaction.channel_id or 0
