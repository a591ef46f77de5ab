"""The one place that reads clicks on cards from a discord.Interaction, and answers them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

import aiohttp
import discord
import structlog

from discord_io.card import MAX_CHOICES, Chosen, Click, OfferClick, Press, Written
from discord_io.discord_wire import PINGS, UNREADABLE
from discord_io.view import FORM, MENU, OFFER_PREFIX, PREFIX, form_of

log = structlog.get_logger()

# Discord: an interaction must be answered within that.
ANSWER_SECONDS = 3.0
UNANSWERABLE = (discord.DiscordException, aiohttp.ClientError, OSError, RuntimeError, *UNREADABLE)


def read_click(interaction: discord.Interaction[Any]) -> Click | None:
    """What was clicked, chosen or written on a card of ours; None: any other interaction, or a malformed one."""
    data: Mapping[str, Any] = interaction.data or {}
    prompt_id, what = _parts(data, PREFIX)
    action: Press | Chosen | Written
    try:
        match interaction.type:
            case discord.InteractionType.modal_submit:
                [label] = data["components"]
                box = label["component"]
                is_ours = what == box["custom_id"] == FORM
                action = Written(str(box["value"]).strip())
            case discord.InteractionType.component:
                is_option = what == MENU or what.isdecimal()
                [option] = data["values"] if what == MENU else [what]
                action = Chosen(int(option)) if is_option else Press(what)
                is_ours = not is_option or 0 <= int(option) < MAX_CHOICES
            case _:
                return None
    except (LookupError, TypeError, ValueError):
        return None
    return Click(prompt_id, interaction.user.id, action) if prompt_id and is_ours else None


def read_offer_click(interaction: discord.Interaction[Any]) -> OfferClick | None:
    """What was clicked below an offer of ours; None: any other interaction."""
    offer_id, reply = _parts(interaction.data or {}, OFFER_PREFIX)
    return OfferClick(offer_id, interaction.user.id, reply) if offer_id else None


def _parts(data: Mapping[str, Any], prefix: str) -> tuple[str, str]:
    """The id in a custom_id of ours, and what was clicked; both empty: it is not ours."""
    custom_id = data.get("custom_id")
    if not isinstance(custom_id, str) or not custom_id.startswith(prefix):
        return "", ""
    ours, _, what = custom_id.removeprefix(prefix).rpartition(":")
    return ours, what


async def whisper(interaction: discord.Interaction[Any], text: str) -> bool:
    """Answers with a message that only the user sees, of up to 2,000 characters, without previews of addresses in it.

    Returns, like all answers here, whether Discord accepted it: one for each interaction, within 3 s. Raises nothing.
    """
    nobody = discord.AllowedMentions.none()
    sent = interaction.response.send_message(text, ephemeral=True, suppress_embeds=True, allowed_mentions=nobody)
    return await respond(interaction, sent)


async def settle(interaction: discord.Interaction[Any], text: str) -> bool:
    """Answers a click by replacing the card's message by its final text, without the card."""
    changed = interaction.response.edit_message(content=text, view=None, allowed_mentions=PINGS)
    return await respond(interaction, changed)


async def show_form(interaction: discord.Interaction[Any], prompt_id: str, title: str, question: str) -> bool:
    """Answers a click by opening a form for a written answer. Not possible for the submission of a form."""
    return await respond(interaction, interaction.response.send_modal(form_of(prompt_id, title, question)))


async def respond(
    interaction: discord.Interaction[Any], answer: Awaitable[object], *, seconds: float | None = ANSWER_SECONDS
) -> bool:
    """Sends an answer. Returns whether Discord accepted it in time; a refusal is only logged.

    seconds: the most that it may take; None: it may take longer, as what follows an answer may.
    """
    try:
        async with asyncio.timeout(seconds):
            await answer
    except UNANSWERABLE as error:
        log.warning("interaction_failed", **ids_of(interaction), detail=str(error) or type(error).__name__)
        return False
    return True


def ids_of(interaction: discord.Interaction[Any]) -> dict[str, int | str | None]:
    """Where, by whom and by which command an interaction was made, for the log."""
    return {
        "guild": interaction.guild_id,
        "channel": interaction.channel_id,
        "user": interaction.user.id,
        "command": interaction.command.qualified_name if interaction.command else "",
    }
