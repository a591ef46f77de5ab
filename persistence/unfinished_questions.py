"""Finishes what an earlier process had begun to answer, as it stands in its channel now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from clock import Clock
from conversation import ConversationManager, MessageRecord
from discord_io.backlog import LIMIT, Backlog, Message
from discord_io.channel_wire import Posted
from discord_io.streamed_reply import DELIVERY_SECONDS
from persistence.changes import Changes
from persistence.expired_conversations import ExpiredConversations
from persistence.snapshots import Snapshots
from state.message import Appended, requoted
from turns.pending_turns import NOTHING, TAKEN_BACK, Unfinished
from turns.turn import Question, Turn
from turns.turn_queue import TurnQueue

log = structlog.get_logger()

# Waits before reading a channel is tried again; after the last it is given up.
RETRY_SECONDS = (5.0, 20.0)


class UnfinishedQuestions:
    """Takes up the questions that an earlier process left in the channels' state, and the turn that it had begun.

    slots: limits how many channels are read at once.
    """

    def __init__(
        self,
        slots: asyncio.Semaphore,
        *,
        backlog: Backlog,
        conversations: ConversationManager,
        turns: TurnQueue,
        snapshots: Snapshots,
        changes: Changes,
        clock: Clock,
    ) -> None:
        self._slots = slots
        self._backlog = backlog
        self._conversations = conversations
        self._turns = turns
        self.pending = turns.pending
        self._snapshots = snapshots
        self._changes = changes
        self._clock = clock

    async def finish(
        self, channel_id: int, expired: ExpiredConversations, oldest: datetime, is_over: Callable[[], bool]
    ) -> bool:
        """Takes up a channel's questions. Returns False if they are left as they are, since is_over().

        oldest: those from before that time are dropped. is_over: whether the process or the gateway session ends.
        """
        questions = self.pending.of(channel_id).questions
        dropped = [(q, why) for q in questions if (why := self._why_dropped(q, oldest))]
        for question, why in dropped:
            log.warning("question_dropped", channel=channel_id, message=question.message.message_id, why=why)
        self.pending.dropped(channel_id, [question for question, _ in dropped])
        asked = self.pending.of(channel_id).questions
        if not asked:
            self.pending.adopt(channel_id, NOTHING)
            return True
        messages = await self._history(asked, channel_id, is_over)
        if messages is None and is_over():
            return False
        asked_ids = {question.message.message_id for question in asked}
        read = {m.id: await self._backlog.to_record(m) for m in messages or () if m.id in asked_ids}
        left = self.pending.of(channel_id)  # read again, as some may have been forgotten meanwhile
        taken_back = left.begun if left.turn and left.turn.ready == TAKEN_BACK else []
        found = [None if q in taken_back else _current(self._backlog, q, messages, read) for q in left.questions]
        kept = replace(left, questions=tuple(question for question in found if question))
        gone = {q.message.message_id for q, there in zip(left.questions, found, strict=True) if not there}
        if gone:
            kept = replace(kept, turn=kept.turn and kept.turn.without({("message", one) for one in gone}))
        turn = _to_continue(self._backlog, left, kept, messages, self._clock())
        if gone:
            self._changes.deleted(channel_id, gone)
        self.pending.adopt(channel_id, kept if kept.questions or turn else NOTHING)
        if kept.questions:
            self._reopen(channel_id, expired, left, kept)
            log.info("resumed_questions", channel=channel_id, messages=[q.message.message_id for q in kept.questions])
        if turn or kept.waiting:
            # The process may have posted an answer that it did not store any more.
            ids = [question.reply_to for question in kept.waiting if not question.card_id]
            stood = {one: answer for one in ids if (answer := self._backlog.answer(messages or (), one, ()))}
            self._turns.resume(channel_id, turn, kept.waiting, stood)
        return True

    def _why_dropped(self, question: Question, oldest: datetime) -> str:
        """Why a question is not answered any more; empty: it is answered."""
        if question.message.timestamp <= oldest:
            return "too old"
        is_answered = self._backlog.is_answered(question.place, question.message.author_id)
        return "" if is_answered else "the settings of now leave its place out"

    async def _history(
        self, asked: Sequence[Question], channel_id: int, is_over: Callable[[], bool]
    ) -> list[Message] | None:
        """The channel's messages from the first question on; None: they cannot be read.

        If only Discord has the text of a question, reading is tried again for DELIVERY_SECONDS.
        """
        after = min(question.reply_to for question in asked) - 1
        loop, tries = asyncio.get_running_loop(), 0
        until = loop.time() + DELIVERY_SECONDS
        while True:
            async with self._slots:
                messages = await self._backlog.all_since(asked[0].guild_id, channel_id, after)
            # Only Discord has the text of a private question. Of a click, Discord has none either.
            is_needed = any(q.is_private and not q.card_id for q in self.pending.of(channel_id).questions)
            if messages is not None or is_over() or not (is_needed and self._backlog.may_read(channel_id)):
                return messages
            wait = RETRY_SECONDS[min(tries, len(RETRY_SECONDS) - 1)]
            if loop.time() + wait > until:
                return None
            tries += 1
            await asyncio.sleep(wait)

    def _reopen(self, channel_id: int, expired: ExpiredConversations, left: Unfinished, kept: Unfinished) -> None:
        """Makes sure that the questions are in an active conversation, edited ones with their new text."""
        expired.revive(channel_id, min(q.message.timestamp for q in kept.questions))
        conversation = self._conversations.get(channel_id) or self._conversations.start(channel_id, [])
        if kept.turn and kept.turn.ready:  # the conversation in which it was made may be over
            self._conversations.record_looked_up(channel_id, [("person", who) for who in kept.turn.ready.people])
        words = {q.message.message_id: q.as_kept.message.content for q in left.questions}
        for question in kept.questions:
            asked = question.as_kept.message
            if conversation.find(asked.message_id) is None:
                # A kill may have come after the question was stored, and before the transcript.
                self._conversations.record_message(channel_id, asked)
                parent_id = question.place.parent_id
                self._snapshots.append(Appended(channel_id, question.guild_id, asked, parent_id=parent_id))
            if asked.content != words[asked.message_id]:
                self._conversations.revise(channel_id, asked)
                self._snapshots.revised(channel_id, asked)
                self._snapshots.purge(channel_id)


def _current(
    backlog: Backlog, question: Question, messages: Sequence[Message] | None, read: Mapping[int, MessageRecord]
) -> Question | None:
    """The question as it is in the channel now; None: it was deleted, or its text is unknown. read: the questions'
    messages among `messages`."""
    asked, question = question.message, replace(question, place=backlog.renewed(question.place))
    if messages is None or question.card_id:
        return None if question.is_private else question
    if found := read.get(asked.message_id):
        if not (question.is_private or asked.reply_to_text or asked.reply_files):
            found = requoted(found, None)  # what was dropped of it stays dropped, also while it was being read
        return replace(question, message=found)
    was_read = not messages or len(messages) % LIMIT > 0 or asked.message_id < messages[-1].id
    return None if was_read else question


def _to_continue(
    backlog: Backlog, left: Unfinished, kept: Unfinished, messages: Sequence[Message] | None, now: datetime
) -> Turn | None:
    """The unfinished turn, to be continued; if all its questions were deleted, a turn that deletes its answer."""
    begun = left.turn
    if begun is None or not left.begun:
        return None
    if messages is None:
        # Only the ids are known; the first edit replaces whatever the messages contain.
        adopted = [Posted(message_id, now) for message_id in begun.posted]
    else:
        answered = dict.fromkeys([*(q.reply_to for q in reversed(left.begun)), *reversed(begun.questions)])
        found = (backlog.answer(messages, message_id, begun.posted) for message_id in answered)
        adopted = next(filter(None, found), [])
    if kept.begun:
        return Turn(kept.begun, adopted=adopted, ready=kept.turn.ready if kept.turn else None)
    return Turn(left.begun, adopted=adopted, ready=TAKEN_BACK) if adopted else None
