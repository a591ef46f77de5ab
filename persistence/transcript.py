"""Each channel's transcript: the messages of its conversations. For the writer's thread alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from hashlib import blake2b

import orjson
import structlog

from conversation import MessageRecord
from persistence.stored_messages import Change, quoting, records, stored_message, stored_messages, to_message
from persistence.writer import Writer
from shards import Shards
from state import Message, MessageCategory
from state.message import UNTRACED, Appended
from state.session_form import encode_message
from storage.store import ANY, Key

log = structlog.get_logger()

MESSAGE, GUILD, SYSTEM, CONTEXT, OUTPUT = "message", "guild", "system", "context", "output"
KIND_OF = {MessageCategory.SYSTEM: SYSTEM, MessageCategory.CONTEXT: CONTEXT, MessageCategory.SYSTEM_OUTPUT: OUTPUT}
QUOTING = b'"reply_to_id"', b"%d" % UNTRACED  # in what may have anybody's words
PAGE = 500  # messages handled at once, before other work of the thread


class Transcript:
    """The rows of all channels' messages, and of the guild that each channel is in.

    Instructions, summaries and tool results have rows of their own, each with messages of one category, under the id of
    the newest dialogue message at the time. max_messages: when a session has so many, the next message starts a new
    one. shards: only their channels are read or changed.
    """

    def __init__(self, writer: Writer, max_messages: int = 5_000, shards: Shards | None = None) -> None:
        self._writer = writer
        writer.drop = self.drop
        self._shards = shards or Shards()
        self._own: set[int] = set()  # where this process does not have all shards: the channels of its own
        self._max_messages = max_messages
        self._newest_sessions: dict[int, tuple[int, int]] = {}  # id of the newest message, number of messages
        self._guilds: dict[int, int] = {}
        self._rules: dict[int, str] = {}  # the digest of each channel's current instructions
        self._parents: dict[int, int] = {}  # by thread
        self._threads: dict[int, set[int]] = {}  # by parent channel
        self._moved: set[int] = set()  # threads to which a conversation of their channel moved

    def load(self, is_wanted: Callable[[int], bool] = lambda _: True) -> tuple[dict[int, int], dict[int, int]]:
        """Loads the channels that have a transcript, with their guilds (0: unknown), the latest last. Also returns the
        stored guilds of the channels of all shards.

        is_wanted: whether a guild is this process' from now on.
        """
        found = self._writer.channels(MESSAGE)  # first, as each channel's guild is stored with its messages
        rows = {row.channel: orjson.loads(row.value) for row in self._writer.store.read(GUILD) if row.value}
        known = {channel_id: row for channel_id, row in rows.items() if is_wanted(row["guild_id"])}
        self._own |= {c for c in found if c in known or (c not in rows and is_wanted(0))}
        self._guilds |= {channel_id: row["guild_id"] for channel_id, row in known.items()}
        self._rules |= {channel_id: row["rules"] for channel_id, row in known.items() if "rules" in row}
        for channel_id, row in known.items():
            if "parent_id" in row:
                self._adopt(channel_id, row["parent_id"])
        self._moved |= {channel_id for channel_id, row in known.items() if row.get("is_moved")}
        channels = {channel_id: guild_id for channel_id, guild_id in self.channels().items() if is_wanted(guild_id)}
        return channels, {channel_id: row["guild_id"] for channel_id, row in rows.items()}

    def channels(self) -> dict[int, int]:
        """The channels that have a transcript, with their guilds (0: unknown), the latest last."""
        found = self._writer.channels(MESSAGE)
        if not self._shards.are_all:
            found = [c for c in found if c in self._own and self._shards.has(self.guild_of(c))]
        return {channel_id: self.guild_of(channel_id) for channel_id in found}

    def of_all_shards(self) -> dict[int, int]:
        """As channels(), with those of other processes."""
        if self._shards.are_all:
            return self.channels()
        rows = self._writer.store.read(GUILD)
        guilds = {row.channel: orjson.loads(row.value)["guild_id"] for row in rows if row.value}
        return {channel_id: guilds.get(channel_id, 0) for channel_id in self._writer.channels(MESSAGE)}

    def direct_channels(self) -> list[int]:
        """The channels known to be direct messages, the latest last."""
        return [channel_id for channel_id in self.channels() if self._guilds.get(channel_id) == 0]

    def guild_of(self, channel_id: int) -> int:
        return self._guilds.get(channel_id, 0)

    def threads_of(self, channel_id: int) -> list[int]:
        return [*self._threads.get(channel_id, ())]

    def moved_from(self, channel_id: int) -> list[int]:
        return [thread_id for thread_id in self.threads_of(channel_id) if thread_id in self._moved]

    def _adopt(self, thread_id: int, parent_id: int) -> None:
        self._parents[thread_id] = parent_id
        self._threads.setdefault(parent_id, set()).add(thread_id)

    def add(self, appended: Appended) -> None:
        channel_id = appended.channel_id
        self._own.add(channel_id)
        parent_id = self._parents.get(channel_id) if appended.parent_id is None else appended.parent_id
        is_new = appended.is_moved and channel_id not in self._moved
        if is_new or (self._guilds.get(channel_id), self._parents.get(channel_id)) != (appended.guild_id, parent_id):
            if appended.is_moved:
                self._moved.add(channel_id)
            self._guilds[channel_id] = appended.guild_id
            if parent_id is not None:
                self._adopt(channel_id, parent_id)
            self._write_guild(channel_id)
        self._continue_full(channel_id, appended.record)
        self._put(channel_id, appended.record.message_id, to_message(appended.record, appended.tokens), is_new=True)

    def store_anew(self) -> None:
        """Drops what was known, as the store has lost it: guilds and instructions are stored again when needed."""
        for known in (self._guilds, self._rules, self._newest_sessions):
            known.clear()
        self._own.clear()

    def _continue_full(self, channel_id: int, record: MessageRecord) -> None:
        """Starts a new session with this message if the newest session is full."""
        newest, count = self._newest_sessions.get(channel_id) or self._newest_session(channel_id)
        if record.message_id <= newest:
            return
        if newest and count >= self._max_messages:
            at, context = record.timestamp.isoformat(), MessageCategory.CONTEXT
            self._write(Key(CONTEXT, channel_id, newest), [Message("system", "", context, f"context_{newest}", at)])
            _, count = self._newest_session(channel_id)
        self._newest_sessions[channel_id] = record.message_id, count + 1

    def _newest_session(self, channel_id: int) -> tuple[int, int]:
        """The id of its newest dialogue message, or 0, and its number of messages, with those carried over."""
        contexts = self._writer.read(CONTEXT, channel_id)
        since = contexts[-1].id + 1 if contexts else 0
        dialog = self._writer.read(MESSAGE, channel_id, since=since)
        beside = self._writer.read(SYSTEM, channel_id) + self._writer.read(OUTPUT, channel_id, since=since)
        told = {message.id for row in contexts for message in stored_messages(row) if message.content}
        count = len(dialog) + sum(len(stored_messages(row)) for row in beside) + len(told)
        return dialog[-1].id if dialog else 0, count

    def _write_guild(self, channel_id: int) -> None:
        known: dict[str, int | str | bool] = {"guild_id": self._guilds[channel_id]}
        for name, of_channels in ("rules", self._rules), ("parent_id", self._parents):
            if channel_id in of_channels:
                known[name] = of_channels[channel_id]
        if channel_id in self._moved:
            known["is_moved"] = True
        self._writer.write(Key(GUILD, channel_id), orjson.dumps(known))

    def note(self, channel_id: int, message_id: int, messages: Sequence[Message]) -> None:
        """Adds messages of one category other than dialogue, unless the channel has no dialogue left; instructions only
        if they have changed.
        """
        if channel_id not in self._guilds:
            return
        kind = KIND_OF[messages[0].category]
        if kind == SYSTEM:
            rules = blake2b(encode_message(replace(messages[0], id="", timestamp="")), digest_size=16).hexdigest()
            if rules == self._rules.get(channel_id):
                return
            self._rules[channel_id] = rules
            self._write_guild(channel_id)
        self._write(Key(kind, channel_id, message_id), messages)
        newest, count = self._newest_sessions.pop(channel_id, (0, 0))
        if newest and kind != CONTEXT:  # a CONTEXT row starts a new session
            self._newest_sessions[channel_id] = newest, count + len(messages)

    def _write(self, key: Key, messages: Sequence[Message]) -> None:
        self._writer.write(key, b"[%b]" % b",".join(map(encode_message, messages)) if messages else None)

    def recent(self, channel_id: int, since: int) -> list[MessageRecord]:
        """The messages from this id on, in the order of their ids."""
        return list(records(self._writer.read(MESSAGE, channel_id, since=max(since, 1))))

    def find(self, channel_id: int, message_ids: Collection[int]) -> dict[int, MessageRecord]:
        """Those of these messages that are stored, by their ids."""
        rows = (self._writer.read(MESSAGE, channel_id, since=i, before=i + 1) for i in message_ids)
        return {record.message_id: record for found in rows for record in records(found)}

    def newest(self, channel_id: int, before: int, count: int) -> list[MessageRecord]:
        """The newest messages below this id, at most so many, the newest first."""
        return list(records(self._writer.read(MESSAGE, channel_id, since=1, before=before, limit=count, newest=True)))

    def revise(self, channel_id: int, record: MessageRecord, *, is_reworded: bool = True) -> None:
        """Applies an edit to the message and to replies that quote it. is_reworded: its author changed its words."""
        if is_reworded:
            self._outdate(channel_id, [record.message_id])

        def change(message: Message) -> Message:
            if message.metadata.get("message_id") == record.message_id:
                return to_message(record)
            is_reply = message.metadata.get("reply_to_id") == record.message_id
            return quoting(message, record.text, record.attached) if is_reply else message

        self._change_naming(record.message_id, channel_id, change)

    def remove(self, channel_id: int, message_ids: Collection[int]) -> None:
        """Applies a deletion."""

        def unquoted(message: Message) -> Message | None:
            if message.metadata.get("reply_to_id") not in message_ids:
                return message
            return None if "is_label" in message.metadata else quoting(message, "")

        for message_id in message_ids:
            self._put(channel_id, message_id, None)
            self._change_naming(message_id, channel_id, unquoted)
        self._outdate(channel_id, message_ids)
        self.drop_if_empty(channel_id)

    def _change_naming(self, message_id: int, channel_id: int, change: Change) -> None:
        since: int | None = message_id
        while since is not None:
            since, _ = self.change(channel_id, change, since=since, naming=message_id)

    def change(
        self,
        channel_id: int,
        change: Change,
        *,
        since: int = 0,
        naming: int | None = None,
        replies: bool = False,
        limit: int = PAGE,
    ) -> tuple[int | None, int]:
        """Changes a page of messages. naming: only those in which this id occurs; None: all, and drops unreadable ones.

        replies: also replies, and what may have anybody's words. Returns the id at which the next page starts (None:
        there is none), and how many messages were changed.
        """
        rows = self._writer.read(MESSAGE, channel_id, since=since, limit=limit)
        marks, count = [b"" if naming is None else b"%d" % naming, *(QUOTING if replies else ())], 0
        for row in rows:
            if row.value is not None and any(mark in row.value for mark in marks):
                message = stored_message(row)
                new = message and change(message)
                if new != message:
                    self._put(channel_id, row.id, new)
                    count += 1
            elif row.value is None and naming is None:
                self._put(channel_id, row.id, None)
                count += 1
        return rows[-1].id + 1 if len(rows) == limit else None, count

    def _outdate(self, channel_id: int, message_ids: Collection[int]) -> None:
        """Drops the summaries and tool results made from any of these messages."""

        def change(message: Message) -> Message | None:
            since, through = message.metadata.get("since", 0), message.metadata.get("through", 0)
            return None if any(since <= one <= through for one in message_ids) else message

        self.change_beside(channel_id, change, since=min(message_ids))

    def change_beside(self, channel_id: int, change: Change, *, since: int = 0, until_unchanged: bool = False) -> None:
        """Drops the rows other than dialogue in which `change` drops a message; the current instructions stay.
        since: not of summaries, whose answers may be newer. until_unchanged: only oldest rows, up to one that stays.
        """
        for kind in KIND_OF.values():
            rows = self._writer.read(kind, channel_id, since=0 if kind == CONTEXT else since)
            for row in rows[:-1] if kind == SYSTEM else rows:
                messages = stored_messages(row)
                if not messages or None in map(change, messages):
                    # The row stays without the summary and its sources, as it tells where a new session starts.
                    left = [replace(m, content="", metadata={}) for m in messages if kind == CONTEXT and m.content]
                    self._write(Key(kind, channel_id, row.id), left)
                elif until_unchanged:
                    break

    def drop(self, channel_id: int, through: int = ANY) -> None:
        """Deletes a channel's transcript, or what it has up to this message id, but for the current instructions."""
        for kind in (MESSAGE, CONTEXT, OUTPUT):
            for row in self._writer.read(kind, channel_id, before=min(through + 1, ANY)):
                self._writer.write(Key(kind, channel_id, row.id), None)
        self._newest_sessions.pop(channel_id, None)
        (self._drop_guild if through == ANY else self.drop_if_empty)(channel_id)

    def drop_if_empty(self, channel_id: int) -> None:
        """Deletes the rest of a channel's transcript if no message is left."""
        if channel_id in self._guilds and not self._writer.read(MESSAGE, channel_id, limit=1):
            self._drop_guild(channel_id)

    def _drop_guild(self, channel_id: int) -> None:
        for kind in KIND_OF.values():
            for row in self._writer.read(kind, channel_id):
                self._writer.write(Key(kind, channel_id, row.id), None)
        self._writer.write(Key(GUILD, channel_id), None)
        self.leave(channel_id)

    def leave(self, channel_id: int) -> None:
        """Drops a channel from memory; changes nothing that is stored."""
        for known in (self._guilds, self._newest_sessions, self._rules):
            known.pop(channel_id, None)
        for channels in (self._own, self._moved):
            channels.discard(channel_id)
        if (parent_id := self._parents.pop(channel_id, None)) is not None:
            self._threads[parent_id].discard(channel_id)
            if not self._threads[parent_id]:
                del self._threads[parent_id]

    def _put(self, channel_id: int, message_id: int, message: Message | None, *, is_new: bool = False) -> None:
        if message is None:
            self._newest_sessions.pop(channel_id, None)  # to be counted again
        value = None if message is None else encode_message(message)
        self._writer.write(Key(MESSAGE, channel_id, message_id), value, is_new=is_new)
