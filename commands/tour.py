"""/tour: what the bot does in the channel, on one ephemeral card."""

from __future__ import annotations

import discord
from discord import app_commands

from commands.answers import channel_of
from commands.offer_commands import Offers, times
from discord_io.interactions import whisper
from offers.proactive_offers import OffersStatus


def add_tour(tree: app_commands.CommandTree, offers: Offers, *, retention_days: int) -> None:
    @tree.command(description="What do I do in this channel? A short tour.")
    @app_commands.guild_only()
    async def tour(interaction: discord.Interaction) -> None:
        channel_id, me = channel_of(interaction), interaction.client.user
        offers.toured(interaction.channel_id or 0, interaction.guild_id or 0)
        name = me.name if me else "Parley"
        await whisper(interaction, tour_card(name, offers.status(channel_id), retention_days=retention_days))


def tour_card(bot_name: str, status: OffersStatus, *, retention_days: int) -> str:
    """The card's text. status: of offers in the channel."""
    name = discord.utils.escape_markdown(bot_name)
    mute = "" if status.may_speak else "\nI may not write in this channel at the moment, so I keep silent here."
    offers = (
        f"Where a question stays unanswered I may offer help in this channel, at most {times(status.per_day)} a day "
        "and without a notification; left alone, the offer goes away. For that I hold the last messages here in "
        'memory, for an hour at most. "Not in this channel" or `/offers off` ends it.'
        if status.is_on
        else "I can offer help where a question stays unanswered. In this channel I do not; those who manage it can "
        "switch that on with `/offers on`."
    )
    return f"""\
**Ask me**
Mention me, or reply to something I said, and I answer. As long as the conversation lasts, I follow without a mention:
> @{name} what is a good name for a cat?
> and for a dog?{mute}

**When I keep silent**
I leave alone what you say to each other, and a bare thanks or ok. "Stop" ends an answer you asked for, "not you" is \
for when I interrupt; after either I leave you alone until you call me again. Deleting your question ends its answer, \
too.

**Buttons, or your own words**
Sometimes I ask back: click a button, or type the number, the name, "yes" or "never mind". Only whoever I ask can \
answer. I also plan trips, one list of places for this channel:
> @{name} start a trip called Tokyo 2024
> add shake shack
> list our trip
> export the trip

**Offers**
{offers}

**What I remember**
What was said in conversations with me, for {"a day" if retention_days == 1 else f"{retention_days} days"}; to answer \
I may give it to a language model. What you edit or delete in Discord is edited or deleted here, too.
`/forget`: what you said is deleted, in all channels. `/export`: a file of it. `/optout`: your messages are no longer \
kept or sent to a model, but for one that mentions me, for its answer; `/optin` ends this.

**Why did I speak, or not?**
`/why` tells you for the last messages; for a single one, right-click it, or use its last button, then *Apps*, *Why?* \
`/parley show` shows what is set here; those who manage this place change it with `/parley settings`."""
