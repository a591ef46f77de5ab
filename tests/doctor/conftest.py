"""What the doctor's tests share: a model server on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.cluster.conftest import join
from tests.support.redis_server import redis_url
from tests.support.stub_model import StubModel

__all__ = ["join", "redis_url"]


@pytest.fixture
async def stub(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StubModel]:
    """A model server, and the environment in which `openai-chat:` leads to it."""
    server = StubModel()
    await server.start()
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-stub")
    yield server
    await server.stop()
