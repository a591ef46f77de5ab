"""Clicks on the quick replies of offers."""

from __future__ import annotations

import discord

from commands.clicks import ClickEdge
from discord_io.card import OfferClick
from discord_io.interactions import read_offer_click, settle, whisper
from discord_io.streamed_reply import Posted
from offers.offer import Offer, Reply
from offers.open_offers import OpenOffers
from offers.proactive_offers import ProactiveOffers
from turns.offer_turns import NEVER_HERE

TOO_LATE = "That offer is no longer open."
NOT_YOURS = "That offer was made to somebody else."
ALL_RIGHT = "All right."


class OfferClicks:
    """Each click answers its offer as typed words would, and only once."""

    def __init__(self, proactive_offers: ProactiveOffers, offers: OpenOffers, edge: ClickEdge) -> None:
        self._proactive_offers = proactive_offers
        self._offers = offers
        self._edge = edge

    async def answer(self, interaction: discord.Interaction) -> None:
        """Answers a click below an offer."""
        click, card = read_offer_click(interaction), interaction.message
        if click is None or card is None:
            return
        offer = self._offers.find(card.channel.id, click.offer_id, Posted(card.id, card.created_at))
        if offer is None:
            await whisper(interaction, TOO_LATE)
            if not self._offers.is_last(card.channel.id, card.id):
                self._offers.remove(interaction.guild_id or 0, card.channel.id, card.id)
        elif not _is_theirs(interaction, click, offer):
            await whisper(interaction, NOT_YOURS)
        else:
            await self._answer(interaction, click, offer)

    async def _answer(self, interaction: discord.Interaction, click: OfferClick, offer: Offer) -> None:
        channel_id = interaction.channel_id or 0
        match click.reply:
            case Reply.YES:
                await self._take_up(interaction, offer)
            case Reply.NOT_NOW:
                self._offers.decline(channel_id)
                await whisper(interaction, ALL_RIGHT)
            case Reply.NOT_HERE:
                self._proactive_offers.switch_off(channel_id)
                await self._edge.stored()
                await whisper(interaction, NEVER_HERE)
            case _:
                await whisper(interaction, TOO_LATE)

    async def _take_up(self, interaction: discord.Interaction, offer: Offer) -> None:
        if refusal := self._edge.refusal(interaction, costs_tokens=offer.opportunity.note is None):
            await whisper(interaction, refusal)
            return
        await self._edge.accept(interaction)
        if not await settle(interaction, offer.taken_up):
            self._offers.settle(interaction.channel_id or 0, offer)


def _is_theirs(interaction: discord.Interaction, click: OfferClick, offer: Offer) -> bool:
    """Whoever manages the channel can also end that offers are made there."""
    return click.user_id == offer.user_id or (click.reply == Reply.NOT_HERE and interaction.permissions.manage_channels)
