"""What the fast models that do us a service share: the messages as they are shown them, one ruling, and the bill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from pydantic_ai import Agent, RunUsage, UsageLimits
from pydantic_ai.exceptions import AgentRunError, FallbackExceptionGroup
from pydantic_ai.messages import TextContent

from conversation import MessageRecord
from decider import JudgeError
from llm_history import CHARACTERS_PER_TOKEN, told

T = TypeVar("T")


def line_of(message: MessageRecord) -> str:
    """A message as the models are told it, without its images."""
    return "".join(piece.content for piece in told(message) if isinstance(piece, TextContent))


def shown(messages: Sequence[MessageRecord], judged: MessageRecord, name: str, count: int) -> str:
    """The last so many messages, oldest first, and the one to judge set apart behind them, under this name."""
    recent = [m for m in messages if m.message_id != judged.message_id][-count:]
    return f"{''.join(map(line_of, recent))}{name}:\n{line_of(judged)}"


async def ruled_by(agent: Agent[None, T], question: str, instructions: str, spend: Callable[[int], None]) -> T:
    """What the agent's model says, in one request. Raises JudgeError where it says nothing that can be used."""
    try:
        with billed(len(question) + len(instructions), spend) as usage:
            result = await agent.run(
                question, instructions=instructions, usage_limits=UsageLimits(request_limit=1), usage=usage
            )
    except (AgentRunError, FallbackExceptionGroup) as error:
        raise JudgeError(str(error)) from error
    return result.output


@contextmanager
def billed(characters: int, spend: Callable[[int], None]) -> Iterator[RunUsage]:
    """Tells spend the tokens that a call within used, by its RunUsage, else estimated for so many characters."""
    usage = RunUsage()
    estimated = 0
    try:
        yield usage
        estimated = characters // CHARACTERS_PER_TOKEN
    except asyncio.CancelledError:
        # Too late for us, not for the bill.
        estimated = characters // CHARACTERS_PER_TOKEN
        raise
    finally:
        if tokens := usage.total_tokens or estimated:
            spend(tokens)
