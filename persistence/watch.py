"""Reports outages of the store and of the connection to Discord, and lost permissions."""

from __future__ import annotations

from collections import OrderedDict

from activity import Activity, Ending, FaultKind, Observer, TurnEnded
from decision import LoggedDecision, Reason
from discord_io.channel_wire import Problem
from health import Health
from persistence.snapshots import Snapshots
from turns.endings import POST_FAULTS

MOST_CHANNELS = 1_000
USUAL_SECONDS = 30.0  # in which discord.py usually reconnects

UNSTORED = (
    "What the bot keeps could not be stored, and would not survive a restart: "
    "set STATE_DIR to a folder that can be written and has room, or make REDIS_URL reachable."
)
UNCONNECTED = f"Discord was not connected for more than {USUAL_SECONDS:.0f} s; the bot connects again by itself."


class Watch(Observer):
    """Reports each outage once, and each channel where the bot answered before and may no longer write."""

    def __init__(self, activity: Activity, health: Health, snapshots: Snapshots) -> None:
        self._answering: OrderedDict[int, None] = OrderedDict()
        self._activity = activity
        self._health = health
        self._snapshots = snapshots
        self._outages = 0
        self._was_down = False

    def turn_ended(self, turn: TurnEnded) -> None:
        if turn.ending is Ending.ANSWERED:
            self._answering[turn.channel_id] = None
            self._answering.move_to_end(turn.channel_id)
            if len(self._answering) > MOST_CHANNELS:
                self._answering.popitem(last=False)

    def decided(self, entry: LoggedDecision) -> None:
        if entry.decision.reason is Reason.MISSING_PERMISSION and entry.channel_id in self._answering:
            del self._answering[entry.channel_id]
            says = POST_FAULTS[Problem.FORBIDDEN]
            self._activity.fault(FaultKind.PERMISSION, Problem.FORBIDDEN, says, entry.guild_id, entry.channel_id)

    def look(self) -> None:
        if self._snapshots.outages > self._outages:
            self._activity.fault(FaultKind.STORE, "store_failed", UNSTORED)
        self._outages = self._snapshots.outages
        is_down = self._health.down_seconds > USUAL_SECONDS
        if is_down and not self._was_down:
            self._activity.fault(FaultKind.GATEWAY, "gateway_down", UNCONNECTED)
        self._was_down = is_down
