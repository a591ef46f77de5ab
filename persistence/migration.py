"""Migration from earlier versions, which kept documents with journals in a folder or in Redis, at the first start.

The documents hold snapshots, or a session's messages; each may be sealed.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import orjson
import structlog

from persistence.transcript import GUILD, MESSAGE
from state.session_files import OWN, SessionFiles
from storage.sealing import UNSEALED, Seal, unsealed
from storage.sqlite_store import ASIDE, set_aside
from storage.store import Key, Opened, Store, Stored, StoreError, WrongKeyError

log = structlog.get_logger()

KINDS = CHANNELS, PROCESS, SESSIONS, SEAL = ("channels", "process", "sessions", "seal")


class Earlier(Protocol):
    """The documents of one kind that an earlier version left. Raises StoreError where something fails."""

    def is_left(self) -> bool:
        """Whether any are left."""

    def names(self) -> list[str]:
        """The names of all documents."""

    def read(self, name: str, opened: Opened, record: Opened) -> Stored:
        """As `SessionFiles.read`."""

    def set_aside(self, name: str) -> str:
        """Moves a document to where `Store.drop_aside` deletes it. Returns that place; empty: it could not be moved."""

    def delete(self, name: str) -> bool: ...

    def clear(self) -> None:
        """Deletes what is left besides the documents."""


class EarlierFolder(SessionFiles):
    """An `Earlier` in a folder of STATE_DIR. Other programs' files in it are left alone."""

    def __init__(self, state_dir: Path, kind: str) -> None:
        super().__init__(state_dir / kind)
        self._of_kind = state_dir / kind

    def is_left(self) -> bool:
        return (self._of_kind / OWN).is_dir()

    def set_aside(self, name: str) -> str:
        with suppress(OSError):
            return str(set_aside(self.file_of(name), self._of_kind.parent / ASIDE))
        return ""

    def clear(self) -> None:
        own = self._of_kind / OWN
        with suppress(OSError):  # what a link leads to is not ours to delete
            inside = [] if own.is_symlink() else sorted(own.rglob("*"), reverse=True)
            for path in [*self._of_kind.glob("*.json.damaged-*"), *inside, own]:
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
            self._of_kind.rmdir()


OpenEarlier = Callable[[str], Earlier]
"""(kind) -> its documents."""


def check_earlier(open_earlier: OpenEarlier, seal: Seal) -> None:
    """Raises WrongKeyError if what an earlier version left is not taken over, or not with these keys."""
    if seal.takes_plain:
        if (earlier := open_earlier(SEAL)).is_left():
            _read(earlier, SEAL, seal)
    elif any(open_earlier(kind).is_left() for kind in KINDS):
        raise WrongKeyError(UNSEALED)


def take_over(open_earlier: OpenEarlier, store: Store, seal: Seal | None) -> bool:
    """Stores what an earlier version left, and deletes it there. What cannot be read is set aside; both are logged.

    After a kill the next start begins again; rows stored already are kept. Returns whether nothing is left.
    """
    earlier = {kind: open_earlier(kind) for kind in KINDS}
    try:
        if not any(documents.is_left() for documents in earlier.values()):
            return True
        taken = 0
        for kind in KINDS[:-1]:
            for name in earlier[kind].names():
                # Other programs' files have other names.
                channel = name.partition("." if kind == SESSIONS else "\0")[0]
                if name == PROCESS if kind == PROCESS else channel.isdecimal():
                    taken += _take(earlier[kind], kind, name, store, seal)
        earlier[SEAL].delete(SEAL)
        for documents in earlier.values():
            documents.clear()
    except StoreError as error:
        log.error(
            "earlier_state_left",
            error=str(error),
            meaning="what an earlier version kept, opt-outs too, is not in use yet; the next start tries again",
            remedy="fix what the error names, and start again",
        )
        return False
    log.info("earlier_state_taken_over", rows=taken)
    return True


def _take(earlier: Earlier, kind: str, name: str, store: Store, seal: Seal | None) -> int:
    """Stores a document's rows, and deletes the document. Returns how many rows it had."""
    rows: dict[Key, bytes] = {}
    try:
        stored = _read(earlier, name, seal)
        problem = stored.notice
        rows = dict(_messages(name, stored) if kind == SESSIONS else _snapshots(kind, name, stored))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        problem = str(error)
    known = {Key(*place, row.id) for place in {key[:2] for key in rows} for row in store.read(*place)}
    store.write({key: value for key, value in rows.items() if key not in known})
    store.sync()  # else a power cut could lose both
    if problem:
        aside = earlier.set_aside(name)
        log.warning(
            "earlier_document_damaged", kind=kind, name=name, detail=problem, rows_kept=len(rows), set_aside=aside
        )
    earlier.delete(name)
    return len(rows)


def _read(earlier: Earlier, name: str, seal: Seal | None) -> Stored:
    def record(line: bytes) -> bytes:
        """Decodes a record, whose first character tells whether it is sealed, in base64 or plain."""
        form, rest = line[:1], line[1:]
        return unsealed(rest, seal) if form == b"*" else b64decode(rest) if form == b"=" else rest

    return earlier.read(name, partial(_opened, seal=seal), record)


def _opened(content: bytes, seal: Seal | None) -> bytes:
    """Decodes a document; a sealed one is joined from its tokens, which are numbered. Raises ValueError."""
    if not content.startswith(b'{"sealed":'):
        return content
    tokens = orjson.loads(content)["sealed"]
    parts = [unsealed(token, seal).split(b" ", 1) for token in tokens]
    if [place for place, _ in parts] != [b"%d/%d" % (number, len(tokens)) for number in range(len(tokens))]:
        raise ValueError("parts of it are missing or out of place")
    return b"".join(part for _, part in parts)


def _snapshots(kind: str, name: str, stored: Stored) -> Iterator[tuple[Key, bytes]]:
    """The rows of a document of snapshots. Raises ValueError, TypeError or KeyError for anything else."""
    snapshots: dict[str, Any] = {}
    if stored.content is not None:
        document = orjson.loads(stored.content)
        if document["version"] != 1:
            raise ValueError(f"it is of version {document['version']}")
        snapshots |= document["layers"]
    for record in stored.records:
        snapshots |= orjson.loads(record)
    for snapshot_kind, value in snapshots.items():
        if value is not None:
            yield Key(snapshot_kind, int(name) if kind == CHANNELS else 0), orjson.dumps(value)


def _messages(name: str, stored: Stored) -> Iterator[tuple[Key, bytes]]:
    """The rows of a session, whose name begins with its channel's id. Raises as _snapshots() does."""
    channel = int(name.partition(".")[0])
    session = orjson.loads(stored.content) if stored.content is not None else {"messages": [], "metadata": {}}
    if session["metadata"].get("channel_id", channel) != channel:
        raise ValueError("it is of another channel")
    if "guild_id" in session["metadata"]:
        yield Key(GUILD, channel), orjson.dumps({"guild_id": session["metadata"]["guild_id"]})
    for message in [*session["messages"], *(orjson.loads(record)["message"] for record in stored.records)]:
        if isinstance(message_id := message["metadata"].get("message_id"), int):
            yield Key(MESSAGE, channel, message_id), orjson.dumps(message)
