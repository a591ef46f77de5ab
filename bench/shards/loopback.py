"""A loopback Discord with thousands of servers."""

from __future__ import annotations

from collections.abc import Sequence

from playground.limits import Limits
from playground.model import Guild
from playground.server import Playground

PEOPLE = 500
HISTORY, REPLAY = 600_000, 8_000  # messages that all channels keep together, and a session
CHANNELS = ("general", "trips", "random")


class Loopback(Playground):
    """A playground that knows which guild is on which of its shards."""

    def __init__(self, servers: int, shards: int, max_concurrency: int) -> None:
        people = [f"Person {number}" for number in range(PEOPLE)]
        super().__init__(
            people=people,
            shards=shards,
            max_concurrency=max_concurrency,
            history=HISTORY // servers // len(CHANNELS),
            replay=REPLAY,
            limits=Limits.off(),
        )
        self._count = shards
        for number in range(1, servers):
            self.add_guild(f"Server {number}", CHANNELS[: 1 + number % len(CHANNELS)])
        self._on: dict[int, list[Guild]] = {}
        for guild in self.world.guilds.values():
            self._on.setdefault(self.shard_of(guild.id), []).append(guild)

    def shard_of(self, guild_id: int | None) -> int:
        return ((guild_id or 0) >> 22) % self._count

    def guilds_on(self, shard_id: int) -> Sequence[Guild]:
        return self._on[shard_id]
