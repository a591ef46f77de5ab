"""Shared by the fast models (judge, coordinator and the like): how messages are shown, and one request, paid for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from pydantic_ai import Agent, RunUsage, UsageLimits
from pydantic_ai.messages import TextContent
from pydantic_ai.settings import ModelSettings

from agents.bounded_client import OutdatedError, noting_lost
from agents.failures import describe, may_be_billed
from agents.metering import spent_by
from agents.models import names_of
from agents.run import most_of
from conversation import MessageRecord
from decider import JudgeError
from llm_history import told
from state.spending import Lost, Spent

T = TypeVar("T")
OUTPUT_TOKENS = 2_000  # what such an answer may take, with the thoughts before it
SHOWN_TOKENS = 20_000  # of the messages before the one to judge; 12 of the longest take some 12,000 in English


class OverBudgetError(JudgeError):
    """The budget does not allow the call."""


class Purse(Protocol):
    """The budget of calls."""

    async def call(self, tokens: int, output: int, models: Sequence[str]) -> Callable[[Spent], object] | None:
        """Reserves so many tokens for one call of one of these models. Returns a function to be called with the use;
        None: the budget does not allow the call. output: the part of the tokens that the model may write."""


def shown(messages: Sequence[MessageRecord], judged: MessageRecord, name: str, count: int) -> str:
    """The last so many messages, as many as fit into SHOWN_TOKENS, oldest first, then the one to judge, under this
    heading; without images."""
    recent = [m for m in messages if m.message_id != judged.message_id][-count:]
    lines, room = list[str](), SHOWN_TOKENS
    for line in map(_line, reversed(recent)):
        if (room := room - most_of(line)) < 0:
            break
        lines.append(line)
    return f"{''.join(reversed(lines))}{name}:\n{_line(judged)}"


def _line(message: MessageRecord) -> str:
    return "".join(piece.content for piece in told(message) if isinstance(piece, TextContent))


async def ruled_by(
    agent: Agent[None, T], question: str, instructions: str, purse: Purse, output: int = OUTPUT_TOKENS
) -> T:
    """The answer of the agent's model to one request. Raises JudgeError if it gives none that can be used, or
    OverBudgetError.

    output: the most tokens that it may take, whatever the messages tell it to write. If the provider does not report
    the use, the reserved tokens count, also after a cancelled call or a broken connection, which may be billed.
    """
    usage, response = RunUsage(), None
    names, sent = names_of(agent.model), most_of(f"{question}{instructions}")
    spent = Lost(names, sent, output).alone()
    if (settle := await purse.call(spent.tokens, output, names)) is None:
        raise OverBudgetError("The budget is spent, or about to be.")
    lost: list[None] = []
    try:
        with noting_lost(lambda: lost.append(None)):
            result = await agent.run(
                question,
                instructions=instructions,
                usage_limits=UsageLimits(request_limit=1),
                usage=usage,
                model_settings=ModelSettings(max_tokens=output),
            )
        response = result.response
    except Exception as error:  # the model's server may answer anything, and the client then raises anything
        if isinstance(error, OutdatedError) or not may_be_billed(error):
            spent = Spent(names[0])
        raise JudgeError(describe(error)) from error
    finally:
        settle((spent_by(names, usage, response) or spent).and_lost(len(lost), Lost(names, sent, output)))
    if response.finish_reason in ("length", "content_filter"):
        raise JudgeError(f"the model's words were cut off: {response.finish_reason}")
    return result.output
