"""Which of Discord's shards this process has, and which guild is on which."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

DIRECT = 0  # the shard on which direct messages come
IDENTIFY_SECONDS = 5.5  # Discord: 5 s between two IDENTIFYs of a bucket of shards; one may be longer on its way


class Shards:
    """count: of all shards of the bot; None until Discord has said how many it wants. ids: this process' own, in the
    order in which it got them; None: all there are.
    """

    def __init__(self, count: int | None = None, ids: Iterable[int] | None = None) -> None:
        self.count = count
        self._ids = None if ids is None else dict.fromkeys(ids)

    @property
    def ids(self) -> list[int]:
        return list(range(self.count or 1)) if self._ids is None else list(self._ids)

    @property
    def are_all(self) -> bool:
        """Whether no other process has any."""
        return self._ids is None

    @property
    def home(self) -> int:
        """The shard with which is stored what is kept of the process itself: the first that it got; 0 of all."""
        return next(iter(self._ids or ()), 0)

    @property
    def in_words(self) -> str:
        """Which of them this process has."""
        return f"{', '.join(map(str, sorted(self.ids))) or 'none'} of {self.count or 1}"

    def of(self, guild_id: int) -> int:
        """The shard that a guild is on; 0: direct messages. By Discord's formula (Gateway, "Sharding")."""
        return (guild_id >> 22) % (self.count or 1)

    def has(self, guild_id: int) -> bool:
        return self._ids is None or self.of(guild_id) in self._ids

    def add(self, shard_id: int) -> None:
        """It is this process' from now on. Not where it has all."""
        if self._ids is not None:
            self._ids[shard_id] = None

    def drop(self, shard_id: int) -> None:
        """It is another process' from now on. Not where it has all."""
        if self._ids is not None:
            self._ids.pop(shard_id, None)


@dataclass(frozen=True, slots=True)
class Session:
    """A shard's session of the gateway. url: where it can be RESUMEd. sequence: of the last event that came by `at`.
    count: of all shards of the bot, by which it depends what is on this one.
    """

    id: str
    url: str
    sequence: int
    at: datetime
    count: int


class Sharded(Protocol):
    """The bot, as far as it gets shards while it runs."""

    def is_up(self, shard_id: int) -> bool: ...

    async def add_shard(self, shard_id: int) -> None:
        """Goes on with what is kept of a shard that nobody has. Returns once it has sent its IDENTIFY. Where that fails
        nothing of the shard is left in memory.
        """

    async def leave_shard(self, shard_id: int) -> bool:
        """Leaves a shard to another process, unless it is in use, or cannot be stored now. Returns whether."""
