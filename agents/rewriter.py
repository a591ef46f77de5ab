"""The rewriter: a fast model that completes a message which leaves out what was said before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.exceptions import AgentRunError, FallbackExceptionGroup
from pydantic_ai.models import Model

from agents.fast import billed, line_of
from agents.models import SETTINGS
from conversation import MessageRecord

INSTRUCTIONS = Path(__file__).with_name("rewriter.md").read_text(encoding="utf-8")
DEADLINE_SECONDS = 2.0  # the person waits for the answer besides
MESSAGES_SHOWN = 6
MAX_CHARACTERS = 500


class ModelRewriter:
    """Asks a model. spend: told how many tokens each call used."""

    def __init__(self, model: Model, *, spend: Callable[[int], None]) -> None:
        self._agent = Agent(model, retries=0, model_settings=SETTINGS, instructions=INSTRUCTIONS)
        self._spend = spend

    async def __call__(self, message: MessageRecord, recent: Sequence[MessageRecord]) -> str | None:
        """The message completed from what was said before it, oldest first; None where that is not to be had.

        What comes late, in several lines, over 500 characters or unchanged is of no use.
        """
        earlier = "".join(line_of(m) for m in recent[-MESSAGES_SHOWN:] if m.message_id != message.message_id)
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                text = await self._ask(f"{earlier}The newest message:\n{line_of(message)}")
        except (TimeoutError, AgentRunError, FallbackExceptionGroup):
            return None
        is_useful = (
            text and text != message.text.strip() and len(text) <= MAX_CHARACTERS and len(text.splitlines()) == 1
        )
        return text if is_useful else None

    async def _ask(self, question: str) -> str:
        with billed(len(question) + len(INSTRUCTIONS), self._spend) as usage:
            result = await self._agent.run(question, usage_limits=UsageLimits(request_limit=1), usage=usage)
        return result.output.strip()
