"""The general agent and the others, and which of them answers a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents.coordinator import Choice, Picker, Why
from agents.gateway import AgentGateway, Bot
from conversation import ChannelConversation, MessageRecord
from place import Place
from state.agent_state import GENERAL
from state.message import as_one
from understanding.shared_context import shared_context

RECENT_MESSAGES = 12


class Team:
    """general: answers unless another agent is picked. others: by their names. has_several: whether there are any.

    shares: whether each agent gets what people mentioned last, whichever agent they said it to.
    """

    def __init__(
        self,
        general: AgentGateway,
        others: Mapping[str, AgentGateway],
        picker: Picker,
        *,
        bot: Bot,
        shares: bool = False,
    ) -> None:
        self._agents = {**others, GENERAL: general}
        self.has_several = len(self._agents) > 1
        self._picker = picker
        self._bot = bot
        self._shares = shares and self.has_several

    def __getitem__(self, name: str) -> AgentGateway:
        return self._agents[name]

    async def pick(
        self,
        question: MessageRecord,
        conversation: ChannelConversation,
        place: Place,
        earlier: Sequence[MessageRecord] = (),
    ) -> Choice:
        """Picks the agent that answers a message. A reply to an agent is for that agent, and so is a follow-up without
        a mention.

        earlier: its author's messages of the same burst.
        """
        if not self.has_several:
            return Choice(GENERAL, Why.ONLY)
        _, bot_id = self._bot.bot()
        question = as_one([*earlier, question], bot_id)
        message = conversation.find(question.reply_to_id) if question.reply_to_id is not None else None
        if message is None or not message.is_bot:
            message = conversation.last_words_to(question.author_id)
        is_reply = question.reply_to_id is not None and question.reply_to_author_id == bot_id
        before = [m for m in conversation.messages if m.message_id < question.message_id]
        return await self._picker.pick(
            question,
            before[-RECENT_MESSAGES:],
            is_addressed=bot_id in question.mentions and not is_reply,
            last=conversation.remote.asked.get(message.message_id, GENERAL) if message else None,
            bot_name=place.bot_name,
        )

    def shared(
        self, questions: Sequence[MessageRecord], conversation: ChannelConversation, place: Place
    ) -> Mapping[str, str]:
        """What people mentioned last, up to these questions; empty with only one agent, or if nothing is shared."""
        if not self._shares:
            return {}
        newest = max(question.message_id for question in questions)
        seen = [m for m in conversation.messages if m.message_id <= newest and not m.is_other_bot]
        return shared_context(seen, bot_id=self._bot.bot()[1], bot_name=place.bot_name)
