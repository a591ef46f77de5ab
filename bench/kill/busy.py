"""A busy server: the bot is asked in ten channels while it is away, others talk in sixty, and it dies catching up."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

from bench.kill.day import settings
from playground.limits import Limits
from playground.model import Message
from playground.server import Playground
from tests.support.process import program
from tests.support.stub_model import StubModel

ASKED, TALK, KILLS = 10, 60, 3
START_SECONDS, PATIENCE_SECONDS = 30.0, 60.0


async def spend_busy_hour(folder: Path, *, seed: int) -> tuple[list[Message], list[Message]]:
    """Runs the bot, in the folder. Returns the questions that were not answered, and those answered twice."""
    random, stub = Random(seed), StubModel()
    asked_in, talk_in = [f"asked-{n}" for n in range(ASKED)], [f"talk-{n}" for n in range(TALK)]
    await stub.start()
    try:
        async with Playground(channels=("general", *asked_in, *talk_in), limits=Limits.off()) as pg:
            environment = settings(pg, stub, folder)
            ada, ben = pg.person("Ada"), pg.person("Ben")
            call = f"<@{pg.bot_id}>"
            async with program(folder, **environment) as running:
                await pg.wait_for(lambda: pg.connected, START_SECONDS)
                await running.logged("ready")
                pg.post(pg.channel("general"), ada, f"{call} hello")
                await running.logged("turn_ended")
            asked = [pg.post(pg.channel(name), ada, f"{call} and you?") for name in asked_in]
            for name in talk_in:
                pg.post(pg.channel(name), ben, "nothing of interest")
            for _ in range(KILLS):
                pg.requests.clear()
                async with program(folder, **environment):
                    await _has_read(pg, random.randrange(TALK))
            async with program(folder, **environment) as running:
                with suppress(TimeoutError):
                    await pg.wait_for(lambda: len(_answers(pg, asked)) == ASKED, PATIENCE_SECONDS)
                running.terminate()  # what it has begun it finishes
                await running.ended()
            answers = _answers(pg, asked)
            return [m for m in asked if not answers[m.id]], [m for m in asked if answers[m.id] > 1]
    finally:
        await stub.stop()


async def _has_read(pg: Playground, count: int) -> None:
    """It has read more than so many channels, of those in which something is new."""

    def has() -> bool:
        return sum(sent.method == "GET" and sent.path.endswith("/messages") for sent in pg.requests) > count

    await pg.wait_for(has, START_SECONDS)


def _answers(pg: Playground, asked: list[Message]) -> Counter[int]:
    """How often each was answered."""
    said = (m for question in asked for m in pg.messages(question.channel_id) if m.author.bot)
    return Counter(m.points_at for m in said if m.points_at is not None)
