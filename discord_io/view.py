"""Cards as Discord's components: buttons, menus, forms, and the custom_ids by which their clicks are recognised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import discord

from discord_io.card import MAX_CHOICES, Card, Press
from discord_io.split import clipped, ending, length
from state.prompts import AwaitingType

PREFIX = "parley:prompt:"
OFFER_PREFIX = "parley:offer:"
THREAD_PREFIX = "parley:thread:"
# In a custom_id the prompt's id is followed by one of these, a Press, or the index of an option.
MENU, FORM = "menu", "text"

# Discord's limits, in characters.
MAX_BUTTON_LABEL = 80
MAX_OPTION_LABEL = 100
MAX_TITLE = MAX_FORM_LABEL = 45
MAX_FORM_DESCRIPTION = 100
MAX_WRITTEN = 1_000
# Discord: the buttons of one row.
MAX_BUTTONS = 5

Item = discord.ui.Button[Any] | discord.ui.Select[Any]


def custom_id(prompt_id: str, what: str) -> str:
    """The custom_id of a component; within Discord's limit of 100 characters."""
    return f"{PREFIX}{prompt_id}:{what}"


def view_of(card: Card) -> discord.ui.View | None:
    """The card's components: up to 5 options are buttons, up to 25 a menu; None: the answer can only be typed.

    The view is stopped, so discord.py does not keep it: clicks are read from the raw interaction, which also works
    after a restart. Must be called in an event loop.
    """
    items: list[Item] = []
    match card.awaiting_type:
        case AwaitingType.SELECTION:
            # An option can also be chosen by typing its number, and one without visible characters still shows.
            labels = [
                f"{f'{number}. ' if card.numbered else ''}{' '.join(label.split())}"
                for number, label in enumerate(card.labels, 1)
            ]
            if len(labels) <= MAX_BUTTONS:
                items = [_button(card, str(index), label) for index, label in enumerate(labels)]
            elif len(labels) <= MAX_CHOICES:
                options = [
                    discord.SelectOption(label=clipped(label, MAX_OPTION_LABEL), value=str(index))
                    for index, label in enumerate(labels)
                ]
                menu = custom_id(card.prompt_id, MENU)
                items = [discord.ui.Select(custom_id=menu, options=options, placeholder="Choose one")]
        case AwaitingType.CONFIRMATION:
            items = [_button(card, Press.YES, "Yes", discord.ButtonStyle.success), _button(card, Press.NO, "No")]
        case AwaitingType.INPUT:
            items = [_button(card, Press.OPEN_FORM, "Answer…", discord.ButtonStyle.primary)]
        case AwaitingType.METADATA:
            note = _button(card, Press.OPEN_FORM, "Add a note…", discord.ButtonStyle.primary)
            items = [note, _button(card, Press.CANCEL, "Skip")]
        case None:
            items = [discord.ui.Button(label="Go on in a thread", custom_id=f"{THREAD_PREFIX}open")]
    return _view(items) if items else None


def offer_view(offer_id: str, labels: Mapping[str, str]) -> discord.ui.View:
    """The quick replies of an offer. offer_id: up to 40 ASCII characters. labels: each reply's label, by its name."""
    first, *_ = labels
    return _view(
        [
            discord.ui.Button(
                label=label,
                custom_id=f"{OFFER_PREFIX}{offer_id}:{reply}",
                style=discord.ButtonStyle.primary if reply == first else discord.ButtonStyle.secondary,
            )
            for reply, label in labels.items()
        ]
    )


def is_offer(message: discord.Message, offer_id: str) -> bool:
    """Whether the message shows the quick replies of this offer."""
    parts = (part for row in message.components if isinstance(row, discord.ActionRow) for part in row.children)
    return any((part.custom_id or "").startswith(f"{OFFER_PREFIX}{offer_id}:") for part in parts)


def _view(items: Sequence[Item]) -> discord.ui.View:
    view = discord.ui.View(timeout=None)
    for item in items:
        view.add_item(item)
    view.stop()
    return view


def form_of(prompt_id: str, title: str, question: str) -> discord.ui.Modal:
    """A form with one input for up to 1,000 characters. discord.py does not keep it either.

    Of a long text it shows the end, where the question is.
    """
    form = discord.ui.Modal(title=clipped(title, MAX_TITLE), custom_id=custom_id(prompt_id, FORM))
    box = discord.ui.TextInput[Any](style=discord.TextStyle.paragraph, custom_id=FORM, max_length=MAX_WRITTEN)
    if length(question) <= MAX_FORM_LABEL:
        label = discord.ui.Label[Any](text=question, component=box)
    else:
        label = discord.ui.Label(text="Answer", description=ending(question, MAX_FORM_DESCRIPTION), component=box)
    form.add_item(label)
    form.stop()
    return form


def _button(
    card: Card, what: str, label: str, style: discord.ButtonStyle = discord.ButtonStyle.secondary
) -> discord.ui.Button[Any]:
    return discord.ui.Button(
        label=clipped(label, MAX_BUTTON_LABEL), custom_id=custom_id(card.prompt_id, what), style=style
    )
