"""What requests cost that a model's server took and never answered, over real HTTP, when another model then answers."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from structlog.testing import capture_logs

from agents.gateway import AgentRequest, Answer
from agents.general import GeneralAgent
from agents.models import build_model
from place import Place
from setting_values import budget_limits
from state.budget import Budget
from state.limits import Limits
from state.prices import Prices, Rates
from state.spending import NOBODY, Lost, Spent
from tests.support.clock import NOON, FakeClock
from tests.support.people import ANNA, said
from tests.support.stub_model import BEFORE, Reply, StubModel

DEAR = Rates(input=Decimal(100), output=Decimal(500))
CHEAP = Rates(input=Decimal(1), output=Decimal(5))
QUESTION = said(ANNA, "what?")
REQUEST = AgentRequest((), [QUESTION], [QUESTION], Place(bot_name="Parley", guild="The Guild", channel="general"), NOON)


async def spent_in(stub: StubModel, prices: dict[str, Rates], *replies: Reply) -> Spent:
    """What an answer counts of a budget in money."""
    limits = Limits(turns_per_user_minute=9, daily_tokens=None, budgets=budget_limits("$10 a day"), prices=prices)
    allowance = Budget(limits, FakeClock()).allowance(NOBODY)
    stub.replies.extend(replies)
    async with build_model("MODEL", "openai-chat:dear,openai-chat:cheap") as model:
        with capture_logs():
            answer = await GeneralAgent(model).respond(replace(REQUEST, allowance=allowance), lambda _: None)
    assert isinstance(answer, Answer)
    allowance.settle(answer.tokens, is_answer=True)
    (spent,) = allowance.all_spent
    return spent


async def test_what_a_dear_model_may_bill_counts_at_its_price_though_a_cheap_one_answers(stub: StubModel) -> None:
    prices = {"dear": DEAR, "cheap": CHEAP}
    lost = Reply(cut_after=BEFORE)
    spent = await spent_in(stub, prices, lost, lost, Reply("It is so."))
    assert [body["model"] for body in stub.requests] == ["dear", "dear", "cheap"]
    assert spent.model == "openai:cheap"
    assert (spent.micros or 0) >= (spent.tokens_in - 15) * DEAR.input


async def test_what_a_dear_model_may_bill_counts_where_the_price_of_who_answers_is_unknown(stub: StubModel) -> None:
    lost = Reply(cut_after=BEFORE)
    spent = await spent_in(stub, {"dear": DEAR}, lost, lost, Reply("It is so."))
    assert (spent.micros or 0) >= (spent.tokens_in - 15) * DEAR.input


@pytest.mark.parametrize("told", [None, 70])
def test_what_a_provider_told_that_its_answer_cost_stands_beside_what_was_lost(told: int | None) -> None:
    prices = Prices({"dear": DEAR, "cheap": CHEAP})
    answer = Spent("openai:cheap", 100, 10, micros=told)
    spent = prices.priced(answer.and_lost(2, Lost(("openai:dear", "openai:cheap"), 1_000, 10)))
    assert (spent.tokens_in, spent.tokens_out) == (2_100, 30)
    assert spent.micros == (150 if told is None else told) + 2 * 105_000
    assert prices.priced(spent) == spent
