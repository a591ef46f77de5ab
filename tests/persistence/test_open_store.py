"""persistence/open_store.py, persistence/lock.py: where rows are stored, with which keys, for whom alone."""

from __future__ import annotations

import multiprocessing
import os
import platform
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from persistence import lock
from persistence.lock import InUseError, in_use
from persistence.open_store import DATABASE, check_stores, open_stores
from storage.redis_store import RedisStore
from storage.sqlite_store import SQLiteStore
from storage.store import Key, Row, StoreError, WrongKeyError
from tests.storage.conftest import redis_url

__all__ = ["redis_url"]

OLD, NEW = (urlsafe_b64encode(letter * 32).decode() for letter in (b"a", b"b"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "state"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Where


def test_it_is_one_database_and_nothing_is_touched_yet(folder: Path) -> None:
    store = open_stores(folder, None, None)()
    assert isinstance(store, SQLiteStore)
    assert not folder.exists()
    store.write({Key("a", 1): b"1"})
    store.close()
    assert [path.name for path in folder.iterdir()] == [DATABASE]


def test_with_an_address_of_a_redis_it_is_there(folder: Path, redis_url: str) -> None:
    store = open_stores(folder, redis_url, OLD)()
    assert isinstance(store, RedisStore)
    store.write({Key("a", 1): b"1"})
    assert store.read("a") == [Row(1, 0, b"1")]
    store.write({Key("a", 1): None})
    assert not folder.exists()
    store.close()


def test_keys_of_another_form_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="STATE_KEY"):
        open_stores(folder, None, "no key")


# With which keys


@pytest.mark.parametrize("before", [OLD, None])
@pytest.mark.parametrize("now", [OLD, NEW, f"{NEW},{OLD}", f"{OLD},{NEW}", None])
def test_keys_fit_or_are_refused_and_nothing_is_touched(folder: Path, before: str | None, now: str | None) -> None:
    check_stores(folder, None, before)
    there = contents(folder) if folder.exists() else {}
    if before and OLD not in (now or ""):
        with pytest.raises(WrongKeyError, match="STATE_KEY"):
            check_stores(folder, None, now)
        assert contents(folder) == there
    else:
        check_stores(folder, None, now)
    assert before or now or not folder.exists()


def test_where_nothing_can_be_written_the_key_counts_all_the_same(folder: Path, request: pytest.FixtureRequest) -> None:
    check_stores(folder, None, OLD)
    request.getfixturevalue("full_disk")
    with capture_logs() as logs:
        check_stores(folder, None, OLD)
    assert [entry["event"] for entry in logs] == ["key_not_noted"]
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
