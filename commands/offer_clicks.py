"""Clicks on the buttons of offers."""

from __future__ import annotations

import discord

from commands.clicks import ClickEdge
from discord_io.channel_wire import Posted
from discord_io.interactions import read_offer_click, settle, whisper
from offers.offer import Offer, Reply
from offers.open_offers import OpenOffers
from offers.proactive_offers import ProactiveOffers
from turns.offer_turns import NEVER_HERE

TOO_LATE = "That offer is no longer open."
NOT_YOURS = "That offer was made to somebody else."
ALL_RIGHT = "All right."


class OfferClicks:
    """Handles clicks on offers: each answers its offer as typed words would, and only once."""

    def __init__(self, proactive_offers: ProactiveOffers, offers: OpenOffers, edge: ClickEdge) -> None:
        self._proactive_offers = proactive_offers
        self._offers = offers
        self._edge = edge

    async def answer(self, interaction: discord.Interaction) -> None:
        """Handles a click on an offer's button."""
        click, card = read_offer_click(interaction), interaction.message
        if click is None or card is None:
            return
        channel_id = card.channel.id
        offer = self._offers.find(channel_id, click.offer_id, Posted(card.id, card.created_at))
        if offer is None:
            await whisper(interaction, TOO_LATE)
            if not self._offers.is_last(channel_id, card.id):
                self._offers.remove(interaction.guild_id or 0, channel_id, card.id)
            return
        # Those who manage the channel may switch offers off there, too.
        may_end = click.reply == Reply.NOT_HERE and interaction.permissions.manage_channels
        if click.user_id != offer.user_id and not may_end:
            await whisper(interaction, NOT_YOURS)
        else:
            await self._answer(interaction, channel_id, click.reply, offer)

    async def _answer(self, interaction: discord.Interaction, channel_id: int, reply: str, offer: Offer) -> None:
        match reply:
            case Reply.YES:
                if refusal := self._edge.refusal(interaction, costs_tokens=offer.opportunity.note is None):
                    await whisper(interaction, refusal)
                    return
                await self._edge.accept(interaction)
                if not await settle(interaction, offer.taken_up):
                    self._offers.settle(channel_id, offer)
            case Reply.NOT_NOW:
                self._offers.decline(channel_id)
                await whisper(interaction, ALL_RIGHT)
            case Reply.NOT_HERE:
                self._proactive_offers.switch_off(channel_id, by=interaction.user.id)
                await self._edge.stored()
                await whisper(interaction, NEVER_HERE)
            case _:
                await whisper(interaction, TOO_LATE)
