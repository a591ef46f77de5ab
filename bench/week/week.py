"""The week: the real bot in the loopback Discord. Both have the same clock, which is set from event to event."""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random
from unittest.mock import patch

from bench.week.managing import DAY, Managing
from bench.week.observer import Observer
from bench.week.place import Place, Steps
from bench.week.record import Kind, Record
from bench.week.settling import Settling
from offers import proactive_offers
from playground.limits import Limits
from playground.server import Playground
from tests.support.clock import FakeClock
from tests.support.lives import life
from tests.support.scene import Scene, notify, recorded
from tests.support.stub_model import Reply, StubModel

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
PULSE_SECONDS = 5.0
PEOPLE = ("Ada", *(f"{name}{number}" for number in range(3) for name in ("Ben", "Chloe", "Dan", "Eve", "Finn", "Gwen")))
KINDS = (
    Kind.ON, Kind.NEVER, Kind.LATER, Kind.TO_AND_FRO, Kind.NEVER,
    Kind.OFF_AGAIN, Kind.ON, Kind.NEVER, Kind.ON, Kind.NEVER,
)  # fmt: skip
"""Of the channels, ten after ten."""
SETTINGS = {"offer_quiet_hours": "22-7", "conversation_timeout_seconds": 120.0}


class Week:
    """The channels with their people, and the plan of what happens when."""

    def __init__(self, scene: Scene, clock: FakeClock, *, days: float, seed: int) -> None:
        self.pulses = 0
        self._scene = scene
        self._clock = clock
        self._end = self.now() + days * DAY
        self._plan: list[tuple[float, int, Steps]] = []
        self._numbers = count()
        self._pulse_at = self.now() + PULSE_SECONDS
        self._settling = Settling(scene)
        channels = scene.pg.world.channels
        self.records = {id_: Record(id_, KINDS[n % len(KINDS)]) for n, id_ in enumerate(channels)}
        managing = {}
        for number, (id_, record) in enumerate(self.records.items()):
            place = Place(scene.pg, record, Random(f"{seed}/{number}"), self.now)
            managing[id_] = Managing(scene.pg, place, scene.pg.person(PEOPLE[0]), days, self._begin)
            self._begin(place.life())
            self._begin(managing[id_].switches())
        scene.pg.world.listen(Observer(self.records, scene.pg.bot_id, self.now, managing).listen)

    @property
    def errors(self) -> list[str]:
        """The errors that the bot logged."""
        return [str(entry) for entry in self._scene.journal.entries if entry["level"] == "error"]

    def now(self) -> float:
        """Seconds by the wall clock."""
        return self._clock().timestamp()

    def _begin(self, steps: Steps) -> None:
        seconds = next(steps, None)
        if seconds is not None:
            heapq.heappush(self._plan, (self.now() + seconds, next(self._numbers), steps))

    async def pass_by(self) -> None:
        """Carries out the plan and every pulse in order, each when the bot has finished with the one before."""
        while (at := min(self._plan[0][0], self._pulse_at)) < self._end:
            self._clock.now = datetime.fromtimestamp(at, UTC)
            if at == self._pulse_at:
                self.pulses += 1
                self._pulse_at += PULSE_SECONDS
                self._scene.bot.proactive_offers.pulse()
            else:
                self._begin(heapq.heappop(self._plan)[2])
            await self._settling.wait()


@asynccontextmanager
async def _world(folder: Path, stub: StubModel, clock: FakeClock, channels: int) -> AsyncIterator[Scene]:
    seconds: Callable[[], float] = lambda: clock().timestamp()  # noqa: E731
    names = [f"channel-{number}" for number in range(channels)]
    limits = Limits.off()
    async with (
        Playground(channels=names, people=PEOPLE, limits=limits, clock=seconds, wall=seconds) as pg,
        recorded(pg) as journal,
    ):
        stub.on_request = lambda: notify(pg)
        stub.default = lambda _: Reply("It should be so, as far as I know.")
        yield Scene(pg, stub, journal, folder, clock)


async def spend_week(folder: Path, stub: StubModel, *, channels: int, days: float, seed: int) -> Week:
    """Has the bot, with its store in the folder, live through so many days. The environment leads to the stub."""
    clock = FakeClock(MONDAY)
    # The week has its own pulse.
    with patch.object(proactive_offers, "PULSE_SECONDS", 7 * DAY):
        async with _world(folder, stub, clock, channels) as scene, life(scene, **SETTINGS):
            week = Week(scene, clock, days=days, seed=seed)
            await week.pass_by()
        return week
