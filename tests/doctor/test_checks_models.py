"""Models that are tried out: what is wrong with one is named with its fix, and a key never."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from doctor.checks_models import check_budgets, check_built, check_models, check_transcriber, names_in
from doctor.findings import State
from setting_values import budget_limits
from state.prices import Prices, Rates
from tests.support.stub_model import Reply, StubModel

MODEL = "openai-chat:gpt-5-mini"
PRICES = Prices({"openai:gpt-5-mini": Rates(input=Decimal(100), output=Decimal(200))})
LEAK = "Incorrect API key provided: key-of-the-stub"


@pytest.mark.parametrize(
    ("reply", "says", "fix"),
    [
        (Reply(status=401, words=LEAK, code="invalid_api_key"), "refuses the key", "into OPENAI_API_KEY"),
        (Reply(status=403, words=LEAK), "refuses the key (HTTP 403)", "into OPENAI_API_KEY"),
        (
            Reply(status=404, words="The model does not exist", code="model_not_found"),
            "does not know this model",
            "Correct",
        ),
        (Reply(status=429, words=LEAK, code="insufficient_quota"), "no credit left", "Add credit"),
        (Reply(status=429, words="slow down", code="rate_limit"), "too many requests", "a fallback after a comma"),
        (Reply(status=500), "cannot be reached, or fails", "a fallback in MODEL"),
        (Reply(""), "without any text", "Choose a chat model"),
        (Reply("", before=asyncio.Event()), "did not answer within 0.3 s", "Try again"),
    ],
)
async def test_why_a_model_does_not_answer(
    stub: StubModel, reply: Reply, says: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reply.before:
        monkeypatch.setattr("doctor.checks_models.SECONDS", 0.3)
    stub.default = lambda _: reply
    (finding,) = await check_models("MODEL", MODEL, PRICES)
    assert (finding.check, finding.state) == ("MODEL", State.FAULT)
    assert says in finding.says
    assert fix in finding.fix
    assert "key-of-the-stub" not in repr(finding)


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("OPENAI_API_KEY", "sk-“a-key-in-typographic-quotes”", "refuses the key"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:99999/v1", "cannot be reached, or fails"),
    ],
)
@pytest.mark.usefixtures("stub")
async def test_what_a_client_breaks_over_is_told_and_the_others_are_too(
    variable: str, value: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    broken, demo = await check_models("MODEL", f"{MODEL}, demo", PRICES)
    assert (broken.state, demo.state) == (State.FAULT, State.WARNING)
    assert says in broken.says
    assert "quotes" not in repr(broken)


async def test_each_of_several_is_called_and_told_with_what_it_took_and_cost(stub: StubModel) -> None:
    stub.default = lambda _: Reply("ready", tokens=15)
    first, second, demo = await check_models("MODEL", f"{MODEL}, openai-chat:unheard-of, demo", PRICES)
    assert first.says.startswith("openai-chat:gpt-5-mini answered in ")
    assert first.says.endswith(" s with 15 tokens, for $0.002.")  # 10 for $100 and 5 for $200 a million
    assert second.says.endswith("at an unknown price.")
    assert [finding.state for finding in (first, second)] == [State.OK, State.OK]
    assert demo.state is State.WARNING
    assert "the demo model" in demo.says
    assert len(stub.requests) == 2


async def test_one_that_cannot_be_built_is_told_without_a_call() -> None:
    (finding,) = await check_models("JUDGE_MODEL", "gpt-5", PRICES)
    assert (finding.says, finding.fix) == ("JUDGE_MODEL 'gpt-5' cannot be used.", "Did you mean openai:gpt-5?")
    assert check_built("REWRITE_MODEL", "grok").state is State.FAULT
    assert check_transcriber("anthropic:claude").state is State.FAULT


def test_what_limits_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    unpriced = PRICES.unknown(names_in([MODEL, "openai-chat:unheard-of", "demo", "nonsense"]))
    assert unpriced == ["openai:unheard-of"]
    dollar = budget_limits("$1 a day")
    assert check_budgets(dollar, 0, []).says == "Models may use at most $1.00 a day in all."
    assert "openai:unheard-of" in check_budgets(dollar, 0, unpriced).says
    assert check_budgets((), 1_000, unpriced).state is State.OK
    assert check_budgets((), 0, []).fix == "Set BUDGETS, such as to $1 a day."
