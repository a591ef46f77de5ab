"""Intake: reads a message's meaning for open prompts and offers, and queues it, for an agent or a mini-app."""

from __future__ import annotations

from dataclasses import replace

from conversation import ChannelConversation, ConversationManager, MessageRecord
from decider import addresses_others, is_called, names_others
from discord_io.prompt_cards import PromptCards, ending_of
from miniapps.router import MiniAppRouter
from offers.open_offers import OpenOffers
from state.awaiting import ConversationStateManager, Meaning, RouteTarget
from state.message import as_one, without_call
from turns.turn import UNREAD, Discord, Question, said_before
from turns.turn_queue import TurnQueue


class Intake:
    """Reads and queues messages."""

    def __init__(
        self,
        *,
        conversations: ConversationManager,
        states: ConversationStateManager,
        prompts: PromptCards,
        miniapps: MiniAppRouter,
        offers: OpenOffers,
        turns: TurnQueue,
        discord: Discord,
    ) -> None:
        self._conversations = conversations
        self._states = states
        self._prompts = prompts
        self._miniapps = miniapps
        self._offers = offers
        self._turns = turns
        self._discord = discord

    def read(self, question: Question, conversation: ChannelConversation | None) -> Question:
        """The question with its meaning for an open prompt or offer, which is used to decide on it.

        Changes nothing yet.
        """
        channel_id, at = question.channel_id, question.message.timestamp
        if self._states.is_awaiting(channel_id, at) or self._offers.is_open(channel_id):
            return self._read(question, conversation)
        return question

    def _read(self, question: Question, conversation: ChannelConversation | None) -> Question:
        meaning = self._meaning(question.message, question.channel_id, conversation)
        if offer := self._offers.reply_of(question.channel_id, question.as_kept.message):
            meaning = replace(meaning, offer=offer)
        return replace(question, meaning=meaning)

    def routed(self, question: Question, conversation: ChannelConversation | None) -> Question:
        """A question to be answered with its meaning, read now if it was not, and with the mini-app that wants it,
        unless it answers a prompt, or is private: a mini-app keeps what it is told."""
        question = self._read(question, conversation) if question.meaning is UNREAD else question
        meaning = question.meaning
        app = None
        if not (meaning.prompt or question.is_private):
            app = self._miniapps.pick(meaning.query, meaning.soft_context)
        if app is None:
            return question
        if not question.reads_history:  # the mini-app may keep words from before the author joined
            message = question.message
            since = conversation.seen_since({message.author_id}) if conversation else message.message_id
            if any(message_id < since for message_id in self._miniapps.said(app, question.channel_id)):
                return question
        return replace(question, meaning=replace(meaning, route_to=RouteTarget.MINIAPP, miniapp_id=app))

    def submit(self, *questions: Question) -> None:
        """Queues a message for the prompt that it resolves, the mini-app that wants it, or the agent.

        Several questions are one burst of one person, with one meaning.
        """
        burst = questions[0].message.message_id if len(questions) > 1 else None
        *earlier, question = [replace(q, burst=burst) for q in questions]
        utterance = as_one([q.message for q in questions], self._discord.bot()[1])
        if question.meaning.prompt is None or question.meaning.query != self._words(utterance):
            # The words are not those that were read, after an edit or in a burst; or a prompt, a trip or soft context
            # may have come up while the burst waited.
            conversation = self._conversations.get(question.channel_id)
            meaning = self._meaning(utterance, question.channel_id, conversation, is_again=True)
            question = self.routed(replace(question, meaning=meaning), conversation)
        if not question.stands_alone:  # otherwise the newest question carries the words of all
            for part in earlier:
                self._turns.submit(replace(part, meaning=UNREAD))
        self.resolve(question, question.meaning)
        prompt, data = question.meaning.prompt, question.meaning.resolution_data
        if prompt and data:
            self._prompts.settle([prompt], ending_of(data, prompt.ask))

    def resolve(self, question: Question, meaning: Meaning) -> None:
        """Queues a message or a click, and closes the prompt that it resolves."""
        self._turns.submit(replace(question, meaning=meaning))
        if meaning.prompt:
            self._states.clear_prompt(meaning.prompt)

    def _meaning(
        self,
        message: MessageRecord,
        channel_id: int,
        conversation: ChannelConversation | None,
        *,
        is_again: bool = False,
    ) -> Meaning:
        me = self._discord.bot()[1]
        is_for_others = self._states.is_awaiting(channel_id, message.timestamp) and (  # else it makes no difference
            addresses_others(message, me) or (conversation is not None and names_others(message, conversation, me))
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
            is_again=is_again,
            at=message.timestamp,
        )

    def _words(self, message: MessageRecord) -> str:
        name, me = self._discord.bot()
        return without_call(message.content, me, message.calls_bot or name)
