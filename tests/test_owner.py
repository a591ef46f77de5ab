"""owner.py: what the owner's settings come to, in words for everybody."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from config import Settings
from owner import apart_in_playground, owners_limits, practices, public_address
from setting_values import Scope
from state.ledger import Ledger
from state.spending import Payer
from tests.support.clock import NOON


def test_practices_name_everybody_who_receives_words_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    settings = Settings(
        model="openai:gpt-5-mini, anthropic:claude-sonnet-5-5",
        models=("demo",),
        judge_model="groq:small",
        transcribe_model="openai:whisper",
        mcp_config='{"mcpServers": {"secret": {"url": "https://secret.example"}}}',
        nominatim_url="https://places.example/path",
        retention_days=1,
        decision_log="content",
        contact="privacy@parley.example",
    )
    said = practices(settings)
    assert said["How long"].startswith("for a day")
    assert said["Who receives it"] == (
        "gpt-5-mini of OpenAI (Responses API) or claude-sonnet-5-5 of Anthropic "
        "or the demo model, which is a part of the bot and sends nothing anywhere, to answer."
    )
    assert said["Who else"].startswith("small of Groq judges whether")
    assert "places.example looks up" in said["Who else"]
    assert "text of messages" in said["Log of decisions"]
    assert said["Whom to ask"] == "privacy@parley.example"
    assert "secret" not in str(said)


def test_the_log_of_decisions_is_said_to_lie_where_it_does() -> None:
    redis = SecretStr("redis://127.0.0.1")
    assert practices(Settings(redis_url=redis))["Where"] == (
        "in its owner's Redis, and the log of decisions where the bot runs; all encrypted."
    )
    assert practices(Settings(redis_url=redis, decision_log="off"))["Where"] == "in its owner's Redis, encrypted."
    assert practices(Settings())["Where"] == "where the bot runs, encrypted."


def test_a_model_at_an_address_of_the_owners_is_not_said_to_be_its_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://inside.example/v1")
    said = practices(Settings(model="openai-chat:llama"))
    assert said["Who receives it"] == "llama at an address that its owner chose, to answer."
    assert said["Who else"] == "nobody."


def test_the_public_address_is_the_owners_else_railways_and_none_without_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAILWAY_PUBLIC_DOMAIN", "parley.up.railway.app")
    assert public_address(Settings(port=1, public_url="https://parley.example/")) == "https://parley.example"
    assert public_address(Settings(port=1)) == "https://parley.up.railway.app"
    assert public_address(Settings(public_url="https://parley.example")) is None


@pytest.mark.parametrize(
    ("others", "capped"),
    [
        ({}, False),
        ({"models": ("demo",)}, False),
        ({"judge_model": "test:judge"}, True),
        ({"transcribe_model": "test:ears"}, True),
        ({"agents": "[[agent]]"}, True),
    ],
)
def test_people_and_servers_are_capped_where_anything_beside_the_demo_model_is_asked(
    others: dict[str, Any], capped: bool
) -> None:
    limits = owners_limits(Settings(model="demo", budgets="off", **others), None, Ledger(), None)
    standing = limits.standing(NOON, Payer(1, people=frozenset({2})))
    scopes = {Scope.TOTAL, Scope.GUILD, Scope.PERSON} if capped else {Scope.TOTAL}
    assert {reached.limit.scope for reached in standing} == scopes


def test_the_playground_takes_any_port_where_nobody_else_reaches_it() -> None:
    assert apart_in_playground(Settings()).port == 0
    assert apart_in_playground(Settings(port=8080)).port == 8080
    assert apart_in_playground(Settings(playground_host="0.0.0.0")).port is None  # noqa: S104 - nothing listens
    assert apart_in_playground(Settings(discord_token=SecretStr("a-token"))).port is None
