"""The settings: read once from the environment and `.env`, validated, and passed down as plain values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from dotenv import load_dotenv
from pydantic import AliasChoices, Field, PositiveInt, SecretStr, ValidationError, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

import setting_values as values
from setting_checks import SettingChecks


class SettingError(ValueError):
    """A setting that cannot work. Its text is one sentence for the owner, with variable, value and remedy."""


def setting(default: Any, meaning: str, use: str = "", *, example: object = None, **limits: Any) -> Any:
    """A field of Settings.

    meaning: what it does, for docs/settings.md and .env.example. use: the valid values, as the end of the sentence
    "use ..." that the owner reads for a wrong value; empty: made from type and limits. example: a value for
    .env.example where there is no default.
    """
    return Field(
        default, description=meaning, examples=[example] if example else None, json_schema_extra={"use": use}, **limits
    )


class Settings(SettingChecks):
    """The settings of the bot's owner. Each field is the environment variable of the same name.

    `make settings` writes docs/settings.md, .env.example and the table in README from it.
    """

    model_config = SettingsConfigDict(env_ignore_empty=True, extra="ignore", frozen=True, populate_by_name=True)

    discord_token: SecretStr | None = setting(
        None,
        "The bot's token, from Discord's developer portal (also DISCORD_BOT_TOKEN); unset: the playground.",
        "the bot's token, or leave it out for the playground",
        validation_alias=AliasChoices("DISCORD_TOKEN", "DISCORD_BOT_TOKEN"),
    )
    discord_api_base: str | None = setting(
        None,
        "The address of another server that speaks Discord's protocol; links to messages lead there too. Set it "
        "together with DISCORD_GATEWAY_URL; unset: Discord.",
        "an https:// (or loopback http://) address ending in /api/v10, such as https://host/api/v10",
        example="https://host.example/api/v10",
    )
    discord_gateway_url: str | None = setting(
        None,
        "The gateway of that server.",
        "a wss:// (or loopback ws://) address, such as wss://gateway.host/",
        example="wss://gateway.host.example/",
    )
    channels: Annotated[frozenset[PositiveInt], NoDecode] = setting(
        frozenset(),
        "The ids of the channels and categories the bot may speak in, with their threads; empty: all it can see.",
        "channel ids separated by commas, or leave it empty for all channels",
    )
    threads: Literal["off", "join", "open"] = setting(
        "join",
        "Whether the bot takes part in threads and posts; open: it also offers to move a long talk to a thread.",
    )
    direct_messages: Literal["off", "listed", "open"] = setting(
        "off",
        "Whose direct messages the bot answers. off: nobody's; listed: only those of USERS; open: everybody's. Others "
        "are told so once a day.",
    )
    users: Annotated[frozenset[PositiveInt], NoDecode] = setting(
        frozenset(),
        "The ids of the people whose direct messages the bot answers, with DIRECT_MESSAGES=listed.",
        "user ids separated by commas, or leave it empty for nobody",
    )

    forum_tags: Annotated[frozenset[str], NoDecode] = setting(
        frozenset(),
        "Forum posts with one of these tags are questions to everybody: if nobody answers, the bot offers to. In a "
        "forum where offers are on, this goes for all posts.",
        "names of tags separated by commas, or leave it empty for none",
    )

    model: str = setting(
        "demo",
        "The model that answers, as provider:name (docs/models.md). Several are fallbacks; demo: the demo model.",
        "provider:name, several separated by commas as fallbacks, or demo, such as openai:gpt-5",
        example="openai:gpt-5-mini",
    )
    models: Annotated[tuple[str, ...], NoDecode] = setting(
        (),
        "Models, besides MODEL, that can be chosen for a server or a channel; empty: none.",
        "provider:name, several separated by commas, or leave it empty for none",
        example="openai:gpt-5, anthropic:claude-sonnet-5-5",
    )
    judge_model: str | None = setting(
        None,
        "The fast model that judges doubtful messages, with USE_LLM_JUDGE.",
        "provider:name, or leave it out to use MODEL",
    )
    coordinator_model: str | None = setting(
        None,
        "The fast model that chooses which of several agents answers.",
        "provider:name, or leave it out to use JUDGE_MODEL",
    )
    rewrite_model: str | None = setting(
        None,
        'A fast model that completes questions such as "And tomorrow?" when the built-in rules cannot.',
        "provider:name, or leave it out for none",
    )
    transcribe_model: str | None = setting(
        None,
        "The model that transcribes voice messages of up to ten minutes; unset: the bot says that it cannot listen.",
        "provider:name of a provider that speaks OpenAI's protocol, or leave it out",
        example="openai:gpt-4o-mini-transcribe",
    )
    instructions: str = setting(
        "",
        "Persona, language and house rules, added to the bot's own instructions.",
        "at most 20,000 characters of text",
        max_length=20_000,
    )
    openai_state: Literal["off", "response", "conversation"] = setting(
        "off",
        "Whether, and how, OpenAI stores conversations, to spare sending them again; needs one openai: model.",
    )

    attachment_characters: int = setting(
        60_000,
        "The most characters of attached texts and PDFs that the agent reads for one answer; four are about a token.",
        ge=1_000,
        le=1_000_000,
    )

    conversation_timeout_seconds: float = setting(
        120, "A conversation ends after this long without a message.", gt=0, le=86_400
    )
    name_calls: bool = setting(
        True,
        "Whether the bot's name or nickname, at the start or end of a message, calls it like a mention (\"Parley are "
        'you there?", not "Parley is nice"). A name that is a common word needs a comma.',
    )
    followup_eagerness: Literal["quiet", "balanced", "eager"] = setting(
        "balanced", "How sure the bot must be that a message without a mention is meant for it."
    )
    followup_window_seconds: float = setting(
        60,
        "How long after the bot spoke anybody's short question, in a quiet channel, counts as meant for it.",
        ge=0,
        le=86_400,
    )
    burst_seconds: float = setting(
        2.5,
        "How long the bot waits, at most, for somebody who writes several short messages, before it answers them "
        "together; 0: it does not wait.",
        ge=0,
        le=60,
    )
    decline: bool = setting(
        True,
        "Whether the agent is asked about doubtful messages and may decline to answer; the demo model never declines.",
        "on or off",
    )
    use_llm_judge: bool = setting(False, "Whether the judge, a fast model, is asked about doubtful messages.")

    awaiting_ttl_seconds: float = setting(
        120,
        "How long a question from the bot stays open; typing, a form and an answer beside the point extend that.",
        gt=0,
        le=3_600,
    )
    soft_context_ttl_seconds: float = setting(
        300, "How long mini-apps are told what was last done in a channel.", gt=0, le=86_400
    )
    cache_ttl_seconds: float = setting(
        600,
        "How long an idle channel's state is kept; also the longest that a question from the bot can stay open.",
        gt=0,
        le=86_400,
    )
    nominatim_url: str | None = setting(
        None,
        "Where the trip planner looks up venues; unset: in a small sample.",
        "an https:// address such as https://nominatim.openstreetmap.org, or leave it out",
        example="https://nominatim.openstreetmap.org",
    )

    agents: Path | SecretStr | None = setting(
        None,
        "A file that defines more agents, or its text.",
        "the path of a TOML file with [[agent]] tables, or the tables themselves, or leave it out",
        example="agents.toml",
    )
    agent_state_seconds: float = setting(
        86_400,
        "How long a remote agent's conversation can be continued after the channel's has ended; 0: not at all.",
        ge=0,
        le=2_592_000,
    )
    mcp_config: Path | SecretStr | None = setting(
        None,
        "A file that lists MCP servers, whose tools the agent can use, or its text.",
        "the path of an mcp.json file, or its text, or leave it out",
        example="mcp.json",
    )
    gpa_keep_turns: int = setting(
        5,
        "From how many earlier turns the general agent still sees its tool calls and their results.",
        ge=0,
        le=100,
    )
    session_tokens: int = setting(
        12_000, "How many tokens of a conversation the general agent sees; the oldest are left out first.", ge=2_000
    )
    session_summary_tokens: int = setting(
        500, "Tokens of the summary of what is left out, which takes a call of MODEL; 0: no summary.", ge=0, le=10_000
    )
    max_messages_per_session: int = setting(
        5_000, "The most messages in one stored session of a channel; after that, a new one begins.", ge=10
    )
    shared_context: bool = setting(
        False,
        "Whether each of several agents is told which person, place and link people mentioned last.",
    )

    offer_timeout_seconds: float = setting(
        600,
        "How long an ignored offer stays open; also how long after a talk with the bot none is made.",
        ge=10,
        le=86_400,
    )
    offer_cooldown_seconds: float = setting(
        1_800,
        "How much longer, after that, the bot makes no offer in the channel. It doubles with each offer in a row that "
        "is ignored or declined, up to a week.",
        ge=10,
        le=604_800,
    )
    offers_per_day: int = setting(3, "The most offers in a channel in any 24 hours; 0: none anywhere.", ge=0, le=100)
    offer_quiet_hours: Annotated[values.QuietHours | None, NoDecode] = setting(
        None,
        "The hours in which no offers are made, in UTC unless you name a time zone.",
        "hours such as 22-8, or 22:30-07:00 Europe/Berlin, or leave it out for none",
    )

    turns_per_user_minute: int = setting(20, "The most answers to one person per minute.", ge=1)
    turns_at_once: int = setting(
        64,
        "How many agents' answers one process makes at once; others wait, in fair turns for servers and channels.",
        ge=1,
        le=10_000,
    )
    turn_tokens: int = setting(
        100_000,
        "The most tokens for one answer; 0: no cap.",
        "a whole number from 30000, or 0 for no cap",
        ge=0,
    )
    budgets: Annotated[tuple[values.BudgetLimit, ...], NoDecode] = setting(
        "$5 a day, $50 a month",
        "The most that models may cost, or the most tokens they may use, per day or month (UTC): in total, per guild "
        "(server), channel or person.",
        f"budgets such as {values.BUDGET_EXAMPLE}, or off for none",
        validate_default=True,
    )
    prices: Path | SecretStr | None = setting(
        None,
        "A file with the prices of models, or its text. Other models have their built-in price; without one, only "
        "their tokens are counted.",
        "the path of a TOML file with a table for each model, or the tables themselves, or leave it out",
        example="prices.toml",
    )
    person_tokens: int = setting(500_000, "The most tokens per day (UTC) for one person's questions; 0: no cap.", ge=0)
    guild_tokens: int = setting(1_500_000, "The most tokens per day (UTC) for one server; 0: no cap.", ge=0)
    daily_tokens: int = setting(
        3_000_000, "The most tokens per day (UTC) for all model calls, including the judge's; 0: no cap.", ge=0
    )

    state_dir: Path = setting(
        Path(".parley"),
        "The folder for stored data, for one process at a time; other files in it are left alone. The playground uses "
        "its subfolder playground, no Redis and a key of its own.",
        "a folder, such as .parley",
    )
    redis_url: SecretStr | None = setting(
        None,
        "Stores everything but the decision log in Redis instead of STATE_DIR.",
        "a redis:// or rediss:// address, or leave it out",
    )
    state_key: SecretStr | None = setting(
        None,
        "Encrypts stored data. Unset: the bot makes a key at its first start and stores it next to the data, in "
        "state.key or in Redis. To set or change it later, list the new key and the one before for one start, which "
        "encrypts everything anew.",
        "one or two keys made by cryptography's Fernet.generate_key(), separated by a comma, or leave it out",
    )
    retention_days: int = setting(30, "Stored messages are deleted after this many days.", ge=1, le=36_500)
    catch_up_seconds: float = setting(
        300,
        "How far back, after a restart, the bot answers missed and unfinished questions; 0: it answers none.",
        ge=0,
        le=86_400,
    )
    decision_log: Literal["on", "off", "content"] = setting(
        "on",
        "Whether decisions are logged; content: with the text of messages.",
        "on, off, or content (on, and the text of messages is kept too)",
    )

    notice_channel: PositiveInt | None = setting(
        None,
        "The id of a channel where the bot tells you about used-up budgets, a failing model and missing permissions; "
        "unset: no notices.",
        "a channel id, or leave it out for no notices",
    )
    port: int | None = setting(
        None,
        "The port of the bot's HTTP server, on all interfaces: /healthz, /privacy and, with CONSOLE_PASSWORD, "
        "/metrics and the console; in a playground on loopback only, unless PLAYGROUND_HOST is another address.",
        "a port from 0 to 65535, 0 for any free one, or leave it empty for no HTTP",
        ge=0,
        le=65_535,
    )
    console_password: SecretStr | None = setting(
        None,
        "The password for the console (/console) and /metrics; unset: both are off, except in a playground.",
        "a password of 8 to 200 characters, or leave it out for no console",
    )
    console_show_content: bool = setting(
        False, "Whether the console shows messages and names to anyone who has its password.", "on or off"
    )
    public_url: str | None = setting(
        None,
        "The public address of the HTTP server, for links in /privacy; unset: Railway's public domain, if any.",
        "an https:// address such as https://parley.example.org, or leave it out",
        example="https://parley.example.org",
    )
    contact: str = setting(
        "",
        "Whom people can write to about their data; /privacy shows it.",
        "at most 200 characters, such as privacy@example.org",
        example="privacy@example.org",
        max_length=200,
    )
    playground_host: str = setting(
        "127.0.0.1", "The address on which the playground listens.", "an address of this machine, such as 127.0.0.1"
    )
    playground_port: int = setting(
        8321, "The port on which the playground listens.", "a port from 0 to 65535, 0 for any free one", ge=0, le=65_535
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "How much is logged; debug: also each message that starts no conversation."
    )

    shards: Literal["auto"] | None = setting(
        None,
        "auto: this process is one of several, which divide the bot's shards by leases in Redis; needs REDIS_URL.",
        "auto, or leave it out for one process with all shards",
    )
    shard_count: int | None = setting(
        None,
        "How many shards the bot has, in all processes together; unset: as many as Discord recommends.",
        "a whole number from 1 to 10000, or leave it out for as many as Discord recommends",
        ge=1,
        le=10_000,
        example=16,
    )
    shard_ids: Annotated[tuple[int, ...], NoDecode] = setting(
        (),
        "The shards of this process, when others have the rest; needs SHARD_COUNT, the same in all processes.",
        "numbers of shards such as 0-3,7, or leave it out for all",
        example="0-3,7",
    )

    @property
    def is_one_of_several(self) -> bool:
        """Whether it shares its Redis with other processes of the bot."""
        return self.redis_url is not None and (self.shards is not None or bool(self.shard_ids))

    @property
    def site(self) -> str:
        """The base address of links to messages, at which the server's own client is."""
        return self.discord_api_base.split("/api/")[0] if self.discord_api_base else "https://discord.com"

    @model_validator(mode="after")
    def _one_server(self) -> Settings:
        if bool(self.discord_api_base) != bool(self.discord_gateway_url):
            raise ValueError(
                "DISCORD_API_BASE and DISCORD_GATEWAY_URL name one server together: set both, or leave out both."
            )
        return self

    @model_validator(mode="after")
    def _its_shards(self) -> Settings:
        has_redis = self.redis_url is not None
        values.check_shards(self.shard_count, self.shard_ids, is_auto=self.shards is not None, has_redis=has_redis)
        return self


def load_settings() -> Settings:
    """Settings from the environment, completed by `.env` in the working directory.

    `.env` is loaded into the environment, so that the model providers' own variables in it count too.
    Raises SettingError for the first value that cannot work.
    """
    try:
        load_dotenv(Path.cwd() / ".env")
    except UnicodeDecodeError:
        raise SettingError(".env cannot be read: save it as text in UTF-8.") from None
    for name in [name for name, value in os.environ.items() if not value and name.endswith(("_KEY", "_BASE_URL"))]:
        del os.environ[name]  # the providers' clients would use an empty key
    try:
        return Settings()
    except ValidationError as error:
        raise SettingError(_sentence(error)) from None


def what_works(name: str) -> str:
    """The valid values of a setting, in words that follow "use"."""
    field = Settings.model_fields[name]
    if isinstance(field.json_schema_extra, dict) and (use := field.json_schema_extra["use"]):
        return str(use)
    if field.annotation is bool:
        return "true or false"
    if choices := get_args(field.annotation):
        return f"{', '.join(choices[:-1])} or {choices[-1]}"
    limits = {key: getattr(limit, key) for limit in field.metadata for key in ("gt", "ge", "le") if hasattr(limit, key)}
    low = f"above {limits['gt']} and up" if "gt" in limits else f"from {limits['ge']}"
    high = f" to {limits['le']}" if "le" in limits else ""
    number = "a number of seconds" if field.annotation is float else "a whole number"
    return f"{number}{' of days' if name.endswith('_days') else ''} {low}{high}, such as {field.default}"


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    if not first["loc"]:
        return first["msg"].removeprefix("Value error, ")
    variable = str(first["loc"][0]).upper()
    name = "discord_token" if variable == "DISCORD_BOT_TOKEN" else variable.lower()
    value = str(first["input"])
    value = value if len(value) <= 80 else value[:80] + "…"
    shown = "" if "SecretStr" in str(Settings.model_fields[name].annotation) else f" {value!r}"
    return f"{variable}{shown} cannot be used: use {what_works(name)}."
