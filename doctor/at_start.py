"""The checks that cost no request, logged together once the bot is ready."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import discord
import structlog

from config import Settings
from doctor.checks_around import check_password
from doctor.checks_discord import Channel, Lack, content_intent, lacking, lacks_of, timed_out
from doctor.checks_models import check_budgets
from doctor.checks_storage import check_disk, check_modes, check_volume
from doctor.findings import Finding, State, bounded
from owner import where

log = structlog.get_logger()

AT_ONCE = 20  # channels between two yields to the event loop
SPOKEN_IN = (discord.TextChannel, discord.VoiceChannel, discord.StageChannel, discord.ForumChannel)


async def look_around(settings: Settings, client: discord.Client) -> list[Finding]:
    """Runs the checks on a bot that is ready. They send no request, and yield to the event loop."""
    state_dir, redis_url, _ = where(settings)
    # Whether the folder can be written is not checked: by now the store has shown it.
    kept = await bounded("storage", asyncio.to_thread(lambda: [check_modes(state_dir), check_disk(state_dir)]))
    flags = client.application_flags
    reads_content = flags.gateway_message_content or flags.gateway_message_content_limited
    return [
        content_intent(is_on=reads_content, application_id=client.application_id),
        *timed_out([guild.name for guild in client.guilds if _is_timed_out(guild)]),
        *lacking(await _lacks(client, settings)),
        *kept,
        *check_volume(state_dir, redis_url, os.environ),
        check_budgets(settings.budgets, settings.daily_tokens, ()),
        *check_password(settings.console_password, settings.port),
    ]


def report(findings: Sequence[Finding]) -> None:
    """Logs one entry for each warning or fault, or a single one if all is well."""
    bad = [finding for finding in findings if finding.state in (State.WARNING, State.FAULT)]
    for finding in bad:
        log.warning("checked", check=finding.check, state=finding.state.value, says=finding.says, remedy=finding.fix)
    if not bad:
        well = [finding.check for finding in findings if finding.state is State.OK]
        log.info("checked", well=well, more="python bot.py doctor checks the rest")


def _is_timed_out(guild: discord.Guild) -> bool:
    return bool(guild.me and guild.me.is_timed_out())


async def _lacks(client: discord.Client, settings: Settings) -> list[Lack]:
    found: list[Lack] = []
    for guild in client.guilds:
        if _is_timed_out(guild):
            continue
        places = []
        for number, channel in enumerate(guild.channels, 1):
            listed = {channel.id, channel.category_id} & settings.channels
            if isinstance(channel, SPOKEN_IN) and (listed or not settings.channels):
                ours, others = channel.permissions_for(guild.me), channel.permissions_for(guild.default_role)
                is_forum = isinstance(channel, discord.ForumChannel)
                name = f"#{channel.name} ({guild.name})"
                places.append(Channel(channel.id, name, ours, others, is_forum, bool(listed)))
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
        found += lacks_of(places, settings.threads)
    return found
