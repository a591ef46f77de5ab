"""The settings: read once from the environment and `.env`, validated, and passed down as plain values."""

from __future__ import annotations

import ipaddress
import os
import re
from datetime import time
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dotenv import load_dotenv
from pydantic import AliasChoices, Field, PositiveInt, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

QuietHours = tuple[time, time, ZoneInfo]
"""From when until when, by which clock; over midnight where the second is the earlier one."""
HOURS = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*-\s*(\d{1,2})(?::(\d{2}))?(?:\s+(\S+))?")


class SettingError(ValueError):
    """A setting that cannot work. Its text is one sentence for the owner: variable, value, remedy."""


class Settings(BaseSettings):
    """What the owner of the bot can choose. Each field is the environment variable of the same name.

    A field's description completes the sentence "use ..." that the owner reads when the value is wrong.
    """

    model_config = SettingsConfigDict(env_ignore_empty=True, extra="ignore", frozen=True, populate_by_name=True)

    discord_token: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("DISCORD_TOKEN", "DISCORD_BOT_TOKEN"),
        description="the bot's token, or leave it out for the playground",
    )
    discord_api_base: str | None = Field(
        None, description="an https:// (or loopback http://) address ending in /api/v10, such as https://host/api/v10"
    )
    discord_gateway_url: str | None = Field(
        None, description="a wss:// (or loopback ws://) address, such as wss://gateway.host/"
    )
    model: str = Field(
        "demo", description="provider:name, several separated by commas as fallbacks, or demo, such as openai:gpt-5"
    )
    judge_model: str | None = Field(None, description="provider:name, or leave it out to use MODEL")
    conversation_timeout_seconds: float = Field(
        120, gt=0, le=86_400, description="a number of seconds above 0 and up to 86400, such as 120"
    )
    followup_window_seconds: float = Field(
        60, ge=0, le=86_400, description="a number of seconds from 0 to 86400, such as 60"
    )
    burst_seconds: float = Field(2.5, ge=0, le=60, description="a number of seconds from 0 to 60, such as 2.5")
    followup_eagerness: Literal["quiet", "balanced", "eager"] = Field(
        "balanced", description="quiet, balanced or eager"
    )
    name_calls: bool = Field(True, description="true or false")
    awaiting_ttl_seconds: float = Field(
        120, gt=0, le=3_600, description="a number of seconds above 0 and up to 3600, such as 120"
    )
    soft_context_ttl_seconds: float = Field(
        300, gt=0, le=86_400, description="a number of seconds above 0 and up to 86400, such as 300"
    )
    cache_ttl_seconds: float = Field(
        600, gt=0, le=86_400, description="a number of seconds above 0 and up to 86400, such as 600"
    )
    rewrite_model: str | None = Field(None, description="provider:name, or leave it out for none")
    nominatim_url: str | None = Field(
        None, description="an https:// address such as https://nominatim.openstreetmap.org, or leave it out"
    )
    agents: Path | None = Field(None, description="the path of a TOML file with [[agent]] tables, or leave it out")
    mcp_config: Path | None = Field(None, description="the path of an mcp.json, or leave it out")
    coordinator_model: str | None = Field(None, description="provider:name, or leave it out to use JUDGE_MODEL")
    openai_state: Literal["off", "response", "conversation"] = Field("off", description="off, response or conversation")
    gpa_keep_turns: int = Field(5, ge=0, le=100, description="a whole number from 0 to 100, such as 5")
    shared_context: bool = Field(False, description="true or false")
    use_llm_judge: bool = Field(False, description="true or false")
    decline: bool = Field(True, description="on or off")
    instructions: str = Field("", max_length=20_000, description="at most 20,000 characters of text")
    channels: Annotated[frozenset[PositiveInt], NoDecode] = Field(
        frozenset(), description="channel ids separated by commas, or leave it empty for all channels"
    )
    turns_per_user_minute: int = Field(20, ge=1, description="a whole number from 1, such as 20")
    daily_tokens: int | None = Field(None, ge=1, description="a whole number from 1, or leave it empty for no cap")
    state_dir: Path = Field(Path(".parley"), description="a folder, such as .parley")
    decision_log: Literal["on", "off", "content"] = Field(
        "on", description="on, off, or content (on, and the text of messages is kept too)"
    )
    redis_url: SecretStr | None = Field(None, description="a redis:// or rediss:// address, or leave it out")
    state_key: SecretStr | None = Field(
        None, description="one or two keys made by cryptography's Fernet.generate_key(), separated by a comma"
    )
    retention_days: int = Field(30, ge=1, le=36_500, description="a whole number of days from 1 to 36500, such as 30")
    catch_up_seconds: float = Field(
        300, ge=0, le=86_400, description="a number of seconds from 0 to 86400, such as 300"
    )
    offer_timeout_seconds: float = Field(
        600, ge=10, le=86_400, description="a number of seconds from 10 to 86400, such as 600"
    )
    offer_cooldown_seconds: float = Field(
        1_800, ge=10, le=604_800, description="a number of seconds from 10 to 604800, such as 1800"
    )
    offers_per_day: int = Field(3, ge=0, le=100, description="a whole number from 0 to 100, such as 3")
    offer_quiet_hours: Annotated[QuietHours | None, NoDecode] = Field(
        None, description="hours such as 22-8, or 22:30-07:00 Europe/Berlin, or leave it out for none"
    )
    port: int | None = Field(
        None, ge=0, le=65_535, description="a port from 0 to 65535, 0 for any free one, or leave it empty for no HTTP"
    )
    playground_host: str = Field("127.0.0.1", description="an address of this machine, such as 127.0.0.1")
    playground_port: int = Field(8321, ge=0, le=65_535, description="a port from 0 to 65535, 0 for any free one")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="debug, info, warning or error")

    @field_validator("channels", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return [part for part in value.replace(",", " ").split() if part] if isinstance(value, str) else value

    @field_validator("offer_quiet_hours", mode="before")
    @classmethod
    def _hours(cls, value: Any) -> Any:
        return _quiet_hours(value) if isinstance(value, str) else value

    @field_validator("decision_log", "followup_eagerness", "log_level", "openai_state", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @field_validator("discord_token")
    @classmethod
    def _one_word(cls, value: SecretStr | None) -> SecretStr | None:
        token = value.get_secret_value().strip() if value else ""
        if any(character.isspace() for character in token):
            raise ValueError("white space in it")
        return SecretStr(token) if token else None

    @field_validator("discord_api_base")
    @classmethod
    def _api_base(cls, value: str | None) -> str | None:
        if value is None:
            return None
        value = value.rstrip("/")
        if not re.search(r"/api/v\d+$", value):
            raise ValueError("no API version")
        return _refuse_eavesdropping(value, secure="https", loopback="http")

    @field_validator("discord_gateway_url")
    @classmethod
    def _gateway_url(cls, value: str | None) -> str | None:
        return value and _refuse_eavesdropping(value, secure="wss", loopback="ws")

    @model_validator(mode="after")
    def _one_server(self) -> Settings:
        if bool(self.discord_api_base) != bool(self.discord_gateway_url):
            raise ValueError(
                "DISCORD_API_BASE and DISCORD_GATEWAY_URL name one server together: set both, or leave out both."
            )
        return self

    @field_validator("redis_url")
    @classmethod
    def _redis_scheme(cls, value: SecretStr | None) -> SecretStr | None:
        if value and urlsplit(value.get_secret_value()).scheme not in ("redis", "rediss"):
            raise ValueError("not a Redis address")
        if value:
            from redis.connection import parse_url  # noqa: PLC0415 - only who sets it needs its client

            parse_url(value.get_secret_value())  # type: ignore[no-untyped-call]  # a ValueError for one that cannot be
        return value

    @field_validator("nominatim_url")
    @classmethod
    def _nominatim_url(cls, value: str | None) -> str | None:
        if value and re.search(r"[\s?#]", value):
            raise ValueError("more than an address")
        return value and _refuse_eavesdropping(value.rstrip("/"), secure="https", loopback="http")

    @field_validator("model", "judge_model", "rewrite_model", "coordinator_model")
    @classmethod
    def _some_model(cls, value: str | None) -> str | None:
        if value is not None and not all(part.strip() for part in value.split(",")):
            raise ValueError("an empty name")
        return value


def load_settings() -> Settings:
    """Settings from the environment, completed by `.env` in the working directory.

    `.env` is loaded into the environment, so that the model providers' own variables in it count too.
    Raises SettingError for the first value that cannot work.
    """
    load_dotenv(Path.cwd() / ".env")
    for name in [name for name, value in os.environ.items() if not value and name.endswith(("_KEY", "_BASE_URL"))]:
        del os.environ[name]  # the providers' clients take an empty key for a key
    try:
        return Settings()
    except ValidationError as error:
        raise SettingError(_sentence(error)) from None


def secrets_of(settings: Settings) -> frozenset[str]:
    """The values that must never be shown: the token, and every key in the environment by the providers' custom."""
    keys = {value for name, value in os.environ.items() if name.endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD"))}
    secrets = (settings.discord_token, settings.redis_url, settings.state_key)
    fields = {field.get_secret_value() for field in secrets if field}
    state_keys = settings.state_key.get_secret_value().split(",") if settings.state_key else []
    return frozenset(value for value in keys | fields | {key.strip() for key in state_keys} if len(value) >= 8)


def _refuse_eavesdropping(value: str, *, secure: str, loopback: str) -> str:
    """The token travels to this address: it must be encrypted, or never leave the machine."""
    url = urlsplit(value)
    _ = url.port  # a ValueError for one that cannot be
    if not url.hostname or not (url.scheme == secure or (url.scheme == loopback and _is_loopback(url.hostname))):
        raise ValueError("not encrypted, and not loopback")
    return value


def _quiet_hours(text: str) -> QuietHours:
    """Raises ValueError for what is none. Without a zone the hours are those of UTC."""
    found = HOURS.fullmatch(text.strip())
    if found is None:
        raise ValueError("no hours")
    start, end = (time(int(found[hour]), int(found[hour + 1] or 0)) for hour in (1, 3))
    if start == end:
        raise ValueError("no hours lie between")
    try:
        return start, end, ZoneInfo(found[5] or "UTC")
    except (ZoneInfoNotFoundError, OSError):
        raise ValueError("no such zone") from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    if not first["loc"]:
        return first["msg"].removeprefix("Value error, ")
    variable = str(first["loc"][0]).upper()
    field = Settings.model_fields["discord_token" if variable == "DISCORD_BOT_TOKEN" else variable.lower()]
    shown = "" if "SecretStr" in str(field.annotation) else f" {_clip(first['input'])!r}"
    return f"{variable}{shown} cannot be used: use {field.description}."


def _clip(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:80] + "…"
