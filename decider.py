"""When to speak: every message gets one Decision, with its reason.

Three tiers, each asked only where the one before is silent: an explicit trigger (a mention, a reply to the bot), the
follow-up tier (rules here, exchangeable), and a judge (a fast model) where the follow-up tier is unsure.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple, Protocol

from conversation import ChannelConversation
from state.engagement import RECENT, Engagement
from state.message import MessageRecord, called_by_name

JUDGE_DEADLINE_SECONDS = 3.0
QUIET_CHANNEL_PEOPLE = 4
SHORT_QUESTION_WORDS = 10
CONTINUATION = re.compile(r"(and|also|what about|how about|why|but)\b", re.IGNORECASE)


class Reason(StrEnum):
    """Why the bot speaks or keeps silent. The first four names are document 003's."""

    EXPLICIT_TRIGGER = "explicit_trigger"
    RECENT_FOLLOWUP = "recent_followup"
    LLM_JUDGE = "llm_judge"
    NO_TRIGGER = "no_trigger"
    ANSWER_DUE = "answer_due"
    NAMES_OTHERS = "names_others"
    JUDGE_FAILED = "judge_failed"
    JUDGE_LATE = "judge_late"
    STOP = "stop"
    DELETED = "deleted"
    CHANNEL_NOT_LISTED = "channel_not_listed"
    MISSING_PERMISSION = "missing_permission"
    USER_CAP = "user_cap"
    DAILY_CAP = "daily_cap"
    SHUTTING_DOWN = "shutting_down"


IN_WORDS: Mapping[Reason, tuple[str, str]] = {
    Reason.EXPLICIT_TRIGGER: ("you mentioned me or replied to me", ""),
    Reason.RECENT_FOLLOWUP: ("I had just spoken and this reads like a follow-up", ""),
    Reason.ANSWER_DUE: ("my last words went to you, and you named nobody else", ""),
    Reason.LLM_JUDGE: ("the judge took it as meant for me", "the judge took it as not meant for me"),
    Reason.NO_TRIGGER: ("", "nothing suggested that it was meant for me"),
    Reason.NAMES_OTHERS: ("", "it was addressed to somebody else"),
    Reason.JUDGE_FAILED: ("", "I was unsure, and the judge could not be asked"),
    Reason.JUDGE_LATE: ("", "I was unsure, and the judge took too long"),
    Reason.STOP: ("", "you told me to stop"),
    Reason.DELETED: ("", "it was deleted while I thought about it"),
    Reason.CHANNEL_NOT_LISTED: ("", "I am not set up to speak in this channel"),
    Reason.MISSING_PERMISSION: ("", "I am not allowed to write in this channel"),
    Reason.USER_CAP: ("", "you had reached the number of answers per minute"),
    Reason.DAILY_CAP: ("", "today's token budget was spent"),
    Reason.SHUTTING_DOWN: ("", "I was shutting down"),
}


@dataclass(frozen=True, slots=True)
class Decision:
    """Respond or not, and why. tier: 1 explicit, 2 follow-up, 3 judge, 0 none of them. score: how sure, 0 to 1."""

    respond: bool
    reason: Reason
    tier: int = 0
    score: float = 0.0
    evidence: str = ""

    def __iter__(self) -> Iterator[bool | str]:
        yield self.respond
        yield self.reason

    def in_words(self) -> str:
        """One line for people."""
        words = IN_WORDS[self.reason][0 if self.respond else 1] + (f" ({self.evidence})" if self.evidence else "")
        return f"{'answered' if self.respond else 'silent'}: {words}"


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
    """What decides about messages without an explicit trigger: a Decision, or None where it is unsure."""

    def __call__(
        self, message: MessageRecord, conversation: ChannelConversation, engagement: Engagement, bot_user_id: int
    ) -> Decision | None: ...


@dataclass(frozen=True, slots=True)
class FollowupRules:
    """Two rules of thumb. window_seconds: how long after the bot spoke the second rule holds, and doubt is possible."""

    window_seconds: float = 60

    def __call__(
        self, message: MessageRecord, conversation: ChannelConversation, engagement: Engagement, bot_user_id: int
    ) -> Decision | None:
        if not (message.text or message.images):
            return NOTHING  # without the message content intent there is nothing to read
        if addresses_others(message, bot_user_id):
            return NOT_OURS
        decision = self._by_turn(message, engagement)
        if decision != NOTHING and called_by_name(message, conversation.names):
            return NOT_OURS
        return decision

    def _by_turn(self, message: MessageRecord, engagement: Engagement) -> Decision | None:
        if engagement.is_answer_due(message):
            return Decision(True, Reason.ANSWER_DUE, tier=2, score=0.7)
        if not self._bot_spoke_just_now(message, engagement):
            return NOTHING
        if engagement.bot_spoke_last and is_quiet(message, engagement) and looks_like_followup(message.content):
            return Decision(True, Reason.RECENT_FOLLOWUP, tier=2, score=0.6)
        return None

    def _bot_spoke_just_now(self, message: MessageRecord, engagement: Engagement) -> bool:
        if engagement.bot_spoke_at is None:
            return False
        return message.timestamp - engagement.bot_spoke_at < timedelta(seconds=self.window_seconds)


class ResponseDecider:
    """Decides, message by message. judge: None to do without."""

    def __init__(
        self,
        *,
        followup: FollowupTier | None = None,
        judge: Judge | None = None,
        judge_deadline_seconds: float = JUDGE_DEADLINE_SECONDS,
    ) -> None:
        self._followup = followup or FollowupRules()
        self._judge = judge
        self._judge_deadline = judge_deadline_seconds

    def should_start_conversation(self, message: MessageRecord, bot_user_id: int) -> Decision:
        """Outside a conversation only an explicit trigger counts."""
        if is_explicit_trigger(message, bot_user_id):
            return EXPLICIT
        return NOTHING

    async def should_respond(
        self, message: MessageRecord, conversation: ChannelConversation, bot_user_id: int
    ) -> Decision:
        """Within a conversation, whether the message is recorded in it already or not."""
        if message.is_bot:
            return NOTHING
        if is_explicit_trigger(message, bot_user_id) or _replies_to_bot(message, conversation):
            return EXPLICIT
        decision = self._followup(message, conversation, conversation.engagement_at(message), bot_user_id)
        if decision is not None:
            return decision
        return await self._ask(self._judge, message, conversation) if self._judge else NOTHING

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


def is_explicit_trigger(message: MessageRecord, bot_user_id: int) -> bool:
    """A mention of the bot, or a Discord reply to one of its messages."""
    return not message.is_bot and (bot_user_id in message.mentions or message.reply_to_author_id == bot_user_id)


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


def is_quiet(message: MessageRecord, engagement: Engagement) -> bool:
    """At most 4 people, the author counted, spoke in the last 5 minutes."""
    people = engagement.people_since(message.timestamp - RECENT) | {message.author_id}
    return len(people) <= QUIET_CHANNEL_PEOPLE


def looks_like_followup(content: str) -> bool:
    """Document 003's heuristic: a question of under 10 words, or a word that goes on from what was said."""
    content = content.strip()
    is_short_question = "?" in content and len(content.split()) < SHORT_QUESTION_WORDS
    return is_short_question or CONTINUATION.match(content) is not None


class LoggedDecision(NamedTuple):
    """A decision, and on what."""

    message_id: int
    channel_id: int
    author_id: int
    decision: Decision


class DecisionLog:
    """The last decisions, to be explained later. No message's content is kept. listener: told of each as it is taken.

    Messages that started no conversation have a ring of their own: however many there are, they crowd out nothing else.
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
        """Notes the decision on a message in a conversation, or on one that starts a conversation."""
        self._put(self._entries, LoggedDecision(message_id, channel_id, author_id, decision))

    def add_ignored(self, message_id: int, channel_id: int, author_id: int, decision: Decision) -> None:
        """Notes and counts that a message started no conversation."""
        self.ignored_count += 1
        self._put(self._ignored, LoggedDecision(message_id, channel_id, author_id, decision))

    def _put(self, ring: OrderedDict[int, LoggedDecision], entry: LoggedDecision) -> None:
        ring[entry.message_id] = entry
        if len(ring) > self._size:
            ring.popitem(last=False)
        if self.listener:
            self.listener(entry)

    def find(self, message_id: int) -> LoggedDecision | None:
        return self._entries.get(message_id) or self._ignored.get(message_id)

    def latest(self, channel_id: int, count: int) -> list[LoggedDecision]:
        """The channel's last decisions, newest first."""
        found = (e for ring in (self._entries, self._ignored) for e in ring.values() if e.channel_id == channel_id)
        return sorted(found, reverse=True)[:count]

    def discard(self, message_id: int) -> None:
        """Forgets the decision on one message, if there is one."""
        self._entries.pop(message_id, None)
        self._ignored.pop(message_id, None)

    def drop(self, gone: Callable[[LoggedDecision], bool]) -> None:
        """Forgets the decisions on some messages."""
        for ring in (self._entries, self._ignored):
            for message_id in [entry.message_id for entry in ring.values() if gone(entry)]:
                del ring[message_id]
