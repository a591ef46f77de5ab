"""What the bot's HTTP may look at: parts of the bot, and nothing that changes them but what is named so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from activity import Activity
from conversation import ConversationManager
from decision import RecentDecisions
from health import Health
from place_settings.guild_settings import GuildSettings
from state.awaiting import ConversationStateManager
from state.limits import Limits
from state.optout import OptOut
from turns.turn_queue import TurnQueue
from turns.turn_slots import TurnSlots


@dataclass(frozen=True, slots=True)
class Shown:
    """The parts of a bot that can be looked at. clock: aware times, as all of it goes by."""

    activity: Activity
    health: Health
    decisions: RecentDecisions
    conversations: ConversationManager
    states: ConversationStateManager
    turns: TurnQueue
    slots: TurnSlots
    limits: Limits
    guild_settings: GuildSettings
    opted_out: OptOut
    clock: Callable[[], datetime]
