"""What is learnt from decisions: each one in a conversation is logged, and what is seen later marks earlier ones."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from conversation import ChannelConversation, MessageRecord
from followup.decision_log import Assignment, DecisionLog, Entry, Revision, Silence
from followup.outcomes import Mark, Outcomes
from followup.removals import Deletion, Expiry, Forgetting, GuildForgetting

JUDGE_TIER = 3


class Decided(Protocol):
    """A decision, as far as it is logged."""

    @property
    def respond(self) -> bool: ...

    @property
    def reason(self) -> str: ...

    @property
    def tier(self) -> int: ...

    @property
    def score(self) -> float: ...

    @property
    def evidence(self) -> str: ...


class Learning:
    """Feeds the decision log. keeps_content: whether the text of messages goes with it. Times are aware datetimes."""

    def __init__(self, log: DecisionLog, *, keeps_content: bool) -> None:
        self.outcomes = Outcomes()
        self._log = log
        self._keeps_content = keeps_content

    def decided(
        self,
        message: MessageRecord,
        guild_id: int,
        conversation: ChannelConversation,
        decision: Decided,
        *,
        is_explicit: bool,
        is_judgement: bool,
    ) -> None:
        """A decision was taken. is_explicit: on a mention or reply; is_judgement: a silence says: not meant for us."""
        channel_id, at = conversation.channel_id, message.timestamp.timestamp()
        if is_explicit:
            self._mark(self.outcomes.addressed(channel_id, message.author_id, at))
        if decision.respond:
            self.outcomes.answering(channel_id, message.message_id, at)
        elif is_judgement:
            self.outcomes.silent(channel_id, message.author_id, message.message_id, at)
        self._log.add(self._entry(message, guild_id, conversation, decision))

    def silent(self, message: MessageRecord, channel_id: int, reason: str, *, is_judgement: bool) -> None:
        """A message that was to be answered was not, after all. is_judgement: as it was not meant for us."""
        self.outcomes.unanswered(channel_id, message.message_id)
        if is_judgement:
            at = message.timestamp.timestamp()
            self.outcomes.silent(channel_id, message.author_id, message.message_id, at)
        self._log.add(Silence(message.message_id, reason))

    def assigned(self, message_ids: Collection[int], agent: str, reason: str) -> None:
        """An agent was chosen to answer these. agent: empty for the general one; where there is one only, none is."""
        for message_id in message_ids:
            self._log.add(Assignment(message_id, agent, reason))

    def told_off(self, channel_id: int, at: datetime) -> None:
        self._mark(self.outcomes.told_off(channel_id, at.timestamp()))

    def disliked(self, message_id: int, at: datetime) -> Mark | None:
        """Returns what that says of an answer of the bot's, if it was one."""
        return self._mark(self.outcomes.disliked(message_id, at.timestamp()))

    def revised(self, message_id: int, channel_id: int, author_id: int, content: str, guild_id: int = 0) -> None:
        self._log.add(Revision(message_id, channel_id, author_id, content if self._keeps_content else None, guild_id))

    def deleted(self, message_ids: Collection[int], at: datetime) -> list[Mark]:
        """Returns what that says of answers of the bot's, if some were among them."""
        self._log.add(Deletion(frozenset(message_ids)))
        marks = (self._mark(self.outcomes.deleted(message_id, at.timestamp())) for message_id in message_ids)
        return [mark for mark in marks if mark]

    def forgotten(self, channel_id: int | None, author_id: int | None, through: int) -> None:
        """What was said up to this message id, in a channel (None: everywhere) and by a person (None: by anybody)."""
        self._log.add(Forgetting(channel_id, author_id, through=through))

    def guild_forgotten(self, guild_id: int, through: int) -> None:
        """What was said in a guild up to this message id."""
        self._log.add(GuildForgetting(guild_id, through=through))

    def expire(self, before: datetime) -> None:
        """What was said before."""
        self._log.add(Expiry(before.timestamp()))

    def _entry(
        self, message: MessageRecord, guild_id: int, conversation: ChannelConversation, decision: Decided
    ) -> Entry:
        current = conversation.find(message.message_id) or message  # it can have been edited while the judge thought
        return Entry(
            message_id=message.message_id,
            channel_id=conversation.channel_id,
            guild_id=guild_id,
            author_id=message.author_id,
            conversation=conversation.started_at.timestamp(),
            at=message.timestamp.timestamp(),
            respond=decision.respond,
            reason=decision.reason,
            tier=decision.tier,
            score=decision.score,
            # The judge's own words may quote anybody, and would not follow a deletion.
            evidence="" if decision.tier == JUDGE_TIER else decision.evidence,
            content=current.content if self._keeps_content else None,
        )

    def _mark(self, mark: Mark | None) -> Mark | None:
        if mark:
            self._log.add(mark)
        return mark
