"""The judge: a fast model that says whether a doubtful message is meant for the bot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from pydantic_ai import Agent, RunUsage, UsageLimits
from pydantic_ai.exceptions import AgentRunError, FallbackExceptionGroup
from pydantic_ai.messages import TextContent
from pydantic_ai.models import Model

from agents.models import SETTINGS
from conversation import CHARACTERS_PER_TOKEN, ChannelConversation, MessageRecord, told
from decider import JudgeError, Verdict

INSTRUCTIONS = Path(__file__).with_name("judge.md").read_text(encoding="utf-8")
MESSAGES_SHOWN = 12


class Ruling(BaseModel):
    """The ruling on the newest message."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    # The evidence stands before the verdict, so that the model weighs before it decides.
    evidence: str
    """What speaks for or against it, in at most ten words."""
    meant_for_bot: bool
    """Whether the newest message is meant for the bot."""


class ModelJudge:
    """Asks a model. spend: told how many tokens each call used. bot_name: by which the bot is known."""

    def __init__(self, model: Model, *, bot_name: Callable[[], str], spend: Callable[[int], None]) -> None:
        self._agent = Agent(model, output_type=Ruling, retries=0, model_settings=SETTINGS)
        self._bot_name = bot_name
        self._spend = spend

    async def __call__(self, message: MessageRecord, conversation: ChannelConversation) -> Verdict:
        recent = [m for m in conversation.messages if m.message_id != message.message_id][-MESSAGES_SHOWN:]
        said = "".join(_line(m) for m in recent)
        question = f"{said}The newest message:\n{_line(message)}"
        usage, estimated = RunUsage(), (len(question) + len(INSTRUCTIONS)) // CHARACTERS_PER_TOKEN
        try:
            result = await self._agent.run(
                question,
                instructions=INSTRUCTIONS.format(bot_name=self._bot_name()),
                usage_limits=UsageLimits(request_limit=1),
                usage=usage,
            )
        except asyncio.CancelledError:
            # Too late for us, not for the bill.
            self._spend(usage.total_tokens or estimated)
            raise
        except (AgentRunError, FallbackExceptionGroup) as error:
            if usage.total_tokens:
                self._spend(usage.total_tokens)
            raise JudgeError(str(error)) from error
        self._spend(usage.total_tokens or estimated)
        return Verdict(result.output.meant_for_bot, " ".join(result.output.evidence.split())[:120])


def _line(message: MessageRecord) -> str:
    return "".join(piece.content for piece in told(message) if isinstance(piece, TextContent))
