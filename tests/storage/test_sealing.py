"""With a key, nothing is stored in plain words; with another, nothing is read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from storage.redis_store import RedisStore
from storage.sealing import PART, Seal, pack, read_keys, unpack
from storage.sqlite_store import SQLiteStore
from storage.state_key import KEY_FILE, KeyFile
from storage.store import Key, Row, StoreError, WrongKeyError
from tests.storage.conftest import KEY, OpenStore

OTHER = "pZ3xq0c9vJm1h7sV2bYt8RkLw5nEaGfUoIdTyQ4CuXs="
PLACE = Key("said", 5, 7)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_nothing_is_in_plain_words_in_redis(redis_url: str) -> None:
    store = RedisStore(redis_url, "sealed", seal=read_keys(KEY))
    store.write({PLACE: b"sesame"})
    plain = RedisStore(redis_url, "sealed")
    with pytest.raises(WrongKeyError):
        plain.read("said", 5)
    for key in plain.redis.keys("sealed:*"):
        assert b"sesame" not in (plain.redis.dump(key) or b"")
    store.close()
    plain.close()


def test_in_redis_a_name_that_is_none_of_ours_makes_no_row(redis_url: str) -> None:
    store = RedisStore(redis_url, "names", seal=read_keys(KEY))
    store.write({PLACE: b"sesame"})
    (stored,) = store.redis.hvals(name := f"names:{PLACE.kind}:{PLACE.channel}")
    for number in (b"%03d" % PLACE.id, b"+%d" % PLACE.id, b" %d" % PLACE.id, b"1_0", b"x", b"", "٣".encode()):
        store.redis.hset(name, number, stored)  # the same row under other names, which are the same number
    too_large = {b"%d" % 2**63: 1, b"-%d" % 2**63: 1, b"9" * 5_000: 1}  # the log cannot have them as numbers, either
    store.redis.zadd(f"names:{PLACE.kind}", {b"%03d" % PLACE.channel: 1, b"x": 1, b"7\n": 1, **too_large})
    store.redis.zadd(b"names:\xff", {b"1": 1})
    assert store.channels(PLACE.kind) == [PLACE.channel]
    assert PLACE.kind in store.kinds()
    assert store.read(PLACE.kind) == [Row(PLACE.channel, PLACE.id, b"sesame")]
    store.close()


def fitting() -> Seal:
    """A key that is known to be that of what is stored."""
    seal = read_keys(KEY)
    seal.fits = True
    return seal


@pytest.mark.parametrize("seal", [None, fitting()], ids=["plain", "sealed"])
@pytest.mark.parametrize("size", [0, 1, PART, 5 * PART])
def test_values_of_any_size_come_back_from_their_place_alone(size: int, seal: Seal | None) -> None:
    value = b"x" * size
    stored = pack({PLACE: value}, seal)[PLACE]
    assert stored
    assert unpack(PLACE, stored, seal) == value
    assert len(stored) <= size + 30  # what is sealed takes no more room than its mark
    for place in (PLACE._replace(channel=6), PLACE._replace(id=8), PLACE._replace(kind="else")):
        with pytest.raises(ValueError, match="elsewhere"):
            unpack(place, stored, seal)


def test_what_is_sealed_together_has_a_nonce_each_and_is_opened_in_its_own_place_alone() -> None:
    rows: dict[Key, bytes | None] = {PLACE._replace(id=number): b"sesame" for number in range(1, 300)}
    stored = pack(rows | {PLACE._replace(id=300): None}, fitting())
    assert stored.pop(PLACE._replace(id=300)) is None
    assert len({sealed[1:13] for sealed in stored.values() if sealed}) == len(rows)
    for key, sealed in stored.items():
        assert sealed
        assert unpack(key, sealed, fitting()) == b"sesame"
        with pytest.raises(ValueError, match="elsewhere"):
            unpack(key._replace(id=key.id + 1), sealed, fitting())


# As versions before sealed


def sealed_before(key: Key, value: bytes) -> bytes:
    """In parts, each with its place, by Fernet."""
    place, encrypt = " ".join(map(str, key)), Fernet(KEY).encrypt
    parts = [(start, value[start : start + PART]) for start in range(0, len(value), PART)]
    return b"*" + b",".join(encrypt(f"{place} {start} {len(value)}\n".encode() + part) for start, part in parts)


@pytest.mark.parametrize("size", [1, PART - 1, PART, PART + 1, 5 * PART])
def test_what_a_version_before_sealed_is_read_from_its_place_alone(size: int) -> None:
    value, seal = b"x" * size, fitting()
    stored = sealed_before(PLACE, value)
    assert unpack(PLACE, stored, seal) == value
    with pytest.raises(ValueError, match="elsewhere"):
        unpack(PLACE._replace(channel=6), stored, seal)


def test_a_row_of_before_is_read_and_sealed_anew_when_it_is_written_next(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if "sealed" not in request.node.callspec.params["open_store"]:
        pytest.skip("nothing was sealed there")
    store = open_store()
    with monkeypatch.context() as patch:
        for module in ("sqlite_store", "redis_store"):
            patch.setattr(
                f"storage.{module}.pack", lambda rows, _: {key: sealed_before(key, rows[key]) for key in rows}
            )
        store.write({PLACE: b"sesame", PLACE._replace(id=8): b"and more" * PART})
    assert [row.value for row in open_store().read("said")] == [b"sesame", b"and more" * PART]
    for value in (b"open", b"x" * 200):
        store.write({PLACE: value})
        assert [row.value for row in open_store().read("said")] == [value, b"and more" * PART]


@pytest.mark.parametrize("change", [lambda parts: parts[:-1], lambda parts: parts[::-1], lambda parts: parts * 2])
def test_parts_that_were_left_out_or_moved_are_damage(change: object) -> None:
    parts = sealed_before(PLACE, b"x" * (3 * PART))[1:].split(b",")
    assert callable(change)
    with pytest.raises(ValueError, match="parts of it are missing"):
        unpack(PLACE, b"*" + b",".join(change(parts)), fitting())


@pytest.mark.parametrize("keys", [None, OTHER])
def test_another_key_or_none_is_refused_in_one_sentence(tmp_path: Path, keys: str | None) -> None:
    store = SQLiteStore(tmp_path / "db", seal=read_keys(KEY))
    store.write({PLACE: b"sesame"})
    store.close()
    other = SQLiteStore(tmp_path / "db", seal=read_keys(keys) if keys else None)
    with pytest.raises(WrongKeyError, match="STATE_KEY") as refused:
        other.read("said")
    assert "\n" not in str(refused.value)
    other.close()


def test_keys_rotate_with_the_new_one_first(tmp_path: Path) -> None:
    for keys in (KEY, f"{OTHER}, {KEY}", OTHER):
        store = SQLiteStore(tmp_path / "db", seal=read_keys(keys))
        store.write({PLACE: b"sesame" if keys == KEY else store.read("said")[0].value})
        assert store.read("said", 5) == [Row(5, 7, b"sesame")]
        store.sync()
        assert not any(b"sesame" in data for data in contents(tmp_path).values())
        store.close()


def test_what_is_no_key_is_refused_with_how_to_make_one() -> None:
    told = r"STATE_KEY must be .* made by .venv/bin/python -c .*generate_key"
    for text in ("", "key", f"{KEY},", f"{KEY};{OTHER}", KEY[:-4], "é" * 44):
        with pytest.raises(ValueError, match=told) as refused:
            read_keys(text)
        assert KEY[:10] not in str(refused.value)


@pytest.mark.slow
def test_before_anything_is_stored_and_without_redis_neither_library_is_loaded() -> None:
    program = "import sys, persistence.open_store; sys.exit(bool({'cryptography', 'redis'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2], timeout=60)


def test_a_pipe_in_place_of_the_key_is_said_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / KEY_FILE)
    with pytest.raises(StoreError, match="it is no file"):
        KeyFile(tmp_path).read()
