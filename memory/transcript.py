"""Each channel's transcript: the messages of its conversations, in sessions that continue one another.

All but the two functions on values is for the writer's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import structlog
from pydantic import TypeAdapter

from conversation import MessageRecord
from llm_history import REPLY_EXCERPT
from state import Message, MessageCategory, Session, SessionManager
from state.session import VersionError

log = structlog.get_logger()

RECORD = TypeAdapter(MessageRecord)
ALL = 1_000_000
OPTIONAL = (
    "mentions_group",
    "reply_to_id",
    "reply_to_author_id",
    "reply_to_author",
    "reply_to_text",
    "unasked",
    "tells_off",
    "calls_bot",
)

Change = Callable[[Message], Message | None]


def to_message(record: MessageRecord) -> Message:
    """A message as sessions have it: what a reader of the channel saw, and, as metadata, the record's other fields."""
    images = [{"type": "image_url", "image_url": {"url": url}} for url in record.images]
    return Message(
        role="assistant" if record.is_bot else "user",
        content=[{"type": "text", "text": record.text}, *images] if images else record.text,
        category=MessageCategory.DIALOG,
        id=f"msg_{record.message_id}",
        timestamp=record.timestamp.isoformat(),
        metadata=_metadata(record),
    )


def _metadata(record: MessageRecord) -> dict[str, Any]:
    """What the message itself does not tell. By hand, as each message of a conversation passes here."""
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
    if record.addressees:
        fields["addressees"] = list(record.addressees)
    return fields


def to_record(message: Message) -> MessageRecord:
    """The record that a message was made from. Raises ValueError for one that was not made by to_message."""
    parts = message.content if isinstance(message.content, list) else [{"type": "text", "text": message.content}]
    text = "".join(part["text"] for part in parts if part["type"] == "text")
    images = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    words = {"readable": text} if "content" in message.metadata else {"content": text}
    return RECORD.validate_python({**message.metadata, **words, "images": images, "timestamp": message.timestamp})


class Transcript:
    """The sessions of all channels. A channel's first one has the channel's id for its own.

    between: called between one session and the next where all of them are gone through.
    """

    def __init__(self, manager: SessionManager, between: Callable[[], None] = lambda: None) -> None:
        self._manager = manager
        self._between = between
        self._current: dict[int, str] = {}

    def add(self, channel_id: int, guild_id: int, record: MessageRecord) -> None:
        """Appends a message, in a new session once the current one is full."""
        session = self._session(channel_id, guild_id)
        if self._manager.check_session_boundary(session):
            session = self._continue(channel_id, session)
        session.add_message(to_message(record))

    def recent(self, channel_id: int, since: int) -> list[MessageRecord]:
        """The messages from this id on, in the order of their ids."""
        messages = (
            message
            for session in self._back_to(channel_id, since)
            for message in session.messages
            if _message_id(message) >= max(since, 1)
        )
        return sorted(_records(messages), key=lambda record: record.message_id)

    def newest(self, channel_id: int, count: int) -> list[MessageRecord]:
        """The newest messages, so many at most, in the order of their ids."""
        messages: list[Message] = []
        for session in self._back_to(channel_id, 0):
            messages += session.messages
            if len(messages) >= count:
                break
            self._between()
        records = _records(message for message in messages if _message_id(message))
        return sorted(records, key=lambda record: record.message_id)[-count:]

    def revise(self, channel_id: int, record: MessageRecord) -> None:
        """Follows an edit: in the message, and in replies that quote it."""

        def change(message: Message) -> Message | None:
            if _message_id(message) == record.message_id:
                return to_message(record)
            return (
                _quoting(message, record.text) if message.metadata.get("reply_to_id") == record.message_id else message
            )

        self._change(channel_id, record.message_id, change)

    def remove(self, channel_id: int, message_ids: Collection[int]) -> None:
        """Follows a deletion."""

        def change(message: Message) -> Message | None:
            if _message_id(message) in message_ids:
                return None
            return _quoting(message, "") if message.metadata.get("reply_to_id") in message_ids else message

        self._change(channel_id, min(message_ids, default=0), change)

    def forget_person(self, author_id: int) -> None:
        """Drops what a person said anywhere, what was answered to them, and what others' replies quote of it."""

        def change(message: Message) -> Message | None:
            if author_id == message.metadata.get("author_id") or author_id in message.metadata.get("addressees", ()):
                return None
            return _quoting(message, "") if message.metadata.get("reply_to_author_id") == author_id else message

        self._everywhere(lambda session: self._manager.revise_messages(session["id"], change))

    def forget_where(self, is_gone: Callable[[int, int], bool]) -> None:
        """Deletes the sessions of channels. is_gone: asked with the ids of channel and guild."""

        def delete(row: dict[str, Any]) -> None:
            channel_id = _channel_of(row)
            # The list reads no more than a file's beginning, and unchecked: before so much goes it is read with care.
            if not is_gone(channel_id, row["metadata"].get("guild_id", 0)):
                return
            session = self._found(row["id"])
            if is_gone(channel_id, session.metadata.get("guild_id", 0) if session else 0):
                self._manager.delete_session(row["id"])
                self._current.pop(channel_id, None)

        self._everywhere(delete)

    def expire(self, before: datetime) -> None:
        """Drops what was said before."""

        def change(message: Message) -> Message | None:
            return message if _moment(message.timestamp) >= before else None

        def drop_old(row: dict[str, Any]) -> None:
            if _moment(row["created_at"]) >= before:
                return
            self._manager.revise_messages(row["id"], change)
            session = self._found(row["id"])
            if session and not session.messages and not {"continued_from", "continued_to"} & session.metadata.keys():
                self._manager.delete_session(session.id)

        self._everywhere(drop_old)

    def said_by(self, author_id: int) -> Iterator[tuple[dict[str, Any], Message]]:
        """All that a person said, each with its session's metadata."""
        for listed in self._all():
            self._between()
            session = self._found(listed["id"])
            for message in session.messages if session else ():
                if message.metadata.get("author_id") == author_id:
                    yield listed["metadata"], message

    def channels(self) -> dict[int, int]:
        """The channels that have a transcript, with their guilds."""
        return {
            channel_id: row["metadata"].get("guild_id", 0) for row in self._all() if (channel_id := _channel_of(row))
        }

    def guild_of(self, channel_id: int) -> int | None:
        """The guild of a channel that has a transcript, read with care; None where it cannot be said."""
        session = self._found(str(channel_id))
        return session.metadata.get("guild_id") if session else None

    def reseal(self) -> None:
        """Writes all sessions anew, with the key that holds now: twice, since what was there becomes the backup."""
        for row in self._all():
            if session := self._found(row["id"]):
                self._manager.save_session(session)
                self._manager.save_session(session)

    def flush(self) -> None:
        self._manager.flush()

    def close(self) -> None:
        self._manager.save_all()
        self._manager.close()

    def _change(self, channel_id: int, oldest: int, change: Change) -> None:
        """Changes the channel's sessions, as far back as the oldest message that is meant."""
        for session in self._back_to(channel_id, oldest):
            self._manager.revise_messages(session.id, change)

    def _back_to(self, channel_id: int, oldest: int) -> Iterator[Session]:
        """The channel's sessions, from the current one back to the one that may hold this message."""
        session = self._load(channel_id)
        seen: set[str] = set()
        while session and session.id not in seen:
            seen.add(session.id)
            ids = [message_id for m in session.messages if (message_id := _message_id(m))]
            yield session
            before = session.metadata.get("continued_from")
            session = self._found(str(before)) if before and not (ids and ids[0] <= oldest) else None

    def _session(self, channel_id: int, guild_id: int) -> Session:
        session = self._load(channel_id)
        if session is None:
            metadata = {"channel_id": channel_id, "guild_id": guild_id}
            session = self._manager.create_session(self._current.get(channel_id, str(channel_id)), metadata)
        elif "channel_id" not in session.metadata:  # it was damaged
            session.metadata.update(channel_id=channel_id, guild_id=guild_id)
            self._manager.save_session(session)
        return session

    def _load(self, channel_id: int) -> Session | None:
        """The channel's current session: the last of those that continue its first."""
        try:
            session = self._manager.load_session(self._current.get(channel_id, str(channel_id)))
        except VersionError as error:
            log.error("session_refused", channel=channel_id, detail=str(error))
            self._current[channel_id] = f"{channel_id}.other"  # that one stays as it is
            session = self._found(self._current[channel_id])
        seen = set()  # a file that somebody wrote by hand may name itself
        while session and session.id not in seen and (later := session.metadata.get("continued_to")):
            seen.add(session.id)
            session = self._found(str(later)) or session
        if session and session.id != str(channel_id):
            self._current[channel_id] = session.id
        return session

    def _continue(self, channel_id: int, session: Session) -> Session:
        index = int(session.metadata.get("continuation_index", 0)) + 1
        session_id = f"{channel_id}.{index}"
        following = self._found(session_id)
        if following is None:
            following = self._manager.create_continuation_session(session, session_id=session_id)
        else:  # a kill came before its source knew of it
            session.metadata["continued_to"] = following.id
            self._manager.save_session(session)
        self._current[channel_id] = following.id
        return following

    def _found(self, session_id: str) -> Session | None:
        try:
            return self._manager.load_session(session_id)
        except VersionError as error:
            log.error("session_refused", session=session_id, detail=str(error))
            return None

    def _everywhere(self, work: Callable[[dict[str, Any]], object]) -> None:
        """Does it for all sessions, though it should fail for some. Raises OSError then."""
        failed = []
        for session in self._all():
            try:
                work(session)
            except (ValueError, TypeError, OSError) as error:
                failed.append(f"{session['id']}: {error}")
            self._between()
        if failed:
            raise OSError(f"{len(failed)} sessions could not be changed: {failed[0]}")

    def _all(self) -> list[dict[str, Any]]:
        return self._manager.list_sessions(ALL)


def _channel_of(row: Mapping[str, Any]) -> int:
    """The channel of a session that is listed; 0 for one that is none of ours."""
    channel_id = str(row["id"]).partition(".")[0]
    return int(channel_id) if channel_id.isdecimal() else 0


def _message_id(message: Message) -> int:
    """0 for what was not said in the channel: the notice of a session that was damaged, or what others put there."""
    message_id = message.metadata.get("message_id")
    return message_id if isinstance(message_id, int) else 0


def _records(messages: Iterable[Message]) -> Iterator[MessageRecord]:
    """What was said; what others put into the file, and is no message of a channel, is left out."""
    for message in messages:
        try:
            yield to_record(message)
        except (ValueError, TypeError, KeyError) as error:
            log.warning("message_refused", message=message.id, detail=" ".join(str(error).split())[:200])


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _quoting(message: Message, text: str) -> Message:
    """A reply with other words for what it replies to."""
    return replace(message, metadata={**message.metadata, "reply_to_text": text[:REPLY_EXCERPT]})
