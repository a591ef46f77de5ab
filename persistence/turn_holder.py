"""Applies edits, and requests to forget, to questions that are still to be answered."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from conversation import ConversationManager, MessageRecord
from persistence.holders import Edit, Forget, Holder
from persistence.stored_state import Encode
from state.message import requoted
from state.optout import without_quote
from turns.pending_turns import NOTHING, PendingTurns, read_unfinished
from turns.private_answers import PrivateAnswers
from turns.turn import Question
from turns.turn_queue import TurnQueue


class TurnHolder(Holder):
    """The questions that are unfinished, and the turns that answer them. conversations: say whose words a card has."""

    def __init__(self, turns: TurnQueue, pending: PendingTurns, conversations: ConversationManager) -> None:
        self._turns = turns
        self._pending = pending
        self._conversations = conversations

    def revised(self, edit: Edit) -> bool:
        # One that is no longer in the conversation may still be asked.
        asked = {one for q in self._pending.of(edit.channel_id).questions if not q.is_private for one in q.said_in}
        is_reworded = edit.is_reworded or (edit.may_be_reworded and edit.message.message_id in asked)
        if is_reworded:
            self._turns.reworded(edit.channel_id, edit.message)
        if edit.may_be_reworded:
            self._turns.requoted(edit.channel_id, lambda m: m.reply_to_id == edit.message.message_id, edit.message)
        return is_reworded

    def forget(self, what: Forget) -> None:
        for channel_id in what.channel_ids:
            if what.author_id is not None:  # it may quote them: who goes on after a kill has it answered anew
                self._pending.ready(channel_id, None)
                self._turns.unread(channel_id, partial(self._may_quote, what.author_id))
            if what.message_ids:
                self._turns.unread(channel_id, partial(self._goes_on_with, channel_id, what.message_ids))
            for message_id in what.message_ids or ():
                self._turns.changed(channel_id, message_id)
            self._turns.withdraw(channel_id, what.covers)
            self._turns.requoted(channel_id, partial(self._is_quote_covered, channel_id, what))

    def _may_quote(self, author_id: int, question: Question) -> bool:
        """Whether it answers something of ours that may have this person's words."""
        prompt, conversation = question.meaning.prompt, self._conversations.get(question.channel_id)
        if prompt is None:
            return bool(question.meaning.about)
        return conversation is None or conversation.may_quote(prompt.message_id, author_id)

    def _goes_on_with(self, channel_id: int, message_ids: Collection[int], question: Question) -> bool:
        """Whether it has an answer gone on with that one of these messages is, or is a part of."""
        prompt = question.meaning.prompt
        if prompt is None or not prompt.ask.ends_with:
            return False
        answered = self._conversations.answered_by(channel_id, message_ids)
        return prompt.message_id in message_ids or prompt.source_id in answered

    def _is_quote_covered(self, channel_id: int, what: Forget, message: MessageRecord) -> bool:
        """Whether its quote goes, also of a message in the conversation, which knows whose words that has."""
        if what.covers_quote(message):
            return True
        conversation = self._conversations.get(channel_id)
        if conversation is None or message.reply_to_id is None:
            return False
        quoted = conversation.find(message.reply_to_id)  # None: it was trimmed, or is from before the conversation
        return what.author_id in (quoted.drew_on if quoted else conversation.looked_up)

    def snapshot(self, channel_id: int) -> Encode | None:
        return self._pending.taken(channel_id)

    def restore(self, channel_id: int, stored: Any) -> None:
        self._pending.adopt(channel_id, read_unfinished(stored))

    def leave(self, channel_id: int) -> None:
        self._pending.adopt(channel_id, NOTHING)


class PrivateHolder(Holder):
    """What private answers, which are kept nowhere, are about while they are made."""

    def __init__(self, answers: PrivateAnswers) -> None:
        self._answers = answers

    def revised(self, edit: Edit) -> bool:
        def change(message: MessageRecord) -> MessageRecord:
            if message.message_id == edit.message.message_id:
                return edit.message
            return requoted(message, edit.message) if message.reply_to_id == edit.message.message_id else message

        if edit.may_be_reworded:
            self._answers.changed(edit.channel_id.__eq__, change)
        return False

    def forget(self, what: Forget) -> None:
        def change(message: MessageRecord) -> MessageRecord | None:
            if what.covers(message):
                return None
            return without_quote(message) if message.reply_to_id and what.covers_quote(message) else message

        # A person is forgotten wherever they spoke, also where nothing is kept.
        self._answers.changed(lambda here: what.author_id is not None or here in what.channel_ids, change)
