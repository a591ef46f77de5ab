"""agents/metering.py: what a call of a model used."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from agents.metering import names_of, spent_by
from agents.models import build_model
from state.limits import Limits
from state.spending import Spent
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
    spent = spent_by(NAMES, USAGE, response("claude-haiku-4-5-20251001"))
    assert spent == Spent(NAMES[1], 100, 20, cached=60, written=5)
    assert spent_by(NAMES, USAGE, response("nobody")) == Spent(NAMES[0], 100, 20, cached=60, written=5)
    assert spent_by(NAMES, RequestUsage(), response("gpt-5-mini")) is None
    alike = ("openai:gpt-5", "openai:gpt-5-mini", "azure:gpt-5-mini")
    assert [spent_by(alike, USAGE, response(f"gpt-5{size}-2025-08-07")) for size in ("", "-mini")] == [
        Spent(alike[0], 100, 20, cached=60, written=5),
        Spent(alike[1], 100, 20, cached=60, written=5),
    ]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (RequestUsage(input_tokens=-50, output_tokens=20, cache_read_tokens=-1, input_audio_tokens=-1), (0, 20, 0, 0)),
        (RequestUsage(input_tokens=10**30, output_tokens=20), (10**12, 20, 0, 0)),
        (RequestUsage(input_tokens=1.5, output_tokens=float("nan")), (1, 0, 0, 0)),
        (RequestUsage(input_tokens=100, cache_read_tokens=60, cache_write_tokens=70), (100, 0, 60, 40)),
    ],
)
def test_counts_that_cannot_be_are_priced_stored_and_read_again(usage: RequestUsage, expected: tuple[int, ...]) -> None:
    for cost in (None, 1e300):
        spent = spent_by(NAMES, usage, response("claude-haiku-4-5", cost=cost))
        assert spent
        assert (spent.tokens_in, spent.tokens_out, spent.cached, spent.written) == expected
        limits = Limits(turns_per_user_minute=9, daily_tokens=None)
        micros = limits.spend(spent, NOON).micros
        assert micros == 10**12 if cost else micros
        later = Limits(turns_per_user_minute=9, daily_tokens=None)
        later.restore(limits.stored())
        assert later.tokens_today == spent.tokens
    assert spent_by(NAMES, RequestUsage(input_tokens=-50), None) is None


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
        (10**400, 10**12),
        ({}, None),
    ],
)
def test_what_a_provider_says_a_call_cost_counts_where_it_can_be(cost: object, micros: int | None) -> None:
    spent = spent_by(NAMES, USAGE, response("gpt-5-mini", cost=cost))
    assert spent
    assert spent.micros == micros
