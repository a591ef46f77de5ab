"""Several processes of the real program, with short leases, over a Redis of their own; and people who ask them."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.kill.day import KEY, SETTINGS
from bench.kill.findings import doubled, lost
from bench.kill.marked_model import MarkedModel
from bench.shards.crowd import Crowd
from bench.shards.loopback import Loopback
from bench.shards.processes import Redis
from tests.support.dying import NEVER
from tests.support.process import Program, command
from tests.support.scene import PATIENCE_SECONDS, notify
from tests.support.stub_model import StubModel

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Several:
    """Where they run, and who asks them."""

    pg: Loopback
    stub: StubModel
    crowd: Crowd
    redis: Redis
    folder: Path
    count: int

    def process(
        self, moment: str = NEVER, time: int = 1, by: signal.Signals = signal.SIGKILL, **environment: str
    ) -> AbstractAsyncContextManager[Program]:
        """One more, which this signal reaches at a moment of tests.support.dying."""
        environment = SETTINGS | {
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder),
            "DISCORD_TOKEN": self.pg.token,
            "DISCORD_API_BASE": self.pg.api_base,
            "DISCORD_GATEWAY_URL": self.pg.gateway_url,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": self.stub.url,
            "REDIS_URL": self.redis.url,
            "SHARDS": "auto",
            "SHARD_COUNT": str(self.count),
            "BURST_SECONDS": "0",
            **environment,
        }
        program = [sys.executable, "-m", "tests.support.dying", moment, str(time), by.name]
        return command(self.folder, program, environment)

    def ask(self) -> None:
        """Somebody asks on each shard."""
        for shard_id in range(self.count):
            self.crowd.ask_on(shard_id)

    async def answered(self) -> None:
        """All that was asked has its whole answer, and nothing has two."""
        await self.pg.wait_for(lambda: not lost(self.crowd.evidence(())), 2 * PATIENCE_SECONDS)
        assert doubled(self.crowd.evidence(())) == []


@asynccontextmanager
async def open_several(stub: StubModel, folder: Path, count: int, slowest: float = 0.5) -> AsyncIterator[Several]:
    """slowest: seconds that an answer takes to begin at most, and again to end."""
    async with Loopback(servers=4 * count, shards=count, max_concurrency=count) as pg:
        crowd = Crowd(pg, Random(1), asked_share=0.0)
        stub.default = marked = MarkedModel(Random(1), slowest, lambda: notify(pg), crowd.asked_by)
        pg.world.listen(marked.listen)
        redis = Redis(folder)
        await redis.start()
        try:
            yield Several(pg, stub, crowd, redis, folder, count)
        finally:
            await redis.end(signal.SIGKILL)
