"""What it costs to refuse a model that goes on without end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from time import process_time

from agents.gateway import AgentRequest, Failure
from agents.general import MAX_CALLS, GeneralAgent
from conversation import MessageRecord
from place import Place
from tests.support.calling_model import calling_model

ROUNDS = 7
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ASKED = MessageRecord("Ada", 2, "go on", NOW, is_bot=False, message_id=3)


def refusing() -> tuple[float, float]:
    """CPU milliseconds of an answer that has one call of a tool too many, and of one that has 1,000 in one piece."""
    return refused(MAX_CALLS + 1), refused(1_000)


def refused(calls: int) -> float:
    agent = GeneralAgent(calling_model(calls))
    return min(asyncio.run(refuse_once(agent)) for _ in range(ROUNDS))


async def refuse_once(agent: GeneralAgent) -> float:
    request = AgentRequest([], [ASKED], [ASKED], Place(bot_name="Parley"), NOW)
    began = process_time()
    assert isinstance(await agent.respond(request, lambda _text: None), Failure)
    return 1000 * (process_time() - began)
