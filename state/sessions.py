"""SessionManager: stores sessions as they grow, loads them, and continues a full one in a new one.

Its methods are those of the document "State Management". They are synchronous, for one thread at a time, and may wait
for the disk: in a program with an event loop, call them in a thread.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import structlog

from clock import Clock, utc_now
from state.session import Session, VersionError, new_id
from state.session_files import SessionFiles
from state.session_form import (
    Header,
    decode_session,
    encode_message,
    encode_record,
    encode_session,
    encoded,
    read_header,
    take_records,
)
from state.session_messages import Message, MessageCategory, SessionError
from storage.store import Stored, StoreError

log = structlog.get_logger()

CONVERSATIONS_PATH = Path(".parley/sessions")
CARRIED_OVER = frozenset({MessageCategory.SYSTEM, MessageCategory.CONTEXT})


@dataclass(slots=True)
class Kept:
    """A session's recorder, and what is stored of the session.

    metadata: as stored. count: stored messages, with those in the journal. document, journal: their size in bytes.
    is_behind: something is only in memory.
    """

    manager: SessionManager
    saved_at: datetime
    metadata: bytes = b""
    count: int = 0
    document: int = 0
    journal: int = 0
    is_behind: bool = False

    def record(self, session: Session, message: Message) -> None:
        self.manager.record(session, self, message)

    def lacks(self, session: Session) -> bool:
        """Whether anything of the session is not stored, such as a change of its lists by hand."""
        is_changed = len(session.messages) != self.count or encoded(session.metadata) != self.metadata
        return self.is_behind or is_changed


class SessionManager:
    """Keeps sessions by id. `session=None` means the current one: the last that was created or loaded.

    A session exists once in memory, however often it is loaded. The least recently used leave memory, unless somebody
    else refers to them. Each added message is appended to a journal at once. Once the journal is larger than the
    document, the whole session is written, at most every auto_save_interval seconds. While the disk fails, what could
    not be stored stays in memory.
    """

    def __init__(
        self,
        base_path: str | Path = CONVERSATIONS_PATH,
        max_messages_per_session: int = 5000,
        max_sessions_in_memory: int = 20,
        format: str = "json",  # noqa: A002 - the document's name for it
        auto_save_interval: float = 60,
        *,
        clock: Clock = utc_now,
    ) -> None:
        """Raises ValueError for a format other than "json"."""
        if format != "json":
            raise ValueError(f"Sessions are stored as json, not as {format!r}.")
        self.now = clock
        self._files = SessionFiles(base_path)
        self._max_messages = max_messages_per_session
        self._max_in_memory = max_sessions_in_memory
        self._interval = timedelta(seconds=auto_save_interval)
        self._live: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._recent: OrderedDict[str, Session] = OrderedDict()  # the one used last at the end
        self._behind: dict[str, Session] = {}
        self._current: Session | None = None
        self._is_failing = False

    def create_session(self, session_id: str | None = None, metadata: Mapping[str, Any] | None = None) -> Session:
        """Raises ValueError for an id that is empty or taken, and SessionError for metadata that JSON cannot hold."""
        return self._create(session_id, dict(metadata or {}), [])

    def load_session(self, session_id: str) -> Session | None:
        """Loads a session; None only where nothing was ever stored under that id.

        A damaged session is read from its backup, or replaced by one that says what was lost; one line is logged.
        Raises VersionError for a session of another version, which is not changed, and StoreError where nothing can be
        read at all.
        """
        session = self._find(session_id)
        if session is not None:
            self._current = session
            self._touch(session)
        return session

    def check_session_boundary(self, session: Session | None = None) -> bool:
        """Whether the session has reached max_messages_per_session."""
        session = self._current if session is None else session
        return session is not None and len(session.messages) >= self._max_messages

    def create_continuation_session(
        self, source_session: Session | None = None, session_id: str | None = None
    ) -> Session:
        """Creates a session with the source's system and context messages, and links the two in their metadata.

        Saves both. Without any session to continue, creates a first one.
        """
        source = self._current if source_session is None else source_session
        if source is None:
            return self.create_session(session_id)
        index = source.metadata.get("continuation_index", 0) + 1
        metadata = {**source.metadata, "continued_from": source.id, "continuation_index": index}
        metadata.pop("continued_to", None)
        session = self._create(session_id, metadata, source.filter(CARRIED_OVER).messages)
        source.metadata["continued_to"] = session.id
        self.save_session(source)
        return session

    def save_session(self, session: Session | None = None) -> bool:
        """Writes the whole session, which replaces any other with its id. False if that fails: it stays in memory.

        Raises SessionError for a session that JSON cannot hold.
        """
        session = self._current if session is None else session
        if session is None:
            return False
        if self._live.get(session.id) is not session:
            self._adopt(session)
        self._touch(session)
        return self._save(session)

    def list_sessions(self, limit: int = 100, offset: int = 0) -> list[Header]:
        """Dicts with id, created_at, last_active, message_count and metadata, the last active first."""
        names = self._files.names(limit, offset)
        rows = [row for name in names if (row := self._row_of(name))]
        if offset == 0:
            rows += [session.header() for name, session in self._behind.items() if name not in names]
        return sorted(rows, key=lambda row: str(row["last_active"]), reverse=True)[:limit]

    def delete_session(self, session_id: str) -> bool:
        """Deletes a session with its backups and journal. Returns whether there was one. Raises StoreError."""
        live = self._live.pop(session_id, None)
        if live is not None:
            live.recorder = None
        self._recent.pop(session_id, None)
        self._behind.pop(session_id, None)
        if self._current is live:
            self._current = None
        return self._files.delete(session_id) or live is not None

    def flush(self) -> None:
        """Tries again what could not be written, and syncs the journals to disk. Raises StoreError."""
        self._catch_up()
        self._files.flush()

    def save_all(self) -> bool:
        """Writes every session that has a journal or is not fully stored. Returns whether all were written."""
        waiting = [each for each in self._live.values() if self._kept(each).journal or self._kept(each).lacks(each)]
        return sum(map(self._write, waiting)) == len(waiting)

    def close(self) -> None:
        self.save_all()
        self._does("all", self._files.flush)
        self._files.close()

    def record(self, session: Session, kept: Kept, message: Message) -> None:
        """Adds a message to a session kept here and journals it. Raises SessionError before anything is added."""
        text = encode_message(message)
        session.take(message, self.now().isoformat())
        live = self._live.get(session.id, session)
        if live is not session:  # another was saved under its id
            live.add_message(message)
            return
        line = encode_record(session, text)
        # If somebody changed the list by hand, more is new than this message.
        kept.is_behind |= len(session.messages) - kept.count not in {0, 1}
        kept.count = len(session.messages)
        if not self._does(session.id, lambda: self._files.append(session.id, line)):
            self._fall_behind(session)
            return
        kept.journal += len(line)
        if kept.is_behind or self._is_outgrown(kept):
            self._write(session)
        self._catch_up()

    def _create(self, session_id: str | None, metadata: dict[str, Any], messages: list[Message]) -> Session:
        now = self.now()
        name = new_id(now) if session_id is None else session_id
        if session_id is not None and (name in self._live or any(self._files.head(name))):
            raise ValueError(f"There is a session {session_id!r} already: load it.")
        encoded(metadata)
        session = Session(name, messages, now.isoformat(), now.isoformat(), metadata)
        self._adopt(session)
        self._current = session
        self._touch(session)
        self._save(session)
        return session

    def _find(self, session_id: str) -> Session | None:
        """Reads a damaged session from its backup, or makes a recovery session, and saves it. Raises VersionError."""
        if live := self._live.get(session_id):
            return live
        stored = self._files.read(session_id)
        session, problem = _decoded(stored)
        if problem and self._does(session_id, lambda: self._files.reject(session_id)):
            stored = self._files.read(session_id)
            session, _ = _decoded(stored)
        if not (session or problem or stored.notice or stored.records):
            return None
        is_damaged = bool(session is None or problem or stored.notice)
        if session is None:
            now, lost = self.now().isoformat(), f"session {session_id} was damaged, and there is no backup"
            text = f"This is a recovery session: {lost} that can be read."
            notice = Message("system", text, MessageCategory.SYSTEM, timestamp=now)
            session = Session(session_id, [notice], now, now, {"recovered_from": session_id})
        session.id = session_id  # for a copied file, its name counts
        is_damaged |= take_records(session, stored.records) > 0
        self._adopt(session, document=len(stored.content or b""), journal=sum(map(len, stored.records)))
        if is_damaged:
            detail = " ".join(filter(None, [problem, stored.notice])) or "Its document is missing or has wrong records."
            log.warning("session_damaged", session=session_id, detail=detail, messages=len(session.messages))
            self._save(session)
        return session

    def _row_of(self, name: str) -> Header | None:
        """A session's row in a list; None for what cannot be read."""
        if live := self._live.get(name):
            return live.header()
        if (header := read_header(*self._files.head(name))) is None:
            try:
                stored = self._files.read(name)
                session, _ = _decoded(stored)
            except VersionError:
                return None
            if session is None:
                return None
            take_records(session, stored.records)
            header = session.header()
        return {**header, "id": name}

    def _adopt(self, session: Session, *, journal: int = 0, document: int = 0) -> None:
        """Makes it the session of its id."""
        self._behind.pop(session.id, None)
        count, metadata = len(session.messages), encoded(session.metadata)
        session.recorder = Kept(self, self.now(), metadata, count, document, journal)
        self._live[session.id] = session

    def _kept(self, session: Session) -> Kept:
        if not isinstance(session.recorder, Kept):
            raise TypeError(f"Session {session.id!r} is not kept here: save it first.")
        return session.recorder

    def _touch(self, session: Session) -> None:
        """Marks a session as used last. Stores those that have to leave memory for it."""
        self._recent[session.id] = session
        self._recent.move_to_end(session.id)
        while len(self._recent) > self._max_in_memory:
            _, old = self._recent.popitem(last=False)
            if self._kept(old).lacks(old) or self._is_outgrown(self._kept(old)):
                self._write(old)

    def _is_outgrown(self, kept: Kept) -> bool:
        return kept.journal > kept.document and self.now() - kept.saved_at >= self._interval

    def _save(self, session: Session) -> bool:
        is_saved = self._write(session)
        self._catch_up()
        return is_saved

    def _catch_up(self) -> None:
        """Writes the sessions that could not be written while the disk failed."""
        while self._behind and self._write(next(iter(self._behind.values()))):
            pass

    def _write(self, session: Session) -> bool:
        kept, content = self._kept(session), encode_session(session)
        if not self._does(session.id, lambda: self._files.write(session.id, content)):
            self._fall_behind(session)
            return False
        self._behind.pop(session.id, None)
        kept.saved_at, kept.metadata, kept.count = self.now(), encoded(session.metadata), len(session.messages)
        kept.document, kept.journal, kept.is_behind = len(content), 0, False
        return True

    def _fall_behind(self, session: Session) -> None:
        self._kept(session).is_behind = True
        self._behind[session.id] = session

    def _does(self, session_id: str, work: Callable[[], object]) -> bool:
        """Does the work; False if the disk fails. Logs one line when it begins to fail, and one when it works again."""
        try:
            work()
        except StoreError as error:
            if not self._is_failing:
                meaning = "it stays in memory, and is stored as soon as that works again"
                log.warning("session_not_stored", session=session_id, error=str(error), meaning=meaning)
            self._is_failing = True
            return False
        if self._is_failing:
            log.info("session_stored_again", session=session_id)
        self._is_failing = False
        return True


def _decoded(stored: Stored) -> tuple[Session | None, str]:
    """The session in a document, without its journal's records, and what is wrong with it. Raises VersionError."""
    try:
        return (decode_session(stored.content) if stored.content is not None else None), ""
    except VersionError:
        raise
    except SessionError as error:
        return None, str(error)
