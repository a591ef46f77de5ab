"""Cards, which show prompts in Discord, and clicks on them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from state.prompts import AwaitingType

# Discord: the options of one select menu. With more, the answer has to be typed.
MAX_CHOICES = 25


@dataclass(frozen=True, slots=True)
class Card:
    """The buttons or the menu of one prompt. prompt_id: up to 40 ASCII characters. labels: the options as shown.

    awaiting_type: None: the button that moves a conversation to a thread, which belongs to no prompt. numbered: whether
    the options are shown with their numbers, which can also be typed.
    """

    prompt_id: str
    awaiting_type: AwaitingType | None
    labels: tuple[str, ...] = ()
    numbered: bool = True


THREAD_CARD = Card("", None)


class Press(StrEnum):
    """A button that is not an option."""

    YES = "yes"
    NO = "no"
    OPEN_FORM = "form"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A chosen option, by its index from 0. Whether the prompt has such an option is not checked here."""

    index: int


@dataclass(frozen=True, slots=True)
class Written:
    """The text entered in the form; may be empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Click:
    """What a user did on the card of a prompt."""

    prompt_id: str
    user_id: int
    action: Press | Chosen | Written


@dataclass(frozen=True, slots=True)
class OfferClick:
    """A click on a quick reply of an offer. Whether there is such a reply is not checked here."""

    offer_id: str
    user_id: int
    reply: str
