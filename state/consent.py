"""Whose messages may be read, and which ones were forgotten."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from state.message import MessageRecord, requoted
from state.optout import OptOut, redacted, without_quote

Whose = tuple[int | None, int | None]
"""A channel, None: all of them; and a person in it, None: everybody."""
MARKS = TypeAdapter(list[tuple[Whose, int]])


class Forgotten:
    """Marks of what was forgotten up to which message: it must not come back from what Discord still has."""

    def __init__(self) -> None:
        self._marks: dict[Whose, int] = {}

    def mark(self, channel_id: int | None, author_id: int | None, at: int) -> None:
        self._marks[channel_id, author_id] = at

    def covers(self, channel_id: int, record: MessageRecord) -> bool:
        """Whether its author, whom it answers or may quote, or the whole channel was forgotten since.

        Our answer to a click replies to our own card: whom it answers is not known, so any who was forgotten counts.
        """
        if not self._marks:
            return False
        who = {None, record.author_id, *record.addressees, *record.drew_on}
        answers_ourselves = record.is_bot and record.addressees <= {record.author_id}
        marks = (
            at
            for (channel, whose), at in self._marks.items()
            if channel in (None, channel_id) and (answers_ourselves or whose in who)
        )
        return any(record.message_id <= at for at in marks)

    def covers_quote(self, channel_id: int, record: MessageRecord) -> bool:
        """Whether it replies to a message that was forgotten since."""
        whose = (None, record.reply_to_author_id)
        marks = (at for (channel, who), at in self._marks.items() if channel in (None, channel_id) and who in whose)
        return record.reply_to_id is not None and any(record.reply_to_id <= at for at in marks)

    def sweep(self, oldest: int) -> bool:
        """Drops the marks up to this id: what is older is not read any more. Returns whether there were any."""
        left = {whose: at for whose, at in self._marks.items() if at > oldest}
        changed, self._marks = len(left) < len(self._marks), left
        return changed

    def stored(self) -> Any:
        return MARKS.dump_python(list(self._marks.items()), mode="json") or None

    def restore(self, stored: Any) -> None:
        """Raises ValueError for what stored() did not give."""
        self._marks = dict(MARKS.validate_python(stored))


class Consent:
    """What may be read and kept of a message, by who opted out and what was forgotten."""

    def __init__(self, opted_out: OptOut, forgotten: Forgotten) -> None:
        self._opted_out = opted_out
        self._forgotten = forgotten

    def is_opted_out(self, user_id: int) -> bool:
        return user_id in self._opted_out

    def is_forgotten(self, channel_id: int, record: MessageRecord) -> bool:
        return self._forgotten.covers(channel_id, record)

    def readable(self, channel_id: int, record: MessageRecord) -> MessageRecord:
        """The message as far as it may be kept and told."""
        return redacted(record) if record.author_id in self._opted_out else self.unquoted(channel_id, record)

    def unquoted(self, channel_id: int, record: MessageRecord) -> MessageRecord:
        """The message without what it quotes of somebody who does not want to be read, or of what was forgotten."""
        to = record.reply_to_author_id
        if to is not None and to in self._opted_out:
            return without_quote(record)
        return requoted(record, None) if self._forgotten.covers_quote(channel_id, record) else record

    def tellable(self, channel_id: int, record: MessageRecord) -> MessageRecord | None:
        """The message as the model may be told it; None: not at all."""
        return None if self.is_forgotten(channel_id, record) else self.readable(channel_id, record)
