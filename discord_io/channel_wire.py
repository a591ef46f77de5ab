"""The interface for posting to one channel, and its errors."""

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
    """The person accepts no direct messages from the bot."""
    REJECTED = "rejected"
    GONE = "gone"
    LOCKED = "locked"
    """The thread is locked, so nobody may write in it."""
    UNREACHABLE = "unreachable"
    ELSEWHERE = "elsewhere"
    """Another process with our token answers the question."""
    UNKNOWN = "unknown"
    """It may be posted already, and that cannot be found out."""
    TAKEN_BACK = "taken_back"
    """The question was edited before anything of the answer was posted, or called off before all was."""


class PostError(Exception):
    """Discord did not accept a message. retry_after: seconds to wait before the next try; 0: unknown."""

    def __init__(self, problem: Problem, detail: str, retry_after: float = 0.0) -> None:
        super().__init__(detail)
        self.problem = problem
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Posted:
    """A message of ours in the channel. content: its text as Discord returned it; empty: Discord did not.

    files: the names of its attachments.
    """

    message_id: int
    at: datetime
    content: str = ""
    files: tuple[str, ...] = ()


class Wire(Protocol):
    """Posts to one channel. All methods but keep_typing and react raise PostError. attaches: whether files may be
    posted."""

    @property
    def attaches(self) -> bool: ...

    async def send(
        self, text: str, *, nonce: str, reply_to: int | None, card: Card | None = None, files: Sequence[MadeFile] = ()
    ) -> Posted:
        """Posts a message. If the nonce was used in the last minutes, returns the message that has it, unchanged."""

    async def find(self, texts: Container[str], *, after: int, reply_to: int | None) -> Posted | None:
        """The first of our messages after this id that replies to reply_to, or to none and has one of these texts.

        None: there is none. Raises Problem.FORBIDDEN if the history may not be read, and the gateway does not tell
        either; Problem.UNKNOWN if there are too many messages to search.
        """

    async def edit(
        self, message_id: int, text: str, card: Card | None = None, files: Sequence[MadeFile] | None = None
    ) -> None:
        """Changes a message. files: its attachments from then on; None: unchanged."""

    async def settle(self, message_id: int, text: str) -> None:
        """Replaces a card's message by its final text, and removes the card."""

    async def delete(self, message_id: int) -> None: ...

    async def react(self, message_id: int, emoji: str) -> None: ...

    async def keep_typing(self, *, after: float = 0.0) -> None:
        """Shows the bot as typing, after so many seconds, until cancelled."""


class Wires(Protocol):
    """Opens wires to channels."""

    def open(self, guild_id: int, channel_id: int) -> Wire: ...
