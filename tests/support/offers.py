"""Channels where offers are made, with all around them faked: the clock, Discord, the disk, the judge."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Any, cast

import orjson
import structlog

from conversation import MessageRecord
from discord_io.channel_wire import Posted, PostError, Problem
from miniapps.router import MiniAppRouter
from offers.offer import LINK, Note, Offer, Opportunity
from offers.offer_channels import OfferChannel, OfferChannels
from offers.offer_limits import OfferLimits
from offers.open_offers import OpenOffers
from offers.proactive_offers import Answerable, ProactiveOffers
from offers.triggers import TRIGGERS, Trigger
from place import Place
from tests.support.clock import NOON, FakeClock
from tests.support.people import ANNA, BEN, BOT, CHANNEL, GUILD, IDS, said
from tests.support.virtual_time import settle

QUESTION = "does anybody know how to renew a certificate with certbot?"
NOTE_IDS = count(1)


def note_at(due: datetime, **more: Any) -> Note:
    """A note that is due then, with an id of its own."""
    number = next(NOTE_IDS)
    given: dict[str, Any] = {
        "text": "How was the burger?",
        "query": "burger",
        "about": f"Mel's {number}",
        "source_id": 50,
    } | more
    return Note(id=f"n{number}", miniapp_id="dining", user_id=ANNA, due=due, **given)


def opportunity(subject: MessageRecord | None = None, note: Note | None = None) -> Opportunity:
    """One about the message, or about the note."""
    line = f"<@{ANNA}>, {note.text}" if note else f"Nobody has answered [this question]({LINK}). Shall I try?"
    return Opportunity("unanswered_question", ANNA, line, "nobody has answered", subject, note)


class OfferWire:
    """One channel on Discord, which refuses what Discord would refuse.

    problems: what the next posts fail with; problem: what every settling and deleting fails with. gate: while it is
    there and not set, posts wait for it; reading: so does who looks for one. arrives_anyway: posts that fail do arrive.
    is_readable: whether we may read what stands there.
    """

    def __init__(self) -> None:
        self.standing: dict[int, str] = {}
        self.said: dict[int, str] = {}  # by people, as it reads now
        self.offered: list[tuple[str, str]] = []  # ids and nonces
        self.deleted: list[int] = []
        self.problems: deque[Problem] = deque()
        self.problem: Problem | None = None
        self.gate: asyncio.Event | None = None
        self.arrives_anyway = False
        self.looked_for: list[tuple[str, int]] = []
        self.reading: asyncio.Event | None = None
        self.is_readable = True
        self._by_nonce: dict[str, int] = {}
        self._ids: dict[str, int] = {}

    async def offer(self, text: str, offer_id: str, labels: Mapping[str, str], *, nonce: str) -> Posted:
        self.offered.append((offer_id, nonce))
        is_too_long = len(text) > 2_000 or len(nonce) > 25 or len(offer_id) > 40
        if is_too_long or not 1 <= len(labels) <= 5 or any(len(label) > 80 for label in labels.values()):
            raise PostError(Problem.REJECTED, "Invalid Form Body")
        if self.problems:
            if self.arrives_anyway:
                self._put(text, offer_id, nonce)
            raise PostError(self.problems.popleft(), "the fake wire was told to fail")
        message_id = self._put(text, offer_id, nonce)
        if self.gate:
            await self.gate.wait()
        return Posted(message_id, NOON, text)

    async def find_offer(self, offer_id: str, after: int) -> Posted | None:
        self.looked_for.append((offer_id, after))
        if self.reading:
            await self.reading.wait()
        message_id = self._ids.get(offer_id, 0)
        if not self.is_readable:
            raise PostError(Problem.FORBIDDEN, "Missing Access")
        if message_id <= after or message_id not in self.standing:
            return None
        return Posted(message_id, NOON, self.standing[message_id])

    async def words_of(self, message_id: int) -> str | None:
        if self.problem:
            raise PostError(self.problem, "the fake wire was told to fail")
        return self.said.get(message_id)

    def _put(self, text: str, offer_id: str, nonce: str) -> int:
        """Discord has it, be its answer on the way or not; the same nonce gives the same message."""
        if nonce in self._by_nonce:
            if self._by_nonce[nonce] not in self.standing:
                raise PostError(Problem.GONE, "Unknown Message")
        else:
            self._by_nonce[nonce] = self._ids[offer_id] = next(IDS)
            self.standing[self._by_nonce[nonce]] = text
        return self._by_nonce[nonce]

    async def settle(self, message_id: int, text: str) -> None:
        self._refuse()
        if message_id not in self.standing:
            raise PostError(Problem.GONE, "Unknown Message")
        self.standing[message_id] = text

    async def delete(self, message_id: int) -> None:
        """To delete what is gone already is no fault, as with discord_io.discord_wire."""
        self.deleted.append(message_id)
        self._refuse()
        self.standing.pop(message_id, None)

    def _refuse(self) -> None:
        if self.problem:
            raise PostError(self.problem, "the fake wire was told to fail")

    def moderate(self) -> int:
        """A moderator deletes the only message that stands."""
        (message_id,) = self.standing
        del self.standing[message_id]
        return message_id


class Judge:
    """Says what it was told to say, and remembers what it was asked. gate: while it is there and not set, it thinks."""

    def __init__(self, *, says: bool = True) -> None:
        self.says = says
        self.asked: list[tuple[int, int]] = []  # the question's id, how many messages it was shown
        self.gate: asyncio.Event | None = None

    async def __call__(self, question: MessageRecord, recent: Sequence[MessageRecord]) -> bool:
        self.asked.append((question.message_id, len(recent)))
        if self.gate:
            await self.gate.wait()
        return self.says


class Desk:
    """Proactive offers with their parts. disk: what is stored; muted: why the bot may not speak; standing: of notes.

    A desk that takes another's place, with its clock, wires and disk, is the bot after a restart.
    """

    def __init__(
        self,
        limits: OfferLimits | None = None,
        *,
        triggers: Sequence[Trigger] = TRIGGERS,
        judge: Answerable | None = None,
        after: Desk | None = None,
    ) -> None:
        self.clock: FakeClock = after.clock if after else FakeClock()
        self.wires: dict[int, OfferWire] = after.wires if after else {}
        self.disk: dict[int, bytes] = dict(after.disk) if after else {}
        self.muted: str | None = None
        self.wants: bool | None = None
        self.blocks = False
        self.stands: set[str] | None = None
        self.is_stored = True
        self.shown: list[tuple[int, Offer, Posted]] = []
        self.offer_channels = OfferChannels(
            limits or OfferLimits(), clock=self.clock, on_change=self._changed, settled=self._settled
        )
        self.offers = OpenOffers(self.offer_channels, self, stands=lambda *shown: self.shown.append(shown))
        self.proactive_offers = ProactiveOffers(
            self.offer_channels,
            self.offers,
            self,
            triggers=triggers,
            forbids=lambda _guild, _channel: self.muted,
            miniapps=cast(MiniAppRouter, self),
            newcomers=self.newcomers,
            answerable=judge,
        )
        for channel_id, stored in self.disk.items():
            self.offer_channels.restore(channel_id, orjson.loads(stored))

    def _changed(self, channel_id: int) -> None:
        stored = self.offer_channels.stored(channel_id)
        if stored:
            self.disk[channel_id] = stored.to_json()
        else:
            self.disk.pop(channel_id, None)

    async def _settled(self) -> bool:
        return self.is_stored

    def still_stands(self, _miniapp_id: str, _channel_id: int, about: str) -> bool:
        return self.stands is None or about in self.stands

    def wants_offers(self, _channel_id: int) -> bool | None:
        return self.wants

    def has_judge(self, _channel_id: int) -> bool:
        return True

    async def newcomers(self, _place: Place, _people: Collection[int]) -> frozenset[int]:
        return frozenset()

    def is_blocked(self, _channel_id: int, _user_id: int) -> bool:
        return self.blocks

    def switch_offers(self, channel_id: int, guild_id: int, *, on: bool, by: int) -> None:
        """The offers know it themselves."""

    def bot(self) -> tuple[str, int]:
        return "Parley", BOT

    def open(self, _guild: int, channel_id: int) -> OfferWire:
        return self.wires.setdefault(channel_id, OfferWire())

    @property
    def wire(self) -> OfferWire:
        return self.open(GUILD, CHANNEL)

    @property
    def channel(self) -> OfferChannel:
        channel = self.offer_channels.get(CHANNEL)
        assert channel
        return channel

    @property
    def cooldown(self) -> float | None:
        """Seconds of the cooldown that runs; None: none does."""
        thinking = self.channel.machine.thinking
        return thinking.active_cooldown_period_s if thinking.cooldown_active else None

    async def on(self, channel_id: int = CHANNEL) -> None:
        await self.proactive_offers.switch(channel_id, GUILD, on=True)

    def hear(self, who: int, text: str, **more: Any) -> MessageRecord:
        """Somebody says something; the bot hears it where it listens."""
        message = said(who, text, self.clock(), **more)
        self.wire.said[message.message_id] = text
        if self.proactive_offers.listens(CHANNEL):
            self.proactive_offers.heard(CHANNEL, message)
        return message

    async def wait(self, seconds: float, step: float | None = None) -> None:
        """Time passes, in one step or in several, and at the end of each the pulse comes."""
        end = self.clock() + timedelta(seconds=seconds)
        while self.clock() < end:
            self.clock.advance(min(step or seconds, (end - self.clock()).total_seconds()))
            await self.pulse()

    async def pulse(self) -> None:
        self.proactive_offers.pulse()
        if self.offers._work:
            await settle()

    def ask(self, text: str = QUESTION) -> MessageRecord:
        """Anna asks something a minute after Ben has spoken."""
        self.hear(BEN, f"<@{BOT}0> I am back from lunch")
        self.clock.advance(60)
        return self.hear(ANNA, text)

    async def offered(self) -> MessageRecord:
        """A question of Anna's that an offer is open about."""
        await self.on()
        question = self.ask()
        await self.wait(90)
        offer = self.channel.offer
        assert offer
        assert offer.subject_id == question.message_id
        return question

    async def ended(self) -> None:
        """The open offer is ignored, and its cooldown is over."""
        await self.wait(self.offer_channels.limits.timeout_seconds + 1)
        assert self.cooldown
        await self.wait(self.cooldown)


def outcomes(logs: Sequence[structlog.typing.EventDict]) -> list[str]:
    return [str(entry["outcome"]) for entry in logs if entry["event"] == "offer_ended"]


def refusals(logs: Sequence[structlog.typing.EventDict]) -> list[str]:
    return [str(entry["reason"]) for entry in logs if entry["event"] == "offer_refused"]


class Broken:
    """A trigger that raises. where: "looks" or "due"."""

    id = "broken"

    def __init__(self, where: str) -> None:
        self._where = where

    def looks(self, message: MessageRecord) -> datetime | None:
        if self._where == "looks":
            raise KeyError(message.message_id)
        return message.timestamp

    def due(self, channel: object, now: datetime) -> Opportunity | None:
        if self._where == "due":
            raise ZeroDivisionError(channel, now)
        return None


Change = Callable[[Desk], object]


def _revised(desk: Desk, question_id: int, text: str) -> None:
    desk.proactive_offers.revised(CHANNEL, said(ANNA, text, message_id=question_id))


ENDS: dict[str, tuple[Callable[[Desk, int], object], str]] = {
    "a reply": (
        lambda desk, question_id: desk.hear(BEN, "certbot renew", reply_to_id=question_id, reply_to_author_id=ANNA),
        "overtaken",
    ),
    "an answer": (lambda desk, _: desk.hear(BEN, "try certbot renew"), "overtaken"),
    "another bot, a thread": (
        lambda desk, question_id: desk.proactive_offers.dealt_with(CHANNEL, question_id),
        "overtaken",
    ),
    "solved": (lambda desk, _: desk.hear(ANNA, "nvm, solved it"), "overtaken"),
    "marked solved": (lambda desk, question_id: _revised(desk, question_id, f"[SOLVED] {QUESTION}"), "overtaken"),
    "edited": (lambda desk, question_id: _revised(desk, question_id, "I see"), "withdrawn"),
    "deleted": (
        lambda desk, question_id: desk.proactive_offers.messages_gone(CHANNEL, {question_id, 5}),
        "withdrawn",
    ),
    "forgotten": (lambda desk, _: desk.proactive_offers.forget(CHANNEL, ANNA), "withdrawn"),
    "all forgotten": (lambda desk, _: desk.proactive_offers.forget(CHANNEL, None), "withdrawn"),
    "switched off": (lambda desk, _: desk.proactive_offers.switch_off(CHANNEL), "not_here"),
    "asked us": (lambda desk, _: desk.proactive_offers.answered(CHANNEL, GUILD, said(ANNA, "hey")), "overtaken"),
}
"""What ends an offer about the question with this id, and how the log calls that."""
