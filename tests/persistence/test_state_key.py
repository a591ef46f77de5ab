"""persistence/open_store.py: how STATE_KEY is set, changed and taken away; only what it sealed is read then."""

from __future__ import annotations

import sqlite3
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis
from structlog.testing import capture_logs

from followup.decision_file import FILE_NAME, DecisionFile
from persistence.open_store import CHECK, DATABASE, check_stores, find_seal, open_stores, opens
from state.session_files import SessionFiles
from storage.redis_store import STATE_KEY, RedisStore
from storage.sealing import Seal, read_keys
from storage.sqlite_store import SQLiteStore
from storage.state_key import KEY_FILE
from storage.store import Key, Store, WrongKeyError
from tests.followup.test_decision_log import entry, unsealed_log
from tests.support.redis_server import redis_url

__all__ = ["redis_url"]

MINE, NEW, THEIRS = (urlsafe_b64encode(letter * 32).decode() for letter in (b"a", b"b", b"c"))
ROWS = {Key("a", 1, id_): b"mine" for id_ in (0, 600)}
FORGED = {Key("a", 1, id_): b"forged" for id_ in range(1, 600)} | {Key("b", 0): b"forged"}
Raw = Mapping[Any, Any]


class Place:
    """STATE_DIR, or a Redis, as the bot uses it, and as somebody does who can write there."""

    def __init__(self, folder: Path, url: str | None) -> None:
        self.folder = folder
        self.url = url

    def start(self, keys: str | None) -> dict[Key, bytes]:
        """What is read at a start."""
        check_stores(self.folder, self.url, keys)
        with closing(self.open(keys)) as store:
            rows = [(kind, row) for kind in store.kinds() for row in store.read(kind) if kind != CHECK]
            return {Key(kind, row.channel, row.id): row.value for kind, row in rows if row.value}

    def open(self, keys: str | None) -> Store:
        return open_stores(self.folder, self.url, keys)()

    def fill(self, keys: str | None) -> None:
        check_stores(self.folder, self.url, keys)
        with closing(self.open(keys)) as store:
            store.write(ROWS)
        self.log(keys).write([entry(1)])

    def log(self, keys: str | None) -> DecisionFile:
        return DecisionFile(self.folder / FILE_NAME, find_seal(self.folder, self.url, keys))

    def put(self, rows: Mapping[Key, bytes | None], seal: Seal | None) -> None:
        """Writes rows without opening the store as the bot does."""
        forging: Store = RedisStore(self.url, seal=seal) if self.url else SQLiteStore(self.folder / DATABASE, seal=seal)
        with closing(forging):
            forging.write(rows)

    @property
    def made(self) -> str:
        """The key that the bot made; empty: none is there."""
        if not self.url:
            return (self.folder / KEY_FILE).read_text().strip() if (self.folder / KEY_FILE).exists() else ""
        with redis.Redis.from_url(self.url) as client:
            return bytes(client.get(STATE_KEY) or b"").decode()

    @made.setter
    def made(self, key: str) -> None:
        if not self.url:
            (self.folder / KEY_FILE).write_text(key)
            return
        with redis.Redis.from_url(self.url) as client:
            client.set(STATE_KEY, key)

    def raw(self) -> Raw:
        """All that is there, as it is stored."""
        if not self.url:
            with closing(sqlite3.connect(self.folder / DATABASE)) as db:
                rows = db.execute("SELECT kind, channel, id, value FROM row WHERE live").fetchall()
            return {Key(*place): value for *place, value in rows}
        with redis.Redis.from_url(self.url) as client:
            return {name: client.dump(name) for name in client.scan_iter(match="parley:rows*")}

    def put_back(self, raw: Raw) -> None:
        """Adds what was copied before, in place of what is there under the same names."""
        self.put({}, None)
        if not self.url:
            with closing(sqlite3.connect(self.folder / DATABASE)) as db, db:
                for place, value in raw.items():
                    db.execute("DELETE FROM row WHERE (kind, channel, id) = (?, ?, ?)", place)
                    db.execute(
                        "INSERT INTO row (live, kind, channel, id, value) VALUES (1, ?, ?, ?, ?)", [*place, value]
                    )
            return
        with redis.Redis.from_url(self.url) as client:
            for name, value in raw.items():
                if name.count(b":") < 3:  # the channels of a kind
                    client.restore(name, 0, value, replace=True)
                    continue
                client.restore("copy", 0, value, replace=True)
                client.hset(name, mapping=client.hgetall("copy"))
                client.delete("copy")

    def wipe(self) -> None:
        (self.folder / KEY_FILE).unlink(missing_ok=True)
        for path in self.folder.glob(f"{DATABASE}*"):
            path.unlink()
        if self.url:
            with redis.Redis.from_url(self.url) as client:
                client.flushdb()

    def leave_documents(self) -> None:
        """As an earlier version did."""
        if not self.url:
            SessionFiles(self.folder / "channels").write("5", b'{"version":1,"layers":{"b":"forged"}}')
            return
        with redis.Redis.from_url(self.url) as client:
            client.set("parley:channels::document:5", b'{"version":1,"layers":{"b":"forged"}}')
            client.zadd("parley:channels::names", {"5": 1.0})


@pytest.fixture(params=["folder", "Redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    there = Place(tmp_path / "state", request.getfixturevalue("redis_url") if request.param == "Redis" else None)
    there.folder.mkdir()
    there.wipe()
    return there


# Set, changed, taken away


def test_who_sets_a_key_of_their_own_is_told_to_list_the_made_one_for_one_start(place: Place) -> None:
    place.fill(None)
    made, before = place.made, place.raw()
    for refuse in (place.start, lambda keys: opens(place.folder, place.url, keys)):
        with pytest.raises(WrongKeyError, match=STATE_KEY if place.url else str(place.folder / KEY_FILE)) as refused:
            refuse(NEW)
        assert made not in str(refused.value)
        assert "\n" not in str(refused.value)
    assert (place.raw(), place.made) == (before, made)
    assert place.start(None) == ROWS
    with capture_logs() as logs:
        assert place.start(f"{NEW},{made}") == ROWS
    assert [each["event"] for each in logs] == ["earlier_key_listed"]
    place.made = THEIRS  # nobody looks there any more
    assert place.start(NEW) == ROWS
    assert place.log(NEW).read() == [entry(1)]


def test_the_made_key_itself_can_be_set(place: Place) -> None:
    place.fill(None)
    made = place.made
    assert place.start(made) == ROWS
    assert place.log(made).read() == [entry(1)]


@pytest.mark.parametrize("left", ["", THEIRS], ids=["no key beside it", "another beside it"])
def test_a_key_that_is_taken_away_is_asked_for_and_none_is_made(place: Place, left: str) -> None:
    place.fill(MINE)
    if left:
        place.made = left
    before = place.raw()
    with pytest.raises(WrongKeyError, match="set STATE_KEY to the key it was encrypted with, or put back"):
        place.start(None)
    assert (place.raw(), place.made) == (before, left)
    assert place.start(MINE) == ROWS


@pytest.mark.parametrize("what", ["rows", "documents"])
def test_what_is_not_sealed_is_taken_over_without_state_key_only(place: Place, what: str) -> None:
    if what == "rows":
        place.put(ROWS, None)
    else:
        place.leave_documents()
    for _ in range(2):
        with pytest.raises(WrongKeyError, match="start once without STATE_KEY"):
            place.start(NEW)
    with pytest.raises(WrongKeyError, match="start once without STATE_KEY"):
        opens(place.folder, place.url, NEW)
    taken = ROWS if what == "rows" else {Key("b", 5): b'"forged"'}
    assert place.start(None) == taken
    assert place.start(f"{NEW},{place.made}") == place.start(NEW) == taken


def test_where_not_all_was_taken_over_yet_no_key_is_set(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.put(ROWS, None)
    with monkeypatch.context() as patch:
        patch.setattr("persistence.open_store.take_over", lambda *_: False)
        assert place.start(None) == ROWS
    with pytest.raises(WrongKeyError, match="start once without STATE_KEY"):
        place.start(f"{NEW},{place.made}")
    assert place.start(None) == place.start(f"{NEW},{place.made}") == ROWS


# By whoever can write there, but has no key


def plant_rows(place: Place) -> None:
    place.put(FORGED, None)


def plant_rows_that_tell_of_the_key(place: Place) -> None:
    place.put(FORGED | check(MINE), None)


def plant_sealed_rows(place: Place) -> None:
    place.made = THEIRS
    place.put(FORGED, read_keys(THEIRS))


def plant_sealed_rows_that_tell_of_their_key(place: Place) -> None:
    place.made = THEIRS
    place.put(FORGED | check(THEIRS), read_keys(THEIRS))


PLANTS = [
    plant_rows,
    plant_rows_that_tell_of_the_key,
    plant_sealed_rows,
    plant_sealed_rows_that_tell_of_their_key,
    Place.leave_documents,
]


def check(key: str) -> dict[Key, bytes]:
    return {Key(CHECK, 0): orjson.dumps({"sealed_by": read_keys(key).marks[0], "whole": True})}


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("is_check_gone", [False, True], ids=["", "without the row that tells of the key"])
def test_what_is_added_is_never_told(place: Place, plant: Callable[[Place], object], *, is_check_gone: bool) -> None:
    place.fill(MINE)
    kept = place.raw()
    plant(place)
    if is_check_gone:
        place.put({Key(CHECK, 0): None}, None)
    for keys in (MINE, f"{NEW},{MINE}", MINE):
        with suppress(WrongKeyError):
            assert place.start(keys) == ROWS
    place.put_back(kept)
    assert place.start(MINE) == ROWS or place.start(f"{MINE},{NEW}") == ROWS


@pytest.mark.parametrize("value", ["'text'", "NULL", "5"])
def test_a_value_that_is_no_bytes_is_damaged_and_can_be_replaced(tmp_path: Path, value: str) -> None:
    place = Place(tmp_path, None)
    place.fill(MINE)
    with closing(sqlite3.connect(tmp_path / DATABASE)) as db, db:
        db.execute(f"UPDATE row SET value = {value}")  # noqa: S608 - ours
    assert opens(tmp_path, None, MINE)
    assert place.start(MINE) == {}
    place.fill(MINE)
    assert place.start(MINE) == ROWS


@pytest.mark.parametrize("plant", PLANTS)
def test_what_is_put_in_place_of_all_is_not_sealed_and_not_told_beside_what_is_put_back(
    place: Place, plant: Callable[[Place], object]
) -> None:
    place.fill(MINE)
    kept = place.raw()
    place.wipe()
    plant(place)
    for keys in (MINE, f"{NEW},{MINE}"):
        with pytest.raises(WrongKeyError):
            place.start(keys)
    place.put_back(kept)
    for keys in (MINE, f"{NEW},{MINE}", NEW):
        assert place.start(keys) == ROWS


def test_what_is_added_while_nothing_is_there_is_not_told_either(place: Place) -> None:
    place.fill(MINE)
    kept = place.raw()
    place.wipe()
    assert place.start(MINE) == {}
    for plant in PLANTS:
        plant(place)
    with suppress(WrongKeyError):
        assert place.start(MINE) == {}
    place.put_back(kept)
    assert place.start(MINE) == ROWS


def test_what_running_processes_find_in_place_of_all_is_not_told(tmp_path: Path, redis_url: str) -> None:
    place = Place(tmp_path, redis_url)
    place.wipe()
    open_store = open_stores(tmp_path, redis_url, MINE)
    open_store().close()
    for plant in PLANTS:
        place.wipe()
        plant(place)
        with closing(open_store()) as store:
            assert {row.value for row in store.read("a")} <= {None}
            store.write(ROWS)
        assert place.start(MINE) == ROWS


@pytest.mark.parametrize("forged", ["sealed", "plain"])
def test_a_decision_log_that_somebody_put_there_is_refused(place: Place, forged: str) -> None:
    place.fill(MINE)
    (place.folder / FILE_NAME).unlink()
    if forged == "sealed":
        place.made = THEIRS
        DecisionFile(place.folder / FILE_NAME, read_keys(THEIRS)).write([entry(1)])
    else:
        unsealed_log(place.folder / FILE_NAME, [entry(1)])
    with capture_logs() as logs:
        assert place.start(MINE) == ROWS
    assert place.log(MINE).read() == []
    assert [each["event"] for each in logs] == ["decision_log_unusable"]
