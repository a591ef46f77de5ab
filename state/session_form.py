"""How sessions are written down: each as one JSON object, and each of its messages on a line.

    {"version":1,"id":...,"created_at":...,"last_active":...,"message_count":2,"metadata":{...},"messages":[
    {"role":"user",...},
    {"role":"assistant",...}
    ]}

The first line alone says what a list of sessions shows. A record in a journal is one message, and what it makes of that
line.
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

BATCH = 16  # messages between two moments in which other threads may go on

HEADER = ("id", "created_at", "last_active", "message_count", "metadata")

Header = dict[str, Any]
"""What a list of sessions shows of one, by these names."""


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
    """Has in the session what was recorded since. Gives how many of them were none, and were skipped."""
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
    """message: as it is encoded; it is in the session already."""
    head = b'{"message_count":%d,"last_active":%s,"message":' % (len(session.messages), encoded(session.last_active))
    return head + message + b"}"


def read_header(content: bytes, record: bytes | None) -> Header | None:
    """What a list shows of a session, by its first bytes and its latest record; None where they do not tell."""
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
    """JSON. What has no form in UTF-8 (half of a surrogate pair) becomes a question mark. Raises SessionError."""
    try:
        return orjson.dumps(value)
    except TypeError:
        pass
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as error:
        raise SessionError(f"This cannot be stored as JSON: {error}.") from None
