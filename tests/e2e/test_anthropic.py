"""Whole conversations with a model by way of a server that speaks, refuses and bills as Anthropic's does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from agents.gateway import FailureKind
from tests.support.scene import Scene, open_scene
from tests.support.stub_anthropic import OVERLOADED, StubAnthropic
from tests.support.stub_model import Call, Reply, StubModel
from turns.endings import SENTENCES

MODEL = "anthropic:claude-sonnet-5-5"
CHOICE = Call("ask_choice", json.dumps({"question": "Which tea?", "options": ["green", "black"]}), id="toolu_2")


@pytest.fixture
async def anthropic(stub: StubModel, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StubAnthropic]:
    assert stub.url  # whose fixture puts back what the bot sets for the process
    server = StubAnthropic()
    await server.start()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-the-stub")
    yield server
    await server.stop()


@pytest.fixture
async def scene(anthropic: StubAnthropic) -> AsyncIterator[Scene]:
    async with open_scene(cast(Any, anthropic), model=MODEL) as opened:
        yield opened


async def test_it_answers_thinks_uses_tools_and_asks(scene: Scene, anthropic: StubAnthropic) -> None:
    anthropic.replies += [
        Reply("Hello.", thoughts="they greet me", chunk=3),
        Reply(thoughts="tell the hour", calls=(Call("current_time", "{}", id="toolu_1"),)),
        Reply("One moment.", thoughts="ask them", calls=(CHOICE,)),
        Reply("Green it is."),
        Reply("You are welcome."),
    ]
    assert (await scene.ask("Ada", "hello")).content == "Hello."
    scene.mention("Ada", "make tea")
    scene.press("Ada", await scene.card("Which tea?"), "1.")
    await scene.shows("Green it is.")
    await scene.at_rest()
    assert (await scene.ask("Ada", "thanks")).content == "You are welcome."
    # Within a run it is given back what it signed, and no later.
    assert "tell the hour" in json.dumps(anthropic.requests[3])
    told = json.dumps(anthropic.requests[4])
    assert not [thought for thought in ("they greet me", "tell the hour", "ask them") if thought in told]
    assert not [sent for sent in scene.pg.requests if "greet me" in str(sent.body) or "tell the hour" in str(sent.body)]


@pytest.mark.parametrize("behind", ["", "First words"])
async def test_an_overloaded_server_costs_one_sentence(scene: Scene, anthropic: StubAnthropic, behind: str) -> None:
    refusal = Reply(status=OVERLOADED, words="Overloaded")
    broken = Reply(behind, error={"type": "overloaded_error", "message": "Overloaded"})
    anthropic.replies += [broken] if behind else [refusal, refusal]
    question = scene.mention("Ada", "hello")
    answer = await scene.answer_to(question)
    assert answer.content.startswith(behind)
    assert "Overloaded" not in answer.content
    assert await scene.outcome(question) in ("unavailable", "busy")
    assert (await scene.ask("Ada", "and now?")).content == "I see."


async def test_an_answer_that_ends_before_it_says_what_it_used_counts_as_heard(
    scene: Scene, anthropic: StubAnthropic
) -> None:
    anthropic.replies.append(Reply(text := "word " * 300, cut_after=0))
    answer = await scene.answer_to(scene.mention("Ada", "hello"))
    await scene.at_rest()
    assert answer.content == text.strip()
    assert scene.bot.parts.limits.tokens_today >= sum(anthropic.billed[0]) + 300


@pytest.mark.parametrize(
    "words",
    [
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade.",
        "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
    ],
)
async def test_credit_that_is_used_up_is_not_taken_for_words_that_it_does_not_accept(
    scene: Scene, anthropic: StubAnthropic, words: str
) -> None:
    anthropic.replies.append(Reply(status=400, words=words))
    assert (await scene.ask("Ada", "hello")).content == SENTENCES[FailureKind.NO_CREDIT]
