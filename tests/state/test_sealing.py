"""With a key, nothing is stored in plain words; with another, nothing is touched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from state import SessionManager
from state.redis_store import RedisStore
from state.sealing import CHUNK, opened, sealed
from state.store import FolderStore, Stored, WrongKeyError, check_seal, read_keys
from tests.state.conftest import KEY

OTHER = "pZ3xq0c9vJm1h7sV2bYt8RkLw5nEaGfUoIdTyQ4CuXs="


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_no_word_is_on_the_disk(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, seal=read_keys(KEY))
    for _ in range(2):
        store.write("123", b'{"said":"sesame"}')
        store.append("123", b"sesame")
    assert FolderStore(tmp_path, seal=read_keys(KEY)).read("123") == Stored(b'{"said":"sesame"}', (b"sesame",))
    assert not [path for path, data in contents(tmp_path).items() if b"sesame" in data]
    assert "sealed" in json.loads((tmp_path / "123.json").read_text())


def test_nothing_is_in_plain_words_in_redis(redis_url: str) -> None:
    store = RedisStore(redis_url, "sealed", seal=read_keys(KEY))
    store.write("123", b'{"said":"sesame"}')
    store.append("123", b"sesame")
    plain = RedisStore(redis_url, "sealed")
    with pytest.raises(WrongKeyError):
        plain.read("123")
    for key in plain._redis.keys("sealed:*"):
        assert b"sesame" not in (plain._redis.dump(key) or b"")
    store.close()
    plain.close()


@pytest.mark.parametrize("size", [0, 1, CHUNK - 9, CHUNK, CHUNK + 1, 5 * CHUNK])
def test_documents_of_any_size_are_sealed_in_parts(size: int) -> None:
    content = b'{"a":"' + b"x" * size + b'"}'
    assert opened(sealed(content, read_keys(KEY)), read_keys(KEY)) == content


@pytest.mark.parametrize("change", [lambda parts: parts[:-1], lambda parts: parts[::-1], lambda parts: parts * 2])
def test_parts_that_were_left_out_or_moved_are_damage(tmp_path: Path, change: object) -> None:
    seal = read_keys(KEY)
    content = b'{"a":"' + b"x" * (3 * CHUNK) + b'"}'
    parts = json.loads(sealed(content, seal))["sealed"]
    assert callable(change)
    (tmp_path / "123.json").write_text(json.dumps({"sealed": change(parts)}, separators=(",", ":")))
    found = FolderStore(tmp_path, seal=seal).read("123")
    assert found.content is None
    assert "is damaged" in found.notice


def test_a_sealed_document_that_is_damaged_comes_from_its_backup(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, seal=read_keys(KEY))
    store.write("123", b'{"n":1}')
    store.append("123", b"x")
    store.write("123", b'{"n":2}')
    data = bytearray((tmp_path / "123.json").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "123.json").write_bytes(data)
    found = store.read("123")
    assert (found.content, found.records) == (b'{"n":1}', (b"x",))
    store.close()


@pytest.mark.parametrize("keys", [None, OTHER])
def test_another_key_or_none_is_refused_and_touches_nothing(tmp_path: Path, keys: str | None) -> None:
    with_key = FolderStore(tmp_path, seal=read_keys(KEY))
    check_seal(with_key, read_keys(KEY))
    with_key.close()
    before = contents(tmp_path)
    seal = read_keys(keys) if keys else None
    with pytest.raises(WrongKeyError, match="STATE_KEY") as refused:
        check_seal(FolderStore(tmp_path, seal=seal), seal)
    assert "\n" not in str(refused.value)
    assert contents(tmp_path) == before


def test_the_check_passes_for_the_same_key_and_for_one_more(tmp_path: Path) -> None:
    for keys in (KEY, KEY, f"{OTHER},{KEY}", OTHER):
        store = FolderStore(tmp_path, seal=read_keys(keys))
        check_seal(store, read_keys(keys))
        store.close()
    with pytest.raises(WrongKeyError):
        check_seal(FolderStore(tmp_path, seal=read_keys(KEY)), read_keys(KEY))


def test_without_a_key_nothing_is_noted_and_one_may_come_later(tmp_path: Path) -> None:
    check_seal(FolderStore(tmp_path), None)
    assert contents(tmp_path) == {}
    store = FolderStore(tmp_path, seal=read_keys(KEY))
    check_seal(store, read_keys(KEY))
    store.close()
    with pytest.raises(WrongKeyError):
        check_seal(FolderStore(tmp_path), None)


def test_a_wrong_key_is_no_damage_for_a_session(tmp_path: Path) -> None:
    manager = SessionManager(store=FolderStore(tmp_path, seal=read_keys(KEY)))
    manager.create_session("123")
    manager.close()
    before = contents(tmp_path)
    other = SessionManager(store=FolderStore(tmp_path, seal=read_keys(OTHER)))
    with pytest.raises(WrongKeyError):
        other.load_session("123")
    with pytest.raises(WrongKeyError):
        other.list_sessions()
    other.close()
    assert contents(tmp_path) == before


def test_what_was_plain_is_read_with_a_new_key_and_sealed_as_it_is_written(tmp_path: Path) -> None:
    plain = FolderStore(tmp_path)
    plain.write("123", b'{"said":"sesame"}')
    plain.append("123", b"sesame")
    plain.close()
    store = FolderStore(tmp_path, seal=read_keys(KEY))
    store.append("123", b"secret")
    assert store.read("123") == Stored(b'{"said":"sesame"}', (b"sesame", b"secret"))
    assert not any(b"secret" in data for data in contents(tmp_path).values())
    store.write("123", b'{"said":"sesame, secret"}', purge=True)
    assert not any(b"sesame" in data for data in contents(tmp_path).values())
    store.close()


def test_keys_rotate_with_the_new_one_first(tmp_path: Path) -> None:
    old = FolderStore(tmp_path, seal=read_keys(KEY))
    old.write("123", b'{"n":1}')
    old.append("123", b"x")
    old.close()
    both = FolderStore(tmp_path, seal=read_keys(f"{OTHER}, {KEY}"))
    assert both.read("123") == Stored(b'{"n":1}', (b"x",))
    both.write("123", b'{"n":2}', purge=True)
    assert FolderStore(tmp_path, seal=read_keys(OTHER)).read("123") == Stored(b'{"n":2}')


@pytest.mark.parametrize("text", ["", "key", f"{KEY},", f"{KEY};{OTHER}", KEY[:-4], "é" * 44])
def test_what_is_no_key_is_refused_with_how_to_make_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"STATE_KEY must be .* made by .venv/bin/python -c .*generate_key") as refused:
        read_keys(text)
    assert KEY[:10] not in str(refused.value)


def test_without_a_key_and_without_redis_neither_library_is_loaded() -> None:
    program = "import sys, state; sys.exit(bool({'cryptography', 'redis'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2], timeout=60)
