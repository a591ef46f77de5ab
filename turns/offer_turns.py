"""Offers in their channel's conversation: people's replies to an offer, and the turn that a Yes becomes."""

from __future__ import annotations

from dataclasses import replace

from conversation import ConversationManager, MessageRecord
from decider import OFFER_ACCEPTED, Decision, Reason, RecentDecisions
from discord_io.channel_wire import Posted
from miniapps.router import MiniAppRouter
from offers.offer import Offer, Reply
from offers.open_offers import OpenOffers
from offers.proactive_offers import ProactiveOffers
from state.awaiting import Meaning, RouteTarget
from state.message import Appended
from turns.records import Transcripts
from turns.turn import UNREAD, Discord, Question
from turns.turn_queue import Intake

NEVER_HERE = (
    "Understood: I will no longer offer help in this channel. Whoever manages it can switch that on again with "
    "/offers on."
)


def record_offer(
    conversations: ConversationManager,
    transcripts: Transcripts,
    decisions: RecentDecisions,
    discord: Discord,
    miniapps: MiniAppRouter,
    channel_id: int,
    offer: Offer,
    posted: Posted,
) -> None:
    """An offer was posted: as long as it is open, the channel has a conversation, in which it can be answered."""
    subject, note = offer.opportunity.subject, offer.opportunity.note
    context = [subject] if subject else []
    if conversation := conversations.get(channel_id):
        context = [message for message in context if conversation.find(message.message_id) is None]
        conversation.precede(context)
    else:
        conversations.start(channel_id, context)
    kept = miniapps.said(note.miniapp_id, channel_id) if note else {}
    conversations.record_looked_up(channel_id, [("person", who) for who in kept.values() if who])
    name, me = discord.bot()
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
    conversations.record_message(channel_id, record, by_model=False)
    recorded = conversations.find(channel_id, record.message_id) or record  # with whose words it may have
    for message in (*context, recorded):
        transcripts.append(Appended(channel_id, offer.guild_id, message, parent_id=offer.parent_id))
    decision = Decision(True, Reason.OFFERED, evidence=offer.opportunity.evidence)
    decisions.add(posted.message_id, channel_id, offer.user_id, decision, offer.guild_id)


class OfferReplies:
    """Passes people's messages to the offers, and carries out replies to an offer."""

    def __init__(
        self, proactive_offers: ProactiveOffers, offers: OpenOffers, intake: Intake, decisions: RecentDecisions
    ) -> None:
        self._proactive_offers = proactive_offers
        self._offers = offers
        self._intake = intake
        self._decisions = decisions

    def heard(self, channel_id: int, message: MessageRecord, *, is_refused: bool = False) -> None:
        """Passes on a person's message, in any channel. is_refused: the settings refuse them answers and offers."""
        if is_refused and message.reply_to_id:
            self._proactive_offers.dealt_with(channel_id, message.reply_to_id)
        elif not is_refused and self._proactive_offers.listens(channel_id):
            self._proactive_offers.heard(channel_id, message)

    def decline(self, channel_id: int, reply: Reply, *, by: int) -> str | None:
        """Ends the offer, or all offers in the channel, as replied. Returns the text to post, or None.

        by: id of the person who replied.
        """
        if reply is Reply.NOT_NOW:
            self._offers.decline(channel_id)
            return None
        self._proactive_offers.switch_off(channel_id, by=by)
        return NEVER_HERE

    def accept(self, accepting: Question, *, by_click: bool = False) -> bool:
        """Queues the answer to the channel's open offer. accepting: the Yes; by_click: a click has updated the card.

        Returns whether the answer replies to the Yes, which then is part of the conversation, or to the question.
        """
        if (offer := self._offers.accept(accepting.channel_id)) is None:
            return False
        if note := offer.opportunity.note:
            meaning = Meaning(
                RouteTarget.MINIAPP,
                miniapp_id=note.miniapp_id,
                query=note.query,
                enriched_query=note.query,
                about=note.about,
            )
            self._intake.resolve(accepting, meaning)
        elif subject := offer.opportunity.subject:
            # starts_conversation: the messages around the question are still to be read.
            question = replace(
                accepting, message=subject, meaning=UNREAD, card_id=None, starts_conversation=True, was_offered=True
            )
            self._intake.submit(question)
            where = accepting.channel_id
            self._decisions.add(subject.message_id, where, subject.author_id, OFFER_ACCEPTED, accepting.guild_id)
        if not by_click:
            self._offers.settle(accepting.channel_id, offer)
        return note is not None

    def clicked(self, question: Question) -> None:
        """Notes a click on the card of a prompt."""
        self._proactive_offers.clicked(question.channel_id, question.guild_id)
