"""Compaction: keeps what the agent is given back of a conversation within its budget, and sums up what leaves it."""

from __future__ import annotations

from typing import Protocol

from conversation import ChannelConversation, ConversationManager
from llm_history import History
from turns.records import Records
from turns.turn import Turn


class Summarize(Protocol):
    async def __call__(self, history: History, bot_name: str) -> str:
        """What this came to, in a few sentences; empty where that is not to be had."""


class Compaction:
    """summarize: None: what leaves is not summed up. max_tokens: of what the agent is given back."""

    def __init__(
        self, conversations: ConversationManager, records: Records, summarize: Summarize | None, max_tokens: int
    ) -> None:
        self._conversations = conversations
        self._records = records
        self._summarize = summarize
        self._max_tokens = max_tokens

    async def run(self, turn: Turn, conversation: ChannelConversation) -> None:
        """Cuts what the turn's agent is about to be given, where it is too long. The first of what goes is what tools
        gave, which is not summed up."""
        if (cut := conversation.cut(self._max_tokens)) is None:
            return
        question, summary, gone = turn.newest, "", conversation.llm_history[: cut.start]
        if gone and self._summarize:
            summary = await self._summarize(gone, question.place.bot_name)
        summary = self._conversations.shorten(conversation.channel_id, cut, summary)
        if gone:
            self._records.continued(question, cut.origin, summary)
