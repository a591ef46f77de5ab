"""What offers are to the conversation of their channel, and how a Yes to one becomes a turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from conversation import ConversationManager, MessageRecord
from decider import OFFER_ACCEPTED, Decision, Reason, RecentDecisions
from delivery.post import Posted
from initiative.occasion import Note
from initiative.offer import Offer
from miniapps.base import FollowUp
from state.awaiting import ProcessingResult, RouteTarget
from turns.intake import Intake
from turns.turn import Question


class OfferTurns:
    """bot: the bot's name and id. keep: (channel id, guild id, message) -> it stands in the transcript."""

    def __init__(
        self,
        *,
        conversations: ConversationManager,
        intake: Intake,
        decisions: RecentDecisions,
        keep: Callable[[int, int, MessageRecord], None],
        bot: Callable[[], tuple[str, int]],
    ) -> None:
        self._conversations = conversations
        self._intake = intake
        self._decisions = decisions
        self._keep = keep
        self._bot = bot

    def stands(self, channel_id: int, offer: Offer, posted: Posted) -> None:
        """An offer was posted: as long as it is open, the channel has a conversation, in which it can be answered."""
        subject = offer.occasion.subject
        said = [subject] if subject else []
        if conversation := self._conversations.get(channel_id):
            said = [message for message in said if conversation.find(message.message_id) is None]
            conversation.precede(said)
        else:
            self._conversations.start(channel_id, said)
        record = self._record(offer, posted)
        self._conversations.record_message(channel_id, record, by_model=False)
        for message in (*said, record):
            self._keep(channel_id, offer.guild_id, message)
        decision = Decision(True, Reason.OFFERED, evidence=offer.occasion.evidence)
        self._decisions.add(posted.message_id, channel_id, offer.user_id, decision)

    def _record(self, offer: Offer, posted: Posted) -> MessageRecord:
        name, me = self._bot()
        return MessageRecord(
            author=name,
            author_id=me,
            content=offer.text,
            timestamp=posted.at,
            is_bot=True,
            message_id=posted.message_id,
            mentioned=frozenset(),
            addressees=frozenset({offer.user_id}),
            unasked=True,
        )

    def take_up(self, offer: Offer, said: Question) -> None:
        """Has an offer that was accepted answered with a turn. said: the Yes."""
        if note := offer.occasion.note:
            meaning = ProcessingResult(
                RouteTarget.MINIAPP,
                miniapp_id=note.miniapp_id,
                query=note.query,
                enriched_query=note.query,
                about=note.about,
            )
            self._intake.resolve(said, meaning)
        elif subject := offer.occasion.subject:
            # What was said around the question is not known yet.
            question = replace(said, message=subject, card_id=None, starts_conversation=True, was_offered=True)
            self._intake.submit(question)
            self._decisions.add(subject.message_id, said.channel_id, subject.author_id, OFFER_ACCEPTED)


def note_of(question: Question, follow_up: FollowUp, now: datetime) -> Note:
    """What a mini-app wants to come back to of what it did for a question."""
    message = question.message
    return Note(
        uuid4().hex,
        question.meaning.miniapp_id or "",
        follow_up.text,
        follow_up.query,
        follow_up.about,
        message.author_id,
        message.message_id,
        now + follow_up.after,
    )
