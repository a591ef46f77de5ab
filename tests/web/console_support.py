"""A bot that is not connected, and servers made up for it, to be looked at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot import create_bot
from config import Settings
from place import SeenPlace
from place_settings.fields import Level
from tests.support.clock import FakeClock
from tests.support.people import CHANNEL, GUILD
from web.shown import Shown

CATEGORY, THREAD = 600, 701
PLACES = (
    SeenPlace(CATEGORY, Level.CATEGORY, "category", "Lobby"),
    SeenPlace(CHANNEL, Level.CHANNEL, "text", "general", category_id=CATEGORY),
    SeenPlace(THREAD, Level.THREAD, "public thread", "cats", CHANNEL, CATEGORY, owner_id=11),
)


@dataclass(frozen=True)
class MadeUp:
    """As web.shown.Servers."""

    there: Mapping[int, Sequence[SeenPlace]] = field(default_factory=lambda: {GUILD: PLACES})
    name: str = "Guild"
    lacking: Mapping[int, Sequence[str]] = field(default_factory=dict)

    def guilds(self) -> Mapping[int, str]:
        return {guild_id: f"{self.name} {guild_id}" for guild_id in self.there}

    def places(self, guild_id: int) -> Sequence[SeenPlace]:
        return self.there.get(guild_id, ())

    def latencies(self) -> Mapping[int, float]:
        return {0: 0.04}

    def lacks(self, guild_id: int, place_id: int) -> Sequence[str]:  # noqa: ARG002
        return self.lacking.get(place_id, ())


@asynccontextmanager
async def made_up(folder: Path, clock: FakeClock) -> AsyncIterator[Shown]:
    """The parts of a bot, with these servers."""
    bot = create_bot(Settings(decision_log="off", state_dir=folder), clock=clock)
    try:
        yield replace(bot.shown, servers=MadeUp())
    finally:
        await bot.close()
