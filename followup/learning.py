"""What is learnt from decisions: each one in a conversation is logged, and what is seen later marks earlier ones."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from conversation import ChannelConversation, MessageRecord
from followup.decision_log import DecisionLog, Deletion, Entry, Forgetting, Revision
from followup.outcomes import Mark, Outcomes

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

    def told_off(self, channel_id: int, at: datetime) -> None:
        self._mark(self.outcomes.told_off(channel_id, at.timestamp()))

    def disliked(self, message_id: int, at: datetime) -> None:
        self._mark(self.outcomes.disliked(message_id, at.timestamp()))

    def revised(self, message_id: int, channel_id: int, author_id: int, content: str) -> None:
        self._log.add(Revision(message_id, channel_id, author_id, content if self._keeps_content else None))

    def deleted(self, message_ids: Collection[int], at: datetime) -> None:
        self._log.add(Deletion(frozenset(message_ids)))
        for message_id in message_ids:
            self._mark(self.outcomes.deleted(message_id, at.timestamp()))

    def forgotten(self, channel_id: int, author_id: int | None, through: int) -> None:
        """What a person, or with None everybody, said up to this message id is to be forgotten."""
        self._log.add(Forgetting(channel_id, author_id, through=through))

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

    def _mark(self, mark: Mark | None) -> None:
        if mark:
            self._log.add(mark)
