"""The other side of the load runs, a process of its own: the loopback Discord, its people, and a model on loopback.

Commands come in as lines of JSON on stdin, one answer each goes out on stdout.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import orjson

from bench.world import ANSWER, FRAME, obey
from playground.limits import Limits
from playground.model import Event
from playground.server import Playground
from tests.support.stub_model import Body, Reply, StubModel

TOO_MUCH = "That was a lot at once."  # what somebody is told who asks more than TURNS_PER_USER_MINUTE
TALK = Path(__file__).parents[2] / "evals/data/rooms.jsonl"
TICK_SECONDS = 0.01
LIVE_SECONDS = 60.0  # so long after a mention people talk on in its channel
AMONG_PEOPLE = 0.8
BUSY = 2  # one in so many channels is one in which the bot is called: often enough, and not so often that no talk ends
EARLIER = 20  # messages that stood in each of those before, which a conversation is begun with
PAUSE_SECONDS = 8.0  # between two faults
STORM = 100  # requests that get a 429
ASKERS = 50  # people who call the bot, and say nothing else


class Questions:
    """What becomes of messages that call the bot. first: seconds until the model's words stood; ended: the last text
    of the answer; copies: the bot's messages that answer one message, by its id; told: who was told once that they ask
    too much, whereupon what else they ask is passed over without a word."""

    def __init__(self, loopback: Playground) -> None:
        self.asked: dict[int, float] = {}
        self.askers: dict[int, int] = {}
        self.first: dict[int, float] = {}
        self.ended: dict[int, str] = {}
        self.copies: defaultdict[int, set[int]] = defaultdict(set)
        self.told: set[int] = set()
        self._open: defaultdict[int, deque[int]] = defaultdict(lambda: deque(maxlen=20))
        self._loopback = loopback
        loopback.world.listen(self._heard)

    def ask(self, channel: int, person: int) -> None:
        message = self._loopback.post(channel, person, f"<@{self._loopback.bot_id}> is it so?")
        self.asked[message.id], self.askers[message.id] = perf_counter(), person
        self._open[channel].append(message.id)

    def _heard(self, event: Event) -> None:
        message = event.message
        if message is None or message.author.id != self._loopback.bot_id or (at := message.points_at) is None:
            return
        self.copies[at].add(message.id)
        if message.content.startswith(TOO_MUCH) and at in self.askers:
            self.told.add(self.askers[at])
        # One turn may answer several messages, and replies to the newest.
        for question in [one for one in self._open[message.channel_id] if one <= at]:
            if message.content.startswith(ANSWER[:20]):
                self.first.setdefault(question, perf_counter() - self.asked[question])
            if not message.content.startswith("-# "):  # a line on what is being done meanwhile
                self.ended[question] = message.content

    @property
    def is_done(self) -> bool:
        return len(self.ended) == len(self.asked)

    def _is_refused(self, question: int) -> bool:
        """Whether its asker was told so, by this one or another."""
        words = self.ended.get(question)
        return words.startswith(TOO_MUCH) if words else self.askers[question] in self.told

    def outcome(self) -> dict[str, Any]:
        waits = sorted(self.first.values())
        answered = sum(text == ANSWER.strip() for text in self.ended.values())
        refused = set(filter(self._is_refused, self.asked))
        return {
            "asked": len(self.asked),
            "answered": answered,
            "refused": len(refused),
            "lost": len(self.asked.keys() - self.ended.keys() - refused),
            "doubled": sum(len(copies) > 1 for copies in self.copies.values()),
            "answers": len(self.copies),
            "p50": median(waits) if waits else None,
            "p99": waits[len(waits) * 99 // 100] if waits else None,
            "last": waits[-1] if waits else None,
            "else": sorted({words for one, words in self.ended.items() if one not in refused} - {ANSWER.strip()})[:5],
        }


class SlowModel(StubModel):
    """Takes its time for each answer. most: how many requests it had at once."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.stall: asyncio.Event | None = None  # while it is not set, no answer begins
        self.status = 200
        self.most = self._running = 0
        self.default = self._answer
        self.on_request = self.requests.clear

    def _answer(self, _body: Body) -> Reply:
        if self.status != 200:
            return Reply(status=self.status)
        if self.stall:
            return Reply(ANSWER, chunk=1_000, before=self.stall)
        ready = asyncio.Event()
        self._running += 1
        self.most = max(self.most, self._running)

        def finish() -> None:
            self._running -= 1
            ready.set()

        asyncio.get_running_loop().call_later(self.seconds, finish)
        return Reply(ANSWER, chunk=1_000, before=ready)


class World:
    """Does what it is told by name."""

    def __init__(self, loopback: Playground, model: SlowModel) -> None:
        self._loopback = loopback
        self._channels = list(loopback.world.channels)
        self._model = model
        self._texts = _texts()
        self._chance = random.Random(1)
        self._calls, self._dozen = Questions(loopback), self._people(12)

    async def rush(self, count: int, people: int, seconds: float, patience: float) -> dict[str, Any]:
        """So many mentions at once, each in a channel of its own; the model takes its time for each."""
        self._model.seconds = seconds
        questions = Questions(self._loopback)
        asking = self._people(people)
        for number in range(count):
            questions.ask(self._channels[number], asking[number % people])
            if number % FRAME == 0:
                await asyncio.sleep(0)
        return await self._ended(questions, patience)

    async def soak(self, **talk: Any) -> dict[str, Any]:
        """Talk, and one fault after another meanwhile."""
        failing = asyncio.create_task(self._fail())
        try:
            return await self.talk(**talk)
        finally:
            failing.cancel()

    async def _fail(self) -> None:
        """A gateway that drops, a session that is over, a storm of 429s, a model that stalls, and one that fails."""
        loopback, model = self._loopback, self._model
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            loopback.cut()
            await asyncio.sleep(PAUSE_SECONDS)
            loopback.invalidate(resumable=False)
            await asyncio.sleep(PAUSE_SECONDS)
            loopback.faults.add("*", "/messages", status=429, retry_after=0.5, times=STORM)
            await asyncio.sleep(PAUSE_SECONDS)
            model.stall = asyncio.Event()
            await asyncio.sleep(PAUSE_SECONDS)
            model.stall.set()
            model.stall = None
            await asyncio.sleep(PAUSE_SECONDS)
            model.status = 500
            await asyncio.sleep(PAUSE_SECONDS / 2)
            model.status = 200

    async def talk(
        self, rate: float, minutes: float, mentions: float, live: float, seconds: float, patience: float
    ) -> dict[str, Any]:
        """So many messages a second: of these a share calls the bot, a share is said where it was called lately, and
        all the rest in channels in which nobody calls it."""
        self._model.seconds = seconds
        questions, people = Questions(self._loopback), self._people(250)
        askers, talkers = people[:ASKERS], people[ASKERS:]
        busy, quiet = self._channels[::BUSY], [c for place, c in enumerate(self._channels) if place % BUSY]
        called: deque[tuple[float, int]] = deque()
        choose = self._chance
        for channel in busy:
            for _ in range(EARLIER):
                self._loopback.post(channel, choose.choice(talkers), next(self._texts))
            await asyncio.sleep(TICK_SECONDS)
        started, posted = perf_counter(), 0
        while (passed := perf_counter() - started) < 60 * minutes:
            while called and called[0][0] < passed - LIVE_SECONDS:
                called.popleft()
            for _ in range(int(rate * passed) - posted):
                posted += 1
                lot = choose.random()
                if lot < mentions:
                    channel = choose.choice(busy)
                    questions.ask(channel, choose.choice(askers))
                    called.append((passed, channel))
                    continue
                is_live = bool(called) and lot < mentions + live
                channel = choose.choice(called)[1] if is_live else choose.choice(quiet)
                # Most of what follows a call people say to each other.
                to = f"<@{choose.choice(talkers)}> " if is_live and choose.random() < AMONG_PEOPLE else ""
                self._loopback.post(channel, choose.choice(talkers), to + next(self._texts))
            await asyncio.sleep(TICK_SECONDS)
        behind = perf_counter() - started - 60 * minutes
        return await self._ended(questions, patience) | {"posted": posted, "behind": behind}

    async def fill(self, first: int, count: int, messages: int) -> dict[str, Any]:
        """In so many channels, from the first of these on, the bot is called, and a dozen people talk on."""
        channels, people = self._channels[first : first + count], self._dozen
        for place, channel in enumerate(channels):
            self._calls.ask(channel, people[place % 12])
        await self._loopback.wait_for(lambda: self._calls.is_done, 600)
        last = 0
        for number in range(messages - 2):
            for channel in channels:
                last = self._loopback.post(channel, people[number * 7 % 12], next(self._texts)).id
        return {"last": str(last)}

    def _people(self, count: int) -> list[int]:
        return [self._loopback.add_person(f"Person {number}") for number in range(count)]

    async def _ended(self, questions: Questions, patience: float) -> dict[str, Any]:
        with suppress(TimeoutError):
            await self._loopback.wait_for(lambda: questions.is_done, patience)
        return questions.outcome() | {"at_once": self._model.most}


def _texts() -> Iterator[str]:
    """What people say in the rooms that the model was trained on, but for what calls the bot, again and again."""
    while True:
        with TALK.open("rb") as rooms:
            for room in rooms:
                said = (m["text"] for m in orjson.loads(room)["messages"] if m["from"] != "BOT")
                yield from (text for text in said if "parley" not in text.casefold() and "@bot" not in text.casefold())


async def main(channels: int) -> None:
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # of requests that the bot gave up
    model = SlowModel()
    await model.start()
    names = [f"channel-{number}" for number in range(channels)]
    async with Playground(channels=names, limits=Limits.off(), history=200) as loopback:
        await obey(World(loopback, model), loopback, model)
    await model.stop()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
