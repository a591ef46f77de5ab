"""One bot, alone, through what is measured: questions one by one, then many, then kills."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter

from bench.peers.bots import Bot, cpu, memory, started
from bench.peers.timed_model import LONG, Length, TimedModel
from playground.model import Event, Message
from playground.rest import Sent
from playground.server import Playground
from tests.support.stub_model import StubModel

CHANNELS, PEOPLE = 20, 60  # so many that nobody is held back for asking too much
START_SECONDS, ANSWER_SECONDS, LAST_SECONDS = 60.0, 60.0, 30.0
SETTLE_SECONDS, PAUSE_SECONDS = 3.0, 0.3
LIVES_SECONDS = 3.5  # a kill falls at random into so many after a question, of which a short answer takes most
AWAY_SECONDS = 0.3
WORDS = re.compile(r"\b([be])(\d+)\b")
KINDS = {
    ("POST", "messages"): "posts",
    ("PATCH", "messages"): "edits",
    ("POST", "typing"): "typing",
    ("GET", ""): "reads",
}


@dataclass
class Measured:
    """What was measured of one bot, over all its runs. In seconds and megabytes.

    short, long: the REST calls of as many answers, by kind. cut: questions whose answer a kill may have cut off; away:
    those asked while it was down.
    """

    start: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    request: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    short: list[Counter[str]] = field(default_factory=list)
    long: list[Counter[str]] = field(default_factory=list)
    unanswered: int = 0
    cut: int = 0
    cut_lost: int = 0
    doubled: int = 0
    away: int = 0
    away_lost: int = 0


class Stage:
    """The loopback Discord with its people, the model, and what of each answer stood when."""

    def __init__(self, pg: Playground, stub: StubModel) -> None:
        self.pg = pg
        self.model_url = stub.url
        self.asked: dict[int, tuple[int, float]] = {}  # by mark: the channel, and when
        self.first: dict[int, float] = {}
        self.whole: dict[int, float] = {}
        self.model = TimedModel(stub)
        self._channels = [pg.channel(name) for name in channel_names()]
        self._people = [pg.person(name) for name in people_names()]
        pg.world.listen(self._heard)

    def ask(self, length: Length | None = None) -> int:
        """Somebody mentions the bot in the next channel. Returns the question's mark."""
        mark = len(self.asked) + 1
        if length:
            self.model.lengths[mark] = length
        channel = self._channels[mark % len(self._channels)]
        self.asked[mark] = channel, perf_counter()
        person = self._people[mark % len(self._people)]
        self.pg.post(channel, person, f"<@{self.pg.bot_id}> when does train k{mark} leave?")
        return mark

    async def answered(self, marks: Iterable[int], patience: float = ANSWER_SECONDS) -> None:
        """Waits until all have their whole answers, but no longer than that."""
        waiting = set(marks)
        with suppress(TimeoutError):
            await self.pg.wait_for(lambda: waiting <= self.whole.keys(), patience)

    async def connected(self) -> None:
        await self.pg.wait_for(lambda: self.pg.connected, START_SECONDS)

    async def gone(self) -> None:
        await self.pg.wait_for(lambda: not self.pg.connected, START_SECONDS)

    def standing(self, mark: int) -> int:
        """How many answers to the question stand."""
        channel, _ = self.asked[mark]
        own = [words(message) for message in self.pg.messages(channel) if message.author.id == self.pg.bot_id]
        return sum(found == ("b", str(mark)) for text in own for found in WORDS.findall(text))

    def _heard(self, event: Event) -> None:
        if event.message is None or event.message.author.id != self.pg.bot_id:
            return
        for kind, mark in WORDS.findall(words(event.message)):
            (self.first if kind == "b" else self.whole).setdefault(int(mark), perf_counter())
        self.pg.notify()


def words(message: Message) -> str:
    """What a message says, in embeds too."""
    return "\n".join([message.content, *(str(embed.get("description", "")) for embed in message.embeds)])


def channel_names() -> list[str]:
    return [f"channel-{number}" for number in range(CHANNELS)]


def people_names() -> list[str]:
    return [f"Person {number}" for number in range(PEOPLE)]


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """With Discord's own rate limits."""
    stub = StubModel()
    await stub.start()
    try:
        async with Playground(channels=channel_names(), people=people_names()) as pg:
            yield Stage(pg, stub)
    finally:
        await stub.stop()


async def measure(bot: Bot, folder: Path, measured: Measured, *, asks: int, answers: int) -> None:
    """One life: its start, questions one after the other, then as many at once as there are channels."""
    async with stage() as on:
        began = perf_counter()
        async with started(bot, on.pg, on.model_url, folder) as process:
            await on.connected()
            measured.start.append(perf_counter() - began)
            await asyncio.sleep(SETTLE_SECONDS)
            measured.idle.append(memory(process.pid))
            for number in range(asks):
                await _ask(on, measured, measured.short, None)
                if number % 5 == 0:
                    await _ask(on, measured, measured.long, LONG)
            used = cpu(process.pid)
            for _ in range(0, answers, CHANNELS):
                marks = [on.ask() for _ in range(CHANNELS)]
                await on.answered(marks)
            measured.cpu.append((cpu(process.pid) - used) / answers)
            await asyncio.sleep(SETTLE_SECONDS)
            measured.busy.append(memory(process.pid))
        measured.unanswered += len(on.asked.keys() - on.whole.keys())


async def _ask(on: Stage, measured: Measured, calls: list[Counter[str]], length: Length | None) -> None:
    on.pg.requests.clear()
    mark = on.ask(length)
    await on.answered([mark])
    await asyncio.sleep(PAUSE_SECONDS)
    if mark not in on.whole:
        return
    calls.append(by_kind(on.pg.requests))
    if not length:
        _, at = on.asked[mark]
        measured.request.append(on.model.asked[mark] - at)
        measured.first.append(on.first[mark] - at)
        measured.whole.append(on.whole[mark] - at)


def by_kind(requests: Iterable[Sent]) -> Counter[str]:
    return Counter(
        next((kind for (method, part), kind in KINDS.items() if sent.method == method and part in sent.path), "others")
        for sent in requests
    )


async def kill(bot: Bot, folder: Path, measured: Measured, *, kills: int, seed: int) -> None:
    """Kills it at random moments of an answer, asks on while it is down, and starts it again."""
    random = Random(seed)
    cut, away = [], []
    async with stage() as on:
        for _ in range(kills):
            async with started(bot, on.pg, on.model_url, folder):
                await on.connected()
                cut.append(on.ask())
                await asyncio.sleep(random.uniform(0, LIVES_SECONDS))
            await on.gone()
            away.append(on.ask())
            await asyncio.sleep(AWAY_SECONDS)
        async with started(bot, on.pg, on.model_url, folder):
            await on.answered([*cut, *away], LAST_SECONDS)
        is_lost: Callable[[int], bool] = lambda mark: mark not in on.whole  # noqa: E731
        measured.cut, measured.away = len(cut), len(away)
        measured.cut_lost, measured.away_lost = sum(map(is_lost, cut)), sum(map(is_lost, away))
        measured.doubled = sum(on.standing(mark) > 1 for mark in on.asked)
