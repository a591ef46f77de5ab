"""Decisions on messages: whether to answer, the reason in words, and the latest ones, for /why."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, floor
from typing import NamedTuple, Protocol, Self

from stored_conversation import Unwelcome

JUDGE_TIER = 3
WITH_SOMEBODY = "you were talking with somebody else"
"""Evidence without a name: where it is shown, the person is mentioned instead."""


class Reason(StrEnum):
    """Why the bot answers or keeps silent: a name, the words for an answer, and the words for a silence.

    The first four names are document 003's.
    """

    answered: str
    silent: str

    def __new__(cls, name: str, answered: str = "", silent: str = "") -> Self:
        reason = str.__new__(cls, name)
        reason._value_, reason.answered, reason.silent = name, answered, silent
        return reason

    EXPLICIT_TRIGGER = "explicit_trigger", "you mentioned me or replied to me", ""
    DIRECT_MESSAGE = "direct_message", "you wrote to me in a direct message", ""
    RECENT_FOLLOWUP = "recent_followup", "I had just spoken and this reads like a follow-up", ""
    LLM_JUDGE = (
        "llm_judge",
        "the judge, a second model, took it as meant for me",
        "the judge, a second model, took it as not meant for me",
    )
    NO_TRIGGER = "no_trigger", "", "I did not think it was meant for me"
    ANSWER_DUE = "answer_due", "my last message was to you, and you spoke to nobody else by name", ""
    AWAITED = "awaited", "I asked you something, and this is your answer", ""
    ALONE_TOGETHER = "alone_together", "only you and I are here", ""
    FOLLOWUP = "followup", "I thought it was meant for me", ""
    NAMES_OTHERS = "names_others", "", "it was addressed to somebody else"
    TOLD_OFF = "told_off", "", "you told me to keep out, so I wait until you call me"
    UNWELCOME = (
        "unwelcome",
        "",
        "my last answer, which came without a call, was not welcome, so I wait until somebody calls me",
    )
    ACKNOWLEDGEMENT = "acknowledgement", "", "thanks, ok or a laugh needs no answer"
    JUDGE_FAILED = "judge_failed", "", "I was unsure, and the judge, a second model, could not be asked"
    JUDGE_LATE = "judge_late", "", "I was unsure, and the judge, a second model, took too long"
    DECLINED = "declined", "", "my model was asked, and thought that it was not meant for me or needed no answer"
    DECLINE_FAILED = "decline_failed", "", "I was unsure, and my model failed when it was asked for an answer"
    STOP = "stop", "", "I was told to stop"
    DELETED = "deleted", "", "it was deleted while I thought about it"
    OPTED_OUT = "opted_out", "", "you asked me not to read your messages, and did not mention me"
    CHANNEL_NOT_LISTED = "channel_not_listed", "", "I am not set up to speak in this channel"
    ANSWERS_OFF = "answers_off", "", "my answers are switched off here"
    PAUSED = "paused", "", "my owner has paused me in this server"
    THREADS_OFF = "threads_off", "", "I take no part in threads here"
    NOT_ALLOWED = "not_allowed", "", "I am not set up to answer the person who wrote it here"
    SETTINGS_UNREAD = "settings_unread", "", "I cannot read the settings here, so I answer nobody"
    MENTIONS_ONLY = "mentions_only", "", "I answer here only when I am called"
    DIRECT_MESSAGES_OFF = "direct_messages_off", "", "I am not set up to answer your direct messages"
    MISSING_PERMISSION = "missing_permission", "", "I am not allowed to write in this channel"
    USER_CAP = "user_cap", "", "you had reached the limit of answers per minute"
    DAILY_CAP = "daily_cap", "", "the budget was spent, or the rest of it was kept for those who call me"
    QUEUE_FULL = "queue_full", "", "more questions were waiting than I could answer in time"
    SHUTTING_DOWN = "shutting_down", "", "I was shutting down"
    OFFERED = "offered", "nobody had asked me, but offers are on in this channel", ""
    OFFER_ACCEPTED = "offer_accepted", "I had offered it, and you said yes", ""
    OFFER_DECLINED = "offer_declined", "", "you said no to what I had offered"


NOT_JUDGED = frozenset(
    map(
        Reason,
        """stop told_off unwelcome deleted opted_out channel_not_listed answers_off paused threads_off
        not_allowed settings_unread mentions_only direct_messages_off missing_permission
        user_cap daily_cap queue_full shutting_down offer_declined""".split(),
    )
)
"""Reasons to be silent other than whom a message was meant for: such a silence is never a miss of the decider's."""

SET_SO = frozenset(
    {
        Reason.CHANNEL_NOT_LISTED,
        Reason.ANSWERS_OFF,
        Reason.PAUSED,
        Reason.THREADS_OFF,
        Reason.NOT_ALLOWED,
        Reason.SETTINGS_UNREAD,
    }
)
"""Reasons to be silent even when called: settings of a place, by the owner or by those who manage its server."""

CALLING = frozenset({Reason.EXPLICIT_TRIGGER, Reason.DIRECT_MESSAGE})
"""Reasons to answer because the message was said to the bot and to nobody else."""
PROMPTED = CALLING | {Reason.AWAITED, Reason.ALONE_TOGETHER, Reason.OFFERED, Reason.OFFER_ACCEPTED}


@dataclass(frozen=True, slots=True)
class Decision:
    """Respond or not, and why. tier: 1 explicit, 2 follow-up, 3 judge, 0 none of them. score: how sure, 0 to 1.

    evidence: what spoke for the decision; contrary: what spoke against it, which is not shown. agent: in words, which
    agent was chosen to answer and why; model: name of the model that answered; both empty until known. may_decline:
    whether the answering agent may still decline. partner: id of the person whom WITH_SOMEBODY in the evidence means.
    """

    respond: bool
    reason: Reason
    tier: int = 0
    score: float = 0.0
    evidence: str = ""
    agent: str = ""
    may_decline: bool = False
    partner: int | None = None
    contrary: str = ""
    model: str = ""

    def __iter__(self) -> Iterator[bool | str]:
        yield self.respond
        yield self.reason

    @property
    def is_unprompted(self) -> bool:
        """Whether the bot answers although nobody called it and it had asked nobody."""
        return self.respond and self.reason not in PROMPTED

    def turned(self, respond: bool, reason: Reason) -> Decision:
        """The decision with this outcome and the same score. Evidence and contrary change places where it differs."""
        told = (self.evidence, self.contrary) if respond is self.respond else (self.contrary, self.evidence)
        return replace(self, respond=respond, reason=reason, evidence=told[0], contrary=told[1])

    @property
    def unquoting(self) -> Decision:
        """The decision without words of a model's or of a stop, which may name or quote anybody."""
        is_free = self.tier == JUDGE_TIER or self.reason in (Reason.DECLINED, Reason.STOP)
        evidence, agent = "" if is_free else self.evidence, self.agent.partition(" (")[0]
        if (evidence, agent) == (self.evidence, self.agent):
            return self  # as thousands are, with each edit
        return replace(self, evidence=evidence, agent=agent)

    def in_words(self) -> str:
        """One line for people."""
        outcome = "offered" if self.reason is Reason.OFFERED else "answered" if self.respond else "silent"
        words = self.reason.answered if self.respond else self.reason.silent
        if self.reason is Reason.FOLLOWUP and self.score < 0.5:
            words = "I thought it might be meant for me"
        told = self.evidence
        if self.reason in (Reason.EXPLICIT_TRIGGER, Reason.DAILY_CAP) and told:  # the evidence is the reason, precisely
            words, told = told, ""
        if self.partner is not None:
            told = told.replace(WITH_SOMEBODY, f"you were talking with <@{self.partner}>, I think")
        known = [told] if told else []
        if self.score and self.reason in (Reason.FOLLOWUP, Reason.NO_TRIGGER) and (self.evidence or self.contrary):
            # Rounded up for an answer and down for a silence, so that no figure means both.
            share = ceil(100 * self.score) if self.respond else floor(100 * self.score)
            known.append(f"{'' if self.respond else 'only '}{min(max(share, 1), 99)}% sure")
        evidence = f" ({': '.join(known)})" if known else ""
        undeclined = ", and my model did not decline" if self.respond and self.may_decline else ""
        agent = f"; {self.agent}" if self.agent else ""
        model = f"; the model was {self.model}" if self.respond and self.model else ""
        return f"{outcome}: {words}{evidence}{undeclined}{agent}{model}"


EXPLICIT = Decision(True, Reason.EXPLICIT_TRIGGER, tier=1, score=1.0)
DIRECT = Decision(True, Reason.DIRECT_MESSAGE, tier=1, score=1.0)
NOTHING = Decision(False, Reason.NO_TRIGGER)
NOT_CALLED = replace(NOTHING, evidence="we were in no conversation here, and you did not call me")
UNREADABLE = replace(NOTHING, evidence="I could read no words or picture in it")
LINK = replace(NOTHING, evidence="it was only a link")
TOLD_OF = replace(NOTHING, evidence="you talked about me, not to me")
CALLED_OFF = replace(NOTHING, evidence="a bare “stop” or “never mind” wants no answer")
NOT_OURS = Decision(False, Reason.NAMES_OTHERS, tier=2)
AWAITED = Decision(True, Reason.AWAITED, tier=2, score=1.0)
ALONE_TOGETHER = Decision(True, Reason.ALONE_TOGETHER, tier=2, score=1.0)
OFFER_ACCEPTED = Decision(True, Reason.OFFER_ACCEPTED, tier=2, score=1.0)
OFFER_DECLINED = Decision(False, Reason.OFFER_DECLINED, tier=2)
TOLD_OFF = Decision(False, Reason.TOLD_OFF, tier=2)
UNWELCOME: Mapping[Unwelcome, Decision] = {
    Unwelcome.TOLD_OFF: Decision(False, Reason.UNWELCOME, tier=2, evidence="somebody told me to keep out"),
    Unwelcome.DELETED: Decision(False, Reason.UNWELCOME, tier=2, evidence="somebody deleted it"),
    Unwelcome.DISLIKED: Decision(False, Reason.UNWELCOME, tier=2, evidence="it got a thumbs down"),
}
MENTIONS_ONLY = Decision(False, Reason.MENTIONS_ONLY, tier=2)
ACKNOWLEDGED = Decision(False, Reason.ACKNOWLEDGEMENT, tier=2)


class LoggedDecision(NamedTuple):
    """A decision with the message that it is on. guild_id: 0 for a direct message, or where unknown."""

    message_id: int
    channel_id: int
    author_id: int
    decision: Decision
    guild_id: int = 0


class Listener(Protocol):
    """Is told of decisions."""

    def decided(self, entry: LoggedDecision) -> None: ...


class RecentDecisions:
    """The latest decisions, for /why, without the messages' content.

    size: how many are kept of each kind; those on messages that started no conversation are kept apart, so that they
    do not crowd out the others. listener: told of each decision. mark: rises whenever words are deleted.
    """

    def __init__(self, size: int = 2_000, listener: Listener | None = None) -> None:
        self._size = size
        self._entries: OrderedDict[int, LoggedDecision] = OrderedDict()
        self._ignored: OrderedDict[int, LoggedDecision] = OrderedDict()
        self._gone: OrderedDict[int, int] = OrderedDict()  # by channel: the mark at its last deletion of words
        self._gone_anywhere = 0
        self.mark = 0
        self._listener = listener
        self.ignored_count = 0

    def __len__(self) -> int:
        return len(self._entries) + len(self._ignored)

    def add(
        self,
        message_id: int,
        channel_id: int,
        author_id: int,
        decision: Decision,
        guild_id: int = 0,
        *,
        is_ignored: bool = False,
    ) -> None:
        """Notes the decision on a message. is_ignored: it is in no conversation and starts none; these are counted.

        Replaces an earlier decision on it: a message first ignored may be answered once an offer is accepted.
        """
        entries, entry = self._entries, LoggedDecision(message_id, channel_id, author_id, decision, guild_id)
        if is_ignored:
            entries = self._ignored
            self.ignored_count += 1
        else:
            self._ignored.pop(message_id, None)
        entries[message_id] = entry
        if len(entries) > self._size:
            entries.popitem(last=False)
        if self._listener:
            self._listener.decided(entry)

    def assigned(self, message_id: int, words: str) -> None:
        """Notes in words which agent was chosen to answer. Does nothing where the decision is no longer kept."""
        if entry := self._entries.get(message_id):
            self._entries[message_id] = entry._replace(decision=replace(entry.decision, agent=words))

    def made_by(self, message_id: int, model: str) -> None:
        """Notes the name of the model that answered."""
        if entry := self._entries.get(message_id):
            self._entries[message_id] = entry._replace(decision=replace(entry.decision, model=model))

    def find(self, message_id: int) -> LoggedDecision | None:
        return self._entries.get(message_id) or self._ignored.get(message_id)

    def latest(self, channel_id: int, count: int) -> list[LoggedDecision]:
        """The channel's last decisions, newest first."""
        found = [e for e in (*self._entries.values(), *self._ignored.values()) if e.channel_id == channel_id]
        return sorted(found, key=lambda entry: entry.message_id, reverse=True)[:count]

    def discard(self, message_id: int) -> None:
        """Forgets the decision on one message, if there is one."""
        self._entries.pop(message_id, None)
        self._ignored.pop(message_id, None)

    def unquote(self, channel_ids: Collection[int] | None = None) -> None:
        """Removes what may quote deleted words from the decisions in these channels; None: in all channels.

        as_noted() does the same for a decision by a model that was asked before the deletion.
        """
        self.mark += 1
        if channel_ids is None:
            self._gone_anywhere = self.mark
        for channel_id in channel_ids or ():
            self._gone[channel_id] = self.mark
            self._gone.move_to_end(channel_id)
            if len(self._gone) > self._size:  # the dropped channel's mark from now on counts for all channels
                self._gone_anywhere = max(self._gone_anywhere, self._gone.popitem(last=False)[1])
        channel_ids = channel_ids and {*channel_ids}
        for entries in (self._entries, self._ignored):
            for message_id, entry in entries.items():
                is_there = channel_ids is None or entry.channel_id in channel_ids
                if is_there and (decision := entry.decision.unquoting) is not entry.decision:
                    entries[message_id] = entry._replace(decision=decision)

    def as_noted(self, channel_id: int, decision: Decision, since: int) -> Decision:
        """The decision as it may be noted: without quotes where words of the channel were deleted after this mark.

        since: the mark when the decision was begun.
        """
        is_stale = max(self._gone_anywhere, self._gone.get(channel_id, 0)) > since
        return decision.unquoting if is_stale else decision

    def drop(self, gone: Callable[[LoggedDecision], bool]) -> None:
        """Forgets the decisions on some messages."""
        for entries in (self._entries, self._ignored):
            for message_id in [entry.message_id for entry in entries.values() if gone(entry)]:
                del entries[message_id]
