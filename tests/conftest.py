"""What all tests share: an environment without the owner's settings, and event loops."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import pytest

from config import Settings
from tests.support.stub_responses import StubResponses
from tests.support.virtual_time import VirtualTimeLoop

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "DISCORD_BOT_TOKEN")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "virtual_time: its event loop skips all waiting")


def pytest_collection_finish() -> None:
    """What stays until the end is not looked through again and again: that takes an eighth of the time."""
    gc.set_threshold(100_000, 50, 50)


def pytest_asyncio_loop_factories(
    config: pytest.Config,  # noqa: ARG001 - pytest passes it by this name
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    virtual = item.get_closest_marker("virtual_time")
    return {"virtual": VirtualTimeLoop} if virtual else {"real": asyncio.new_event_loop}


@pytest.fixture
async def openai(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StubResponses]:
    """OpenAI's Responses API, to which `openai:` leads."""
    server = StubResponses()
    await server.start()
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-stub")
    try:
        yield server
    finally:
        await server.stop()


@pytest.fixture(autouse=True, scope="session")
def _no_settings_of_the_owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is set where the tests run does not decide how they end, nor do they touch what is kept there."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in (*map(str.upper, Settings.model_fields), *KEYS):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("STATE_DIR", str(tmp_path_factory.mktemp("state")))
        yield
