"""Checks of shards: whether there are as many as Discord recommends, and which process has which."""

from __future__ import annotations

from collections.abc import Collection

from doctor.discord_rest import DiscordRest
from doctor.findings import Finding, fault, ok, skipped, warning

FEW_STARTS = 100
IDENTIFY_SECONDS = 5  # Discord's rate limit: one IDENTIFY in 5 s for each bucket of shards
MOST_GUILDS, GUILDS = 2_500, 1_000  # on a shard: Discord's maximum, and the average by its recommendation


async def check_gateway(rest: DiscordRest, set_count: int | None = None) -> list[Finding]:
    """Checks the number of shards, and how often they may still connect today. set_count: SHARD_COUNT."""
    said = await rest.get("/gateway/bot")
    recommended, limit = int(said["shards"]), said["session_start_limit"]
    count = set_count or recommended
    left, total, hours = int(limit["remaining"]), int(limit["total"]), int(limit["reset_after"]) / 3_600_000
    findings = [_count(count, recommended, int(limit["max_concurrency"]))]
    if left >= max(count, min(FEW_STARTS, total)):
        return [*findings, ok("gateway", f"It may connect {left:,} more times today.")]
    each = f", of which each start takes {count}" if count > 1 else ""
    says = f"It may connect only {left} more times in the next {hours:.1f} hours, of {total:,} a day{each}."
    fix = "Find out why it starts so often, or where else it runs with this token, and stop that."
    return [*findings, warning("gateway", says, fix) if left >= count else fault("gateway", says, fix)]


def _count(count: int, recommended: int, at_once: int) -> Finding:
    seconds = (count - 1) // at_once * IDENTIFY_SECONDS
    how_long = f"; a start of all takes {seconds} s" if seconds else ""
    are = f"{count} shards" if count > 1 else "one shard"
    if count == recommended:
        return ok("shards", f"The bot has {are}, as Discord recommends{how_long}.")
    says = f"SHARD_COUNT gives the bot {are}, and Discord recommends {recommended}"
    if count < recommended:
        fix = f"Set SHARD_COUNT to {recommended} or more for all processes at once, or leave it out."
        if count * MOST_GUILDS < recommended * GUILDS:
            why = f"more than {MOST_GUILDS:,} servers on one are refused"
            return fault("shards", f"{says}: {why}.", fix)
        return warning("shards", f"{says}.", fix)
    return ok("shards", f"{says}{how_long}.")


async def check_processes(redis_url: str, count: int | None, wanted: Collection[int]) -> list[Finding]:
    """Checks which of the processes that share a Redis has which shard, without changing anything.

    count, wanted: SHARD_COUNT and SHARD_IDS.
    """
    from redis import RedisError  # noqa: PLC0415 - only REDIS_URL needs its client

    from cluster.connection import Cluster  # noqa: PLC0415
    from cluster.leases import held  # noqa: PLC0415

    cluster = Cluster(redis_url)
    try:
        found = await held(cluster.redis)
        memory = await cluster.redis.info("memory")
    except RedisError as error:
        return [skipped("processes", f"It cannot be seen who has which shard ({type(error).__name__}).")]
    finally:
        await cluster.close()
    if 0 < memory["maxmemory"] <= memory["used_memory"]:
        says = "REDIS_URL has no memory left: no shard can be taken, and nothing is stored."
        return [fault("processes", says, "Raise its maxmemory, or delete what is not the bot's.")]
    if found.is_alone_taken:
        says = "A process that runs alone uses REDIS_URL: no other can take a shard."
        return [fault("processes", says, "Stop that one, or set SHARDS=auto for it, too.")]
    if found.count is None:
        return [ok("processes", "No process has a shard.")]
    having = [f"{name} has {_listed(shards)}" for name, shards in sorted(found.shards.items(), key=lambda one: one[1])]
    idle = max(found.members - len(having), 0)
    stands_by = f"; {idle} more {'stand' if idle > 1 else 'stands'} by" if idle else ""
    says = f"Of {found.count} shards {', '.join(having) or 'nobody has any'}{stands_by}."
    if count and count != found.count:
        fix = f"Set SHARD_COUNT to {found.count}, or stop all processes and start them with {count}."
        return [warning("processes", f"{says[:-1]}, while SHARD_COUNT is {count}.", fix)]
    if free := sorted(set(range(found.count)) - {one for shards in found.shards.values() for one in shards}):
        fix = (
            "Within a minute a process that runs takes them; where none does, start another one, and look at the logs."
        )
        if wanted:
            fix = "Start the processes whose SHARD_IDS name them."
        return [warning("processes", f"{says} Nobody has {_listed(free)}.", fix)]
    return [ok("processes", says)]


def _listed(ids: Collection[int]) -> str:
    """Ids in the form of SHARD_IDS: 0-3,7."""
    runs: list[list[int]] = []
    for one in sorted(ids):
        if runs and runs[-1][-1] == one - 1:
            runs[-1][1:] = [one]
        else:
            runs.append([one])
    return ",".join("-".join(map(str, run)) for run in runs)
