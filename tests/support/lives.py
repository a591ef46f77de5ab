"""The bot in one life after the other: it ends, or is killed, and another takes up what it left."""

from __future__ import annotations

import hmac
import re
import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any, NoReturn

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from persistence.open_store import DATABASE, open_stores
from playground.limits import Limits
from playground.server import Playground
from storage.sealing import NONCE_BYTES
from storage.state_key import KEY_FILE
from tests.support.clock import FakeClock
from tests.support.scene import Scene, notify, recorded, running
from tests.support.stub_model import StubModel
from wiring_state import CONVERSATION, MINIAPPS, OFFERS, PROMPTS, UNFINISHED

WORDS = re.compile(rb"[ -~]{12,}")  # in what is sealed, or opened with the wrong nonce, there is nothing as long
MOST = 20_000  # bytes of what was sealed


@asynccontextmanager
async def open_stage(
    stub: StubModel, folder: Path, *, clock: FakeClock | None = None, **world: Any
) -> AsyncIterator[Scene]:
    """A playground in which the bot can live several times, each time from the scene's folder. world: as for it.

    clock: by which the bot and its Discord go.
    """
    if clock:
        world["wall"] = lambda: clock().timestamp()
    async with Playground(limits=Limits.off(), **world) as pg, recorded(pg) as journal:
        stub.on_request = lambda: notify(pg)
        yield Scene(pg, stub, journal, folder, clock)


@asynccontextmanager
async def life(scene: Scene, **settings: Any) -> AsyncIterator[None]:
    """The bot from its start, once it has taken up what it missed, to its end. What was noted before is cleared."""
    async with waking(scene, **settings):
        await caught_up(scene)
        yield


@asynccontextmanager
async def waking(scene: Scene, **settings: Any) -> AsyncIterator[None]:
    """As life, but from the moment it is connected."""
    scene.journal.entries.clear()
    scene.decisions.clear()
    scene.pg.requests.clear()
    scene.stub.requests.clear()
    async with running(scene, **settings):
        yield


async def caught_up(scene: Scene) -> None:
    """It has taken up what it missed, in all channels."""
    for channel_id in list(scene.pg.world.channels):
        await scene.bot.parts.gate.wait(channel_id, scene.pg.guild_id)


async def kill(scene: Scene) -> None:
    """The next life begins with what this one had stored by now, and nothing that this one does is seen any more.

    To be called where it waits for something, so that this moment is one.
    """
    await scene.bot.snapshots.settled()
    left = scene.folder.with_name(f"{scene.folder.name}+")
    shutil.copytree(scene.folder, left)
    scene.folder = left
    scene.bot.http.request = _dead  # type: ignore[method-assign]
    for queue in scene.bot.turns._queues.values():
        if queue.turn:
            queue.turn.leave()
        if queue.task:
            queue.task.cancel()  # which would try to reach Discord for as long as a farewell may take
    await scene.bot.close()


async def _dead(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError("this process is dead")


def in_snapshots(folder: Path, text: str) -> list[str]:
    """The snapshots of channels that hold it."""
    store = open_stores(folder, None, None)()
    kinds = (CONVERSATION, PROMPTS, MINIAPPS, UNFINISHED, OFFERS)
    found = [kind for kind in kinds for row in store.read(kind) if row.value and text.encode() in row.value]
    store.close()
    return found


def on_disk(folder: Path, text: str) -> list[str]:
    """The files that hold it, be it sealed with the key in the folder, be it in room that they do not use any more."""
    return sorted({path for path, _ in all_on_disk(folder, re.compile(re.escape(text.encode())))})


def all_on_disk(folder: Path, pattern: re.Pattern[bytes]) -> Iterator[tuple[str, bytes]]:
    """As on_disk(), for all that matches: the file, and what was found in it."""
    key = _content(folder / KEY_FILE).strip()
    cipher = algorithms.AES(hmac.digest(key, b"values", "sha256")) if key else None
    for path in folder.rglob("*"):
        for part in _parts(_content(path), cipher):
            if pattern.search(part):  # to look among words alone would take ten times as long
                yield from ((str(path), found) for words in WORDS.findall(part) for found in pattern.findall(words))


def _parts(content: bytes, cipher: algorithms.AES | None) -> Iterator[bytes]:
    """All there is, and what can be behind anything that may be a nonce.

    It need not be authentic, for its end may be overwritten. GCM counts blocks from 2 on.
    """
    yield content
    for mark in re.finditer(rb"\+", content):
        nonce = content[mark.end() : mark.end() + NONCE_BYTES]
        begin = mark.end() + NONCE_BYTES
        if cipher and len(nonce) == NONCE_BYTES:
            opening = Cipher(cipher, modes.CTR(nonce + b"\0\0\0\2")).decryptor()
            if WORDS.match(start := opening.update(content[begin : begin + 16])):
                yield start + opening.update(content[begin + 16 : begin + MOST])


def _content(path: Path) -> bytes:
    """Nothing of what is no file, or has gone since it was listed, as a journal of SQLite's may.

    The rows of the database stand behind it once more: in the file a long one is in pieces.
    """
    content = b""
    with suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
        content = path.read_bytes()
    if path.name == DATABASE:
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as db:
            content += b"".join(value for (value,) in db.execute("SELECT value FROM row") if isinstance(value, bytes))
    return content
