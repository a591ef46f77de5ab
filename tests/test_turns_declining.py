"""turns: what becomes of those that the agent may decline. Time skips."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agents.gateway import FailureKind
from conversation import MessageRecord
from decider import Decision, Reason
from discord_io.channel_wire import Posted
from tests.support.clock import NOON
from tests.support.fake_agent import Script
from tests.support.people import ANNA, BEN, BOT, CHANNEL, said
from tests.support.turns_bench import Bench, running
from tests.support.virtual_time import until
from turns.endings import SENTENCES, STOPPED
from turns.pending_turns import Unfinished
from turns.turn import MAX_REWORDED, Turn

pytestmark = pytest.mark.virtual_time

MAY_DECLINE = Decision(True, Reason.FOLLOWUP, tier=2, may_decline=True)


@pytest.fixture
async def bench() -> Bench:
    return Bench()


def doubtful(bench: Bench, author: int = ANNA, text: str = "shall we?") -> MessageRecord:
    """A message that is asked about though nobody called the bot."""
    message = bench.say(author, text)
    bench.turns.submit(replace(bench.question(message), decision=MAY_DECLINE))
    return message


def silences(bench: Bench) -> list[tuple[int, str, str]]:
    return [(message_id, d.reason, d.evidence) for message_id, d in bench.ended if d]


async def test_a_decline_leaves_nothing_but_its_cost_and_its_reason(bench: Bench) -> None:
    bench.script(Script(declines=" they\n talk \ud800to Ben" + "!" * 200))
    first = doubtful(bench)
    await bench.idle()
    ((message_id, reason, why),) = silences(bench)
    assert (message_id, reason, len(why)) == (first.message_id, Reason.DECLINED, 120)
    assert why.startswith("they talk ?to Ben!")
    assert (bench.wire.calls, bench.wire.typing, bench.spent, bench.history()) == ([], 0, [10], [])
    assert bench.pending.of(CHANNEL) == Unfinished()
    second = await bench.answered()
    assert bench.agent.requests[-1].transcript == [first, second]


async def test_declines_are_counted_until_the_bot_speaks(bench: Bench) -> None:
    bench.script(Script(declines=""), Script(failure=FailureKind.BUSY))
    for author in (ANNA, BEN):
        doubtful(bench, author)
        await bench.idle()
    conversation = bench.conversation
    assert (conversation.declines.in_a_row, set(conversation.declines.at)) == (2, {ANNA, BEN})
    doubtful(bench, BEN)
    await bench.idle()
    assert conversation.declines.in_a_row == 0


async def test_who_is_answered_with_somebody_who_called_is_not_left_to_the_agent(bench: Bench) -> None:
    gate = await running(bench)
    doubtful(bench, BEN)
    bench.ask(ANNA)
    gate.set()
    await bench.idle()
    assert [request.may_decline for request in bench.agent.requests] == [False, False]


@pytest.mark.parametrize("kind", [FailureKind.BUSY, FailureKind.EMPTY, FailureKind.LATE])
async def test_a_failure_is_told_to_nobody_who_did_not_call(bench: Bench, kind: FailureKind) -> None:
    bench.script(Script(failure=kind))
    message = doubtful(bench)
    await bench.idle()
    assert silences(bench) == [(message.message_id, Reason.DECLINE_FAILED, "")]
    assert not bench.wire.calls


async def test_where_the_conversation_has_grown_too_long_it_starts_afresh_silently(bench: Bench) -> None:
    await bench.answered()
    bench.script(Script(failure=FailureKind.TOO_LONG))
    doubtful(bench)
    await bench.idle()
    assert bench.history() == []
    assert bench.wire.texts == ["the answer"]


async def test_what_stood_already_when_it_failed_or_was_stopped_is_ended_as_ever(bench: Bench) -> None:
    bench.script(Script(first="Well", failure=FailureKind.BUSY))
    doubtful(bench)
    await bench.idle()
    assert bench.wire.texts == [f"Well\n\n-# {SENTENCES[FailureKind.BUSY]}"]
    bench.script(Script(first="Hm", gate=asyncio.Event()))
    doubtful(bench)
    await until(lambda: "Hm" in bench.wire.texts)
    assert bench.turns.stop(said(ANNA, "stop"), CHANNEL)
    await bench.idle()
    assert bench.wire.texts[-1] == f"Hm\n\n-# {STOPPED}"
    assert not silences(bench)


async def test_a_stop_before_the_first_word_is_answered_by_silence(bench: Bench) -> None:
    bench.script(Script(gate=asyncio.Event()))
    first = doubtful(bench)
    await until(lambda: bench.agent.requests)
    doubtful(bench)
    assert not bench.turns.stop(said(BEN, "stop"), CHANNEL)  # who cannot know that the agent is asked
    assert (stopped := bench.turns.stop(said(ANNA, "stop"), CHANNEL))
    assert not stopped.is_unprompted
    await bench.idle()
    assert silences(bench) == [(first.message_id, Reason.STOP, "")]
    assert not bench.wire.calls
    gate = await running(bench)
    doubtful(bench, BEN)
    assert bench.turns.stop(said(BEN, "stop"), CHANNEL)
    gate.set()
    await bench.idle()
    assert bench.wire.texts == ["the answer"]


def call(bench: Bench, message: MessageRecord) -> None:
    """Its author edits it so that it mentions the bot."""
    edited = replace(message, content=f"<@{BOT}> {message.content}")
    bench.conversations.revise(CHANNEL, edited)
    bench.turns.reworded(CHANNEL, edited)


async def test_who_calls_the_bot_by_an_edit_is_not_left_to_the_agent(bench: Bench) -> None:
    bench.script(Script(gate=asyncio.Event()))
    first = doubtful(bench)
    await until(lambda: bench.agent.requests)
    second = doubtful(bench, BEN)
    call(bench, first)
    call(bench, second)
    assert not any(question.decision.may_decline for question in bench.pending.of(CHANNEL).questions)
    await bench.idle()
    assert [request.may_decline for request in bench.agent.requests] == [True, False, False]
    assert bench.wire.texts == ["the answer", "the answer"]


async def test_who_calls_the_bot_when_it_is_not_asked_anew_any_more_is_not_declined(bench: Bench) -> None:
    gates = [asyncio.Event() for _ in range(MAX_REWORDED + 1)]
    bench.script(*(Script(declines="", gate=gate) for gate in gates))
    message = doubtful(bench)
    for number in range(MAX_REWORDED):
        await until(lambda: len(bench.agent.requests) == number + 1)  # noqa: B023 - awaited at once
        bench.turns.reworded(CHANNEL, message)
    await until(lambda: len(bench.agent.requests) == MAX_REWORDED + 1)
    call(bench, message)
    gates[-1].set()
    await bench.idle()
    assert bench.wire.texts == ["the answer"]
    assert not silences(bench)


async def test_a_shutdown_and_a_budget_that_is_spent_are_told_to_nobody_who_did_not_call(bench: Bench) -> None:
    bench.has_budget = False
    doubtful(bench)
    await bench.idle()
    bench.has_budget = True
    bench.script(Script(gate=asyncio.Event()))
    doubtful(bench)
    await until(lambda: bench.agent.requests)
    await bench.turns.drain(0)
    assert [reason for _, reason, _ in silences(bench)] == [Reason.DAILY_CAP, Reason.SHUTTING_DOWN]
    assert not bench.wire.calls


async def test_what_it_does_before_it_speaks_is_not_shown_and_neither_is_typing(bench: Bench) -> None:
    gate = asyncio.Event()
    bench.script(Script(first="", gate=gate))
    doubtful(bench)
    await until(lambda: bench.agent.requests)
    bench.agent.requests[-1].tell_stage("searching the history")
    await asyncio.sleep(1)
    assert not bench.wire.calls
    assert not bench.wire.typed
    gate.set()
    await bench.idle()
    assert bench.wire.texts == ["the answer"]


async def test_one_of_which_a_part_was_posted_by_an_earlier_process_is_not_declined(bench: Bench) -> None:
    message = bench.say(ANNA, "shall we?")
    question = replace(bench.question(message), decision=MAY_DECLINE)
    bench.turns.resume(CHANNEL, Turn([question], adopted=[Posted(8_900_000, NOON, "the an")]), [])
    await bench.idle()
    bench.turns.resume(CHANNEL, Turn([question], adopted=[]), [])
    await bench.idle()
    assert [request.may_decline for request in bench.agent.requests] == [False, True]
