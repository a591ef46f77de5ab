"""Discord's shards: those of this process, and the shard of a guild."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

DIRECT = 0  # the shard on which direct messages come
IDENTIFY_SECONDS = 5.5  # Discord: 5 s between two IDENTIFYs of a bucket of shards; the rest is for network delay


class Shards:
    """The shards of this process.

    count: number of all shards of the bot; None until Discord has recommended one. ids: this process' shards, in the
    order in which it got them; None: all shards. are_all: whether this process has all shards.
    """

    def __init__(self, count: int | None = None, ids: Iterable[int] | None = None) -> None:
        self.count = count
        self._ids = None if ids is None else dict.fromkeys(ids)
        self.are_all = ids is None

    @property
    def ids(self) -> list[int]:
        return list(range(self.count or 1)) if self._ids is None else list(self._ids)

    @property
    def home(self) -> int:
        """The shard with which the process' own state is stored: the first it got; 0 where it has all."""
        return next(iter(self._ids or ()), 0)

    @property
    def in_words(self) -> str:
        """The ids of this process' shards and the number of all, such as "0, 1 of 4"."""
        return f"{', '.join(map(str, sorted(self.ids))) or 'none'} of {self.count or 1}"

    def of(self, guild_id: int) -> int:
        """The shard of a guild, by Discord's formula (Gateway, "Sharding"). guild_id: 0 for direct messages."""
        return (guild_id >> 22) % (self.count or 1)

    def has(self, guild_id: int) -> bool:
        return self._ids is None or self.of(guild_id) in self._ids

    def add(self, shard_id: int) -> None:
        """Adds a shard to this process' own. Does nothing where it has all."""
        if self._ids is not None:
            self._ids[shard_id] = None

    def drop(self, shard_id: int) -> None:
        """Removes a shard from this process' own. Does nothing where it has all."""
        if self._ids is not None:
            self._ids.pop(shard_id, None)


@dataclass(frozen=True, slots=True)
class Session:
    """A shard's gateway session. url: of the gateway to RESUME at. sequence: number of the last event received by
    `at`. count: number of all shards when it began, which determines the guilds on this one.
    """

    id: str
    url: str
    sequence: int
    at: datetime
    count: int


class Sharded(Protocol):
    """The bot, as used to give it shards, and take them, while it runs."""

    def is_up(self, shard_id: int) -> bool: ...

    async def add_shard(self, shard_id: int) -> None:
        """Takes a shard that no process has, with its stored state. Returns once it has sent its IDENTIFY. If that
        fails, nothing of the shard is left in memory.
        """

    async def leave_shard(self, shard_id: int) -> bool:
        """Leaves a shard to another process, unless it is in use or cannot be stored now. Returns whether it did."""
