"""agents/metering.py: what a call of a model used."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequestAttempt, ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from agents.metering import spent_by
from agents.models import build_model, names_of
from state.spending import Lost, Spent
from tests.support.clock import NOON

NAMES = ("openai:gpt-5-mini", "anthropic:claude-haiku-4-5")
USAGE = RequestUsage(input_tokens=100, output_tokens=20, cache_read_tokens=60, cache_write_tokens=5)


def response(model: str, **details: Any) -> ModelResponse:
    return ModelResponse(parts=[TextPart("Yes.")], model_name=model, provider_details=details or None)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "key")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("demo", ("demo",)),
        ("openai:gpt-5-mini,anthropic:claude-haiku-4-5", NAMES),
        ("openai-chat:gpt-5-mini", ("openai:gpt-5-mini",)),
    ],
)
def test_models_are_named_by_their_provider(names: str, expected: tuple[str, ...]) -> None:
    assert names_of(build_model("MODEL", names)) == expected


def test_whoever_speaks_anothers_protocol_is_named_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.groq.com/openai/v1")
    assert names_of(build_model("MODEL", "openai-chat:llama-3.3-70b-versatile")) == ("groq:llama-3.3-70b-versatile",)


def test_of_fallbacks_the_one_that_answered_is_billed() -> None:
    first = response("gpt-5-mini-2025-08-07")
    failed = ModelRequestAttempt(model_name="", outcome="error", timestamp=NOON, duration=timedelta())
    second = replace(response("a name that is not in the settings"), failed_attempts=[failed])
    assert [spent_by(NAMES, USAGE, one) for one in (first, second)] == [
        Spent(name, 100, 20, cached=60, written=5) for name in NAMES
    ]
    assert spent_by(NAMES, RequestUsage(), second) is None
    assert spent_by(NAMES, USAGE, None) == Spent(NAMES[0], 100, 20, lost=(Lost(NAMES, 100, 20),))


@pytest.mark.parametrize("absurd", [-1, 10**18, 10**30, 1.5, float("nan")])
@pytest.mark.parametrize("of", ["input_tokens", "output_tokens", "cache_read_tokens", "input_audio_tokens"])
def test_what_no_call_can_have_used_is_not_counted(of: str, absurd: Any) -> None:
    usage = RequestUsage(input_tokens=100, output_tokens=20)
    setattr(usage, of, absurd)
    assert spent_by(NAMES, usage, response("gpt-5-mini")) is None


def test_no_more_is_written_to_a_cache_than_was_sent() -> None:
    spent = spent_by(NAMES[:1], RequestUsage(input_tokens=100, cache_read_tokens=60, cache_write_tokens=70), None)
    assert spent
    assert (spent.cached, spent.written) == (60, 40)


@pytest.mark.parametrize(
    ("cost", "micros"),
    [
        (0.00012345, 124),
        (0, 0),
        (2, 2_000_000),
        (-1, None),
        (True, None),
        ("1", None),
        (float("inf"), None),
        (float("nan"), None),
        (10**400, None),
        ({}, None),
    ],
)
def test_what_a_provider_says_a_call_cost_counts_where_it_can_be(cost: object, micros: int | None) -> None:
    spent = spent_by(NAMES, USAGE, response("gpt-5-mini", cost=cost))
    assert spent
    assert spent.micros == micros


@pytest.mark.parametrize(
    ("details", "micros"),
    [
        ({"cost": 0.05, "upstream_inference_cost": 1.0, "is_byok": True}, 1_050_000),
        ({"upstream_inference_cost": 1.0, "is_byok": True}, 1_000_000),
        ({"cost": 0.05, "upstream_inference_cost": None, "is_byok": True}, None),
        ({"cost": 1.0, "upstream_inference_cost": 1.0, "is_byok": False}, 1_000_000),
    ],
)
def test_what_the_owners_own_key_is_billed_counts_beside_the_fee(details: dict[str, Any], micros: int | None) -> None:
    spent = spent_by(NAMES, USAGE, response("gpt-5-mini", **details))
    assert spent
    assert spent.micros == micros
