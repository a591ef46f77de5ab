"""What the bot's HTTP may look at: parts of the bot, and nothing that changes them but what is named so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from activity import Activity
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
        """Their names, by id."""

    def places(self, guild_id: int) -> Sequence[SeenPlace]:
        """All of one, from the top: channels behind their category, threads behind their channel."""

    def lacks(self, guild_id: int, place_id: int) -> Sequence[str]:
        """The permissions that the bot lacks to answer in a place, by Discord's names."""

    def latencies(self) -> Mapping[int, float]:
        """The seconds in which the gateway answered last, by shard; of those that are connected."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The parts of a bot that can be looked at. clock: aware times, as all of it goes by.

    noted: waits until all that was changed is stored, but no longer than so many seconds. practices: what it does with
    what people say, by its settings, for anybody to read. cluster: None where this is the bot's only process.
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
    clock: Callable[[], datetime]
    started_at: datetime
    model: str
    practices: Mapping[str, str]
