"""One answer on its way into a channel: posted as soon as there is text, edited as it grows, split where it must be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from conversation import MessageRecord
from delivery.card import Card
from delivery.split import split

# Discord allows 5 edits in 5 s for each message; slower reads as well and leaves room for others.
EDIT_INTERVAL_SECONDS = 1.0
# Nobody sees the difference, and the request to the model goes out first.
TYPING_DELAY_SECONDS = 0.01
# After an outage that discord.py's own five tries did not outlast.
TRIES = 2
RETRY_INTERVALS = 2


class Problem(StrEnum):
    """Why something could not be posted."""

    FORBIDDEN = "forbidden"
    REJECTED = "rejected"
    GONE = "gone"
    UNREACHABLE = "unreachable"


class PostError(Exception):
    """Discord did not take what was sent."""

    def __init__(self, problem: Problem, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Posted:
    """A message of ours as it stands in the channel."""

    message_id: int
    at: datetime


class Wire(Protocol):
    """The way into one channel. All but typing and react raise PostError."""

    async def send(self, text: str, *, nonce: str, reply_to: int | None, card: Card | None = None) -> Posted: ...

    async def edit(self, message_id: int, text: str, card: Card | None = None) -> None: ...

    async def settle(self, message_id: int, text: str) -> None:
        """The message of a card becomes its final text; the card goes."""

    async def delete(self, message_id: int) -> None: ...

    async def react(self, message_id: int, emoji: str) -> None: ...

    async def keep_typing(self) -> None: ...


class _Content(NamedTuple):
    text: str
    card: Card | None


@dataclass(slots=True)
class _Part:
    message: Posted
    content: _Content
    next_edit: float


class Post:
    """One answer. show() is called as the text grows, finish() once.

    question: what is answered; the nonces come from its id. reply_to: the id of the message that the first part replies
    to, asked for when it is posted. addressees: ids of those
    who are answered. record: told of each part as it is posted or edited.
    """

    def __init__(
        self,
        wire: Wire,
        question: MessageRecord,
        *,
        reply_to: Callable[[], int],
        bot: tuple[str, int],
        addressees: frozenset[int],
        record: Callable[[MessageRecord], None],
        edit_interval_seconds: float = EDIT_INTERVAL_SECONDS,
    ) -> None:
        self._wire = wire
        self._question = question
        self._reply_to = reply_to
        self._bot = bot
        self._addressees = addressees
        self._record = record
        self._interval = edit_interval_seconds
        self._parts: list[_Part] = []
        self._text = ""
        self._card: Card | None = None
        self.shown = ""
        self._wanted: list[_Content] = []
        self._changed = asyncio.Event()
        self._tries_left = TRIES
        self._final = False
        self._typing: asyncio.Task[None] | None = asyncio.create_task(self._type())
        self._publisher = asyncio.create_task(self._publish())

    @property
    def broken(self) -> asyncio.Task[None]:
        """Done early when posting failed: there is no use in going on."""
        return self._publisher

    def show(self, text: str) -> None:
        """The whole text so far."""
        self._text = text
        self._changed.set()

    async def finish(self, text: str, card: Card | None = None) -> int | None:
        """Posts what is still to be posted, the card on its last message; an empty text takes back what was posted.

        Returns the id of the last message; None when none stands. Raises PostError.
        """
        self._final, self._card = True, card
        self.show(text)
        try:
            await self._publisher
            self._wanted = self._contents(text)
            while len(self._parts) > len(self._wanted):
                await self._wire.delete(self._parts.pop().message.message_id)
        finally:
            self._stop_typing()
        return self._parts[-1].message.message_id if self._parts else None

    def _contents(self, text: str) -> list[_Content]:
        parts = split(text)
        return [_Content(part, self._card if n == len(parts) else None) for n, part in enumerate(parts, 1)]

    async def _type(self) -> None:
        await asyncio.sleep(TYPING_DELAY_SECONDS)
        await self._wire.keep_typing()

    def _stop_typing(self) -> None:
        if self._typing:
            self._typing.cancel()
            self._typing = None

    async def _publish(self) -> None:
        while True:
            self._changed.clear()
            text = self._text
            self._wanted = self._contents(text)
            wait = await self._publish_due()
            self.shown = text if wait is None else self.shown
            if wait is not None:
                await asyncio.sleep(wait)
            elif not self._changed.is_set():
                if self._final:
                    return
                await self._changed.wait()

    async def _publish_due(self) -> float | None:
        """Brings the channel as close to what is wanted as the edit interval, and Discord, allow.

        Returns the seconds until the next edit is allowed, or None when nothing is left to do.
        """
        try:
            waits = [await self._bring(index, content) for index, content in enumerate(self._wanted)]
        except PostError as error:
            if error.problem is not Problem.UNREACHABLE or self._tries_left == 0:
                raise
            # Sent again with the same nonce, it is not doubled where it arrived after all.
            self._tries_left -= 1
            return RETRY_INTERVALS * self._interval
        self._tries_left = TRIES
        return min((wait for wait in waits if wait is not None), default=None)

    async def _bring(self, index: int, content: _Content) -> float | None:
        """Posts or edits one part; returns the seconds until it may be edited, if it is too early for that."""
        if index >= len(self._parts):
            await self._send(index, content)
            return None
        part = self._parts[index]
        wait = part.next_edit - self._now()
        if part.content == content or wait > 0:
            return None if part.content == content else wait
        await self._wire.edit(part.message.message_id, content.text, content.card)
        part.content, part.next_edit = content, self._now() + self._interval
        self._note(part.message, content.text)
        return None

    async def _send(self, index: int, content: _Content) -> None:
        reply_to = self._reply_to() if index == 0 else None
        nonce = f"{self._question.message_id}-{index}"
        message = await self._wire.send(content.text, nonce=nonce, reply_to=reply_to, card=content.card)
        self._stop_typing()
        self._parts.append(_Part(message, content, self._now() + self._interval))
        self._note(message, content.text)

    def _note(self, message: Posted, text: str) -> None:
        name, user_id = self._bot
        self._record(
            MessageRecord(
                author=name,
                author_id=user_id,
                content=text,
                timestamp=message.at,
                is_bot=True,
                message_id=message.message_id,
                mentioned=frozenset(),
                reply_to_id=self._question.message_id,
                addressees=self._addressees,
            )
        )

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
