"""Records messages, decisions and turns: in the conversation, the transcript, the decision log, and for /why."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Protocol
from uuid import uuid4

import structlog

from agents.coordinator import Choice
from agents.tool_use import as_outputs
from conversation import ChannelConversation, ConversationManager, MessageRecord, Unwelcome
from decider import EXPLICIT, NOT_CALLED, NOT_JUDGED, NOTHING, Decision, Reason, RecentDecisions
from decision import SET_SO
from followup.learning import Learning, Mark
from llm_history import Origin, first_told, tokens_said, uses_tools
from miniapps.base import FollowUp
from offers.offer import Note
from offers.proactive_offers import ProactiveOffers
from place import Place
from state import Message, MessageCategory
from state.agent_state import GENERAL
from state.consent import Consent
from state.limits import Limits
from state.message import Appended, Source
from state.optout import FORGOTTEN
from turns.turn import Question, Stopped, Turn

log = structlog.get_logger()

STOPPED = Decision(False, Reason.STOP)
NOT_KEPT = (Reason.DELETED, Reason.DIRECT_MESSAGES_OFF, *SET_SO)  # not written to the decision log


class Transcripts(Protocol):
    """Where channels' transcripts and unfinished questions are stored."""

    def append(self, appended: Appended) -> None: ...

    def removed(self, channel_id: int, message_ids: Collection[int]) -> None:
        """Applies a deletion, also to replies that quote these messages."""

    def note(self, channel_id: int, message_id: int, messages: Sequence[Message]) -> None:
        """Stores messages of one category other than dialogue, placed after the dialogue up to this message."""

    async def noted(self) -> None: ...


class Records:
    """The one place that records messages, decisions and turns. transcripts: stores the dialogue of conversations."""

    def __init__(
        self,
        conversations: ConversationManager,
        transcripts: Transcripts,
        decisions: RecentDecisions,
        learning: Learning,
        limits: Limits,
        consent: Consent,
        offers: ProactiveOffers,
    ) -> None:
        self._conversations = conversations
        self._transcripts = transcripts
        self._decisions = decisions
        self._learning = learning
        self._limits = limits
        self._consent = consent
        self._offers = offers
        self._not_started: Counter[str] = Counter()
        self._log = log.bind()  # bound once: each call of `log` looks the logger up again

    # Messages

    def ignored(self, message_id: int, guild_id: int, channel_id: int, author_id: int) -> None:
        """Counts a message outside any conversation that triggers nothing."""
        self._not_started[NOT_CALLED.reason] += 1
        self._decisions.add(message_id, channel_id, author_id, NOT_CALLED, guild_id, is_ignored=True)
        if self._log.is_enabled_for(logging.DEBUG):
            self._log_decision(logging.DEBUG, guild_id, channel_id, message_id, NOT_CALLED, 0.0)

    def message(self, conversation: ChannelConversation, record: MessageRecord, ended: Sequence[Question] = ()) -> None:
        """Adds a person's message to the conversation, and notes whether it tells the bot to keep out.

        ended: of what it ended, the answers that people know of. It means these, or else the channel's newest answer.
        """
        was_told_off = conversation.engagement.standing(record.author_id).told_off
        self._conversations.record_in(conversation, record)
        if not conversation.engagement.standing(record.author_id).told_off:
            return
        ended_ids = [question.message.message_id for question in ended]
        answered = self._learning.told_off(conversation.channel_id, record.timestamp, ended_ids, is_again=was_told_off)
        if not ended and conversation.engagement_at(record).is_telling_off(record):
            self.unfollow(answered, Unwelcome.TOLD_OFF)

    def overheard(self, question: Question) -> None:
        """Records another bot's message in a conversation."""
        self._conversations.record_message(question.channel_id, question.message)
        self.keep(question)

    def began(self, question: Question) -> None:
        """Begins a conversation with this message."""
        self._conversations.start(question.channel_id, [question.as_kept.message])

    def called(self, question: Question) -> None:
        """Follows the conversation again, as somebody has called the bot, even after an unwelcome answer."""
        self._conversations.follow(question.channel_id)

    def stopped(self, conversation: ChannelConversation, question: Question, stopped: Stopped) -> None:
        """Records a message that stopped answers."""
        self.silenced(stopped.silently, STOPPED)  # first, so that they do not count as the answer that was told off
        self.message(conversation, replace(question.as_kept.message, tells_off=stopped.tells_off), stopped.seen)
        if stopped.tells_off and stopped.is_unprompted:
            self._conversations.follow(question.channel_id, Unwelcome.TOLD_OFF)

    def clicked(self, question: Question) -> None:
        """Records a click that counts as a message of the conversation."""
        self._conversations.record_message(question.channel_id, question.as_kept.message)

    def touched(self, question: Question) -> None:
        """Restarts the conversation's timeout after a click."""
        self._conversations.touch(question.channel_id)

    def unfollow(self, mark: Mark | None, unwelcome: Unwelcome) -> None:
        """Stops following the conversation of an unwelcome answer, if that was unprompted.

        An answer in an earlier conversation of the channel does not count. mark: None: no answer is known.
        """
        answered = self._decisions.find(mark.message_id) if mark else None
        conversation = self._conversations.get(answered.channel_id) if answered else None
        if answered and conversation and answered.message_id >= conversation.since and answered.decision.is_unprompted:
            self._conversations.follow(answered.channel_id, unwelcome)

    def keep(self, question: Question) -> None:
        """Appends a message of a conversation to the channel's transcript, as it is recorded there."""
        conversation = self._conversations.get(question.channel_id)
        if conversation and (current := conversation.find(question.message.message_id)):
            self._append(question, current, conversation)

    def said(
        self, question: Question, record: MessageRecord, tokens: int = 0, *, wordless: bool = False
    ) -> MessageRecord | None:
        """Appends a message to the transcript of the question's channel. tokens: as the provider counted. wordless:
        that it was said, so that it is known by its id if it is deleted, but not its words.

        An answer that may quote somebody who was forgotten while it was made is dropped instead, as is one that was
        deleted meanwhile. Returns the message as appended, or None.
        """
        conversation = self._conversations.get(question.channel_id)
        if conversation and conversation.is_deleted(record.message_id):
            self._transcripts.removed(question.channel_id, [record.message_id])  # for replies that quote it
            return None
        found = conversation and conversation.find(record.message_id)
        if conversation and record.is_bot and not found:  # it was trimmed while the rest of the answer was made
            found = conversation.drawing(record)
        record = found or record
        record = replace(record, content="", readable=FORGOTTEN, images=(), files=()) if wordless else record
        return self._append(question, record, conversation, tokens)

    def _append(
        self, question: Question, record: MessageRecord, conversation: ChannelConversation | None, tokens: int = 0
    ) -> MessageRecord | None:
        if conversation and not conversation.tainted.isdisjoint(record.drew_on):
            self._conversations.forget_messages(question.channel_id, [record.message_id])
            self._transcripts.removed(question.channel_id, [record.message_id])
            return None
        is_moved = conversation is not None and conversation.came_from is not None
        place = question.place
        self._transcripts.append(Appended(place.channel_id, place.guild_id, record, tokens, place.parent_id, is_moved))
        return record

    def answered(self, turn: Turn, records: Sequence[MessageRecord]) -> None:
        """Appends a turn's messages to the transcript, with its instructions, tool calls and tool results; without any
        words where they may quote a question that was deleted since.

        Calls and results are deleted with any message told before them, and with the words of anybody they may quote.
        """
        question, conversation = turn.newest, self._conversations.get(turn.newest.channel_id)
        if conversation and turn.adopted:  # whose words it has is known only now
            for record in [record for record in records if conversation.find(record.message_id)]:
                conversation.revise(conversation.drawing(record))
        was_asked = conversation and conversation.has_answered and (turn.request or turn.ready)
        answer = conversation.llm_history[-1] if conversation and was_asked else None
        tokens, size = tokens_said(answer) if answer else 0, sum(len(record.content) for record in records)
        # The provider counted the answer as a whole; each message gets a share by its length.
        shares = [-(-tokens * len(record.content) // size) if size else 0 for record in records]
        said = list(filter(None, map(partial(self.said, question, wordless=turn.is_tainted), records, shares)))
        if turn.is_tainted or not said:
            return
        message_id = question.message.message_id
        if turn.instructions:
            at = question.message.timestamp.isoformat()
            rules = Message("system", turn.instructions, MessageCategory.SYSTEM, f"system_{message_id}", at)
            self._transcripts.note(question.channel_id, message_id, [rules])
        if conversation and answer and uses_tools(answer):
            first, people = said[0], {*said[0].drew_on, *said[0].addressees}
            # After a kill it may have been told what was said after the messages that it goes on with.
            since, through = first_told(conversation.llm_history), max(said[-1].message_id, conversation.told_through)
            fields = {"message_id": first.message_id, "since": since, "through": through, "drew_on": sorted(people)}
            if outputs := as_outputs(answer, first.message_id, first.timestamp.isoformat(), fields):
                self._transcripts.note(question.channel_id, through, outputs)

    def continued(self, question: Question, origin: Origin, summary: str) -> None:
        """Begins a new session of the transcript with this question, as the history before it was cut.

        summary: of what was cut, or empty; deleted with any message it was made of, and with anybody whose words it
        may have.
        """
        if (conversation := self._conversations.get(question.channel_id)) is None:
            return
        fields = {"since": origin.since, "through": origin.through, "drew_on": sorted(origin.people)}
        at, context = conversation.started_at.isoformat(), MessageCategory.CONTEXT  # as old as its sources
        note = Message("system", summary, context, f"context_{conversation.since}", at, fields if summary else {})
        self._transcripts.note(question.channel_id, question.message.message_id - 1, [note])

    def looked_up(self, channel_id: int, sources: Iterable[Source]) -> None:
        """Notes whose words tools gave the agent for an answer."""
        self._conversations.record_looked_up(channel_id, sources)

    def shared(self, channel_id: int, agent: str, words: Collection[str]) -> None:
        """Notes what a remote agent is told that people mentioned last."""
        self._conversations.record_shared(channel_id, agent, words)

    def titled(self, question: Question) -> Place:
        """The question's place for its answer, which may quote the thread's title: without it if its author was
        forgotten."""
        place = question.place
        if not place.titled_by:
            return place
        at, is_here = question.message.timestamp, place.channel_id
        title = MessageRecord("", place.titled_by, place.channel, at, is_bot=False, message_id=is_here)
        if self._consent.tellable(is_here, title) is not title:  # forgotten after the question was asked
            return place.untitled
        self.looked_up(is_here, [("person", place.titled_by)])
        return place

    async def stored(self) -> None:
        """Waits until all unfinished questions are stored, so that they survive a kill."""
        await self._transcripts.noted()

    # Decisions

    @property
    def mark(self) -> int:
        """The current mark of deletions, to take before a model is asked, for as_noted()."""
        return self._decisions.mark

    def as_noted(self, question: Question, decision: Decision, since: int) -> Decision:
        """The decision without a model's words, where these may quote what was deleted or forgotten since the mark, or
        somebody who opted out and was answered all the same."""
        noted = self._decisions.as_noted(question.channel_id, decision, since)
        if (bare := noted.unquoting) == noted:
            return noted
        quoted = self._conversations.read_or_answered(question.channel_id)
        return bare if any(map(self._consent.is_opted_out, quoted)) else noted

    def decided(self, question: Question, decision: Decision, seconds: float) -> None:
        """Records and logs the one decision on a message."""
        channel_id, message_id = question.channel_id, question.message.message_id
        if question.stands_alone:  # no model is asked that could decline
            decision = replace(decision, may_decline=False)
        is_news = not question.starts_conversation or (decision != NOT_CALLED and decision.reason not in SET_SO)
        author_id, guild_id = question.message.author_id, question.guild_id
        self._decisions.add(message_id, channel_id, author_id, decision, guild_id, is_ignored=not is_news)
        if question.starts_conversation and not decision.respond:
            self._not_started[decision.reason] += 1
        if decision.tier == EXPLICIT.tier:
            self._conversations.record_call(channel_id, author_id)
        level = logging.INFO if is_news else logging.DEBUG
        self._log_decision(level, guild_id, channel_id, message_id, decision, seconds)
        record = question.as_kept.message
        conversation = self._conversations.get(channel_id)
        if conversation is None or decision.reason in NOT_KEPT or self._consent.is_opted_out(record.author_id):
            return
        if self._consent.is_forgotten(channel_id, record):
            return
        if decision.reason is Reason.STOP:  # its evidence names people, who may ask to be forgotten
            decision = replace(decision, evidence="")
        self._learning.decided(
            record,
            guild_id,
            conversation,
            decision,
            is_explicit=decision.reason is Reason.EXPLICIT_TRIGGER,
            is_judgement=decision.reason not in NOT_JUDGED,
            place=question.place.in_words,
        )

    def _log_decision(
        self, level: int, guild_id: int, channel_id: int, message_id: int, decision: Decision, seconds: float
    ) -> None:
        """Writes the one log line on a message; at debug level if it began no conversation, as most messages do not."""
        self._log.log(
            level,
            "decided",
            guild=guild_id,
            channel=channel_id,
            message=message_id,
            decision="respond" if decision.respond else "silent",
            reason=decision.reason,
            tier=decision.tier,
            score=decision.score,
            elapsed_ms=round(1000 * seconds, 2),
        )

    def not_started(self) -> dict[str, int]:
        """How many messages began no conversation since the last call, by reason."""
        counts, self._not_started = self._not_started, Counter()
        return dict(counts)

    def picked(self, turn: Turn, choice: Choice) -> None:
        """Notes the agent that was chosen among several for the turn's questions."""
        ids = [question.message.message_id for question in turn.questions]
        log.info("agent_picked", messages=ids, agent=choice.agent, reason=choice.why)
        self._learning.assigned(ids, "" if choice.agent == GENERAL else choice.agent, choice.why)
        told = self.as_noted(turn.newest, replace(NOTHING, agent=choice.in_words()), turn.mark).agent
        for message_id in ids:
            self._decisions.assigned(message_id, told)

    def made_by(self, questions: Sequence[Question], model: str) -> None:
        """Notes the name of the model that answered these questions; empty for a remote agent."""
        for question in questions:
            self._decisions.made_by(question.message.message_id, model)

    def silenced(self, questions: Iterable[Question], silence: Decision) -> None:
        """Notes that these questions are not answered after all."""
        for question in questions:
            message, channel_id = question.message, question.channel_id
            noted = self._decisions.find(message.message_id)
            before = noted.decision if noted else silence
            if noted and not before.respond:
                continue  # already ended by a stop
            decision = replace(before, respond=False, reason=silence.reason, evidence=silence.evidence)
            self._decisions.add(message.message_id, channel_id, message.author_id, decision, question.guild_id)
            if question.burst in (None, message.message_id):  # a burst was counted once
                self._limits.give_back(message.author_id)
            is_judgement = silence.reason not in NOT_JUDGED
            self._learning.silent(message, channel_id, silence.reason, is_judgement=is_judgement)

    # Turns

    def queued(self, questions: Iterable[Question]) -> None:
        """Tells offers which questions will be answered; those that may be declined follow when their turn ends."""
        for question in questions:
            if not question.decision.may_decline:
                self._offers.answered(question.channel_id, question.guild_id, question.message)

    def ended(self, turn: Turn, silence: Decision | None) -> None:
        """Records a turn's end. silence: the decision to post nothing; None: something was posted.

        A model's reason for declining is not kept if tools were used: it may quote their results from channels that
        others may not read, or whose deletions are not applied here.
        """
        if silence:
            told = silence.unquoting if turn.has_acted else self.as_noted(turn.newest, silence, turn.mark)
            self.silenced(turn.questions, told)
            return
        for question in turn.questions:
            if question.decision.may_decline:
                self._offers.answered(question.channel_id, question.guild_id, question.message)

    def follow_up(self, question: Question, follow_up: FollowUp, now: datetime) -> None:
        """Notes that a mini-app wants to return later to what it did for a question."""
        message = question.message
        if self._consent.is_opted_out(message.author_id):
            return
        note = Note(
            uuid4().hex,
            question.meaning.miniapp_id or "",
            follow_up.text,
            follow_up.query,
            follow_up.about,
            message.author_id,
            message.message_id,
            now + follow_up.after,
            question.parts,
        )
        self._offers.note(question.channel_id, note)
