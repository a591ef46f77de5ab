"""persistence/open_store.py: another key is given, and something goes wrong meanwhile: nothing is lost."""

from __future__ import annotations

import sqlite3
from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import closing, suppress
from errno import EMFILE
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from followup.decision_file import FILE_NAME, DecisionFile
from persistence.open_store import DATABASE, check_stores, find_seal, open_stores, opens
from storage.sealing import read_keys
from storage.sqlite_store import SQLiteStore
from storage.state_key import KEY_FILE, KeyFile
from storage.store import Key, StoreError, WrongKeyError
from tests.followup.test_decision_log import entry

OLD, NEW, THIRD = (urlsafe_b64encode(letter * 32).decode() for letter in (b"a", b"b", b"c"))
ROWS = {Key("a", channel, id_): b"%d %d" % (channel, id_) for channel in range(1, 4) for id_ in (0, 7)}
LOGGED = [entry(1), entry(2)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def fill(folder: Path, keys: str | None) -> None:
    check_stores(folder, None, keys)
    with closing(open_stores(folder, None, keys)()) as store:
        store.write(ROWS)
    DecisionFile(folder / FILE_NAME, find_seal(folder, None, keys)).write(LOGGED)


def found(folder: Path, keys: str | None) -> dict[Key, bytes | None]:
    """All that is stored, after a start with these keys."""
    check_stores(folder, None, keys)
    with closing(open_stores(folder, None, keys)()) as store:
        return {Key("a", row.channel, row.id): row.value for row in store.read("a")}


def logged(folder: Path, keys: str | None) -> list[object]:
    return [*DecisionFile(folder / FILE_NAME, find_seal(folder, None, keys)).read()]


class KilledError(BaseException):
    pass


def is_interrupted(fault: BaseException, at: int, action: Callable[[], object]) -> bool:
    """Whether the fault ended the action: from the time of this number on it came of all writing to rows and log."""
    left = at
    with pytest.MonkeyPatch.context() as patch:

        def counted(real: Callable[..., object]) -> Callable[..., object]:
            def write(*arguments: object) -> object:
                nonlocal left
                if left == 0:
                    raise fault
                left -= 1
                return real(*arguments)

            return write

        patch.setattr(SQLiteStore, "write", counted(SQLiteStore.write))
        patch.setattr(DecisionFile, "write", counted(DecisionFile.write))
        try:
            action()
        except type(fault):
            return True
    return False


@pytest.mark.parametrize("fault", [KilledError(), StoreError("no room")], ids=["killed", "full"])
@pytest.mark.parametrize(
    ("was", "given", "then", "tried", "all_keys"),
    [
        (None, f"{NEW},made", (), None, f"{NEW},made"),
        (OLD, f"{NEW},{OLD}", (), OLD, f"{NEW},{OLD}"),
        (OLD, f"{NEW},{OLD}", (), NEW, f"{NEW},{OLD}"),
        (OLD, f"{NEW},{OLD}", (3, f"{OLD},{NEW}"), OLD, f"{OLD},{NEW}"),
        (OLD, f"{NEW},{OLD}", (3, f"{THIRD},{OLD},{NEW}"), f"{THIRD},{OLD}", f"{THIRD},{OLD},{NEW}"),
        (OLD, f"{NEW},{OLD}", (1, f"{THIRD},{NEW},{OLD}"), NEW, f"{NEW},{THIRD},{OLD}"),
    ],
    ids=["back to the made key", "back", "the new one alone", "back with both", "a third one", "the log is behind"],
)
def test_whenever_a_change_is_interrupted_all_that_is_tried_loses_nothing(
    tmp_path: Path,
    fault: BaseException,
    was: str | None,
    given: str,
    then: tuple[int, str] | tuple[()],
    tried: str | None,
    all_keys: str,
) -> None:
    """Whatever opens not all is refused."""
    at, interrupted, refused = 0, True, 0
    while interrupted:
        folder = tmp_path / f"interrupted at {at}"
        fill(folder, was)
        made = "" if was else (folder / KEY_FILE).read_text().strip()
        given, all_keys = (keys.replace("made", made) for keys in (given, all_keys))
        interrupted = is_interrupted(fault, at, partial(check_stores, folder, None, given))
        if then:
            is_interrupted(fault, then[0], partial(check_stores, folder, None, then[1]))
        for _ in range(2):
            try:
                assert found(folder, tried) == ROWS
                assert logged(folder, tried) == LOGGED
            except WrongKeyError:
                refused += 1
        last = all_keys.partition(",")[0]
        assert found(folder, all_keys) == found(folder, last) == ROWS
        assert logged(folder, last) == LOGGED
        given, all_keys = (keys.replace(made, "made") if made else keys for keys in (given, all_keys))
        at += 1
    assert at > 5
    assert refused > 2


def test_a_look_at_what_is_stored_tells_of_an_interrupted_change_as_a_start_does(folder: Path) -> None:
    fill(folder, OLD)
    assert is_interrupted(KilledError(), 3, partial(check_stores, folder, None, f"{NEW},{OLD}"))
    for look in (opens, check_stores):
        with pytest.raises(WrongKeyError, match="list the key from before behind it"):
            look(folder, None, NEW)
    assert opens(folder, None, f"{NEW},{OLD}")


@pytest.mark.parametrize(
    ("keys", "earlier"),
    [(None, {}), (None, {Key("a", 5): b"not sealed"}), (OLD, {})],
    ids=["the made key", "the made key and an earlier version's row", "a key of the owner's"],
)
def test_where_the_disk_was_full_at_the_first_start_nothing_is_lost_by_what_is_stored_once_there_is_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch, keys: str | None, earlier: dict[Key, bytes]
) -> None:
    with closing(SQLiteStore(folder / DATABASE)) as before:
        if earlier:
            before.write(earlier)
    with monkeypatch.context() as patch:
        patch.setattr(KeyFile, "keep", full)
        patch.setattr(SQLiteStore, "write", full)
        store = open_stores(folder, None, keys)()
    with closing(store):
        store.write(ROWS)
    if keys:
        for others in (NEW, None):
            with pytest.raises(WrongKeyError):
                check_stores(folder, None, others)
    assert found(folder, keys) == ROWS | earlier


def full(*_: object) -> None:
    raise StoreError("no room")


def test_a_decision_log_that_cannot_be_sealed_anew_at_once_is_not_set_aside(folder: Path) -> None:
    fill(folder, OLD)
    with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as reader:
        reader.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="database is locked"):
            check_stores(folder, None, f"{NEW},{OLD}")
    with pytest.raises(WrongKeyError):
        check_stores(folder, None, NEW)
    assert found(folder, f"{NEW},{OLD}") == ROWS
    assert logged(folder, NEW) == LOGGED


def test_a_key_file_that_cannot_be_read_for_a_moment_is_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.read_text
    for at in range(6):
        folder, failures = tmp_path / f"at {at}", [None] * at + [OSError(EMFILE, "Too many open files")]
        fill(folder, None)
        key = (folder / KEY_FILE).read_bytes()

        def read_text(path: Path, *how: Any) -> str:
            if path.name == KEY_FILE and failures and (failure := failures.pop(0)):  # noqa: B023 - called in this round
                raise failure
            return real(path, *how)

        with monkeypatch.context() as patch, suppress(StoreError):
            patch.setattr(Path, "read_text", read_text)
            check_stores(folder, None, None)
        assert found(folder, None) == ROWS
        assert logged(folder, None) == LOGGED
        assert (folder / KEY_FILE).read_bytes() == key


def test_the_decision_log_of_a_place_that_is_about_to_be_moved_is_left_alone(folder: Path) -> None:
    check_stores(folder, None, OLD)  # as an interrupted `bot.py move --back` leaves it: there are no rows yet
    elsewhere = DecisionFile(folder / FILE_NAME, read_keys(THIRD))
    elsewhere.write(LOGGED)
    open_stores(folder, None, f"{NEW},{OLD}")().close()
    assert elsewhere.read() == LOGGED
