"""The rewriter: a fast model that completes a message which only makes sense with the messages before it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.models import Model

from agents.fast import Purse, ruled_by, shown
from agents.models import SETTINGS
from agents.thoughts import without_bare_thoughts
from conversation import MessageRecord
from decider import JudgeError

INSTRUCTIONS = Path(__file__).with_name("rewriter.md").read_text(encoding="utf-8")
DEADLINE_SECONDS = 2.0  # the person waits for that in addition to the answer
MESSAGES_SHOWN = 6
MAX_CHARACTERS = 500


class ModelRewriter:
    """Asks a model to complete messages."""

    def __init__(self, model: Model, *, purse: Purse) -> None:
        self._agent = Agent(model, name="rewriter", retries=0, model_settings=SETTINGS)
        self._purse = purse

    async def __call__(self, message: MessageRecord, recent: Sequence[MessageRecord]) -> str | None:
        """The message completed from the recent ones, which are oldest first; None: the model gave nothing usable.

        Not usable is what comes late, has several lines or over 500 characters, or is unchanged.
        """
        question = shown(recent, message, "The newest message", MESSAGES_SHOWN)
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                said = await ruled_by(self._agent, question, INSTRUCTIONS, self._purse)
        except (TimeoutError, JudgeError):
            return None
        text = without_bare_thoughts(said).strip()
        is_one_line = len(text) <= MAX_CHARACTERS and len(text.splitlines()) == 1
        return text if is_one_line and text != message.text.strip() else None
