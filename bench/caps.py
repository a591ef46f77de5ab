"""What settings and caps cost: a message, and to refuse a model that goes on without end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from time import process_time

from agents.gateway import AgentRequest, Failure
from agents.general import MAX_CALLS, GeneralAgent
from conversation import MessageRecord
from place import Place
from place_settings.fields import Level, PlaceSettings
from place_settings.guild_settings import GuildSettings
from setting_values import budget_limits
from state.limits import Limits
from state.spending import Payer, Spent
from tests.support.calling_model import calling_model

ROUNDS, OFTEN = 7, 2_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)
GUILD, CATEGORY, CHANNEL, ROLES = 1, 2, 3, frozenset(range(5, 15))
ASKED = MessageRecord("Ada", 2, "go on", NOW, is_bot=False, message_id=3)


def refusing() -> tuple[float, float]:
    """CPU milliseconds of an answer that has one call of a tool too many, and of one that has 1,000 in one piece."""
    return refused(MAX_CALLS + 1), refused(1_000)


def refused(calls: int) -> float:
    agent = GeneralAgent(calling_model(calls))
    return min(asyncio.run(refuse_once(agent)) for _ in range(ROUNDS))


def settings_and_budgets() -> float:
    """CPU microseconds that what is set in Discord, the caps and the budgets take of a message.

    What holds there is looked up, with lists as long as there are roles and people; whether its author is answered, a
    judge may be asked of it, and it may be answered.
    """
    settings = GuildSettings(PlaceSettings(answers="follow", eagerness="balanced"))
    lists: dict[str, object] = {"allowed_roles": range(10, 260), "budget": "$1 a day, 100000 tokens a month"}
    settings.change(GUILD, GUILD, Level.GUILD, lists, by=1, now=NOW)
    settings.change(GUILD, CHANNEL, Level.CHANNEL, {"blocked_users": range(1_000, 1_400)}, by=1, now=NOW)
    limits = Limits(
        turns_per_user_minute=10**9,
        daily_tokens=10**9,
        guild_tokens=10**9,
        person_tokens=10**9,
        budgets=budget_limits("$5 a day, $50 a month, guild $5 a month, channel $1 a day, person $1 a day"),
        own=settings,
    )
    limits.spend(Spent("openai:gpt-5-mini", 10_000, 1_000), NOW)
    return min(ask_often(settings, limits) for _ in range(ROUNDS))


def ask_often(settings: GuildSettings, limits: Limits) -> float:
    began = process_time()
    for number in range(OFTEN):
        held = settings.in_channel(GUILD, CHANNEL, None, CATEGORY)
        assert held.refuses(number % 100, ROLES) is held.refuses_unasked is None
        payer = Payer(GUILD, frozenset({number % 100}), CHANNEL)
        limits.reached(NOW, payer, explicit=False)
        limits.admit(number % 100, CHANNEL, explicit=True, now=NOW, payer=payer)
        limits.give_back(number % 100)
    return 1e6 * (process_time() - began) / OFTEN


async def refuse_once(agent: GeneralAgent) -> float:
    request = AgentRequest([], [ASKED], [ASKED], Place(bot_name="Parley"), NOW)
    began = process_time()
    assert isinstance(await agent.respond(request, lambda _text: None), Failure)
    return 1000 * (process_time() - began)
