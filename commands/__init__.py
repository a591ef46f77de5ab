"""Slash commands, context menus, and clicks on the bot's cards.

Responses are ephemeral, except that a card shows what was answered.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog
from discord import app_commands

from commands.ask import Asking, add_ask
from commands.model_command import add_model
from commands.offer_commands import Offers, add_offers
from commands.privacy_commands import Privacy, add_practices, add_privacy
from commands.settings_clicks import SettingsClicks
from commands.settings_commands import SettingsCommands
from commands.status import Status, add_status
from commands.tour import add_tour
from commands.usage import Usage, add_usage
from commands.why import add_why
from decider import RecentDecisions
from discord_io.channel_history import FAILURES
from understanding.links import DISCORD

log = structlog.get_logger()


def add_commands(
    tree: app_commands.CommandTree,
    decisions: RecentDecisions,
    privacy: Privacy,
    asking: Asking,
    settings_clicks: SettingsClicks,
    *,
    offers: Offers,
    usage: Usage,
    status: Status,
    retention_days: int,
    practices: Mapping[str, str],
    public_address: str | None = None,
    site: str = DISCORD,
) -> None:
    """Adds the commands to the tree. site: address that message links begin with.

    practices: what the bot does with people's messages, shown by /privacy; public_address: of the bot's HTTP server,
    whose privacy page says more; None: no link.
    """
    add_why(tree, decisions, privacy, site)
    add_privacy(tree, privacy)
    add_practices(tree, practices, public_address)
    add_offers(tree, offers)
    add_ask(tree, asking)
    add_usage(tree, usage)
    add_status(tree, status)
    tree.add_command(SettingsCommands(settings_clicks))
    add_model(tree, settings_clicks.edge)
    add_tour(tree, offers, retention_days=retention_days)


async def sync(tree: app_commands.CommandTree) -> None:
    """Syncs the commands to Discord. A failure is only logged, since the bot answers without them, too."""
    try:
        await tree.sync()
    except FAILURES as error:
        log.warning("command_sync_failed", detail=f"{type(error).__name__}: {error}")
