"""What it costs to keep sessions: to append to one, to save a long one beside an event loop, to list many."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from unittest.mock import patch

from state import Message, MessageCategory, Session, SessionManager

FEW, MANY = 50, 5_000
APPENDED = 400
SESSIONS = 10_000
LISTED = 100
ROUNDS = 7
TICK = 0.001
TEXT = "I think we should take two cars, one of them can bring the tent and the other one takes the food and the dog"


def appending() -> tuple[float, float]:
    """CPU milliseconds to add a message, the journal included, to a session of 50 and to one of 5,000."""
    with TemporaryDirectory() as folder:
        manager = SessionManager(folder)
        rounds = [[append_cost(filled(manager, size)) for size in (FEW, MANY)] for _ in range(ROUNDS)]
    few, many = map(min, zip(*rounds, strict=True))
    return few, many


def append_cost(session: Session) -> float:
    messages = [message(number) for number in range(APPENDED)]
    session.add_message(messages[0])
    began = process_time()
    for each in messages:
        session.add_message(each)
    return 1000 * (process_time() - began) / APPENDED


def saving() -> float:
    """Milliseconds for which an event loop is held up at most while another thread saves 5,000 messages."""
    with TemporaryDirectory() as folder:
        manager = SessionManager(folder)
        session = filled(manager, MANY)
        return min(asyncio.run(lag_beside(manager, session)) for _ in range(ROUNDS))


async def lag_beside(manager: SessionManager, session: Session) -> float:
    saved = asyncio.create_task(asyncio.to_thread(manager.save_session, session))
    longest = 0.0
    while not saved.done():
        began = perf_counter()
        await asyncio.sleep(TICK)
        longest = max(longest, perf_counter() - began - TICK)
    assert await saved
    return 1000 * longest


def listing() -> tuple[float, float]:
    """Milliseconds in which a fresh manager lists the 100 last active of 10,000 sessions, half of them journalled, and
    in which the system tells the times of their files, by which they are in order."""
    with TemporaryDirectory() as folder:
        with hasty_disk():
            manager = SessionManager(folder)
            for number in range(SESSIONS):
                session = manager.create_session(f"session_{number}", {"channel": number})
                if number % 2:
                    session.add_message(message(number))
            manager.close()
        rounds = [(listed_in(Path(folder)), told_in(Path(folder))) for _ in range(ROUNDS)]
    listed, told = map(min, zip(*rounds, strict=True))
    return listed, told


def told_in(folder: Path) -> float:
    began = perf_counter()
    with os.scandir(folder) as entries:
        times = [entry.stat(follow_symlinks=False).st_mtime_ns for entry in entries]
    taken = 1000 * (perf_counter() - began)
    assert len(times) > SESSIONS
    return taken


def listed_in(folder: Path) -> float:
    manager = SessionManager(folder)
    began = perf_counter()
    rows = manager.list_sessions(LISTED)
    taken = 1000 * (perf_counter() - began)
    assert [row["id"] for row in rows] == [f"session_{number}" for number in range(SESSIONS)[: -LISTED - 1 : -1]]
    return taken


def filled(manager: SessionManager, size: int) -> Session:
    session = manager.create_session()
    session.messages += [message(number) for number in range(size)]
    assert manager.save_session(session)
    return session


def message(number: int) -> Message:
    metadata = {"message_id": 10**18 + number, "author_id": number % 12, "author": f"person {number % 12}"}
    return Message("user", f"{TEXT} {number}", MessageCategory.DIALOG, metadata=metadata)


@contextmanager
def hasty_disk() -> Iterator[None]:
    """Nothing waits for the disk: what is prepared here is thrown away in a moment."""
    with patch.object(os, "fsync"):
        yield
