"""When a shard was with nobody, and how long it took until somebody served it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from time import perf_counter

from bench.shards.loopback import Loopback
from playground.model import Event

NOTICED_SECONDS = 2.0  # after a kill, in which its shards' lines break
SERVED = ("TYPING_START", "MESSAGE_CREATE")


class Outages:
    """Watches the playground. Where a shard is connected again, `ask` has somebody ask the bot on it at once.

    after_kills, others: seconds from the kill, or from when the line broke, until the bot types or says something on
    that shard. more_than_one: how often two connections had one shard.
    """

    def __init__(self, pg: Loopback, ask: Callable[[int], object]) -> None:
        self.after_kills: list[float] = []
        self.others: list[float] = []
        self.more_than_one = 0
        self._pg = pg
        self._ask = ask
        self._killed_at = float("-inf")
        self._connected: list[int] = []
        self._open: dict[int, tuple[float, list[float]]] = {}  # shard -> since when, and where its end is noted
        self._still: set[int] = set()  # the shards that may have two, as one may be of a process that stands still
        self._waiting: set[int] = set()  # of these, those that are connected again
        pg.world.listen(self._listen)

    @property
    def open(self) -> dict[int, float]:
        """The shards that no process serves, with the seconds since when."""
        return {shard: perf_counter() - since for shard, (since, _) in self._open.items()}

    def kill(self, *, is_still: bool = False) -> None:
        """A process is killed now, or stands still: what it has of shards stays connected, though others have them."""
        self._killed_at = perf_counter()
        self._still = {*self._connected} if is_still else set()

    def _listen(self, event: Event) -> None:
        if event.name == "BOT":
            self._compare(self._pg.connected_shards)
        elif self._waiting and event.name in SERVED and event.channel:
            author = event.message.author.id if event.message else event.user_id
            shard = self._pg.shard_of(event.channel.guild_id)
            if author == self._pg.bot_id and shard in self._waiting:
                self._waiting.discard(shard)
                since, noted = self._open.pop(shard)
                noted.append(perf_counter() - since)

    def _compare(self, connected: list[int]) -> None:
        before, self._connected = self._connected, connected
        more = Counter(connected) - Counter(before)
        self.more_than_one += any(connected.count(shard) > 1 and shard not in self._still for shard in more)
        self._still -= (Counter(before) - Counter(connected)).keys()
        for shard in {*before} - {*connected}:
            now = perf_counter()
            by_kill = now - self._killed_at < NOTICED_SECONDS
            since = (self._killed_at, self.after_kills) if by_kill else (now, self.others)
            self._open.setdefault(shard, since)
            self._waiting.discard(shard)
        for shard in ({*connected} - {*before}) & self._open.keys():
            self._waiting.add(shard)
            self._ask(shard)
