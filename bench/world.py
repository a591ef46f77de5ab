"""The other side of the bench, a process of its own: the loopback Discord and a model server on loopback.

Commands come in as lines of JSON on stdin, one answer each goes out on stdout.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from time import perf_counter
from typing import Any

import orjson

from playground.limits import Limits
from playground.server import Playground
from tests.support.stub_model import Body, Reply, StubModel

ANSWER = (
    "It is, as far as I know; there is more to it than that, though, and I would look it up before relying on it. " * 3
)
PAUSE_SECONDS = 0.03  # nobody asks again within the millisecond in which the answer comes
FRAME = 200  # messages between two yields to the sockets


class World:
    """Two people who talk, a bot that may answer, and a model that notes when it is asked."""

    def __init__(self, loopback: Playground, model: StubModel, channels: list[int]) -> None:
        self._loopback = loopback
        self._channels = channels
        self._ada, self._ben = loopback.person("Ada"), loopback.person("Ben")
        self._asked = asyncio.Event()
        self._asked_at = 0.0
        self._model = model
        model.default = self._answer

    def _answer(self, _body: Body) -> Reply:
        self._asked_at = perf_counter()
        self._asked.set()
        return Reply(ANSWER, chunk=1_000)

    async def flood(self, count: int, channels: int) -> dict[str, Any]:
        """People talk to each other in so many of the channels. Gives the last message's id."""
        message_id = 0
        for number in range(count):
            channel = self._channels[number % channels]
            text = f"<@{self._ada}> shall we go there tomorrow?" if number % 5 == 0 else "I had pasta for lunch today"
            message_id = self._loopback.post(channel, self._ben, text).id
            if number % FRAME == 0:
                await asyncio.sleep(0)
        return {"last": str(message_id)}

    def _stand_more_than(self, channel: int, count: int) -> bool:
        return len(self._loopback.messages(channel)) > count

    async def ask(self, count: int, channel: int) -> dict[str, Any]:
        """Ada asks, the bot answers, again and again. Gives the seconds from each mention to the model's request."""
        channel = self._channels[channel]
        seconds = []
        for _ in range(count):
            self._asked.clear()
            before = len(self._loopback.messages(channel))
            started = perf_counter()
            self._loopback.post(channel, self._ada, f"<@{self._loopback.bot_id}> is it so?")
            await self._asked.wait()
            seconds.append(self._asked_at - started)
            await self._loopback.wait_for(partial(self._stand_more_than, channel, before + 1))
            await asyncio.sleep(PAUSE_SECONDS)
        return {"seconds": seconds}


async def main(channels: int) -> None:
    model = StubModel()
    await model.start()
    names = [f"channel-{number}" for number in range(channels)]
    async with Playground(channels=names, limits=Limits.off()) as loopback:
        world = World(loopback, model, list(loopback.world.channels))
        await obey(world, loopback, model)
    await model.stop()


async def obey(world: object, loopback: Playground, model: StubModel) -> None:
    """Says where the two can be reached, and answers each command on stdin by the method of that name."""
    _say({"api": loopback.api_base, "gateway": loopback.gateway_url, "token": loopback.token, "model": model.url})
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = orjson.loads(line)
        _say(await getattr(world, command.pop("do"))(**command))


def _say(answer: dict[str, Any]) -> None:
    print(orjson.dumps(answer).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
