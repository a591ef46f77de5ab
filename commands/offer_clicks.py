"""Clicks on the quick replies of offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import discord

from delivery.card import OfferClick
from delivery.clicks import read_offer_click, settle, whisper
from delivery.post import Posted
from initiative.initiative import Initiative
from initiative.offer import Offer, Reply
from initiative.offers import Offers

TOO_LATE = "That offer is no longer open."
NOT_YOURS = "That offer was made to somebody else."
ALL_RIGHT = "All right."
NEVER_HERE = "Understood: I offer no more help in this channel. Whoever manages it can have me do so with /offers on."


class OfferClicks:
    """Each click answers its offer as typed words would, and only once.

    refuse: says why no answer can be begun now, or None. accept: has it taken up. stored: waits, shortly, until that
    would survive a kill.
    """

    def __init__(
        self,
        initiative: Initiative,
        offers: Offers,
        *,
        refuse: Callable[[discord.Interaction, Offer], str | None],
        accept: Callable[[discord.Interaction], None],
        stored: Callable[[], Awaitable[None]],
    ) -> None:
        self._initiative = initiative
        self._offers = offers
        self._refuse = refuse
        self._accept = accept
        self._stored = stored

    async def answer(self, interaction: discord.Interaction) -> bool:
        """Answers an interaction if it is a click below an offer. Returns whether it was one."""
        click, card = read_offer_click(interaction), interaction.message
        if click is None or card is None:
            return False
        offer = self._offers.find(card.channel.id, click.offer_id, Posted(card.id, card.created_at))
        if offer is None:
            await whisper(interaction, TOO_LATE)
            if not self._offers.is_last(card.channel.id, card.id):
                self._offers.remove(interaction.guild_id or 0, card.channel.id, card.id)
        elif not _is_theirs(interaction, click, offer):
            await whisper(interaction, NOT_YOURS)
        else:
            await self._answer(interaction, click, offer)
        return True

    async def _answer(self, interaction: discord.Interaction, click: OfferClick, offer: Offer) -> None:
        channel_id = interaction.channel_id or 0
        match click.reply:
            case Reply.YES:
                await self._take_up(interaction, offer)
            case Reply.NOT_NOW:
                self._offers.decline(channel_id)
                await whisper(interaction, ALL_RIGHT)
            case Reply.NOT_HERE:
                self._initiative.switch_off(channel_id)
                await self._stored()
                await whisper(interaction, NEVER_HERE)
            case _:
                await whisper(interaction, TOO_LATE)

    async def _take_up(self, interaction: discord.Interaction, offer: Offer) -> None:
        if refusal := self._refuse(interaction, offer):
            await whisper(interaction, refusal)
            return
        self._accept(interaction)
        await self._stored()  # before anybody sees that it counts: a click cannot be read again after a kill
        if not await settle(interaction, offer.taken_up):
            self._offers.settle(interaction.channel_id or 0, offer)


def _is_theirs(interaction: discord.Interaction, click: OfferClick, offer: Offer) -> bool:
    """Whoever manages the channel can also end that offers are made there."""
    return click.user_id == offer.user_id or (click.reply == Reply.NOT_HERE and interaction.permissions.manage_channels)
