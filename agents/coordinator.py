"""The coordinator: which agent answers, and why.

An agent that the message calls by name answers it. A message without a mention goes to the agent that last answered its
author. Else a fast model chooses, in one call; if it fails, or is not sure, the general agent answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model
from pydantic_ai import Agent
from pydantic_ai.models import Model

from agents.fast import OverBudgetError, Purse, ruled_by, shown
from agents.models import SETTINGS
from agents.picking import called
from conversation import MessageRecord
from decider import JudgeError
from state.agent_state import GENERAL
from state.message import without_call

INSTRUCTIONS = Path(__file__).with_name("coordinator.md").read_text(encoding="utf-8")
DEADLINE_SECONDS = 3.0
MESSAGES_SHOWN = 8
MAX_EVIDENCE = 120
NOT_SURE = "not sure"  # can be no agent's name, as it has a space


class Why(StrEnum):
    """Why this agent answers."""

    ONLY = "only_agent"
    NAMED = "named"
    LAST_ANSWERED = "last_answered"
    CHOSEN = "chosen"
    UNSURE = "unsure"
    FAILED = "failed"
    LATE = "late"
    OVER_BUDGET = "over_budget"


IN_WORDS: Mapping[Why, str] = {
    Why.ONLY: "the only one there is",
    Why.NAMED: "which you named",
    Why.LAST_ANSWERED: "which gave you the last answer",
    Why.CHOSEN: "which fits best",
    Why.UNSURE: "as none clearly fits better",
    Why.FAILED: "as the model that chooses could not be asked",
    Why.LATE: "as the model that chooses took too long",
    Why.OVER_BUDGET: "as the budget was nearly spent and nobody chose",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """The agent that answers, and why. evidence: the model's reason."""

    agent: str
    why: Why
    evidence: str = ""

    def in_words(self) -> str:
        """One line for people."""
        name = "the general agent" if self.agent == GENERAL else self.agent
        evidence = f" ({self.evidence})" if self.evidence else ""
        return f"by {name}, {IN_WORDS[self.why]}{evidence}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An agent besides the general one. about: what it is for, in one line."""

    name: str
    about: str


class Pick(BaseModel):
    """Which agent is to answer the newest message."""

    # The evidence comes before the verdict, so that the model reasons before it decides.
    evidence: str = Field(description="What speaks for it, in at most ten words.")
    agent: str = Field(description="The agent's name.")


class Picker:
    """Picks the agent for a turn, with at most one model call.

    candidates: the agents besides the general one. model: the one that chooses; None: none is asked.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        *,
        model: Model | None,
        purse: Purse,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._names = (*(candidate.name for candidate in candidates), GENERAL)
        self._agents = "\n".join(f"- {candidate.name}: {candidate.about}" for candidate in candidates)
        self._model: Agent[None, Pick] | None = None
        if model is not None and candidates:
            agent: Any = Literal[*self._names, NOT_SURE]
            form = create_model("Pick", __base__=Pick, __doc__=Pick.__doc__, agent=agent)
            # No retries, as the person waits for the answer.
            self._model = Agent(
                model, name="coordinator", output_type=form, retries=0, model_settings={**SETTINGS, "max_retries": 0}
            )
        self._purse = purse
        self._deadline = deadline_seconds

    async def pick(
        self,
        question: MessageRecord,
        recent: Sequence[MessageRecord],
        *,
        is_addressed: bool,
        last: str | None,
        bot_name: str,
    ) -> Choice:
        """Picks the agent that answers the question.

        recent: recent messages, oldest first, with or without the question. is_addressed: it mentions the bot and is no
        reply to it; then `last`, the agent that last answered its author, does not count. An agent that is no longer
        configured never answers.
        """
        named = called(without_call(question.content, 0, bot_name), self._names)
        if len(named) == 1:
            return Choice(named.pop(), Why.NAMED)
        if not named and not is_addressed and last in self._names:
            return Choice(last, Why.LAST_ANSWERED)
        return await self._choose(shown(recent, question, "The newest message", MESSAGES_SHOWN), bot_name)

    async def _choose(self, question: str, bot_name: str) -> Choice:
        if self._model is None:
            return Choice(GENERAL, Why.UNSURE)
        instructions = INSTRUCTIONS.format(bot_name=bot_name, agents=self._agents)
        try:
            async with asyncio.timeout(self._deadline):
                pick = await ruled_by(self._model, question, instructions, self._purse)
        except TimeoutError:
            return Choice(GENERAL, Why.LATE)
        except OverBudgetError:
            return Choice(GENERAL, Why.OVER_BUDGET)
        except JudgeError:
            return Choice(GENERAL, Why.FAILED)
        evidence = " ".join(pick.evidence.split())[:MAX_EVIDENCE]
        if pick.agent == NOT_SURE:
            return Choice(GENERAL, Why.UNSURE, evidence)
        return Choice(pick.agent, Why.CHOSEN, evidence)
