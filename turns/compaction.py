"""Compaction: keeps the model's history within its token budget, and sums up what is cut from it."""

from __future__ import annotations

from typing import Protocol

from conversation import ChannelConversation, ConversationManager
from llm_history import History
from turns.records import Records
from turns.turn import Turn


class Summarize(Protocol):
    async def __call__(self, history: History, bot_name: str) -> str:
        """A summary of the history in a few sentences; empty where none could be made."""


class Compaction:
    """Cuts histories. summarize: None: what is cut is not summed up. max_tokens: budget of a history."""

    def __init__(
        self, conversations: ConversationManager, records: Records, summarize: Summarize | None, max_tokens: int
    ) -> None:
        self._conversations = conversations
        self._records = records
        self._summarize = summarize
        self._max_tokens = max_tokens

    async def run(self, turn: Turn, conversation: ChannelConversation) -> None:
        """Cuts the history that the turn's agent is about to be given, if it is too long. Tool results go first, and
        are not summed up."""
        if (cut := conversation.cut(self._max_tokens)) is None:
            return
        question, summary, gone = turn.newest, "", conversation.llm_history[: cut.start]
        if gone and self._summarize:
            summary = await self._summarize(gone, question.place.bot_name)
        summary = self._conversations.shorten(conversation.channel_id, cut, summary)
        if gone:
            self._records.continued(question, cut.origin, summary)
