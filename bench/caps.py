"""What the caps cost: a message, and to refuse a model that goes on without end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from time import process_time

from agents.gateway import AgentRequest, Failure
from agents.general import MAX_CALLS, GeneralAgent
from conversation import MessageRecord
from place import Place
from setting_values import BudgetLimit, Scope, budget_limits
from state.limits import Limits, OwnBudgets
from state.spending import Payer, Spent
from tests.support.calling_model import calling_model

ROUNDS, OFTEN = 7, 2_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ASKED = MessageRecord("Ada", 2, "go on", NOW, is_bot=False, message_id=3)


def refusing() -> tuple[float, float]:
    """CPU milliseconds of an answer that has one call of a tool too many, and of one that has 1,000 in one piece."""
    return refused(MAX_CALLS + 1), refused(1_000)


def refused(calls: int) -> float:
    agent = GeneralAgent(calling_model(calls))
    return min(asyncio.run(refuse_once(agent)) for _ in range(ROUNDS))


def budgets() -> float:
    """CPU microseconds that the caps take of a message: whether a judge may be asked of it, and it may be answered."""
    own = budget_limits("$1 a day, 100000 tokens a month", Scope.GUILD)

    class Own(OwnBudgets):
        def budgets(self, guild_id: int, channel_id: int, thread_id: int) -> tuple[BudgetLimit, ...]:  # noqa: ARG002
            return own

    limits = Limits(
        turns_per_user_minute=10**9,
        daily_tokens=10**9,
        guild_tokens=10**9,
        person_tokens=10**9,
        budgets=budget_limits("$5 a day, $50 a month, guild $5 a month, channel $1 a day, person $1 a day"),
        own=Own(),
    )
    limits.spend(Spent("openai:gpt-5-mini", 10_000, 1_000), NOW)
    return min(ask_often(limits) for _ in range(ROUNDS))


def ask_often(limits: Limits) -> float:
    began = process_time()
    for number in range(OFTEN):
        payer = Payer(1, frozenset({number % 100}), channel_id=2)
        limits.may_judge(NOW, payer)
        limits.admit(number % 100, 2, explicit=True, now=NOW, payer=payer)
        limits.give_back(number % 100)
    return 1e6 * (process_time() - began) / OFTEN


async def refuse_once(agent: GeneralAgent) -> float:
    request = AgentRequest([], [ASKED], [ASKED], Place(bot_name="Parley"), NOW)
    began = process_time()
    assert isinstance(await agent.respond(request, lambda _text: None), Failure)
    return 1000 * (process_time() - began)
