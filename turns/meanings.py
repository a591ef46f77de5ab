"""Finds out what a message means for open prompts and offers, and who is to answer it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from conversation import ChannelConversation, ConversationManager, MessageRecord
from decider import addresses_others, is_called, names_others
from discord_io.prompt_cards import LET_GO, PromptCards, ending_of
from miniapps.router import MiniAppRouter
from offers.open_offers import OpenOffers
from state.awaiting import ConversationStateManager, Meaning, RouteTarget
from state.message import as_one, without_call
from state.prompts import Prompt
from turns.turn import UNREAD, Discord, Question, said_before


class Meanings:
    """Reads what messages mean. Opens and closes no prompt."""

    def __init__(
        self,
        *,
        conversations: ConversationManager,
        states: ConversationStateManager,
        prompts: PromptCards,
        miniapps: MiniAppRouter,
        offers: OpenOffers,
        discord: Discord,
    ) -> None:
        self._conversations = conversations
        self._states = states
        self._prompts = prompts
        self._miniapps = miniapps
        self._offers = offers
        self._discord = discord

    def read(self, question: Question, conversation: ChannelConversation | None) -> Question:
        """The question with its meaning for an open prompt or offer, which is used to decide on it.

        Changes nothing yet.
        """
        channel_id, at = question.channel_id, question.message.timestamp
        if not (self._states.is_awaiting(channel_id, at) or self._offers.is_open(channel_id)):
            return question
        meaning = self._meaning(question.message, channel_id, conversation)
        if offer := self._offers.reply_of(channel_id, question.as_kept.message):
            meaning = replace(meaning, offer=offer)
        return replace(question, meaning=meaning)

    def routed(self, question: Question, conversation: ChannelConversation | None) -> Question:
        """A question to be answered with its meaning as of now, and with the mini-app that wants it.

        Unless it answers a prompt, it is read now, also if it was before: a prompt, a trip or soft context may have
        come up while a judge was asked.
        """
        if not (meaning := question.meaning).prompt:
            before = None if meaning is UNREAD else meaning
            meaning = self._meaning(question.message, question.channel_id, conversation, before=before)
        return self._wanted(replace(question, meaning=meaning))

    def _wanted(self, question: Question) -> Question:
        """The question with the mini-app that wants it, unless it answers a prompt, or is private: a mini-app keeps
        what it is told."""
        meaning = question.meaning
        app = None
        if not (meaning.prompt or question.is_private):
            app = self._miniapps.pick(meaning.query, meaning.soft_context)
        if app is None:
            return question
        return replace(question, meaning=replace(meaning, route_to=RouteTarget.MINIAPP, miniapp_id=app))

    def as_one(self, question: Question, utterance: MessageRecord) -> Question:
        """The question with the meaning of its author's whole burst.

        It is read again if the words are not those that were read, its prompt was answered by others, or a prompt, a
        trip or soft context may have come up while the burst waited.
        """
        prompt = question.meaning.prompt and self._states.find(question.channel_id, question.meaning.prompt.id)
        if prompt and question.meaning.query == self._words(utterance):
            return replace(question, meaning=replace(question.meaning, prompt=prompt))  # posted since, perhaps
        conversation = self._conversations.get(question.channel_id)
        meaning = self._meaning(utterance, question.channel_id, conversation, before=question.meaning)
        return self._wanted(replace(question, meaning=meaning))

    def anew(self, question: Question) -> Question:
        """A question as it is when its turn comes, or begins anew. One that stands alone is read again if it, or a part
        of its burst, was edited or deleted since; the card of the prompt that it answers then shows what it has become.
        """
        meaning = question.meaning
        if not question.stands_alone or question.card_id or meaning.about:
            return question
        if (conversation := self._conversations.get(question.channel_id)) is None:
            return question
        message, parts = question.current(conversation), [i for i in question.parts if not conversation.is_deleted(i)]
        earlier = [*filter(None, map(conversation.latest, parts))]
        utterance = as_one([*earlier, message], self._discord.bot()[1])
        # Where one was trimmed, what it said is still known by the meaning.
        if meaning.query and (len(earlier) < len(parts) or meaning.query == self._words(utterance)):
            return question
        prompt = meaning.prompt
        meaning = self._meaning(utterance, question.channel_id, conversation, before=meaning, prompt=prompt)
        if prompt:
            data = meaning.resolution_data
            self._prompts.settle([prompt], ending_of(data, prompt.ask) if data else LET_GO)
        return self._wanted(replace(question, message=message, meaning=meaning))

    def dropped(self, questions: Iterable[Question]) -> None:
        """Has the cards of the prompts that these would have answered say so: they are not answered any more."""
        self._prompts.settle([q.meaning.prompt for q in questions if q.meaning.prompt], LET_GO)

    def _meaning(
        self,
        message: MessageRecord,
        channel_id: int,
        conversation: ChannelConversation | None,
        *,
        before: Meaning | None = None,
        prompt: Prompt | None = None,
    ) -> Meaning:
        """prompt: the one that the message may answer; None: the one to whose card it replies, or any that is open."""
        me, at = self._discord.bot()[1], message.timestamp
        is_awaited = prompt is not None or self._states.is_awaiting(channel_id, at)
        if prompt is None and message.reply_to_id is not None:
            cards = (p for p in self._states.prompts(channel_id) if p.message_id == message.reply_to_id)
            prompt = next((p for p in cards if self._states.is_open(p, at)), None)
        is_for_others = is_awaited and (  # else it makes no difference
            addresses_others(message, me)
            or (conversation is not None and names_others(message, conversation, me))
            or (prompt is not None and prompt.user_id not in (None, message.author_id))
        )
        return self._states.process_message(
            self._words(message),
            channel_id,
            said_before(message, conversation.messages) if conversation else (),
            user_id=message.author_id,
            message_id=message.message_id,
            is_direct=is_called(message, me),
            is_for_others=is_for_others,
            keeps_prompt=True,
            before=before,
            at=at,
            prompt=prompt,
        )

    def _words(self, message: MessageRecord) -> str:
        name, me = self._discord.bot()
        return without_call(message.content, me, message.calls_bot or name)
