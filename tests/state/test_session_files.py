"""Whatever happens to the files of a session, something is loaded, nothing raises, and one line says what was done."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from state import Message, MessageCategory, Session, SessionManager
from state.session_files import SessionFiles
from state.session_form import decode_session, take_records
from storage.store import Stored, StoreError

ID = "123"
MESSAGES = 36
TEXTS = [f"message {number}: {'what was said ' * 8}" for number in range(MESSAGES)]

Damage = Callable[[Path], object]


@pytest.fixture
def kept(tmp_path: Path, _hasty_disk: None) -> Path:
    """The folder of a session with a backup, and with messages in the journals of both."""
    folder = tmp_path / "kept"
    manager = SessionManager(folder)
    session = manager.create_session(ID)
    for number, text in enumerate(TEXTS):
        session.add_message(message(number, text))
        if number in {20, 31}:
            assert manager.save_session(session)
    manager.flush()
    SessionFiles(folder).close()
    return folder


def message(number: int, text: str) -> Message:
    return Message("user", text, MessageCategory.DIALOG, id=f"msg_{number:08}", timestamp="2026-01-01T00:00:00+00:00")


def loaded(folder: Path) -> Session:
    """Without anything being written."""
    stored = SessionFiles(folder).read(ID)
    assert stored.content is not None
    session = decode_session(stored.content)
    assert take_records(session, stored.records) == 0
    return session


def texts(session: Session | None) -> list[str]:
    assert session is not None
    return [str(each.content) for each in session.messages]


def flipped(whole: bytes, choice: random.Random, flips: int, within: int) -> bytes:
    spoiled = bytearray(whole)
    for _ in range(flips):
        spoiled[choice.randrange(within)] ^= 1 << choice.randrange(8)
    return bytes(spoiled)


def test_random_bit_flips_lose_nothing_and_in_the_journal_one_message_each_at_most(kept: Path) -> None:
    """Also where they make of the file's mark what is none."""
    choice, path = random.Random(1), kept / f"{ID}.json"
    whole = path.read_bytes()
    for times, flips, within in ((300, 1, len(whole)), (300, 1, 50), *((50, n, len(whole)) for n in (3, 30, 300))):
        for _ in range(times):
            path.write_bytes(spoiled := flipped(whole, choice, flips, within))
            assert spoiled == whole or texts(loaded(kept)) == TEXTS
    path.write_bytes(whole)
    path = current_journal(kept)
    whole = path.read_bytes()
    for _ in range(300):
        path.write_bytes(flipped(whole, choice, 1, len(whole)))
        found = texts(loaded(kept))
        assert len(found) >= MESSAGES - 1
        assert set(found) <= set(TEXTS)


def test_truncated_at_any_byte_of_its_last_4_kb_everything_is_still_there(kept: Path) -> None:
    path = kept / f"{ID}.json"
    size = path.stat().st_size
    for shorter in range(1, 4_097):
        os.truncate(path, size - shorter)
        stored = SessionFiles(kept).read(ID)
        if shorter == 1:
            expected = stored
            assert texts(loaded(kept)) == TEXTS
        assert stored == expected, shorter


def test_a_journal_torn_at_any_byte_keeps_what_was_whole(kept: Path) -> None:
    path = current_journal(kept)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        found = texts(loaded(kept))
        assert found == TEXTS[: len(found)]
        assert len(found) >= 32 + whole[:size].count(b"\n\n")
        if size % 40 == 0:  # what is added behind a torn record is not torn with it
            store = SessionFiles(kept)
            store.append(ID, b"{}")
            assert store.head(ID)[1] == b"{}"
            store.close()


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").write_text("somebody's")


def as_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


DAMAGES: dict[str, Damage] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: os.truncate(path, 700),
    "zeros": lambda path: path.write_bytes(bytes(5_000)),
    "noise": lambda path: path.write_bytes(random.Random(1).randbytes(5_000)),
    "an array": lambda path: path.write_text("[]"),
    "another object": lambda path: path.write_text('{"a": 1}'),
    "a wrong message": lambda path: path.write_text(
        '{"id":"123","created_at":"2026-01-01","last_active":"2026-01-01","metadata":{},"messages":[{}]}'
    ),
    "a folder": as_folder,
    "gone": Path.unlink,
    "a dangling link": as_dangling_link,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_document_is_restored_from_its_backup_and_kept_aside(kept: Path, damage: Damage) -> None:
    path = kept / f"{ID}.json"
    damage(path)
    spoiled = path.read_bytes() if path.is_file() else None
    with capture_logs() as logs:
        session = SessionManager(kept).load_session(ID)
    assert texts(session) == TEXTS
    (line,) = logs
    assert line["event"] == "session_damaged"
    assert line["session"] == ID
    assert "\n" not in line["detail"]
    aside = [each for each in kept.iterdir() if ".damaged-" in each.name]
    assert [each.read_bytes() for each in aside if each.is_file() and spoiled is not None] == [spoiled] * (
        spoiled is not None
    )
    with capture_logs() as logs:
        assert texts(SessionManager(kept).load_session(ID)) == TEXTS
        assert [row["message_count"] for row in SessionManager(kept).list_sessions()] == [MESSAGES]
    assert logs == []


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_without_a_backup_what_was_journalled_and_a_notice_are_loaded(kept: Path, damage: Damage) -> None:
    damage(kept / f"{ID}.json")
    damage(kept / ".store" / "backup" / f"{ID}.json")
    with capture_logs() as logs:
        session = SessionManager(kept).load_session(ID)
    assert session is not None
    notice, *rest = session.messages
    assert notice.category is MessageCategory.SYSTEM
    assert f"session {ID} was damaged" in notice.content
    assert [str(each.content) for each in rest] == TEXTS[21:]
    assert [line["event"] for line in logs] == ["session_damaged"]
    with capture_logs() as logs:
        again = SessionManager(kept).load_session(ID)
    assert again == session
    assert logs == []


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("where", ["journal", "backup", "temporary"])
def test_damage_beside_a_sound_document_costs_its_journal_at_most(kept: Path, damage: Damage, where: str) -> None:
    for path in [path for path in (kept / ".store" / where).iterdir() if path.is_file()]:
        damage(path)
    manager = SessionManager(kept)
    session = manager.load_session(ID)
    assert session is not None
    assert texts(session)[:32] == TEXTS[:32]
    assert where == "journal" or len(session.messages) == MESSAGES
    session.add_message(message(99, "later"))
    assert manager.save_session(session)
    assert texts(SessionManager(kept).load_session(ID))[-1] == "later"
    assert [row["id"] for row in SessionManager(kept).list_sessions()] == [ID]


def test_of_damaged_files_three_are_kept_and_none_is_overwritten(kept: Path) -> None:
    for number in range(6):
        (kept / f"{ID}.json").write_text(f"damaged {number}")
        assert texts(SessionManager(kept).load_session(ID)) == TEXTS
    aside = sorted(path for path in kept.iterdir() if ".damaged-" in path.name)
    assert [path.read_text() for path in aside] == ["damaged 3", "damaged 4", "damaged 5"]
    assert SessionManager(kept).delete_session(ID)
    assert not [path for path in kept.rglob("*") if ID in path.name]


def test_a_folder_that_cannot_be_read_gives_a_recovery_session(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    manager = SessionManager(tmp_path / "file")
    with capture_logs() as logs:
        session = manager.load_session(ID)
        assert session is not None
        session.add_message(message(1, "still there"))
        assert not manager.save_session(session)
    assert texts(session)[1:] == ["still there"]
    assert [line["event"] for line in logs] == ["session_damaged", "session_not_stored"]
    with pytest.raises(StoreError, match="could not be deleted"):
        manager.delete_session(ID)
    manager.close()


def fill(path: Path) -> None:
    """Has no room left on the disk."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4_096))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_on_a_full_disk_nothing_raises_and_all_is_stored_once_there_is_room(small_disk: Path) -> None:
    manager = SessionManager(small_disk / "sessions")
    session = manager.create_session(ID)
    session.add_message(message(0, "before"))
    filler = small_disk / "filler"
    fill(filler)
    with capture_logs() as logs:
        for number in range(1, 100):
            session.add_message(message(number, "x" * 100))
        assert not manager.save_session(session)
        assert manager.create_session("another").id == "another"
    assert [line["event"] for line in logs] == ["session_not_stored"]
    assert "No space left" in logs[0]["error"]
    found = SessionManager(small_disk / "sessions").load_session(ID)
    assert found is not None
    assert 1 <= len(found.messages) < 100
    filler.unlink()
    session.add_message(message(100, "after"))
    again = SessionManager(small_disk / "sessions")
    assert again.load_session(ID) == session
    assert again.load_session("another") is not None
    assert manager.save_all()
    manager.close()
    again.close()


def test_a_write_that_fails_at_any_step_loses_nothing(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a kill does, only that the process goes on."""
    for step in count():
        folder = tmp_path / f"step {step}"
        shutil.copytree(kept, folder)
        manager = SessionManager(folder)
        session = manager.load_session(ID)
        assert session is not None
        with monkeypatch.context() as patch, capture_logs() as logs:
            is_hit = fail_at(step, patch, OSError(errno.ENOSPC, "No space left on device"))
            session.add_message(message(90, "new"))
            is_saved = manager.save_session(session)
        assert texts(SessionManager(folder).load_session(ID)) in ([*TEXTS, "new"], TEXTS)
        session.add_message(message(91, "newer"))
        assert texts(SessionManager(folder).load_session(ID)) == [*TEXTS, "new", "newer"]
        assert is_saved or [line["event"] for line in logs][:1] == ["session_not_stored"]
        manager.close()
        if not is_hit():
            break
    assert step > 10


class Killed(BaseException):
    """The process ended here."""


STEPS = ("open", "write", "fsync", "link", "replace", "rename", "unlink", "mkdir", "fchmod")


def fail_at(step: int, patch: pytest.MonkeyPatch, error: BaseException) -> Callable[[], bool]:
    """Has the nth call that changes something fail, and gives what tells whether there were so many."""
    calls = count()
    hit = []

    def failing(call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any, **named: Any) -> Any:
            if next(calls) == step:
                hit.append(call)
                raise error
            return call(*arguments, **named)

        return instead

    for name in STEPS:
        patch.setattr(os, name, failing(getattr(os, name)))
    return lambda: bool(hit)


def prepare_backup(store: SessionFiles) -> None:
    store.write(ID, b'{"is":"older"}')
    store.append(ID, b"oldest")
    store.write(ID, b'{"is":"old"}')
    store.append(ID, b"one")
    store.append(ID, b"two")


def prepare_damaged(store: SessionFiles) -> None:
    """What is read is what is in the backup, with the records of two generations."""
    store.write(ID, b'{"is":"old"}')
    store.append(ID, b"one")
    store.write(ID, b'{"is":"newer"}')
    store.append(ID, b"two")
    (store._folder / f"{ID}.json").write_bytes(b"damaged")


def prepare_records_only(store: SessionFiles) -> None:
    store.append(ID, b"one")
    store.append(ID, b"two")


PREPARED = [prepare_backup, prepare_damaged, prepare_records_only]


@pytest.mark.parametrize("prepare", PREPARED)
@pytest.mark.parametrize("is_fresh", [False, True])
def test_a_kill_at_any_step_of_a_write_leaves_the_old_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[SessionFiles], None], is_fresh: bool
) -> None:
    new = Stored(b'{"is":"new"}')
    ends = set()
    for step in count():
        store = SessionFiles(tmp_path / str(step))
        prepare(store)
        before = store.read(ID)
        assert before.records == (b"one", b"two")
        writer = SessionFiles(tmp_path / str(step)) if is_fresh else store
        with monkeypatch.context() as patch:
            is_hit = fail_at(step, patch, Killed())
            with suppress(Killed):
                writer.write(ID, new.content or b"")
        after = SessionFiles(tmp_path / str(step)).read(ID)
        is_new = after == new
        assert is_new or (after.content, after.records) == (before.content, before.records), (step, after)
        ends.add(is_new)
        _goes_on(tmp_path / str(step), after)
        for each in (store, writer):
            each.close()
        if not is_hit():
            break
    assert ends == {False, True}
    assert step > 4


def _goes_on(folder: Path, found: Stored) -> None:
    """After the kill, nothing is doubled either, and the next write has a backup again."""
    store = SessionFiles(folder)
    store.append(ID, b"later")
    assert SessionFiles(folder).read(ID).records == (*found.records, b"later")
    store.write(ID, b'{"is":"next"}')
    store.append(ID, b"more")
    assert SessionFiles(folder).read(ID) == Stored(b'{"is":"next"}', (b"more",))
    store.write(ID, b'{"is":"last"}')
    store.append(ID, b"most")
    (folder / f"{ID}.json").write_bytes(b"")
    restored = SessionFiles(folder).read(ID)
    assert (restored.content, restored.records) == (b'{"is":"next"}', (b"more", b"most"))
    assert not list((folder / ".store" / "temporary").iterdir())
    store.close()


@pytest.mark.parametrize("prepare", PREPARED)
def test_a_kill_at_any_step_of_a_deletion_leaves_something_to_delete_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[SessionFiles], None]
) -> None:
    for step in count():
        store = SessionFiles(tmp_path / str(step))
        prepare(store)
        with monkeypatch.context() as patch:
            is_hit = fail_at(step, patch, Killed())
            with suppress(Killed):
                store.delete(ID)
        fresh = SessionFiles(tmp_path / str(step))
        is_there = fresh.read(ID) != Stored(None)
        assert fresh.names() == [ID] * is_there
        assert fresh.delete(ID) or not is_there
        assert fresh.read(ID) == Stored(None)
        assert not [path for path in (tmp_path / str(step)).rglob("*") if path.name.startswith(ID)]
        for each in (store, fresh):
            each.close()
        if not is_hit():
            break
    assert step > 2


def test_what_is_written_is_on_disk_before_it_takes_its_place_and_its_place_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def name_of(file: int) -> str:
        return Path(f"/proc/self/fd/{file}").readlink().relative_to(tmp_path).as_posix()

    def synchronised(file: int) -> None:
        done.append(f"fsync {name_of(file)}")
        fsync(file)

    def replaced(old: Path, new: Path) -> None:
        done.append(f"replace {Path(new).relative_to(tmp_path).as_posix()}")
        replace(old, new)

    store = SessionFiles(tmp_path)
    store.write(ID, b'{"n":1}')
    monkeypatch.setattr(os, "fsync", synchronised)
    monkeypatch.setattr(os, "replace", replaced)
    store.write(ID, b'{"n":2}')
    assert done == [
        f"fsync .store/temporary/{ID}",
        f"fsync .store/backup/{ID}.new",
        f"replace .store/backup/{ID}.json",
        f"replace {ID}.json",
        "fsync .",
    ]
    done.clear()
    store.append(ID, b"x")
    store.append(ID, b"y")
    assert done == []
    store.flush()
    store.flush()
    assert done == [f"fsync .store/journal/{ID}.0", "fsync .store/journal"]
    store.close()


def current_journal(folder: Path) -> Path:
    generation = int(str(json.loads((folder / f"{ID}.json").read_text())["generation"]))
    return folder / ".store" / "journal" / f"{ID}.{generation % 2}"
