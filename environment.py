"""What else is read from the environment: misspelt settings, a service without a token, secrets never to be shown."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from urllib.parse import unquote, urlsplit

from config import SettingError, Settings

ALIKE = 0.85  # least similarity (0 to 1) of a misspelt variable; "DISCORD_TOKN" has 0.96
TOKENS = ("DISCORD_TOKEN", "DISCORD_BOT_TOKEN")
USUAL_TOKENS = frozenset({"TOKEN", "BOT_TOKEN"})  # names of the token in other bots, and in much besides
SHORT = 5  # settings of up to so many letters match only with two of them swapped: MODE is other programs' variable


def misspelt(variables: Iterable[str]) -> dict[str, str]:
    """The variables that look like a misspelt setting, each with the setting that is probably meant."""
    known = {name.upper() for name in Settings.model_fields} | {*TOKENS}
    long = [name for name in known if len(name) > SHORT]
    names = {variable: variable.upper() for variable in variables}
    has_token = not {*names.values()}.isdisjoint(TOKENS)
    meant: dict[str, str] = {}
    for variable, name in names.items():
        if name in USUAL_TOKENS and not has_token:
            meant[variable] = TOKENS[0]
        elif name not in known:
            # With two neighbouring letters swapped: in a short name such a slip is not similar enough.
            swapped = [f"{name[:i]}{name[i + 1]}{name[i]}{name[i + 2 :]}" for i in range(len(name) - 1)]
            found = [one for one in swapped if one in known] or get_close_matches(name, long, n=1, cutoff=ALIKE)
            if found:
                meant[variable] = found[0]
    return meant


def check_token(settings: Settings, environ: Mapping[str, str]) -> None:
    """Raises SettingError where the token is missing on a host, or in one of several processes: there nobody could
    reach the playground."""
    if settings.discord_token:
        return
    if settings.shards or settings.shard_ids:
        raise SettingError(
            "DISCORD_TOKEN is not set, and the playground has no shards to divide: set it to the bot's token, or leave "
            "out SHARDS and SHARD_IDS."
        )
    if settings.port is None or not any(name.startswith("RAILWAY_") for name in environ):
        return
    meant = [name for name, setting in misspelt(environ).items() if setting in TOKENS]
    hint = f" ({meant[0]} is no setting; was it meant?)" if meant else ""
    raise SettingError(f"DISCORD_TOKEN is not set{hint}: set it to the bot's token in the service's variables.")


def secrets_of(settings: Settings) -> frozenset[str]:
    """Values that must never be shown: the token, other secret settings, and variables named like a key or secret."""
    keys = {value for name, value in os.environ.items() if name.endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD"))}
    headers = [value for name, value in os.environ.items() if name.startswith("OTEL_") and name.endswith("_HEADERS")]
    keys |= {(header.partition("=")[2] or header).strip() for value in headers for header in value.split(",")}
    secrets = (settings.discord_token, settings.redis_url, settings.state_key, settings.console_password)
    fields = {field.get_secret_value() for field in secrets if field}
    if settings.redis_url and (password := urlsplit(settings.redis_url.get_secret_value()).password):
        fields |= {password, unquote(password)}
    state_keys = settings.state_key.get_secret_value().split(",") if settings.state_key else []
    return frozenset(value for value in keys | fields | {key.strip() for key in state_keys} if len(value) >= 8)
