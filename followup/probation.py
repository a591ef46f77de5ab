"""Unprompted answers on probation: how people responded to answers that the bot gave without being called."""

from __future__ import annotations

from collections.abc import Sequence

from conversation import ChannelConversation
from state.message import MessageRecord
from understanding.acknowledgements import bare_acknowledgement

REACH = 12  # messages back
PASSED_OVER = 3  # messages of people after an answer, by which it counts as ignored
KEPT = 40  # latest messages of which without() makes a conversation


def pending(message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> list[MessageRecord]:
    """The bot's unprompted answers since its last answer that was prompted, or got a response; newest first."""
    found: list[MessageRecord] = []
    later: list[MessageRecord] = []
    answered: set[int | None] = set()
    for earlier in reversed(conversation.before(message, REACH)):
        if not earlier.is_bot:
            later.append(earlier)
            continue
        question = None if earlier.reply_to_id is None else conversation.find(earlier.reply_to_id)
        # Without the question nobody can tell whether it called the bot.
        if question is None or question.calls_bot or bot_user_id in question.addressed:
            break
        # Its addressee may have responded with a message that was answered too, or with thanks, a laugh or the like.
        own = [m for m in later if m.author_id in earlier.addressees]
        responded = any(m.message_id in answered or bare_acknowledgement(m.text) is not None for m in own)
        if responded or any(bot_user_id in m.addressed for m in later):
            break
        found.append(earlier)
        answered.add(earlier.reply_to_id)
    return found


def passed_over(
    answers: Sequence[MessageRecord], message: MessageRecord, conversation: ChannelConversation
) -> list[MessageRecord]:
    """Those of these answers that were ignored: afterwards their addressee, or several people, said other things."""
    people = [m for m in conversation.before(message, REACH) if not m.is_bot]
    found = []
    for answer in {answer.reply_to_id: answer for answer in answers}.values():  # an answer in parts counts once
        later = [m for m in people if m.message_id > answer.message_id]
        if len(later) >= PASSED_OVER or any(m.author_id in answer.addressees for m in later):
            found.append(answer)
    return found


def without(answers: Sequence[MessageRecord], conversation: ChannelConversation) -> ChannelConversation:
    """A conversation of the latest messages without these answers and their questions.

    A question left without its answer would look as if the bot had ignored it.
    """
    gone = {answer.message_id for answer in answers} | {answer.reply_to_id for answer in answers}
    messages = [m for m in conversation.messages[-KEPT:] if m.message_id not in gone]
    return ChannelConversation(conversation.channel_id, conversation.started_at, conversation.last_activity, messages)
