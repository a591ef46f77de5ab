"""A prompt as it stands on screen, and what somebody does there: cards out, clicks in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from state.prompts import AwaitingType

# Discord: so many in one select menu. Beyond that a selection is typed.
MAX_CHOICES = 25


@dataclass(frozen=True, slots=True)
class Card:
    """The buttons or the menu of one prompt. prompt_id: up to 40 ASCII characters. labels: the options as shown.

    awaiting_type: None for the button by which a conversation goes on in a thread, which is no prompt's. numbered:
    whether they are shown with their numbers, by which they can be typed as well.
    """

    prompt_id: str
    awaiting_type: AwaitingType | None
    labels: tuple[str, ...] = ()
    numbered: bool = True


THREAD_CARD = Card("", None)


class Press(StrEnum):
    """What a button does that stands for no option."""

    YES = "yes"
    NO = "no"
    OPEN_FORM = "form"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Chosen:
    """An option, by its index from 0. Whether the prompt has so many is for its record to say."""

    index: int


@dataclass(frozen=True, slots=True)
class Written:
    """What was written into the form; it may be empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Click:
    """What a user did on the card of a prompt."""

    prompt_id: str
    user_id: int
    action: Press | Chosen | Written


@dataclass(frozen=True, slots=True)
class OfferClick:
    """Which of the quick replies below an offer a user clicked; whether there is such a one is for the offer to say."""

    offer_id: str
    user_id: int
    reply: str
