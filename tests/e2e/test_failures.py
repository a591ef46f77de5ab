"""A model that fails, stalls or rambles costs the person who waits one short sentence, and the bot goes on."""

from __future__ import annotations

import asyncio

import pytest

from agents.gateway import FailureKind
from agents.general import GeneralAgent
from state.agent_state import GENERAL
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Reply, StubModel
from turns.endings import RESTARTING, SENTENCES

GARBAGE = b"data: {{{ not json\n\ndata: [DONE]\n\n"
FAILURES = {
    "401": (Reply(status=401), FailureKind.MISCONFIGURED),
    "no credit": (Reply(status=429, code="insufficient_quota"), FailureKind.NO_CREDIT),
    "500": (Reply(status=500), FailureKind.UNAVAILABLE),
    "garbage": (Reply(raw=GARBAGE), FailureKind.UNAVAILABLE),
    "nothing at all": (Reply(raw=b""), FailureKind.EMPTY),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_model_that_fails_costs_one_sentence_and_the_log_says_why(scene: Scene, name: str) -> None:
    reply, kind = FAILURES[name]
    scene.stub.default = lambda _: reply
    assert (await scene.ask("Ada", "my cat is called Tim")).content == SENTENCES[kind]
    await _works_again(scene)
    assert "my cat is called Tim" in scene.told()
    (entry,) = scene.journal.find("agent_failed", kind=kind)
    assert name != "401" or "401" in entry["detail"]


async def test_a_model_that_hangs_is_given_up(scene: Scene) -> None:
    agent = scene.bot.turns._maker._answering._team[GENERAL]
    assert isinstance(agent, GeneralAgent)
    patience, agent._stall = agent._stall, 0.01
    never = asyncio.Event()
    scene.stub.default = lambda _: Reply(before=never)
    assert (await scene.ask("Ada", "hello")).content == SENTENCES[FailureKind.LATE]
    agent._stall = patience
    await _works_again(scene)


async def test_the_second_model_answers_where_the_first_fails(stub: StubModel) -> None:
    async with open_scene(stub, model="openai-chat:first,openai-chat:second") as scene:
        stub.default = lambda body: Reply("second") if body["model"] == "second" else Reply(status=500)
        assert (await scene.ask("Ada", "hello")).content == "second"
        stub.default = lambda body: Reply("first") if body["model"] == "first" else Reply(status=500)
        assert (await scene.ask("Ada", "and now?")).content == "first"


async def test_a_hanging_model_is_told_of_when_the_bot_is_stopped(scene: Scene) -> None:
    scene.halted()
    scene.held()
    streaming = scene.mention("Ada", "hello")
    await scene.streaming()
    waiting = scene.mention("Ben", "hello", channel="help")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    await scene.bot.turns.drain(0.01)
    assert (await scene.answer_to(streaming)).content == f"First words,\n\n-# {RESTARTING}"
    assert (await scene.answer_to(waiting)).content == RESTARTING


async def _works_again(scene: Scene) -> None:
    assert not [message for message in scene.said() if "provider-words" in message.content]
    assert len(scene.said()) == 1
    scene.stub.default = lambda _: Reply("I am back.")
    assert (await scene.ask("Ada", "and now?")).content == "I am back."
