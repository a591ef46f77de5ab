"""The summarizer: sums up the beginning of a conversation that is no longer sent to the model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog
from pydantic_ai import Agent
from pydantic_ai.models import Model

from agents.fast import OUTPUT_TOKENS, Purse, ruled_by
from agents.models import SETTINGS
from agents.thoughts import without_bare_thoughts
from agents.turn_input import as_text
from decider import JudgeError
from discord_io.split import clipped
from llm_history import History
from state.spending import CHARACTERS_PER_TOKEN

log = structlog.get_logger()

INSTRUCTIONS = Path(__file__).with_name("summarizer.md").read_text(encoding="utf-8")
DEADLINE_SECONDS = 15.0  # the person waits for that in addition to the answer


class ModelSummarizer:
    """Asks a model for summaries. max_tokens: about the longest summary."""

    def __init__(self, model: Model, *, purse: Purse, max_tokens: int) -> None:
        self._agent = Agent(model, name="summarizer", retries=0, model_settings=SETTINGS)
        self._purse = purse
        self._max_tokens = max_tokens

    async def __call__(self, history: History, bot_name: str) -> str:
        """Sums up the history; empty: the model failed, or was too late. A summary that is too long is cut."""
        instructions = INSTRUCTIONS.format(bot_name=bot_name.replace('"', "'"), words=self._max_tokens * 3 // 4)
        told = "".join(as_text(message, bot_name) for message in history)
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                most = self._max_tokens + OUTPUT_TOKENS
                text = await ruled_by(self._agent, told, instructions, self._purse, most)
        except (TimeoutError, JudgeError) as error:
            log.info("not_summed_up", detail=type(error).__name__, meaning="older turns are left out without a summary")
            return ""
        return clipped(
            without_bare_thoughts(text).strip().encode(errors="replace").decode(),
            self._max_tokens * CHARACTERS_PER_TOKEN,
        )
