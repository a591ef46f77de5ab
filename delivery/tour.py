"""The tour: its pages, the buttons that lead through it, and how a click on them is read and answered.

Nothing is kept of a tour: each button's custom_id names the step that it leads to, so it works after a restart, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import discord

from delivery.clicks import took

PREFIX = "parley:tour:"
STEP = re.compile(r"[0-9]{1,2}")
CLOSING = "-# That was the tour. Mention me when you want something; /tour shows it again."


@dataclass(frozen=True, slots=True)
class TourFacts:
    """What the pages say of one channel.

    may_speak: the bot may write there; offers_per_day: at most; retention_days: how long is kept what was said.
    """

    bot_name: str
    may_speak: bool
    offers_on: bool
    offers_per_day: int
    can_plan_trips: bool
    retention_days: int


@dataclass(frozen=True, slots=True)
class TourPage:
    """One step. text: in Discord's Markdown."""

    title: str
    text: str


class TourPress(StrEnum):
    """What a click can be that leads to no step."""

    DONE = "done"
    UNKNOWN = "unknown"


def pages(facts: TourFacts) -> tuple[TourPage, ...]:
    """The steps in order: always as many, since a card may be clicked long after it was shown."""
    name = discord.utils.escape_markdown(facts.bot_name)
    return (
        _asking(name, facts),
        _silence(),
        _questions(name, facts),
        _offers(facts),
        _memory(facts),
        _why(),
    )


def _asking(name: str, facts: TourFacts) -> TourPage:
    text = (
        "Mention me, or reply to something I said, and I answer. As long as the conversation lasts you can go on "
        "without a mention: I follow.\n"
        f"> @{name} what is a good name for a cat?\n"
        "> and for a dog?"
    )
    mute = "\n\nIn this channel I may not write at the moment, so here I keep silent."
    return TourPage("Ask me", text if facts.may_speak else text + mute)


def _silence() -> TourPage:
    return TourPage(
        "When I keep silent",
        "What you say to each other I leave alone, and a bare thanks or ok. Where nobody is talking with me, I answer "
        "only what mentions me or replies to me.\n\n"
        '"Stop" ends an answer you asked for, and so does deleting your question. Did I butt in? Say "not you", and I '
        "keep out of what you say until you mention me again.",
    )


def _questions(name: str, facts: TourFacts) -> TourPage:
    text = (
        'Sometimes I ask back. Click a button, or type your answer: the number, the name, "the last one", "yes", '
        '"never mind". Only whoever I ask can answer.'
    )
    trips = (
        "\n\nI also plan trips, one list of places for this channel:\n"
        f"> @{name} start a trip called Tokyo 2024\n"
        "> add shake shack\n"
        "> list our trip\n"
        "> export the trip"
    )
    return TourPage("Buttons, or your own words", text + trips if facts.can_plan_trips else text)


def _offers(facts: TourFacts) -> TourPage:
    if not facts.offers_on:
        return TourPage(
            "Offers",
            "I can offer help where a question stays unanswered. In this channel I do not; those who manage it can "
            "switch that on with /offers on.",
        )
    times = "once" if facts.offers_per_day == 1 else f"{facts.offers_per_day} times"
    return TourPage(
        "Offers",
        f"Where a question stays unanswered I may offer help in this channel, at most {times} a day and without a "
        "notification. Click or say yes or no; left alone, the offer goes away. For that I hold the last messages here "
        "in memory, for an hour at most.\n\n"
        'The button "Not in this channel" ends offers here, and so do those who manage it with /offers off.',
    )


def _memory(facts: TourFacts) -> TourPage:
    days = "a day" if facts.retention_days == 1 else f"{facts.retention_days} days"
    return TourPage(
        "What I remember",
        f"What was said in conversations with me, for {days}. To answer I may give it to the language model that "
        "whoever runs me chose. What you edit or delete in Discord is edited or deleted here, too.\n"
        "- `/forget`: what you said is deleted, in all channels.\n"
        "- `/optout`: your messages are no longer kept or sent to a model, but for one that mentions me, for its "
        "answer. `/optin` ends this.\n"
        "- `/export`: a file with your own messages, as I keep them.",
    )


def _why() -> TourPage:
    return TourPage(
        "Why did I speak, or not?",
        "`/why` tells it of the last messages here. For any one message: right-click it, *Apps*, *Why?*",
    )


def text_of(page: TourPage, step: int, steps: int) -> str:
    """The card's text. step: from 0."""
    return f"**{page.title}**\n{page.text}\n\n-# Step {step + 1} of {steps}"


def view_of(step: int, steps: int) -> discord.ui.View:
    """Back, Next and Done, always in the same places. The library does not keep it (as in delivery/view.py).

    It must be made where an event loop runs.
    """
    view = discord.ui.View(timeout=None)
    view.add_item(_button("Back", step - 1, steps))
    view.add_item(_button("Next", step + 1, steps, discord.ButtonStyle.primary))
    view.add_item(discord.ui.Button(label="Done", custom_id=PREFIX + TourPress.DONE))
    view.stop()
    return view


def _button(
    label: str, to: int, steps: int, style: discord.ButtonStyle = discord.ButtonStyle.secondary
) -> discord.ui.Button[Any]:
    return discord.ui.Button(label=label, custom_id=f"{PREFIX}{to}", style=style, disabled=not 0 <= to < steps)


def read_tour_click(interaction: discord.Interaction[Any]) -> int | TourPress | None:
    """The step, from 0 to 99, that a click on a tour's card leads to; None for any other interaction."""
    data: Mapping[str, Any] = interaction.data or {}
    custom_id = data.get("custom_id") if interaction.type is discord.InteractionType.component else None
    if not isinstance(custom_id, str) or not custom_id.startswith(PREFIX):
        return None
    what = custom_id.removeprefix(PREFIX)
    if STEP.fullmatch(what):
        return int(what)
    return TourPress.DONE if what == TourPress.DONE else TourPress.UNKNOWN


async def turn_to(interaction: discord.Interaction[Any], text: str, view: discord.ui.View) -> bool:
    """The clicked card shows another step. Returns whether Discord took it; raises nothing."""
    nobody = discord.AllowedMentions.none()
    return await took(interaction, interaction.response.edit_message(content=text, view=view, allowed_mentions=nobody))
