"""The stored form of sessions: each is one JSON object, with one line for each message.

    {"version":1,"id":...,"created_at":...,"last_active":...,"message_count":2,"metadata":{...},"messages":[
    {"role":"user",...},
    {"role":"assistant",...}
    ]}

The first line has all that a list of sessions shows. A record in a journal is one message, with the fields of that line
that it changes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import orjson

from state.session import VERSION, Session
from state.session_messages import Message, SessionError

BATCH = 16  # messages encoded before other threads may run

HEADER = ("id", "created_at", "last_active", "message_count", "metadata")

Header = dict[str, Any]
"""What a list of sessions shows of each, by these names."""


def encode_session(session: Session) -> bytes:
    """Raises SessionError for a session that has no JSON form."""
    first = encoded({"version": VERSION, **session.header()})[:-1] + b',"messages":[\n'
    lines: list[bytes] = []
    for start in range(0, len(session.messages), BATCH):
        lines += map(encode_message, session.messages[start : start + BATCH])
        time.sleep(0)
    return first + b",\n".join(lines) + b"\n]}"


def decode_session(content: bytes) -> Session:
    """Raises as `Session.from_dict` does."""
    try:
        fields = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise SessionError(f"This is no document of a session, it is no JSON ({error}).") from None
    return Session.from_dict(fields)


def take_records(session: Session, records: Iterable[bytes]) -> int:
    """Adds the messages of a journal's records to the session. Returns how many records were unreadable and skipped."""
    skipped = 0
    for record in records:
        try:
            fields = orjson.loads(record)
            session.take(Message.from_dict(fields["message"]), str(fields["last_active"]))
        except (ValueError, KeyError, TypeError):
            skipped += 1
    return skipped


def encode_message(message: Message) -> bytes:
    """Raises SessionError for a message that has no JSON form."""
    return encoded(message.to_dict())


def encode_record(session: Session, message: bytes) -> bytes:
    """Encodes a journal's record. message: already encoded, and already in the session."""
    head = b'{"message_count":%d,"last_active":%s,"message":' % (len(session.messages), encoded(session.last_active))
    return head + message + b"}"


def read_header(content: bytes, record: bytes | None) -> Header | None:
    """Reads what a list shows of a session from its first bytes and latest record; None where that is not enough."""
    first, line_feed, _ = content.partition(b"\n")
    try:
        fields = orjson.loads(first + b"]}" if line_feed else content)
        latest = orjson.loads(record) if record else {}
        header = {name: latest.get(name, fields[name]) for name in HEADER}
        for moment in ("created_at", "last_active"):
            datetime.fromisoformat(header[moment])
        return header if isinstance(header["metadata"], dict) else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def encoded(value: Any) -> bytes:
    """Encodes as JSON. What UTF-8 cannot encode (half of a surrogate pair) becomes a question mark. Raises
    SessionError."""
    try:
        return orjson.dumps(value)
    except TypeError:
        pass
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as error:
        raise SessionError(f"This cannot be stored as JSON: {error}.") from None
