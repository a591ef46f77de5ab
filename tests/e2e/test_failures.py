"""A model that fails, stalls or rambles costs the person who waits one short sentence, and the bot goes on."""

from __future__ import annotations

import asyncio

import pytest

from agents.gateway import FailureKind
from agents.general import GeneralAgent
from state.agent_state import GENERAL
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Reply, StubModel
from turns.ending_texts import CUT, RESTARTING, SENTENCES

GARBAGE = b"data: {{{ not json\n\ndata: [DONE]\n\n"
FAILURES = {
    "401": (Reply(status=401), FailureKind.MISCONFIGURED),
    "404": (Reply(status=404), FailureKind.MISCONFIGURED),
    "400": (Reply(status=400), FailureKind.REJECTED),
    "429": (Reply(status=429), FailureKind.BUSY),
    "500": (Reply(status=500), FailureKind.UNAVAILABLE),
    "empty": (Reply(""), FailureKind.EMPTY),
    "blank": (Reply("\u200b \n"), FailureKind.EMPTY),
    "garbage": (Reply(raw=GARBAGE), FailureKind.UNAVAILABLE),
    "nothing at all": (Reply(raw=b""), FailureKind.EMPTY),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_model_that_fails_costs_one_sentence(scene: Scene, name: str) -> None:
    reply, kind = FAILURES[name]
    scene.stub.default = lambda _: reply
    assert (await scene.ask("Ada", "hello")).content == SENTENCES[kind]
    await _works_again(scene)
    assert len(scene.journal.find("agent_failed")) == 1


async def test_half_an_answer_stays_and_says_that_it_is_half(scene: Scene) -> None:
    scene.stub.replies.append(Reply("First words, and never the rest.", chunk=12, cut_after=1))
    answer = await scene.ask("Ada", "hello")
    assert answer.content == f"First words,\n\n-# {SENTENCES[FailureKind.UNAVAILABLE]}"
    await _works_again(scene)


@pytest.mark.parametrize("started", [False, True])
async def test_a_model_that_hangs_is_given_up(scene: Scene, started: bool) -> None:
    _agent(scene)._stall = 0.2
    never = asyncio.Event()
    reply = Reply("First words, and never the rest.", gate=never, chunk=12) if started else Reply("x", before=never)
    scene.stub.replies.append(reply)
    answer = await scene.ask("Ada", "hello")
    sentence = SENTENCES[FailureKind.LATE]
    assert answer.content == (f"First words,\n\n-# {sentence}" if started else sentence)
    await _works_again(scene)


async def test_a_model_that_never_ends_is_cut(scene: Scene) -> None:
    scene.stub.replies.append(Reply("On and on: ", endless=True))
    question = scene.mention("Ada", "hello")
    assert await scene.outcome(question) == "answered"
    assert scene.said()[-1].content.endswith(f"\n\n-# {CUT}")
    assert 6 <= len(scene.said()) <= 8
    await scene.ask("Ada", "and now?", channel="help")


async def test_the_log_says_what_the_channel_does_not(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply(status=401)
    await scene.ask("Ada", "hello")
    (entry,) = scene.journal.find("agent_failed", kind=FailureKind.MISCONFIGURED, level="error")
    assert "401" in entry["detail"]


async def test_the_second_model_answers_where_the_first_fails(stub: StubModel) -> None:
    async with open_scene(stub, model="openai-chat:first,openai-chat:second") as scene:
        stub.default = lambda body: Reply("from the second") if body["model"] == "second" else Reply(status=500)
        assert (await scene.ask("Ada", "hello")).content == "from the second"
        stub.default = lambda body: Reply("from the first") if body["model"] == "first" else Reply(status=500)
        assert (await scene.ask("Ada", "and now?")).content == "from the first"


async def test_all_models_failing_costs_one_sentence(stub: StubModel) -> None:
    async with open_scene(stub, model="openai-chat:first,openai-chat:second") as scene:
        stub.default = lambda _: Reply(status=429)
        assert (await scene.ask("Ada", "hello")).content == SENTENCES[FailureKind.BUSY]
        assert {body["model"] for body in stub.requests} == {"first", "second"}
        await _works_again(scene)


async def test_a_failed_question_is_still_known_to_the_next_one(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply(status=500)
    await scene.ask("Ada", "my cat is called Tim")
    await _works_again(scene)
    assert "my cat is called Tim" in scene.told()


async def test_a_hanging_model_is_told_of_when_the_bot_is_stopped(scene: Scene) -> None:
    scene.stub.replies.append(Reply("First words, and never the rest.", gate=asyncio.Event(), chunk=12))
    scene.stub.replies.append(Reply("never", before=asyncio.Event()))
    streaming = scene.mention("Ada", "hello")
    await scene.streaming()
    waiting = scene.mention("Ben", "hello", channel="help")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    queued = scene.mention("Chloe", "me too")
    await scene.decision(queued)
    await scene.bot.turns.drain(0.01)
    assert (await scene.answer_to(streaming)).content == f"First words,\n\n-# {RESTARTING}"
    assert (await scene.answer_to(waiting)).content == RESTARTING
    assert (await scene.answer_to(queued)).content == RESTARTING


def _agent(scene: Scene) -> GeneralAgent:
    agent = scene.bot.turns._answering._team[GENERAL]
    assert isinstance(agent, GeneralAgent)
    return agent


async def _works_again(scene: Scene) -> None:
    assert not [message for message in scene.said() if "provider-words" in message.content]
    assert len(scene.said()) == 1
    scene.stub.default = lambda _: Reply("I am back.")
    assert (await scene.ask("Ada", "and now?")).content == "I am back."
