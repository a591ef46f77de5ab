"""The one place that reads a click on a card from a discord.Interaction, and that answers one."""

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

# Discord: later it takes no answer.
ANSWER_SECONDS = 3.0
UNANSWERABLE = (discord.DiscordException, aiohttp.ClientError, OSError, RuntimeError, *UNREADABLE)


def read_click(interaction: discord.Interaction[Any]) -> Click | None:
    """What was clicked, chosen or written on a card of ours; None for any other interaction and for a malformed one."""
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
    """What was clicked below an offer of ours; None for any other interaction."""
    offer_id, reply = _parts(interaction.data or {}, OFFER_PREFIX)
    return OfferClick(offer_id, interaction.user.id, reply) if offer_id else None


def _parts(data: Mapping[str, Any], prefix: str) -> tuple[str, str]:
    """The id in a custom_id of ours, and what was clicked of it; two empty ones where it is none."""
    custom_id = data.get("custom_id")
    if not isinstance(custom_id, str) or not custom_id.startswith(prefix):
        return "", ""
    ours, _, what = custom_id.removeprefix(prefix).rpartition(":")
    return ours, what


async def whisper(interaction: discord.Interaction[Any], text: str) -> bool:
    """Tells whoever clicked something that nobody else sees: up to 2,000 characters, as in settle.

    Returns, as all answers do, whether Discord took it: it takes one for each click, within 3 s. Raises nothing.
    """
    nobody = discord.AllowedMentions.none()
    return await took(interaction, interaction.response.send_message(text, ephemeral=True, allowed_mentions=nobody))


async def settle(interaction: discord.Interaction[Any], text: str) -> bool:
    """The message of the card becomes its final text; the card goes."""
    changed = interaction.response.edit_message(content=text, view=None, allowed_mentions=PINGS)
    return await took(interaction, changed)


async def show_form(interaction: discord.Interaction[Any], prompt_id: str, title: str, question: str) -> bool:
    """Opens a form in which the question can be answered in writing. Not for a click that sends a form."""
    return await took(interaction, interaction.response.send_modal(form_of(prompt_id, title, question)))


async def took(interaction: discord.Interaction[Any], answer: Awaitable[object]) -> bool:
    """Whether Discord took this answer to a click in time; raises nothing."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await answer
    except UNANSWERABLE as error:
        log.warning("click_unanswered", interaction=interaction.id, error=str(error) or type(error).__name__)
        return False
    return True
