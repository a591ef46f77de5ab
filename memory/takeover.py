"""A STATE_DIR of earlier versions, a folder of JSON files and journals for each kind, taken over at the first start.

Its documents were made of layers, its sessions of messages; each may be sealed.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import structlog

from memory.transcript import GUILD, MESSAGE
from state.sealing import Seal, unsealed
from state.session_files import OWN, SessionFiles, Stored
from state.sqlite_store import ASIDE, set_aside
from state.stored import Key, Store, StoreError

log = structlog.get_logger()

KINDS = CHANNELS, PROCESS, SESSIONS, SEAL = ("channels", "process", "sessions", "seal")


def check_earlier(state_dir: Path, seal: Seal | None) -> None:
    """Raises WrongKeyError where the keys do not fit what an earlier version left."""
    if (state_dir / SEAL).is_dir():
        _read(SessionFiles(state_dir / SEAL), "seal", seal)


def take_over(state_dir: Path, store: Store, seal: Seal | None) -> None:
    """Stores what an earlier version left, and deletes it there. What cannot be read is set aside; both are logged.

    A kill before the end has it begin anew; what is stored already counts. Raises WrongKeyError.
    """
    if not any((state_dir / kind / OWN).is_dir() for kind in KINDS):
        return
    try:
        taken = 0
        for kind in KINDS[:-1]:
            files = SessionFiles(state_dir / kind)
            for name in filter(partial(_is_ours, kind), files.names()):
                taken += _take(state_dir, kind, name, store, seal)
        store.sync()
        SessionFiles(state_dir / SEAL).delete("seal")
        for kind in KINDS:
            _clear(state_dir / kind)
    except StoreError as error:
        log.error("earlier_state_left", folder=str(state_dir), error=str(error), meaning="the next start tries again")
        return
    log.info("earlier_state_taken_over", folder=str(state_dir), rows=taken)


def _is_ours(kind: str, name: str) -> bool:
    return name == PROCESS if kind == PROCESS else name.partition("." if kind == SESSIONS else "\0")[0].isdecimal()


def _take(state_dir: Path, kind: str, name: str, store: Store, seal: Seal | None) -> int:
    """How many rows a document came to."""
    files, rows = SessionFiles(state_dir / kind), {}
    try:
        stored = _read(files, name, seal)
        problem = stored.notice
        rows = dict(_messages(name, stored) if kind == SESSIONS else _layers(kind, name, stored))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        problem = str(error)
    known = {Key(*place, row.id) for place in {key[:2] for key in rows} for row in store.read(*place)}
    store.write({key: value for key, value in rows.items() if key not in known})
    if problem:
        aside = ""
        with suppress(OSError):
            aside = str(set_aside(files.file_of(name), state_dir / ASIDE))
        log.warning(
            "earlier_document_damaged", kind=kind, name=name, detail=problem, rows_kept=len(rows), set_aside=aside
        )
    files.delete(name)
    return len(rows)


def _read(files: SessionFiles, name: str, seal: Seal | None) -> Stored:
    return files.read(name, partial(_opened, seal=seal), partial(_unwrapped, seal=seal))


def _opened(content: bytes, seal: Seal | None) -> bytes:
    """A document, or, where it is sealed, what its tokens make up, each with its place. Raises ValueError."""
    if not content.startswith(b'{"sealed":'):
        return content
    tokens = orjson.loads(content)["sealed"]
    parts = [unsealed(token, seal).split(b" ", 1) for token in tokens]
    if [place for place, _ in parts] != [b"%d/%d" % (number, len(tokens)) for number in range(len(tokens))]:
        raise ValueError("parts of it are missing or out of place")
    return b"".join(part for _, part in parts)


def _unwrapped(line: bytes, seal: Seal | None) -> bytes:
    """A record, behind a character that tells whether it is sealed, encoded or plain."""
    form, rest = line[:1], line[1:]
    return unsealed(rest, seal) if form == b"*" else b64decode(rest) if form == b"=" else rest


def _layers(kind: str, name: str, stored: Stored) -> Iterator[tuple[Key, bytes]]:
    """The rows of a document of layers. Raises ValueError, TypeError or KeyError for what is none."""
    layers: dict[str, Any] = {}
    if stored.content is not None:
        document = orjson.loads(stored.content)
        if document["version"] != 1:
            raise ValueError(f"it is of version {document['version']}")
        layers |= document["layers"]
    for record in stored.records:
        layers |= orjson.loads(record)
    for layer, value in layers.items():
        if value is not None:
            yield Key(layer, int(name) if kind == CHANNELS else 0), orjson.dumps(value)


def _messages(name: str, stored: Stored) -> Iterator[tuple[Key, bytes]]:
    """The rows of a session, whose name begins with its channel's id. Raises as _layers() does."""
    channel = int(name.partition(".")[0])
    session = orjson.loads(stored.content) if stored.content is not None else {"messages": [], "metadata": {}}
    if session["metadata"].get("channel_id", channel) != channel:
        raise ValueError("it is of another channel")
    if "guild_id" in session["metadata"]:
        yield Key(GUILD, channel), orjson.dumps({"guild_id": session["metadata"]["guild_id"]})
    for message in [*session["messages"], *(orjson.loads(record)["message"] for record in stored.records)]:
        if isinstance(message_id := message["metadata"].get("message_id"), int):
            yield Key(MESSAGE, channel, message_id), orjson.dumps(message)


def _clear(folder: Path) -> None:
    """Deletes what else is ours in the folder; what is of others stays."""
    with suppress(OSError):
        for path in [*folder.glob("*.json.damaged-*"), *sorted((folder / OWN).rglob("*"), reverse=True), folder / OWN]:
            path.rmdir() if path.is_dir() else path.unlink()
        folder.rmdir()
