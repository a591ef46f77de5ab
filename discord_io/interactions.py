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
    custom_id = data.get("custom_id")
    if not isinstance(custom_id, str) or not custom_id.startswith(PREFIX):
        return None
    prompt_id, _, what = custom_id.removeprefix(PREFIX).rpartition(":")
    try:
        action = _action(interaction.type, what, data)
    except (LookupError, TypeError, ValueError):
        return None
    return Click(prompt_id, interaction.user.id, action) if prompt_id else None


def read_offer_click(interaction: discord.Interaction[Any]) -> OfferClick | None:
    """What was clicked below an offer of ours; None for any other interaction."""
    data: Mapping[str, Any] = interaction.data or {}
    custom_id = data.get("custom_id")
    if not isinstance(custom_id, str) or not custom_id.startswith(OFFER_PREFIX):
        return None
    offer_id, _, reply = custom_id.removeprefix(OFFER_PREFIX).rpartition(":")
    return OfferClick(offer_id, interaction.user.id, reply)


def _action(kind: discord.InteractionType, what: str, data: Mapping[str, Any]) -> Press | Chosen | Written:
    """Raises LookupError, TypeError or ValueError for what our cards do not have."""
    if kind is discord.InteractionType.modal_submit:
        return Written(_written(what, data))
    if kind is not discord.InteractionType.component:
        raise ValueError(kind)
    if what == MENU:
        [what] = data["values"]
        return _chosen(what)
    return _chosen(what) if what.isdecimal() else Press(what)


def _chosen(index: str) -> Chosen:
    if not 0 <= int(index) < MAX_CHOICES:
        raise ValueError(index)
    return Chosen(int(index))


def _written(what: str, data: Mapping[str, Any]) -> str:
    [label] = data["components"]
    box = label["component"]
    if what != FORM or box["custom_id"] != FORM:
        raise ValueError(what)
    return str(box["value"]).strip()


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
