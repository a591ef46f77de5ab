"""`python bot.py sessions`: the real program, beside a bot that runs and after it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from followup.decision_log import FILE_NAME, DecisionFile
from persistence.lock import in_use
from persistence.open_store import find_seal, open_stores
from state import MessageCategory, Session
from tests.support.lives import life, on_disk, open_stage
from tests.support.process import PROGRAM
from tests.support.scene import Scene
from tests.support.stub_model import Reply, StubModel

TOKEN = "a-token-of-a-bot"  # without one it would be the playground's folder
TELLS = "my cat is called Tim"


@pytest.fixture
async def stage(stub: StubModel, tmp_path: Path) -> AsyncIterator[Scene]:
    stub.default = lambda _: Reply("I see.")
    async with open_stage(stub, tmp_path / "state") as opened:
        yield opened


async def sessions(stage: Scene, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        "sessions",
        *arguments,
        cwd=stage.folder.parent,
        env={"PATH": os.environ["PATH"], "STATE_DIR": str(stage.folder), "DISCORD_TOKEN": TOKEN},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


@pytest.mark.slow
async def test_the_owner_lists_shows_exports_and_deletes(stage: Scene) -> None:
    general, help_ = str(stage.pg.channel("general")), str(stage.pg.channel("help"))
    async with life(stage, decision_log="on"):
        await stage.ask("Ada", f"{TELLS}\x1b[2J")
        await stage.ask("Ben", "my horse is called Bluebell", channel="help")
        await stage.at_rest()
        await stage.bot.snapshots.settled()
        with in_use(stage.folder):
            code, listed, said = await sessions(stage, "list")  # beside the bot
        assert not said
        rows = [line.split()[:3] for line in listed.splitlines()[1:]]
        assert (code, rows) == (0, [[one, str(stage.pg.guild_id), "2"] for one in (help_, general)])
    code, shown, _ = await sessions(stage, "show", general)
    assert code == 0
    assert [line.split("  ", 1)[1] for line in shown.splitlines()] == [f"Ada: @Parley {TELLS} [2J", "Parley: I see."]
    code, exported, _ = await sessions(stage, "export", general)
    session = Session.from_dict(json.loads(exported))
    assert (code, session.id, session.metadata["guild_id"]) == (0, general, stage.pg.guild_id)
    assert {message.category for message in session.messages} == {MessageCategory.DIALOG}
    assert await sessions(stage, "delete", general) == (0, "", "")
    assert not on_disk(stage.folder, TELLS)
    log = DecisionFile(stage.folder / FILE_NAME, find_seal(stage.folder, None, None))
    assert {entry.channel_id for entry in log.read()} == {int(help_)}
    code, out, err = await sessions(stage, "show", general)
    assert (code, out) == (2, "")
    assert "sessions list" in err
    (stage.folder / "state.key").unlink()
    code, out, err = await sessions(stage, "list")
    assert (code, out) == (2, "")
    assert "STATE_KEY" in err


@pytest.mark.slow
async def test_nothing_is_deleted_beside_a_bot_that_runs(stage: Scene) -> None:
    general = str(stage.pg.channel("general"))
    async with life(stage):
        await stage.ask("Ada", TELLS)
        with in_use(stage.folder):
            code, _, err = await sessions(stage, "delete", general)
        assert (code, "in use by another process" in err) == (1, True)
        assert on_disk(stage.folder, TELLS)


@pytest.mark.parametrize("how", ["forget", "delete"])
async def test_what_is_forgotten_or_deleted_leaves_no_empty_session(stage: Scene, how: str) -> None:
    async with life(stage):
        question = stage.mention("Ada", TELLS)
        answer = await stage.answer_to(question)
        if how == "forget":
            await stage.use("Ada", "forget")
        else:
            await stage.delete(question)
            await stage.delete(answer)
        assert await stage.bot.snapshots.settled()
    store = open_stores(stage.folder, None, None)()
    assert not {"message", "guild"} & set(store.kinds())
    store.close()
