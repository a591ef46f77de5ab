"""setting_values.py: budgets as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from setting_values import BudgetLimit, Period, Scope, budget_limits, dollars

DAY, MONTH = Period.DAY, Period.MONTH


def test_budgets_are_read_in_money_and_tokens_a_day_and_a_month_for_each_whom() -> None:
    read = budget_limits("$1 a day, guild $5 per month,channel 200000 tokens a day, Person $0.10 a day, $20.5 a month")
    assert read == (
        BudgetLimit(1_000_000, DAY, Scope.TOTAL, in_money=True),
        BudgetLimit(5_000_000, MONTH, Scope.GUILD, in_money=True),
        BudgetLimit(200_000, DAY, Scope.CHANNEL),
        BudgetLimit(100_000, DAY, Scope.PERSON, in_money=True),
        BudgetLimit(20_500_000, MONTH, Scope.TOTAL, in_money=True),
    )
    assert budget_limits("$1 a day,1,500,000 tokens a day") == (read[0], BudgetLimit(1_500_000, DAY, Scope.TOTAL))
    assert [limit.in_words() for limit in read[1:4]] == ["$5.00 a month", "200,000 tokens a day", "$0.10 a day"]
    assert budget_limits("off") == ()
    assert budget_limits("$0.000001 a day", Scope.CHANNEL) == (BudgetLimit(1, DAY, Scope.CHANNEL, in_money=True),)


@pytest.mark.parametrize(
    "text",
    [
        "much", "$1", "1 a day", "-$1 a day", "$1 a week", "$0 a day", "0 tokens a day", "everybody $1 a day",
        "$1.0000001 a day", "$1 a day, $2 a day", "$9999999 a day", "€1 a day", "$1e9 a day", "$1 a day, x",
        "9" * 5_000 + " tokens a day", " ", ",", "off,",
    ],
)  # fmt: skip
def test_what_is_no_budget_is_refused_with_one_that_is(text: str) -> None:
    with pytest.raises(ValueError, match=r"write (one|budgets) such as|keep one of|more than nothing") as refused:
        budget_limits(text)
    assert len(str(refused.value)) < 300


def test_a_place_s_own_budget_names_nobody() -> None:
    with pytest.raises(ValueError, match=r"write one such as “\$1 a day, 200000 tokens a month”"):
        budget_limits("person $1 a day", Scope.GUILD)


def test_periods_end_at_midnight_and_with_the_month() -> None:
    late = datetime(2026, 12, 31, 23, 59, tzinfo=UTC)
    assert DAY.end(late) == MONTH.end(late) == datetime(2027, 1, 1, tzinfo=UTC)
    assert MONTH.end(datetime(2028, 2, 1, tzinfo=UTC)) == datetime(2028, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("micros", "words"),
    [(0, "$0.00"), (1, "$0.000001"), (500, "$0.0005"), (10_000, "$0.01"), (1234567890, "$1,234.57")],
)  # fmt: skip
def test_dollars_are_told_with_cents_and_below_one_exactly(micros: int, words: str) -> None:
    assert dollars(micros) == words
