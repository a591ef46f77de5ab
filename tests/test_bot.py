"""bot.py and wiring.py: which second tier the bot takes."""

from __future__ import annotations

import asyncio
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

import bot
import command_line
from config import Settings
from decider import FollowupRules, TrainedFollowup
from followup.model import MODEL_FILE, Eagerness, load_model
from tests.support.discord_payloads import a_bot
from tests.support.followups import after, talk
from tests.support.people import ANNA, BOT, replied, said
from tests.support.process import PROGRAM


def nothing(_path: Path) -> None:
    """There is no file."""


def damaged(path: Path) -> None:
    path.write_bytes(MODEL_FILE.read_bytes()[:-1_000])


def altered(path: Path) -> None:
    path.write_bytes(MODEL_FILE.read_bytes().replace(b'"bias":', b'"bias":1', 1))


@pytest.mark.parametrize(
    ("prepare", "detail"), [(nothing, "cannot be read"), (damaged, "is damaged"), (altered, "is damaged")]
)
async def test_without_a_model_it_starts_warns_once_and_goes_by_rules(
    prepare: Callable[[Path], None], detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(path := tmp_path / "model.json")
    monkeypatch.setattr("decider.load_model", partial(load_model, path))
    with capture_logs() as logs:
        parley = a_bot(followup_window_seconds=33)
        earlier = talk(said(ANNA), replied(ANNA))
        decider, green = parley.parts.decider, said(ANNA, "green", after(5))
        decisions = [await decider.should_respond(green, earlier, BOT) for _ in range(3)]
    assert decider._followup == FollowupRules(33)
    assert [tuple(decision) for decision in decisions] == [(True, "answer_due")] * 3
    (warning,) = [entry for entry in logs if entry["event"] == "followup_model_unusable"]
    assert warning["log_level"] == "warning"
    assert warning["detail"].startswith("model.json")
    assert detail in warning["detail"]


@pytest.mark.parametrize("eagerness", Eagerness)
async def test_it_takes_the_model_at_the_eagerness_that_is_set(eagerness: Eagerness) -> None:
    with capture_logs() as logs:
        parley = a_bot(followup_eagerness=eagerness.value)
    assert not [entry for entry in logs if entry["event"] == "followup_model_unusable"]
    tier = parley.parts.decider._followup
    assert isinstance(tier, TrainedFollowup)
    assert tier.eagerness is eagerness


async def test_of_many_bots_of_one_service_only_the_first_reads_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service makes a bot anew where the first could not connect; the owner is warned once."""
    monkeypatch.setattr("decider.load_model", partial(load_model, tmp_path / "missing.json"))
    made: list[object] = []

    async def serve(make_bot: Callable[[], object], _token: str, _port: int | None, **_site: object) -> int:
        made.extend(make_bot() for _ in range(3))
        return 0

    monkeypatch.setattr(command_line, "serve", serve)
    with capture_logs() as logs:
        await command_line.run(Settings(discord_token=SecretStr("token"), decision_log="off"), bot.create_bot)
    assert len(made) == 3
    assert [entry["event"] for entry in logs].count("followup_model_unusable") == 1


async def test_background_work_that_breaks_is_one_line() -> None:
    async def breaks() -> None:
        raise KeyError("id")

    with capture_logs() as logs:
        parley = a_bot()
        await asyncio.wait({parley._background.start(breaks())})
    (broken,) = [entry for entry in logs if entry["event"] == "background_work_broken"]
    assert isinstance(broken["exc_info"], KeyError)


@pytest.mark.slow
def test_what_is_no_command_starts_nothing() -> None:
    ended = run_with("session")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("'session' is not a command")


@pytest.mark.slow
def test_help_lists_the_commands_also_where_a_setting_is_wrong() -> None:
    ended = run_with("--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert all(f"  {command} " in ended.stdout for command in ("doctor", *command_line.ON_WHAT_IS_KEPT))


def run_with(argument: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), argument]
    return subprocess.run(command, env={"PORT": "none"}, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_threads_take_memory_from_one_arena() -> None:
    """Else each keeps what it once took for itself."""
    script = """
import ctypes, threading
from command_line import tune_memory
tune_memory()
threads = [threading.Thread(target=bytes, args=(5_000,)) for _ in range(5)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
ctypes.CDLL(None).malloc_stats()
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert re.findall("^Arena.*", ran.stderr, re.MULTILINE) == ["Arena 0:"]
