"""What every store of documents does, in a folder and in Redis alike."""

from __future__ import annotations

import json
import os
import random
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from state.redis_store import RedisStore
from state.store import FolderStore, Stored, StoreError
from tests.state.conftest import OpenStore

NAMES = (
    "123",
    "../../etc/passwd",
    "..",
    ".",
    ".hidden",
    "a/b\\c",
    "nul\0byte",
    "x" * 300,
    "é" * 300,
    "🦊 fox",
    "%2E%2E",
    "CON",
    "a.json",
    "half \ud800 pair",
    "-dash",
    " ",
    "a=b",
    "line\nfeed",
)


def test_what_was_never_written_is_not_there(open_store: OpenStore) -> None:
    store = open_store()
    assert store.read("123") == Stored(None)
    assert (store.peek("123", 100), store.latest("123"), store.names()) == (b"", None, [])
    assert not store.delete("123")


@pytest.mark.parametrize("content", [b"{}", b'{"a":1}', b'{ "a": [1, 2] }', b'{"a":"' + b"x" * 100_000 + b'"}'])
def test_a_document_is_read_as_it_was_written_also_by_the_next_process(open_store: OpenStore, content: bytes) -> None:
    open_store().write("123", content)
    found = open_store().read("123")
    assert json.loads(found.content or b"") == json.loads(content)
    assert (found.records, found.notice) == ((), "")


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:20])
def test_any_name_will_do_and_is_listed_as_it_is(open_store: OpenStore, name: str, tmp_path: Path) -> None:
    store = open_store()
    store.write(name, b'{"a":1}')
    store.append(name, b"more")
    assert open_store().read(name) == Stored(b'{"a":1}', (b"more",))
    assert open_store().names() == [name]
    assert not [path for path in tmp_path.iterdir() if path.name != "docs"]
    assert store.delete(name)
    assert open_store().names() == []


def test_names_that_differ_are_different_documents(open_store: OpenStore) -> None:
    store = open_store()
    for name in (*NAMES, "x" * 299 + "y", "/", "%2F"):
        store.write(name, json.dumps({"name": name}).encode())
    for name in (*NAMES, "x" * 299 + "y", "/", "%2F"):
        assert json.loads(store.read(name).content or b"") == {"name": name}


@pytest.mark.parametrize("do", ["read", "write", "append", "delete", "peek", "latest", "reject"])
def test_the_empty_name_is_refused(open_store: OpenStore, do: str) -> None:
    more = {"write": (b"{}",), "append": (b"x",), "peek": (1,)}.get(do, ())
    with pytest.raises(ValueError, match="must not be empty"):
        getattr(open_store(), do)("", *more)


@pytest.mark.parametrize("content", [b"", b"[]", b"x", b"{"])
def test_what_is_no_object_is_refused_and_changes_nothing(open_store: OpenStore, content: bytes) -> None:
    store = open_store()
    store.write("123", b'{"a":1}')
    with pytest.raises(ValueError, match="must be a JSON object"):
        store.write("123", content)
    assert store.read("123").content == b'{"a":1}'


def test_records_come_back_in_order_and_any_bytes_will_do(open_store: OpenStore) -> None:
    choice = random.Random(5)
    records = [b"", b"\n", b"\0", b"a\nb", b" x ", b"=", b"*", b"gAAAAA", *map(choice.randbytes, range(60))]
    store = open_store()
    store.append("123", b"before there is a document")
    store.write("123", b'{"a":1}')
    for record in records:
        store.append("123", record)
    store.flush()
    assert store.read("123") == Stored(b'{"a":1}', tuple(records))
    again = open_store()
    again.append("123", b"later")
    assert again.read("123").records == (*records, b"later")
    assert again.latest("123") == b"later"


def test_a_record_may_come_before_the_document(open_store: OpenStore) -> None:
    open_store().append("123", b"first")
    store = open_store()
    assert store.read("123") == Stored(None, (b"first",))
    assert store.names() == ["123"]
    store.append("123", b"second")
    assert store.read("123").records == (b"first", b"second")
    assert store.delete("123")
    assert store.read("123") == Stored(None)


def test_a_document_contains_the_records_that_were_there_before_it(open_store: OpenStore) -> None:
    store = open_store()
    for number in range(5):
        store.append("123", b"old")
        store.write("123", b'{"n":%d}' % number)
        assert store.read("123") == Stored(b'{"n":%d}' % number)
        assert store.latest("123") is None
    store.append("123", b"new")
    assert open_store().read("123") == Stored(b'{"n":4}', (b"new",))


def test_after_a_purge_or_a_delete_nothing_is_left_of_the_words(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    for round_ in range(3):
        store.write("123", b'{"said":"sesame"}')
        store.append("123", b"sesame")
        store.write("123", b'{"said":"sesame again"}')
        store.append("123", b"sesame")
        if round_ == 0:
            store.reject("123")
            store.write("123", b'{"said":"sesame once more"}')
        store.write("123", b'{"said":"nothing"}', purge=True)
        assert store.read("123") == Stored(b'{"said":"nothing"}')
        assert not _mention(tmp_path, b"sesame")
        assert len(_mention(tmp_path, b"nothing")) <= 1
    assert store.delete("123")
    assert not store.delete("123")
    assert open_store().read("123") == Stored(None)
    assert not _mention(tmp_path, b"nothing")


def test_what_is_rejected_is_no_longer_read_and_not_lost_at_once(open_store: OpenStore) -> None:
    store = open_store()
    store.reject("123")
    store.write("123", b'{"a":1}')
    store.append("123", b"more")
    store.reject("123")
    assert store.read("123") == Stored(None, (b"more",))
    store.write("123", b'{"a":2}')
    assert open_store().read("123") == Stored(b'{"a":2}')


def test_the_names_come_in_the_order_of_their_last_change(open_store: OpenStore) -> None:
    store = open_store()
    for name in "abcdef":
        store.write(name, b"{}")
    store.append("b", b"x")
    store.write("d", b"{}")
    store.append("b", b"x")
    store.append("new", b"x")
    store.delete("e")
    for each in (store, open_store()):
        assert each.names() == ["new", "b", "d", "f", "c", "a"]
        assert each.names(2) == ["new", "b"]
        assert each.names(2, 1) == ["b", "d"]
        assert each.names(offset=4) == ["c", "a"]
        assert each.names(10, 6) == each.names(0) == []


def test_the_first_bytes_are_had_without_the_rest(open_store: OpenStore) -> None:
    store = open_store()
    store.write("123", b'{"id":"123","more":"' + b"x" * 100_000 + b'"}')
    assert store.peek("123", 11) == b'{"id":"123"'
    assert len(store.peek("123", 200_000)) == 100_022
    store.write("123", b"{}")
    assert store.peek("123", 100) == b"{}"


def test_many_documents_can_be_appended_to_at_once(open_store: OpenStore) -> None:
    store = open_store()
    for number in range(140):
        store.append(str(number % 70), b"%d" % number)
    store.flush()
    assert all(store.read(str(n)).records == (b"%d" % n, b"%d" % (n + 70)) for n in range(70))


def test_a_closed_store_can_be_opened_again(open_store: OpenStore) -> None:
    store = open_store()
    store.write("a", b"{}")
    store.append("a", b"x")
    store.close()
    store.append("a", b"y")
    assert open_store().read("a").records == (b"x", b"y")


def test_the_files_are_the_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "docs"
    with _umask(0):
        store = FolderStore(folder)
        store.write("1" * 300, b"{}")
        store.append("1" * 300, b"x")
        store.write("1" * 300, b"{}")
        store.append("1" * 300, b"x")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    assert len(modes) >= 10
    assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items()), modes
    store.close()


def test_a_document_is_a_json_file_that_others_can_read(tmp_path: Path) -> None:
    FolderStore(tmp_path).write("1/2", b'{"a":{"b":[1]}}')
    read = json.loads((tmp_path / "1%2F2.json").read_text())
    assert read["a"] == {"b": [1]}


def test_a_file_that_somebody_put_there_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "123.json").write_text('{"a": 1}')
    store = FolderStore(tmp_path)
    assert store.names() == ["123"]
    assert store.read("123") == Stored(b'{"a": 1}')
    store.append("123", b"x")
    assert FolderStore(tmp_path).read("123") == Stored(b'{"a": 1}', (b"x",))
    store.write("123", b'{"a":2}')
    assert FolderStore(tmp_path).read("123") == Stored(b'{"a":2}')
    store.close()


def test_files_of_others_are_left_alone_and_not_listed(tmp_path: Path) -> None:
    foreign = ["notes.txt", "my file.json", ".json", ".x.json", "%zz.json", "%FF.json", "a=b.json", "a.json.damaged-x"]
    for name in foreign:
        (tmp_path / name).write_text("mine")
    store = FolderStore(tmp_path)
    store.write("123", b"{}")
    store.write("123", b"{}", purge=True)
    assert store.names() == ["123"]
    store.delete("123")
    assert all((tmp_path / name).read_text() == "mine" for name in foreign)


def test_the_order_is_found_again_where_the_list_of_it_is_lost(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    for name in ("a", "b", "c" * 300):
        store.write(name, b"{}")
    store.append("only a record", b"x")
    store.close()
    (tmp_path / ".store" / "order").unlink()
    assert sorted(FolderStore(tmp_path).names()) == ["a", "b", "c" * 300, "only a record"]


def test_the_list_of_the_order_does_not_grow_for_ever(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    for number in range(9_000):
        store.append("ab"[number % 2], b"x")
    assert (tmp_path / ".store" / "order").stat().st_size < 10_000
    assert store.names() == ["b", "a"]
    store.close()


def test_reading_touches_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "docs")
    assert store.read("123") == Stored(None)
    assert store.names() == []
    store.flush()
    store.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "unix:///nowhere/socket"])
def test_a_redis_that_is_not_there_is_said_in_one_sentence(url: str) -> None:
    store = RedisStore(url, "test")
    for work in (
        lambda: store.read("a"),
        lambda: store.write("a", b"{}"),
        lambda: store.append("a", b""),
        lambda: store.delete("a"),
        store.names,
    ):
        with pytest.raises(StoreError, match=r"could not be .* in Redis") as refused:
            work()
        assert "\n" not in str(refused.value)
    store.close()


def test_an_address_that_is_none_of_a_redis_is_refused() -> None:
    with pytest.raises(ValueError, match="redis://"):
        RedisStore("http://nowhere", "test")


def _mention(folder: Path, word: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word in path.read_bytes()]


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
