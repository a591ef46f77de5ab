"""The real program and what it keeps: sealed, used by one process alone, damaged, or not to be written at all."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import unused_port
from cryptography.fernet import Fernet

from followup.decision_file import FILE_NAME, DecisionFile
from persistence.lock import HERE_SECONDS, in_use
from persistence.open_store import CHECK, DATABASE, check_stores, find_seal, open_stores
from persistence.people import OPTED_OUT
from playground.limits import Limits
from playground.model import Message
from playground.server import Playground
from storage.sqlite_store import SQLiteStore
from storage.state_key import KEY_FILE
from storage.store import Key, StoreError
from tests.e2e.test_trip import ADDED, asked_which
from tests.support.lives import life, on_disk
from tests.support.process import Program, finished, program
from tests.support.scene import Scene, recorded
from tests.support.stub_model import Reply, StubModel

SECRET = "Tim"
TELLS = f"my cat is called {SECRET}"
TINY_BYTES = 256 * 1024
FOREIGN = ("notes.txt", "channels/notes.txt", "sessions/abc.json", "channels/99.json.bak", "process/x.json")
OLD, NEW, OTHER = (Fernet.generate_key().decode() for _ in range(3))


@pytest.fixture
async def scene(stub: StubModel, tmp_path: Path) -> AsyncIterator[Scene]:
    async with Playground(limits=Limits.off()) as pg, recorded(pg) as journal:
        yield Scene(pg, stub, journal, tmp_path / "state")


def environment(scene: Scene, more: Mapping[str, str]) -> dict[str, str]:
    return {
        "DISCORD_API_BASE": scene.pg.api_base,
        "DISCORD_GATEWAY_URL": scene.pg.gateway_url,
        "DISCORD_TOKEN": scene.pg.token,
        "MODEL": "openai-chat:stub",
        "OPENAI_BASE_URL": scene.stub.url,
        "OPENAI_API_KEY": "key-of-the-stub",
        "STATE_DIR": str(scene.folder),
        **more,
    }


@asynccontextmanager
async def serving(scene: Scene, **more: str) -> AsyncIterator[Program]:
    """The program, once it is in service; killed at the end."""
    async with program(scene.folder.parent, **environment(scene, more)) as running:
        await running.logged("ready")
        yield running


async def ask(scene: Scene, running: Program, text: str, channel: str = "general") -> Message:
    """Mentions the bot, and waits for its answer to be done."""
    question = scene.mention("Ada", text, channel=channel)
    await running.logged("turn_ended", message=question.id, outcome="answered")
    return question


@asynccontextmanager
async def main_life(scene: Scene, **settings: Any) -> AsyncIterator[None]:
    """A life with all around it that main() does."""
    with in_use(scene.folder):
        check_stores(scene.folder, None, settings.get("state_key"))
        async with life(scene, **settings):
            yield


def contents(folder: Path) -> dict[str, bytes]:
    """All files but the lock, in which each process writes its own id."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


# Keys


async def test_with_a_key_nothing_can_be_read_and_another_can_be_put_before_it(scene: Scene) -> None:
    async with main_life(scene, state_key=OLD):
        await scene.ask("Ada", TELLS)
        await scene.ask("Ben", "my horse is called Bluebell", channel="help")
    assert not on_disk(scene.folder, TELLS)  # a short name can stand in what is sealed by chance
    assert not on_disk(scene.folder, '"author"')
    async with main_life(scene, state_key=f"{NEW},{OLD}"):
        await scene.answer_to(scene.say("Ada", "and now?"))
        assert SECRET in scene.told()
    assert not on_disk(scene.folder, "and now?")
    # All was written anew: the old key is needed no more, also for channels in which nothing was said since.
    async with main_life(scene, state_key=NEW):
        await scene.answer_to(scene.say("Ada", "and then?"))
        assert SECRET in scene.told()
        assert b"Bluebell" in await scene.bot.privacy.export(scene.pg.person("Ben"))


@pytest.mark.parametrize("key", [OTHER, ""], ids=["another", "none"])
@pytest.mark.slow
async def test_without_its_key_it_does_not_start_and_touches_nothing(scene: Scene, key: str) -> None:
    async with main_life(scene, state_key=OLD):
        await scene.ask("Ada", TELLS)
    before = contents(scene.folder)
    code, ended = await finished(scene.folder.parent, **environment(scene, {"STATE_KEY": key}))
    assert code == 2
    (sentence,) = ended.other
    assert "STATE_KEY" in sentence
    assert OTHER not in sentence
    assert contents(scene.folder) == before


async def test_a_key_that_goes_while_it_runs_is_not_replaced_by_another(scene: Scene) -> None:
    async with main_life(scene, decision_log="on"):
        await scene.ask("Ada", TELLS)
        (scene.folder / KEY_FILE).rename(scene.folder / "kept")
        await scene.answer_to(scene.say("Ada", "and what else?"))
        await scene.bot.decision_log.flush()
        (failed,) = scene.journal.find("decision_log_failed")
        assert f"put back {scene.folder / KEY_FILE}" in failed["error"]
        assert not (scene.folder / KEY_FILE).exists()
        (scene.folder / "kept").rename(scene.folder / KEY_FILE)
    async with main_life(scene, decision_log="on"):
        await scene.answer_to(scene.say("Ada", "and now?"))
        assert SECRET in scene.told()
    assert len(DecisionFile(scene.folder / FILE_NAME, find_seal(scene.folder, None, None)).read()) >= 2


async def test_what_was_kept_before_there_was_a_key_is_remembered_and_sealed(scene: Scene) -> None:
    async with main_life(scene):
        await scene.ask("Ada", TELLS)
    unsealed(scene.folder)
    assert TELLS.encode() in (scene.folder / DATABASE).read_bytes()
    async with main_life(scene):
        await scene.answer_to(scene.say("Ada", "and now?"))
        assert SECRET in scene.told()
        assert len(scene.journal.find("row_refused")) == 0
    assert TELLS.encode() not in (scene.folder / DATABASE).read_bytes()


async def test_what_another_program_puts_there_unsealed_is_not_told(scene: Scene) -> None:
    async with main_life(scene, state_key=OLD):
        await scene.ask("Ada", TELLS)
    forged = {key: value and value.replace(SECRET.encode(), b"Rex") for key, value in rows(scene.folder, OLD).items()}
    with closing(SQLiteStore(scene.folder / DATABASE)) as plain:
        plain.write(forged)
    async with main_life(scene, state_key=OLD):
        await scene.ask("Ada", "and now?")
        assert "Rex" not in scene.told()
        assert scene.journal.find("row_refused")


def unsealed(folder: Path) -> None:
    """The folder as a version without a key left it."""
    left = rows(folder, None)
    for name in (DATABASE, KEY_FILE):
        (folder / name).unlink()
    with closing(SQLiteStore(folder / DATABASE)) as plain:
        plain.write(left)


def rows(folder: Path, keys: str | None) -> dict[Key, bytes | None]:
    with closing(open_stores(folder, None, keys)()) as store:
        kinds = set(store.kinds()) - {CHECK}
        return {Key(kind, row.channel, row.id): row.value for kind in kinds for row in store.read(kind)}


async def test_channels_whose_rows_were_exchanged_are_told_nothing_of_each_other(scene: Scene) -> None:
    async with main_life(scene):
        await scene.ask("Ada", TELLS)
        await scene.ask("Ben", "my horse is called Bluebell", channel="help")
    here, there = scene.pg.channel("general"), scene.pg.channel("help")
    with closing(sqlite3.connect(scene.folder / DATABASE)) as db, db:
        for was, now in ((here, 1), (there, here), (1, there)):
            db.execute("UPDATE row SET channel = ? WHERE channel = ?", (now, was))
    async with main_life(scene):
        await scene.ask("Ada", "and now?")
        assert "Bluebell" not in scene.told()
        assert scene.journal.find("row_refused")


# One process


@pytest.mark.slow
async def test_a_second_process_waits_and_takes_over_when_the_first_ends(scene: Scene) -> None:
    async with serving(scene) as first:
        await ask(scene, first, TELLS)
        (scene.folder / "lock").write_text("1 another-machine")  # as in a redeploy
        async with program(scene.folder.parent, **environment(scene, {})) as second:
            await second.logged("waiting_for_other_process")
            await ask(scene, first, "still there?")
            first.process.kill()
            await second.logged("ready")
            await ask(scene, second, "and now?")
    assert SECRET in scene.told()
    assert len(scene.said()) == 3


@pytest.mark.slow
async def test_a_second_process_on_the_same_machine_soon_says_whom_to_stop(scene: Scene) -> None:
    async with serving(scene) as first:
        code, second = await finished(scene.folder.parent, **environment(scene, {}))
        await ask(scene, first, TELLS)
    assert code == 1
    [waiting] = [entry for entry in second.log if entry["event"] == "waiting_for_other_process"]
    assert waiting["seconds"] == HERE_SECONDS
    [sentence] = second.other
    assert f"({first.process.pid} on this machine)" in sentence


# Damage


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for place in random.Random(len(data)).sample(range(len(data)), min(9, len(data))):
        data[place] ^= 1 << place % 8
    path.write_bytes(data)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "of somebody").write_text("else")


@pytest.mark.parametrize("damage", [truncated, flipped, emptied, made_a_folder])
async def test_whatever_is_damaged_it_starts_and_serves(scene: Scene, damage: Callable[[Path], None]) -> None:
    async with main_life(scene):
        await scene.ask("Ada", TELLS)
    assert {path.name for path in scene.folder.iterdir()} == {DATABASE, KEY_FILE, "lock"}
    damage(scene.folder / DATABASE)
    for name in FOREIGN:
        (scene.folder / name).parent.mkdir(exist_ok=True)
        (scene.folder / name).write_text("of somebody else")
    async with main_life(scene):
        await scene.ask("Ada", TELLS)
        await scene.bot.privacy.expire(datetime.now(UTC) - timedelta(days=1))
        assert not scene.journal.find("store_broken")
        assert not scene.journal.find("catch_up_broken")
    async with main_life(scene):
        await scene.ask("Ada", "and now?")
        assert SECRET in scene.told()
        exported = await scene.bot.privacy.export(scene.pg.person("Ada"))
        assert SECRET.encode() in exported
    assert [(scene.folder / name).read_text() for name in FOREIGN] == ["of somebody else"] * len(FOREIGN)


# Disks


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for very little."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={TINY_BYTES}", "tmpfs", disk], check=False)
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.fixture(params=["plain", "sealed"])
def key(request: pytest.FixtureRequest) -> str | None:
    return OLD if request.param == "sealed" else None


def fill(disk: Path) -> None:
    with (disk / "big").open("wb", buffering=0) as big:
        while free := os.statvfs(disk).f_bavail:
            big.write(bytes(free * 4096))


async def started_on(scene: Scene, make_unwritable: Callable[[], object], *, has_state: bool, key: str | None) -> None:
    """It starts there, answers, and remembers while it runs."""
    if has_state:
        async with main_life(scene, state_key=key):
            await scene.ask("Ada", TELLS)
    make_unwritable()
    async with main_life(scene, state_key=key):
        await scene.ask("Ada", "hello" if has_state else TELLS)
        await scene.ask("Ben", "and now?")
        assert SECRET in scene.told()
        await scene.at_rest()


@pytest.mark.parametrize("has_state", [False, True], ids=["new", "used"])
@pytest.mark.slow
async def test_on_a_full_disk_it_starts_and_serves(
    scene: Scene, tiny_disk: Path, key: str | None, has_state: bool
) -> None:
    scene.folder = tiny_disk / "state"
    await started_on(scene, lambda: fill(tiny_disk), has_state=has_state, key=key)


@pytest.mark.slow
async def test_a_key_that_is_first_given_on_a_full_disk_costs_nothing(scene: Scene, tiny_disk: Path) -> None:
    scene.folder = tiny_disk / "state"
    async with main_life(scene):
        await scene.ask("Ada", TELLS)
    keys = f"{OLD},{(scene.folder / KEY_FILE).read_text().strip()}"
    fill(tiny_disk)
    with pytest.raises(StoreError, match="could be encrypted with the first key of STATE_KEY"):
        check_stores(scene.folder, None, keys)
    (tiny_disk / "big").unlink()
    for each in (None, keys, OLD):
        async with main_life(scene, state_key=each):
            await scene.ask("Ada", "and now?")
            assert SECRET in scene.told()
            assert not scene.journal.find("row_refused")


@pytest.mark.parametrize("has_state", [False, True], ids=["new", "used"])
@pytest.mark.slow
async def test_on_a_read_only_disk_it_starts_and_serves(
    scene: Scene, tiny_disk: Path, key: str | None, has_state: bool
) -> None:
    scene.folder = tiny_disk / "state"
    remount = ["mount", "-o", "remount,ro", str(tiny_disk)]
    await started_on(scene, lambda: subprocess.run(remount, check=True), has_state=has_state, key=key)


# Redis


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    """A server of its own."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("there is no redis-server here: install Debian's package of that name")
    port = unused_port()
    options = ["--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(tmp_path)]
    with subprocess.Popen([binary, *options], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        assert any("eady to accept connections" in line for line in server.stdout)
        yield f"redis://127.0.0.1:{port}"
        server.terminate()


@pytest.mark.slow
async def test_what_is_kept_in_redis_is_there_after_a_restart(scene: Scene, redis_url: str) -> None:
    there = {"redis_url": redis_url}
    scene.stub.default = lambda _: Reply("I see.")
    async with life(scene, **there):
        await scene.ask("Ada", TELLS)
        card = await asked_which(scene)
    assert not on_disk(scene.folder, SECRET)
    async with life(scene, **there):
        await scene.ask("Ada", "and now?")
        assert scene.told().count(SECRET) == 1
        scene.press("Ada", card, "1.")
        await scene.shows(ADDED)
        await scene.use("Ada", "forget")
    async with life(scene, **there):
        await scene.ask("Ben", "which cat?")
        assert SECRET not in scene.told()
    store = open_stores(scene.folder, redis_url, None)()
    kept = str([store.read(kind) for kind in store.kinds()])
    store.close()
    assert "which cat?" in kept
    assert SECRET not in kept


@pytest.mark.slow
@pytest.mark.parametrize("has_index", [True, False], ids=["", "without its index"])
def test_what_a_killed_bot_stored_last_is_not_passed_over_on_a_read_only_disk(
    tmp_path: Path, tiny_disk: Path, *, has_index: bool
) -> None:
    """As the opt-out of a person, which is still in the WAL then."""
    with closing(SQLiteStore(tmp_path / DATABASE)) as store:
        store.write({Key(OPTED_OUT, 0, 1): b"true"})
        store.sync()
        store.write({Key(OPTED_OUT, 0, 2): b"true"})
        for end in ("", "-wal", "-shm") if has_index else ("", "-wal"):
            shutil.copy(tmp_path / f"{DATABASE}{end}", tiny_disk)
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    with closing(SQLiteStore(tiny_disk / DATABASE)) as store:
        if has_index:
            assert [row.id for row in store.read(OPTED_OUT)] == [1, 2]
        else:  # only who can write there can read the WAL
            with pytest.raises(StoreError, match="could not be read"):
                store.read(OPTED_OUT)
