"""Recovery after a start or a failed RESUME: finishes pending questions and handles missed messages."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

import structlog

from clock import Clock
from conversation import ConversationManager, StoredConversation
from discord_io.backlog import LIMIT, Backlog, ChannelGoneError, Message, News, id_at
from discord_io.inbox import Inbox
from discord_io.replay import Payload, Replays
from persistence import unfinished_questions
from persistence.changes import Changes
from persistence.expired_conversations import ExpiredConversations
from persistence.snapshots import Snapshots
from persistence.unfinished_questions import UnfinishedQuestions
from shards import DIRECT
from storage.store import StoreError
from turns.gate import Gate
from turns.pending_turns import NOTHING

log = structlog.get_logger()

# Each reads at most 100 messages of a channel. Discord allows 50 requests a second in all, and answers need some.
MAX_REQUESTS = 500
MAX_MESSAGES = 1_000  # of one channel
MOST_REVIEWED = 100  # channels checked for edits and deletions, those used last; one request each
AT_ONCE = 5
# Messages on their way when the process died may be older than the time that was stored last.
MARGIN = timedelta(seconds=10)
LAG = timedelta(seconds=15)  # until the time of the last message known to be received is stored
HELD = timedelta(minutes=2)  # how long new messages wait for a store that cannot be read
# A dead connection is only noticed after a heartbeat went unanswered for a minute.
MARGIN_CONNECTED = timedelta(seconds=75)


class CatchUp:
    """Recovery and catching up of a shard. Keeps its expired conversations until it is known whether missed messages
    continue them.

    slots: limits how many channels of all shards are read at once. seconds: the greatest age of messages to handle.
    burst_seconds: how long a person's messages may be collected, and are not stored yet. replays: messages replayed by
    Discord from while no process served the shard; None: not available.

    If a process ends while it catches up, the next one measures the age from when that one began; but nothing more than
    twice as old is handled.
    """

    def __init__(
        self,
        shard_id: int,
        slots: asyncio.Semaphore,
        *,
        seconds: float,
        burst_seconds: float = 0,
        backlog: Backlog,
        conversations: ConversationManager,
        unfinished: UnfinishedQuestions,
        snapshots: Snapshots,
        gate: Gate,
        changes: Changes,
        inbox: Inbox,
        clock: Clock,
        replays: Replays | None = None,
    ) -> None:
        self._shard_id = shard_id
        self._age = timedelta(seconds=seconds)
        self._burst = timedelta(seconds=burst_seconds)
        self._backlog = backlog
        self._conversations = conversations
        self._unfinished = unfinished
        self._pending = unfinished.pending
        self._snapshots = snapshots
        self._inbox = inbox
        self._gate = gate
        self._changes = changes
        self._clock = clock
        self._replays = replays
        self._replayed: dict[int, list[Payload]] = {}  # replayed messages of channels for which they are complete
        self.expired = ExpiredConversations(conversations, snapshots)
        self._began: dict[int, int] = {}  # the first message of each restored conversation
        self._left: set[int] = set()  # channels with pending questions of an earlier process
        self._slots = slots
        self._spare = 0  # requests that may still be made
        self._cut: set[int] = set()  # channels that were not read completely
        self._unread: dict[int, StoreError | None] = {}  # channels to be tried again; the error: of the store
        self._unread_since: datetime | None = None
        self._reviewed: dict[int, int] = {}  # channels still to be reviewed, with their guilds
        self._edited: set[int] = set()  # messages that were edited during the run, perhaps after they were read
        self.has_run = False
        self._running = asyncio.Lock()
        self._sessions = self._running_of = 0  # the number of gateway sessions so far, and when run() started
        self._is_due = True
        self._lacks_servers = False  # some guilds were not available yet at the last run
        self.alive_at: datetime | None = None
        self.began_at: datetime | None = None  # since when this process, or those before it, have been catching up
        self.first_at = clock()  # when this process started, for the next one, if this is the very first

    # What an earlier process left

    def hold_back(self) -> None:
        """Holds back new messages until run() has found out what was missed."""
        self._is_due, self._lacks_servers = True, False
        self._sessions += 1
        self._gate.close(self._shard_id)

    def available(self) -> bool:
        """Notes that a guild of the shard became available. Returns whether run() may find something there."""
        was_lacking, self._lacks_servers = self._lacks_servers, False
        return was_lacking

    async def restore_conversation(self, channel_id: int, stored: StoredConversation | None) -> None:
        """Restores a channel's conversation after the rest of its state, unless it has expired."""
        if self._pending.of(channel_id) != NOTHING:
            self._left.add(channel_id)
        if stored is None:
            return
        self._began[channel_id] = stored.since
        messages = await self._snapshots.recent(channel_id, stored.since)
        if stored.came_from:  # it moved from a channel, whose transcript has its first messages
            origin, last = stored.came_from
            said = await self._snapshots.recent(origin, stored.since)
            messages = [*(m for m in said if m.message_id <= last), *messages]
        if self._conversations.restore(channel_id, stored, messages) is None:
            # It has expired by now, but missed messages may belong to it.
            self.expired[channel_id] = (stored, messages)

    def changed(self, channel_id: int) -> None:
        """Drops a channel's expired conversation, as something in it was deleted or edited."""
        if self.expired.pop(channel_id, None):
            self._snapshots.purge(channel_id)

    def edited(self, message_id: int) -> None:
        if self.is_running:
            self._edited.add(message_id)

    # Now

    @property
    def is_running(self) -> bool:
        return self._running.locked()

    def beat(self) -> bool:
        """Notes that all messages up to now were received. Returns False while there is still something to catch up."""
        if self._is_due or self.is_running:
            return False
        self.alive_at = self._clock()
        return True

    @property
    def reach(self) -> datetime | None:
        """The time from which the next process would look for missed messages if this one died now."""
        return self.alive_at and self.alive_at - MARGIN - self._burst - LAG

    async def run(self) -> None:
        """Finishes pending questions and handles missed messages. At the very first start there are none.

        Raises StoreError where the store cannot be read; call it again then.
        """
        async with self._running:
            began_at, is_held, self._running_of = self._clock(), False, self._sessions
            self.began_at = self.began_at or began_at
            self._edited.clear()
            self._is_due = self._lacks_servers = not self._backlog.knows_all(self._shard_id)
            try:
                await self._run((MARGIN_CONNECTED if self.has_run else MARGIN) + self._burst)
                self._is_due |= self._is_left
                if not self._is_due:
                    for channel_id in self.expired:
                        self._snapshots.purge(channel_id)
                    self.expired.clear()
                    self.expired.deleted_by.clear()
                    self._began.clear()
                    # Messages since then were received, but may not be handled yet.
                    self.alive_at, self.began_at = began_at, None
                    self._replayed.clear()
                    if self._replays:
                        self._replays.drop(self._shard_id)
                self._unread_since = None
            except BaseException as error:
                self._is_due = True  # the next process catches up with what this one did not
                if isinstance(error, StoreError):
                    self._unread_since = self._unread_since or began_at
                    if is_held := began_at - self._unread_since < HELD:
                        self._gate.close(self._shard_id)  # else new messages would come before missed ones
                        raise
                    left, self._left = self._left, set()
                    await self._work_off_all(left, [], 0)
                raise
            finally:
                self.has_run = True
                for channel_id in self._unread:
                    self._gate.open_channel(channel_id)
                self._unread.clear()
                if not is_held:
                    self._open_gate()

    def _open_gate(self, but: Collection[int] = ()) -> None:
        """Opens the gate, unless a new session has started during the run: what that missed is handled first."""
        if self._sessions == self._running_of:
            self._gate.open(self._shard_id, but=but)

    @property
    def _is_left(self) -> bool:
        """Whether the rest is left to the next process."""
        return self._gate.is_left(self._shard_id)

    @property
    def _oldest(self) -> datetime:
        """The time before which messages are not handled any more."""
        now = self._clock()
        return max(min(self.began_at or now, now) - self._age, now - 2 * self._age)

    async def _run(self, margin: timedelta) -> None:
        oldest = self._oldest
        # A time in the future comes from a clock that was set back since.
        alive = self.alive_at if self.alive_at and oldest + margin < self.alive_at <= self._clock() else oldest + margin
        after = id_at(alive - margin) if self.alive_at else 0
        if not self.has_run:  # the process may have been killed before it created the thread
            for thread_id, origin in self._conversations.unopened():
                if self._backlog.lacks(self._shard_id, thread_id, origin) and self._conversations.get(origin) is None:
                    self._conversations.move(thread_id, origin)
        direct = await self._snapshots.direct_channels() if self._shard_id == DIRECT else []
        found = [*self._backlog.news(self._shard_id, after), *self._backlog.direct(direct, after)] if after else []
        kept = await self._snapshots.known_channels() if after else {}
        left, self._left = self._left, set()  # only after reading the store, which may fail and is tried again
        ordered = sorted(found, key=lambda news: self._rank(news, left))
        ours = (
            (channel_id, guild_id)
            for channel_id, guild_id in kept.items()
            if self._backlog.is_on(self._shard_id, guild_id)
        )
        self._reviewed = dict(islice(ours, MOST_REVIEWED))  # before new messages, as deleted ones must be gone by then
        if replay := self._replays and self._replays.of(self._shard_id):
            said = {n.channel_id: replay.said(n.channel_id, after, n.newest) for n in ordered if n.guild_id}
            self._replayed = {channel_id: messages for channel_id, messages in said.items() if messages is not None}
            log.info("replayed", shard=self._shard_id, channels=len(self._replayed), with_news=len(ordered))
        others = [n.channel_id for n in ordered if n.channel_id not in self._reviewed.keys() | self._replayed.keys()]
        most = MAX_REQUESTS - len(self._reviewed)
        self._spare = most - len(others[:most])
        self._cut = set(others[most:])
        news = [n for n in ordered if n.channel_id not in self._cut]
        failed = await self._work_off_all(left, news, after)
        for seconds in unfinished_questions.RETRY_SECONDS:
            if not failed:
                break
            await asyncio.sleep(seconds)
            again = failed[: max(0, self._spare)]
            self._spare -= len(again)
            failed = [*await self._work_off_all(set(), again, after), *failed[len(again) :]]
        if unread := [error for n in failed if (error := self._unread.get(n.channel_id))]:
            raise unread[0]  # the whole run is repeated once the store can be read
        self._cut |= {n.channel_id for n in failed}
        if self._cut:
            log.warning(
                "catch_up_cut",
                channels_with_news=len(ordered),
                read_whole=len(ordered) - len(self._cut),
                requests=MAX_REQUESTS - self._spare,
                meaning="questions asked meanwhile in the other channels may stay unanswered",
            )

    def _rank(self, news: News, left: Collection[int]) -> tuple[bool, bool, bool, int]:
        """Sorts channels with pending questions or a conversation first, and those where the bot spoke last later."""
        conversation = self._conversations.get(news.channel_id)
        expired = self.expired.get(news.channel_id)
        said = conversation.messages if conversation else expired[1] if expired else []
        is_ours = any(record.is_bot and record.message_id == news.newest for record in said)
        is_going_on = conversation is not None or expired is not None
        return news.channel_id not in left, is_ours, not is_going_on, -news.newest

    async def _work_off_all(self, left: Collection[int], news: Sequence[News], after: int) -> list[News]:
        """Handles channels with pending questions first, those without news last. Returns those not readable."""
        by_id = {n.channel_id: n for n in news}
        channels = list(dict.fromkeys([*left, *by_id, *self._reviewed]))
        self._open_gate(but=channels)
        were_read = await asyncio.gather(*(self._work_off(c, c in left, by_id.get(c), after) for c in channels))
        return [by_id[c] for c, was_read in zip(channels, were_read, strict=True) if not was_read]

    async def _work_off(self, channel_id: int, is_unfinished: bool, news: News | None, after: int) -> bool:
        try:
            if is_unfinished:
                async with self._slots:
                    newest = await self._review(channel_id)
                session = self._sessions
                if not await self._unfinished.finish(
                    channel_id, self.expired, self._oldest, lambda: self._is_left or self._sessions != session
                ):
                    self._left.add(channel_id)  # for the next process, or the next session
            async with self._slots:
                if not is_unfinished:
                    newest = await self._review(channel_id)
                return news is None or await self._take_up(news, after, newest)
        except ChannelGoneError:
            return True
        except Exception:
            # The outermost edge of a channel: a bug in one must not stop the others.
            log.exception("catch_up_broken", channel=channel_id)
            return True
        finally:
            if channel_id not in self._unread:  # new messages would come before the missed ones
                self._gate.open_channel(channel_id)

    async def _review(self, channel_id: int) -> list[Message] | None:
        """Applies edits and deletions that were missed. Returns the channel's last messages, if they were read."""
        guild_id = self._reviewed.pop(channel_id, None)
        try:
            return None if guild_id is None else await self._changes.review(channel_id, guild_id, self.expired)
        except OSError as error:  # of the store; answers need not wait for it
            log.warning("review_failed", channel=channel_id, detail=str(error))
            return None

    # Missed messages

    async def _take_up(self, news: News, after: int, newest: Sequence[Message] | None) -> bool:
        """Handles missed messages of a channel. newest: its last messages, if read before. Returns False if it cannot
        be read."""
        channel_id = news.channel_id
        if (messages := await self._read(news, after, newest)) is None:
            self._unread[channel_id] = None
            return False
        try:
            known = {record.message_id for record in await self._snapshots.recent(channel_id, after)}
        except StoreError as error:  # tried again
            log.warning("catch_up_waits", channel=channel_id, detail=str(error))
            self._unread[channel_id] = error
            return False
        self._unread.pop(channel_id, None)
        known |= {q.message.message_id for q in self._pending.of(channel_id).questions}
        # Messages older than the conversation were decided on before it started.
        unknown = [m for m in messages if m.id not in known and m.id >= self._began.get(channel_id, 0)]
        answered = self._backlog.replied_to(messages) & {m.id for m in unknown}
        if messages:
            log.info("catching_up", channel=channel_id, read=len(messages), missed=len(unknown) - len(answered))
        there = await self._backlog.around(news, messages) if answered else []
        recalled, deleted_by = set[int](), self.expired.deleted_by.get(channel_id, ())
        for read in unknown:
            if self._is_left:
                break
            message = await self._backlog.reread(read) if read.id in self._edited else read
            if message.id not in answered | recalled:
                self.expired.revive(channel_id, message.created_at)
                self._conversations.end_if_silent(channel_id, until=message.created_at)
                await self._inbox.take(message)
            elif not self._inbox.is_over(message.id) and (
                found := await self._backlog.exchange(there, message, known, deleted_by)
            ):
                recalled |= {part.message_id for part in found.answer}
                answer = tuple(part for part in found.answer if not self._inbox.is_over(part.message_id))
                self.expired.recall(channel_id, replace(found, answer=answer))
        return True

    async def _read(self, news: News, after: int, newest: Sequence[Message] | None) -> list[Message] | None:
        """The channel's messages since then; None: they cannot be read."""
        if newest is not None and (len(newest) < LIMIT or newest[0].id <= after):
            return [m for m in newest if m.id > after]
        if (payloads := self._replayed.get(news.channel_id)) is not None:
            return self._backlog.built(news, payloads)
        self._spare -= newest is not None
        messages = page = await self._backlog.since(news.guild_id, news.channel_id, after)
        while page and len(page) == LIMIT and len(messages or ()) < MAX_MESSAGES and self._spare > 0:
            self._spare -= 1
            page = await self._backlog.since(news.guild_id, news.channel_id, page[-1].id)
            messages = [*(messages or ()), *page] if page is not None else None
        if page and len(page) == LIMIT:
            self._cut.add(news.channel_id)
        return messages
