"""A Redis that starts anew while the bot runs: with its data nothing is lost; without, what is in memory is stored."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from persistence.holders import Holder
from persistence.lock import InUseError
from persistence.open_store import open_stores
from persistence.people import People
from persistence.snapshots import Snapshots
from persistence.stored_state import Encode, as_json
from shards import Shards
from state.consent import Consent, Forgotten
from state.message import Appended
from state.optout import OptOut
from storage.redis_store import LEASES, STATE_KEY, RedisStore
from storage.store import WrongKeyError
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, said

CHANNEL = 700  # the odd ones are on shard 1
GUILDS = 2 << 22, 3 << 22
KEYS = "iVwDOTJ1hAeYIPWNgdIxNXSoaxdWvnrmYLjVbtVTQ9s=", "Jl8p1fUcpQ6gF5oMGLJ3oXnGLVZl4YgVqjUT9GHzX0E="


class Server:
    """A Redis of its own that writes each change to its disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.url = f"unix://{folder}/socket"
        self.start()

    def start(self) -> None:
        options = ["--port", "0", "--unixsocket", f"{self.folder}/socket", "--dir", str(self.folder)]
        command = ["redis-server", *options, "--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        assert any("eady to accept connections" in line for line in self.process.stdout)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server here: install Debian's package of that name")
    folder = tmp_path_factory.mktemp("r", numbered=True) / "d"
    running = Server(folder)
    yield running
    running.stop()


class Process(Holder):
    """Has one of two shards, or both."""

    def __init__(self, url: str, folder: Path, keys: str | None = None, *, shards: tuple[int, ...] = (0,)) -> None:
        self.shards = shards
        self.kept: dict[int, Any] = {}
        self.forgotten, self.opted_out = Forgotten(), OptOut()
        consent = Consent(self.opted_out, self.forgotten)
        opened = open_stores(folder, url, keys)
        self.snapshots = Snapshots(opened, consent, shards=Shards(2, shards), look_up_guild=lambda c: GUILDS[c % 2])
        self.people = People(self.opted_out, self.forgotten, self.snapshots, lambda _: True, lambda: NOON)
        self.snapshots.register(self, of_channels="things", of_process="counted")

    def snapshot(self, channel_id: int) -> Encode | None:
        return as_json(self.kept.get(channel_id))

    def restore(self, channel_id: int, stored: Any) -> None:
        self.kept[channel_id] = stored

    def leave(self, channel_id: int) -> None: ...

    async def load(self) -> None:
        kept = await self.snapshots.load(self.shards)
        self.snapshots.restore_process(kept)
        for channel_id, by_kind in kept.channels.items():
            self.snapshots.restore(channel_id, by_kind)
        await self.people.load()

    def keep(self, channel_id: int, what: Any) -> None:
        self.kept[channel_id] = what
        self.snapshots.touch("things" if channel_id else "counted", channel_id)


async def test_what_happens_while_redis_starts_again_is_stored_once_it_is_there(server: Server, tmp_path: Path) -> None:
    process, later = Process(server.url, tmp_path), Process(server.url, tmp_path)
    await process.load()
    process.keep(CHANNEL, "before")
    process.snapshots.append(Appended(CHANNEL, GUILDS[0], said(ANNA, "before")))
    assert await process.snapshots.settled()
    server.stop()
    process.keep(CHANNEL, "meanwhile")
    process.snapshots.append(Appended(CHANNEL, GUILDS[0], said(BEN, "meanwhile")))
    with capture_logs() as logs:
        assert not await process.snapshots.settled()
    assert [entry["event"] for entry in logs] == ["store_failed"]
    server.start()
    assert await process.snapshots.settled()
    await later.load()
    assert later.kept == {CHANNEL: "meanwhile"}
    assert [message.content for message in await later.snapshots.newest(CHANNEL, 5)] == ["meanwhile", "before"]
    for each in (process, later):
        await each.snapshots.close()


@pytest.mark.parametrize("keys", [None, KEYS[0]])
async def test_what_is_in_memory_is_stored_again_where_redis_lost_all(
    redis_url: str, tmp_path: Path, keys: str | None
) -> None:
    store = RedisStore(redis_url)
    store.redis.flushall()
    processes = [Process(redis_url, tmp_path / str(number), keys, shards=(number,)) for number in range(2)]
    for number, process in enumerate(processes):
        await process.load()
        process.keep(CHANNEL + number, "said")
        process.snapshots.append(Appended(CHANNEL + number, GUILDS[number], said(BEN, "old")))
    processes[0].keep(0, 7)
    processes[0].people.opt(ANNA, 4, out=True)
    processes[0].people.forget(CHANNEL, None, 55)
    key = store.redis.get(STATE_KEY)
    with capture_logs() as logs:
        for process in processes:
            assert await process.snapshots.settled()
        store.redis.flushall()
        for number, process in enumerate(processes):
            process.keep(CHANNEL + 10 + number, "new")
            assert await process.snapshots.settled()
            assert await process.snapshots.settled()  # it has all stored again, before the other looks
        for number, process in enumerate(processes):
            process.snapshots.append(Appended(CHANNEL + number, GUILDS[number], said(BEN, "new")))
            assert await process.snapshots.settled()
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["stored_is_gone"] * 2
    assert store.redis.get(STATE_KEY) == key
    later = Process(redis_url, tmp_path / "later", keys, shards=(0, 1))
    await later.load()
    channels = (CHANNEL, CHANNEL + 1, CHANNEL + 10, CHANNEL + 11)
    assert later.kept == dict.fromkeys(channels, "said") | {0: 7, CHANNEL + 10: "new", CHANNEL + 11: "new"}
    assert ANNA in later.opted_out
    assert later.forgotten.at(CHANNEL, None) == 55
    assert [later.snapshots.guild_of(channel) for channel in channels] == [*GUILDS, *GUILDS]
    assert [m.content for m in await later.snapshots.newest(CHANNEL, 5)] == ["new"]
    for process in (*processes, later):
        await process.snapshots.close()
    store.close()


def test_what_others_go_by_is_not_sealed_anew_nor_made_anew_under_their_hands(redis_url: str, tmp_path: Path) -> None:
    store = RedisStore(redis_url)
    store.redis.flushall()
    open_stores(tmp_path, redis_url, KEYS[0])().close()
    lease = LEASES.replace("*", "0")
    store.redis.set(lease, "another")
    with pytest.raises(WrongKeyError, match="stop all of them"):
        open_stores(tmp_path, redis_url, f"{KEYS[1]},{KEYS[0]}")()
    open_stores(tmp_path, redis_url, KEYS[0])().close()
    store.redis.delete(lease)
    open_stores(tmp_path, redis_url, f"{KEYS[1]},{KEYS[0]}")().close()
    store.redis.flushall()
    store.redis.set(lease, "another")
    with pytest.raises(InUseError, match="start this one again"):
        open_stores(tmp_path, redis_url, None)()
    store.redis.delete(lease)
    store.close()
