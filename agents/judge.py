"""The judge: a fast model that says whether a doubtful message is meant for the bot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.exceptions import AgentRunError, FallbackExceptionGroup
from pydantic_ai.models import Model

from agents.fast import billed, line_of
from agents.models import SETTINGS
from conversation import ChannelConversation, MessageRecord
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
        said = "".join(map(line_of, recent))
        question = f"{said}The newest message:\n{line_of(message)}"
        try:
            with billed(len(question) + len(INSTRUCTIONS), self._spend) as usage:
                result = await self._agent.run(
                    question,
                    instructions=INSTRUCTIONS.format(bot_name=self._bot_name()),
                    usage_limits=UsageLimits(request_limit=1),
                    usage=usage,
                )
        except (AgentRunError, FallbackExceptionGroup) as error:
            raise JudgeError(str(error)) from error
        return Verdict(result.output.meant_for_bot, " ".join(result.output.evidence.split())[:120])
