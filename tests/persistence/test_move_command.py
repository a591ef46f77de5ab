"""`python bot.py move`: all rows, sealed anew where they come to, and nothing where something is already."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
import redis
from cryptography.fernet import Fernet
from structlog.testing import capture_logs

from cluster.leases import COUNT
from followup.decision_file import FILE_NAME, DecisionFile
from followup.learning import Entry
from persistence.lock import InUseError, in_use
from persistence.move_command import move_command
from persistence.open_store import CHECK, DATABASE, MOVING, PAGE, check_stores, find_seal, open_stores
from storage.redis_store import RedisStore
from storage.sealing import SEALED
from storage.sqlite_store import SQLiteStore
from storage.state_key import KEY_FILE
from storage.store import Key, Store, StoreError, WrongKeyError
from tests.followup.test_decision_log import entry
from tests.storage.conftest import KEY
from tests.storage.test_sealing import sealed_before
from tests.support.redis_server import redis_server

CHANNEL = 2**60
ROWS = {
    Key("message", CHANNEL, number): b'{"content":"all aboard, number %d"}' % number for number in range(1, PAGE + 2)
} | {Key("opted_out", 0, 7): b"{}", Key("alive", 0): b"[1]"}


def rows(store: Store) -> dict[Key, bytes | None]:
    kinds = set(store.kinds()) - {CHECK}
    return {Key(kind, row.channel, row.id): row.value for kind in kinds for row in store.read(kind)}


def test_all_rows_go_to_redis_and_back_and_only_where_nothing_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with closing(open_stores(old, None, None)()) as store:
        store.write(ROWS)
    with redis_server() as url:
        assert move_command([], old, url, None) == 0
        assert f"Copied {len(ROWS)} rows from STATE_DIR to REDIS_URL" in capsys.readouterr().out
        with closing(open_stores(old, url, None)()) as store:
            assert rows(store) == ROWS
        assert move_command([], old, url, None) == 2
        assert "REDIS_URL is not empty" in capsys.readouterr().err
        assert move_command(["--back"], new, url, None) == 0
    with closing(open_stores(new, None, None)()) as store:
        assert rows(store) == ROWS


def test_no_bot_starts_in_an_empty_redis_beside_data_that_was_not_moved(tmp_path: Path) -> None:
    """Else nobody who opted out would be left alone."""
    with closing(open_stores(tmp_path, None, None)()) as store:
        store.write(ROWS)
    with redis_server() as url:
        with pytest.raises(ValueError, match="STATE_DIR has data"):
            check_stores(tmp_path, url, None)
        assert move_command([], tmp_path, url, None) == 0
        check_stores(tmp_path, url, None)


def test_one_that_was_interrupted_is_begun_anew_and_no_bot_starts_on_what_is_there_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with closing(open_stores(old, None, None)()) as store:
        store.write(ROWS)
    write, left = RedisStore.write, [1]

    def break_off(store: RedisStore, changes: Mapping[Key, bytes | None]) -> None:
        if {"message", "opted_out"} & {key.kind for key in changes}:
            if not left:
                raise StoreError("Redis is away")
            left.pop()
        write(store, changes)

    with redis_server() as url:
        with monkeypatch.context() as broken:
            broken.setattr(RedisStore, "write", break_off)
            with pytest.raises(StoreError, match="away"):
                move_command([], old, url, None)
        with pytest.raises(ValueError, match="was interrupted: run it again"):
            check_stores(new, url, None)
        assert move_command(["--back"], new, url, None) == 2  # those who opted out may be in the other part
        with closing(open_stores(old, None, None)()) as store:
            store.write({Key("alive", 0): None})
        assert move_command([], old, url, None) == 0
        check_stores(new, url, None)
        with closing(open_stores(old, url, None)()) as store:
            assert rows(store) == {key: value for key, value in ROWS.items() if key.kind != "alive"}


def test_whoever_starts_with_what_was_copied_elsewhere_is_told_so(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with closing(open_stores(old, None, KEY)()) as store:
        store.write(ROWS)

    def told(state_dir: Path, url: str | None) -> list[str]:
        with capture_logs() as logs:
            check_stores(state_dir, url, KEY)
        assert [entry["event"] for entry in logs] in ([], ["moved_away"])
        return [entry["remedy"] for entry in logs]

    with redis_server() as url:
        assert move_command([], old, url, KEY) == 0
        assert told(old, url) == []
        assert told(old, None) == ["set REDIS_URL, or run `bot.py move --back` into an empty STATE_DIR"]
        assert move_command(["--back"], new, url, KEY) == 0
        assert told(new, None) == []
        assert told(new, url) == ["remove REDIS_URL, or run `bot.py move` into an empty REDIS_URL"]


def test_what_only_looks_like_an_interrupted_copy_hinders_nothing_and_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever can write there, but has no key, could stop the bot with it, or have all deleted by the next copy."""
    with closing(open_stores(tmp_path, None, KEY)()) as store:
        store.write(ROWS)
    with closing(SQLiteStore(tmp_path / DATABASE)) as planted:
        planted.write({Key(MOVING, 0): b"true"})
    check_stores(tmp_path, None, KEY)
    with redis_server() as url:
        with closing(open_stores(tmp_path, url, KEY)()) as store:
            store.write({Key("alive", 0): b"[2]"})
        assert move_command(["--back"], tmp_path, url, KEY) == 2
    assert "STATE_DIR is not empty" in capsys.readouterr().err
    with closing(open_stores(tmp_path, None, KEY)()) as store:
        assert rows(store) == ROWS | {Key(MOVING, 0): None}


def test_damaged_rows_are_named_and_left_out_only_if_told_so_and_whoever_opted_out_stays_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = Key("alive", 0)
    with closing(open_stores(tmp_path, None, None)()) as store:
        store.write(dict.fromkeys([Key("opted_out", 0, 7), Key("opted_out", 0, 8), Key("places", 5), kept], b"1"))
    with closing(sqlite3.connect(tmp_path / DATABASE)) as db:
        db.execute("UPDATE row SET value = substr(value, 1, 20) WHERE id = 7 OR kind = 'places'")
        db.commit()
    with redis_server() as url:
        assert move_command([], tmp_path, url, None) == 2
        assert "not copied: 1 of places." in capsys.readouterr().err
        with pytest.raises(ValueError, match="was interrupted: run it again"):
            check_stores(tmp_path, url, None)
        assert move_command(["--without-damaged"], tmp_path, url, None) == 0
        said = capsys.readouterr()
        assert "not copied: 1 of places." in said.err
        assert "Copied 3 rows" in said.out
        with closing(open_stores(tmp_path, url, None)()) as store:
            assert rows(store) == {Key("opted_out", 0, 7): b"true", Key("opted_out", 0, 8): b"1", kept: b"1"}


def test_a_key_that_does_not_fit_copies_nothing_and_the_one_that_does_copies_all(tmp_path: Path) -> None:
    first, second = (Fernet.generate_key().decode() for _ in range(2))
    with closing(open_stores(tmp_path, None, first)()) as store:
        store.write(ROWS)
    with redis_server() as url:
        with pytest.raises(WrongKeyError):
            move_command([], tmp_path, url, second)
        assert move_command([], tmp_path, url, f"{second},{first}") == 0
        with closing(open_stores(tmp_path, url, second)()) as store:
            assert rows(store) == ROWS


def test_where_the_key_is_left_out_none_is_made_for_the_empty_place(tmp_path: Path) -> None:
    """Else the right key would be refused there afterwards."""
    old, new = tmp_path / "old", tmp_path / "new"
    with closing(open_stores(old, None, KEY)()) as store:
        store.write(ROWS)
    with redis_server() as url:
        assert move_command([], old, url, KEY) == 0
        with pytest.raises(WrongKeyError):
            move_command(["--back"], new, url, None)
        assert not (new / KEY_FILE).exists()
        assert move_command(["--back"], new, url, KEY) == 0


@pytest.mark.parametrize("given", [None, KEY])
def test_the_decision_log_is_read_with_the_key_of_the_place_where_all_else_is(
    tmp_path: Path, given: str | None
) -> None:
    kept = [entry(1)]

    def read(url: str | None) -> list[Entry]:
        check_stores(tmp_path, url, given)
        return DecisionFile(tmp_path / FILE_NAME, find_seal(tmp_path, url, given)).read()

    check_stores(tmp_path, None, None)
    DecisionFile(tmp_path / FILE_NAME, find_seal(tmp_path, None, None)).write(kept)
    keys = f"{given},{(tmp_path / KEY_FILE).read_text().strip()}" if given else None
    with redis_server() as url:
        assert move_command([], tmp_path, url, keys) == 0
        assert read(url) == kept
        (tmp_path / DATABASE).unlink()
        assert move_command(["--back"], tmp_path, url, keys) == 0
    assert read(None) == kept


def test_where_the_decision_log_cannot_be_brought_along_no_bot_starts_with_the_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("followup.decision_file.LOCK_SECONDS", 0.01)
    with closing(open_stores(tmp_path, None, None)()) as store:
        store.write(ROWS)
    log = tmp_path / FILE_NAME
    DecisionFile(log, find_seal(tmp_path, None, None)).write([entry(1)])
    with redis_server() as url:
        with closing(sqlite3.connect(log, isolation_level=None)) as reader:
            reader.execute("BEGIN IMMEDIATE")
            assert move_command([], tmp_path, url, None) == 2
        assert "could not be sealed with the key of REDIS_URL: database is locked." in capsys.readouterr().err
        with pytest.raises(ValueError, match="move"):
            check_stores(tmp_path, url, None)
        assert move_command([], tmp_path, url, None) == 0
        check_stores(tmp_path, url, None)
        assert DecisionFile(log, find_seal(tmp_path, url, None)).read() == [entry(1)]


def test_what_a_version_before_had_sealed_is_copied_as_it_is_sealed_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(
            "storage.sqlite_store.pack",
            lambda rows, _: {key: value and sealed_before(key, value) for key, value in rows.items()},
        )
        with closing(open_stores(tmp_path, None, KEY)()) as store:
            store.write(ROWS)
    with redis_server() as url:
        assert move_command([], tmp_path, url, KEY) == 0
        with closing(open_stores(tmp_path, url, KEY)()) as store:
            assert rows(store) == ROWS
        with redis.Redis.from_url(url) as client:
            stored = [
                value
                for name in client.scan_iter()
                if client.type(name) == b"hash"
                for value in client.hgetall(name).values()
            ]
    assert {value[:1] for value in stored} == {SEALED}


@pytest.mark.parametrize("back", [[], ["--back"]])
def test_beside_a_bot_that_runs_nothing_is_copied(tmp_path: Path, back: list[str]) -> None:
    with redis_server() as url:
        with in_use(tmp_path), pytest.raises(InUseError, match="STATE_DIR"):
            move_command(back, tmp_path, url, None)
        with in_use(tmp_path / "another", url), pytest.raises(InUseError, match="by another process"):
            move_command(back, tmp_path, url, None)
        with redis.Redis.from_url(url) as client:
            client.set(COUNT, "4 1")
            with pytest.raises(InUseError, match="by processes that share it"):
                move_command(back, tmp_path, url, None)
            assert client.keys("parley:rows*") == []


def test_without_redis_it_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert move_command([], tmp_path, None, None) == 2
    assert capsys.readouterr().err.startswith("REDIS_URL or DISCORD_TOKEN is not set")
