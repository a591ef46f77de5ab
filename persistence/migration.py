"""What earlier versions left, documents with journals in a folder or in Redis, taken over at the first start.

Their documents were made of snapshots, their sessions of messages; each may be sealed.
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
from storage.sealing import Seal, unsealed
from storage.sqlite_store import ASIDE, free_name, set_aside
from storage.store import Key, Opened, Store, Stored, StoreError

log = structlog.get_logger()

KINDS = CHANNELS, PROCESS, SESSIONS, SEAL = ("channels", "process", "sessions", "seal")


class Earlier(Protocol):
    """The documents of one kind, as an earlier version left them. Raises StoreError for what it cannot do."""

    def is_left(self) -> bool:
        """Whether there is anything."""

    def names(self) -> list[str]:
        """Of all documents."""

    def read(self, name: str, opened: Opened, record: Opened) -> Stored:
        """As `SessionFiles.read`."""

    def set_aside(self, name: str) -> str:
        """Moves a document to where `Store.drop_aside` deletes it, and says where that is; empty where it cannot."""

    def refuse(self) -> str:
        """Moves all documents there, whatever is in them, and says where that is."""

    def delete(self, name: str) -> bool: ...

    def clear(self) -> None:
        """Deletes what is left beside the documents."""


class EarlierFolder(SessionFiles):
    """An `Earlier` in a folder of STATE_DIR, where what is of others stays."""

    def __init__(self, state_dir: Path, kind: str) -> None:
        super().__init__(state_dir / kind)
        self._of_kind = state_dir / kind

    def is_left(self) -> bool:
        return (self._of_kind / OWN).is_dir()

    def set_aside(self, name: str) -> str:
        with suppress(OSError):
            return str(set_aside(self.file_of(name), self._of_kind.parent / ASIDE))
        return ""

    def refuse(self) -> str:
        places = [self._of_kind / OWN, *(file for name in self.names() if (file := self.file_of(name)).exists())]
        try:
            aside = free_name(self._of_kind.name, self._of_kind.parent / ASIDE)
            aside.mkdir(mode=0o700)
            for place in places:
                place.rename(aside / place.name)
        except OSError as error:
            raise StoreError(f"{self._of_kind} could not be set aside: {error}.") from error
        with suppress(OSError):
            self._of_kind.rmdir()
        return str(aside)

    def clear(self) -> None:
        own = self._of_kind / OWN
        with suppress(OSError):
            for path in [*self._of_kind.glob("*.json.damaged-*"), *sorted(own.rglob("*"), reverse=True), own]:
                path.rmdir() if path.is_dir() else path.unlink()
            self._of_kind.rmdir()


OpenEarlier = Callable[[str], Earlier]
"""(kind) -> its documents."""


def refuse_earlier(open_earlier: OpenEarlier, store: Store) -> None:
    """Sets aside what is in the form of an earlier version, where all had been sealed in this one's already.

    Then somebody else put it there, who needs no key for that. Raises StoreError.
    """
    left = [earlier.refuse for kind in KINDS if (earlier := open_earlier(kind)).is_left()]
    if not store.is_sealed() and store.kinds():
        left.append(store.set_aside)
    for refuse in left:
        log.error(
            "unsealed_state_refused",
            set_aside=refuse(),
            meaning="it is not sealed, and was put where all had been sealed before; nothing of it counts",
            remedy="if it is yours, start once with it alone in another STATE_DIR or Redis",
        )


def check_earlier(open_earlier: OpenEarlier, seal: Seal | None) -> None:
    """Raises WrongKeyError where the keys do not fit what an earlier version left."""
    if (earlier := open_earlier(SEAL)).is_left():
        _read(earlier, SEAL, seal)


def take_over(open_earlier: OpenEarlier, store: Store, seal: Seal | None) -> bool:
    """Stores what an earlier version left, and deletes it there. What cannot be read is set aside; both are logged.

    A kill before the end has it begin anew; what is stored already counts. Returns whether nothing is left.
    """
    earlier = {kind: open_earlier(kind) for kind in KINDS}
    try:
        if not any(documents.is_left() for documents in earlier.values()):
            return True
        taken = 0
        for kind in KINDS[:-1]:
            for name in earlier[kind].names():
                # Files of others have other names.
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
            meaning="what an earlier version kept, also who opted out, does not count yet; the next start tries again",
            remedy="mend what the error names, and start again",
        )
        return False
    log.info("earlier_state_taken_over", rows=taken)
    return True


def _take(earlier: Earlier, kind: str, name: str, store: Store, seal: Seal | None) -> int:
    """How many rows a document came to."""
    rows: dict[Key, bytes] = {}
    try:
        stored = _read(earlier, name, seal)
        problem = stored.notice
        rows = dict(_messages(name, stored) if kind == SESSIONS else _snapshots(kind, name, stored))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        problem = str(error)
    known = {Key(*place, row.id) for place in {key[:2] for key in rows} for row in store.read(*place)}
    store.write({key: value for key, value in rows.items() if key not in known})
    store.sync()  # or a power cut could take both
    if problem:
        aside = earlier.set_aside(name)
        log.warning(
            "earlier_document_damaged", kind=kind, name=name, detail=problem, rows_kept=len(rows), set_aside=aside
        )
    earlier.delete(name)
    return len(rows)


def _read(earlier: Earlier, name: str, seal: Seal | None) -> Stored:
    def record(line: bytes) -> bytes:
        """A record, behind a character that tells whether it is sealed, encoded or plain."""
        form, rest = line[:1], line[1:]
        return unsealed(rest, seal) if form == b"*" else b64decode(rest) if form == b"=" else rest

    return earlier.read(name, partial(_opened, seal=seal), record)


def _opened(content: bytes, seal: Seal | None) -> bytes:
    """A document, or, where it is sealed, what its tokens make up, each with its place. Raises ValueError."""
    if not content.startswith(b'{"sealed":'):
        return content
    tokens = orjson.loads(content)["sealed"]
    parts = [unsealed(token, seal).split(b" ", 1) for token in tokens]
    if [place for place, _ in parts] != [b"%d/%d" % (number, len(tokens)) for number in range(len(tokens))]:
        raise ValueError("parts of it are missing or out of place")
    return b"".join(part for _, part in parts)


def _snapshots(kind: str, name: str, stored: Stored) -> Iterator[tuple[Key, bytes]]:
    """The rows of a document of snapshots. Raises ValueError, TypeError or KeyError for what is none."""
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
