"""Intake: queues messages and clicks with their meaning, and closes the prompts that they resolve."""

from __future__ import annotations

from dataclasses import replace

from discord_io.prompt_cards import PromptCards, ending_of
from state.awaiting import ConversationStateManager, Meaning
from state.message import as_one
from turns.meanings import Meanings
from turns.turn import UNREAD, Discord, Question
from turns.turn_queue import TurnQueue


class Intake:
    """Queues messages."""

    def __init__(
        self,
        *,
        meanings: Meanings,
        states: ConversationStateManager,
        prompts: PromptCards,
        turns: TurnQueue,
        discord: Discord,
    ) -> None:
        self._meanings = meanings
        self._states = states
        self._prompts = prompts
        self._turns = turns
        self._discord = discord

    def submit(self, *questions: Question, is_read: bool = False) -> None:
        """Queues a message for the prompt that it resolves, the mini-app that wants it, or the agent.

        Several questions are one burst of one person, with one meaning. is_read: whether it was read just now, and
        nothing can have come up since.
        """
        if len(questions) > 1:
            questions = tuple(replace(q, burst=questions[0].message.message_id) for q in questions)
        *earlier, question = questions
        if not is_read:
            utterance = as_one([q.message for q in questions], self._discord.bot()[1])
            question = self._meanings.as_one(question, utterance)
        if question.stands_alone:  # it carries the words of all
            question = replace(question, parts=tuple(part.message.message_id for part in earlier))
        else:
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
