"""/offers: switches unasked offers of help on or off in a channel and its threads. For those who manage it."""

from __future__ import annotations

from typing import Protocol

import discord
from discord import app_commands
from discord.utils import format_dt

from commands.answers import Outcome, carry_out, channel_of
from discord_io.interactions import whisper
from offers.proactive_offers import OffersStatus
from place_settings.fields import SettingRefusedError

NOT_THEIRS = "Only those who manage this channel can say, or see, whether I offer help in it."
ON = "Done: I now offer help in this channel where a question stays unanswered, at most {times} a day. {off_ends}"
ON_ALREADY = "I offer help in this channel already, at most {times} a day. {off_ends}"
OFF_ENDS = "/offers off ends that."
OFF = "Done: I no longer offer help in this channel."
OFF_ALREADY = "I was not offering help in this channel."
NONE_AT_ALL = "Whoever runs me has switched offers off everywhere (OFFERS_PER_DAY is 0), so there will be none."
MAY_NOT_SPEAK = "But I may not write in this channel: until I may, there will be no offers."


class Offers(Protocol):
    """The offers of all channels."""

    async def switch(self, channel_id: int, guild_id: int, *, on: bool, by: int = 0) -> bool:
        """Returns whether that changed anything. Raises OSError if it could not be stored."""

    def status(self, channel_id: int) -> OffersStatus: ...

    def toured(self, channel_id: int, guild_id: int) -> None:
        """Notes that somebody is shown the tour there."""


def add_offers(tree: app_commands.CommandTree, offers: Offers) -> None:
    group = app_commands.Group(
        name="offers",
        description="Whether I offer help in this channel without being asked.",
        guild_only=True,
        allowed_contexts=app_commands.AppCommandContext(guild=True),
        default_permissions=discord.Permissions(manage_channels=True),
    )

    @group.command(description="Offer help in this channel where a question stays unanswered.")
    async def on(interaction: discord.Interaction) -> None:
        await switch(interaction, on=True)

    @group.command(description="Stop offering help in this channel.")
    async def off(interaction: discord.Interaction) -> None:
        await switch(interaction, on=False)

    @group.command(description="Do I offer help in this channel, how often today, and when next?")
    async def status(interaction: discord.Interaction) -> None:
        refusal = _refusal(interaction)
        await whisper(interaction, refusal or status_sentences(offers.status(channel_of(interaction))))

    async def switch(interaction: discord.Interaction, *, on: bool) -> None:
        if refusal := _refusal(interaction):
            await whisper(interaction, refusal)
        else:
            await carry_out(interaction, switched(interaction, on=on), failed="offers_not_switched")

    async def switched(interaction: discord.Interaction, *, on: bool) -> Outcome:
        channel_id = channel_of(interaction)
        try:
            has_changed = await offers.switch(channel_id, interaction.guild_id or 0, on=on, by=interaction.user.id)
        except SettingRefusedError as refused:  # too many places of the server have settings of their own
            return str(refused)
        if on:
            return on_sentence(offers.status(channel_id), has_changed=has_changed)
        return OFF if has_changed else OFF_ALREADY

    tree.add_command(group)


def _refusal(interaction: discord.Interaction) -> str | None:
    # Discord checks the permission only while the server has not overridden it for the command.
    return None if interaction.permissions.manage_channels else NOT_THEIRS


def on_sentence(status: OffersStatus, *, has_changed: bool) -> str:
    if status.per_day == 0:
        return NONE_AT_ALL
    sentence = (ON if has_changed else ON_ALREADY).format(times=times(status.per_day), off_ends=OFF_ENDS)
    return sentence if status.may_speak else f"{sentence} {MAY_NOT_SPEAK}"


def status_sentences(status: OffersStatus) -> str:
    """The response of /offers status."""
    if status.is_on and status.per_day == 0:
        return NONE_AT_ALL
    if not status.is_on:
        return "I do not offer help in this channel. /offers on switches that on."
    if not status.may_speak:
        next_offer = MAY_NOT_SPEAK
    elif status.earliest is not None:
        next_offer = f"The next can come {format_dt(status.earliest, 'R')} at the earliest."
    else:
        next_offer = f"The next can come {'once that one is over' if status.is_open else 'at any time'}."
    sentences = [
        f"I offer help in this channel: {status.made_today} of at most {status.per_day} offers in the last 24 hours.",
        *(["One is waiting for an answer."] if status.is_open else []),
        next_offer,
        *([f"Quiet hours, without offers: {status.quiet_hours}."] if status.quiet_hours else []),
    ]
    return " ".join(sentences)


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
