"""What of its prompts a provider has in its cache over a conversation of 30 turns, and is paid a tenth or so for."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from itertools import pairwise, takewhile
from typing import Any, cast

import pytest

from tests.support.scene import Scene, open_scene
from tests.support.stub_anthropic import MIN_CACHED, StubAnthropic
from tests.support.stub_model import Body, Call, Reply, StubModel

TURNS = 30
QUESTION = "what would you do in my place, if it rained all day in Bern and the museum was closed?"
ANSWER = "I would take the train to Thun, walk along the lake as far as the castle, and have a coffee there. " * 5
STEP = 128  # tokens, in which OpenAI counts what it has cached

pytestmark = pytest.mark.slow


@pytest.fixture
async def anthropic(stub: StubModel, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StubAnthropic]:
    assert stub.url
    server = StubAnthropic()
    await server.start()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-the-stub")
    yield server
    await server.stop()


async def converse(scene: Scene, stub: StubModel | StubAnthropic) -> None:
    """Thirty turns of three people, who talk to each other in between; every fifth uses a tool."""
    for turn in range(TURNS):
        if turn % 5 == 4:
            stub.replies.append(Reply(calls=(Call("current_time", "{}", id=f"toolu_{turn}"),)))
        stub.replies.append(Reply(f"{turn}. {ANSWER}"))
        scene.say("Chloe", f"<@{scene.pg.person('Ben')}> lunch at {turn % 12} o'clock, or later?")
        await scene.ask(("Ada", "Ben")[turn % 2], f"{turn}: {QUESTION}")


async def test_anthropics_cache_is_told_what_to_keep_and_read_from(anthropic: StubAnthropic) -> None:
    async with open_scene(cast(Any, anthropic), model="anthropic:claude-sonnet-5-5") as scene:
        await converse(scene, anthropic)
    read, written, rest = map(sum, zip(*anthropic.billed, strict=True))
    share = read / (read + written + rest)
    told(f"Anthropic: {share:.1%} of {read + written + rest:,} tokens read, {written:,} written, {rest:,} neither")
    assert share > 0.8
    assert len(anthropic.billed) == TURNS + TURNS // 5


async def test_what_openai_is_sent_begins_as_what_it_was_sent_before(stub: StubModel) -> None:
    async with open_scene(stub) as scene:
        await converse(scene, stub)
    prompts = ["", *map(as_prompt, stub.requests)]
    total = sum(len(prompt) // 4 for prompt in prompts)
    known = [len(commonprefix(pair)) // 4 for pair in pairwise(prompts)]
    cached = sum(tokens // STEP * STEP for tokens in known if tokens >= MIN_CACHED)
    told(f"OpenAI: {cached / total:.1%} of {total:,} tokens")
    assert cached / total > 0.8


def commonprefix(pair: tuple[str, str]) -> str:
    same = takewhile(lambda both: both[0] == both[1], zip(*pair, strict=False))
    return "".join(one for one, _ in same)


def told(line: str) -> None:
    """For docs/measurements.md, with `pytest -s`."""
    sys.stdout.write(f"\n{line}\n")


def as_prompt(body: Body) -> str:
    """In the order in which the provider reads it."""
    return json.dumps([body.get("tools"), body["messages"]])
