"""Reads and checks the value of each setting; each check raises ValueError for a value that cannot work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import SecretStr, field_validator
from pydantic_settings import BaseSettings

import setting_values as values

# Found in the text of an mcp.json or of a TOML table, also in a broken one, and hardly in a path.
INLINE = re.compile(r"[{\"\n]|^\[|^agent\s*=")


class SettingChecks(BaseSettings):
    """The checks of Settings, which inherits them and has the fields."""

    @field_validator("channels", "users", "forum_tags", "models", mode="before", check_fields=False)
    @classmethod
    def _split(cls, value: Any, info: Any) -> Any:
        at = "," if info.field_name in ("forum_tags", "models") else r"[,\s]"  # a tag's name can have spaces in it
        return [part.strip() for part in re.split(at, value) if part.strip()] if isinstance(value, str) else value

    @field_validator("agents", "mcp_config", "prices", mode="before", check_fields=False)
    @classmethod
    def _path_or_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        # A text may have secrets in it, and unlike a path it is not shown in error messages.
        return SecretStr(value) if INLINE.search(value.strip()) else Path(value)

    @field_validator("offer_quiet_hours", "budgets", mode="before", check_fields=False)
    @classmethod
    def _parsed(cls, value: Any, info: Any) -> Any:
        read = values.budget_limits if info.field_name == "budgets" else values.quiet_hours
        return read(value) if isinstance(value, str) else value

    @field_validator("shard_ids", mode="before", check_fields=False)
    @classmethod
    def _numbers(cls, value: Any) -> Any:
        return values.shard_ids(value) if isinstance(value, str) else value

    @field_validator("turn_tokens", check_fields=False)
    @classmethod
    def _a_request_at_least(cls, value: int) -> int:
        """Raises ValueError for a cap below what a single request takes."""
        if 0 < value < 30_000:
            raise ValueError("too few for a single request")
        return value

    @field_validator(
        "decision_log",
        "direct_messages",
        "followup_eagerness",
        "log_level",
        "openai_state",
        "shards",
        "threads",
        mode="before",
        check_fields=False,
    )
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @field_validator("discord_token", check_fields=False)
    @classmethod
    def _one_word(cls, value: SecretStr | None) -> SecretStr | None:
        token = value.get_secret_value().strip() if value else ""
        if any(character.isspace() for character in token):
            raise ValueError("white space in it")
        return SecretStr(token) if token else None

    @field_validator("console_password", check_fields=False)
    @classmethod
    def _hard_to_guess(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not 8 <= len(value.get_secret_value()) <= 200:
            raise ValueError("too short or too long")
        return value

    @field_validator("discord_api_base", check_fields=False)
    @classmethod
    def _api_base(cls, value: str | None) -> str | None:
        return value and values.api_base(value)

    @field_validator("discord_gateway_url", check_fields=False)
    @classmethod
    def _gateway_url(cls, value: str | None) -> str | None:
        return value and values.checked_address(value, secure="wss", loopback="ws")

    @field_validator("redis_url", check_fields=False)
    @classmethod
    def _redis_scheme(cls, value: SecretStr | None) -> SecretStr | None:
        if value:
            values.check_redis_address(value.get_secret_value())
        return value

    @field_validator("nominatim_url", "public_url", check_fields=False)
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value and re.search(r"[\s?#]", value):
            raise ValueError("more than an address")
        return value and values.checked_address(value.rstrip("/"), secure="https", loopback="http")

    @field_validator("model", "judge_model", "rewrite_model", "coordinator_model", check_fields=False)
    @classmethod
    def _some_model(cls, value: str | None) -> str | None:
        if value is not None and not all(part.strip() for part in value.split(",")):
            raise ValueError("an empty name")
        return value
