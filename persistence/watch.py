"""Outages that are noticed by looking now and then: of the store, and of the connection to Discord."""

from __future__ import annotations

from activity import Activity, FaultKind
from health import Health
from persistence.snapshots import Snapshots

USUAL_SECONDS = 30.0  # in which discord.py has connected again

UNSTORED = (
    "What the bot keeps could not be stored, and would not survive a restart: "
    "make STATE_DIR a folder that can be written and has room, or REDIS_URL reachable."
)
UNCONNECTED = f"Discord was not connected for more than {USUAL_SECONDS:.0f} s; the bot connects again by itself."


class Watch:
    """Tells of each outage once."""

    def __init__(self, activity: Activity, health: Health, snapshots: Snapshots) -> None:
        self._activity = activity
        self._health = health
        self._snapshots = snapshots
        self._outages = 0
        self._was_down = False

    def look(self) -> None:
        if self._snapshots.outages > self._outages:
            self._activity.fault(FaultKind.STORE, "store_failed", UNSTORED)
        self._outages = self._snapshots.outages
        is_down = self._health.down_seconds > USUAL_SECONDS
        if is_down and not self._was_down:
            self._activity.fault(FaultKind.GATEWAY, "gateway_down", UNCONNECTED)
        self._was_down = is_down
