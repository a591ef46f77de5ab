"""Edits and deletions, reported by Discord, or found after a time without connection."""

from __future__ import annotations

from collections.abc import Collection

import structlog

from conversation import ConversationManager, MessageRecord
from discord_io.backlog import LIMIT, Backlog, ChannelGoneError, Message
from offers.offer_channels import OfferChannels
from persistence.expired_conversations import ExpiredConversations
from persistence.holders import Forget, Holders
from persistence.privacy import Privacy
from persistence.snapshots import Snapshots
from stored_conversation import line_of, lines_in
from turns.pending_turns import PendingTurns

log = structlog.get_logger()


class Changes:
    """Applies edits and deletions in Discord to all holders."""

    def __init__(
        self,
        backlog: Backlog,
        conversations: ConversationManager,
        pending: PendingTurns,
        offers: OfferChannels,
        snapshots: Snapshots,
        holders: Holders,
        privacy: Privacy,
    ) -> None:
        self._backlog = backlog
        self._conversations = conversations
        self._pending = pending
        self._offers = offers
        self._snapshots = snapshots
        self._holders = holders
        self._privacy = privacy

    def revised(self, channel_id: int, guild_id: int, message: MessageRecord, *, is_by_author: bool) -> None:
        """Applies a changed message. is_by_author: edited by its author; else a link was unfurled, or it was pinned."""
        self._backlog.requote([message.message_id])
        for place_id in self._places_of(channel_id):
            self._holders.revised(place_id, guild_id, message, is_by_author=is_by_author)

    async def retitled(self, guild_id: int, thread_id: int) -> None:
        """Applies a post's new title, which is kept in the message that opens it."""
        is_known = self._snapshots.has(thread_id) or self._snapshots.may_hold(thread_id, thread_id)
        if is_known and (opening := await self._backlog.opening(thread_id)):
            self.revised(thread_id, guild_id, opening, is_by_author=True)

    def deleted(self, channel_id: int, message_ids: Collection[int]) -> None:
        """Applies the deletion of messages."""
        self._backlog.requote(message_ids)
        self._holders.forget(Forget(self._places_of(channel_id), message_ids=frozenset(message_ids)))

    async def review(self, channel_id: int, guild_id: int, expired: ExpiredConversations) -> list[Message] | None:
        """Applies what changed in a channel while the bot was away, in as many messages as one request returns.

        Leaves out pending questions, which recovery checks itself. Returns the channel's last messages, oldest first;
        None: they cannot be read. Raises ChannelGoneError, once the channel is forgotten, and OSError.
        """
        conversation = self._conversations.get(channel_id)
        held = {m.message_id: m for m in await self._snapshots.newest(channel_id, 2 * LIMIT)}
        lines: dict[int, str] = {}
        first = channel_id + (not self._backlog.is_post(channel_id))  # a post contains the message that opens it
        if conversation:  # but not what was said in another channel
            first = max(first, (conversation.came_from or (0, 0))[1] + 1)
            held |= {m.message_id: m for m in conversation.messages if m.message_id >= first}
            # Of what was read from before its start, only the model's history is kept.
            told = lines_in(conversation.llm_history)
            lines = {i: line for i, line in told.items() if first <= i < conversation.since}
        unfinished = {q.message.message_id for q in self._pending.of(channel_id).questions}
        try:
            messages = await self._backlog.newest(guild_id, channel_id)
        except ChannelGoneError:
            log.info("channel_gone", channel=channel_id)
            await self._privacy.forget_deleted_channel(channel_id)
            raise
        if messages is None:
            return None
        there = {message.id: message for message in messages}
        since = messages[0].id if len(messages) == LIMIT else 0
        seen = {i: m for i, m in held.items() if i >= since and i not in unfinished and not (m.is_label or m.is_form)}
        lines = {i: line for i, line in lines.items() if i >= since and i not in held}
        quoted = {m.reply_to_id or 0 for m in seen.values() if m.is_persons and m.reply_to_text} - unfinished
        if deleted := {*seen, *lines, *(i for i in quoted if i >= max(since, first))} - there.keys():
            self.deleted(channel_id, deleted)
            expired.note_deleted(channel_id, {seen[i].author_id for i in deleted & seen.keys() if seen[i].is_persons})
        listening = self._offers.get(channel_id)
        # Restoring an open offer checks its message itself.
        offered = {listening.offer.subject_id} if listening and listening.offer else set()
        for message_id in (seen.keys() | lines.keys()) & there.keys() - offered:
            if (new := self._backlog.edited(there[message_id])) is None or new.is_bot:
                continue
            if old := seen.get(message_id):
                is_changed = old.words_in(channel_id) != new.words_in(channel_id)
            else:
                is_changed = lines[message_id] != line_of(new)
            if is_changed:
                self.revised(channel_id, guild_id, new, is_by_author=True)
        return messages

    def _places_of(self, channel_id: int) -> list[int]:
        """The channels whose state may contain a channel's messages: itself, and threads that continue from it."""
        known = (thread_id for thread_id in self._backlog.threads_of(channel_id) if self._snapshots.has(thread_id))
        moved = self._conversations.moved_from(channel_id)  # nothing may have been said there yet
        return [*dict.fromkeys([channel_id, *known, *moved, *self._snapshots.threads_of(channel_id)])]  # archived, too
