"""Stores which notices were posted, so that they are not posted again after a restart."""

from __future__ import annotations

from functools import partial

from activity import Activity
from discord_io.channel_wire import Wires
from discord_io.notices import Claims, Notices
from persistence.holders import Holders
from persistence.process_holder import ProcessHolder
from persistence.snapshots import Snapshots
from state.limits import Limits

NOTICES = "notices"


def register_notices(
    channel_id: int | None,
    wires: Wires,
    limits: Limits,
    activity: Activity,
    holders: Holders,
    snapshots: Snapshots,
    claims: Claims | None,
) -> Notices | None:
    """Sets up notices for this channel, and their storage; None: there is no channel for them."""
    if channel_id is None:
        return None
    notices = Notices(channel_id, wires, limits, activity, partial(snapshots.touch_process, NOTICES), claims)
    activity.watch(notices)
    holders.register(ProcessHolder(notices), of_process=NOTICES)
    return notices
