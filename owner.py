"""What the owner's settings come to: what holds in every place, and what else is read or installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import SecretStr

from agents.mcp_file import McpError
from agents.models import DEMO
from agents.roster import RosterError
from config import SettingError, Settings
from miniapps.base import MiniApp
from miniapps.router import discover
from miniapps.trip_planner import TripPlanner
from miniapps.venues import NominatimVenues, SampleVenues
from place_settings.fields import PlaceSettings
from state.limits import Limits, OwnBudgets
from state.optout import OptOut
from state.prices import PricesError, load_prices

T = TypeVar("T")

USER_AGENT = "parley (Discord bot)"


def owners_layer(settings: Settings) -> PlaceSettings:
    """What holds in a place that has set nothing."""
    return PlaceSettings.model_construct(
        answers="follow",
        allowed_channels=settings.channels or None,
        threads=settings.threads,
        eagerness=settings.followup_eagerness,
        decline=settings.decline,
        judge=settings.use_llm_judge,
        offers=False,
        model=settings.model,
        tools=True,
    )


def where(settings: Settings) -> tuple[Path, str | None, str | None]:
    """Where what is kept is stored, and with which keys."""
    redis_url, keys = (s.get_secret_value() if s else None for s in (settings.redis_url, settings.state_key))
    return settings.state_dir, redis_url, keys


def apart_in_playground(settings: Settings) -> Settings:
    """The settings as they hold: what is kept without a token is of a server that lasts as long as the process, and
    apart from a real bot's."""
    if settings.discord_token is not None:
        return settings
    apart = {"state_dir": settings.state_dir / "playground", "redis_url": None, "state_key": None}
    return settings.model_copy(update=apart)


def owners_limits(settings: Settings, own: OwnBudgets, opted_out: OptOut) -> Limits:
    """The caps; the demo model alone costs nothing. own: what places have set. Raises SettingError."""
    costs = {settings.model, *settings.models} != {DEMO}
    return Limits(
        turns_per_user_minute=settings.turns_per_user_minute,
        daily_tokens=settings.daily_tokens or None,
        guild_tokens=(costs and settings.guild_tokens) or None,
        person_tokens=(costs and settings.person_tokens) or None,
        turn_tokens=settings.turn_tokens or None,
        budgets=settings.budgets,
        own=own,
        prices=dict(loaded(load_prices, settings.prices)),
        opted_out=opted_out,
    )


def loaded(
    load: Callable[[Path | str, Mapping[str, str]], tuple[T, ...]], setting: Path | SecretStr | None
) -> tuple[T, ...]:
    """The remote agents, the servers that lend the general agent tools, or prices. Raises SettingError."""
    source = setting.get_secret_value() if isinstance(setting, SecretStr) else setting
    try:
        return load(source, os.environ) if source else ()
    except (RosterError, McpError, PricesError) as error:
        raise SettingError(str(error)) from None


def installed(settings: Settings) -> list[MiniApp]:
    """The trip planner, and what else is installed."""
    venues = NominatimVenues(settings.nominatim_url, USER_AGENT) if settings.nominatim_url else SampleVenues()
    return [TripPlanner(venues), *discover()]
