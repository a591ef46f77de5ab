"""OPENAI_STATE, in Discord: the bot goes on with what OpenAI remembers, and with nothing that is gone there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.lives import kill, life, open_stage
from tests.support.scene import Scene
from tests.support.stub_model import Reply, StubModel
from tests.support.stub_responses import StubResponses


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Scene]:
    async with open_stage(StubModel(), tmp_path / "state") as opened:
        yield opened


@pytest.mark.parametrize("kind", ["response", "conversation"])
async def test_what_was_said_is_sent_once(stage: Scene, openai: StubResponses, kind: str) -> None:
    openai.default = lambda _: Reply("I see.")
    async with life(stage, model="openai:gpt-5", openai_state=kind):
        first = stage.mention("Ada", "the wifi is bluebell")
        await stage.answer_to(first)
        await stage.ask("Ada", "and the router?")
        assert "bluebell" not in str(openai.requests[-1]["input"])
        await kill(stage)
    async with life(stage, model="openai:gpt-5", openai_state=kind):
        await stage.ask("Ada", "where is it?")
        # Of a conversation a restart does not know whether it has got more since.
        assert ("bluebell" in str(openai.requests[-1]["input"])) == (kind == "conversation")
        assert "bluebell" in str(openai.seen[-1])
        await stage.delete(first)
        await stage.ask("Ada", "and now?")
        assert "bluebell" not in str(openai.seen[-1])
        assert "router" in str(openai.seen[-1])
