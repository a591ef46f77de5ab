"""memory/documents.py: layers are stored as they change, together or not at all, and what is to be gone is."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest
from structlog.testing import capture_logs

from memory import documents
from memory.documents import MAX_JOURNAL_BYTES, Documents, Encode, Layers, Take
from memory.writer import Writer
from state.store import FolderStore, StoreError
from tests.support.lives import on_disk

NAME = "123"


class Disk(FolderStore):
    """A folder that can be made to fail."""

    fails = False

    def append(self, name: str, record: bytes) -> None:
        if self.fails:
            raise StoreError("no room")
        super().append(name, record)


class Room:
    """Two layers as they stand, and the documents they are stored in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.layers: Layers = {}
        self.disk = Disk(folder)
        self.writer = Writer()
        self.documents = Documents(self.disk, self.writer, {"a": self._take("a"), "b": self._take("b")})

    def _take(self, layer: str) -> Take:
        def take(_name: str) -> Encode | None:
            value = self.layers.get(layer)
            return None if value is None else lambda: orjson.dumps(value)

        return take

    async def settled(self) -> None:
        self.documents.flush()
        await self.writer.settled()

    async def changed(self, **layers: object) -> None:
        self.layers |= layers
        for layer in layers:
            self.documents.touch(NAME, layer)
        await self.settled()

    def next(self) -> Room:
        """What another process finds."""
        return Room(self.folder)

    def stored(self) -> dict[str, Layers]:
        return self.next().documents.load()


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path / "documents")


async def test_what_changed_is_there_for_the_next_process(room: Room) -> None:
    await room.changed(a=1, b={"x": [1]})
    await room.changed(a=2)
    assert room.stored() == {NAME: {"a": 2, "b": {"x": [1]}}}
    assert room.documents.names == {NAME}


async def test_what_changes_in_one_step_is_one_record(room: Room) -> None:
    room.layers = {"a": 1, "b": 1}
    room.documents.mark(NAME, "a")
    room.documents.touch(NAME, "b")
    await room.settled()
    assert [orjson.loads(record) for record in room.disk.read(NAME).records] == [{"a": 1, "b": 1}]


async def test_it_stores_by_itself_and_not_only_when_it_is_told_to(room: Room) -> None:
    room.layers = {"a": 1}
    room.documents.touch(NAME, "a")
    await room.writer.settled()  # two steps of the loop later
    await room.writer.settled()
    assert room.stored() == {NAME: {"a": 1}}


async def test_what_was_only_marked_waits_for_what_is_touched(room: Room) -> None:
    room.layers = {"a": 1}
    room.documents.mark(NAME, "a")
    await room.writer.settled()
    await room.writer.settled()
    assert room.stored() == {}


async def test_a_layer_that_ended_leaves_no_words(room: Room) -> None:
    await room.changed(a="a secret", b=1)
    await room.changed(a=None)
    assert room.stored() == {NAME: {"b": 1}}
    room.documents.purge_ended()
    await room.settled()
    assert room.stored() == {NAME: {"b": 1}}
    assert not on_disk(room.folder, "a secret")


async def test_a_document_without_layers_is_deleted(room: Room) -> None:
    await room.changed(a="a secret")
    await room.changed(a=None)
    room.documents.purge_ended()
    await room.settled()
    assert room.stored() == {}
    assert not room.documents.names
    assert not on_disk(room.folder, "a secret")


async def test_what_is_purged_is_in_no_journal_and_no_backup(room: Room) -> None:
    for secret in ("a secret", "another secret", "none"):
        await room.changed(a=secret)
    assert on_disk(room.folder, "secret")
    room.documents.purge(NAME)
    await room.settled()
    assert not on_disk(room.folder, "secret")
    assert room.stored() == {NAME: {"a": "none"}}


async def test_a_long_journal_becomes_a_document(room: Room) -> None:
    await room.changed(a="x" * MAX_JOURNAL_BYTES)
    assert room.disk.read(NAME).content is None
    await room.changed(b=1)
    assert room.disk.read(NAME).records == ()
    assert room.stored()[NAME]["b"] == 1


async def test_what_could_not_be_appended_is_written_as_soon_as_that_works(room: Room) -> None:
    await room.changed(a=1)
    room.disk.fails = True
    with capture_logs() as logs:
        await room.changed(a=2, b=2)
    assert [entry["event"] for entry in logs] == ["store_failed"]
    room.disk.fails = False
    await room.changed(b=3)
    assert room.stored() == {NAME: {"a": 2, "b": 3}}


async def test_what_was_changed_behind_the_record_that_failed_is_not_taken_without_it(room: Room) -> None:
    room.disk.fails = True
    with capture_logs():
        await room.changed(a=1)
    room.disk.fails = False
    await room.changed(b=1)
    assert room.stored() == {NAME: {"a": 1, "b": 1}}


@pytest.mark.parametrize(
    "content", [{"version": 2, "layers": {"a": 1}}, {"version": 1}, {"version": 1, "layers": [1]}, {"a": 1}, {}]
)
async def test_what_is_no_document_is_refused_and_the_others_are_read(room: Room, content: object) -> None:
    await room.changed(a=1)
    room.disk.write("456", json.dumps(content).encode())
    room.disk.append("456", b'{"b": 1}')
    with capture_logs() as logs:
        assert room.stored() == {NAME: {"a": 1}}
    assert [(entry["event"], entry["document"]) for entry in logs] == [("document_refused", "456")]


@pytest.mark.parametrize("record", [b"[1]", b"nonsense", b"1", b""])
async def test_a_record_that_is_none_refuses_the_document(room: Room, record: bytes) -> None:
    await room.changed(a=1)
    room.disk.append(NAME, record)
    with capture_logs() as logs:
        assert room.stored() == {}
    assert [entry["event"] for entry in logs] == ["document_refused"]


async def test_nothing_is_appended_behind_what_was_refused(room: Room) -> None:
    room.disk.write(NAME, b'{"version": 2, "layers": {"a": 1}}')
    later = room.next()
    with capture_logs():
        assert later.documents.load() == {}
    await later.changed(b=2)
    assert later.stored() == {NAME: {"b": 2}}


async def test_what_is_damaged_is_logged_and_written_anew(room: Room) -> None:
    await room.changed(a="x" * MAX_JOURNAL_BYTES)
    await room.changed(a=1, b=1)
    (room.folder / f"{NAME}.json").write_bytes(b"")
    later = room.next()
    later.layers = {"a": 1, "b": 1}
    with capture_logs() as logs:
        later.documents.load()
    assert [entry["event"] for entry in logs] == ["document_damaged"]
    await later.changed(b=2)
    assert later.stored() == {NAME: {"a": 1, "b": 2}}


async def test_what_ended_goes_by_itself_after_a_moment(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "ENDED_SECONDS", 0.0)
    await room.changed(a="a secret", b=1)
    await room.changed(a=None)
    for _ in range(2):
        await room.settled()
    assert not on_disk(room.folder, "a secret")
