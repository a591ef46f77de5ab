"""From a decision to a turn: what a message means, who answers it, and what of ours it resolves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from conversation import ChannelConversation, ConversationManager, MessageRecord
from decider import addresses_others, is_explicit_trigger, names_others
from discord_io.prompt_cards import PromptCards, ending_of
from miniapps.router import MiniAppRouter
from state.awaiting import ConversationStateManager, ProcessingResult, RouteTarget
from state.message import as_one, without_call
from turns.turn import Question, said_before
from turns.turn_queue import TurnQueue


class Intake:
    """Takes in the messages that want an answer. bot: the bot's name and id."""

    def __init__(
        self,
        *,
        conversations: ConversationManager,
        states: ConversationStateManager,
        prompts: PromptCards,
        miniapps: MiniAppRouter,
        turns: TurnQueue,
        bot: Callable[[], tuple[str, int]],
    ) -> None:
        self._conversations = conversations
        self._states = states
        self._prompts = prompts
        self._miniapps = miniapps
        self._turns = turns
        self._bot = bot

    def read(self, question: Question, conversation: ChannelConversation) -> Question:
        """The question with its meaning, if it resolves something we asked its author; nothing happens by that yet."""
        message = question.as_kept.message
        if self._states.awaited_of(conversation.channel_id, message.author_id) is None:
            return question
        meaning = self._meaning(message, conversation)
        return replace(question, meaning=meaning) if meaning.prompt else question

    def needs_model(self, question: Question) -> bool:
        """Whether a message that wants an answer is for the agent, and not for a mini-app."""
        if question.meaning.prompt:
            return not question.by_miniapp
        words = self._words(question.as_kept.message)
        return self._miniapps.pick(words, self._states.soft_context(question.channel_id)) is None

    def submit(self, *questions: Question) -> None:
        """Queues a message, for the prompt that it resolves, the mini-app that wants it, or the agent.

        Several are of one person, said in one go, and mean something together.
        """
        if questions[0].meaning.prompt:
            self._answer_prompt(questions[0], questions[0].meaning)
            return
        burst = questions[0].message.message_id if len(questions) > 1 else None
        *earlier, question = [replace(q, burst=burst) for q in questions]
        conversation = self._conversations.get(question.channel_id)
        utterance = as_one([q.message for q in questions], self._bot()[1])
        meaning = self._meaning(utterance, conversation) if conversation else question.meaning
        if meaning.prompt:
            self._answer_prompt(question, meaning)
            return
        routed = self._routed(meaning)
        if routed.route_to is RouteTarget.AGENT:  # a mini-app is given all the words with the newest
            for part in earlier:
                self._turns.submit(part)
        self._queue(question, routed)

    def resolve(self, question: Question, meaning: ProcessingResult) -> None:
        """Queues a message or a click that resolves a prompt, which is over with this."""
        self._queue(question, meaning)
        if meaning.prompt:
            self._states.clear_prompt(meaning.prompt)

    def _queue(self, question: Question, meaning: ProcessingResult) -> None:
        self._states.count(meaning, question.channel_id)
        self._turns.submit(replace(question, meaning=meaning))

    def _answer_prompt(self, question: Question, meaning: ProcessingResult) -> None:
        """Queues a message that resolves a prompt, whose card then shows how."""
        self.resolve(question, meaning)
        if meaning.prompt and meaning.resolution_data:
            self._prompts.settle([meaning.prompt], ending_of(meaning.resolution_data, meaning.prompt.ask))

    def _meaning(self, message: MessageRecord, conversation: ChannelConversation) -> ProcessingResult:
        me = self._bot()[1]
        return self._states.understand(
            self._words(message),
            conversation.channel_id,
            said_before(message, conversation),
            user_id=message.author_id,
            message_id=message.message_id,
            is_direct=is_explicit_trigger(message, me),
            is_for_others=addresses_others(message, me) or names_others(message, conversation, me),
        )

    def _words(self, message: MessageRecord) -> str:
        name, me = self._bot()
        return without_call(message.content, me, message.calls_bot or name)

    def _routed(self, meaning: ProcessingResult) -> ProcessingResult:
        app = self._miniapps.pick(meaning.query, meaning.soft_context)
        return replace(meaning, route_to=RouteTarget.MINIAPP, miniapp_id=app) if app else meaning
