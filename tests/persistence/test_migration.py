"""persistence/migration.py: what an earlier version left is taken over once, and is gone there."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import redis
from cryptography.fernet import Fernet
from structlog.testing import capture_logs

from persistence.open_store import check_stores, open_stores
from persistence.stored_messages import to_message
from persistence.transcript import GUILD, MESSAGE
from state import SessionManager
from state.session_files import SessionFiles
from storage.redis_store import STATE_KEY
from storage.sqlite_store import SQLiteStore
from storage.state_key import KEY_FILE
from storage.store import Key, Row, StoreError, WrongKeyError
from tests.storage.conftest import KEY
from tests.storage.test_sealing import OTHER
from tests.support.lives import on_disk
from tests.support.people import ANNA, CHANNEL, said
from tests.support.redis_server import redis_url

__all__ = ["redis_url"]

FIRST, SECOND, THIRD = (said(ANNA, f"word {n}") for n in range(3))
SNAPSHOTS = {
    "prompts": [],
    "miniapps": [Row(CHANNEL, 0, b'{"a":1}')],
    "unfinished": [Row(CHANNEL, 0, b"[2]")],
    GUILD: [Row(CHANNEL, 0, b'{"guild_id":70}')],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As an earlier version left it when it was killed."""
    folder = tmp_path / "state"
    channels = SessionFiles(folder / "channels")
    channels.write(str(CHANNEL), b'{"version":1,"layers":{"prompts":1,"miniapps":{"a":1}}}')
    channels.append(str(CHANNEL), b'{"prompts":null,"unfinished":[2]}')
    SessionFiles(folder / "process").append("process", b'{"alive":"now"}')
    manager = SessionManager(folder / "sessions")
    session = manager.create_session(str(CHANNEL), {"channel_id": CHANNEL, "guild_id": 70})
    session.add_message(to_message(FIRST))
    session.add_message(to_message(SECOND))
    later = manager.create_continuation_session(session, f"{CHANNEL}.1")
    later.add_message(to_message(THIRD))
    return folder


def rows(folder: Path, kind: str, keys: str | None = None, *, url: str | None = None) -> list[Row]:
    store = open_stores(folder, url, keys)()
    found = store.read(kind)
    store.close()
    return found


def test_all_of_it_is_there_and_the_folders_are_gone(folder: Path) -> None:
    with capture_logs() as logs:
        assert [row.id for row in rows(folder, MESSAGE)] == [m.message_id for m in (FIRST, SECOND, THIRD)]
    assert [entry["event"] for entry in logs] == ["state_key_made", "earlier_state_taken_over"]
    assert {kind: rows(folder, kind) for kind in SNAPSHOTS} == SNAPSHOTS
    assert rows(folder, "alive") == [Row(0, 0, b'"now"')]
    assert {path.name for path in folder.iterdir()} == {"parley.db", "state.key"}


def test_what_is_stored_already_counts_and_files_of_others_stay(folder: Path) -> None:
    (folder / "channels" / "notes.txt").write_text("mine")
    (folder / "sessions" / "notes.json").write_text("{}")
    later = SQLiteStore(folder / "parley.db")
    later.write({Key("unfinished", CHANNEL): b"[3]"})
    later.close()
    assert rows(folder, "unfinished") == [Row(CHANNEL, 0, b"[3]")]
    assert (folder / "channels" / "notes.txt").read_text() == "mine"
    assert (folder / "sessions" / "notes.json").read_text() == "{}"


def test_what_cannot_be_read_or_is_of_another_channel_is_set_aside_and_logged(folder: Path) -> None:
    (folder / "channels" / f"{CHANNEL}.json").write_text('{"version": 99}')
    other = folder / "sessions" / f"{CHANNEL + 1}.json"
    other.write_bytes((folder / "sessions" / f"{CHANNEL}.json").read_bytes())
    with capture_logs() as logs:
        found = rows(folder, MESSAGE)
    assert {row.channel for row in found} == {CHANNEL}
    damaged = [(e["kind"], Path(e["set_aside"])) for e in logs if e["event"] == "earlier_document_damaged"]
    assert sorted(kind for kind, _ in damaged) == ["channels", "sessions"]
    assert all(path.is_file() for _, path in damaged)
    assert not rows(folder, "unfinished")
    store = open_stores(folder, None, None)()
    store.drop_aside(float("inf"))
    assert not [path for _, path in damaged if path.exists()]


def test_what_was_sealed_is_taken_over_sealed_and_with_its_key_alone(folder: Path) -> None:
    seal = Fernet(KEY)
    for kind, name in (("sessions", str(CHANNEL)), ("seal", "seal")):
        files = SessionFiles(folder / kind)
        content = files.read(name).content or b'{"sealed_by":"STATE_KEY"}'
        half = len(content) // 2
        tokens = [seal.encrypt(b"0/2 " + content[:half]).decode(), seal.encrypt(b"1/2 " + content[half:]).decode()]
        records = files.read(name).records
        files.write(name, orjson.dumps({"sealed": tokens}))
        for record in records:
            files.append(name, record)
        files.close()
    for keys in (None, OTHER, KEY):  # with a key of the owner's nothing is: such a document does not tell its place
        with pytest.raises(WrongKeyError):
            check_stores(folder, None, keys)
    (folder / KEY_FILE).write_text(OTHER)
    with pytest.raises(WrongKeyError):
        check_stores(folder, None, None)
    (folder / KEY_FILE).write_text(KEY)
    check_stores(folder, None, None)
    (folder / KEY_FILE).unlink()
    assert [row.id for row in rows(folder, MESSAGE, KEY)] == [m.message_id for m in (FIRST, SECOND, THIRD)]
    assert not on_disk(folder, "word 1")


def test_where_it_cannot_be_written_it_stays_for_the_next_start(folder: Path) -> None:
    (folder / "parley.db").mkdir()
    (folder / "aside").write_text("in the way")
    with pytest.raises(StoreError, match=r"parley\.db could not be read"):
        rows(folder, MESSAGE)
    (folder / "parley.db").rmdir()
    (folder / "aside").unlink()
    assert len(rows(folder, MESSAGE)) == 3


def test_what_a_link_leads_to_is_not_deleted_with_what_was_taken_over(folder: Path, tmp_path: Path) -> None:
    own, elsewhere = folder / "sessions" / ".store", tmp_path / "elsewhere"
    own.rename(elsewhere)
    own.symlink_to(elsewhere)
    (elsewhere / "theirs").touch()
    check_stores(folder, None, None)
    assert (elsewhere / "theirs").exists()
    assert not (folder / "channels").exists()


# In Redis


@pytest.fixture
def there(redis_url: str) -> Iterator[redis.Redis]:
    """As an earlier version left it."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        layers = b'{"version":1,"layers":{"prompts":1,"miniapps":{"a":1}}}'
        leave(client, "channels", str(CHANNEL), layers, b' {"prompts":null}', b"=" + b64encode(b'{"unfinished":\n[2]}'))
        leave(client, "process", "process", None, b' {"opted_out":[7]}')
        session = {"messages": [to_message(FIRST).to_dict()], "metadata": {"channel_id": CHANNEL, "guild_id": 70}}
        record = b" " + orjson.dumps({"message": to_message(SECOND).to_dict()})
        leave(client, "sessions", str(CHANNEL), orjson.dumps(session), record)
        client.set(f"parley:sessions::damaged:{CHANNEL}", b"a secret")
        yield client
        client.flushdb()


def leave(client: redis.Redis, kind: str, name: str, content: bytes | None, *records: bytes) -> None:
    if content is not None:
        client.set(f"parley:{kind}::document:{name}", content)
    if records:
        client.rpush(f"parley:{kind}::records:{name}", *records)
    client.zadd(f"parley:{kind}::names", {name: 1.0})


def in_redis(url: str, kind: str, keys: str | None = None) -> list[Row]:
    return rows(Path("nowhere"), kind, keys, url=url)


def earlier_keys(client: redis.Redis) -> list[bytes]:
    return [key for key in client.scan_iter() if not key.startswith((b"parley:rows:", b"parley:state."))]


def test_all_of_it_is_taken_over_in_redis_too(redis_url: str, there: redis.Redis) -> None:
    with capture_logs() as logs:
        assert [row.id for row in in_redis(redis_url, MESSAGE)] == [FIRST.message_id, SECOND.message_id]
        assert in_redis(redis_url, "opted_out") == [Row(0, 0, b"[7]")]
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("state_key_made", "info"),
        ("earlier_state_taken_over", "info"),
    ]
    assert {kind: in_redis(redis_url, kind) for kind in SNAPSHOTS} == SNAPSHOTS
    assert not earlier_keys(there)


def test_what_is_damaged_in_redis_is_set_aside_until_something_has_to_go(redis_url: str, there: redis.Redis) -> None:
    leave(there, "channels", str(CHANNEL), b'{"version": 99, "a": "secret"}')
    leave(there, "sessions", f"{CHANNEL + 1}", b'{"sealed": 5}')
    with capture_logs() as logs:
        assert len(in_redis(redis_url, MESSAGE)) == 2
    damaged = [entry for entry in logs if entry["event"] == "earlier_document_damaged"]
    assert sorted(entry["kind"] for entry in damaged) == ["channels", "sessions"]
    assert {entry["log_level"] for entry in damaged} == {"warning"}
    assert not earlier_keys(there)
    (aside,) = {entry["set_aside"] for entry in damaged}
    assert "secret" in str(there.zrange(aside, 0, -1))
    store = open_stores(Path("nowhere"), redis_url, None)()
    store.drop_aside(1.0)
    assert there.zcard(aside) == 2
    store.drop_aside(float("inf"))
    assert not there.exists(aside)
    store.close()


def test_what_was_sealed_in_redis_is_taken_over_with_its_key_alone(redis_url: str, there: redis.Redis) -> None:
    seal = Fernet(KEY)
    leave(there, "seal", "seal", orjson.dumps({"sealed": [seal.encrypt(b'0/1 {"sealed_by":"STATE_KEY"}').decode()]}))
    leave(there, "process", "process", None, b"*" + seal.encrypt(b'{"opted_out":[8]}'))
    for keys in (None, OTHER, KEY):
        with pytest.raises(WrongKeyError):
            check_stores(Path("nowhere"), redis_url, keys)
    there.set(STATE_KEY, KEY)
    check_stores(Path("nowhere"), redis_url, None)
    assert in_redis(redis_url, "opted_out", KEY) == [Row(0, 0, b"[8]")]
    assert not earlier_keys(there)


def test_what_cannot_be_taken_over_from_redis_is_told_and_stays(
    redis_url: str, there: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreError("no room")

    before = sorted(earlier_keys(there))
    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr("storage.redis_store.RedisStore.write", full)
        assert in_redis(redis_url, MESSAGE) == []
    entry = logs[-1]
    assert (entry["event"], entry["log_level"], entry["error"]) == ("state_not_sealed", "warning", "no room")
    assert "start again" in entry["remedy"]
    assert sorted(earlier_keys(there)) == before
    assert len(in_redis(redis_url, MESSAGE)) == 2
