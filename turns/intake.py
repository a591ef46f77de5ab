"""From a decision to a turn: what a message means, who answers it, and what of ours it resolves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from conversation import ChannelConversation, ConversationManager, MessageRecord
from decider import addresses_others, is_explicit_trigger, names_others
from delivery.prompts import LET_GO, Prompts, ending_of
from miniapps.router import MiniAppRouter
from state.awaiting import ConversationStateManager, Miss, ProcessingResult, Prompt, RouteTarget
from state.message import without_call
from turns.lanes import Turns
from turns.turn import Question

MESSAGES_BEFORE = 10  # among which an incomplete query's missing words are looked for


class Intake:
    """Takes in the messages that want an answer. bot: the bot's name and id."""

    def __init__(
        self,
        *,
        conversations: ConversationManager,
        states: ConversationStateManager,
        prompts: Prompts,
        miniapps: MiniAppRouter,
        turns: Turns,
        bot: Callable[[], tuple[str, int]],
    ) -> None:
        self._conversations = conversations
        self._states = states
        self._prompts = prompts
        self._miniapps = miniapps
        self._turns = turns
        self._bot = bot

    def resolves(self, message: MessageRecord, conversation: ChannelConversation) -> ProcessingResult | None:
        """What a message means that resolves something we asked its author; nothing has happened by that yet."""
        if self._states.awaited_of(conversation.channel_id, message.author_id) is None:
            return None
        meaning = self._meaning(message, conversation)
        return meaning if meaning.prompt else None

    def resolve(self, question: Question, meaning: ProcessingResult) -> None:
        """Queues a message or a click that resolves a prompt, which is over with this."""
        if meaning.prompt:
            self._states.clear_prompt(meaning.prompt)
        self._turns.submit(replace(question, meaning=meaning))

    def submit(self, question: Question) -> None:
        """Queues any other message, for the mini-app that wants it or for the agent."""
        conversation = self._conversations.get(question.channel_id)
        if conversation:
            question = replace(question, meaning=self._routed(self._meaning(question.message, conversation)))
        self._turns.submit(replace(question, asks_again=self._missed(question)))

    def settle(self, meaning: ProcessingResult) -> None:
        """The card of the prompt that was resolved shows how."""
        if meaning.prompt and meaning.resolution_data:
            self._prompts.settle([meaning.prompt], ending_of(meaning.resolution_data, meaning.prompt.ask))

    def _meaning(self, message: MessageRecord, conversation: ChannelConversation) -> ProcessingResult:
        name, me = self._bot()
        return self._states.process_message(
            without_call(message.content, me, name),
            conversation.channel_id,
            _said_before(message, conversation),
            user_id=message.author_id,
            is_direct=is_explicit_trigger(message, me),
            is_for_others=addresses_others(message, me) or names_others(message, conversation, me),
        )

    def _routed(self, meaning: ProcessingResult) -> ProcessingResult:
        app = self._miniapps.pick(meaning.query, meaning.soft_context)
        return replace(meaning, route_to=RouteTarget.MINIAPP, miniapp_id=app) if app else meaning

    def _missed(self, question: Question) -> Prompt | None:
        """The prompt of its author's that is to be put once more below the answer, since this did not resolve it."""
        match self._states.missed(question.channel_id, question.message.author_id):
            case (prompt, Miss.ASKS_AGAIN):
                return prompt
            case (prompt, Miss.LETS_GO):
                self._prompts.settle([prompt], LET_GO)
        return None


def _said_before(message: MessageRecord, conversation: ChannelConversation) -> list[Mapping[str, str]]:
    """What the author and the bot said before this, and what the bot answered, oldest first."""
    before = conversation.before(message, MESSAGES_BEFORE)
    answered = {m.reply_to_id for m in before if m.is_bot}
    return [
        {"role": "assistant" if m.is_bot else "user", "content": m.content}
        for m in before
        if m.is_bot or m.author_id == message.author_id or m.message_id in answered
    ]
