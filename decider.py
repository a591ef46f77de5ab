"""When to speak: every message gets one Decision, with its reason.

Three tiers: an explicit trigger (a mention, a reply to the bot) always counts. Else rules decide the clear cases, the
follow-up tier (a trained model, or rules of thumb) says how likely the message was said to the bot, and a judge (a fast
model) is asked where that score is unsure.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

import structlog

from conversation import ChannelConversation
from decision import (
    ACKNOWLEDGED,
    ALONE_TOGETHER,
    AWAITED,
    CALLED_OFF,
    CALLING,
    DIRECT,
    EXPLICIT,
    LINK,
    MENTIONS_ONLY,
    NOT_CALLED,
    NOT_JUDGED,
    NOT_OURS,
    NOTHING,
    OFFER_ACCEPTED,
    OFFER_DECLINED,
    TOLD_OF,
    TOLD_OFF,
    UNREADABLE,
    UNWELCOME,
    WITH_SOMEBODY,
    Decision,
    LoggedDecision,
    Reason,
    RecentDecisions,
)
from followup.evidence import in_words
from followup.model import Eagerness, FollowupModel, ModelFileError, load_model
from followup.probation import passed_over, pending, without
from followup.scene import talking_with
from followup.told import as_told
from place import Place
from place_settings.inheritance import NOTHING_SET
from state.engagement import RECENT, Engagement
from state.message import MessageRecord, told_to, unquoting
from understanding.acknowledgements import MAX_WORDS, Acknowledgement, bare_acknowledgement
from understanding.name_calls import is_told_of
from understanding.names import calls_stranger
from understanding.stopping import read_stop, stops_person
from understanding.wording import Wording, read

log = structlog.get_logger()

__all__ = [
    "AWAITED",
    "CALLING",
    "EXPLICIT",
    "NOTHING",
    "NOT_CALLED",
    "NOT_JUDGED",
    "NOT_OURS",
    "OFFER_ACCEPTED",
    "OFFER_DECLINED",
    "Decision",
    "LoggedDecision",
    "Reason",
    "RecentDecisions",
]

JUDGE_DEADLINE_SECONDS = 3.0
QUIET_CHANNEL_PEOPLE = 4
MAX_ACKNOWLEDGEMENTS = 5
ADDRESSED_SHARE = 0.3  # factor on the score where somebody else has just addressed the author, or is named in it
PASSED_OVER_SHARE = 0.9  # factor on the score for each unprompted answer that nobody responded to
SHORT_QUESTION_WORDS = 10
CONTINUATION = re.compile(r"(and|also|what about|how about|why|but)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judge's verdict on a message: whether it is meant for the bot, and why."""

    respond: bool
    evidence: str = ""


class JudgeError(Exception):
    """The judge could not be asked."""


class Judge(Protocol):
    """A fast model that is asked about doubtful messages. Raises JudgeError."""

    async def __call__(
        self, message: MessageRecord, conversation: ChannelConversation, place: Place | None = None
    ) -> Verdict: ...


class FollowupTier(Protocol):
    """Decides messages that neither an explicit trigger nor a rule decides. The decision's score says how sure it is.

    doubt: (low, high): at scores in [low, high) the judge decides instead, if it is on. gate: (low, high): at scores in
    [low, high) the agent is asked and may decline; from high on it answers. limited_gate: replaces the low end of the
    gate shortly after the agent has declined. open_from: from this score on, a message that reads like a follow-up is
    one.
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


class TrainedFollowup:
    """The trained model at one of its operating points.

    Doubt and gate begin at the threshold of the next more eager point. Doubt ends at that of the next quieter point,
    the gate where the model is certain. After a decline the gate begins at its own threshold, but not below balanced.
    """

    def __init__(self, model: FollowupModel, eagerness: Eagerness = Eagerness.BALANCED) -> None:
        self.model = model
        self.eagerness = eagerness
        points = [model.thresholds[point] for point in Eagerness]
        here = list(Eagerness).index(eagerness)
        self.doubt = points[min(here + 1, len(points) - 1)], points[max(here - 1, 0)]
        self.gate = self.doubt[0], model.certain
        self.limited_gate = max(points[here], model.thresholds[Eagerness.BALANCED])
        self.open_from = model.thresholds[Eagerness.EAGER]
        self._threshold = points[here]

    def __call__(self, message: MessageRecord, conversation: ChannelConversation, bot_user_id: int, /) -> Decision:
        estimate = self.model.estimate(message, conversation, bot_user_id)
        score = estimate.probability
        if score >= self.open_from and (answers := pending(message, conversation, bot_user_id)):
            to_others = [answer for answer in answers if message.author_id not in answer.addressees]
            if to_others:  # the bot's answers to other people must not raise the score
                as_if = self.model.estimate(message, without(to_others, conversation), bot_user_id)
                score = min(score, as_if.probability)
            score = score * PASSED_OVER_SHARE ** len(passed_over(answers, message, conversation))
        standing = conversation.engagement_at(message).standing(message.author_id)
        calls_other = calls_stranger(message.content, message.wording, conversation.engagement.bot_name)
        if standing.is_addressed_by_others or estimate.features["names_others"] or calls_other:
            score *= ADDRESSED_SHARE
        respond = score >= self._threshold
        reason = Reason.FOLLOWUP if respond else Reason.NO_TRIGGER
        raised, lowered = in_words(estimate.moved, estimate.features)
        evidence, contrary = (raised, lowered) if respond else (lowered, raised)
        is_with_somebody = WITH_SOMEBODY in evidence or WITH_SOMEBODY in contrary
        partner = talking_with(message, conversation, bot_user_id) if is_with_somebody else None
        return Decision(respond, reason, 2, score, evidence, partner=partner, contrary=contrary)


@dataclass(frozen=True, slots=True)
class FollowupRules:
    """Stands in for the trained model: a message is a follow-up where the bot spoke to its author last.

    window_seconds: how long after the bot spoke other messages are doubtful.
    """

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
        if _spoke_within(self.window_seconds, message, engagement):
            return replace(NOTHING, tier=2, score=self.doubt[0])
        return NOTHING


def load_followup(eagerness: str, window_seconds: float) -> FollowupTier:
    """Loads the trained model; where its file cannot be used, returns the rules of thumb."""
    try:
        return TrainedFollowup(load_model(), Eagerness(eagerness))
    except ModelFileError as error:
        log.warning("followup_model_unusable", detail=str(error), meaning="rules of thumb follow conversations instead")
        return FollowupRules(window_seconds)


class ResponseDecider:
    """Decides whether to answer a message.

    followup: the second tier; None: the trained model, which raises ModelFileError where its file cannot be used.
    judge: None: no judge. declines: whether the agent may decline, which it may only where no judge is asked. A place's
    own settings of eagerness, judge and declining take precedence there.
    window_seconds: how long after the bot spoke a follow-up in a quiet channel always counts. Answers to a prompt of
    the bot's do not come here: see AWAITED.
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
        self._tiers: dict[str | None, FollowupTier] = {}  # by the eagerness that places set: only the model has several
        if isinstance(self._followup, TrainedFollowup):
            self._tiers |= {point: TrainedFollowup(self._followup.model, point) for point in Eagerness}
            self._tiers[self._followup.eagerness] = self._followup
        self._judge = judge
        self._judge_deadline = judge_deadline_seconds
        self._window = window_seconds
        self._declines = declines

    def should_start_conversation(
        self, message: MessageRecord, bot_user_id: int, place: Place | None = None
    ) -> Decision:
        """The decision outside a conversation: only an explicit trigger counts, or that nobody else is there."""
        is_thanks = not is_called(message, bot_user_id) and bare_acknowledgement(message.text) is not None
        if is_explicit_trigger(message, bot_user_id):
            return ACKNOWLEDGED if is_thanks else _explicit(message, bot_user_id)
        if place is None or not place.is_with_one or not (message.text or message.images):
            return NOT_CALLED
        if addresses_others(message, bot_user_id) or message.wording.is_command:
            return NOT_CALLED
        if refused := place.held.refuses_unasked:
            return replace(MENTIONS_ONLY, evidence=refused.in_words)
        return NOT_CALLED if is_thanks else ALONE_TOGETHER

    async def should_respond(
        self,
        message: MessageRecord,
        conversation: ChannelConversation,
        bot_user_id: int,
        place: Place | None = None,
        *,
        reads_history: bool = True,
    ) -> Decision:
        """The decision within a conversation, where the message may already be recorded. place: where it was said.

        reads_history: whether its author may read the history there; else what others said counts for nothing in the
        decision, and the judge is not told it.
        """
        if not message.is_persons:
            return NOTHING
        is_explicit = is_explicit_trigger(message, bot_user_id)
        if not is_explicit and message.reply_to_id is not None and message.reply_to_author_id is None:
            # Discord sent the reply without the message it answers: only the conversation knows its author.
            answered = conversation.find(message.reply_to_id)
            is_explicit = answered is not None and answered.is_bot
        engagement = conversation.engagement_at(message)
        if is_explicit:
            if engagement.is_telling_off(message):
                return TOLD_OFF
            decision = _explicit(message, bot_user_id)
            is_thanks = decision is DIRECT and self._acknowledges(message, conversation, engagement)
            return ACKNOWLEDGED if is_thanks else decision
        conversation = conversation if reads_history else as_told(message, conversation)
        if rule := self._rule(message, conversation, engagement, bot_user_id):
            return rule
        held = place.held if place else NOTHING_SET
        if refused := held.refuses_unasked:
            return replace(MENTIONS_ONLY, evidence=refused.in_words)
        if place and place.is_with_one and _is_alone(message, conversation, bot_user_id, place):
            return ALONE_TOGETHER
        tier = self._tiers.get(held.settings.eagerness, self._followup)
        guess = tier(message, conversation, bot_user_id)
        if guess.score >= tier.open_from and self._goes_on(message, conversation, engagement, bot_user_id):
            guess = guess.turned(True, Reason.RECENT_FOLLOWUP)
        judge = None if held.settings.judge is False else self._judge
        if self._declines and judge is None and held.settings.decline is not False:
            return self._gated(guess, tier, message, conversation)
        low, high = tier.doubt
        is_in_doubt = guess.reason is not Reason.RECENT_FOLLOWUP and low <= guess.score < high
        return (
            await self._ask(judge, message, conversation, place, reads_history=reads_history)
            if judge and is_in_doubt
            else guess
        )

    def _gated(
        self, guess: Decision, tier: FollowupTier, message: MessageRecord, conversation: ChannelConversation
    ) -> Decision:
        """The decision where the agent may decline."""
        low, high = tier.gate
        if guess.score >= high:
            return guess
        is_limited = conversation.declines.limit(message.author_id, message.timestamp)
        goes_on = guess.reason is Reason.RECENT_FOLLOWUP and not is_limited
        is_asked = goes_on or guess.score >= (tier.limited_gate if is_limited else low)
        reason = guess.reason if goes_on else Reason.FOLLOWUP if is_asked else Reason.NO_TRIGGER
        return replace(guess.turned(is_asked, reason), may_decline=is_asked)

    def _rule(
        self, message: MessageRecord, conversation: ChannelConversation, engagement: Engagement, bot_user_id: int
    ) -> Decision | None:
        """The decision of the rules on a message without an explicit trigger; None: they leave it open."""
        if not (message.text or message.images):
            return UNREADABLE  # without the message content intent
        if addresses_others(message, bot_user_id) or message.wording.is_command:
            return NOT_OURS
        if stops_person(message.content, conversation.names.values()):
            return NOT_OURS
        if engagement.standing(message.author_id).told_off or engagement.is_telling_off(message):
            return TOLD_OFF
        if conversation.unwelcome:
            return UNWELCOME[conversation.unwelcome]
        if message.images or message.wording.count > MAX_WORDS:
            return None
        is_due = engagement.is_answer_due(message)
        if message.wording.has_link and not message.wording.count and not is_due:
            return LINK  # it is shared with the channel, and asks the bot nothing
        asked = conversation.last_words_to(message.author_id) if is_due else None
        is_answer = asked is not None and asked.wording.ends_asking
        if is_told_of(message.wording.tokens, engagement.bot_name) and not (message.wording.asks or is_answer):
            return TOLD_OF  # "Parley is nice" is said to the others
        if not is_answer and read_stop(message.content, engagement.bot_name):
            return CALLED_OFF  # it ended what it could end, or is for somebody else
        return ACKNOWLEDGED if self._acknowledges(message, conversation, engagement) else None

    def _acknowledges(self, message: MessageRecord, conversation: ChannelConversation, engagement: Engagement) -> bool:
        """Whether it is a bare thanks, ok or the like, and no answer to a question of the bot's."""
        acknowledgement = bare_acknowledgement(message.text, engagement.bot_name)
        if acknowledgement in (Acknowledgement.CONSENT, Acknowledgement.EMOJI) and engagement.is_answer_due(message):
            # If the bot asked the author something, an ok or an emoji answers it.
            asked = conversation.last_words_to(message.author_id)
            return asked is None or not asked.wording.ends_asking
        return acknowledgement is not None

    def _goes_on(
        self, message: MessageRecord, conversation: ChannelConversation, engagement: Engagement, bot_user_id: int
    ) -> bool:
        """Document 003's two scenarios: the person just answered goes on, or somebody else asks right after.

        Neither holds where the words address the room or another person, where more than 4 people, the author
        included, spoke in the last 5 minutes, or where anybody said more than thanks and the like since the bot spoke.
        """
        if not _spoke_within(self._window, message, engagement):
            return False
        if not looks_like_followup(message.content, message.wording):
            return False
        calls_other = calls_stranger(message.content, message.wording, engagement.bot_name)
        is_for_others = (
            calls_other or names_others(message, conversation, bot_user_id) or "room" in message.wording.talk
        )
        if is_for_others or engagement.standing(message.author_id).is_addressed_by_others:
            return False
        people = engagement.people_since(message.timestamp - RECENT) | {message.author_id}
        if len(people) > QUIET_CHANNEL_PEOPLE:
            return False
        for earlier in reversed(conversation.before(message, MAX_ACKNOWLEDGEMENTS + 1)):
            if earlier.is_bot:
                return True
            if bare_acknowledgement(earlier.text) is None:
                return False
        return False

    async def _ask(
        self,
        judge: Judge,
        message: MessageRecord,
        conversation: ChannelConversation,
        place: Place | None,
        *,
        reads_history: bool,
    ) -> Decision:
        if not reads_history:
            # The judge's yes or no would tell the author what was said: "if the code is 5, this is for you".
            said = told_to({message.author_id}, conversation.messages)
            message = unquoting(message, said)
            conversation = replace(conversation, messages=[*said.values()], names={}, called={})
        try:
            async with asyncio.timeout(self._judge_deadline):
                verdict = await judge(message, conversation, place)
        except TimeoutError:
            return Decision(False, Reason.JUDGE_LATE, tier=3)
        except JudgeError:
            return Decision(False, Reason.JUDGE_FAILED, tier=3)
        score = float(verdict.respond)
        return Decision(verdict.respond, Reason.LLM_JUDGE, tier=3, score=score, evidence=verdict.evidence)


def is_explicit_trigger(message: MessageRecord, bot_user_id: int) -> bool:
    """Whether it calls the bot, or is a direct message."""
    return is_called(message, bot_user_id) or message.is_direct


def is_called(message: MessageRecord, bot_user_id: int) -> bool:
    """A mention of the bot, a call by its name, or a Discord reply to one of its messages."""
    is_to_bot = bot_user_id in message.mentions or message.reply_to_author_id == bot_user_id
    return message.is_persons and (is_to_bot or bool(message.calls_bot))


def _explicit(message: MessageRecord, bot_user_id: int) -> Decision:
    if message.is_direct and not is_called(message, bot_user_id):
        return DIRECT
    return replace(EXPLICIT, evidence="you called me by my name") if message.calls_bot else EXPLICIT


def addresses_others(message: MessageRecord, bot_user_id: int) -> bool:
    """Whether it mentions a person other than the bot, a role or everyone, or replies to somebody but the bot."""
    replies_elsewhere = message.reply_to_id is not None and message.reply_to_author_id != bot_user_id
    return message.mentions_group or replies_elsewhere or bool(message.mentions - {bot_user_id, message.author_id})


def names_others(message: MessageRecord, conversation: ChannelConversation, bot_user_id: int) -> bool:
    """Whether it names a person other than the bot, with or without a mention."""
    return bool(conversation.named_by(message) - {bot_user_id})


def _is_alone(message: MessageRecord, conversation: ChannelConversation, bot_user_id: int, place: Place) -> bool:
    """Whether nobody else has spoken there or is named. The starter message, which has the thread's id, is ignored."""
    here = (m for m in conversation.messages if m.is_persons and m.message_id != place.channel_id)
    is_first = all(m.author_id == message.author_id for m in here)
    return is_first and not names_others(message, conversation, bot_user_id)


def _spoke_within(seconds: float, message: MessageRecord, engagement: Engagement) -> bool:
    spoke = engagement.bot_spoke
    return spoke is not None and message.timestamp - spoke.at < timedelta(seconds=seconds)


def looks_like_followup(content: str, wording: Wording | None = None) -> bool:
    """Document 003's heuristic: a question of under 10 words, or a first word such as "and" or "why".

    wording: of the content; None: it is read here.
    """
    content = content.strip()
    is_short_question = (wording or read(content)).asks and len(content.split()) < SHORT_QUESTION_WORDS
    return is_short_question or CONTINUATION.match(content) is not None
