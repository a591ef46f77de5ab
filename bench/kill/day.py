"""The day: the bot in one life after the other, and what is to be counted when it is over."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random

from bench.kill.crowd import CHANNELS, PEOPLE, Crowd
from bench.kill.diary import Diary
from bench.kill.findings import WHAT, Asked, Count, Evidence, count, lost
from bench.kill.marked_model import MarkedModel
from bench.kill.moments import Moments
from bench.kill.recorded_messages import recorded
from playground.limits import Limits
from playground.server import Playground
from tests.support.process import Program, program
from tests.support.stub_model import StubModel

KEY = "key-of-the-stub"
# Discord forgets nonces after a few minutes; so many have passed by the playground's clock after some of the kills.
FORGETTING_SHARE, FORGETTING_SECONDS = 0.4, 600.0
# Longer than any interval at which the bot may note something.
SLOWEST_SECONDS = 5.0
AWAY_SECONDS = 0.4
LIVES_BETWEEN_RESTS = 20
REST_SECONDS, QUIET_SECONDS, POLL_SECONDS = 30.0, 1.2, 0.1
CARD_SHOWS_IT = 7  # Discord: the type of an interaction's answer that changes the card
SETTINGS = {
    "MODEL": "openai-chat:stub",
    "OPENAI_API_KEY": KEY,
    "CONVERSATION_TIMEOUT_SECONDS": "30",
    # What hundreds of kills cut off counts, and would use up the budgets of a day.
    **dict.fromkeys(("PERSON_TOKENS", "GUILD_TOKENS", "DAILY_TOKENS"), "0"),
    "TURNS_PER_USER_MINUTE": "1000000",
    "DECLINE": "off",
}


def settings(pg: Playground, stub: StubModel, folder: Path) -> dict[str, str]:
    """The bot's environment."""
    return SETTINGS | {
        "DISCORD_API_BASE": pg.api_base,
        "DISCORD_GATEWAY_URL": pg.gateway_url,
        "DISCORD_TOKEN": pg.token,
        "OPENAI_BASE_URL": stub.url,
        "STATE_DIR": str(folder / "state"),
    }


class Loopback(Playground):
    """A playground in which minutes can pass at once, as far as nonces are concerned."""

    def __init__(self) -> None:
        self._ahead = 0.0
        clock = lambda: time.monotonic() + self._ahead  # noqa: E731
        super().__init__(channels=CHANNELS, people=PEOPLE, limits=Limits.off(), clock=clock)

    def forget_nonces(self) -> None:
        self._ahead += FORGETTING_SECONDS


class Day:
    """One playground, one crowd, one model, and the bot. folder: where it runs and keeps its state.

    slowest: seconds that the slowest answer takes to begin, and again to end.
    """

    def __init__(self, pg: Loopback, stub: StubModel, folder: Path, seed: int, slowest: float) -> None:
        self.crowd = Crowd(pg, Random(seed + 1))
        self.diary = Diary(time.time)
        self.kills: Counter[str] = Counter()
        self._pg = pg
        self._folder = folder
        self._random = Random(seed)
        self._lives: list[Program] = []
        self._given_up: set[int] = set()
        self._moments = Moments(pg, self._random)
        self._environment = settings(pg, stub, folder)
        model = MarkedModel(Random(seed + 2), slowest, partial(self._moments.heard, "model"), self.crowd.asked_by)
        stub.default = model
        pg.world.listen(model.listen)
        pg.world.listen(self.diary.note_event)

    @asynccontextmanager
    async def life(self) -> AsyncIterator[Program]:
        """The program; killed at the end if it has not ended. RuntimeError where it ends badly by itself."""
        self._pg.requests.clear()
        self.diary.note(f"life {len(self._lives) + 1} begins")
        async with program(self._folder, **self._environment) as running:
            self._lives.append(running)
            try:
                yield running
            except TimeoutError:  # of waiting for something that it can no longer do
                if running.process.returncode is None:
                    raise
            code = running.process.returncode
            self.diary.note(f"life {len(self._lives)} ends")
        self.diary.note_log(len(self._lives), running.log, running.other)
        if code and code > 0:  # of a kill it is negative
            raise RuntimeError(f"The bot ended by itself with {code}: {' '.join(running.other[-1:])}")

    async def live_until_killed(self) -> None:
        """One life, cut off at some moment; then the bot is away for a while."""
        async with self.life() as running:
            if not self.kills:
                await running.logged("ready")  # of what was said before it was ever there it knows nothing
                self.crowd.arrives()
            name = await self._moments.wait(running)
            self.diary.note(f"killed {name}")
        self.kills[name] += 1
        if self._random.random() < FORGETTING_SHARE:
            self._pg.forget_nonces()
            self.diary.note("nonces are forgotten")
        await asyncio.sleep(self._random.uniform(0, AWAY_SECONDS))

    async def live_until_told_to_stop(self) -> None:
        """One life in which nobody says anything more, until all that was asked is answered."""
        async with self.life() as running:
            await self._moments.connected()
            self._moments.heard("connected")
            with suppress(TimeoutError):
                async with asyncio.timeout(REST_SECONDS):
                    while self._moments.quiet_seconds < QUIET_SECONDS or self._open():
                        await asyncio.sleep(POLL_SECONDS)
            self._given_up |= self._open()
            running.terminate()
            await running.ended()

    def _open(self) -> set[int]:
        """What is still to be answered, and may be yet."""
        return {finding.id for finding in lost(self._evidence({}))} - self._given_up

    def count(self) -> Count:
        """To be called when no life is left: it reads the sessions."""
        return count(self._evidence(recorded(self._folder / "state")))

    def report(self, result: Count) -> list[str]:
        """The lines of it: each finding with its story, then the whole day."""
        entries = self.diary.in_order()
        lines = [f"{name}: {times} kills" for name, times in self.kills.most_common()]
        lines += ["", "== errors:", *(str(entry) for entry in entries if "level=error" in entry.text)]
        for what, findings in zip(WHAT, result, strict=True):
            for finding in findings:
                lines += ["", f"== {what}:", *self.diary.story(finding)]
        return [*lines, "", "== the whole day:", *map(str, entries)]

    def _evidence(self, recorded: Mapping[int, Collection[int]]) -> Evidence:
        decided = [line for life in self._lives for line in life.log if line["event"] == "decided"]
        followed = {line["message"] for line in decided if line["decision"] == "respond"}
        heard = {(line["channel"], line["message"]) for line in decided if line["message"] not in self.crowd.deleted}
        deleted = {said.mark for said in self.crowd.said if said.message.id in self.crowd.deleted}
        said = {id_: [m for m in self._pg.messages(id_) if m.author.bot] for id_ in map(self._pg.channel, CHANNELS)}
        asked = []
        for one in self.crowd.said:
            id_, is_accepted = one.message.id, one.to_bot or one.message.id in followed
            if id_ not in self.crowd.deleted:
                asked.append(Asked(id_, one.message.channel_id, id_, is_accepted, one.mark))
        for clicked in self.crowd.clicked:
            is_accepted = clicked.is_answer and clicked.interaction.callback == CARD_SHOWS_IT
            asked.append(Asked(clicked.interaction.id, clicked.card.channel_id, clicked.card.id, is_accepted))
        return Evidence(asked, said, heard, recorded, deleted)


async def spend_day(
    folder: Path,
    *,
    kills: int,
    seed: int,
    slowest: float = SLOWEST_SECONDS,
    tell: Callable[[str], object] = lambda _: None,
) -> Day:
    """Runs the bot, in the folder, through a day with so many kills. slowest: as for Day. tell: is told how it goes."""
    stub = StubModel()
    await stub.start()
    try:
        async with Loopback() as pg:
            day = Day(pg, stub, folder, seed, slowest)
            for done in range(0, kills, LIVES_BETWEEN_RESTS):
                async with _talking(day.crowd):
                    for _ in range(min(LIVES_BETWEEN_RESTS, kills - done)):
                        await day.live_until_killed()
                await day.live_until_told_to_stop()
                tell(f"{sum(day.kills.values())} of {kills} kills, {len(day.crowd.said)} messages")
            return day
    finally:
        await stub.stop()


@asynccontextmanager
async def _talking(crowd: Crowd) -> AsyncIterator[None]:
    talk = asyncio.create_task(crowd.talk())
    try:
        yield
    finally:
        talk.cancel()
        with suppress(asyncio.CancelledError):
            await talk
