"""Documents made of layers: each layer a JSON value of its own, stored as it changes.

What changed is appended to the document's journal, as one record for all that changed in one step of the event loop:
it is stored together or not at all. Now and then, and whenever something has to be gone, the whole is written anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import orjson
import structlog

from memory.writer import Writer
from state.store import Store

log = structlog.get_logger()

VERSION = 1
MAX_JOURNAL_BYTES = 500_000
ENDED_SECONDS = 1.0

Encode = Callable[[], bytes]
"""Gives a layer as JSON; called in the writer's thread, so what it holds must not change."""
Take = Callable[[str], Encode | None]
"""(name of a document) -> its layer as it stands now, None where there is nothing."""
Taken = Mapping[str, Encode | None]
Layers = dict[str, Any]


class Documents:
    """layers: how each is taken; by these names they stand in the documents. The writer's thread alone uses the store.

    names: the documents that there are, or may be.
    """

    def __init__(self, store: Store, writer: Writer, layers: Mapping[str, Take]) -> None:
        self._store = store
        self._writer = writer
        self._layers = layers
        self._changed: dict[str, set[str]] = {}
        self._marked: dict[str, set[str]] = {}
        self._purged: set[str] = set()
        self._ended: set[str] = set()
        self._is_due = False
        self.names: set[str] = set()
        # What follows is the thread's: how long the journals are, and which documents have to be written as a whole.
        self._journals: dict[str, int] = {}
        self._overdue: set[str] = set()
        self.failed: set[str] = set()  # what is stored of these is not what it should be

    def mark(self, name: str, layer: str) -> None:
        """The layer changed; it is stored together with whatever is touched next in its document."""
        self.names.add(name)
        self._marked.setdefault(name, set()).add(layer)

    def touch(self, name: str, layer: str) -> None:
        """The layer changed, and is to be stored."""
        self.mark(name, layer)
        self._changed.setdefault(name, set()).update(self._marked.pop(name))
        self._schedule()

    def purge(self, name: str) -> None:
        """Something in the document is to be gone: it is written anew, and nothing older stays."""
        self._purged.add(name)
        self._changed.setdefault(name, set()).update(self._marked.pop(name, ()))
        self._schedule()

    def flush(self) -> None:
        """Hands what has changed to the writer."""
        self._is_due = False
        if not self._changed:
            return
        changed, self._changed, purged, self._purged = self._changed, {}, self._purged, set()
        for name, layers in changed.items():
            if name in purged or name in self._overdue:
                self._put_whole(name, purge=name in purged)
                continue
            taken = {layer: self._layers[layer](name) for layer in layers}
            self._writer.put(partial(self._append, name, taken))
            if None in taken.values():
                self._note_ended(name)

    def _put_whole(self, name: str, *, purge: bool) -> None:
        whole = {layer: encode for layer, take in self._layers.items() if (encode := take(name))}
        self._writer.put(partial(self._write, name, whole, purge=purge))
        if not whole:
            self.names.discard(name)

    def _note_ended(self, name: str) -> None:
        """Where something ended its words are to go, too; but whoever waits for an answer does not wait for that."""
        if not self._ended:
            asyncio.get_running_loop().call_later(ENDED_SECONDS, self.purge_ended)
        self._ended.add(name)

    def purge_ended(self) -> None:
        """What has ended goes from the journals now."""
        ended, self._ended = self._ended, set()
        for name in ended:
            self.purge(name)

    def _schedule(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self.flush)

    def retry(self) -> None:
        """What could not be stored is tried again, as a whole, and without what was before."""
        for name in list(self.failed):
            self.purge(name)

    # In the writer's thread

    def sync(self) -> None:
        """Brings what was appended to the disk itself."""
        self._store.flush()

    def drop_aside(self) -> None:
        """What was set aside goes."""
        self._store.drop_aside()

    def close(self) -> None:
        self._store.close()

    def reseal(self, documents: Mapping[str, Layers]) -> None:
        """Writes what was loaded anew, with the key that holds now."""
        for name, layers in documents.items():
            self._store.write(name, orjson.dumps({"version": VERSION, "layers": layers}), purge=True)
            self._journals.pop(name, None)

    def load(self) -> dict[str, Layers]:
        """All documents by name. What cannot be read is logged and left out."""
        found = {name: self._read(name) for name in self._store.names()}
        self.names |= found.keys()  # also of those that cannot be read, of which something may have to go
        return {name: layers for name, layers in found.items() if layers}

    def _read(self, name: str) -> Layers:
        stored = self._store.read(name)
        if stored.notice:
            log.warning("document_damaged", document=name, detail=stored.notice)
            self._overdue.add(name)
        try:
            layers = _layers_of(stored.content)
            for record in stored.records:
                layers |= orjson.loads(record)
        except (ValueError, TypeError) as error:
            log.error("document_refused", document=name, detail=str(error))
            self._store.reject(name)
            self._overdue.add(name)  # nothing is appended behind what cannot be read
            return {}
        self._journals[name] = sum(map(len, stored.records))
        return {layer: value for layer, value in layers.items() if value is not None}

    def _append(self, name: str, taken: Taken) -> None:
        is_whole_due = name in self._overdue
        record = orjson.dumps(_encoded(taken))
        self._overdue.add(name)  # until it has succeeded: a record that is missing must not be followed by others
        self.failed.add(name)
        self._store.append(name, record)
        self._journals[name] = self._journals.get(name, 0) + len(record)
        if not is_whole_due:
            self.failed.discard(name)
        if self._journals[name] < MAX_JOURNAL_BYTES and not is_whole_due:
            self._overdue.discard(name)

    def _write(self, name: str, whole: Taken, *, purge: bool) -> None:
        self._overdue.add(name)
        self.failed.add(name)
        if whole:
            document = {"version": VERSION, "layers": _encoded(whole)}
            self._store.write(name, orjson.dumps(document), purge=purge)
        else:
            self._store.delete(name)
        self._journals.pop(name, None)
        self._overdue.discard(name)
        self.failed.discard(name)


def _encoded(taken: Taken) -> dict[str, orjson.Fragment | None]:
    return {layer: None if encode is None else orjson.Fragment(encode()) for layer, encode in taken.items()}


def _layers_of(content: bytes | None) -> Layers:
    """Raises ValueError for what is no document of this version."""
    if content is None:
        return {}
    document = orjson.loads(content)
    layers = document.get("layers") if isinstance(document, dict) and document.get("version") == VERSION else None
    if not isinstance(layers, dict):
        raise ValueError(f"it is no document of version {VERSION}, the only one this program knows")
    return layers
