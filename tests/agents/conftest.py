"""The stub model server, with pydantic-ai's models pointed at it, and a remote agent."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic_ai.models import Model

from agents.models import build_model
from tests.support.remote_agent import RemoteAgent
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


@pytest.fixture
async def model(stub: StubModel) -> AsyncIterator[Model]:
    assert stub.url
    async with build_model("MODEL", "openai-chat:main") as model:
        yield model


@pytest.fixture
async def remote() -> AsyncIterator[RemoteAgent]:
    server = RemoteAgent()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
