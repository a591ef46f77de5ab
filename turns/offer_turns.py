"""Offers in the conversation of their channel: what people reply to one, and the turn that a Yes becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from conversation import ConversationManager, MessageRecord
from decider import OFFER_ACCEPTED, Decision, Reason, RecentDecisions
from discord_io.streamed_reply import Posted
from miniapps.base import FollowUp
from offers.offer import Note, Offer, Reply
from offers.open_offers import OpenOffers
from offers.proactive_offers import ProactiveOffers
from state.awaiting import ProcessingResult, RouteTarget
from turns.intake import Intake
from turns.turn import Question

NEVER_HERE = "Understood: I offer no more help in this channel. Whoever manages it can have me do so with /offers on."


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
        subject = offer.opportunity.subject
        context = [subject] if subject else []
        if conversation := self._conversations.get(channel_id):
            context = [message for message in context if conversation.find(message.message_id) is None]
            conversation.precede(context)
        else:
            self._conversations.start(channel_id, context)
        name, me = self._bot()
        record = MessageRecord(
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
        self._conversations.record_message(channel_id, record, by_model=False)
        for message in (*context, record):
            self._keep(channel_id, offer.guild_id, message)
        decision = Decision(True, Reason.OFFERED, evidence=offer.opportunity.evidence)
        self._decisions.add(posted.message_id, channel_id, offer.user_id, decision)

    def take_up(self, offer: Offer, accepting: Question) -> None:
        """Has an offer that was accepted answered with a turn. accepting: the Yes."""
        if note := offer.opportunity.note:
            meaning = ProcessingResult(
                RouteTarget.MINIAPP,
                miniapp_id=note.miniapp_id,
                query=note.query,
                enriched_query=note.query,
                about=note.about,
            )
            self._intake.resolve(accepting, meaning)
        elif subject := offer.opportunity.subject:
            # What was said around the question is not known yet.
            question = replace(accepting, message=subject, card_id=None, starts_conversation=True, was_offered=True)
            self._intake.submit(question)
            self._decisions.add(subject.message_id, accepting.channel_id, subject.author_id, OFFER_ACCEPTED)


class OfferReplies:
    """Tells offers what happens in the channels, and carries out what people reply to them."""

    def __init__(
        self, proactive_offers: ProactiveOffers, offers: OpenOffers, turns: OfferTurns, clock: Callable[[], datetime]
    ) -> None:
        self._proactive_offers = proactive_offers
        self._offers = offers
        self._turns = turns
        self._clock = clock

    def heard(self, channel_id: int, message: MessageRecord) -> None:
        """A person's message, wherever it was said."""
        if self._proactive_offers.listens(channel_id):
            self._proactive_offers.heard(channel_id, message)

    def reply_of(self, channel_id: int, message: MessageRecord) -> Reply | None:
        """What a message replies to the channel's open offer."""
        return self._offers.reply_of(channel_id, message)

    def decline(self, channel_id: int, reply: Reply) -> str | None:
        """Ends the offer, or, if that was the reply, all offers in the channel. Returns what is to be said to that."""
        if reply is Reply.NOT_NOW:
            self._offers.decline(channel_id)
            return None
        self._proactive_offers.switch_off(channel_id)
        return NEVER_HERE

    def accept(self, accepting: Question) -> None:
        """Has the channel's open offer answered. accepting: the Yes."""
        if offer := self._offers.accept(accepting.channel_id):
            self._turns.take_up(offer, accepting)
            self._offers.settle(accepting.channel_id, offer)

    def accept_by_click(self, accepting: Question) -> bool:
        """As accept(), where the card itself is settled. Returns whether the Yes is part of the conversation."""
        offer = self._offers.accept(accepting.channel_id)
        if offer:
            self._turns.take_up(offer, accepting)
        # Else what is answered is the question, and not the Yes.
        return offer is not None and offer.opportunity.note is not None

    def clicked(self, question: Question) -> None:
        """Somebody answered a question of ours on its card."""
        self._proactive_offers.clicked(question.channel_id, question.guild_id)

    def answered(self, question: Question) -> None:
        """The question is being answered."""
        self._proactive_offers.answered(question.channel_id, question.guild_id, question.message)

    def follow_up(self, question: Question, follow_up: FollowUp) -> None:
        """A mini-app wants to come back to what it did for a question."""
        self._proactive_offers.note(question.channel_id, note_of(question, follow_up, self._clock()))


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
