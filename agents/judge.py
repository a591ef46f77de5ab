"""The judge: a fast model that says for whom a doubtful message is meant, and what the bot can help with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from pydantic_ai import Agent
from pydantic_ai.models import Model

from agents.fast import ruled_by, shown
from agents.models import SETTINGS
from conversation import ChannelConversation, MessageRecord
from decider import Verdict

INSTRUCTIONS = Path(__file__).with_name("judge.md").read_text(encoding="utf-8")
ANSWERABLE = Path(__file__).with_name("answerable.md").read_text(encoding="utf-8")
MESSAGES_SHOWN = 12


class Ruling(BaseModel):
    """The ruling on the newest message."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    # The evidence stands before the verdict, so that the model weighs before it decides.
    evidence: str
    """What speaks for or against it, in at most ten words."""
    meant_for_bot: bool
    """Whether the newest message is meant for the bot."""


class Ability(BaseModel):
    """Whether the bot can help with the question."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    evidence: str
    """What speaks for or against it, in at most ten words."""
    can_help: bool
    """Whether the bot can be of real help."""


class ModelJudge:
    """Asks a model whom a message is meant for. spend: told how many tokens each call used. bot_name: the bot's."""

    def __init__(self, model: Model, *, bot_name: Callable[[], str], spend: Callable[[int], None]) -> None:
        self._agent = Agent(model, output_type=Ruling, retries=0, model_settings=SETTINGS)
        self._bot_name = bot_name
        self._spend = spend

    async def __call__(self, message: MessageRecord, conversation: ChannelConversation) -> Verdict:
        question = shown(conversation.messages, message, "The newest message", MESSAGES_SHOWN)
        ruling = await ruled_by(self._agent, question, INSTRUCTIONS.format(bot_name=self._bot_name()), self._spend)
        return Verdict(ruling.meant_for_bot, " ".join(ruling.evidence.split())[:120])


class ModelAnswerable:
    """Asks a model whether the bot can help with a question that nobody put to it; arguments as for ModelJudge."""

    def __init__(self, model: Model, *, bot_name: Callable[[], str], spend: Callable[[int], None]) -> None:
        self._agent = Agent(model, output_type=Ability, retries=0, model_settings=SETTINGS)
        self._bot_name = bot_name
        self._spend = spend

    async def __call__(self, message: MessageRecord, recent: Sequence[MessageRecord]) -> bool:
        """recent: what was said in the channel lately, the message among it. Raises JudgeError."""
        question = shown(recent, message, "The question", MESSAGES_SHOWN)
        ability = await ruled_by(self._agent, question, ANSWERABLE.format(bot_name=self._bot_name()), self._spend)
        return ability.can_help
