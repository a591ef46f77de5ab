"""What all tests share: an environment without the owner's settings, event loops, and what makes them quick."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from compileall import compile_file
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from tests.support.stub_responses import StubResponses

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "DISCORD_BOT_TOKEN")
HERE = Path(__file__).parent
ALL_SLOW = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.slow\b", re.MULTILINE)
MEMORY, ENOUGH_BYTES = "/dev/shm", 1 << 30  # noqa: S108 - Linux's disk in memory; in a container it may be tiny

# What is loaded stays until the end: to look through it again and again would take an eighth of the time.
gc.set_threshold(100_000, 50, 50)
# Several threads each, in several workers, would spend their time waiting for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure() -> None:
    # To rewrite the tests' asserts takes as long as all else of loading them.
    sys.dont_write_bytecode = False
    if "TMPDIR" not in os.environ and _is_roomy(MEMORY):
        # A real disk is waited for longer than it takes to run the tests that write to it.
        tempfile.tempdir = MEMORY


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """For `-n auto`: a quick test waits for part of its time, for sockets and threads; slow ones start processes."""
    return (os.cpu_count() or 1) * 3 // 2 if config.option.markexpr == "not slow" else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What a module loads whose tests are all slow takes seconds, in each worker."""
    return True if config.option.markexpr == "not slow" and _is_all_slow(collection_path) else None


def pytest_collection(session: pytest.Session) -> None:
    """What nobody has compiled yet, each worker compiles a part of, and reads the other parts."""
    if worker := getattr(session.config, "workerinput", None):
        part = slice(int(worker["workerid"][2:]), None, worker["workercount"])
        modules = sorted(path for depth in ("", "[!.]*/", "[!.]*/*/") for path in HERE.parent.glob(f"{depth}*.py"))
        for path in [path for path in modules if HERE not in path.parents][part]:
            compile_file(path, quiet=2)
        for path in [path for path in modules if path.match("tests/*/test_*.py") and not _is_all_slow(path)][part]:
            with suppress(Exception, pytest.skip.Exception):  # it is reported when the tests are collected
                import_module(f"tests.{path.parent.name}.{path.stem}")  # which also rewrites its asserts


def _is_all_slow(path: Path) -> bool:
    return path.suffix == ".py" and ALL_SLOW.search(path.read_text()) is not None


def _is_roomy(folder: str) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > ENOUGH_BYTES


def pytest_collection_finish() -> None:
    import hypothesis  # noqa: F401 - pytest's plugin loads it at the latest when all is over; frozen things confuse it

    gc.freeze()


def pytest_asyncio_loop_factories(
    config: pytest.Config,  # noqa: ARG001 - pytest passes it by this name
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    virtual = item.get_closest_marker("virtual_time")
    return {"virtual": VirtualTimeLoop} if virtual else {"real": asyncio.new_event_loop}


# What distributes the tests to the workers has no need of what these load.


@pytest.fixture(autouse=True, scope="session")
def _no_settings_of_the_owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is set where the tests run does not decide how they end, nor do they touch what is kept there."""
    from config import Settings

    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in (*map(str.upper, Settings.model_fields), *KEYS):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("STATE_DIR", str(tmp_path_factory.mktemp("state")))
        monkeypatch.setenv("BURST_SECONDS", "0")  # nobody is heard out, but in the tests of that
        yield


@pytest.fixture(autouse=True, scope="session")
def _done_once() -> Iterator[None]:
    from tests.support.once import done_once

    with done_once():
        yield


@pytest.fixture
async def openai(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StubResponses]:
    """OpenAI's Responses API, to which `openai:` leads."""
    from tests.support.stub_responses import StubResponses

    server = StubResponses()
    await server.start()
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-stub")
    try:
        yield server
    finally:
        await server.stop()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """discord.py waits whole seconds before it tries again; here it does not."""
    import discord

    monkeypatch.setattr(discord.http, "asyncio", _Impatient())


class _Impatient:
    """asyncio as discord.http knows it, without the waiting."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, _seconds: float) -> None:
        await asyncio.sleep(0)
