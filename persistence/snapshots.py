"""Write-behind persistence: snapshots of each channel's and the process's state, and the channels' transcripts.

Changes are stored by the writer's thread, in order. All changes of one step of the event loop are stored together or
not at all.
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

from activity import Observer
from conversation import MessageRecord
from discord_io.backlog import id_at
from persistence.channel_guilds import ChannelGuilds
from persistence.export import Export
from persistence.search import Search
from persistence.stored_messages import Change, expire, forget_person
from persistence.stored_state import ByKind, Encode, Kept, Kinds, StoredState, read_guilds
from persistence.transcript import Transcript
from persistence.writer import SETTLE_SECONDS, Writer
from shards import DIRECT, Shards
from state import Message
from state.consent import Consent
from state.message import Appended
from storage.store import ANY, Key, Row, Store, unquoted

log = structlog.get_logger()

EXPIRED_AT_ONCE = 100  # messages in a page; most often even the first page has none that is too old


class Snapshots:
    """open_store: opens the store; called in the writer's thread. max_messages: see Transcript. observer: see Writer.
    look_up_guild: `look` of ChannelGuilds.
    """

    def __init__(
        self,
        open_store: Callable[[], Store],
        consent: Consent,
        max_messages: int = 5_000,
        observer: Observer | None = None,
        *,
        shards: Shards | None = None,
        look_up_guild: Callable[[int], int | None] = lambda _: None,
    ) -> None:
        self._shards = shards or Shards()
        self._kinds = Kinds()
        self._writer = Writer(open_store, observer, self._emptied)
        self._transcript = Transcript(self._writer, max_messages, self._shards)
        self._guilds = ChannelGuilds(self._shards, look_up_guild)
        self.search = Search(self._transcript, self._writer, consent)
        self._newest: dict[int, int] = {}  # the id of the newest message in each channel's transcript, as far as known
        self._kept: dict[int, set[str]] = {}  # the kinds of snapshots that each channel has, or may have
        self._marked: dict[int, set[str]] = {}
        self._changed: dict[int, set[str]] = {}
        self._restored: set[int] = set()  # the shards whose rows were read, and so may be overwritten
        self._home: int | None = None  # the shard under whose id the process' own snapshots are stored
        self._merged: dict[str, set[Key]] = {}  # other processes' rows, by kind: to be deleted once our own has them
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
        """Registers a kind of snapshot of each channel, guild or shard, or of the process, under the name given.

        if_damaged: what restore() gets in place of a damaged snapshot; None: it is not called.
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
        """Loads what is stored of these shards; None: of all. Raises StoreError where nothing can be read.

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
        """Adds earlier processes' state to this one's, and takes over their rows: one row of each kind stays."""
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
        for kind in kinds:
            self._merged.setdefault(kind, set()).add(Key(kind, 0, id_))
            self.touch(kind)

    def restore(self, channel_id: int, stored: ByKind) -> None:
        """Restores a channel's snapshots. What cannot be read is logged and left out."""
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
        """The rows of this kind that belong to no channel. Raises StoreError where they cannot be read."""
        return await self._writer.run(partial(self._writer.read, kind, 0))

    async def recent(self, channel_id: int, since: int) -> list[MessageRecord]:
        """The messages of the channel's transcript from this id on."""
        return await self._writer.run(partial(self._transcript.recent, channel_id, since))

    async def newest(self, channel_id: int, count: int) -> list[MessageRecord]:
        """The newest messages of the channel's transcript, at most so many."""
        return await self._writer.run(partial(self._transcript.newest, channel_id, ANY, count))

    async def kept(self, channel_id: int, message_ids: Collection[int]) -> dict[int, MessageRecord]:
        """Those of these messages that the channel's transcript holds, by their ids. Raises OSError."""
        return await self._writer.run(partial(self._transcript.find, channel_id, message_ids))

    # What happens

    def touch(self, kind: str, channel_id: int = 0) -> None:
        """Queues a snapshot to be stored, as the state has changed: of a channel, or, with 0, of the process or of each
        of its shards."""
        self._kept.setdefault(channel_id, set()).add(kind)
        self._changed.setdefault(channel_id, set()).update((kind, *self._marked.pop(channel_id, ())))
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self.flush)

    def mark(self, kind: str, channel_id: int) -> None:
        """Queues a channel's snapshot to be stored with the next one that is touched there."""
        self._kept.setdefault(channel_id, set()).add(kind)
        self._marked.setdefault(channel_id, set()).add(kind)

    def purge(self, channel_id: int) -> None:
        """Stores all of a channel's snapshots again, as something in them has to be deleted."""
        for kind in self._kinds.of_channels:
            self.touch(kind, channel_id)

    def store_row(self, kind: str, id_: int, value: bytes | None) -> None:
        """Stores or deletes (None) a row that belongs to no channel, together with other changes of the same step."""
        self._writer.put(partial(self._writer.write, Key(kind, 0, id_), value))

    def drop_rows(self, kind: str, is_old: Callable[[Row], bool]) -> None:
        """Deletes the rows of this kind that belong to no channel and are old, whoever stored them."""

        def drop() -> None:
            for row in self._writer.read(kind, 0):
                if is_old(row):
                    self._writer.write(Key(kind, 0, row.id), None)

        self._writer.put(drop)

    def flush(self) -> None:
        """Hands the changes to the writer, together with what it got in the same step."""
        self._is_due = False
        shards = self._shards
        if not shards.are_all and self._home not in (None, shards.home) and shards.ids:  # another process gets that
            self._merge(self._home, self._kinds.of_process)
            self._home = shards.home
        if not self._changed:
            return
        changed, self._changed = self._changed, {}
        taken = {key: kept.snapshot(of) for key, kept, of in self._rows(changed)}
        for key, encode in taken.items():
            if encode is None:
                self._kept[key.channel].discard(key.kind)
        for channel_id in changed:
            if not self._kept[channel_id]:
                del self._kept[channel_id]
        rows = {} if shards.are_all else self._guilds.rows(changed.keys() - {0}, self._kept)
        for key, value in rows.items():
            self._writer.put(partial(self._writer.write, key, value))
        for key, encode in taken.items():  # one by one, so that one that cannot be encoded does not stop the others
            merged = () if key.channel else self._merged.pop(key.kind, ())
            self._writer.put(partial(self._store, key, encode, merged))

    def _rows(self, changed: Mapping[int, Collection[str]]) -> Iterator[tuple[Key, Kept, int]]:
        """The rows of these kinds, by channel or 0, that this process has to write: key, Kept, id for snapshot()."""
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
        if not self._shards.are_all:
            self._guilds.note(appended.channel_id, appended.guild_id)
            if not self._shards.has(appended.guild_id):  # another process serves the shard now, and writes there
                return
        newest = self._newest.get(appended.channel_id, 0)
        self._newest[appended.channel_id] = max(newest, appended.record.message_id)
        # Earlier changes are stored first: a pending question must be stored before the transcript has its message.
        if self._changed:  # true for few messages
            self.flush()
        add, can_wait = partial(self._transcript.add, appended), appended.record.is_persons
        self._writer.put(add, appended.channel_id, adds=True, can_wait=can_wait)
        self.search.add(appended.channel_id, appended.record)

    def note(self, channel_id: int, message_id: int, messages: Sequence[Message]) -> None:
        """Adds messages other than dialogue to the channel's transcript, after the dialogue up to this message."""
        self.flush()
        if self._guilds.is_ours(channel_id):
            self._writer.put(partial(self._transcript.note, channel_id, message_id, messages), channel_id, adds=True)

    def may_hold(self, channel_id: int, message_id: int) -> bool:
        """Whether the channel's transcript may have this message."""
        return self._guilds.is_ours(channel_id) and message_id <= self._newest.get(channel_id, 0)

    def revised(self, channel_id: int, record: MessageRecord, *, is_reworded: bool = True) -> None:
        """Applies an edit to the transcript. is_reworded: its author changed its words."""
        if self.may_hold(channel_id, record.message_id):
            self._writer.put(partial(self._transcript.revise, channel_id, record, is_reworded=is_reworded), channel_id)
            self.search.drop(channel_id)

    def removed(self, channel_id: int, message_ids: Collection[int]) -> None:
        """Applies a deletion to the transcript."""
        if message_ids and self.may_hold(channel_id, min(message_ids)):
            self._writer.put(partial(self._transcript.remove, channel_id, frozenset(message_ids)), channel_id)
            self.search.drop(channel_id)

    @property
    def channels(self) -> list[int]:
        """The channels that have snapshots."""
        return [channel_id for channel_id in self._kept if channel_id]

    def counts(self) -> dict[str, int]:
        """How many channels have a snapshot, by its kind."""
        return dict(Counter(kind for channel_id, kinds in self._kept.items() if channel_id for kind in kinds))

    @property
    def transcripts(self) -> int:
        """How many channels have a transcript, as far as known."""
        return len(self._newest)

    def has(self, channel_id: int) -> bool:
        """Whether the channel has snapshots."""
        return channel_id in self._kept

    @property
    def outages(self) -> int:
        """How many times the store has started to fail."""
        return self._writer.outages

    async def noted(self, seconds: float = SETTLE_SECONDS) -> None:
        """Waits until all changes would survive a kill, but no longer than this."""
        self.flush()
        await self._writer.settled(seconds)

    async def settled(self) -> bool:
        """Waits some seconds until all is stored, and what was deleted is gone from the disk. Returns whether it is."""
        self.flush()
        return await self._writer.settled(sync=True)

    def leave(self, shard_id: int) -> None:
        """Drops a shard from memory, as another process serves it from now on."""
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

    # When the store has lost all its data, as Redis may

    def when_gone(self, work: Callable[[], None]) -> None:
        """Registers a function that stores again what is in no snapshot."""
        self._when_gone.append(work)

    def _emptied(self) -> None:
        if self._loop and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.stored_is_gone)

    def stored_is_gone(self) -> None:
        """Stores all that is in memory again."""
        log.error(
            "stored_is_gone",
            meaning="what is in memory is stored again; older conversations are lost",
            remedy="let Redis keep its data over a restart (appendonly yes)",
        )
        self._guilds.store_anew()
        self._writer.put(self._transcript.store_anew)
        kept = {**self._kept, 0: {*self._kinds.of_process, *self._kinds.of_shards}}
        for kind, channel_id in [(kind, channel_id) for channel_id, kinds in kept.items() for kind in kinds]:
            self.touch(kind, channel_id)
        for work in self._when_gone:
            work()

    # Deleting. These raise OSError where something could not be removed.

    async def forget_person(
        self, user_id: int, is_here: Callable[[int], bool] = lambda _: True, through: int = ANY
    ) -> None:
        """Deletes a person's messages from transcripts. is_here: whether to do so in a guild's channels, by its id."""
        async with self._removing():
            for channel_id in [c for c, g in (await self._writer.run(self._transcript.channels)).items() if is_here(g)]:
                change = forget_person(user_id, through)
                await self._change_all(channel_id, change, naming=user_id, replies=True)
                await self._writer.run(partial(self._transcript.change_beside, channel_id, change))

    async def forget_where(self, is_gone: Callable[[int, int], bool], through: int = ANY) -> None:
        """Deletes transcripts, up to this message id. is_gone: whether to, by the ids of channel and guild."""
        async with self._removing():
            for channel_id, guild_id in (await self._writer.run(self._transcript.channels)).items():
                if is_gone(channel_id, guild_id):
                    await self._writer.run(partial(self._transcript.drop, channel_id, through))

    async def expire(self, before: datetime) -> None:
        """Deletes messages from before this time from all transcripts, which start with the oldest."""
        async with self._removing(before.timestamp()):
            for channel_id in await self._writer.run(self._transcript.channels):
                await self._change_all(channel_id, expire(before), until_unchanged=True, limit=EXPIRED_AT_ONCE)
                beside = partial(self._transcript.change_beside, channel_id, expire(before), until_unchanged=True)
                await self._writer.run(beside)
        self._newest = {channel_id: newest for channel_id, newest in self._newest.items() if newest >= id_at(before)}

    @asynccontextmanager
    async def _removing(self, before: float = float("inf")) -> AsyncIterator[None]:
        """Wraps a deletion: also deletes damaged data that was set aside, and drops search indexes."""
        self.search.drop()
        try:
            yield
        finally:
            self.search.drop()  # one may have been made while only half was deleted
        await self._writer.run(lambda: self._writer.store.drop_aside(before))
        if not await self._writer.settled(sync=True):
            raise OSError("what is kept could not be written")

    async def _change_all(self, channel_id: int, change: Change, *, until_unchanged: bool = False, **how: Any) -> None:
        """Changes the messages of a channel, page by page. until_unchanged: up to the first page without a change."""
        since: int | None = 0
        while since is not None:
            since, count = await self._writer.run(
                partial(self._transcript.change, channel_id, change, since=since, **how)
            )
            if until_unchanged and not count:
                break
        await self._writer.run(partial(self._transcript.drop_if_empty, channel_id))

    async def known_channels(self) -> dict[int, int]:
        """All channels of which anything is stored, with their guilds (0: unknown), the last used first."""
        transcripts = await self._writer.run(self._transcript.channels)
        return dict(reversed(transcripts.items())) | {c: 0 for c in self.channels if c not in transcripts}

    async def direct_channels(self) -> list[int]:
        """The channels of direct messages that have a transcript, the latest last."""
        return await self._writer.run(self._transcript.direct_channels)

    def channels_of(self, guild_id: int) -> list[int]:
        """The channels of a guild that have snapshots, as far as their guild is known."""
        return [channel_id for channel_id in self.channels if self.guild_of(channel_id) == guild_id]

    def guild_of(self, channel_id: int) -> int:
        """The guild of a channel of which something is stored; 0: unknown."""
        return self._transcript.guild_of(channel_id) or self._guilds.known(channel_id)

    def threads_of(self, channel_id: int) -> list[int]:
        """The threads of a channel that have a transcript."""
        return self._transcript.threads_of(channel_id)

    def moved_from(self, channel_id: int) -> list[int]:
        """The threads to which a conversation of the channel moved."""
        return self._transcript.moved_from(channel_id)

    async def export(self, user_id: int) -> bytes:
        """All stored messages of a person, on all shards, as JSON; empty: there are none."""
        export = Export(user_id)
        for export.channel_id, export.guild_id in (await self._writer.run(self._transcript.of_all_shards)).items():
            await self._change_all(export.channel_id, export.note, naming=user_id)
        return export.to_json()

    def sync(self) -> None:
        """Queues a sync to disk, which also tries again what failed."""
        self._writer.put(self._writer.sync)

    async def close(self) -> None:
        """Stores the rest."""
        self.flush()
        await self._writer.close()
        self.search.close()
