"""What the end-to-end tests share: the stub model and the bot in its playground."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import discord
import pytest

from followup.model import FollowupModel, ModelFileError
from tests.support.lives import open_stage
from tests.support.remote_agent import RemoteAgent
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import StubModel
from tests.support.three_shards import open_three


@pytest.fixture
async def stub(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StubModel]:
    """A model server, and the environment in which `openai-chat:` leads to it."""
    # create_bot sets these for the whole process; afterwards they are what they were.
    monkeypatch.setattr(discord.http.Route, "BASE", discord.http.Route.BASE)
    monkeypatch.setattr(
        discord.gateway.DiscordWebSocket, "DEFAULT_GATEWAY", discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY
    )
    monkeypatch.setattr(discord.asset.Asset, "BASE", discord.asset.Asset.BASE)
    server = StubModel()
    await server.start()
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-stub")
    yield server
    await server.stop()


@pytest.fixture
async def scene(stub: StubModel) -> AsyncIterator[Scene]:
    async with open_scene(stub) as opened:
        yield opened


@pytest.fixture
async def stage(stub: StubModel, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    """A Discord in which the bot can live several times. Its parameter: what is special about that Discord."""
    async with open_stage(stub, tmp_path / "state", **getattr(request, "param", {})) as opened:
        yield opened


@pytest.fixture
async def three_shards(stub: StubModel, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    """A Discord that wants three shards, in which the bot can live several times. Its parameter: by which clock."""
    async with open_three(stub, tmp_path / "state", getattr(request, "param", None)) as opened:
        yield opened


@pytest.fixture
async def docs() -> AsyncIterator[RemoteAgent]:
    """A remote agent."""
    agent = RemoteAgent()
    await agent.start()
    yield agent
    await agent.stop()


@pytest.fixture
def rules_of_thumb(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bot finds no trained model: what it then is unsure of does not depend on any training."""

    def load_model() -> FollowupModel:
        raise ModelFileError("the test took it away.")

    monkeypatch.setattr("decider.load_model", load_model)
