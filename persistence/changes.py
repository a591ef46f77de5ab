"""Edits and deletions, as Discord tells of them, or as they are found once the bot is back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

import structlog

from conversation import ConversationManager, MessageRecord
from discord_io.backlog import LIMIT, Backlog, ChannelGoneError, Message, id_at
from offers.offer_channels import OfferChannels
from persistence.holders import Forget, Holders
from persistence.privacy import Privacy
from persistence.snapshots import Snapshots
from turns.pending_turns import PendingTurns

log = structlog.get_logger()


class Changes:
    """Has all who keep something follow what changes in Discord."""

    def __init__(
        self,
        backlog: Backlog,
        conversations: ConversationManager,
        pending: PendingTurns,
        offers: OfferChannels,
        snapshots: Snapshots,
        holders: Holders,
        privacy: Privacy,
        clock: Callable[[], datetime],
    ) -> None:
        self._backlog = backlog
        self._conversations = conversations
        self._pending = pending
        self._offers = offers
        self._snapshots = snapshots
        self._holders = holders
        self._privacy = privacy
        self._clock = clock

    def revised(self, channel_id: int, guild_id: int, message: MessageRecord, *, is_by_author: bool) -> None:
        """A message is changed; by its author, or by a link that is unfurled, or a pin."""
        for place_id in self._places_of(channel_id):
            self._holders.revised(place_id, guild_id, message, is_by_author=is_by_author)

    def deleted(self, channel_id: int, message_ids: Collection[int]) -> None:
        """Messages are deleted."""
        self._holders.forget(Forget(self._places_of(channel_id), message_ids=frozenset(message_ids)))

    async def gone(self, channel_id: int) -> None:
        """A channel or thread is deleted, and what is a thread of it. Raises OSError."""
        await self._privacy.forget_channel(channel_id, id_at(self._clock()), with_threads=True)

    async def review(self, channel_id: int, guild_id: int) -> list[Message] | None:
        """Follows what changed in a channel while nobody heard of it, by one request, as far as that reaches back.

        Unfinished questions are left to whoever finishes them. Returns the channel's last messages, oldest first; None
        where they cannot be had. Raises ChannelGoneError, once the channel is forgotten, and OSError.
        """
        conversation = self._conversations.get(channel_id)
        held = {m.message_id: m for m in await self._snapshots.newest(channel_id, 2 * LIMIT)}
        if conversation:  # with what was read from before it, but for what was said in another channel
            before = max(channel_id, (conversation.came_from or (0, 0))[1])
            held |= {m.message_id: m for m in conversation.messages if m.message_id > before}
        unfinished = {q.message.message_id for q in self._pending.of(channel_id).questions}
        try:
            messages = await self._backlog.newest(guild_id, channel_id)
        except ChannelGoneError:
            log.info("channel_gone", channel=channel_id)
            await self.gone(channel_id)
            raise
        if messages is None:
            return None
        there = {message.id: message for message in messages}
        since = messages[0].id if len(messages) == LIMIT else 0
        seen = {i: m for i, m in held.items() if i >= since and i not in unfinished and not (m.is_label or m.is_form)}
        if deleted := seen.keys() - there.keys():
            self.deleted(channel_id, deleted)
        listening = self._offers.get(channel_id)
        # Whoever restores an open offer looks whether its question still stands.
        offered = {listening.offer.subject_id} if listening and listening.offer else set()
        for message_id in (seen.keys() & there.keys()) - offered:
            new = None if seen[message_id].is_bot else self._backlog.edited(there[message_id])
            if new and new.own_words != seen[message_id].own_words:
                self.revised(channel_id, guild_id, new, is_by_author=True)
        return messages

    def _places_of(self, channel_id: int) -> list[int]:
        """Where what is said in a channel may be known: there, and in threads that go on from it."""
        known = (thread_id for thread_id in self._backlog.threads_of(channel_id) if self._snapshots.has(thread_id))
        return [*dict.fromkeys([channel_id, *known, *self._snapshots.threads_of(channel_id)])]  # archived ones, too
