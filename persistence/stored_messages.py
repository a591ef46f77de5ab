"""The form in which messages are stored, that of the document "State Management", and changes of stored messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import orjson
import structlog
from pydantic import TypeAdapter

from conversation import MessageRecord
from state import Message, MessageCategory
from state.message import REPLY_EXCERPT, UNTRACED, file_key
from storage.store import ANY, Row, unquoted

log = structlog.get_logger()

RECORD = TypeAdapter(MessageRecord)
OPTIONAL = (
    "mentions_group",
    "reply_to_id",
    "reply_to_author_id",
    "reply_to_author",
    "reply_to_text",
    "unasked",
    "tells_off",
    "calls_bot",
    "is_label",
    "is_form",
    "is_other_bot",
    "is_direct",
)

Change = Callable[[Message], Message | None]
"""Returns the message as it is to be stored; None: delete it."""


def to_message(record: MessageRecord, tokens: int = 0) -> Message:
    """Converts a record to a session's message: the text that a reader saw, and its other fields as metadata.

    tokens: as the provider counted. Written by hand for speed, as each message of a conversation comes here.
    """
    fields: dict[str, Any] = {
        "message_id": record.message_id,
        "author": record.author,
        "author_id": record.author_id,
        "is_bot": record.is_bot,
    }
    if record.readable:
        fields["content"] = record.content
    if record.mentioned is not None:
        fields["mentioned"] = list(record.mentioned)
    for name in OPTIONAL:
        if value := getattr(record, name):
            fields[name] = value
    for name, people in ("addressees", record.addressees), ("drew_on", record.drew_on):
        if people:
            fields[name] = list(people)
    for name in ("files", "reply_files"):
        if files := getattr(record, name):
            fields[name] = [asdict(file) for file in files]
    images = [{"type": "image_url", "image_url": {"url": url}} for url in record.images]
    return Message(
        role="assistant" if record.is_bot else "user",
        content=[{"type": "text", "text": record.text}, *images] if images else record.text,
        category=MessageCategory.DIALOG,
        id=f"msg_{record.message_id}",
        timestamp=record.timestamp.isoformat(),
        metadata=fields,
        tokens=tokens,
    )


def to_record(message: Message) -> MessageRecord:
    """Converts back what to_message() made. Raises ValueError for any other message."""
    parts = message.content if isinstance(message.content, list) else [{"type": "text", "text": message.content}]
    text = "".join(part["text"] for part in parts if part["type"] == "text")
    images = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    words = {"readable": text} if "content" in message.metadata else {"content": text}
    return RECORD.validate_python({**message.metadata, **words, "images": images, "timestamp": message.timestamp})


def forget_person(author_id: int, through: int = ANY) -> Change:
    """A Change that drops a person's messages, answers to them or that may quote them, or anybody, and their quotes in
    replies. author_id: also of a channel, for answers that have words of it.

    To be applied to the messages of one channel, the oldest first. through: messages newer than this id stay.
    """
    gone: set[object] = set()

    def change(message: Message) -> Message | None:
        fields = message.metadata
        if fields.get("message_id", 0) > through:
            return message
        draws_on = not {author_id, UNTRACED}.isdisjoint(fields.get("drew_on", ()))
        is_quote = draws_on and message.role == "user" and "reply_to_id" in fields and "is_label" not in fields
        if author_id in (fields.get("author_id"), *fields.get("addressees", ())) or (draws_on and not is_quote):
            gone.add(fields.get("message_id"))
            return None
        if is_quote or fields.get("reply_to_author_id") == author_id:
            unnamed = {name: value for name, value in fields.items() if name not in ("reply_to_author", "drew_on")}
            return quoting(replace(message, metadata=unnamed), "")
        return quoting(message, "") if fields.get("reply_to_id") in gone else message

    return change


def expire(before: datetime) -> Change:
    """A Change that drops messages from before this time."""

    def change(message: Message) -> Message | None:
        moment = datetime.fromisoformat(message.timestamp)
        return message if (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) >= before else None

    return change


def stored_message(row: Row) -> Message | None:
    """A row's message; None: it cannot be read, which is logged."""
    try:
        return None if row.value is None else Message.from_dict(orjson.loads(row.value))
    except ValueError as error:
        _refused(row, error)
        return None


def stored_messages(row: Row) -> list[Message]:
    """The messages of a row other than dialogue; empty: it cannot be read, which is logged."""
    try:
        return [] if row.value is None else [Message.from_dict(each) for each in orjson.loads(row.value)]
    except (ValueError, TypeError) as error:
        _refused(row, error)
        return []


def records(rows: Iterable[Row]) -> Iterator[MessageRecord]:
    """The records of dialogue rows; skips and logs what cannot be read."""
    for row in rows:
        try:
            if message := stored_message(row):
                yield to_record(message)
        except (ValueError, TypeError, KeyError) as error:
            _refused(row, error)


def _refused(row: Row, error: Exception) -> None:
    log.warning("message_refused", channel=row.channel, message=row.id, detail=unquoted(error))


def quoting(message: Message, text: str, attached: Collection[str] = ()) -> Message:
    """A reply with another quote of the message that it replies to. attached: the keys of that one's files; of the
    quote's own, the others are dropped."""
    files = [file for file in message.metadata.get("reply_files", []) if file_key(file["url"]) in attached]
    quoted = {"reply_to_text": text[:REPLY_EXCERPT]} | ({"reply_files": files} if files else {})
    rest = {name: value for name, value in message.metadata.items() if name != "reply_files"}
    return replace(message, metadata=rest | quoted)
