"""state/prices.py: what models cost."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from genai_prices.data_snapshot import DataSnapshot

from setting_values import Period, Scope, budget_limits
from state.budget import Budget
from state.limits import Limits
from state.prices import Prices, PricesError, in_micros, load_prices
from state.spending import Purpose, Spent
from tests.support.clock import FakeClock

MINI = "openai:gpt-5-mini"


def prices(text: str) -> Prices:
    return Prices(dict(load_prices(text, {})))


def micros(known: Prices, spent: Spent) -> int | None:
    return known.priced(spent).micros


def test_a_model_that_genai_prices_knows_costs_what_it_says_cached_tokens_less() -> None:
    assert micros(Prices(), Spent(MINI, 1_000_000, 1_000_000)) == 2_250_000
    assert micros(Prices(), Spent(MINI, 1_000_000, 0, cached=1_000_000)) == 25_000
    assert micros(Prices(), Spent("openrouter:openai/gpt-5-mini", 1_000_000)) == 250_000
    assert micros(Prices(), Spent("demo", 1_000, 1_000)) == 0


def test_the_owners_table_counts_before_that_by_the_name_with_or_without_its_provider() -> None:
    known = prices('["openai-chat:gpt-5-mini"]\ninput = 1\noutput = 3\n[own]\ninput = 0.3\ncached = 0.1\noutput = 0.7')
    assert micros(known, Spent(MINI, 10, 10)) == 40
    assert micros(known, Spent("openai:own", 100, 0, cached=50)) == 20
    assert micros(known, Spent("openai:own", 1)) == 1  # rounded up: never less than is billed
    assert known.unknown([MINI, "openai:own", "openai:llama", "openai:llama"]) == ["openai:llama"]


def test_without_a_price_there_is_none_and_what_the_provider_tells_stands() -> None:
    assert micros(Prices(), Spent("openai:nobodys", 1_000, 1_000)) is None
    assert micros(Prices(), Spent("agent:tickets", 0, 10_000)) is None
    assert micros(Prices(), Spent("openai:nobodys", 1_000, 1_000, micros=17)) == 17
    assert Prices().dearest(("openai:nobodys", "openai:gpt-5-nano", MINI), 1_000_000, 0) == 250_000


def test_a_model_that_is_not_listed_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    find = DataSnapshot.find_provider_model

    def note(self: DataSnapshot, model: str, *how: Any) -> Any:
        looked.append(model)
        return find(self, model, *how)

    monkeypatch.setattr(DataSnapshot, "find_provider_model", note)
    for _ in range(3):
        assert Prices().dearest(("openrouter:nobodys/looked-for-once",), 1_000, 10) == 0
    assert len(looked) == 1


def test_micro_dollars_are_exact_and_rounded_up() -> None:
    assert [in_micros(Decimal(text)) for text in ("0.1", "0.0000001", "0", "1.000001")] == [100_000, 1, 0, 1_000_001]


@pytest.mark.parametrize(
    "text",
    ["=", "[own]", "[own]\ninput = -1\noutput = 1", "[own]\ninput = 1\noutput = 1\nimput = 2", "own = 3",
     "[own]\ninput = nan\noutput = 1", "[own]\ninput = 'a lot'\noutput = 1", "own = " + "[" * 9_999],
)  # fmt: skip
def test_a_table_that_cannot_be_used_is_said_in_a_sentence_with_one_that_can(text: str) -> None:
    with pytest.raises(PricesError, match=r'^PRICES.*use a TOML table for each model, such as \["openai:gpt-5-mini"\]'):
        load_prices(text, {})


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(PricesError, match=r"nowhere.toml cannot be read \(No such file"):
        load_prices(tmp_path / "nowhere.toml", {})


def test_what_is_reserved_is_enough_for_a_call_that_writes_all_of_it_to_a_cache() -> None:
    claude = "anthropic:claude-haiku-4-5"
    written = micros(Prices(), Spent(claude, 100_000, 1_000, written=100_000))
    assert written
    assert (
        Prices().dearest([MINI, claude], 100_000, 1_000)
        == written
        > (micros(Prices(), Spent(claude, 100_000, 1_000)) or 0)
    )
    assert Prices().dearest([MINI], 100_000, 1_000) == micros(Prices(), Spent(MINI, 100_000, 1_000))
    assert Prices().dearest(["openai:nobodys"], 100_000, 1_000) == 0


@pytest.mark.parametrize(
    ("model", "a_minute"),
    [("openai:whisper-1", 6_000), ("groq:whisper-large-v3", 1_850), ("openai:gpt-4o-transcribe", 3_600)],
)
async def test_sound_is_reserved_and_paid_at_its_price_an_hour_or_a_token(model: str, a_minute: int) -> None:
    spent = Spent(model, 600, audio=600)
    assert micros(Prices(), spent) == a_minute
    limits = Limits(turns_per_user_minute=9, daily_tokens=None, budgets=budget_limits("$1 a day"))
    assert await Budget(limits, FakeClock()).purse(Purpose.TRANSCRIPTION).call(600, 0, (model,))
    assert [call.amount for call in limits._calls] == [(600, a_minute)]
    restarted = Limits(turns_per_user_minute=9, daily_tokens=None)
    restarted.restore(json.loads(limits.to_store()()))
    assert restarted.ledger.used((Scope.TOTAL, 0), Period.DAY) == (600, a_minute)  # of what a kill interrupted
    assert micros(prices(f'["{model}"]\ninput = 1\noutput = 1'), spent) == 600
