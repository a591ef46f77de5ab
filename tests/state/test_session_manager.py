"""The SessionManager of the document "State Management"."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from state import Message, MessageCategory, Session, SessionManager
from state.session import VersionError
from state.session_form import BATCH
from state.session_messages import SessionError
from storage.store import StoreError
from tests.state.conftest import NAMES

SYSTEM, CONTEXT, DIALOG = MessageCategory.SYSTEM, MessageCategory.CONTEXT, MessageCategory.DIALOG

EXAMPLE = """
    # Initialize session manager
    session_manager = SessionManager(
        base_path="/path/to/conversations",
        max_messages_per_session=5000,
        max_sessions_in_memory=20,
        auto_save_interval=60
    )

    # Create a new session
    session = session_manager.create_session()

    # Add a message
    message = Message(
        role="user",
        content="Hello, how are you?",
        category=MessageCategory.DIALOG
    )
    session.add_message(message)

    # Save the session
    session_manager.save_session(session)

    # Load a session
    session = session_manager.load_session("session_20230401_123456")

    # Check if session boundary reached
    if session_manager.check_session_boundary(session):
        # Create continuation session
        new_session = session_manager.create_continuation_session(session)
"""


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.time += timedelta(milliseconds=1)
        return self.time


def said(text: str, category: MessageCategory = DIALOG, **more: Any) -> Message:
    return Message("user", text, category, **more)


def texts(session: Session | None) -> list[str]:
    assert session is not None
    return [str(message.content) for message in session.messages]


@pytest.fixture
def open_manager(tmp_path: Path) -> Callable[..., SessionManager]:
    """A manager as a process of its own would have it; none of them is closed, as none is that gets killed."""

    def open_one(**more: Any) -> SessionManager:
        return SessionManager(tmp_path / "sessions", **{"clock": Clock(), **more})

    return open_one


OpenManager = Callable[..., SessionManager]


def test_the_example_of_the_document_runs_as_written(tmp_path: Path) -> None:
    names: dict[str, Any] = {
        "SessionManager": SessionManager,
        "Message": Message,
        "MessageCategory": MessageCategory,
    }
    exec(textwrap.dedent(EXAMPLE).replace("/path/to", str(tmp_path)), names)  # noqa: S102 - it is our own text
    assert names["session"] is None
    assert "new_session" not in names
    (file,) = (tmp_path / "conversations").glob("session_*.json")
    assert json.loads(file.read_text())["messages"][0]["content"] == "Hello, how are you?"


@pytest.mark.parametrize("saves", [1, 2, 3])
def test_saving_and_adding_in_turns_loses_and_doubles_nothing(open_manager: OpenManager, saves: int) -> None:
    manager = open_manager()
    session = manager.create_session("123")
    for number in range(12):
        session.add_message(said(str(number)))
        if number % saves == 0:
            assert manager.save_session(session)
        again = open_manager().load_session("123")
        assert again == session
        assert again is not session


def test_a_message_recorded_twice_counts_once_and_the_later_wins(open_manager: OpenManager) -> None:
    manager = open_manager()
    session = manager.create_session("123")
    session.add_message(said("first", id="1"))
    session.add_message(said("second", id="2"))
    assert manager.save_session()
    session.add_message(said("edited", id="1"))
    assert texts(open_manager().load_session("123")) == ["edited", "second"]
    assert open_manager().list_sessions()[0]["message_count"] == 2


def test_what_is_unknown_is_none_and_the_current_session_stays(open_manager: OpenManager) -> None:
    manager = open_manager(max_messages_per_session=1)
    assert manager.load_session("123") is None
    assert not manager.save_session()
    assert not manager.check_session_boundary()
    session = manager.create_session()
    assert not manager.check_session_boundary()
    session.add_message(said("hi"))
    assert manager.load_session("nothing") is None
    assert manager.check_session_boundary()
    other = manager.create_session()
    assert not manager.check_session_boundary()
    assert manager.load_session(session.id) is session
    assert manager.check_session_boundary()
    assert not manager.check_session_boundary(other)


@pytest.mark.parametrize("name", NAMES[1::3], ids=lambda name: ascii(name)[:20])
def test_any_id_will_do(open_manager: OpenManager, name: str) -> None:
    session = open_manager().create_session(name)
    session.add_message(said("hi"))
    manager = open_manager()
    assert [row["id"] for row in manager.list_sessions()] == [name]
    assert texts(manager.load_session(name)) == ["hi"]
    assert manager.delete_session(name)
    assert manager.load_session(name) is None


def test_another_format_and_an_id_that_is_empty_or_taken_are_refused(open_manager: OpenManager) -> None:
    with pytest.raises(ValueError, match="not as 'yaml'"):
        SessionManager(format="yaml")
    manager = open_manager()
    with pytest.raises(ValueError, match="must not be empty"):
        manager.create_session("")
    with pytest.raises(ValueError, match="must not be empty"):
        manager.load_session("")
    manager.create_session("123").add_message(said("hi"))
    for each in (manager, open_manager()):
        with pytest.raises(ValueError, match="There is a session '123' already"):
            each.create_session("123")
    assert texts(open_manager().load_session("123")) == ["hi"]


def test_what_is_no_json_is_refused_and_not_recorded_but_half_a_character_is(open_manager: OpenManager) -> None:
    manager = open_manager()
    session = manager.create_session("123")
    no_json: list[Any] = [object(), b"bytes", {1, 2}, {"a": {1: float("nan")}}]
    for content in no_json:
        with pytest.raises(SessionError, match="cannot be stored as JSON"):
            session.add_message(Message("user", content, DIALOG))
        with pytest.raises(SessionError):
            manager.create_session("456", {"a": content})
    session.add_message(said("hi, half \ud83e, and {1: 2}", metadata={"a": {1: 2}}))
    assert texts(open_manager().load_session("123")) == ["hi, half ?, and {1: 2}"]
    assert len(session.messages) == 1
    assert manager.load_session("456") is None


def test_a_continuation_carries_system_and_context_over_and_both_know_each_other(open_manager: OpenManager) -> None:
    manager = open_manager()
    first = manager.create_session("1", {"channel": 5})
    for category in MessageCategory:
        first.add_message(said(category.name, category))
    second = manager.create_continuation_session(first, "2")
    assert texts(second) == ["SYSTEM", "CONTEXT"]
    assert second.metadata == {"channel": 5, "continued_from": "1", "continuation_index": 1}
    assert first.metadata == {"channel": 5, "continued_to": "2"}
    second.add_message(said("more"))
    third = manager.create_continuation_session(session_id="3")
    assert third.metadata == {"channel": 5, "continued_from": "2", "continuation_index": 2}
    fresh = open_manager()
    assert [fresh.load_session(each.id) for each in (first, second, third)] == [first, second, third]
    assert open_manager().create_continuation_session().metadata == {}
    assert "continued_to" not in manager.create_continuation_session(first).metadata


def test_a_session_from_elsewhere_can_be_saved_and_continued(open_manager: OpenManager) -> None:
    manager = open_manager()
    outside = Session(id="outside", messages=[said("hi", SYSTEM)])
    continued = manager.create_continuation_session(outside)
    outside.add_message(said("more"))
    fresh = open_manager()
    assert texts(fresh.load_session("outside")) == ["hi", "more"]
    assert texts(fresh.load_session(continued.id)) == ["hi"]


def test_sessions_are_listed_by_page_the_last_active_first(open_manager: OpenManager) -> None:
    manager = open_manager(clock=(clock := Clock()))
    sessions = [manager.create_session(str(number), {"n": number}) for number in range(5)]
    sessions[1].add_message(said("hi"))
    sessions[3].add_message(said("hi"))
    sessions[3].add_message(said("ho"))
    for each in (manager, open_manager(clock=clock)):
        rows = each.list_sessions()
        assert [row["id"] for row in rows] == ["3", "1", "4", "2", "0"]
        assert rows[0] == {
            "id": "3",
            "created_at": sessions[3].created_at,
            "last_active": sessions[3].last_active,
            "message_count": 2,
            "metadata": {"n": 3},
        }
        assert [row["id"] for row in each.list_sessions(2, 1)] == ["1", "4"]
        assert each.list_sessions(limit=0) == each.list_sessions(offset=5) == []


def test_a_session_whose_file_is_lost_has_its_place_by_its_journal(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path)
    sessions = [manager.create_session(name) for name in ("lost", "other", "last")]
    (tmp_path / "lost.json").unlink()
    for session in (sessions[2], sessions[0], sessions[1]):
        session.add_message(said("hi"))
    assert [row["id"] for row in SessionManager(tmp_path).list_sessions()] == ["other", "lost", "last"]


def test_a_long_header_is_listed_too(open_manager: OpenManager) -> None:
    session = open_manager().create_session("123", {"long": "x" * 10_000, "messages": [{"a": '"messages":['}]})
    session.add_message(said("hi"))
    assert open_manager().list_sessions() == [session.header()]


def test_what_is_deleted_is_gone_and_does_not_come_back(open_manager: OpenManager) -> None:
    manager = open_manager()
    session = manager.create_session("123")
    session.add_message(said("hi"))
    manager.save_session()
    session.add_message(said("ho"))
    assert manager.delete_session("123")
    session.add_message(said("too late"))
    assert manager.save_all()
    assert not manager.save_session()
    for each in (manager, open_manager()):
        assert each.load_session("123") is None
        assert each.list_sessions() == []
        assert not each.delete_session("123")
    assert manager.create_session("123").messages == []


def test_only_so_many_sessions_stay_in_memory_and_none_loses_anything(open_manager: OpenManager) -> None:
    manager = open_manager(max_sessions_in_memory=3)
    for number in range(10):
        session = manager.create_session(str(number))
        session.add_message(said(f"in {number}"))
        session.metadata["set"] = number
    del session
    assert len(manager._live) <= 3
    held = manager.load_session("0")
    for number in range(10):
        loaded = manager.load_session(str(number))
        assert texts(loaded) == [f"in {number}"]
        assert loaded is not None
        assert loaded.metadata == {"set": number}
    assert manager.load_session("0") is held


def test_what_is_saved_is_the_session_of_its_id_from_now_on(open_manager: OpenManager) -> None:
    manager = open_manager()
    session = manager.create_session("123")
    for number in range(4):
        session.add_message(said(str(number), tokens=10))
    trimmed = session.trim(20)
    assert manager.save_session(trimmed)
    assert manager.load_session("123") is trimmed
    session.add_message(said("to the old one", tokens=10))
    assert texts(open_manager().load_session("123")) == texts(trimmed) == ["2", "3", "to the old one"]


def test_what_was_changed_by_hand_is_stored_with_the_next_message(open_manager: OpenManager) -> None:
    manager = open_manager()
    session = manager.create_session("123")
    session.messages += [said("a"), said("b")]
    session.add_message(said("c"))
    assert texts(open_manager().load_session("123")) == ["a", "b", "c"]
    session.messages.pop(0)
    session.metadata["x"] = 1
    manager.close()
    assert open_manager().load_session("123") == session


def test_it_is_saved_by_itself_once_its_journal_outgrew_it_but_not_too_often(open_manager: OpenManager) -> None:
    clock = Clock()
    manager = open_manager(clock=clock, auto_save_interval=60)
    session = manager.create_session("123")
    written = Writes(manager)
    for _ in range(100):
        session.add_message(said("x" * 50))
    assert written.count == 0
    clock.time += timedelta(seconds=60)
    for _ in range(50):
        session.add_message(said("x" * 50))
    assert written.count == 1
    for _ in range(200):
        clock.time += timedelta(seconds=60)
        session.add_message(said("x" * 50))
    assert 2 <= written.count <= 4
    assert open_manager().load_session("123") == session


class Writes:
    """Counts how often a manager's store is written to; refuses while `refuses`."""

    def __init__(self, manager: SessionManager) -> None:
        self.count = 0
        self.refuses = False
        self._write, self._append = manager._files.write, manager._files.append
        manager._files.write = self.write  # type: ignore[method-assign]
        manager._files.append = self.append  # type: ignore[method-assign]

    def write(self, name: str, content: bytes) -> None:
        self.count += 1
        self.refuse()
        self._write(name, content)

    def append(self, name: str, record: bytes) -> None:
        self.refuse()
        self._append(name, record)

    def refuse(self) -> None:
        if self.refuses:
            raise StoreError("The disk is gone.")


def test_while_the_store_refuses_memory_keeps_all_and_one_line_is_logged(open_manager: OpenManager) -> None:
    manager = open_manager(max_sessions_in_memory=2)
    writes = Writes(manager)
    first = manager.create_session("first")
    first.add_message(said("before"))
    quiet = manager.create_session("quiet")
    writes.refuses = True
    with capture_logs() as logs:
        quiet.add_message(said("added in the outage, and never saved"))
        for number in range(5):
            manager.create_session(str(number)).add_message(said(f"in {number}"))
            first.add_message(said(f"outage {number}"))
        assert not manager.save_session(first)
        assert not manager.save_all()
    assert [(line["event"], line["error"]) for line in logs] == [("session_not_stored", "The disk is gone.")]
    assert {row["id"] for row in manager.list_sessions()} == {"first", "quiet", *"01234"}
    del first, quiet
    assert len(texts(manager.load_session("first"))) == 6
    writes.refuses = False
    with capture_logs() as logs:
        session = manager.load_session("first")
        assert session is not None
        session.add_message(said("after"))
    assert [line["event"] for line in logs] == ["session_stored_again"]
    fresh = open_manager()
    assert texts(fresh.load_session("first")) == ["before", *(f"outage {n}" for n in range(5)), "after"]
    assert [texts(fresh.load_session(str(number))) for number in range(5)] == [[f"in {n}"] for n in range(5)]
    assert len(texts(fresh.load_session("quiet"))) == 1
    assert len(manager._live) <= 3


def test_documents_of_another_version_are_refused_and_left_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "123.json"
    file.write_text(json.dumps({**Session(id="123").to_dict(), "version": 2, "new": []}))
    before = file.read_bytes()
    manager = SessionManager(tmp_path)
    with pytest.raises(VersionError, match="version 2"):
        manager.load_session("123")
    with pytest.raises(ValueError, match="already"):
        manager.create_session("123")
    assert file.read_bytes() == before
    assert manager.delete_session("123")


def test_a_file_in_the_form_of_the_document_can_be_put_there_by_hand(tmp_path: Path) -> None:
    session = Session(id="original", messages=[said("hi")])
    (tmp_path / "copy.json").write_text(json.dumps(session.to_dict(), indent=2))
    (tmp_path / "settings.json").write_text('{"theme": "dark"}')
    manager = SessionManager(tmp_path)
    assert [(row["id"], row["message_count"]) for row in manager.list_sessions()] == [("copy", 1)]
    loaded = manager.load_session("copy")
    assert (texts(loaded), loaded and loaded.id) == (["hi"], "copy")
    manager.close()


def test_the_time_is_the_clocks(open_manager: OpenManager) -> None:
    session = open_manager(clock=lambda: datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)).create_session()
    assert session.id.startswith("session_20300102_030405_")
    assert session.created_at == session.last_active == "2030-01-02T03:04:05+00:00"
    session.last_active = ""
    session.add_message(said("hi"))
    assert session.last_active == "2030-01-02T03:04:05+00:00"


def test_saving_lets_other_threads_go_on_every_few_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For how long it holds them up is for the bench to measure."""
    manager = SessionManager(tmp_path)
    session = manager.create_session()
    session.messages += [said(f"message {number} {'x' * 200}") for number in range(5_000)]
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    assert manager.save_session(session)
    assert len(pauses) >= 5_000 // BATCH
    assert set(pauses) == {0}
    manager.close()
