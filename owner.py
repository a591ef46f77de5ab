"""Builds from the owner's settings: place defaults, limits, mini-apps, and the privacy statements."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from agents.mcp_file import McpError
from agents.models import DEMO
from agents.providers import provider_of
from agents.roster import RosterError
from config import SettingError, Settings
from miniapps.base import MiniApp
from miniapps.router import discover
from miniapps.trip_planner import TripPlanner
from miniapps.venues import NominatimVenues, SampleVenues
from offers.offer_limits import OfferLimits
from place_settings.fields import PlaceSettings
from setting_values import is_loopback
from state.ledger import Ledger
from state.limits import Limits, OwnBudgets, Totals
from state.prices import PricesError, load_prices

T = TypeVar("T")

USER_AGENT = "parley (Discord bot)"


def owners_layer(settings: Settings) -> PlaceSettings:
    """The settings of a place that has set nothing itself."""
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
    """Where data is stored, and with which keys: (folder, Redis address or None, keys or None)."""
    redis_url, keys = (s.get_secret_value() if s else None for s in (settings.redis_url, settings.state_key))
    return settings.state_dir, redis_url, keys


def apart_in_playground(settings: Settings) -> Settings:
    """The settings, adapted where there is no token. The playground's server lasts as long as the process, so its data
    is stored apart from a real bot's, without Redis, and it has all shards. On loopback it has HTTP without PORT too.
    """
    if settings.discord_token is not None:
        return settings
    port = settings.port or 0 if is_loopback(settings.playground_host) else settings.port
    apart = {"port": port, "state_dir": settings.state_dir / "playground", "redis_url": None, "state_key": None}
    one = {"shards": None, "shard_count": None, "shard_ids": ()}
    return settings.model_copy(update=apart | one)


def owners_limits(settings: Settings, own: OwnBudgets | None, ledger: Ledger, totals: Totals | None) -> Limits:
    """The caps, of which some do not hold for the demo model alone, as it costs nothing. Raises SettingError.

    own: budgets that places have set, if any. totals: usage summed over all processes; None: there is only one.
    """
    helpers = {settings.judge_model, settings.coordinator_model, settings.rewrite_model, settings.transcribe_model}
    costs = settings.agents is not None or bool({settings.model, *settings.models, *helpers} - {DEMO, None})
    return Limits(
        turns_per_user_minute=settings.turns_per_user_minute,
        daily_tokens=settings.daily_tokens or None,
        guild_tokens=(costs and settings.guild_tokens) or None,
        person_tokens=(costs and settings.person_tokens) or None,
        turn_tokens=settings.turn_tokens or None,
        budgets=settings.budgets,
        own=own,
        prices=dict(loaded(load_prices, settings.prices)),
        ledger=ledger,
        totals=totals,
    )


def offer_limits(settings: Settings) -> OfferLimits:
    """The limits of offers, for every channel."""
    return OfferLimits(
        settings.offer_timeout_seconds,
        settings.offer_cooldown_seconds,
        settings.offers_per_day,
        settings.offer_quiet_hours,
    )


def loaded(
    load: Callable[[Path | str, Mapping[str, str]], tuple[T, ...]], setting: Path | SecretStr | None
) -> tuple[T, ...]:
    """What `load` reads from a file or text: remote agents, MCP servers or prices. Raises SettingError."""
    source = setting.get_secret_value() if isinstance(setting, SecretStr) else setting
    try:
        return load(source, os.environ) if source else ()
    except (RosterError, McpError, PricesError) as error:
        raise SettingError(str(error)) from None


def installed(settings: Settings) -> list[MiniApp]:
    """The mini-apps: the trip planner, and any that are installed."""
    venues = NominatimVenues(settings.nominatim_url, USER_AGENT) if settings.nominatim_url else SampleVenues()
    return [TripPlanner(venues), *discover()]


DIRECT = {
    "off": "none are answered.",
    "listed": "of people whom its owner listed, they are answered, and kept like everything else.",
    "open": "they are answered, and kept like everything else.",
}
LOGGED = {
    "on": "ids (those of people as a hash), times and scores; no text.",
    "content": "ids (those of people as a hash), times, scores, and the text of messages.",
    "off": "none is kept.",
}


def practices(settings: Settings) -> dict[str, str]:
    """What the bot does with people's words, by its settings: a sentence for each of people's questions."""
    days = settings.retention_days
    helpers = {
        "judges whether a message wants an answer": settings.judge_model,
        "picks who answers": settings.coordinator_model,
        "completes short questions": settings.rewrite_model,
        "writes down voice messages": settings.transcribe_model,
    }
    said = [f"{_listed([model])} {does}" for does, model in helpers.items() if model]
    if settings.openai_state != "off":
        said.append("OpenAI is asked to keep conversations for a while")
    if settings.mcp_config:
        said.append("tools that its owner added receive what the agent gives them")
    if settings.agents:
        said.append("remote agents that its owner added receive the questions that they answer")
    if settings.nominatim_url:
        said.append(f"{urlsplit(settings.nominatim_url).hostname} looks up the names of places for trips")
    return {
        "How long": f"for {'a day' if days == 1 else f'{days} days'}, and then it is deleted.",
        "Where": _where(settings),
        "Who receives it": f"{_listed([settings.model, *settings.models])}, to answer.",
        "Who else": f"{'; '.join(said)}." if said else "nobody.",
        "Direct messages": DIRECT[settings.direct_messages],
        "Log of decisions": LOGGED[settings.decision_log],
        "Whom to ask": settings.contact or "whoever runs the bot.",
    }


def _where(settings: Settings) -> str:
    if not settings.redis_url:
        return "where the bot runs, encrypted."
    if settings.decision_log == "off":
        return "in its owner's Redis, encrypted."
    return "in its owner's Redis, and the log of decisions where the bot runs; all encrypted."


def _listed(models: Iterable[str]) -> str:
    """These models and their providers in words. Each name may be several, separated by commas."""
    names = dict.fromkeys(name.strip() for several in models for name in several.split(","))
    return " or ".join(_in_words(name) for name in names)


def _in_words(name: str) -> str:
    if name == DEMO:
        return "the demo model, which is a part of the bot and sends nothing anywhere"
    prefix, _, model = name.partition(":")
    provider = provider_of(name)
    variables = {f"{prefix.upper()}_BASE_URL", *((*provider.variables, provider.instead) if provider else ())}
    if any(os.environ.get(variable) for variable in variables if variable.endswith("_BASE_URL")):
        return f"{model} at an address that its owner chose"
    return f"{model} of {provider.name}" if provider else name


def public_address(settings: Settings) -> str | None:
    """The public address of the bot's HTTP; None: unknown, or it has none."""
    domain = os.environ.get("RAILWAY_PUBLIC_DOMAIN")
    found = settings.public_url or (f"https://{domain}" if domain else None)
    return None if settings.port is None else found
