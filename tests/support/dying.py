"""`python -m tests.support.dying MOMENT TIME SIGNAL`: the real program, which gets the signal as soon as it has come to
this moment so many times. Its leases are short, so that nobody waits long for those of a dead one; so is what it reads
again, and for how long all must be calm before it gives a shard away.

With CLOCK_AHEAD in its environment its machine's clock is so many seconds ahead; with PATIENCE it ends when something
has not come for so many seconds.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any, Self

import structlog

import bot
import health
from cluster import connection, leases
from cluster.sessions import Sessions
from discord_io import discord_clock, replay, sharded_client
from discord_io.discord_wire import DiscordWire
from discord_io.inbox import Inbox
from persistence import catchup, lifecycle
from persistence.cluster_privacy import ClusterPrivacy
from persistence.snapshots import Snapshots
from persistence.unfinished_questions import UnfinishedQuestions
from shards import Session

NEVER = "never"
# What has just been done then, in the order in which whoever takes a shard does it.
MOMENTS: dict[str, tuple[type, str]] = {
    "the lease is taken": (leases.Leases, "take"),
    "what was forgotten is known": (ClusterPrivacy, "load"),
    "the rows are read": (Snapshots, "load"),
    "all is restored": (lifecycle.Lifecycle, "take"),
    "the session is resumed": (replay.Replays, "open"),
    "it may identify": (connection.Cluster, "may_identify"),
    "the session is ended": (replay.Replays, "end"),
    "it is connected": (bot.Parley, "on_shard_connect"),
    "what was begun is resumed": (UnfinishedQuestions, "finish"),
    "something is taken up": (Inbox, "take"),
    "something is posted": (DiscordWire, "send"),
}


def plant(moment: str, time: int, by: signal.Signals) -> None:
    owner, name = MOMENTS[moment]
    work, left = getattr(owner, name), [time]

    @functools.wraps(work)
    async def deadly(*arguments: Any, **named: Any) -> Any:
        result = await work(*arguments, **named)
        left[0] -= owner is not leases.Leases or result  # a lease that was not free is none
        if not left[0]:
            os.kill(os.getpid(), by)
        return result

    setattr(owner, name, deadly)


def shorten() -> None:
    leases.LEASE_SECONDS, leases.SURE_SECONDS, leases.RENEW_SECONDS = 3.0, 2.5, 0.2
    from cluster import keeper  # which takes from there how often they are renewed

    keeper.CALM_SECONDS = 1.0
    keeper.SPARE_SECONDS = keeper.RETRY_SECONDS = 0.1
    vars(connection)["IDENTIFY_SECONDS"] = 0.1
    replay.NOTE_SECONDS = lifecycle.BEAT_SECONDS = 0.2
    catchup.MARGIN = catchup.LAG = timedelta(seconds=1)


def lose_patience(seconds: float) -> None:
    from cluster import keeper

    keeper.PATIENCE_SECONDS = health.PATIENCE_SECONDS = seconds
    sharded_client.READY_SECONDS, sharded_client.LOOK_SECONDS = seconds / 4, seconds / 40


def set_clock(ahead: timedelta) -> None:
    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + ahead

    vars(discord_clock)["datetime"] = Ahead


def tell_of_sessions() -> None:
    """Logs of which shards the sessions are stored, by which another process is sent what it missed."""
    store = Sessions.store

    async def told(self: Sessions, by_shard: Mapping[int, Session]) -> None:
        await store(self, by_shard)
        structlog.get_logger().info("sessions_stored", shards=sorted(by_shard))

    Sessions.store = told  # type: ignore[method-assign]


if __name__ == "__main__":
    shorten()
    tell_of_sessions()
    set_clock(timedelta(seconds=float(os.environ.get("CLOCK_AHEAD", "0"))))
    if "PATIENCE" in os.environ:
        lose_patience(float(os.environ["PATIENCE"]))
    if sys.argv[1] != NEVER:
        plant(sys.argv[1], int(sys.argv[2]), signal.Signals[sys.argv[3]])
    sys.argv[1:] = []
    sys.exit(bot.main())
