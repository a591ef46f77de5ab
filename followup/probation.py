"""Unprompted answers are answers on probation: what came of those that the bot gave without being called."""

from __future__ import annotations

from collections.abc import Sequence

from conversation import ChannelConversation
from state.message import MessageRecord
from understanding.acknowledgements import bare_acknowledgement

REACH = 12  # messages back
PASSED_OVER = 3  # messages of people after which nobody will take it up any more
KEPT = 40  # messages that are read again without an answer


def pending(message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> list[MessageRecord]:
    """The bot's newest unprompted answers that nobody has taken up yet, the newest first, up to one that was."""
    found: list[MessageRecord] = []
    later: list[MessageRecord] = []
    answered: set[int | None] = set()
    for earlier in reversed(conversation.before(message, REACH)):
        if not earlier.is_bot:
            later.append(earlier)
            continue
        if _was_called(earlier, conversation, bot_user_id) or _is_taken_up(earlier, later, answered, bot_user_id):
            break
        found.append(earlier)
        answered.add(earlier.reply_to_id)
    return found


def passed_over(
    answers: Sequence[MessageRecord], message: MessageRecord, conversation: ChannelConversation
) -> list[MessageRecord]:
    """Those of them behind which whom it was to has spoken of other things, or several others have."""
    before = conversation.before(message, REACH)
    whole = {answer.reply_to_id: answer for answer in answers}  # of several parts one counts
    return [answer for answer in whole.values() if _is_passed_over(answer, before)]


def _is_passed_over(answer: MessageRecord, before: Sequence[MessageRecord]) -> bool:
    later = [m for m in before if m.message_id > answer.message_id and not m.is_bot]
    return len(later) >= PASSED_OVER or any(m.author_id in answer.addressees for m in later)


def _was_called(answer: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> bool:
    """Whether somebody had called the bot before it said this; of what is not known any more nobody can say."""
    question = None if answer.reply_to_id is None else conversation.find(answer.reply_to_id)
    return question is None or bool(question.calls_bot) or bot_user_id in question.addressed


def _is_taken_up(
    answer: MessageRecord, later: Sequence[MessageRecord], answered: set[int | None], bot_user_id: int
) -> bool:
    """Whether somebody called the bot since, or whom it spoke to went on and was answered, or thanked it or laughed."""
    return any(
        bot_user_id in m.addressed
        or (m.author_id in answer.addressees and (m.message_id in answered or bare_acknowledgement(m.text) is not None))
        for m in later
    )


def without(answers: Sequence[MessageRecord], conversation: ChannelConversation) -> ChannelConversation:
    """The latest messages of the conversation as if neither these answers nor what they answer had been said.

    A question that stood there without its answer would look as if the bot had left it alone.
    """
    gone = {answer.message_id for answer in answers} | {answer.reply_to_id for answer in answers}
    messages = [m for m in conversation.messages[-KEPT:] if m.message_id not in gone]
    return ChannelConversation(conversation.channel_id, conversation.started_at, conversation.last_activity, messages)
