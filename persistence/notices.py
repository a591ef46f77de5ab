"""Stores which notices were posted, so that they are not posted again after a restart."""

from __future__ import annotations

from functools import partial
from typing import Any

from activity import Activity
from discord_io.notices import Claims, Notices, Wires
from persistence.holders import Holder, Holders
from persistence.snapshots import Snapshots
from persistence.stored_state import Encode, as_json
from state.limits import Limits

NOTICES = "notices"


class NoticesHolder(Holder):
    def __init__(self, notices: Notices) -> None:
        self._notices = notices

    def snapshot(self, channel_id: int) -> Encode | None:  # noqa: ARG002 - there is one
        return as_json(self._notices.to_store())

    def restore(self, channel_id: int, stored: Any) -> None:  # noqa: ARG002
        self._notices.restore(stored)


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
    holders.register(NoticesHolder(notices), of_process=NOTICES)
    return notices
