"""What is to go from the decision log, and what of that is still to be written: merged, so that it stays small."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Protocol

MAX_REMOVALS = 100_000


class Noted(Protocol):
    """What is noted of a message. Times are Unix seconds."""

    @property
    def message_id(self) -> int: ...

    @property
    def channel_id(self) -> int: ...

    @property
    def guild_id(self) -> int: ...

    @property
    def author_id(self) -> int: ...

    @property
    def at(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Deletion:
    """Messages were deleted."""

    message_ids: frozenset[int]

    def covers(self, noted: Noted) -> bool:
        return noted.message_id in self.message_ids


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What was said up to a message: in one channel or, with None, everywhere; by one person or, with None, anybody."""

    channel_id: int | None
    author_id: int | None
    through: int

    def covers(self, noted: Noted) -> bool:
        is_there = self.channel_id in (None, noted.channel_id)
        return is_there and self.author_id in (None, noted.author_id) and noted.message_id <= self.through


@dataclass(frozen=True, slots=True)
class GuildForgetting:
    """What was said in all channels of a guild up to a message."""

    guild_id: int
    through: int

    def covers(self, noted: Noted) -> bool:
        return noted.guild_id == self.guild_id and noted.message_id <= self.through


@dataclass(frozen=True, slots=True)
class Expiry:
    """What was said before this Unix time."""

    before: float

    def covers(self, noted: Noted) -> bool:
        return noted.at < self.before


@dataclass(frozen=True, slots=True)
class Erasure:
    """All goes."""

    def covers(self, _noted: Noted) -> bool:
        return True


Removal = Deletion | Forgetting | GuildForgetting | Expiry | Erasure


class Removals:
    """Removals that wait, in no order. Where there are more than `most`, all goes: better than to keep too much."""

    def __init__(self, most: int = MAX_REMOVALS) -> None:
        self._most = most
        self._clear()

    def _clear(self) -> None:
        self._message_ids: set[int] = set()
        self._people: dict[tuple[int | None, int | None], int] = {}
        self._guilds: dict[int, int] = {}
        self._before = -inf
        self._is_all = False

    def __len__(self) -> int:
        is_any = (self._before > -inf, self._is_all)
        return len(self._message_ids) + len(self._people) + len(self._guilds) + sum(is_any)

    def add(self, removal: Removal) -> None:
        match removal:
            case Deletion(message_ids):
                self._message_ids |= message_ids
            case Forgetting(channel_id, author_id, through):
                where = channel_id, author_id
                self._people[where] = max(through, self._people.get(where, through))
            case GuildForgetting(guild_id, through):
                self._guilds[guild_id] = max(through, self._guilds.get(guild_id, through))
            case Expiry(before):
                self._before = max(before, self._before)
            case Erasure():
                self._is_all = True
        if len(self) > self._most:
            self._clear()
            self._is_all = True

    def take(self) -> list[Removal]:
        """All that waits, which then no longer does."""
        taken: list[Removal] = [Erasure()] if self._is_all else []
        taken += [Forgetting(*where, through) for where, through in self._people.items()]
        taken += [GuildForgetting(*known) for known in self._guilds.items()]
        if self._message_ids:
            taken.append(Deletion(frozenset(self._message_ids)))
        if self._before > -inf:
            taken.append(Expiry(self._before))
        self._clear()
        return taken
