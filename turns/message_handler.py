"""Handles a person's message, from its record to a queued turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from conversation import ChannelConversation
from decider import AWAITED, CALLING, OFFER_ACCEPTED, OFFER_DECLINED, Decision, Reason, is_explicit_trigger
from incoming import Incoming
from offers.offer import Reply
from state.awaiting import Meaning
from state.budget import charge_to
from state.consent import Consent
from turns.admission import Admission
from turns.bursts import DELETED, Bursts
from turns.meanings import Meanings
from turns.offer_turns import OfferReplies
from turns.records import Records
from turns.turn import Question
from turns.turn_queue import Intake, TurnQueue

NOT_READ = Decision(False, Reason.OPTED_OUT)

Decided = tuple[Question, Decision]


class MessageHandler:
    """Decides on messages and queues answers."""

    def __init__(
        self,
        *,
        consent: Consent,
        records: Records,
        bursts: Bursts,
        meanings: Meanings,
        intake: Intake,
        admission: Admission,
        turns: TurnQueue,
        offers: OfferReplies,
    ) -> None:
        self._consent = consent
        self._records = records
        self._bursts = bursts
        self._meanings = meanings
        self._intake = intake
        self._admission = admission
        self._turns = turns
        self._offers = offers

    async def handle(self, incoming: Incoming, *, hears_out: bool = False) -> bool:
        """Records a message, decides on it and queues its answer. Returns False where it is left to the next process.

        hears_out: whether to wait for further messages of its author's burst, which are answered with it.
        """
        started, mark = perf_counter(), self._records.mark
        record, conversation, place = incoming.record, incoming.conversation, incoming.place
        question = Question(
            # With its words even if the author opted out: for its own answer, and kept nowhere.
            self._consent.unquoted(place.channel_id, record),
            place,
            # True also if an earlier process had begun the conversation with this message and waited for the burst.
            starts_conversation=conversation is None or record.message_id <= conversation.since,
            is_private=self._consent.is_opted_out(record.author_id),
            reads_history=incoming.reads_history,
            is_exempt=incoming.is_exempt,
        )
        kept = question.as_kept.message
        charge_to(question.payer)
        if self._consent.is_forgotten(question.channel_id, kept):
            return True  # a missed message that was forgotten before it could be handled
        if record.is_other_bot:  # never answered, and no reply to an offer or a prompt
            if not place.held.silenced:
                self._records.overheard(question)
            return True
        refused = self._admission.refuses_here(incoming, question)
        self._offers.heard(question.channel_id, kept, is_refused=refused is not None)
        decided: Decided | None
        if refused:  # the author may still stop a running answer
            stopped = self._stop(incoming, question, conversation) if conversation else None
            decided = question, stopped or refused
        elif conversation is None:
            decided = self._begin(incoming, question)
        else:
            decided = await self._decide(incoming, question, conversation)
        if decided is None:
            return True  # it joined a burst, and is answered with it
        seconds = perf_counter() - started
        decisions = [decided]
        if waits := hears_out and self._bursts.may_go_on(*decided):
            heard_out = await self._bursts.hear_out(*decided)
            decisions = [d for d in heard_out if not self._consent.is_forgotten(d[0].channel_id, d[0].message)]
        noted = [(q, self._records.as_noted(q, decision, mark)) for q, decision in decisions]
        self._conclude(noted, seconds, is_read=not waits)
        return all(decision.reason is not Reason.SHUTTING_DOWN for _, decision in decisions)

    # To a decision

    def _begin(self, incoming: Incoming, question: Question) -> Decided:
        """Decides on a message outside a conversation, which begins if the message is answered."""
        decision = self._bursts.begins(question)
        if decision.respond:
            question = self._meanings.routed(question, None)
            decision = self._admission.permit(incoming, question, decision)
        if decision.respond:
            self._records.began(question)
        return question, decision

    async def _decide(
        self, incoming: Incoming, question: Question, conversation: ChannelConversation
    ) -> Decided | None:
        """Decides on a message in a conversation; None where it joined its author's waiting burst."""
        if stopped := self._stop(incoming, question, conversation):
            return question, stopped
        self._records.message(conversation, question.as_kept.message)
        if question.is_private and not is_explicit_trigger(question.message, incoming.bot_id):
            return question, NOT_READ
        question = self._meanings.read(question, conversation)
        if question.meaning.offer and question.meaning.offer != Reply.YES:
            reply, by = Reply(question.meaning.offer), question.message.author_id
            if told := self._offers.decline(question.channel_id, reply, by=by):
                self._turns.announce(question, told)
            return question, OFFER_DECLINED
        decision: Decision | None
        if question.meaning.offer:
            decision = OFFER_ACCEPTED
        elif question.meaning.prompt:
            decision = AWAITED
        elif (decision := await self._bursts.decide(question, conversation)) is None:
            return None
        elif conversation.is_deleted(question.message.message_id):
            return question, DELETED
        if decision.respond:
            question = self._meanings.routed(question, conversation)
        return question, self._admission.permit(incoming, question, decision)

    def _stop(self, incoming: Incoming, question: Question, conversation: ChannelConversation) -> Decision | None:
        """Ends the answers that a message calls off, and records the message; None where it ends none."""
        if self._bursts.is_idle and not self._turns.is_busy(question.channel_id):  # as nearly always
            return None
        self._bursts.call_off(question, conversation)
        heard_out = self._bursts.heard_out(question.channel_id)
        # Somebody who opted out may call an answer off, too; their words are not kept.
        stopped = self._turns.stop(question.message, question.channel_id, manages=incoming.manages, heard_out=heard_out)
        if stopped is None:
            return None
        self._bursts.stop(stopped.questions)
        self._records.stopped(conversation, question, stopped)
        return Decision(False, Reason.STOP, evidence=stopped.in_words(question.message.author_id))

    # From a decision to a turn

    def _conclude(self, decisions: Sequence[Decided], seconds: float, *, is_read: bool) -> None:
        """Logs the decision on each message of a burst, and queues one answer to those to be answered. is_read: whether
        they were read just now."""
        for question, decision in decisions:
            self._records.decided(question, decision, seconds)
        if answered := [replace(question, decision=decision) for question, decision in decisions if decision.respond]:
            newest = answered[-1]
            if newest.decision.reason in CALLING:
                self._records.called(newest)
            if newest.decision.reason is Reason.OFFER_ACCEPTED:
                self._offers.accept(newest)
            else:
                self._intake.submit(*answered, is_read=is_read)
                self._records.queued(answered)
        for question, decision in decisions:
            # After queueing: a message in the transcript counts as handled after a kill.
            if decision.reason is not Reason.SHUTTING_DOWN:  # it is left to the next process
                self._records.keep(question)

    # Clicks, handled as if their author had replied to the card

    def resolve(self, clicked: Incoming, meaning: Meaning) -> None:
        """Queues a click that answers a prompt."""
        question = self._clicked(clicked)
        self._records.clicked(question)
        self._intake.resolve(question, meaning)
        self._offers.clicked(question)
        self._records.said(question, question.as_kept.message)

    def accept(self, clicked: Incoming) -> None:
        """Queues the answer to an offer that a click accepts."""
        question = self._clicked(clicked)
        self._records.touched(question)  # only the open offer has kept the conversation alive
        if self._offers.accept(question, by_click=True):
            self._records.clicked(question)
        self._records.said(question, question.as_kept.message)

    def _clicked(self, clicked: Incoming) -> Question:
        channel_id, record = clicked.place.channel_id, clicked.record
        is_private = self._consent.is_opted_out(record.author_id)
        return Question(
            # As of a message, the words are for the answer alone, also those that were written in a form.
            self._consent.unquoted(channel_id, record) if is_private else self._consent.readable(channel_id, record),
            clicked.place,
            is_private=is_private,
            card_id=record.reply_to_id,
            reads_history=clicked.reads_history,
            is_exempt=clicked.is_exempt,
        )
