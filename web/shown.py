"""The parts of the bot that its HTTP server may read; what changes the bot is named so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from activity import Activity
from clock import Clock
from conversation import ConversationManager
from counts import Counts, Faults
from decision import RecentDecisions
from health import Health
from persistence.kept_sizes import KeptSizes
from place import SeenPlace
from place_settings.guild_settings import GuildSettings
from shards import Shards
from state.awaiting import ConversationStateManager
from state.limits import Limits
from state.optout import OptOut
from turns.turn_queue import TurnQueue
from turns.turn_slots import TurnSlots
from web.console.feed import Feed

if TYPE_CHECKING:
    from cluster.connection import Cluster


class Servers(Protocol):
    """The servers that the bot is in."""

    def guilds(self) -> Mapping[int, str]:
        """Names of the servers, by id."""

    def places(self, guild_id: int) -> Sequence[SeenPlace]:
        """All places of a server, from the top: channels after their category, threads after their channel."""

    def lacks(self, guild_id: int, place_id: int) -> Sequence[str]:
        """The permissions that the bot needs to answer in a place and lacks, by Discord's names."""

    def latencies(self) -> Mapping[int, float]:
        """Latency of each connected shard: its id -> seconds of the last heartbeat."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The parts of a bot that pages may read. clock: the bot's clock, aware times.

    noted: waits until all changes are stored, at most so many seconds. practices: topic -> what the bot does with
    people's words, for the privacy page. cluster: None: this is the bot's only process.
    """

    activity: Activity
    counts: Counts
    faults: Faults
    health: Health
    decisions: RecentDecisions
    conversations: ConversationManager
    states: ConversationStateManager
    turns: TurnQueue
    slots: TurnSlots
    limits: Limits
    guild_settings: GuildSettings
    opted_out: OptOut
    servers: Servers
    shards: Shards
    cluster: Cluster | None
    feed: Feed
    sizes: KeptSizes
    noted: Callable[[float], Awaitable[object]]
    clock: Clock
    started_at: datetime
    model: str
    practices: Mapping[str, str]
