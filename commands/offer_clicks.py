"""Clicks on the quick replies of offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

import discord

from delivery.card import OfferClick
from delivery.clicks import read_offer_click, settle, whisper

TOO_LATE = "That offer is no longer open."
NOT_YOURS = "That offer was made to somebody else."
ALL_RIGHT = "All right."
NEVER_HERE = "Understood: I offer no more help in this channel. Whoever manages it can have me do so with /offers on."


class OpenOffer(Protocol):
    """An offer that can still be answered. taken_up: what stands in the channel once it is accepted."""

    @property
    def user_id(self) -> int: ...
    @property
    def taken_up(self) -> str: ...


T = TypeVar("T", bound=OpenOffer)


class OfferClicks(Generic[T]):
    """Each click answers its offer as typed words would, and only once.

    find: (the message with the click, offer id) -> the offer, None where it is over. refuse: says why no answer can be
    begun now, or None. accept: has it taken up. decline: (channel id) ends it. never: (channel id) has no more made
    there. stored: waits, shortly, until that would survive a kill. remove: (guild id, channel id, message id) -> what
    was left behind of an offer goes.
    """

    def __init__(
        self,
        *,
        find: Callable[[discord.Message, str], T | None],
        refuse: Callable[[discord.Interaction, T], str | None],
        accept: Callable[[discord.Interaction], None],
        decline: Callable[[int], object],
        never: Callable[[int], object],
        stored: Callable[[], Awaitable[None]],
        remove: Callable[[int, int, int], object],
    ) -> None:
        self._find = find
        self._refuse = refuse
        self._accept = accept
        self._decline = decline
        self._never = never
        self._stored = stored
        self._remove = remove

    async def answer(self, interaction: discord.Interaction) -> bool:
        """Answers an interaction if it is a click below an offer. Returns whether it was one."""
        click = read_offer_click(interaction)
        if click is None:
            return False
        offer = self._find(interaction.message, click.offer_id) if interaction.message else None
        if offer is None:
            await self._left_behind(interaction)
        elif not _is_theirs(interaction, click, offer):
            await whisper(interaction, NOT_YOURS)
        else:
            await self._answer(interaction, click, offer)
        return True

    async def _answer(self, interaction: discord.Interaction, click: OfferClick, offer: T) -> None:
        channel_id = interaction.channel_id or 0
        match click.reply:
            case "yes":
                await self._take_up(interaction, offer)
            case "not_now":
                self._decline(channel_id)
                await whisper(interaction, ALL_RIGHT)
            case "not_here":
                self._never(channel_id)
                await self._stored()
                await whisper(interaction, NEVER_HERE)
            case _:
                await whisper(interaction, TOO_LATE)

    async def _take_up(self, interaction: discord.Interaction, offer: T) -> None:
        if refusal := self._refuse(interaction, offer):
            await whisper(interaction, refusal)
            return
        self._accept(interaction)
        await self._stored()  # before anybody sees that it counts: a click cannot be read again after a kill
        await settle(interaction, offer.taken_up)

    async def _left_behind(self, interaction: discord.Interaction) -> None:
        await whisper(interaction, TOO_LATE)
        if interaction.message:
            self._remove(interaction.guild_id or 0, interaction.channel_id or 0, interaction.message.id)


def _is_theirs(interaction: discord.Interaction, click: OfferClick, offer: OpenOffer) -> bool:
    """Whoever manages the channel can also end that offers are made there."""
    return click.user_id == offer.user_id or (click.reply == "not_here" and interaction.permissions.manage_channels)
