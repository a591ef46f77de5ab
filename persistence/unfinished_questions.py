"""Compares an unfinished turn of an earlier process with what its channel contains now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from discord_io.backlog import LIMIT, Backlog, Message
from discord_io.channel_wire import Posted
from turns.pending_turns import TAKEN_BACK, Unfinished
from turns.turn import Question, Turn


def current_question(backlog: Backlog, question: Question, messages: Sequence[Message] | None) -> Question | None:
    """The question as it is in the channel now; None: it was deleted, or its text is unknown."""
    asked, question = question.message, replace(question, place=backlog.renewed(question.place))
    if messages is None or question.card_id:
        return None if question.is_private else question
    if found := next((m for m in messages if m.id == asked.message_id), None):
        return replace(question, message=backlog.to_record(found))
    was_read = not messages or len(messages) % LIMIT > 0 or asked.message_id < messages[-1].id
    return None if was_read else question


def turn_to_continue(
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


def needs_discord(question: Question) -> bool:
    """Whether only Discord has the text of a question. Of a click, Discord has none either."""
    return question.is_private and not question.card_id
