"""The other side of the bench, a process of its own: the loopback Discord with its people, and a model on loopback.

Commands come in as lines of JSON on stdin, one answer each goes out on stdout.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import orjson

from bench.kill.findings import doubled, lost
from bench.kill.marked_model import MarkedModel
from bench.shards.crowd import Crowd
from bench.shards.loopback import Loopback
from bench.shards.outages import Outages
from tests.support.stub_model import StubModel

SLOWEST_SECONDS = 4.0  # that an answer takes to begin, and again to end


class World:
    """Does what the bench tells."""

    def __init__(self, pg: Loopback, model: StubModel, random: Random, asked_share: float) -> None:
        self._pg = pg
        self._crowd = Crowd(pg, random, asked_share)
        self._outages = Outages(pg, self._crowd.ask_on)
        self._talk: asyncio.Task[None] | None = None
        marked = MarkedModel(Random(random.random()), SLOWEST_SECONDS, lambda: None, self._crowd.asked_by)
        pg.world.listen(marked.listen)
        model.default = marked
        model.on_request = model.requests.clear  # they are large

    async def state(self) -> dict[str, Any]:
        taken, refused = self._pg.identifies
        return {"shards": self._pg.connected_shards, "identified": taken, "too_early": refused}

    async def talk(self, rate: float) -> dict[str, Any]:
        self._talk = asyncio.create_task(self._crowd.talk(rate))
        return {}

    async def hush(self) -> dict[str, Any]:
        """Nobody says anything more."""
        if self._talk:
            self._talk.cancel()
            with suppress(asyncio.CancelledError):
                await self._talk
        return {}

    async def kill(self, *, is_still: bool = False) -> dict[str, Any]:
        """A process is killed now, or stands still."""
        self._outages.kill(is_still=is_still)
        return {}

    async def break_off(self) -> dict[str, Any]:
        """One session is ended, and the line of another one."""
        self._pg.invalidate(resumable=False, shard_id=0)
        self._pg.disconnect(4000, shard_id=1)
        return {}

    async def unanswered(self, logs: Sequence[str]) -> dict[str, Any]:
        """logs: the files that the bot's processes write."""
        return {"count": len(lost(self._crowd.evidence(*_read(logs)))) + len(self._outages.open)}

    async def count(self, logs: Sequence[str]) -> dict[str, Any]:
        followed, failed = _read(logs)
        evidence = self._crowd.evidence(followed, failed)
        findings = {"lost": lost(evidence), "doubled": doubled(evidence)}
        first = sorted(self._crowd.first_texts)
        outages = self._outages
        return {
            **self._crowd.counted,
            "accepted": sum(one.is_accepted for one in evidence.asked),
            "failed": len(failed),
            **{name: len(found) for name, found in findings.items()},
            "findings": [f"{name}: {one}" for name, found in findings.items() for one in found],
            "first_p50": median(first) if first else None,
            "first_p99": first[len(first) * 99 // 100] if first else None,
            "taken_over": sorted(outages.after_kills),
            "interrupted": sorted(outages.others),
            "open": outages.open,
            "more_than_one": outages.more_than_one,
            **await self.state(),
        }


def _read(logs: Sequence[str]) -> tuple[set[int], set[int]]:
    """The ids of the messages that are answered, and of those of which whoever called the bot was told that it failed,
    as the log says.
    """
    followed, failed = set[int](), set[int]()
    for path in logs:
        with Path(path).open("rb") as lines:
            for line in lines:
                if not line.endswith(b"}\n"):  # a kill came
                    continue
                if b'"decided"' in line and b'"respond"' in line:
                    told = orjson.loads(line)
                    if told["event"] == "decided" and told["decision"] == "respond":
                        followed.add(int(told["message"]))
                elif b'"agent_failed"' in line:
                    told = orjson.loads(line)
                    if told["event"] == "agent_failed":
                        failed.update(told["messages"])
    return followed, failed


async def main(servers: int, shards: int, max_concurrency: int, asked_share: float, seed: int) -> None:
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # of requests whose client was killed
    model = StubModel()
    await model.start()
    async with Loopback(servers, shards, max_concurrency) as pg:
        world = World(pg, model, Random(seed), asked_share)
        _say({"api": pg.api_base, "gateway": pg.gateway_url, "token": pg.token, "model": model.url})
        while line := await asyncio.to_thread(sys.stdin.readline):
            command = orjson.loads(line)
            _say(await getattr(world, command.pop("do"))(**command))
    await model.stop()


def _say(answer: dict[str, Any]) -> None:
    print(orjson.dumps(answer, option=orjson.OPT_NON_STR_KEYS).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(**orjson.loads(sys.argv[1])))
