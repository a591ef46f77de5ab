"""persistence/open_store.py: another key is given, and something goes wrong meanwhile: nothing is lost, nor forged."""

from __future__ import annotations

import sqlite3
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from errno import EMFILE
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from followup.decision_file import FILE_NAME, DecisionFile
from persistence.open_store import CHECK, DATABASE, check_stores, find_seal, open_stores
from storage.redis_store import MARKER, STATE_KEY, RedisStore
from storage.sealing import read_keys
from storage.sqlite_store import SQLiteStore
from storage.state_key import KEY_FILE, KeyFile
from storage.store import Key, StoreError, WrongKeyError
from tests.followup.test_decision_log import entry
from tests.support.redis_server import redis_url

__all__ = ["redis_url"]

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


def killed(at: int, action: Callable[[], object]) -> bool:
    """Whether the action was ended before it wrote anything to the database or the log for the time of this number."""
    left = at
    with pytest.MonkeyPatch.context() as patch:

        def counted(real: Callable[..., object]) -> Callable[..., object]:
            def write(*arguments: object) -> object:
                nonlocal left
                if left == 0:
                    raise KilledError
                left -= 1
                return real(*arguments)

            return write

        patch.setattr(SQLiteStore, "write", counted(SQLiteStore.write))
        patch.setattr(DecisionFile, "write", counted(DecisionFile.write))
        try:
            action()
        except KilledError:
            return True
    return False


@pytest.mark.parametrize("was", [None, OLD], ids=["the made key", "a key of the owner's"])
def test_who_goes_back_to_the_key_before_after_a_kill_loses_nothing(tmp_path: Path, was: str | None) -> None:
    both = f"{NEW},{was}" if was else NEW
    at, is_killed, refused = 0, True, 0
    while is_killed:
        folder = tmp_path / f"killed at {at}"
        fill(folder, was)
        is_killed = killed(at, partial(check_stores, folder, None, both))
        for _ in range(2):
            try:
                assert found(folder, was) == ROWS
                assert logged(folder, was) == LOGGED
            except WrongKeyError:
                refused += 1
        assert found(folder, both) == found(folder, NEW) == ROWS
        assert logged(folder, NEW) == LOGGED
        at += 1
    assert at > 5
    assert refused > 2


def test_a_key_that_is_taken_away_before_all_was_written_anew_is_asked_for_whatever_is_left(tmp_path: Path) -> None:
    at, is_killed, refused = 0, True, 0
    while is_killed:
        folder = tmp_path / f"killed at {at}"
        fill(folder, OLD)
        is_killed = killed(at, partial(check_stores, folder, None, f"{NEW},{OLD}"))
        try:
            assert found(folder, NEW) == ROWS
            assert logged(folder, NEW) == LOGGED
        except WrongKeyError:
            refused += 1
        assert found(folder, f"{NEW},{OLD}") == found(folder, NEW) == ROWS
        assert logged(folder, NEW) == LOGGED
        at += 1
    assert at > 5
    assert refused > 2


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_where_the_disk_was_full_when_a_key_was_given_nothing_is_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    fill(folder, None)
    real = SQLiteStore.write
    left = writes

    def write(store: SQLiteStore, changes: Mapping[Key, bytes | None]) -> None:
        nonlocal left
        if not left:
            full()
        left -= 1
        real(store, changes)

    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(SQLiteStore, "write", write)
        check_stores(folder, None, NEW)
        left = writes
        store = open_stores(folder, None, NEW)()
    assert [each["event"] for each in logs] == ["state_not_sealed"] * 2
    store.write({Key("a", 9): b"written once there is room"})
    store.close()
    assert found(folder, NEW) == ROWS | {Key("a", 9): b"written once there is room"}
    assert logged(folder, NEW) == LOGGED
    assert not (folder / KEY_FILE).exists()


@pytest.mark.parametrize("keys", [None, OLD], ids=["the made key", "a key of the owner's"])
@pytest.mark.parametrize("earlier", [{}, {Key("a", 5): b"not sealed"}], ids=["nothing", "an earlier version's row"])
def test_where_the_disk_was_full_at_the_first_start_nothing_is_lost_by_what_is_stored_once_there_is_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch, earlier: dict[Key, bytes], keys: str | None
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
    fill(folder, None)
    with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as reader:
        reader.execute("BEGIN IMMEDIATE")
        with capture_logs() as logs:
            check_stores(folder, None, NEW)
        assert [each["event"] for each in logs] == ["state_not_sealed"]
    file = DecisionFile(folder / FILE_NAME, find_seal(folder, None, NEW))
    with pytest.raises(sqlite3.OperationalError, match="the bot made"):  # so it waits in memory
        file.write([entry(3)])
    assert found(folder, NEW) == ROWS
    assert file.write([entry(3)]) is None
    assert logged(folder, NEW) == [*LOGGED, entry(3)]


def test_where_rows_cannot_be_read_a_key_that_somebody_put_there_opens_nothing(folder: Path, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        check_stores(folder, redis_url, OLD)
        with closing(open_stores(folder, redis_url, OLD)()) as store:
            store.write(ROWS)
        client.set(STATE_KEY, NEW)
        with closing(RedisStore(redis_url, seal=read_keys(NEW))) as forging:
            forging.write({Key("a", 8): b"forged", Key(CHECK, 0): None})
        client.set("parley:rows:a:5", "no rows, so that not all can be read")
        client.zadd("parley:rows:a", {"5": -1})
        with pytest.raises(StoreError):
            open_stores(folder, redis_url, OLD)()
        client.delete("parley:rows:a:5")
        with closing(open_stores(folder, redis_url, OLD)()) as store:
            assert {Key("a", row.channel, row.id): row.value for row in store.read("a") if row.value} == ROWS
        client.flushdb()


def test_a_copy_of_what_the_first_start_wrote_lets_nothing_unsealed_in(
    folder: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[Any] = []
    real = RedisStore.write
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()

        def write(store: RedisStore, changes: Mapping[Key, bytes | None]) -> None:
            real(store, changes)
            copies.append(client.hget(f"parley:rows:{CHECK}:0", "0"))

        with monkeypatch.context() as patch:
            patch.setattr(RedisStore, "write", write)
            check_stores(folder, redis_url, OLD)
        with closing(open_stores(folder, redis_url, OLD)()) as store:
            store.write(ROWS)
        for copy in filter(None, copies):
            client.hset(f"parley:rows:{CHECK}:0", "0", copy)
            client.delete(MARKER)
            with closing(RedisStore(redis_url)) as forging:
                forging.write({Key("a", 8): b"forged"})
            check_stores(folder, redis_url, OLD)
            with closing(open_stores(folder, redis_url, OLD)()) as store:
                assert {Key("a", row.channel, row.id): row.value for row in store.read("a") if row.value} == ROWS
        client.flushdb()
    assert len(copies) > 1


def test_a_key_file_that_cannot_be_read_for_a_moment_is_not_taken_for_one_that_opens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, is_killed, real = 0, True, Path.read_text
    while is_killed:
        folder, failures = tmp_path / f"killed at {at}", [OSError(EMFILE, "Too many open files")]
        fill(folder, None)
        (folder / FILE_NAME).unlink()  # as with DECISION_LOG=off: its key would be missed
        is_killed = killed(at, partial(check_stores, folder, None, NEW))

        def read_text(path: Path, *how: Any) -> str:
            if path.name == KEY_FILE and failures:  # noqa: B023 - it is called in this round
                raise failures.pop()  # noqa: B023
            return real(path, *how)

        with monkeypatch.context() as patch, suppress(StoreError):
            patch.setattr(Path, "read_text", read_text)
            check_stores(folder, None, NEW)
        assert found(folder, NEW) == ROWS
        at += 1
    assert at > 5


@pytest.mark.parametrize("later", [f"{OLD},{NEW}", f"{THIRD},{OLD},{NEW}"], ids=["the key before", "a third key"])
def test_of_several_interrupted_changes_no_key_is_taken_for_the_only_one(tmp_path: Path, later: str) -> None:
    at, is_killed, refused = 0, True, 0
    while is_killed:
        folder = tmp_path / f"killed at {at}"
        fill(folder, OLD)
        is_killed = killed(at, partial(check_stores, folder, None, f"{NEW},{OLD}"))
        killed(3, partial(check_stores, folder, None, later))
        try:
            assert found(folder, later.removesuffix(f",{NEW}")) == ROWS
        except WrongKeyError:
            refused += 1
        assert found(folder, later) == found(folder, later.partition(",")[0]) == ROWS
        assert logged(folder, later.partition(",")[0]) == LOGGED
        at += 1
    assert at > 5
    assert refused > 2


def test_where_the_disk_was_full_when_another_key_was_given_one_may_go_back_to_the_key_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(folder, OLD)
    with monkeypatch.context() as patch:
        patch.setattr(SQLiteStore, "write", full)
        store = open_stores(folder, None, f"{NEW},{OLD}")()
    with closing(store):
        store.write({Key("a", 9): b"written once there is room"})
    assert found(folder, OLD) == ROWS | {Key("a", 9): b"written once there is room"}


def test_a_decision_log_that_is_behind_the_rows_after_two_interrupted_changes_is_not_set_aside(tmp_path: Path) -> None:
    at, is_killed, refused = 0, True, 0
    while is_killed:
        folder = tmp_path / f"killed at {at}"
        fill(folder, OLD)
        is_killed = killed(at, partial(check_stores, folder, None, f"{NEW},{OLD}"))
        killed(1, partial(check_stores, folder, None, f"{THIRD},{NEW},{OLD}"))
        try:
            assert found(folder, NEW) == ROWS
            assert logged(folder, NEW) == LOGGED
        except WrongKeyError:
            refused += 1
        assert found(folder, f"{NEW},{THIRD},{OLD}") == found(folder, NEW) == ROWS
        assert logged(folder, NEW) == LOGGED
        at += 1
    assert at > 5
    assert refused > 2


def test_the_decision_log_of_a_place_that_is_about_to_be_moved_is_left_alone(folder: Path) -> None:
    check_stores(folder, None, OLD)  # as an interrupted `bot.py move --back` leaves it: there are no rows yet
    elsewhere = DecisionFile(folder / FILE_NAME, read_keys(THIRD))
    elsewhere.write(LOGGED)
    open_stores(folder, None, f"{NEW},{OLD}")().close()
    assert elsewhere.read() == LOGGED
