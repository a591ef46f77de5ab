"""persistence/open_store.py, persistence/lock.py: where rows are stored, with which keys, for whom alone."""

from __future__ import annotations

import multiprocessing
import os
import platform
import sqlite3
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
import redis
from structlog.testing import capture_logs

from cluster.connection import Cluster
from cluster.leases import ALONE, COUNT, SINCE
from persistence import lock
from persistence.lock import InUseError, in_use
from persistence.open_store import CHECK, DATABASE, check_stores, open_stores
from storage.redis_store import STATE_KEY, RedisStore
from storage.sqlite_store import SQLiteStore
from storage.state_key import KEY_FILE
from storage.store import Key, Row, StoreError, WrongKeyError
from tests.support.redis_server import redis_url

__all__ = ["redis_url"]

OLD, NEW = (urlsafe_b64encode(letter * 32).decode() for letter in (b"a", b"b"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "state"


def values(folder: Path, kind: str, keys: str | None = None) -> list[bytes | None]:
    """What is read of a kind at a start with these keys."""
    store = open_stores(folder, None, keys)()
    try:
        return [row.value for row in store.read(kind)]
    finally:
        store.close()


def written(folder: Path, rows: Mapping[Key, bytes], keys: str | None = None) -> None:
    store = open_stores(folder, None, keys)()
    store.write(rows)
    store.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Where


def test_it_is_one_database_with_a_key_of_its_own_beside_it(folder: Path) -> None:
    open_store = open_stores(folder, None, None)
    assert not folder.exists()
    with capture_logs() as logs:
        store = open_store()
    assert isinstance(store, SQLiteStore)
    store.write({Key("a", 1): b"sesame"})
    store.close()
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert modes == dict.fromkeys((DATABASE, KEY_FILE), 0o600)
    assert b"sesame" not in (folder / DATABASE).read_bytes()
    (made,) = logs
    assert (made["event"], made["place"]) == ("state_key_made", str(folder / KEY_FILE))
    assert "STATE_KEY" in made["remedy"]
    assert (folder / KEY_FILE).read_text().strip() not in str(logs)
    assert values(folder, "a") == [b"sesame"]


def test_with_an_address_of_a_redis_it_is_there(folder: Path, redis_url: str) -> None:
    store = open_stores(folder, redis_url, OLD)()
    assert isinstance(store, RedisStore)
    store.write({Key("a", 1): b"1"})
    assert store.read("a") == [Row(1, 0, b"1")]
    store.write({Key("a", 1): None})
    assert not folder.exists()
    store.close()


def test_in_redis_the_key_that_is_made_is_there_too(folder: Path, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client, capture_logs() as logs:
        client.flushdb()
        store = open_stores(folder, redis_url, None)()
        store.write({Key("a", 1): b"1"})
        assert [entry["event"] for entry in logs] == ["state_key_made"]
        again = open_stores(folder, redis_url, None)()
        assert again.read("a") == [Row(1, 0, b"1")]
        assert b"\n" not in (client.get(STATE_KEY) or b"")
        client.delete(STATE_KEY)
        with pytest.raises(WrongKeyError, match="STATE_KEY"):
            open_stores(folder, redis_url, None)()
        client.flushdb()
        store.close()
        again.close()


def test_keys_of_another_form_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="STATE_KEY"):
        open_stores(folder, None, "no key")


# With which keys


@pytest.mark.parametrize("now", [OLD, NEW, f"{NEW},{OLD}", f"{OLD},{NEW}", None])
def test_keys_fit_or_are_refused_and_nothing_is_touched(folder: Path, now: str | None) -> None:
    check_stores(folder, None, OLD)
    there = contents(folder)
    if OLD not in (now or ""):
        with pytest.raises(WrongKeyError, match="STATE_KEY"):
            check_stores(folder, None, now)
        assert contents(folder) == there
    else:
        check_stores(folder, None, now)


@pytest.mark.parametrize("spoilt", ["", "no key at all", None])
def test_without_the_key_that_was_made_it_does_not_start_and_makes_no_other(folder: Path, spoilt: str | None) -> None:
    written(folder, {Key("a", 1): b"1"})
    key = (folder / KEY_FILE).read_text()
    (folder / KEY_FILE).unlink()
    if spoilt is not None:
        (folder / KEY_FILE).write_text(spoilt)
    there = contents(folder)
    with pytest.raises(WrongKeyError, match=KEY_FILE):
        check_stores(folder, None, None)
    assert contents(folder) == there
    (folder / KEY_FILE).write_text(key)
    assert values(folder, "a") == [b"1"]


# What is not sealed, or not in its place


def plain(folder: Path, rows: Mapping[Key, bytes | None]) -> None:
    """As a version without a key wrote them, or whoever can write to the database."""
    store = SQLiteStore(folder / DATABASE)
    store.write(rows)
    store.close()


def test_what_was_plain_before_there_was_a_key_is_taken_over_once_and_is_sealed_then(folder: Path) -> None:
    plain(folder, {Key("a", 1): b"sesame", Key("message", 5, 7): b"open sesame", Key("sealed_by", 0): b'""'})
    assert values(folder, "a") == [b"sesame"]
    assert values(folder, "message") == [b"open sesame"]
    assert not any(b"sesame" in content for content in contents(folder).values())


def test_a_row_that_nobody_sealed_is_refused_with_a_key_of_the_owners(folder: Path) -> None:
    written(folder, {Key("a", 1): b"1"}, OLD)
    plain(folder, {Key("a", 2): b"forged"})
    with capture_logs() as logs:
        assert values(folder, "a", OLD) == [b"1", None]
        assert values(folder, "a", f"{NEW},{OLD}") == [b"1", None]
    assert {(entry["event"], entry["detail"]) for entry in logs} == {("row_refused", "it is not sealed")}
    plain(folder, {Key(CHECK, 0): None})
    with pytest.raises(WrongKeyError, match="start once without STATE_KEY"):
        check_stores(folder, None, NEW)


def test_sealed_rows_that_changed_places_are_refused(folder: Path) -> None:
    first, second = Key("conversation", 1), Key("conversation", 2)
    written(folder, {first: b"of the first channel", second: b"of the second", Key("prompts", 1): b"[]"}, OLD)
    with closing(sqlite3.connect(folder / DATABASE)) as db, db:
        for was, now in ((1, 3), (2, 1), (3, 2)):
            db.execute("UPDATE row SET channel = ? WHERE channel = ? AND kind = 'conversation'", (now, was))
        db.execute("UPDATE row SET kind = 'miniapps' WHERE kind = 'prompts'")
    with capture_logs() as logs:
        assert values(folder, "conversation", OLD) == [None, None]
        assert values(folder, "miniapps", OLD) == [None]
    assert {entry["event"] for entry in logs} == {"row_refused"}


@pytest.mark.parametrize("kind", [CHECK, "a"])
def test_a_damaged_seal_costs_its_row_and_no_more(folder: Path, kind: str) -> None:
    written(folder, {Key("a", 1): b"1", Key("b", 1): b"2"}, OLD)
    with closing(sqlite3.connect(folder / DATABASE)) as db, db:
        db.execute("UPDATE row SET value = cast('+sealed by nobody, but long enough.' AS BLOB) WHERE kind = ?", (kind,))
    assert values(folder, "b", OLD) == [b"2"]
    assert values(folder, "a", OLD) == [None if kind == "a" else b"1"]


def test_a_key_that_is_taken_away_before_all_was_written_anew_is_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(folder, {Key("a", 1): b"1"}, OLD)
    with monkeypatch.context() as patch:
        patch.setattr(SQLiteStore, "kinds", _dying)
        with pytest.raises(ZeroDivisionError):
            check_stores(folder, None, f"{NEW},{OLD}")
    with pytest.raises(WrongKeyError):
        check_stores(folder, None, NEW)
    assert values(folder, "a", f"{NEW},{OLD}") == values(folder, "a", NEW) == [b"1"]


def _dying(_: object) -> list[str]:
    raise ZeroDivisionError


def test_on_a_full_disk_it_runs_with_the_key_of_before_alone(folder: Path, request: pytest.FixtureRequest) -> None:
    """With another one first, both would seal rows, and who goes back to the one before would lose some."""
    check_stores(folder, None, OLD)
    request.getfixturevalue("full_disk")
    check_stores(folder, None, OLD)
    with pytest.raises(StoreError, match="could be encrypted with the first key of STATE_KEY") as refused:
        check_stores(folder, None, f"{NEW},{OLD}")
    assert not isinstance(refused.value, WrongKeyError)
    with pytest.raises(WrongKeyError):
        check_stores(folder, None, NEW)


def test_a_redis_that_is_not_there_ends_the_start(folder: Path) -> None:
    for key in (None, OLD):
        with pytest.raises(StoreError):
            check_stores(folder, f"unix://{folder}/none", key)
    with pytest.raises(StoreError, match="REDIS_URL"), in_use(folder, f"unix://{folder}/none"):
        pytest.fail("it is not there")


# For whom


def test_a_second_one_waits_and_is_told_where_it_waits_in_vain(folder: Path) -> None:
    with in_use(folder):
        with capture_logs() as logs, pytest.raises(InUseError, match=str(folder)), in_use(folder, seconds=0.05):
            pytest.fail("two have it")
        assert [entry["event"] for entry in logs] == ["waiting_for_other_process"]
    with pytest.raises(ZeroDivisionError), in_use(folder):
        raise ZeroDivisionError
    with in_use(folder, seconds=0):
        assert os.stat(folder / "lock").st_mode & 0o777 == 0o600  # noqa: PTH116
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("owner", "waits"),
    [(None, 0.01), (f"{os.getpid()} elsewhere", 0.05), (f"{2**22 + 1} {platform.node()}", 0.05), ("", 0.05)],
    ids=["here", "on another machine", "dead", "not known"],
)
def test_only_for_one_that_may_be_about_to_end_it_waits_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch, owner: str | None, waits: float
) -> None:
    monkeypatch.setattr(lock, "HERE_SECONDS", 0.01)
    with in_use(folder):
        if owner is not None:
            (folder / "lock").write_text(owner)
        with capture_logs() as logs, pytest.raises(InUseError) as refused, in_use(folder, seconds=0.05):
            pytest.fail("two have it")
    assert [entry["seconds"] for entry in logs] == [waits]
    assert (f"({os.getpid()} on this machine)" in str(refused.value)) is (owner is None)


def _have_it_and_die(folder: Path) -> None:
    with in_use(folder):
        os._exit(9)


@pytest.mark.slow
def test_it_is_free_again_when_its_process_dies(folder: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_have_it_and_die, args=(folder,))
    process.start()
    process.join()
    assert process.exitcode == 9
    with in_use(folder, seconds=0):
        pass


def test_a_folder_that_cannot_be_made_is_nobodys_and_that_is_logged(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in its place")
    with capture_logs() as logs, in_use(tmp_path / "file" / "state"):
        pass
    assert [entry["event"] for entry in logs] == ["state_dir_unusable"]


def test_a_redis_is_for_one_alone_whatever_their_folders(folder: Path, redis_url: str) -> None:
    with (
        in_use(folder, redis_url),
        pytest.raises(InUseError, match="REDIS_URL"),
        in_use(folder.with_name("other"), redis_url, seconds=0.05),
    ):
        pytest.fail("two have it")
    with in_use(folder, redis_url, seconds=0.05):
        pass


def test_a_redis_that_several_processes_share_is_for_none_alone(
    folder: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "LOOK_SECONDS", 0.02)
    with redis.Redis.from_url(redis_url) as client:
        client.set(COUNT, 4, px=60_000)
        with pytest.raises(InUseError, match="SHARDS=auto"), in_use(folder, redis_url, seconds=0.05):
            pytest.fail("it goes on beside them")
        assert not client.exists(ALONE)
        client.set(COUNT, 4, px=20)  # as once the last of them has ended
        with in_use(folder, redis_url):
            assert client.exists(ALONE)


async def test_while_one_alone_waits_for_those_that_share_its_redis_they_take_over_shards(
    folder: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(redis_url)
    server = await cluster.redis.info("server")
    await cluster.redis.set(SINCE, f"{server['run_id']} 0")  # as if it had run for long
    assert await cluster.leases.take(0, 2)
    had: list[bool] = []

    def look(_: float) -> None:
        with closing(redis.Redis.from_url(redis_url)) as client:
            had.append(bool(client.exists(lock.LEASE)))

    monkeypatch.setattr("persistence.lock.time.sleep", look)
    with (
        capture_logs() as logs,
        pytest.raises(InUseError, match="processes that share it"),
        in_use(folder, redis_url, seconds=0.5),
    ):
        pytest.fail("all shards would be connected twice")
    assert set(had) == {False}
    assert [entry["event"] for entry in logs] == ["waiting_for_other_process"]
    assert await cluster.leases.take(1, 2)
    await cluster.leases.release([0, 1])
    await cluster.redis.delete(lock.CLUSTER)
    with in_use(folder, redis_url, seconds=0.05):
        assert not await cluster.leases.take(0, 2)
    await cluster.close()
