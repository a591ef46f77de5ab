"""Sessions in a store: how they are found there, damaged or not, and what is logged when the store fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog

from state.session import Session, VersionError
from state.session_form import Header, decode_session, read_header, take_records
from state.stored import Store, Stored, StoreError
from state.transcript import Message, MessageCategory, SessionError

log = structlog.get_logger()

HEADER_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Found:
    """A session, and how many bytes it had as document and as journal. is_damaged: it is to be saved anew."""

    session: Session
    document: int
    journal: int
    is_damaged: bool


class Shelf:
    """A store of sessions. now: the clock."""

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self.store = store
        self._now = now
        self._is_failing = False

    def find(self, session_id: str) -> Found | None:
        """None where there is nothing of that id; what is damaged comes from a backup or as a recovery session.

        Raises VersionError, WrongKeyError, and StoreError where nothing can be read at all.
        """
        stored = self.store.read(session_id)
        session, problem = _decoded(stored)
        if problem and self.does(session_id, lambda: self.store.reject(session_id)):
            stored = self.store.read(session_id)
            session, _ = _decoded(stored)
        if not (session or problem or stored.notice or stored.records):
            return None
        is_damaged = bool(session is None or problem or stored.notice)
        session = session or self._recovery(session_id)
        session.id = session_id  # a file that was copied is what its name says
        skipped = take_records(session, stored.records)
        if is_damaged or skipped:
            detail = " ".join(filter(None, [problem, stored.notice])) or "Its document is missing or has wrong records."
            log.warning("session_damaged", session=session_id, detail=detail, messages=len(session.messages))
        journal = sum(map(len, stored.records))
        return Found(session, len(stored.content or b""), journal, bool(is_damaged or skipped))

    def header(self, session_id: str) -> Header | None:
        """What a list shows of it; None for what is no session that can be read."""
        header = read_header(self.store.peek(session_id, HEADER_BYTES), self.store.latest(session_id))
        if header is None:
            header = _header_in(self.store.read(session_id))
        return header and {**header, "id": session_id}

    def is_known(self, session_id: str) -> bool:
        return bool(self.store.peek(session_id, 1)) or self.store.latest(session_id) is not None

    def does(self, session_id: str, work: Callable[[], object]) -> bool:
        """Whether the store did it. One line is logged as it begins to fail, and one when it works again."""
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

    def _recovery(self, session_id: str) -> Session:
        now = self._now().isoformat()
        text = f"This is a recovery session: session {session_id} was damaged, and there is no backup that can be read."
        notice = Message("system", text, MessageCategory.SYSTEM, timestamp=now)
        return Session(session_id, [notice], now, now, {"recovered_from": session_id})


def _decoded(stored: Stored) -> tuple[Session | None, str]:
    """The session in a document without its records, and what is wrong with it. Raises VersionError."""
    try:
        return (decode_session(stored.content) if stored.content is not None else None), ""
    except VersionError:
        raise
    except SessionError as error:
        return None, str(error)


def _header_in(stored: Stored) -> Header | None:
    try:
        session, _ = _decoded(stored)
    except VersionError:
        return None
    if session is None:
        return None
    take_records(session, stored.records)
    return session.header()
