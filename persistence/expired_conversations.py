"""Stored conversations that have expired, until it is known whether missed messages continue them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from conversation import ConversationManager, MessageRecord, StoredConversation
from discord_io.backlog import Exchange
from persistence.snapshots import Snapshots
from state.message import Appended

log = structlog.get_logger()


class ExpiredConversations(dict[int, tuple[StoredConversation, list[MessageRecord]]]):
    """The stored conversations that have expired by now, with their messages, by channel.

    deleted_by: the people whose messages were deleted while the bot was away, by channel: what an earlier process
    posted, and did not store, may be based on their words.
    """

    def __init__(self, conversations: ConversationManager, snapshots: Snapshots) -> None:
        super().__init__()
        self._conversations = conversations
        self._snapshots = snapshots
        self.deleted_by: dict[int, frozenset[int]] = {}

    def note_deleted(self, channel_id: int, authors: Collection[int]) -> None:
        """Adds to deleted_by, and notes it in the channel's active conversation, if there is one."""
        self.deleted_by[channel_id] = self.deleted_by.get(channel_id, frozenset()).union(authors)
        self._conversations.record_looked_up(channel_id, [("person", who) for who in authors])

    def revive(self, channel_id: int, at: datetime) -> None:
        """Resumes a channel's conversation if it was still active at that time."""
        found = self.get(channel_id)
        if found and self._conversations.restore(channel_id, *found, at=at):
            del self[channel_id]
            self._snapshots.purge(channel_id)  # one that was read from Discord is not stored yet

    def recall(self, channel_id: int, exchange: Exchange) -> None:
        """Records a question and its answer that are in Discord, but were not stored before the process died.

        They belong to the conversation of that time, or start one dated back to them.
        """
        question, place = exchange.question, exchange.place
        log.info("recalled", channel=channel_id, message=question.message_id, answers=len(exchange.answer))
        said = [question, *exchange.answer]
        self._conversations.end_if_silent(channel_id, until=question.timestamp)
        if conversation := self._conversations.get(channel_id):
            self._conversations.follow(channel_id)
            self._conversations.record_looked_up(channel_id, [("person", who) for who in exchange.people])
            said = [question, *(replace(part, drew_on=conversation.looked_up) for part in exchange.answer)]
            for record in said:
                self._conversations.record_message(channel_id, record, by_model=False)
            said = [conversation.find(record.message_id) or record for record in said]
        else:
            self._add(channel_id, said, exchange.people)
        current = self._conversations.get(channel_id) or self[channel_id][0]
        is_moved = current.came_from is not None
        for record in said:
            self._snapshots.append(Appended(channel_id, place.guild_id, record, 0, place.parent_id, is_moved))

    def _add(self, channel_id: int, said: Sequence[MessageRecord], people: frozenset[int]) -> None:
        """Adds messages to the conversation of that time, and resumes it if it is still active now."""
        at = said[0].timestamp
        stored, before = self.get(channel_id) or (None, [])
        alive_at = max([stored.last_activity, *(m.timestamp for m in before)]) if stored else at
        if stored is None or self._conversations.is_over(channel_id, at - alive_at, at):
            stored, before = StoredConversation(at, at, said[0].message_id, -1, frozenset(), []), []
            if left := self._conversations.left_states(channel_id):
                stored = replace(stored, states=left.states, told_before=left.told)
        # The answer may be based on what these people said.
        stored = replace(stored, unwelcome=None, looked_up=stored.looked_up | people)
        self[channel_id] = stored, [*before, *said]
        if self._conversations.restore(channel_id, *self[channel_id]):
            del self[channel_id]
            self._snapshots.purge(channel_id)
