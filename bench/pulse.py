"""`python -m bench.pulse`: what the pulse of all channels costs, beside its bounds. Exits with 1 where one is not held.

What is due at once is measured with the bot on the loopback Discord. Its 1,000 channels are of one guild, for which
Discord allows half as many; that makes no difference here. Requests are counted where they arrive.
"""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import thread_time
from unittest.mock import patch

from bench.session_costs import hasty_disk
from bench.week.settling import Settling
from bot import create_bot
from config import Settings
from conversation import MessageRecord
from offers import proactive_offers
from playground.limits import Limits
from playground.server import Playground
from tests.support.clock import FakeClock
from tests.support.lives import life
from tests.support.scene import Scene, recorded
from tests.support.stub_model import StubModel
from web.logs import configure_logging

IDLE, DUE = 10_000, 1_000
ROUNDS = 3
HOUR, PULSE_SECONDS = 3_600, 5
UNANSWERED, TIMEOUT, COOLDOWN = 90, 601, 1_800  # seconds; each round that is ignored doubles the last
ROOM = timedelta(days=1)
GUILD = 1
QUESTION = "which port does the mail relay listen on?"


@dataclass(frozen=True, slots=True)
class Due:
    """CPU milliseconds of a pulse, and what the bot sent to Discord because of it."""

    milliseconds: float
    requests: int
    offers: int


async def idle(folder: Path) -> tuple[float, float]:
    """CPU milliseconds of a pulse of 10,000 channels with offers on, in the median: nothing is due; words grow old.

    In each channel somebody has said something, some time in an hour. An hour later it is dropped.
    """
    clock = FakeClock()
    bot = create_bot(Settings(model="demo", state_dir=folder, decision_log="off"), clock=clock)
    for channel_id in range(IDLE):
        await bot.proactive_offers.switch(channel_id, GUILD, on=True)
    for channel_id in range(IDLE):
        clock.advance(HOUR / IDLE)
        message = MessageRecord("Ada", 7, "back from lunch", clock(), is_bot=False, message_id=channel_id + 1)
        bot.proactive_offers.heard(channel_id, message)
    costs = [
        _cost(bot.proactive_offers.pulse) for _ in range(2 * HOUR // PULSE_SECONDS) if clock.advance(PULSE_SECONDS)
    ]
    await bot.close()
    half = len(costs) // 2
    return median(costs[half:]), median(costs[:half])


def _cost(pulse: Callable[[], object]) -> float:
    before = thread_time()
    pulse()
    return 1000 * (thread_time() - before)


class Crowd:
    """1,000 channels in which offers are on, and somebody asks at the same time."""

    def __init__(self, scene: Scene, clock: FakeClock) -> None:
        self._scene = scene
        self._clock = clock
        self._settling = Settling(scene)
        self._pulse = scene.bot.proactive_offers.pulse
        self._channels = list(scene.pg.world.channels)

    async def switch_on(self) -> None:
        for channel_id in self._channels:
            await self._scene.bot.proactive_offers.switch(channel_id, self._scene.pg.guild_id, on=True)

    async def offered(self) -> Due:
        """All have a question that nobody answers."""
        pg = self._scene.pg
        for author, text in (("Ada", "back from lunch"), ("Ben", QUESTION)):
            self._clock.advance(60)
            for channel_id in self._channels:
                pg.post(channel_id, pg.person(author), text)
            await self._settling.wait()
        return await self._after(UNANSWERED)

    async def ignored(self) -> Due:
        """All offers have stood for long enough."""
        return await self._after(TIMEOUT)

    async def rest(self, cooldown: float) -> None:
        """Until offers may be made again."""
        for seconds in (cooldown, ROOM.total_seconds()):
            await self._after(seconds)

    async def _after(self, seconds: float) -> Due:
        pg = self._scene.pg
        self._clock.advance(seconds)
        pg.requests.clear()
        # The collector leaves alone what there is, the loopback Discord too: its walks fall on some rounds only.
        gc.collect()
        gc.freeze()
        cost = _cost(self._pulse)
        await self._settling.wait()
        standing = sum(m.author.id == pg.bot_id for channel_id in self._channels for m in pg.messages(channel_id))
        return Due(cost, len(pg.requests), standing)


async def due(folder: Path) -> tuple[list[Due], list[Due]]:
    """Pulses with 1,000 offers to be made, and with 1,000 that were ignored."""
    made, gone = [], []
    async with _crowd(folder) as crowd:
        await crowd.switch_on()
        for setbacks in range(1, ROUNDS + 1):
            made.append(await crowd.offered())
            gone.append(await crowd.ignored())
            await crowd.rest(COOLDOWN * 2**setbacks)
    return made, gone


@asynccontextmanager
async def _crowd(folder: Path) -> AsyncIterator[Crowd]:
    clock = FakeClock()
    seconds: Callable[[], float] = lambda: clock().timestamp()  # noqa: E731
    names = [f"channel-{number}" for number in range(DUE)]
    stub = StubModel()
    os.environ.update(OPENAI_BASE_URL="http://127.0.0.1:9/v1", OPENAI_API_KEY="nobody is asked")
    with patch.object(proactive_offers, "PULSE_SECONDS", ROOM.total_seconds()):
        async with (
            Playground(channels=names, limits=Limits.off(), clock=seconds, wall=seconds) as pg,
            recorded(pg) as journal,
        ):
            scene = Scene(pg, stub, journal, folder, clock)
            async with life(scene):
                yield Crowd(scene, clock)


def main() -> int:
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        # What is stored may still be on its way to the disk.
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        hasty_disk(),
    ):
        configure_logging("info", (), nowhere)
        nothing, old = asyncio.run(idle(Path(folder) / "idle"))
        made, gone = asyncio.run(due(Path(folder) / "due"))
    # The least of several rounds: whatever else the machine does only ever adds.
    to_make, to_remove = (min(one.milliseconds for one in pulses) for pulses in (made, gone))
    requests, offers = max(one.requests for one in made), min(one.offers for one in made)
    rows = [
        (f"pulse, {IDLE:,} channels idle, CPU, median", f"{nothing:.3f} ms", "1 ms", nothing < 1),
        ("the same while words of an hour ago are dropped", f"{old:.3f} ms", "1 ms", old < 1),
        (f"pulse, {DUE:,} questions due at once, CPU", f"{to_make:.1f} ms", "50 ms", to_make < 50),
        ("offers made then", f"{offers:,}", f"{DUE:,}", offers == DUE),
        ("requests to Discord for these", f"{requests:,}", f"{offers:,}", requests <= offers),
        (
            f"pulse, {DUE:,} offers ignored at once, CPU",
            f"{to_remove:.1f} ms",
            "50 ms",
            to_remove < 50,
        ),
    ]
    where = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}"
    print(f"{datetime.now(UTC):%Y-%m-%d}, {where}")
    print("\n| what | measured | bound |\n|---|---|---|")
    for what, measured, bound, held in rows:
        print(f"| {what} | {measured}{'' if held else ' **over**'} | {bound} |")
    return 0 if all(held for *_, held in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
