"""What the owner's settings come to: what holds in every place, and what else is read or installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import SecretStr

from agents.mcp_file import McpError
from agents.roster import RosterError
from config import SettingError, Settings
from miniapps.base import MiniApp
from miniapps.router import discover
from miniapps.trip_planner import TripPlanner
from miniapps.venues import NominatimVenues, SampleVenues
from place_settings.fields import PlaceSettings
from state.prices import PricesError

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
