"""An offer as a value: what it is about, how it can be answered, and how it ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pydantic import AwareDatetime

from initiative.occasion import Occasion
from state.prompts import Ask, AwaitingType, ResolutionType
from state.resolution import resolve
from state.selection import choose


class Reply(StrEnum):
    """What somebody answers to an offer."""

    YES = "yes"
    NOT_NOW = "not_now"
    NOT_HERE = "not_here"


LABELS: Mapping[str, str] = {Reply.YES: "Yes, please", Reply.NOT_NOW: "Not now", Reply.NOT_HERE: "Not in this channel"}
REPLIES = tuple(Reply)
CONFIRMATION = Ask(AwaitingType.CONFIRMATION)
NOT_HERE = re.compile(r"\b(?:not|never)\b.{0,30}\b(?:here|in this channel|in that channel)\b", re.IGNORECASE)
MAX_WORDS = 12  # whoever says more says something else, too


class Ending(StrEnum):
    """How an offer ended."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    IGNORED = "ignored"
    NOT_HERE = "not_here"
    OVERTAKEN = "overtaken"
    """Somebody else has answered."""
    WITHDRAWN = "withdrawn"
    """What it was about is gone, or it could not be posted."""


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer that is open. message_id: None until it is posted; text: as it is posted."""

    id: str
    occasion: Occasion
    made_at: AwareDatetime
    guild_id: int
    text: str
    message_id: int | None = None

    @property
    def user_id(self) -> int:
        return self.occasion.user_id

    @property
    def taken_up(self) -> str:
        """What stands in the channel once it was accepted."""
        return f"{self.text}\n-# ✓ {LABELS[Reply.YES]}"

    @property
    def subject_id(self) -> int:
        """The message that it is about."""
        about = self.occasion
        return about.subject.message_id if about.subject else about.note.source_id if about.note else 0


def read_reply(words: str, offer: str) -> Reply | None:
    """What typed words answer to an offer; None: nothing that is sure."""
    if len(words.split()) > MAX_WORDS:
        return None
    if NOT_HERE.search(words):
        return Reply.NOT_HERE
    found = resolve(words, CONFIRMATION, offer)
    if found is None:
        index = choose(words, list(LABELS.values()))
        return None if index is None else REPLIES[index]
    is_yes = found.type is ResolutionType.CONFIRMATION and found.data["confirmed"]
    return Reply.YES if is_yes else Reply.NOT_NOW
