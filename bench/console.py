"""The console beside 10,000 live conversations: how long a page takes, and what it costs to look, and not to.

`python -m bench.console`: some 40 seconds. The events are those of a busy bot: 50 decisions and 5 answers a second.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from aiohttp import ClientSession, CookieJar

from activity import Ending, TurnEnded
from bot import Parley, create_bot
from config import Settings
from conversation import MessageRecord
from decision import EXPLICIT, NOT_CALLED
from health import Health
from state.spending import Payer, Spent
from web.site import Site

CHANNELS, GUILDS = 10_000, 500
PAGES = ("/console", "/console/places", "/console/people", "/console/errors", "/console/storage")
SECONDS = 10.0


def busy_bot(folder: Path) -> Parley:
    """A bot with as many conversations, of which each has cost something today."""
    bot = create_bot(Settings(decision_log="off", conversation_timeout_seconds=86_400, state_dir=folder))
    now = datetime.now(UTC)
    for channel in range(1, CHANNELS + 1):
        record = MessageRecord("Ann", channel, "hello", now, is_bot=False, message_id=channel)
        bot.conversations.start(channel, [record])
        payer = Payer(channel % GUILDS + 1, frozenset({channel}), channel)
        bot.parts.limits.spend(Spent("openai:gpt-5-mini", 1_000, 100), now, payer)
    return bot


async def happening(bot: Parley) -> None:
    """What a busy bot tells its observers."""
    number = 0
    while True:
        number += 1
        channel = number % CHANNELS + 1
        guild = channel % GUILDS + 1
        bot.decisions.add(number, channel, channel, NOT_CALLED, guild, is_ignored=True)
        if number % 10 == 0:
            bot.decisions.add(number, channel, channel, EXPLICIT, guild)
            answered = TurnEnded(guild, channel, (number,), Ending.ANSWERED, "answered", datetime.now(UTC), 2.0, 0.5)
            bot.shown.activity.turn_ended(answered)
        await asyncio.sleep(0.02)


async def cpu_share() -> float:
    """Of one core, in per cent, of all that this process does."""
    began, used = time.perf_counter(), time.process_time()
    await asyncio.sleep(SECONDS)
    return 100 * (time.process_time() - used) / (time.perf_counter() - began)


async def measure(folder: Path) -> None:
    bot = busy_bot(folder)
    while not await bot.snapshots.settled():  # that so much is stored at once is the measurement's doing
        pass
    health = Health()
    health.gateway_up()
    site = Site(health, is_local=True)
    site.show(bot.shown)
    events = asyncio.create_task(happening(bot))
    async with (
        site.served(0, "127.0.0.1") as address,
        ClientSession(address, cookie_jar=CookieJar(unsafe=True)) as visitor,
    ):
        (await visitor.get("/console")).release()
        for page in PAGES:
            times, used = [], []
            for _ in range(20):
                began, used_before = time.perf_counter(), time.process_time()
                answer = await visitor.get(page)
                await answer.read()
                times.append(1000 * (time.perf_counter() - began))
                used.append(1000 * (time.process_time() - used_before))
            took = f"{median(times):.1f} ms, at worst {max(times):.1f} ms"
            print(f"{page}: {answer.status}, {took}; of the processor {median(used):.1f}, at worst {max(used):.1f} ms")
        print(f"nobody looks: {await cpu_share():.2f} % of a core, the events' own cost among it")
        [cookie] = visitor.cookie_jar
        command = ("curl", "-sN", "-b", f"{cookie.key}={cookie.value}", f"{address}/console/live")
        looking = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        await asyncio.sleep(2)
        print(f"one looks:    {await cpu_share():.2f} % of a core")
        looking.terminate()
        got, _ = await looking.communicate()
        print(f"and was sent {got.count(b'data:')} updates, {len(got)} bytes")
    events.cancel()
    with suppress(asyncio.CancelledError):
        await events
    await bot.close()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder)))
