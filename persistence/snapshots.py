"""Write-behind persistence: snapshots of each channel's and the process's state, and the channels' transcripts.

What is told is stored by the writer's thread, in the order in which it was told. What changed in one step of the event
loop is stored together or not at all.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any

import orjson
import structlog

from conversation import MessageRecord
from discord_io.backlog import id_at
from persistence.channel_guilds import ChannelGuilds
from persistence.export import Export
from persistence.search import Search
from persistence.stored_state import ByKind, Encode, Kept, Kinds, StoredState, read_guilds
from persistence.transcript import Change, Transcript, expire, forget_person
from persistence.writer import SETTLE_SECONDS, Writer
from shards import DIRECT, Shards
from state import Message
from state.consent import Consent
from state.message import Appended
from storage.store import ANY, Key, Row, Store, unquoted

log = structlog.get_logger()

EXPIRED_AT_ONCE = 100  # messages of a channel that are looked at; most often nothing is too old


class Snapshots:
    """open_store: called once, in the writer's thread. max_messages: of a session, as Transcript has them. timed: as
    of Writer. look_up_guild: as ChannelGuilds looks.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        consent: Consent,
        max_messages: int = 5_000,
        timed: Callable[[str, float], None] = lambda _operation, _seconds: None,
        *,
        shards: Shards | None = None,
        look_up_guild: Callable[[int], int | None] = lambda _: None,
    ) -> None:
        self._shards = shards or Shards()
        self._kinds = Kinds()
        self._writer = Writer(open_store, timed, self._emptied)
        self._transcript = Transcript(self._writer, max_messages, self._shards)
        self._guilds = ChannelGuilds(self._shards, look_up_guild)
        self.search = Search(self._transcript, self._writer, consent)
        self._newest: dict[int, int] = {}  # the id of the newest message in each channel's transcript, as far as known
        self._kept: dict[int, set[str]] = {}  # the kinds of snapshots that there are, or may be, of each channel
        self._marked: dict[int, set[str]] = {}
        self._changed: dict[int, set[str]] = {}
        self._restored: set[int] = set()  # the shards of which nothing is overwritten any more that is not known here
        self._home: int | None = None  # the shard with which what is kept of the process is stored
        self._merged: set[Key] = set()  # the rows of others, which go once what they held is stored as our own
        self._is_due = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._when_gone: list[Callable[[], None]] = []

    def register(
        self,
        kept: Kept,
        *,
        of_channels: str = "",
        of_guilds: str = "",
        of_shards: str = "",
        of_process: str = "",
        if_damaged: str | None = None,
    ) -> None:
        """Stores one more kind of snapshot of each channel, guild or shard, or of the process.

        if_damaged: what restore() is given in place of one that is damaged; None: nothing.
        """
        kinds = self._kinds
        if name := of_channels or of_guilds:
            kinds.of_channels[name], kinds.if_damaged[name] = kept, if_damaged
        if of_guilds:
            kinds.of_guilds.add(of_guilds)
        if of_shards:
            kinds.of_shards[of_shards] = kept
        if of_process:
            kinds.of_process[of_process] = kept

    # From before

    async def load(self, shard_ids: Collection[int] | None = None) -> StoredState:
        """What there is from before, of these shards; None: of all. Raises StoreError where it cannot be had at all.

        To be called again for shards that this process gets later.
        """
        self._loop = asyncio.get_running_loop()
        kept, guilds, told = await self._writer.run(partial(self._load, shard_ids))
        self._home = self._shards.home if self._home is None else self._home
        self._newest = dict.fromkeys(kept.transcripts, ANY) | self._newest
        for channel_id, by_kind in kept.channels.items():
            self._kept.setdefault(channel_id, set()).update(by_kind)
        self._guilds.add(guilds, told, self._kept)
        return kept

    def _load(self, shard_ids: Collection[int] | None) -> tuple[StoredState, dict[int, int], dict[int, int]]:
        store, shards = self._writer.store, self._shards
        listed = {} if shard_ids is None else self._kinds.listed(store)
        transcripts, known = self._transcript.load(lambda guild: shard_ids is None or shards.of(guild) in shard_ids)
        guilds, told = ({}, {}) if shard_ids is None else read_guilds(store, self._kinds, listed, known)
        kept = self._kinds.read(store, transcripts, listed, {**told, **known, **guilds}, shards, shard_ids)
        for kind, id_, value in ((kind, id_, row[kind]) for id_, row in kept.lacking.items() for kind in row):
            self._writer.write(Key(kind, 0, id_), orjson.dumps(value))
        return kept, guilds, told

    def restore_process(self, kept: StoredState) -> None:
        """Adds what processes kept to what this one does. The rows are its own from then on: one stays of each kind."""
        for id_, by_kind in kept.process.items():
            self._restore(self._kinds.of_process, 0, by_kind)
            if id_ != self._home:
                self._merge(id_, by_kind)
        self._restored |= kept.shards.keys()
        for shard_id, rows in kept.shards.items():
            for id_, by_kind in rows.items():
                self._restore(self._kinds.of_shards, shard_id, by_kind)
                if id_ != shard_id:
                    self._merge(id_, by_kind)

    def _merge(self, id_: int, kinds: Collection[str]) -> None:
        self._merged |= {Key(kind, 0, id_) for kind in kinds}
        for kind in kinds:
            self.touch_process(kind)

    def restore(self, channel_id: int, stored: ByKind) -> None:
        """Gives back what is stored of a channel. What cannot be read is left out."""
        self._restore(self._kinds.of_channels, channel_id, stored)

    def _restore(self, kinds: Mapping[str, Kept], id_: int, stored: ByKind) -> None:
        for kind, kept in kinds.items():
            if stored.get(kind) is None:
                continue
            try:
                kept.restore(id_, stored[kind])
            except ValueError as error:
                log.error("snapshot_refused", kind=kind, channel=id_, detail=unquoted(error))

    async def rows(self, kind: str) -> list[Row]:
        """Those of this kind that are of no channel. Raises StoreError where they cannot be had."""
        return await self._writer.run(partial(self._writer.read, kind, 0))

    async def recent(self, channel_id: int, since: int) -> list[MessageRecord]:
        """What the channel's transcript holds from this message on."""
        return await self._writer.run(partial(self._transcript.recent, channel_id, since))

    async def newest(self, channel_id: int, count: int) -> list[MessageRecord]:
        """The newest messages that the channel's transcript holds, so many at most."""
        return await self._writer.run(partial(self._transcript.newest, channel_id, ANY, count))

    async def kept(self, channel_id: int, message_ids: Collection[int]) -> dict[int, MessageRecord]:
        """Those of these messages that the channel's transcript holds, by their ids. Raises OSError."""
        return await self._writer.run(partial(self._transcript.find, channel_id, message_ids))

    # What happens

    def touch(self, kind: str, channel_id: int) -> None:
        """What a channel's snapshot is of changed, and is to be stored."""
        self.mark(kind, channel_id)
        self._changed.setdefault(channel_id, set()).update(self._marked.pop(channel_id))
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self.flush)

    def mark(self, kind: str, channel_id: int) -> None:
        """What a channel's snapshot is of changed, which is stored with the next that is touched there."""
        self._kept.setdefault(channel_id, set()).add(kind)
        self._marked.setdefault(channel_id, set()).add(kind)

    def purge(self, channel_id: int) -> None:
        """Something that a channel's snapshots held is to be gone."""
        for kind in self._kinds.of_channels:
            self.touch(kind, channel_id)

    def touch_process(self, kind: str) -> None:
        """The same of what is kept of the process, or of each of its shards."""
        self.touch(kind, 0)

    def store_row(self, kind: str, id_: int, value: bytes | None) -> None:
        """Stores a row that is of no channel, or deletes it, together with what changes in the same step."""
        self._writer.put(partial(self._writer.write, Key(kind, 0, id_), value))

    def drop_rows(self, kind: str, is_old: Callable[[Row], bool]) -> None:
        """Deletes those of this kind that are of no channel and old by now, whoever stored them."""

        def drop() -> None:
            for row in self._writer.read(kind, 0):
                if is_old(row):
                    self._writer.write(Key(kind, 0, row.id), None)

        self._writer.put(drop)

    def flush(self) -> None:
        """Hands what has changed to the writer, with what it was given in the same step."""
        self._is_due = False
        if self._home is not None and self._home != self._shards.home and self._shards.ids:  # another process gets that
            self._merge(self._home, self._kinds.of_process)
            self._home = self._shards.home
        changed, self._changed = self._changed, {}
        taken = {key: kept.snapshot(of) for key, kept, of in self._rows(changed)}
        for key, encode in taken.items():
            if encode is None:
                self._kept[key.channel].discard(key.kind)
        for channel_id in changed:
            if not self._kept[channel_id]:
                del self._kept[channel_id]
        for key, value in self._guilds.rows(changed.keys() - {0}, self._kept).items():
            self._writer.put(partial(self._writer.write, key, value))
        for key, encode in taken.items():  # apart: one that cannot be encoded costs no other
            merged = {row for row in self._merged if row.kind == key.kind and not key.channel}
            self._merged -= merged
            self._writer.put(partial(self._store, key, encode, merged))

    def _rows(self, changed: Mapping[int, Collection[str]]) -> Iterator[tuple[Key, Kept, int]]:
        """The rows of these kinds, by channel, or 0, that are this process' to write, and of what each is taken."""
        kinds, shards = self._kinds, self._shards
        for channel_id, by_kind in changed.items():
            if channel_id and self._guilds.is_ours(channel_id):
                for kind in by_kind:
                    yield Key(kind, channel_id), kinds.of_channels[kind], channel_id
        shard_ids = [DIRECT] if shards.are_all else [one for one in shards.ids if one in self._restored]
        for kind in changed.get(0, ()):
            if of_process := kinds.of_process.get(kind):
                for home in shard_ids[:1]:
                    yield Key(kind, 0, home), of_process, 0
            else:
                for shard_id in shard_ids:
                    yield Key(kind, 0, shard_id), kinds.of_shards[kind], shard_id

    def _store(self, key: Key, encode: Encode | None, merged: Collection[Key]) -> None:
        self._writer.write(key, None if encode is None else encode())
        for row in merged:
            self._writer.write(row, None)

    def append(self, appended: Appended) -> None:
        """Appends a message to its channel's transcript."""
        self._guilds.note(appended.channel_id, appended.guild_id)
        if not self._shards.has(appended.guild_id):  # it was given away: another process writes there
            return
        newest = self._newest.get(appended.channel_id, 0)
        self._newest[appended.channel_id] = max(newest, appended.record.message_id)
        # What was touched before is stored before: a question, until the transcript says that it was seen.
        if self._changed:  # so it is with few messages
            self.flush()
        self._writer.put(partial(self._transcript.add, appended))
        self.search.add(appended.channel_id, appended.record)

    def note(self, channel_id: int, message_id: int, messages: Sequence[Message]) -> None:
        """Adds what is no dialogue to the channel's transcript, with the dialogue up to this message."""
        self.flush()
        if self._guilds.is_ours(channel_id):
            self._writer.put(partial(self._transcript.note, channel_id, message_id, messages))

    def may_hold(self, channel_id: int, message_id: int) -> bool:
        """Whether the channel's transcript may hold this message."""
        return message_id <= self._newest.get(channel_id, 0) and self._guilds.is_ours(channel_id)

    def revised(self, channel_id: int, record: MessageRecord, *, is_reworded: bool = True) -> None:
        """Follows an edit. is_reworded: by its author, in its words."""
        if self.may_hold(channel_id, record.message_id):
            self._writer.put(partial(self._transcript.revise, channel_id, record, is_reworded=is_reworded))
            self.search.drop(channel_id)

    def removed(self, channel_id: int, message_ids: Collection[int]) -> None:
        """Follows a deletion."""
        if message_ids and self.may_hold(channel_id, min(message_ids)):
            self._writer.put(partial(self._transcript.remove, channel_id, frozenset(message_ids)))
            self.search.drop(channel_id)

    @property
    def channels(self) -> list[int]:
        """The channels of which something is kept beside the transcript."""
        return [channel_id for channel_id in self._kept if channel_id]

    def counts(self) -> dict[str, int]:
        """Of how many channels there is a snapshot, by its kind."""
        return dict(Counter(kind for channel_id, kinds in self._kept.items() if channel_id for kind in kinds))

    @property
    def transcripts(self) -> int:
        """How many channels have a transcript, as far as known."""
        return len(self._newest)

    def has(self, channel_id: int) -> bool:
        """Whether anything is kept of the channel beside its transcript."""
        return channel_id in self._kept

    @property
    def outages(self) -> int:
        """How many times the store has begun to fail."""
        return self._writer.outages

    async def noted(self, seconds: float = SETTLE_SECONDS) -> None:
        """Waits until all that was told would survive a kill, but no longer than this."""
        self.flush()
        await self._writer.settled(seconds)

    async def settled(self) -> bool:
        """Waits until all that was told is stored, and what has to go is gone, for some seconds. Returns whether."""
        self.flush()
        return await self._writer.settled(sync=True)

    def leave(self, shard_id: int) -> None:
        """Another process has a shard from now on: drops from memory what is kept of it."""
        of_guilds, here = self._kinds.of_guilds, self._newest.keys() | self._kept.keys() - {0}
        guilds = {c: c if of_guilds & self._kept.get(c, set()) else self._guilds.guild(c) for c in here}
        for channel_id in [c for c, g in guilds.items() if self._shards.of(g or self.guild_of(c)) == shard_id]:
            for kept in self._kinds.of_channels.values():
                kept.leave(channel_id)
            for known in (self._newest, self._kept, self._marked, self._changed):
                known.pop(channel_id, None)
            self._guilds.leave(channel_id)
            self.search.drop(channel_id)
            self._writer.put(partial(self._transcript.leave, channel_id))
        self._restored.discard(shard_id)

    # Where the store lost all that it had, as a Redis may

    def when_gone(self, work: Callable[[], None]) -> None:
        """Has this done then: it has stored again what no snapshot holds."""
        self._when_gone.append(work)

    def _emptied(self) -> None:
        if self._loop and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.stored_is_gone)

    def stored_is_gone(self) -> None:
        """Has stored again what is in memory."""
        log.error(
            "stored_is_gone",
            meaning="what is in memory is stored again; of older conversations nothing is left",
            remedy="have Redis keep its data over a restart (appendonly yes)",
        )
        self._guilds.store_anew()
        self._writer.put(self._transcript.store_anew)
        kept = {**self._kept, 0: {*self._kinds.of_process, *self._kinds.of_shards}}
        for kind, channel_id in [(kind, channel_id) for channel_id, kinds in kept.items() for kind in kinds]:
            self.touch(kind, channel_id)
        for work in self._when_gone:
            work()

    # What goes. These raise OSError where something could not be removed.

    async def forget_person(
        self, user_id: int, is_here: Callable[[int], bool] = lambda _: True, through: int = ANY
    ) -> None:
        """Their words go from the transcripts of these guilds' channels. is_here: asked with the ids of guilds."""
        async with self._removing():
            for channel_id in [c for c, g in (await self._writer.run(self._transcript.channels)).items() if is_here(g)]:
                change = forget_person(user_id, through)
                await self._change_all(channel_id, change, naming=user_id, replies=True)
                await self._writer.run(partial(self._transcript.change_beside, channel_id, change))

    async def forget_where(self, is_gone: Callable[[int, int], bool]) -> None:
        """The transcripts of channels go. is_gone: asked with the ids of channel and guild."""
        async with self._removing():
            for channel_id, guild_id in (await self._writer.run(self._transcript.channels)).items():
                if is_gone(channel_id, guild_id):
                    await self._writer.run(partial(self._transcript.drop, channel_id))

    async def expire(self, before: datetime) -> None:
        """What was said before goes from all transcripts, which begin with what is oldest."""
        async with self._removing(before.timestamp()):
            for channel_id in await self._writer.run(self._transcript.channels):
                await self._change_all(channel_id, expire(before), until_unchanged=True, limit=EXPIRED_AT_ONCE)
                beside = partial(self._transcript.change_beside, channel_id, expire(before), until_unchanged=True)
                await self._writer.run(beside)
        self._newest = {channel_id: newest for channel_id, newest in self._newest.items() if newest >= id_at(before)}

    @asynccontextmanager
    async def _removing(self, before: float = float("inf")) -> AsyncIterator[None]:
        """Nor does what was damaged, and set aside, keep what is to be gone."""
        self.search.drop()
        try:
            yield
        finally:
            self.search.drop()  # it may have been made again while only half was gone
        await self._writer.run(lambda: self._writer.store.drop_aside(before))
        if not await self._writer.settled(sync=True):
            raise OSError("what is kept could not be written")

    async def _change_all(self, channel_id: int, change: Change, *, until_unchanged: bool = False, **how: Any) -> None:
        """Changes the messages of a channel, some at a time. until_unchanged: the oldest ones only."""
        since: int | None = 0
        while since is not None:
            since, count = await self._writer.run(
                partial(self._transcript.change, channel_id, change, since=since, **how)
            )
            if until_unchanged and not count:
                break
        await self._writer.run(partial(self._transcript.drop_if_empty, channel_id))

    async def known_channels(self) -> dict[int, int]:
        """All of which anything is kept, with their guilds, 0 where that is not known; the one used last first."""
        transcripts = await self._writer.run(self._transcript.channels)
        return dict(reversed(transcripts.items())) | {c: 0 for c in self.channels if c not in transcripts}

    async def direct_channels(self) -> list[int]:
        """Those of direct messages that have a transcript, the latest one last."""
        return await self._writer.run(self._transcript.direct_channels)

    def channels_of(self, guild_id: int) -> list[int]:
        """The channels of a guild of which something is kept beside the transcript, as far as it can be said."""
        return [channel_id for channel_id in self.channels if self.guild_of(channel_id) == guild_id]

    def guild_of(self, channel_id: int) -> int:
        """The guild of a channel of which something is kept; 0 where it cannot be said."""
        return self._transcript.guild_of(channel_id) or self._guilds.known(channel_id)

    def threads_of(self, channel_id: int) -> list[int]:
        """The threads of a channel that have a transcript."""
        return self._transcript.threads_of(channel_id)

    def moved_from(self, channel_id: int) -> list[int]:
        """Those of them in which a conversation of the channel went on."""
        return self._transcript.moved_from(channel_id)

    async def export(self, user_id: int) -> bytes:
        """All that a person said and that is kept, on all shards, as JSON; empty where that is nothing."""
        export = Export(user_id)
        for export.channel_id, export.guild_id in (await self._writer.run(self._transcript.of_all_shards)).items():
            await self._change_all(export.channel_id, export.note, naming=user_id)
        return export.to_json()

    def sync(self) -> None:
        """Has what was written brought to the disk itself, and what failed tried again."""
        self._writer.put(self._writer.sync)

    async def close(self) -> None:
        """Stores the rest."""
        self.flush()
        await self._writer.close()
        self.search.close()
