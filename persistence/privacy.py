"""Forgetting, opt-out and export, carried out wherever something is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from datetime import datetime, timedelta
from functools import partial

import structlog

from clock import Clock
from conversation import ConversationManager
from discord_io.backlog import id_at
from followup.decision_log import DecisionLog
from followup.learning import Removal
from persistence.holders import Forget, Holders
from persistence.people import People
from persistence.snapshots import Snapshots
from state.message import UNTRACED

log = structlog.get_logger()

UNDONE, CHANNEL_UNDONE = "undone", "undone_channel"  # by a person's id, by a channel's: what is being forgotten


class Privacy:
    """Carries out privacy requests. See commands.Privacy for what commands call.

    reread: the age up to which messages are read from Discord again unasked: up to there it is known who was forgotten.
    catches_up: the same of channels that were deleted, or from whose guild the bot was removed.
    """

    def __init__(
        self,
        *,
        holders: Holders,
        snapshots: Snapshots,
        conversations: ConversationManager,
        decision_log: DecisionLog,
        people: People,
        reread: timedelta,
        catches_up: timedelta,
        clock: Clock,
    ) -> None:
        self._holders = holders
        self._snapshots = snapshots
        self._conversations = conversations
        self._decision_log = decision_log
        self._people = people
        self._reread = reread
        self._catches_up = catches_up
        self._clock = clock
        self._at_a_time = asyncio.Lock()  # so that repeated requests do not keep the writer busy
        self._export_at_a_time = asyncio.Lock()  # each reads everything, and holds all that somebody said

    # Opt-out

    def is_opted_out(self, user_id: int) -> bool:
        return user_id in self._people.opted_out

    async def opt_out(self, user_id: int, at: int) -> bool:
        self._people.opt(user_id, at, out=True)
        return await self.forget_person(user_id, at)

    async def opt_in(self, user_id: int, at: int) -> bool:
        self._people.opt(user_id, at, out=False)
        self.leave_unread(user_id, at)
        await self._stored()
        return True

    def leave_unread(self, user_id: int, at: int) -> None:
        """Drops what is known of what somebody said while they were opted out, such as for /why to quote it."""
        self._holders.forget(Forget([], author_id=user_id, through=at))

    # Forgetting

    async def forget_person(
        self, user_id: int, at: int, is_here: Callable[[int], bool] = lambda _guild_id: True
    ) -> bool:
        """Forgets a person's messages, and answers that may quote them. is_here: whether to do so in a guild's
        channels, or, with 0, in direct messages."""
        channels = [each for each in self._snapshots.channels if is_here(self._snapshots.guild_of(each))]
        what = Forget(channels, author_id=user_id, through=at)
        await self._forget(what, partial(self._snapshots.forget_person, user_id, is_here), *self._drawing_on([], at))
        return True

    def _drawing_on(self, channel_ids: Iterable[int], at: int) -> list[Forget]:
        """Requests to forget answers elsewhere out of what tools read in these channels, and any that may have
        anybody's words."""
        # An answer lists the channels where its words were read among the people whose words they are.
        where = {each: self._conversations.drawing_on(each) for each in (*channel_ids, UNTRACED)}
        return [Forget(there, author_id=each, through=at) for each, there in where.items() if there or each != UNTRACED]

    async def forget_stored(self, user_id: int, at: int, is_here: Callable[[int], bool] = lambda _: True) -> None:
        """Removes what forget_person() failed to remove; what they have said since stays, and is answered."""
        await self._remove(partial(self._snapshots.forget_person, user_id, is_here, at))
        self._snapshots.store_row(UNDONE, user_id, None)

    def forget_logged(self) -> None:
        """Removes what was forgotten lately from the decision log: this process may not have run at that time."""
        marks = self._people.forgotten
        for whose in marks:
            self._decision_log.add(Removal(None, *whose, through=marks.at(*whose)))

    async def forget_channel(self, channel_id: int, at: int) -> bool:
        """Forgets a channel, the threads to which a conversation of it moved, and answers elsewhere out of what tools
        read there."""
        gone = self.continued_in(channel_id)

        async def remove() -> None:
            await self._remove_channels(gone)
            for each in gone:
                await self._snapshots.forget_person(each)

        await self._forget(Forget(gone, through=at), remove, *self._drawing_on(gone, at))
        return True

    def continued_in(self, channel_id: int) -> list[int]:
        """The channel, and the threads to which a conversation of it moved."""
        moved = self._snapshots.moved_from(channel_id), self._conversations.moved_from(channel_id)
        return [*dict.fromkeys([channel_id, *moved[0], *moved[1]])]

    async def forget_out_of(self, channel_id: int, at: int, is_here: Callable[[int], bool] = lambda _: True) -> None:
        """Forgets answers out of what tools read in a channel that another process may have, what was forwarded from
        there, and what this process logged of it; also what forget_channel() failed to remove, if this process has the
        channel. is_here: as in forget_person()."""
        self._decision_log.add(Removal(channel_id=channel_id, through=at))
        for quoting in self._drawing_on([channel_id], at):
            self._holders.forget(quoting)
        await self._remove(partial(self._snapshots.forget_where, lambda channel, _guild: channel == channel_id, at))
        await self._remove(partial(self._snapshots.forget_person, channel_id, is_here, at))
        self._snapshots.store_row(CHANNEL_UNDONE, channel_id, None)

    async def forget_deleted_channel(self, channel_id: int) -> None:
        """Forgets a channel that was deleted, with all its threads, or a thread. Not answers elsewhere: for each thread
        all transcripts would be looked through."""
        gone = [*dict.fromkeys([*self.continued_in(channel_id), *self._snapshots.threads_of(channel_id)])]
        what = Forget(gone, through=id_at(self._clock()), is_gone=True)
        await self._forget(what, partial(self._remove_channels, gone))

    async def _remove_channels(self, channel_ids: Collection[int]) -> None:
        await self._snapshots.forget_where(lambda channel, _guild: channel in channel_ids)

    async def forget_guild(self, guild_id: int, channel_ids: Iterable[int]) -> None:
        """Forgets a guild that the bot has left, or that was deleted. channel_ids: those that discord.py knows."""
        gone = {*channel_ids, *self._snapshots.channels_of(guild_id)}  # only the latter has archived threads
        # The guild of a transcript is unknown where the row that tells it is damaged.
        removal = partial(self._snapshots.forget_where, lambda channel, guild: guild == guild_id or channel in gone)
        await self._forget(Forget(list(gone), guild_id=guild_id, through=id_at(self._clock())), removal)

    async def expire(self, before: datetime) -> None:
        """Drops what was said before this time."""
        self._holders.expire(before)
        await self._snapshots.expire(before)

    def sweep(self) -> None:
        now = self._clock()
        self._people.sweep(id_at(now - self._reread), id_at(now - self._catches_up))

    async def settle(self) -> bool:
        return True  # export() also reads rows that are not stored yet

    async def export(self, user_id: int) -> bytes:
        async with self._export_at_a_time:
            return await self._snapshots.export(user_id)

    async def _forget(self, what: Forget, removal: Callable[[], Awaitable[None]], *also: Forget) -> None:
        """Removes it from all three places, even if one fails; then raises OSError. also: only from memory."""
        is_gone = what.is_gone or what.guild_id is not None  # which a next start finds out by itself
        undone = [] if is_gone else [(CHANNEL_UNDONE, each) for each in what.channel_ids]
        if what.author_id is not None:
            undone = [(UNDONE, what.author_id)]
        for channel_id in [None] if what.author_id is not None else what.channel_ids:
            # Message ids tell older messages from newer ones by Discord's own clock.
            self._people.forget(channel_id, what.author_id, what.through, is_gone=is_gone)
        for kind, id_ in undone:
            self._snapshots.store_row(kind, id_, b"%d" % what.through)
        for each in (what, *also):
            self._holders.forget(each)
        await self._remove(removal)
        for kind, id_ in undone:
            self._snapshots.store_row(kind, id_, None)

    async def finish(self) -> None:
        """Removes what an earlier process was removing as it ended, before anything is restored. Raises StoreError."""
        for kind in (UNDONE, CHANNEL_UNDONE):
            for row in await self._snapshots.rows(kind):
                through = int(row.value or id_at(self._clock()))  # if it is damaged, up to now
                try:
                    if kind == CHANNEL_UNDONE:
                        await self.forget_out_of(row.id, through)
                    else:
                        self._decision_log.add(Removal(None, None, row.id, through=through))
                        await self.forget_stored(row.id, through)
                except OSError as error:  # of the disk; the next start tries again
                    meaning = "it is tried again at the next start"
                    log.error("privacy_request_undone", kind=kind, id=row.id, detail=str(error), meaning=meaning)

    async def _remove(self, removal: Callable[[], Awaitable[None]]) -> None:
        async with self._at_a_time:
            flushed = self._decision_log.flush()
            *results, is_logged = await asyncio.gather(self._stored(), removal(), flushed, return_exceptions=True)
        for error in (*results, is_logged):
            if isinstance(error, BaseException):
                raise error
        if not is_logged:
            raise OSError("the decision log could not be written")

    async def _stored(self) -> None:
        if not await self._snapshots.settled():
            raise OSError("what is kept could not be written")
