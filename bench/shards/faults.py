"""What else may happen to several processes and their Redis: each once, one behind the other."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from bench.__main__ import Peer
from bench.shards.processes import Bot, Redis

BEGIN_SECONDS, LULL_SECONDS = 8.0, 30.0  # before the first, and behind each
STILL_SECONDS = 30.0  # longer than a lease
REDIS_STILL_SECONDS, REDIS_AWAY_SECONDS = 20.0, 60.0
TAKE_OVER_SECONDS = 17.0  # after a kill, until others are at it
LATER_SECONDS = 10.0  # after Redis has lost all, until what processes know is stored again


class Faults:
    """Of these processes."""

    def __init__(self, bots: Sequence[Bot], redis: Redis, peer: Peer) -> None:
        self._bots = bots
        self._redis = redis
        self._peer = peer

    async def happen(self) -> None:
        """To at least two processes."""
        acts: dict[str, Callable[[], Awaitable[None]]] = {
            f"process 0 stands still for {STILL_SECONDS:.0f} s": self._stand_still,
            "Discord ends the session of shard 0 (op 9), and breaks off the line of shard 1 (4000)": self._break_off,
            f"Redis stands still for {REDIS_STILL_SECONDS:.0f} s": self._redis_stands_still,
            f"Redis loses all that it has; after {LATER_SECONDS:.0f} s process 1 is killed": self._lose_all,
            "process 0 is killed, and 1 told to stop while it takes over": self._stop_in_take_over,
            f"Redis is killed, and away for {REDIS_AWAY_SECONDS:.0f} s": self._redis_away,
        }
        await asyncio.sleep(BEGIN_SECONDS)
        for what, act in acts.items():
            print(f"{datetime.now(UTC):%H:%M:%S} {what}", flush=True)
            await act()
            await asyncio.sleep(LULL_SECONDS)

    async def _stand_still(self) -> None:
        """It may end by itself then, as another process has its shards."""
        bot = self._bots[0]
        await self._peer.tell("kill", is_still=True)
        bot.is_to_end = True
        bot.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(STILL_SECONDS)
        bot.process.send_signal(signal.SIGCONT)

    async def _break_off(self) -> None:
        await self._peer.tell("break_off")

    async def _redis_stands_still(self) -> None:
        self._redis.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(REDIS_STILL_SECONDS)
        self._redis.process.send_signal(signal.SIGCONT)

    async def _lose_all(self) -> None:
        await self._redis.empty()
        await asyncio.sleep(LATER_SECONDS)
        await self._kill(self._bots[1])

    async def _stop_in_take_over(self) -> None:
        await self._kill(self._bots[0])
        await asyncio.sleep(TAKE_OVER_SECONDS)
        self._bots[1].is_to_end = True
        self._bots[1].process.terminate()

    async def _redis_away(self) -> None:
        await self._redis.restart(signal.SIGKILL, REDIS_AWAY_SECONDS)

    async def _kill(self, bot: Bot) -> None:
        await self._peer.tell("kill")
        bot.kill()
