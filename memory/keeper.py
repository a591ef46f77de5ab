"""What the bot keeps: it tells the keeper what happens, and is given back what there was when it starts anew.

Two kinds of documents of layers, one for each channel and one for the process; and the channels' transcripts. What is
told is stored by the writer's thread, in the order in which it was told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

import orjson
import structlog

from conversation import MessageRecord
from memory.documents import Documents, Encode, Layers
from memory.search import Search
from memory.transcript import Transcript
from memory.writer import SETTLE_SECONDS, Writer
from state import SessionManager
from state.store import Store

log = structlog.get_logger()

PROCESS = "process"
SEALED_BY = "sealed_by"
ANY = 2**63  # above all ids of messages

Take = Callable[[int], Encode | None]
"""(channel id, or 0 for the process) -> one layer as it stands; None: there is nothing to keep."""

NOTHING: Mapping[str, Take] = {}


@dataclass(frozen=True, slots=True)
class Kept:
    """What there is from before. channels: by their ids; transcripts: the channels that have one, with their guilds."""

    process: Layers = field(default_factory=dict)
    channels: Mapping[int, Layers] = field(default_factory=dict)
    transcripts: Mapping[int, int] = field(default_factory=dict)


class Keeper:
    """open_store: gives the store of one kind of documents. channel, process: how each layer is taken, by its name.

    sealed_by: what the key in use is told from others by; where another one was used before, all is written anew.
    """

    def __init__(
        self,
        open_store: Callable[[str], Store],
        *,
        channel: Mapping[str, Take] = NOTHING,
        process: Mapping[str, Take] = NOTHING,
        sealed_by: str = "",
        is_gone: Callable[[int, MessageRecord], bool] = lambda _channel_id, _record: False,
    ) -> None:
        self._sealed_by = sealed_by
        self._writer = Writer(lambda: bool(self._channels.failed or self._process.failed))
        self._channel_layers = {layer: partial(_of_channel, take) for layer, take in channel.items()}
        process = {**process, SEALED_BY: lambda _: partial(orjson.dumps, sealed_by)}
        self._process_layers = {layer: partial(_of_process, take) for layer, take in process.items()}
        self._channels = Documents(open_store("channels"), self._writer, self._channel_layers)
        self._process = Documents(open_store("process"), self._writer, self._process_layers)
        self._sessions = open_store("sessions")
        manager = SessionManager(Path("sessions"), store=self._sessions)
        self._transcript = Transcript(manager, self._writer.catch_breath)
        self.search = Search(self._newest_of, is_gone=is_gone)
        self._newest: dict[int, int] = {}  # the id of the newest message in each channel's transcript, as far as known

    def register(self, layer: str, take: Take) -> None:
        """Stores one more layer of each channel."""
        self._channel_layers[layer] = partial(_of_channel, take)

    def register_process(self, layer: str, take: Take) -> None:
        """Stores one more layer of the process."""
        self._process_layers[layer] = partial(_of_process, take)

    # From before

    async def load(self) -> Kept:
        """What there is from before. Raises StoreError where it cannot be had at all."""
        kept = await self._writer.run(self._load)
        if kept.process.get(SEALED_BY) != self._sealed_by:
            self.touch_process(SEALED_BY)
        self._newest = dict.fromkeys(kept.transcripts, ANY) | self._newest
        self._channels.names |= set(map(str, kept.channels))
        return kept

    def _load(self) -> Kept:
        documents, channels = self._process.load(), self._channels.load()
        process = documents.get(PROCESS, {})
        if self._sealed_by and process.get(SEALED_BY) != self._sealed_by:
            self._process.reseal(documents)
            self._channels.reseal(channels)
            self._transcript.reseal()
        by_id = {int(name): layers for name, layers in channels.items() if name.isdecimal()}
        return Kept(process, by_id, self._transcript.channels())

    async def recent(self, channel_id: int, since: int) -> list[MessageRecord]:
        """What the channel's transcript holds from this message on."""
        return await self._writer.run(partial(self._transcript.recent, channel_id, since))

    async def _newest_of(self, channel_id: int, count: int) -> list[MessageRecord]:
        return await self._writer.run(partial(self._transcript.newest, channel_id, count))

    # What happens

    def touch(self, layer: str, channel_id: int) -> None:
        """A channel's layer changed, and is to be stored."""
        self._channels.touch(str(channel_id), layer)

    def mark(self, layer: str, channel_id: int) -> None:
        """A channel's layer changed, which is stored with the next that is touched there."""
        self._channels.mark(str(channel_id), layer)

    def purge(self, channel_id: int) -> None:
        """Something that a channel's layers held is to be gone."""
        self._channels.purge(str(channel_id))

    def touch_process(self, layer: str) -> None:
        self._process.touch(PROCESS, layer)

    def said(self, channel_id: int, guild_id: int, record: MessageRecord) -> None:
        """Appends a message to the channel's transcript."""
        self._newest[channel_id] = max(self._newest.get(channel_id, 0), record.message_id)
        # What was touched before is stored before: a question, until the transcript says that it was seen.
        self._channels.flush()
        self._writer.put(partial(self._transcript.add, channel_id, guild_id, record))
        self.search.said(channel_id, record)

    def may_hold(self, channel_id: int, message_id: int) -> bool:
        """Whether the channel's transcript may hold this message."""
        return message_id <= self._newest.get(channel_id, 0)

    def revised(self, channel_id: int, record: MessageRecord) -> None:
        """Follows an edit."""
        if self.may_hold(channel_id, record.message_id):
            self._writer.put(partial(self._transcript.revise, channel_id, record))
            self.search.drop(channel_id)

    def removed(self, channel_id: int, message_ids: Collection[int]) -> None:
        """Follows a deletion."""
        if message_ids and self.may_hold(channel_id, min(message_ids)):
            self._writer.put(partial(self._transcript.remove, channel_id, frozenset(message_ids)))
            self.search.drop(channel_id)

    @property
    def channels(self) -> list[int]:
        """The channels of which something is kept beside the transcript."""
        return [int(name) for name in self._channels.names if name.isdecimal()]

    def has(self, channel_id: int) -> bool:
        """Whether anything is kept of the channel beside its transcript."""
        return str(channel_id) in self._channels.names

    async def noted(self, seconds: float = SETTLE_SECONDS) -> None:
        """Waits until all that was told would survive a kill, but no longer than this."""
        self._channels.flush()
        await self._writer.settled(seconds)

    async def settled(self) -> bool:
        """Waits until all that was told is stored, and what has to go is gone, for some seconds. Returns whether."""
        self._channels.purge_ended()
        self._channels.flush()
        self._process.flush()
        return await self._writer.settled()

    # What goes. These raise OSError where something could not be removed.

    async def forget_person(self, user_id: int) -> None:
        """Their words go from all transcripts."""
        await self._gone_from_transcripts(partial(self._transcript.forget_person, user_id))

    async def forget_where(self, is_gone: Callable[[int, int], bool]) -> None:
        """The transcripts of channels go. is_gone: asked with the ids of channel and guild, in another thread."""
        await self._gone_from_transcripts(partial(self._transcript.forget_where, is_gone))

    async def expire(self, before: datetime) -> None:
        """What was said before goes from all transcripts."""
        await self._gone_from_transcripts(partial(self._transcript.expire, before))

    async def _gone_from_transcripts(self, work: Callable[[], None]) -> None:
        """Nor does what was damaged, and set aside, keep what is to be gone."""
        self.search.drop()
        try:
            await self._writer.run(work)
        finally:
            self.search.drop()  # it may have been made again while only half was gone
        for drop in (self._sessions.drop_aside, self._channels.drop_aside, self._process.drop_aside):
            await self._writer.run(drop)

    async def guild_of(self, channel_id: int) -> int | None:
        """The guild of a channel that has a transcript, read with care; None where it cannot be said."""
        return await self._writer.run(partial(self._transcript.guild_of, channel_id))

    async def export(self, user_id: int) -> bytes:
        """All that a person said and that is kept, as JSON; empty where that is nothing."""
        return await self._writer.run(partial(self._export, user_id))

    def _export(self, user_id: int) -> bytes:
        said = [
            {
                "server": str(metadata.get("guild_id", "")),
                "channel": str(metadata.get("channel_id", "")),
                "message": str(message.metadata.get("message_id", "")),
                "at": message.timestamp,
                "content": message.content,
            }
            for metadata, message in self._transcript.said_by(user_id)
        ]
        return orjson.dumps({"user": str(user_id), "messages": said}, option=orjson.OPT_INDENT_2) if said else b""

    def sync(self) -> None:
        """Has what was appended brought to the disk itself, and not only to the system; and what failed tried again."""
        self._channels.retry()
        self._process.retry()
        for flush in (self._transcript.flush, self._channels.sync, self._process.sync):
            self._writer.put(flush)

    async def close(self) -> None:
        """Stores the rest."""
        self._channels.purge_ended()
        self._channels.flush()
        self._process.flush()
        for close in (self._transcript.close, self._channels.close, self._process.close):
            self._writer.put(close)
        await self._writer.close()
        self.search.close()


def _of_channel(take: Take, name: str) -> Encode | None:
    return take(int(name))


def _of_process(take: Take, _name: str) -> Encode | None:
    return take(0)
