"""When to speak: every message gets one Decision, with its reason.

Three tiers: an explicit trigger (a mention, a reply to the bot) always counts. Else rules say what needs no guess, the
follow-up tier (a trained model, or two rules of thumb) says how likely the message was said to the bot, and a judge (a
fast model) is asked where that leaves it unsure.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple, Protocol

from conversation import ChannelConversation, Unwelcome
from followup.evidence import WITH_SOMEBODY
from followup.features import talking_with
from followup.model import Eagerness, FollowupModel, load_model
from followup.probation import passed_over, pending, without
from state.engagement import RECENT, Engagement
from state.message import MessageRecord
from understanding.acknowledgements import MAX_WORDS, Acknowledgement, bare_acknowledgement
from understanding.names import called_by_name
from understanding.stopping import stops_person
from understanding.wording import Wording, read

JUDGE_DEADLINE_SECONDS = 3.0
QUIET_CHANNEL_PEOPLE = 4
MAX_ACKNOWLEDGEMENTS = 5
ADDRESSED_SHARE = 0.3  # of the score is left where somebody else has just spoken to the author by name, or is named
PASSED_OVER_SHARE = 0.9  # of the score is left for each unprompted answer that nobody took up
SHORT_QUESTION_WORDS = 10
CONTINUATION = re.compile(r"(and|also|what about|how about|why|but)\b", re.IGNORECASE)


class Reason(StrEnum):
    """Why the bot speaks or keeps silent. The first four names are document 003's."""

    EXPLICIT_TRIGGER = "explicit_trigger"
    RECENT_FOLLOWUP = "recent_followup"
    LLM_JUDGE = "llm_judge"
    NO_TRIGGER = "no_trigger"
    ANSWER_DUE = "answer_due"
    AWAITED = "awaited"
    FOLLOWUP = "followup"
    NAMES_OTHERS = "names_others"
    TOLD_OFF = "told_off"
    UNWELCOME = "unwelcome"
    ACKNOWLEDGEMENT = "acknowledgement"
    JUDGE_FAILED = "judge_failed"
    JUDGE_LATE = "judge_late"
    DECLINED = "declined"
    DECLINE_FAILED = "decline_failed"
    STOP = "stop"
    DELETED = "deleted"
    OPTED_OUT = "opted_out"
    CHANNEL_NOT_LISTED = "channel_not_listed"
    MISSING_PERMISSION = "missing_permission"
    USER_CAP = "user_cap"
    DAILY_CAP = "daily_cap"
    SHUTTING_DOWN = "shutting_down"
    OFFERED = "offered"
    OFFER_ACCEPTED = "offer_accepted"
    OFFER_DECLINED = "offer_declined"


IN_WORDS: Mapping[Reason, tuple[str, str]] = {
    Reason.EXPLICIT_TRIGGER: ("you mentioned me or replied to me", ""),
    Reason.RECENT_FOLLOWUP: ("I had just spoken and this reads like a follow-up", ""),
    Reason.ANSWER_DUE: ("my last words went to you, and you named nobody else", ""),
    Reason.AWAITED: ("I had asked you, and this is your answer", ""),
    Reason.FOLLOWUP: ("I took it as said to me", ""),
    Reason.LLM_JUDGE: ("the judge took it as meant for me", "the judge took it as not meant for me"),
    Reason.NO_TRIGGER: ("", "I did not take it as said to me"),
    Reason.NAMES_OTHERS: ("", "it was addressed to somebody else"),
    Reason.TOLD_OFF: ("", "you told me to keep out, so I wait until you mention me"),
    Reason.UNWELCOME: ("", "my last unasked answer was not welcome, so I wait until somebody mentions me"),
    Reason.ACKNOWLEDGEMENT: ("", "a thanks, an ok or a laugh asks for no answer"),
    Reason.JUDGE_FAILED: ("", "I was unsure, and the judge could not be asked"),
    Reason.JUDGE_LATE: ("", "I was unsure, and the judge took too long"),
    Reason.DECLINED: ("", "my model, asked for an answer, took it as not meant for me, or as wanting none"),
    Reason.DECLINE_FAILED: ("", "I was unsure, and my model failed when it was asked for an answer"),
    Reason.STOP: ("", "I was told to stop"),
    Reason.DELETED: ("", "it was deleted while I thought about it"),
    Reason.OPTED_OUT: ("", "you asked me not to read you, and did not mention me"),
    Reason.CHANNEL_NOT_LISTED: ("", "I am not set up to speak in this channel"),
    Reason.MISSING_PERMISSION: ("", "I am not allowed to write in this channel"),
    Reason.USER_CAP: ("", "you had reached the number of answers per minute"),
    Reason.DAILY_CAP: ("", "today's token budget was spent"),
    Reason.SHUTTING_DOWN: ("", "I was shutting down"),
    Reason.OFFERED: ("nobody had asked me, but offers are on in this channel", ""),
    Reason.OFFER_ACCEPTED: ("I had offered it, and you said yes", ""),
    Reason.OFFER_DECLINED: ("", "you said no to what I had offered"),
}


NOT_JUDGED = frozenset(
    {
        Reason.STOP,
        Reason.TOLD_OFF,
        Reason.UNWELCOME,
        Reason.DELETED,
        Reason.OPTED_OUT,
        Reason.CHANNEL_NOT_LISTED,
        Reason.MISSING_PERMISSION,
        Reason.USER_CAP,
        Reason.DAILY_CAP,
        Reason.SHUTTING_DOWN,
        Reason.OFFER_DECLINED,
    }
)
"""Reasons to be silent that are no judgement of for whom a message was meant: such a silence is never a miss."""


PROMPTED = frozenset({Reason.EXPLICIT_TRIGGER, Reason.AWAITED, Reason.OFFERED, Reason.OFFER_ACCEPTED})


@dataclass(frozen=True, slots=True)
class Decision:
    """Respond or not, and why. tier: 1 explicit, 2 follow-up, 3 judge, 0 none of them. score: how sure, 0 to 1.

    agent: in words, which agent was chosen to answer and why; empty as long as none was. may_decline: the agent that is
    to answer decides. partner: with whom the author was talking, where the evidence speaks of somebody.
    """

    respond: bool
    reason: Reason
    tier: int = 0
    score: float = 0.0
    evidence: str = ""
    agent: str = ""
    may_decline: bool = False
    partner: int | None = None

    def __iter__(self) -> Iterator[bool | str]:
        yield self.respond
        yield self.reason

    @property
    def is_unprompted(self) -> bool:
        """Whether the bot answers although nobody had called it, or been asked by it."""
        return self.respond and self.reason not in PROMPTED

    @property
    def _outcome(self) -> str:
        if self.reason is Reason.OFFERED:
            return "offered"
        return "answered" if self.respond else "silent"

    def in_words(self) -> str:
        """One line for people."""
        words = IN_WORDS[self.reason][0 if self.respond else 1]
        score = f": {self.score:.2f}" if self.reason in (Reason.FOLLOWUP, Reason.NO_TRIGGER) else ""
        told = self.evidence
        if self.partner is not None:
            told = told.replace(WITH_SOMEBODY, f"you were talking with <@{self.partner}>, I think")
        evidence = f" ({told}{score})" if told else ""
        undeclined = ", and my model did not decline" if self.respond and self.may_decline else ""
        agent = f"; {self.agent}" if self.agent else ""
        return f"{self._outcome}: {words}{evidence}{undeclined}{agent}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge says of a message: is it meant for the bot, and what speaks for that."""

    respond: bool
    evidence: str = ""


class JudgeError(Exception):
    """The judge could not be asked."""


class Judge(Protocol):
    """A fast model that is asked about doubtful messages. Raises JudgeError."""

    async def __call__(self, message: MessageRecord, conversation: ChannelConversation) -> Verdict: ...


class FollowupTier(Protocol):
    """What decides about messages that neither an explicit trigger nor a rule decides. The score says how sure it is.

    doubt: the scores, from the first up to but without the second, at which the judge is asked instead, if it is on.
    gate: likewise, those at which the agent is asked and may decline; above them it simply answers. limited_gate: the
    score that is needed for that shortly after it has declined. open_from: from this score on, what reads like a
    follow-up is one.
    """

    @property
    def open_from(self) -> float: ...

    @property
    def doubt(self) -> tuple[float, float]: ...

    @property
    def gate(self) -> tuple[float, float]: ...

    @property
    def limited_gate(self) -> float: ...

    def __call__(self, message: MessageRecord, conversation: ChannelConversation, bot_user_id: int, /) -> Decision: ...


@dataclass(frozen=True, slots=True)
class TrainedFollowup:
    """The trained model at one of its operating points."""

    model: FollowupModel
    eagerness: Eagerness = Eagerness.BALANCED

    @property
    def doubt(self) -> tuple[float, float]:
        """From the threshold of the next more eager point to that of the next quieter one."""
        points = list(Eagerness)
        here = points.index(self.eagerness)
        eager, quiet = points[min(here + 1, len(points) - 1)], points[max(here - 1, 0)]
        return self.model.thresholds[eager], self.model.thresholds[quiet]

    @property
    def open_from(self) -> float:
        """The threshold of the most eager point."""
        return self.model.thresholds[Eagerness.EAGER]

    @property
    def gate(self) -> tuple[float, float]:
        """From the threshold of the next more eager point to where it is certain."""
        return self.doubt[0], self.model.certain

    @property
    def limited_gate(self) -> float:
        """The threshold of its own point, or, where that is the most eager one, the balanced one."""
        return max(self.model.thresholds[self.eagerness], self.model.thresholds[Eagerness.BALANCED])

    def __call__(self, message: MessageRecord, conversation: ChannelConversation, bot_user_id: int, /) -> Decision:
        estimate = self.model.estimate(message, conversation, bot_user_id)
        score = estimate.probability
        if score >= self.model.thresholds[Eagerness.EAGER]:
            score = self._on_probation(score, message, conversation, bot_user_id)
        standing = conversation.engagement_at(message).standing(message.author_id)
        if standing.is_addressed_by_others or estimate.names_others:
            score *= ADDRESSED_SHARE
        respond = score >= self.model.thresholds[self.eagerness]
        reason = Reason.FOLLOWUP if respond else Reason.NO_TRIGGER
        is_with_somebody = WITH_SOMEBODY in estimate.evidence
        partner = talking_with(message, conversation, bot_user_id) if is_with_somebody else None
        return Decision(respond, reason, tier=2, score=score, evidence=estimate.evidence, partner=partner)

    def _on_probation(
        self, score: float, message: MessageRecord, conversation: ChannelConversation, bot_user_id: int
    ) -> float:
        """The score, lowered by unprompted answers that nobody took up, and raised by none that went to others: it is
        at most what it would be without those answers and what they answered."""
        answers = pending(message, conversation, bot_user_id)
        to_others = [answer for answer in answers if message.author_id not in answer.addressees]
        if to_others:
            as_if = self.model.estimate(message, without(to_others, conversation), bot_user_id)
            score = min(score, as_if.probability)
        return score * PASSED_OVER_SHARE ** len(passed_over(answers, message, conversation))


@dataclass(frozen=True, slots=True)
class FollowupRules:
    """One rule of thumb, for where there is no model: an answer that is due is one. Doubt lasts window_seconds."""

    window_seconds: float = 60
    doubt: tuple[float, float] = (0.5, 0.6)
    gate: tuple[float, float] = (0.5, 0.8)
    open_from: float = 0.5
    limited_gate: float = 0.6

    def __call__(self, message: MessageRecord, conversation: ChannelConversation, bot_user_id: int, /) -> Decision:
        engagement = conversation.engagement_at(message)
        if names_others(message, conversation, bot_user_id):
            return NOTHING
        if engagement.is_answer_due(message):
            return Decision(True, Reason.ANSWER_DUE, tier=2, score=0.7)
        if spoke_within(self.window_seconds, message, engagement):
            return replace(NOTHING, tier=2, score=self.doubt[0])
        return NOTHING


class ResponseDecider:
    """Decides, message by message.

    followup: the second tier, None for the trained model (then ModelFileError is raised where its file cannot be used).
    judge: None to do without. declines: whether the agent may decline; it may not where a judge is asked before.
    window_seconds: how long after the bot spoke a follow-up in a quiet channel always counts. Whoever answers a prompt
    of ours is answered without being judged: see AWAITED.
    """

    def __init__(
        self,
        *,
        followup: FollowupTier | None = None,
        judge: Judge | None = None,
        judge_deadline_seconds: float = JUDGE_DEADLINE_SECONDS,
        window_seconds: float = 60,
        declines: bool = False,
    ) -> None:
        self._followup = followup or TrainedFollowup(load_model())
        self._judge = judge
        self._judge_deadline = judge_deadline_seconds
        self._window = window_seconds
        self._declines = declines and judge is None

    def should_start_conversation(self, message: MessageRecord, bot_user_id: int) -> Decision:
        """Outside a conversation only an explicit trigger counts."""
        return _explicit(message) if is_explicit_trigger(message, bot_user_id) else NOTHING

    async def should_respond(
        self, message: MessageRecord, conversation: ChannelConversation, bot_user_id: int
    ) -> Decision:
        """Within a conversation, whether the message is recorded in it already or not."""
        if message.is_bot:
            return NOTHING
        if is_explicit_trigger(message, bot_user_id) or _replies_to_bot(message, conversation):
            return TOLD_OFF if conversation.engagement_at(message).is_telling_off(message) else _explicit(message)
        if rule := self.rule(message, conversation, bot_user_id):
            return rule
        guess = self.guess(message, conversation, bot_user_id)
        if guess.score >= self._followup.open_from and self._goes_on(message, conversation, bot_user_id):
            guess = replace(guess, respond=True, reason=Reason.RECENT_FOLLOWUP)
        if self._declines:
            return self._gated(guess, message, conversation)
        if self._judge is None or guess.reason is Reason.RECENT_FOLLOWUP:
            return guess
        low, high = self._followup.doubt
        return await self._ask(self._judge, message, conversation) if low <= guess.score < high else guess

    def _gated(self, guess: Decision, message: MessageRecord, conversation: ChannelConversation) -> Decision:
        """The decision where the agent may decline."""
        low, high = self._followup.gate
        if guess.score >= high:
            return guess
        is_limited = conversation.declines.limit(message.author_id, message.timestamp)
        goes_on = guess.reason is Reason.RECENT_FOLLOWUP and not is_limited
        is_asked = goes_on or guess.score >= (self._followup.limited_gate if is_limited else low)
        reason = guess.reason if goes_on else Reason.FOLLOWUP if is_asked else Reason.NO_TRIGGER
        return replace(guess, respond=is_asked, reason=reason, may_decline=is_asked)

    def guess(self, message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> Decision:
        """What the follow-up tier says, of any message, as if there were no rules and no judge."""
        return self._followup(message, conversation, bot_user_id)

    def rule(self, message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> Decision | None:
        """What needs no guess, of a message without an explicit trigger."""
        engagement = conversation.engagement_at(message)
        if not (message.text or message.images):
            return NOTHING  # without the message content intent there is nothing to read
        if addresses_others(message, bot_user_id) or message.wording.is_command:
            return NOT_OURS
        if stops_person(message.content, conversation.names.values()):
            return NOT_OURS
        if engagement.standing(message.author_id).told_off or engagement.is_telling_off(message):
            return TOLD_OFF
        if conversation.unwelcome:
            return UNWELCOME[conversation.unwelcome]
        return ACKNOWLEDGED if _asks_for_no_answer(message, conversation, engagement) else None

    def _goes_on(self, message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> bool:
        """Document 003's two scenarios: whoever was just answered goes on, or somebody else asks right after.

        Neither is what its words show to be for the room or for a person.
        """
        engagement = conversation.engagement_at(message)
        if not spoke_within(self._window, message, engagement):
            return False
        if not looks_like_followup(message.content, message.wording):
            return False
        is_for_others = names_others(message, conversation, bot_user_id) or "room" in message.wording.talk
        if is_for_others or engagement.standing(message.author_id).is_addressed_by_others:
            return False
        return is_quiet(message, engagement) and _bot_spoke_last(message, conversation)

    async def _ask(self, judge: Judge, message: MessageRecord, conversation: ChannelConversation) -> Decision:
        try:
            async with asyncio.timeout(self._judge_deadline):
                verdict = await judge(message, conversation)
        except TimeoutError:
            return Decision(False, Reason.JUDGE_LATE, tier=3)
        except JudgeError:
            return Decision(False, Reason.JUDGE_FAILED, tier=3)
        return Decision(
            verdict.respond, Reason.LLM_JUDGE, tier=3, score=float(verdict.respond), evidence=verdict.evidence
        )


EXPLICIT = Decision(True, Reason.EXPLICIT_TRIGGER, tier=1, score=1.0)
NOTHING = Decision(False, Reason.NO_TRIGGER)
NOT_OURS = Decision(False, Reason.NAMES_OTHERS, tier=2)
AWAITED = Decision(True, Reason.AWAITED, tier=2, score=1.0)
OFFER_ACCEPTED = Decision(True, Reason.OFFER_ACCEPTED, tier=2, score=1.0)
OFFER_DECLINED = Decision(False, Reason.OFFER_DECLINED, tier=2)
TOLD_OFF = Decision(False, Reason.TOLD_OFF, tier=2)
UNWELCOME: Mapping[Unwelcome, Decision] = {
    Unwelcome.TOLD_OFF: Decision(False, Reason.UNWELCOME, tier=2, evidence="somebody told me to keep out"),
    Unwelcome.DELETED: Decision(False, Reason.UNWELCOME, tier=2, evidence="somebody deleted it"),
    Unwelcome.DISLIKED: Decision(False, Reason.UNWELCOME, tier=2, evidence="it got a thumbs down"),
}
ACKNOWLEDGED = Decision(False, Reason.ACKNOWLEDGEMENT, tier=2)


def is_explicit_trigger(message: MessageRecord, bot_user_id: int) -> bool:
    """A mention of the bot, a call by its name, or a Discord reply to one of its messages."""
    is_to_bot = bot_user_id in message.mentions or message.reply_to_author_id == bot_user_id
    return not message.is_bot and (is_to_bot or bool(message.calls_bot))


def _explicit(message: MessageRecord) -> Decision:
    return replace(EXPLICIT, evidence="you called me by my name") if message.calls_bot else EXPLICIT


def _replies_to_bot(message: MessageRecord, conversation: ChannelConversation) -> bool:
    """A reply that came without the message it answers: the conversation knows whether that was the bot's."""
    if message.reply_to_id is None or message.reply_to_author_id is not None:
        return False
    answered = conversation.find(message.reply_to_id)
    return answered is not None and answered.is_bot


def addresses_others(message: MessageRecord, bot_user_id: int) -> bool:
    """It mentions a person, a role or everyone, or it replies to somebody: and that is not the bot."""
    replies_elsewhere = message.reply_to_id is not None and message.reply_to_author_id != bot_user_id
    return message.mentions_group or replies_elsewhere or bool(message.mentions - {bot_user_id, message.author_id})


def names_others(message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> bool:
    """It names a person other than the bot, be it without a mention."""
    return bool((message.named | called_by_name(message, conversation.names, conversation.called)) - {bot_user_id})


def _asks_for_no_answer(message: MessageRecord, conversation: ChannelConversation, engagement: Engagement) -> bool:
    """A bare thanks, ok, laugh or emoji; but where the bot asked the author something, an ok or an emoji answers it."""
    if message.images or message.wording.count > MAX_WORDS:
        return False
    acknowledgement = bare_acknowledgement(message.text, engagement.bot_name)
    if acknowledgement in (Acknowledgement.CONSENT, Acknowledgement.EMOJI) and engagement.is_answer_due(message):
        asked = conversation.last_words_to(message.author_id)
        return asked is None or not asked.wording.ends_asking
    return acknowledgement is not None


def spoke_within(seconds: float, message: MessageRecord, engagement: Engagement) -> bool:
    spoke = engagement.bot_spoke
    return spoke is not None and message.timestamp - spoke.at < timedelta(seconds=seconds)


def _bot_spoke_last(message: MessageRecord, conversation: ChannelConversation) -> bool:
    """Whether nobody has said anything since the bot did but thanks, laughs and the like."""
    for earlier in reversed(conversation.before(message, MAX_ACKNOWLEDGEMENTS + 1)):
        if earlier.is_bot:
            return True
        if bare_acknowledgement(earlier.text) is None:
            return False
    return False


def is_quiet(message: MessageRecord, engagement: Engagement) -> bool:
    """At most 4 people, the author counted, spoke in the last 5 minutes."""
    people = engagement.people_since(message.timestamp - RECENT) | {message.author_id}
    return len(people) <= QUIET_CHANNEL_PEOPLE


def looks_like_followup(content: str, wording: Wording | None = None) -> bool:
    """Document 003's heuristic: a question of under 10 words, or a word that goes on from what was said.

    wording: of the content, where it is read already.
    """
    content = content.strip()
    is_short_question = (wording or read(content)).asks and len(content.split()) < SHORT_QUESTION_WORDS
    return is_short_question or CONTINUATION.match(content) is not None


class LoggedDecision(NamedTuple):
    """A decision, and on what."""

    message_id: int
    channel_id: int
    author_id: int
    decision: Decision


class RecentDecisions:
    """The last decisions, to be explained later. No message's content is kept. listener: told of each as it is taken.

    Messages that started no conversation are kept apart: however many there are, they crowd out nothing else.
    """

    def __init__(self, size: int = 2_000, listener: Callable[[LoggedDecision], None] | None = None) -> None:
        self._size = size
        self._entries: OrderedDict[int, LoggedDecision] = OrderedDict()
        self._ignored: OrderedDict[int, LoggedDecision] = OrderedDict()
        self.listener = listener
        self.ignored_count = 0

    def __len__(self) -> int:
        return len(self._entries) + len(self._ignored)

    def add(self, message_id: int, channel_id: int, author_id: int, decision: Decision) -> None:
        """Notes the decision on a message in a conversation, or on one that starts a conversation.

        It takes the place of an earlier one: what was let pass may be answered once an offer is taken up.
        """
        self._ignored.pop(message_id, None)
        self._put(self._entries, LoggedDecision(message_id, channel_id, author_id, decision))

    def add_ignored(self, message_id: int, channel_id: int, author_id: int, decision: Decision) -> None:
        """Notes and counts that a message started no conversation."""
        self.ignored_count += 1
        self._put(self._ignored, LoggedDecision(message_id, channel_id, author_id, decision))

    def assigned(self, message_id: int, words: str) -> None:
        """Notes which agent was chosen to answer, in words. A decision that is no longer here stays away."""
        if entry := self._entries.get(message_id):
            self._entries[message_id] = entry._replace(decision=replace(entry.decision, agent=words))

    def _put(self, entries: OrderedDict[int, LoggedDecision], entry: LoggedDecision) -> None:
        entries[entry.message_id] = entry
        if len(entries) > self._size:
            entries.popitem(last=False)
        if self.listener:
            self.listener(entry)

    def find(self, message_id: int) -> LoggedDecision | None:
        return self._entries.get(message_id) or self._ignored.get(message_id)

    def latest(self, channel_id: int, count: int) -> list[LoggedDecision]:
        """The channel's last decisions, newest first."""
        found = (
            e for entries in (self._entries, self._ignored) for e in entries.values() if e.channel_id == channel_id
        )
        return sorted(found, key=lambda entry: entry.message_id, reverse=True)[:count]

    def discard(self, message_id: int) -> None:
        """Forgets the decision on one message, if there is one."""
        self._entries.pop(message_id, None)
        self._ignored.pop(message_id, None)

    def drop(self, gone: Callable[[LoggedDecision], bool]) -> None:
        """Forgets the decisions on some messages."""
        for entries in (self._entries, self._ignored):
            for message_id in [entry.message_id for entry in entries.values() if gone(entry)]:
                del entries[message_id]
