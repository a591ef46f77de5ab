"""The stub model server, and pydantic-ai's models pointed at it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.stub_model import StubModel


@pytest.fixture
async def stub(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StubModel]:
    server = StubModel()
    await server.start()
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-stub")
    try:
        yield server
    finally:
        await server.stop()
