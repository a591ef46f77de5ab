"""Which messages may be read and kept, after opt-outs and /forget."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import TypeAdapter

from state.message import MessageRecord, requoted
from state.optout import OptOut, redacted, without_quote

Whose = tuple[int | None, int | None]
"""A channel (None: all channels) and a person in it (None: everybody)."""
MARKS = TypeAdapter(list[tuple[Whose, int]])


class Forgotten:
    """Marks up to which message something was forgotten, so that it is not read from Discord again. gone: the channels
    that were deleted, or from whose guild the bot was removed: there may be thousands, in which nobody asked for it."""

    def __init__(self) -> None:
        self.marks: dict[Whose, int] = {}
        self.gone: set[int | None] = set()

    def __iter__(self) -> Iterator[Whose]:
        return iter(self.marks)

    def mark(self, channel_id: int | None, author_id: int | None, at: int, *, is_gone: bool = False) -> None:
        """Marks messages up to the id `at` as forgotten; an older mark does not replace a newer one."""
        (self.gone.add if is_gone else self.gone.discard)(channel_id)
        self.marks[channel_id, author_id] = max(at, self.at(channel_id, author_id))

    def at(self, channel_id: int | None, author_id: int | None) -> int:
        """The id up to which messages were forgotten; -1: none were."""
        return self.marks.get((channel_id, author_id), -1)

    def sweep(self, oldest: int, oldest_gone: int) -> bool:
        """Drops the marks up to these ids, the second for channels that are gone, as older messages are not read any
        more. Returns whether there were any of others."""
        left = {
            whose: at for whose, at in self.marks.items() if at > (oldest_gone if whose[0] in self.gone else oldest)
        }
        changed = any(whose not in left and whose[0] not in self.gone for whose in self.marks)
        self.marks, self.gone = left, self.gone.intersection(channel_id for channel_id, _ in left)
        return changed


class Consent:
    """Decides what may be read and kept of a message, by who opted out and what was forgotten."""

    def __init__(self, opted_out: OptOut, forgotten: Forgotten) -> None:
        self._opted_out = opted_out
        self._forgotten = forgotten

    def is_opted_out(self, user_id: int) -> bool:
        return user_id in self._opted_out

    def is_forgotten(self, channel_id: int, record: MessageRecord) -> bool:
        """Whether its author, somebody whom it answers or may quote, or the whole channel was forgotten since.

        Our answer to a click replies to our own card, so whom it answers is unknown: then anybody's mark counts.
        """
        if not (marks := self._forgotten.marks):
            return False
        if record.is_bot and record.addressees <= {record.author_id}:
            ids = [at for (channel, _), at in marks.items() if channel in (None, channel_id)]
            return record.message_id <= max(ids, default=-1)
        who = (None, record.author_id, *record.addressees, *record.drew_on)
        ids = [self._forgotten.at(channel, each) for channel in (None, channel_id) for each in who]
        return record.message_id <= max(*ids, *(self._forgotten.at(elsewhere, None) for elsewhere in record.drew_on))

    def may_be_forgotten(self, message_id: int) -> bool:
        """Whether anything was forgotten since, which counts if nobody knows whom the message quotes."""
        return message_id <= max(self._forgotten.marks.values(), default=-1)

    def readable(self, channel_id: int, record: MessageRecord) -> MessageRecord:
        """The message without what may not be kept or shown to the model. It may be an old one that has changed."""
        is_unread = record.author_id in self._opted_out or self.is_forgotten(channel_id, record)
        return redacted(record) if is_unread else self.unquoted(channel_id, record)

    def unquoted(self, channel_id: int, record: MessageRecord) -> MessageRecord:
        """The message without its quote, if that is of somebody who opted out or of a forgotten message."""
        to = record.reply_to_author_id
        if to is not None and to in self._opted_out:
            return without_quote(record)
        if record.reply_to_id is None or not self._forgotten.marks:
            return record
        marks = [self._forgotten.at(channel, who) for channel in (None, channel_id) for who in (None, to)]
        return requoted(record, None) if record.reply_to_id <= max(marks) else record

    def tellable(self, channel_id: int, record: MessageRecord) -> MessageRecord | None:
        """The message as the model may be shown it; None: not at all."""
        return None if self.is_forgotten(channel_id, record) else self.readable(channel_id, record)
