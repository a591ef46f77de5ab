"""Asks the judge model, within its budget and deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from conversation import ChannelConversation, MessageRecord
from decider import JUDGE_DEADLINE_SECONDS, Judge, JudgeError, Verdict
from place import Place
from state.budget import Budget

log = structlog.get_logger()

Answerable = Callable[[MessageRecord, Sequence[MessageRecord]], Awaitable[bool]]


class ChannelJudge:
    """A judge that decides one message per channel at a time, while there is budget. Raises JudgeError."""

    def __init__(self, judge: Judge, budget: Budget) -> None:
        self._judge = judge
        self._budget = budget
        self._judging: set[int] = set()

    async def __call__(
        self, message: MessageRecord, conversation: ChannelConversation, place: Place | None = None
    ) -> Verdict:
        if conversation.channel_id in self._judging or not self._budget.may_judge():
            raise JudgeError("it is busy with this channel, or the budget is nearly spent")
        self._judging.add(conversation.channel_id)
        try:
            return await self._judge(message, conversation, place)
        finally:
            self._judging.discard(conversation.channel_id)


class OfferJudge:
    """Judges whether the bot can answer a question that nobody put to it; False where the model cannot be asked."""

    def __init__(self, answerable: Answerable, budget: Budget) -> None:
        self._answerable = answerable
        self._budget = budget

    async def __call__(self, question: MessageRecord, recent: Sequence[MessageRecord]) -> bool:
        if not self._budget.may_judge():
            return False
        try:
            async with asyncio.timeout(JUDGE_DEADLINE_SECONDS):
                return await self._answerable(question, recent)
        except (TimeoutError, JudgeError) as error:
            log.info("offer_not_judged", message=question.message_id, detail=str(error) or "it took too long")
            return False
