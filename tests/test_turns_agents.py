"""turns.py with several agents: whoever is named answers, is told the questions alone, and keeps what it needs back."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agents.coordinator import Choice, Why
from agents.gateway import FailureKind
from state.agent_state import GENERAL, UMSState
from state.optout import redacted
from tests.support.fake_agent import Script
from tests.support.people import ANNA, BEN, CHANNEL, said
from tests.support.turns_bench import Bench, answers
from tests.support.virtual_time import until
from turns.endings import REMOTE_SENTENCES, STOPPED
from turns.pending_turns import Begun, Unfinished
from turns.turn import Ready, Turn

pytestmark = pytest.mark.virtual_time

STATE, LATER = (UMSState(ums_conversation_id=name) for name in ("conv-1", "conv-2"))


@pytest.fixture
async def bench() -> Bench:
    return Bench(has_docs=True)


async def test_who_is_named_is_told_the_questions_and_nothing_else(bench: Bench) -> None:
    bench.say(BEN, "my salary is a secret")
    bench.docs.scripts.append(Script("page 12", state=STATE))
    question = await bench.answered(text="docs: where does it stand?")
    (request,) = bench.docs.requests
    assert (list(request.history), list(request.transcript), request.questions) == ([], [], [question])
    assert request.state is None
    assert not bench.agent.requests
    assert bench.wire.texts == ["page 12"]
    assert bench.picked == [(1, Choice("docs", Why.NAMED))]


async def test_what_it_needs_back_it_gets_back(bench: Bench) -> None:
    for state in (STATE, LATER):
        bench.docs.scripts.append(Script(state=state))
        await bench.answered(text="docs: and now?")
    await bench.answered(text="docs: and then?")
    assert [request.state for request in bench.docs.requests] == [None, STATE, LATER]


async def test_the_general_agent_never_hears_of_it(bench: Bench) -> None:
    await bench.answered(text="one")
    bench.docs.scripts.append(Script("page 12", state=STATE))
    await bench.answered(text="docs: where does it stand?")
    overheard = bench.say(BEN, "tea is fine")
    last = await bench.answered(text="ask yourself what Ben drinks")
    _, request = bench.agent.requests
    assert list(request.transcript) == [overheard, last]
    assert answers(list(request.history)) == ["the answer"]
    assert answers(bench.history()) == ["the answer", "the answer"]


async def test_each_is_told_what_people_mentioned_up_to_the_question_whoever_they_talked_to(bench: Bench) -> None:
    bench.answering._team._shares = True
    bench.say(BEN, "tea is fine")
    asked = await bench.answered(text="docs: and what does Ben drink in Paris?")
    bench.ask(text="ask yourself where he is")
    bench.say(BEN, "in Rome")
    await bench.idle()
    both = {"last_mentioned_user": "Ben", "last_mentioned_location": "Paris"}
    assert [request.shared for request in (*bench.docs.requests, *bench.agent.requests)] == [both, both]
    bench.conversations.forget_messages(CHANNEL, [asked.message_id])
    await bench.answered(text="docs: and now?")
    assert bench.docs.requests[-1].shared == {"last_mentioned_location": "Rome"}


async def test_nothing_of_a_private_question_is_told_to_another(bench: Bench) -> None:
    bench.answering._team._shares = True
    asked = said(ANNA, "what does Ben do in Paris, see https://a.example")
    bench.conversations.start(CHANNEL, [said(BEN), redacted(asked)])
    bench.turns.submit(replace(bench.question(asked), is_private=True))
    await bench.idle()
    assert bench.agent.requests[-1].questions == [asked]
    await bench.answered(BEN, text="docs: and now?")
    assert [request.shared for request in (*bench.agent.requests, *bench.docs.requests)] == [{}, {}]


async def test_who_may_not_read_the_history_is_answered_by_none_that_remembers_it(bench: Bench) -> None:
    bench.answering._team._shares = True
    await bench.answered(text="docs: what does Ben do in Paris?")
    asked = bench.say(BEN, "docs: what was I asked about?")
    bench.newcomers = frozenset({BEN})
    bench.turns.submit(bench.question(asked))
    await bench.idle()
    [request] = bench.agent.requests
    assert (request.questions, request.said, request.shared) == ([asked], {asked.message_id: asked}, {})


@pytest.mark.parametrize("kind", REMOTE_SENTENCES)
async def test_one_that_fails_keeps_its_conversation(bench: Bench, kind: FailureKind) -> None:
    bench.docs.scripts.append(Script(failure=kind, state=STATE))
    await bench.answered(text="docs: where does it stand?")
    assert bench.wire.texts == [f"I asked the agent docs. {REMOTE_SENTENCES[kind]}"]
    await bench.answered(text="docs: and now?")
    assert bench.docs.requests[-1].state == STATE


async def test_one_that_is_stopped_keeps_its_conversation(bench: Bench) -> None:
    bench.docs.scripts.append(Script(first="page", gate=asyncio.Event()))
    bench.docs.begun = STATE
    bench.ask(text="docs: where does it stand?")
    await until(lambda: bench.wire.texts == ["page"])
    bench.turns.stop(bench.say(ANNA, "stop"), CHANNEL)
    await bench.idle()
    assert bench.wire.texts == [f"page\n\n-# {STOPPED}"]
    await bench.answered(text="docs: and now?")
    assert bench.docs.requests[-1].state == STATE


async def test_who_gave_the_last_answer_goes_on_and_a_reply_is_for_whom_it_replies_to(bench: Bench) -> None:
    await bench.answered(text="docs: where does it stand?")
    await bench.answered(text="and why there?")
    assert [choice for _, choice in bench.picked] == [Choice("docs", Why.NAMED), Choice("docs", Why.LAST_ANSWERED)]
    await bench.answered(BEN, text="hello")
    assert bench.picked[-1][1] == Choice(GENERAL, Why.UNSURE)


@pytest.mark.parametrize("by_author", [True, False])
async def test_what_was_deleted_or_forgotten_is_not_gone_on_with(bench: Bench, by_author: bool) -> None:
    bench.docs.scripts.append(Script(state=STATE))
    question = await bench.answered(text="docs: my salary is a secret, is it?")
    if by_author:
        bench.conversations.forget_author(CHANNEL, ANNA)
    else:
        bench.conversations.forget_messages(CHANNEL, [question.message_id])
    await bench.answered(BEN, text="docs: and now?")
    assert bench.docs.requests[-1].state is None


async def test_a_restart_knows_who_had_answered(bench: Bench) -> None:
    message = bench.say(ANNA, "docs: where does it stand?")
    question = bench.question(message)
    begun = Begun((question.message.message_id,), (), Ready("page 12", agent="docs", state=STATE))
    bench.pending.adopt(CHANNEL, Unfinished((question,), begun))
    bench.turns.resume(CHANNEL, Turn([question], adopted=(), ready=begun.ready), [])
    await bench.idle()
    assert bench.wire.texts == ["page 12"]
    assert not bench.docs.requests
    await bench.answered(text="docs: and now?")
    assert bench.docs.requests[-1].state == STATE


async def test_what_was_said_in_one_go_is_answered_in_one_turn_by_whom_any_of_it_names(bench: Bench) -> None:
    go = [replace(bench.question(bench.say(ANNA, text)), burst=7) for text in ("docs: where", "does it stand")]
    other = bench.question(bench.say(BEN, "docs: and the rest?"))
    for question in (*go, other):
        bench.turns.submit(question)
    await bench.idle()
    asked = [[message.content for message in request.questions] for request in bench.docs.requests]
    assert asked == [["docs: where", "does it stand"], ["docs: and the rest?"]]
