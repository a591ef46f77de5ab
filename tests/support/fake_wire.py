"""A channel in memory, in place of Discord's."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from discord_io.card import Card
from discord_io.channel_wire import Posted, PostError, Problem
from discord_io.made_files import MadeFile
from tests.support.clock import NOON

KINDS = ("send", "find", "edit", "settle", "delete")


@dataclass(frozen=True)
class Call:
    """Something that was done to the channel. at: seconds of the event loop's clock."""

    kind: str
    at: float
    message_id: int
    text: str = ""
    nonce: str = ""
    reply_to: int | None = None
    card: Card | None = None


class FakeWire:
    """Keeps what stands in the channel, texts and cards, and every call.

    problems: what the next calls fail with; None: they succeed. retry_after: what failures ask for. seconds_per_call:
    how long Discord takes. gate: while it is there and not set, sends wait for it. ids: of the messages, in their
    order. replies: what messages reply to. arrives_anyway: sends that fail do arrive. forgets_nonces: as Discord does
    after some minutes; before that, a second send with a nonce gives the first message. listeners: told of what is
    posted and edited, as by the gateway: id, content, what it replies to.
    """

    def __init__(self, ids: Iterator[int] | None = None) -> None:
        self._ids = ids or count(9_000_000)  # behind all that people say
        self.calls: list[Call] = []
        self.standing: dict[int, str] = {}
        self.cards: dict[int, Card] = {}
        self.problems: dict[str, deque[Problem | None]] = {kind: deque() for kind in KINDS}
        self.retry_after = 0.0
        self.replies: dict[int, int] = {}
        self.seconds_per_call = 0.0
        self.gate: asyncio.Event | None = None
        self.arrives_anyway = False
        self.forgets_nonces = False
        self.listeners: list[Callable[[int, str, int | None], None]] = []
        self._nonces: dict[str, int] = {}
        self.attaches = True
        self.files: dict[int, tuple[MadeFile, ...]] = {}
        self.typing = 0
        self.typed = False

    @property
    def texts(self) -> list[str]:
        return list(self.standing.values())

    def done(self, kind: str) -> list[Call]:
        return [call for call in self.calls if call.kind == kind]

    async def send(
        self, text: str, *, nonce: str, reply_to: int | None, card: Card | None = None, files: Sequence[MadeFile] = ()
    ) -> Posted:
        if self.gate:
            await self.gate.wait()
        message_id = next(self._ids)
        try:
            await self._call(Call("send", _now(), message_id, text, nonce, reply_to, card))
        except PostError:
            if self.arrives_anyway:
                self._post(message_id, text, nonce, reply_to, card)
            raise
        new, message_id = message_id, self._post(message_id, text, nonce, reply_to, card)
        if files and new == message_id:
            self.files[message_id] = tuple(files)
        return self._posted(message_id)

    def _posted(self, message_id: int) -> Posted:
        names = tuple(file.name for file in self.files.get(message_id, ()))
        return Posted(message_id, NOON, self.standing[message_id], names)

    def _post(self, message_id: int, text: str, nonce: str, reply_to: int | None, card: Card | None) -> int:
        """The id of the message that stands for the nonce; a new one where there is none."""
        earlier = None if self.forgets_nonces else self._nonces.get(nonce)
        if earlier is None:
            self._nonces[nonce] = message_id
            self._put(message_id, text, card, reply_to)
        elif earlier not in self.standing:
            raise PostError(Problem.GONE, "the message of this nonce was deleted")
        return message_id if earlier is None else earlier

    async def find(self, texts: Container[str], *, after: int, reply_to: int | None) -> Posted | None:
        await self._call(Call("find", _now(), after, reply_to=reply_to))
        for message_id, text in self.standing.items():
            replies_to = self.replies.get(message_id)
            if message_id > after and (replies_to == reply_to if replies_to else text in texts):
                return self._posted(message_id)
        return None

    async def edit(
        self, message_id: int, text: str, card: Card | None = None, files: Sequence[MadeFile] | None = None
    ) -> None:
        await self._call(Call("edit", _now(), message_id, text, card=card))
        if files is not None:
            self.files[message_id] = tuple(files)
        self._put(message_id, text, card)

    async def settle(self, message_id: int, text: str) -> None:
        await self._call(Call("settle", _now(), message_id, text))
        self.standing[message_id] = text
        self.cards.pop(message_id, None)

    def _put(self, message_id: int, text: str, card: Card | None, reply_to: int | None = None) -> None:
        self.standing[message_id] = text.strip()
        if reply_to:
            self.replies[message_id] = reply_to
        if card:
            self.cards[message_id] = card
        for listener in self.listeners:
            listener(message_id, self.standing[message_id], reply_to)

    async def delete(self, message_id: int) -> None:
        await self._call(Call("delete", _now(), message_id))
        del self.standing[message_id]
        self.cards.pop(message_id, None)

    async def react(self, message_id: int, emoji: str) -> None:
        self.calls.append(Call("react", _now(), message_id, emoji))

    async def keep_typing(self, *, after: float = 0.0) -> None:
        await asyncio.sleep(after)
        self.typing += 1
        self.typed = True
        try:
            await asyncio.Event().wait()
        finally:
            self.typing -= 1

    async def _call(self, call: Call) -> None:
        self.calls.append(call)
        if self.seconds_per_call:
            await asyncio.sleep(self.seconds_per_call)
        problems = self.problems[call.kind]
        if problem := problems.popleft() if problems else None:
            raise PostError(problem, "the fake wire was told to fail", self.retry_after)


def _now() -> float:
    return asyncio.get_running_loop().time()
