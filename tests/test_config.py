"""config.py: each setting, and the one sentence that a wrong one costs."""

from __future__ import annotations

import os
from datetime import time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pydantic import SecretStr, ValidationError

from config import SettingError, Settings, load_settings
from environment import check_token, misspelt, secrets_of
from tests.support.phrases import labelled

OF_OTHERS = """
    PATH PORT MODE MODELS HOST HOSTNAME HOME USER PWD OLDPWD SHELL SHLVL TERM COLORTERM TZ LANG LC_ALL LOGNAME
    MAIL EDITOR DISPLAY TMPDIR CI ENV DEBUG LOG LOGS LOG_FORMAT NODE_ENV PYTHONPATH VIRTUAL_ENV PIP_CACHE_DIR
    HTTP_PROXY HTTPS_PROXY NO_PROXY SSH_AUTH_SOCK XDG_RUNTIME_DIR GITHUB_TOKEN DATABASE_URL REDIS REDIS_HOST
    REDIS_PORT REDIS_PASSWORD OPENAI_API_KEY OPENAI_BASE_URL ANTHROPIC_API_KEY DISCORD_GUILD_ID
    DISCORD_CLIENT_ID TOKEN SECRET URL RAILWAY_PUBLIC_DOMAIN RAILWAY_PROJECT_ID RAILWAY_SERVICE_NAME
    RAILWAY_ENVIRONMENT RAILWAY_VOLUME_MOUNT_PATH RAILWAY_RUN_UID RAILWAY_DEPLOYMENT_DRAINING_SECONDS
""".split()
TOKEN = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sentence(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    """What the owner reads."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingError) as error:
        load_settings()
    return str(error.value)


def test_without_any_setting_it_is_the_demo_in_the_playground(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STATE_DIR")
    settings = load_settings()
    assert (settings.discord_token, settings.model, settings.redis_url) == (None, "demo", None)
    assert (settings.channels, settings.port, settings.daily_tokens) == (frozenset(), None, 3_000_000)
    assert (settings.state_dir, settings.playground_host) == (Path(".parley"), "127.0.0.1")
    with pytest.raises(ValidationError):  # it is frozen
        settings.model = "openai:gpt-5"  # type: ignore[misc]


@pytest.mark.parametrize("name", ["DISCORD_TOKEN", "DISCORD_BOT_TOKEN"])
def test_the_token_goes_by_two_names(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, TOKEN)
    assert load_settings().discord_token == SecretStr(TOKEN)


def test_empty_variables_count_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in map(str.upper, Settings.model_fields):
        monkeypatch.setenv(name, "")
    assert load_settings() == Settings()


def test_values_are_read_as_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "CHANNELS": " 1, 22  333,",
        "USE_LLM_JUDGE": "true",
        "DECLINE": "off",
        "LOG_LEVEL": "DEBUG",
        "DECISION_LOG": "Content",
        "FOLLOWUP_EAGERNESS": "Quiet",
        "STATE_DIR": "/var/lib/parley",
        "PORT": "0",
        "DAILY_TOKENS": "5000",
        "CONVERSATION_TIMEOUT_SECONDS": "0.5",
        "MODEL": "openai:gpt-5, demo",
        "MODELS": " openai:gpt-5-mini , demo,",
        "REDIS_URL": "rediss://:pw@host/0",
        "STATE_KEY": "first-key,second-key",
        "RETENTION_DAYS": "7",
        "CATCH_UP_SECONDS": "0",
        "OFFERS_PER_DAY": "1",
        "OFFER_QUIET_HOURS": " 22:30 - 7 Europe/Berlin",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert settings.channels == {1, 22, 333}
    assert (settings.use_llm_judge, settings.decline) == (True, False)
    assert (settings.log_level, settings.port) == ("debug", 0)
    assert (settings.decision_log, settings.state_dir) == ("content", Path("/var/lib/parley"))
    assert settings.followup_eagerness == "quiet"
    assert (settings.daily_tokens, settings.conversation_timeout_seconds) == (5_000, 0.5)
    assert settings.model == "openai:gpt-5, demo"
    assert settings.models == ("openai:gpt-5-mini", "demo")
    assert settings.state_key == SecretStr("first-key,second-key")
    assert (settings.retention_days, settings.catch_up_seconds) == (7, 0)
    assert settings.offers_per_day == 1
    assert settings.offer_quiet_hours == (time(22, 30), time(7), ZoneInfo("Europe/Berlin"))
    monkeypatch.setenv("OFFER_QUIET_HOURS", "22-8")
    assert load_settings().offer_quiet_hours == (time(22), time(8), ZoneInfo("UTC"))


def test_a_wrong_value_costs_one_sentence_with_variable_value_and_remedy() -> None:
    wrong = labelled(Path(__file__).with_name("wrong_settings.txt"))
    for value, label in (*wrong, ("x" * 20_001, "INSTRUCTIONS: at most 20,000 characters")):
        name, _, remedy = label.partition(": ")
        with pytest.MonkeyPatch.context() as monkeypatch:
            text = sentence(monkeypatch, **{name: value})
        assert text.startswith(f"{name} '{value[:80]}")
        assert "cannot be used: use " in text
        assert remedy in text
        assert text.endswith(".")
        assert "\n" not in text
        assert len(text) < 300


def test_the_addresses_of_another_server_must_keep_the_token_from_eavesdroppers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for value in (
        "https://host",
        "http://example.com/api/v10",
        "ftp://127.0.0.1/api/v10",
        "https:///api/v10",
        "h/api/v1",
    ):
        text = sentence(monkeypatch, DISCORD_API_BASE=value, DISCORD_GATEWAY_URL="wss://host/")
        assert text.startswith(f"DISCORD_API_BASE '{value}' cannot be used: use an https://")
    for value in ("ws://example.com/", "https://host/", "wss://", "ws://10.0.0.1/"):
        text = sentence(monkeypatch, DISCORD_API_BASE="https://host/api/v10", DISCORD_GATEWAY_URL=value)
        assert text.startswith(f"DISCORD_GATEWAY_URL '{value}' cannot be used: use a wss://")


@pytest.mark.parametrize(
    ("api_base", "gateway_url"),
    [
        ("https://host/api/v10/", "wss://host/"),
        ("http://127.0.0.1:8/api/v10", "ws://127.0.0.1:8/"),
        ("http://localhost:8/api/v9", "ws://[::1]:8/"),
    ],
)
def test_another_server_can_be_named(monkeypatch: pytest.MonkeyPatch, api_base: str, gateway_url: str) -> None:
    monkeypatch.setenv("DISCORD_API_BASE", api_base)
    monkeypatch.setenv("DISCORD_GATEWAY_URL", gateway_url)
    settings = load_settings()
    assert settings.discord_api_base == api_base.rstrip("/")
    assert settings.discord_gateway_url == gateway_url


@pytest.mark.parametrize("name", ["DISCORD_API_BASE", "DISCORD_GATEWAY_URL"])
def test_half_a_server_is_none(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    value = "https://host/api/v10" if name == "DISCORD_API_BASE" else "wss://host/"
    text = sentence(monkeypatch, DISCORD_TOKEN=TOKEN, **{name: value})
    assert "DISCORD_API_BASE and DISCORD_GATEWAY_URL" in text
    assert "\n" not in text
    assert TOKEN not in text


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"SHARDS": "auto"}, "needs REDIS_URL"),
        ({"SHARD_IDS": "0-3"}, "needs SHARD_COUNT"),
        ({"SHARD_IDS": "0-3,7", "SHARD_COUNT": "4"}, "cannot have 7 in it: with SHARD_COUNT=4 the shards are 0 to 3"),
        ({"SHARD_IDS": "0", "SHARD_COUNT": "4", "SHARDS": "auto", "REDIS_URL": "redis://h"}, "cannot both be set"),
    ],
)
def test_shards_that_no_process_can_have_cost_one_sentence(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], said: str
) -> None:
    assert said in sentence(monkeypatch, **environment)


def test_it_is_one_of_several_where_these_share_a_redis() -> None:
    redis = SecretStr("redis://host")
    alone = Settings(shard_count=8, shard_ids=" 0-3, 7,1")
    assert (alone.shard_ids, alone.is_one_of_several) == ((0, 1, 2, 3, 7), False)
    assert Settings(shard_count=8, shard_ids="1", redis_url=redis).is_one_of_several
    assert Settings(shards="auto", redis_url=redis).is_one_of_several
    assert not Settings(shard_count=8, redis_url=redis).is_one_of_several


@pytest.mark.parametrize("url", ["redis://h/first", "redis://:hunter2@sl/ash@h:6379/0", "redis://h:1/0?hunter2=bar"])
def test_an_address_of_redis_that_its_client_would_misread_is_refused(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    text = sentence(monkeypatch, REDIS_URL=url)
    assert text.startswith("REDIS_URL cannot be used: use a redis://")
    assert "hunter2" not in text


def test_a_secret_never_stands_in_the_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    text = sentence(monkeypatch, DISCORD_TOKEN=TOKEN, REDIS_URL="http://:hunter2@host")
    assert text.startswith("REDIS_URL cannot be used: use a redis://")
    assert "hunter2" not in text
    assert TOKEN not in text


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DISCORD_TOKN", "DISCORD_TOKEN"),
        ("discord_bot_tokens", "DISCORD_BOT_TOKEN"),
        ("CHANNEL", "CHANNELS"),
        ("MODLE", "MODEL"),
        ("prot", "PORT"),
        ("AGNETS", "AGENTS"),
        ("TOKEN", "DISCORD_TOKEN"),
        ("bot_token", "DISCORD_TOKEN"),
        ("discord_token", None),
    ],
)
def test_a_variable_that_looks_like_a_setting_is_told_from_others(name: str, meant: str | None) -> None:
    assert misspelt([name]).get(name) == meant


def test_no_variable_that_others_use_is_taken_for_a_misspelt_setting() -> None:
    assert misspelt([*OF_OTHERS, "DISCORD_TOKEN"]) == {}
    assert misspelt(OF_OTHERS) == {"TOKEN": "DISCORD_TOKEN"}  # where no other variable has it


def test_only_a_host_that_asks_for_a_service_needs_a_token() -> None:
    for settings, environ in (
        (Settings(port=8080), {}),
        (Settings(), {"RAILWAY_SERVICE_ID": "1"}),
        (Settings(port=8080, discord_token=SecretStr(TOKEN)), {"RAILWAY_SERVICE_ID": "1"}),
    ):
        check_token(settings, environ)
    with pytest.raises(SettingError, match="DISCORD_TOKEN is not set: set it"):
        check_token(Settings(port=8080), {"RAILWAY_SERVICE_ID": "1"})
    with pytest.raises(SettingError, match="DISCORD_TOKEN is not set, and the playground has no shards"):
        check_token(Settings(shard_count=2, shard_ids="0"), {})


def test_dotenv_is_loaded_for_the_providers_too_and_the_environment_wins(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MODEL", "OPENAI_API_KEY", "PORT", "SOMETHING_ELSE"):  # so that what .env sets is taken back
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    (folder / ".env").write_text("MODEL=openai:gpt-5\nOPENAI_API_KEY=sk-of-the-file\nPORT=1\nSOMETHING_ELSE=x\n")
    monkeypatch.setenv("PORT", "2")
    settings = load_settings()
    assert (settings.model, settings.port) == ("openai:gpt-5", 2)
    assert os.environ["OPENAI_API_KEY"] == "sk-of-the-file"


def test_secrets_are_the_token_and_every_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-12345678")
    monkeypatch.setenv("SHORT_KEY", "1234567")
    monkeypatch.setenv("DB_PASSWORD", "correct horse")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-one=first-header,x-two= second-header ,written: wrong")
    secrets = secrets_of(Settings(discord_token=SecretStr(TOKEN), redis_url=SecretStr("redis://:long%20password@host")))
    assert {"first-header", "second-header", "written: wrong"} <= secrets
    assert {TOKEN, "redis://:long%20password@host", "long password", "sk-12345678", "correct horse"} <= secrets
    assert "1234567" not in secrets


def test_each_state_key_is_a_secret_by_itself_and_none_shows_in_the_settings() -> None:
    for written in ("first-key,second-key", " first-key , second-key "):
        settings = Settings(state_key=SecretStr(written), discord_token=SecretStr(TOKEN))
        assert {written, "first-key", "second-key"} <= secrets_of(settings)
        assert "first-key" not in repr(settings)
        assert TOKEN not in repr(settings)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MCP_CONFIG", '\n{"mcpServers": {"a": {"url": "https://a.example//mcp"}}}'),
        ("AGENTS", '# ours\n[[agent]]\nname = "docs"'),
        ("AGENTS", 'agent = [{name = "docs"}]'),
    ],
)
def test_a_path_or_what_would_stand_in_that_file_can_be_given(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(name, text)
    assert getattr(load_settings(), name.lower()) == SecretStr(text)
    monkeypatch.setenv(name, "/etc/parley/agents.toml")
    assert getattr(load_settings(), name.lower()) == Path("/etc/parley/agents.toml")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("AGENTS", '[agent]\nheaders = { Authorization = "Bearer hidden-key" }'),
        ("AGENTS", "headers.Authorization = 'Bearer hidden-key'\nname = 'docs'"),
        ("MCP_CONFIG", '[{"command": "x", "env": {"API_KEY": "hidden-key"}}]'),
        ("MCP_CONFIG", '"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "hidden-key"}}}'),
    ],
)
def test_a_text_in_a_wrong_form_is_no_path_which_would_be_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(name, text)
    assert getattr(load_settings(), name.lower()) == SecretStr(text)
