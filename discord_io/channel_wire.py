"""The way into one channel, as who posts there needs it, and what can go wrong on it."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from discord_io.card import Card
from discord_io.made_files import MadeFile


class Problem(StrEnum):
    """Why something could not be posted."""

    FORBIDDEN = "forbidden"
    BLOCKED = "blocked"
    """The person takes no direct messages from the bot."""
    REJECTED = "rejected"
    GONE = "gone"
    LOCKED = "locked"
    """It is a thread in which nobody may write any more."""
    UNREACHABLE = "unreachable"
    ELSEWHERE = "elsewhere"
    """Another process with our token answers it."""
    UNKNOWN = "unknown"
    """It may stand already, and there is no way to know."""
    TAKEN_BACK = "taken_back"
    """Its question was edited before anything of it stood, or called off before all did."""


class PostError(Exception):
    """Discord did not take what was sent. retry_after: for how many seconds not to ask again; 0: unknown."""

    def __init__(self, problem: Problem, detail: str, retry_after: float = 0.0) -> None:
        super().__init__(detail)
        self.problem = problem
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Posted:
    """A message of ours as it stands in the channel. content: its text as Discord tells it; empty where it does not.

    files: the names of those attached to it.
    """

    message_id: int
    at: datetime
    content: str = ""
    files: tuple[str, ...] = ()


class Wire(Protocol):
    """The way into one channel. All but typing and react raise PostError. attaches: whether it may post files."""

    @property
    def attaches(self) -> bool: ...

    async def send(
        self, text: str, *, nonce: str, reply_to: int | None, card: Card | None = None, files: Sequence[MadeFile] = ()
    ) -> Posted:
        """Posts a message; gives the one that stands already, as it does, where the nonce was used minutes ago."""

    async def find(self, texts: Container[str], *, after: int, reply_to: int | None) -> Posted | None:
        """The first message of ours after this id that replies to that one, or to none and has one of these texts.

        None where there is none. Problem.FORBIDDEN where the history may not be read and it cannot be known otherwise
        either; Problem.UNKNOWN where there is too much of it.
        """

    async def edit(
        self, message_id: int, text: str, card: Card | None = None, files: Sequence[MadeFile] | None = None
    ) -> None:
        """Changes a message. files: what is attached to it from then on; None: what was."""

    async def settle(self, message_id: int, text: str) -> None:
        """The message of a card becomes its final text; the card goes."""

    async def delete(self, message_id: int) -> None: ...

    async def react(self, message_id: int, emoji: str) -> None: ...

    async def keep_typing(self) -> None: ...
