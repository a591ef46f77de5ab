"""turns.py: every question ends in exactly one visible outcome. Time is the event loop's, and skips."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from conversation import MessageRecord
from decider import Decision, Reason
from state.message import NOBODY
from tests.support.fake_agent import INTERRUPTED_TOKENS, Script
from tests.support.people import ANNA, BEN, CHANNEL, CLEO, said
from tests.support.turns_bench import Bench, answers, asked, running
from tests.support.virtual_time import settle, until
from turns.endings import STOPPED

pytestmark = pytest.mark.virtual_time

FOLLOWUP = Decision(True, Reason.FOLLOWUP, tier=2)


@pytest.fixture
async def bench() -> Bench:
    return Bench()


# The way of a turn


async def test_a_question_is_answered_with_a_reply_and_remembered(bench: Bench) -> None:
    question = await bench.answered()
    (call,) = bench.wire.calls
    assert (call.kind, call.text, call.reply_to) == ("send", "the answer", question.message_id)
    assert answers(bench.history()) == ["the answer"]
    assert bench.spent == [10]
    conversation = bench.conversations.get(CHANNEL)
    assert conversation
    assert conversation.passed_over is NOBODY, "no empty set of its own"


async def test_the_agent_is_given_history_transcript_place_and_time(bench: Bench) -> None:
    overheard = bench.say(BEN, "tea is fine")
    first = await bench.answered(text="one")
    bench.clock.advance(30)
    second = await bench.answered(text="two")
    one, two = bench.agent.requests
    assert (one.history, one.transcript, one.questions) == ([], [overheard, first], [first])
    assert answers(list(two.history)) == ["the answer"]
    assert (two.transcript, two.questions, two.now) == ([second], [second], bench.clock.now)
    assert (two.place.bot_name, two.place.guild, two.place.channel) == ("Parley", "The Guild", "general")


async def test_the_answer_streams_into_the_channel(bench: Bench) -> None:
    gate = asyncio.Event()
    bench.script(Script("Hello there", first="Hello", gate=gate))
    bench.ask()
    await until(lambda: bench.wire.texts == ["Hello"])
    gate.set()
    await bench.idle()
    assert bench.wire.texts == ["Hello there"]


async def test_questions_that_come_meanwhile_are_taken_together_by_the_next_turn(bench: Bench) -> None:
    gate = await running(bench)
    bench.ask(ANNA, "two")
    last = bench.ask(BEN, "three")
    gate.set()
    await bench.idle()
    assert asked(bench) == [["one"], ["two", "three"]]
    assert [call.reply_to for call in bench.wire.calls][-1] == last.message_id
    conversation = bench.conversation
    assert conversation.messages[-1].addressees == {ANNA, BEN}


async def test_channels_do_not_wait_for_each_other(bench: Bench) -> None:
    bench.script(Script(gate=asyncio.Event()))
    bench.ask(channel=1)
    await until(lambda: bench.agent.requests)
    bench.ask(channel=2)
    await until(lambda: 2 in bench.wires and bench.wires[2].texts == ["the answer"])
    assert bench.wires[1].texts == []
    await bench.turns.drain(0)


async def test_a_queue_lives_no_longer_than_its_turns_and_keeps_the_conversation_open(bench: Bench) -> None:
    gate = await running(bench)
    bench.clock.advance(600)
    assert bench.conversations.sweep() == 0
    gate.set()
    await bench.idle()
    assert len(bench.turns) == 0
    assert answers(bench.history()) == ["the answer"]
    bench.clock.advance(61)
    assert bench.conversations.sweep() == 1


async def test_many_channels_later_no_queue_is_left(bench: Bench) -> None:
    for channel in range(200):
        bench.ask(channel=channel)
    assert len(bench.turns) == 200
    await bench.idle()
    assert len(bench.turns) == 0
    assert all(wire.texts == ["the answer"] for wire in bench.wires.values())


# A conversation's start


async def test_at_the_start_the_model_is_told_what_was_said_before(bench: Bench) -> None:
    bench.before = [said(BEN, "earlier", message_id=5)]
    question = await bench.answered(starts=True)
    await bench.answered()
    assert bench.recalled == [question.message_id]
    assert bench.agent.requests[0].transcript == [*bench.before, question]


@pytest.mark.parametrize(("seconds", "recalled"), [(1.4, True), (1.6, False)])
async def test_the_history_is_waited_for_one_and_a_half_seconds(bench: Bench, seconds: float, recalled: bool) -> None:
    bench.before, bench.history_takes = [said(BEN, "earlier", message_id=5)], seconds
    await bench.answered(starts=True)
    assert len(bench.agent.requests[0].transcript) == (2 if recalled else 1)
    assert bench.wire.texts == ["the answer"]


# Stop


async def test_who_asked_can_stop_the_answer_and_what_stood_stays_and_is_remembered(bench: Bench) -> None:
    await running(bench, first="The beginning")
    assert bench.turns.stop(said(ANNA, "Stop!"), CHANNEL)
    await bench.idle()
    assert bench.wire.texts == [f"The beginning\n\n-# {STOPPED}"]
    assert answers(bench.history()) == ["The beginning"]
    assert bench.spent == [INTERRUPTED_TOKENS]


async def test_a_stranger_cannot_stop_it(bench: Bench) -> None:
    gate = await running(bench)
    assert not bench.turns.stop(said(BEN, "stop"), CHANNEL)
    gate.set()
    await bench.idle()
    assert bench.wire.texts == ["the answer"]


async def test_stop_takes_ones_waiting_questions_along_and_nobody_elses(bench: Bench) -> None:
    await running(bench)
    bench.ask(ANNA, "two")
    bench.ask(BEN, "three")
    assert bench.turns.stop(said(ANNA, "cancel"), CHANNEL)
    await bench.idle()
    assert asked(bench) == [["one"], ["three"]]
    assert bench.wire.texts == [STOPPED, "the answer"]


async def test_whose_part_in_a_turn_ends_before_its_first_word_is_told_nothing_of_that(bench: Bench) -> None:
    gate = await running(bench)
    bench.ask(BEN, "two")
    bench.ask(ANNA, "three")
    bench.script(Script(gate=asyncio.Event()))
    gate.set()
    await until(lambda: len(bench.agent.requests) == 2)
    assert (stopped := bench.turns.stop(said(ANNA, "never mind"), CHANNEL))
    assert [question.message.content for question in stopped.silently] == ["three"]
    assert (stopped := bench.turns.stop(said(BEN, "never mind"), CHANNEL))
    assert not stopped.silently
    await bench.idle()
    assert bench.wire.texts == ["the answer", STOPPED]


async def test_where_nothing_is_asked_stop_is_a_word_like_any_other(bench: Bench) -> None:
    assert not bench.turns.stop(said(ANNA, "stop"), CHANNEL)
    await running(bench)
    assert not bench.turns.stop(said(ANNA, "where does the bus stop"), CHANNEL)
    await bench.turns.drain(0)


async def test_stopped_before_it_has_begun_the_agent_is_never_asked(bench: Bench) -> None:
    bench.ask(ANNA, "one")
    await until(lambda: bench.turns.stop(said(ANNA, "stop"), CHANNEL))
    await bench.idle()
    assert (asked(bench), bench.wire.texts) == ([], [STOPPED])


async def test_whoever_manages_messages_ends_all_that_runs_and_waits(bench: Bench) -> None:
    await running(bench, first="The beginning")
    bench.ask(ANNA, "two")
    bench.ask(BEN, "three")
    bench.ask(BEN, "four")
    assert (stopped := bench.turns.stop(said(CLEO, "that's enough"), CHANNEL, manages=True))
    assert (stopped.tells_off, stopped.in_words(CLEO)) == (True, "I ended the answers to Anna and Ben")
    assert [question.message.content for question in stopped.silently] == ["two", "three"]
    await bench.idle()
    await until(lambda: len(bench.wire.texts) == 2)
    assert sorted(bench.wire.texts) == [STOPPED, f"The beginning\n\n-# {STOPPED}"]
    assert asked(bench) == [["one"]]


async def test_a_never_mind_of_whoever_manages_messages_is_about_their_own(bench: Bench) -> None:
    await running(bench)
    assert not bench.turns.stop(said(CLEO, "never mind"), CHANNEL, manages=True)
    await bench.turns.drain(0)


async def test_to_stop_more_than_a_thousand_that_wait_holds_up_nothing(bench: Bench) -> None:
    await running(bench)
    for number in range(1_600):
        bench.ask(BEN, f"question {number}")
    began = time.thread_time()
    assert (stopped := bench.turns.stop(said(CLEO, "stop"), CHANNEL, manages=True))
    assert time.thread_time() - began < 0.3
    assert len(stopped.questions) == 1_601
    await bench.turns.drain(0)


async def test_a_stop_ends_what_waits_to_be_submitted(bench: Bench) -> None:
    annas, bens = (bench.question(bench.say(who, "one")) for who in (ANNA, BEN))
    heard_out = [annas, bens]
    assert not bench.turns.stop(said(CLEO, "stop"), CHANNEL, heard_out=heard_out)
    own = bench.turns.stop(said(ANNA, "never mind"), CHANNEL, heard_out=heard_out)
    others = bench.turns.stop(said(CLEO, "stop"), CHANNEL, manages=True, heard_out=[bens])
    assert own
    assert others
    assert (own.questions, others.questions) == ([annas], [bens])
    await until(lambda: bench.wire.texts == [STOPPED, STOPPED])


async def test_anybody_ends_what_nobody_had_asked_for_and_nothing_is_said(bench: Bench) -> None:
    bench.script(Script(gate=asyncio.Event()))
    bench.turns.submit(replace(bench.question(bench.say(ANNA, "one")), decision=FOLLOWUP))
    await until(lambda: bench.agent.requests)
    bench.turns.submit(replace(bench.question(bench.say(ANNA, "two")), decision=FOLLOWUP))
    bench.ask(ANNA, "three")
    assert not bench.turns.stop(said(BEN, "never mind"), CHANNEL)
    assert (stopped := bench.turns.stop(said(BEN, "stop"), CHANNEL))
    assert (stopped.is_unprompted, stopped.in_words(BEN)) == (True, "I ended the answer to Anna")
    await bench.idle()
    assert asked(bench) == [["one"], ["three"]]
    assert bench.wire.texts == ["the answer"]


async def test_what_stands_of_an_answer_that_nobody_had_asked_for_says_that_it_was_stopped(bench: Bench) -> None:
    bench.script(Script(first="The beginning", gate=asyncio.Event()))
    bench.turns.submit(replace(bench.question(bench.say(ANNA, "one")), decision=FOLLOWUP))
    await until(lambda: bench.wire.texts)
    assert bench.turns.stop(said(BEN, "stop"), CHANNEL)
    await bench.idle()
    assert bench.wire.texts == [f"The beginning\n\n-# {STOPPED}"]


@pytest.mark.parametrize(
    "stop",
    [
        said(ANNA, "stop it ben"),
        said(ANNA, "Ben, stop"),
        said(ANNA, f"<@{BEN}> stop"),
        said(ANNA, "stop", reply_to_id=5, reply_to_author_id=BEN),
        said(ANNA, "@everyone stop", mentions_group=True),
    ],
    ids=["after a name", "before a name", "mention", "reply", "everyone"],
)
async def test_what_is_said_to_somebody_else_ends_nothing(bench: Bench, stop: MessageRecord) -> None:
    bench.say(BEN, "hello")
    await running(bench)
    assert not bench.turns.stop(stop, CHANNEL, manages=True)
    await bench.turns.drain(0)


# Deleted questions


async def test_the_answer_to_a_deleted_question_is_taken_back(bench: Bench) -> None:
    await running(bench, first="The beginning")
    bench.turns.withdraw(CHANNEL, lambda message: message.author_id == ANNA)
    await bench.idle()
    assert bench.wire.texts == []
    assert bench.history() == []
    assert bench.spent == [INTERRUPTED_TOKENS]


async def test_a_deleted_question_that_waits_is_never_asked(bench: Bench) -> None:
    gate = await running(bench)
    deleted = bench.ask(BEN, "two")
    bench.turns.withdraw(CHANNEL, lambda message: message is deleted)
    gate.set()
    await bench.idle()
    assert asked(bench) == [["one"]]


async def test_a_turn_goes_on_while_one_of_its_questions_is_left(bench: Bench) -> None:
    gate = await running(bench)
    two, three = bench.ask(ANNA, "two"), bench.ask(BEN, "three")
    second = asyncio.Event()
    bench.script(Script(gate=second))
    gate.set()
    await until(lambda: len(bench.agent.requests) == 2)
    bench.turns.withdraw(CHANNEL, lambda message: message is three)
    await settle()
    second.set()
    await bench.idle()
    assert bench.agent.requests[1].questions == [two, three]
    assert bench.wire.texts == ["the answer", "the answer"]


async def test_withdrawing_where_nothing_runs_does_nothing(bench: Bench) -> None:
    bench.turns.withdraw(CHANNEL, lambda _message: True)
    assert len(bench.turns) == 0


async def test_a_question_gone_from_the_record_is_not_answered(bench: Bench) -> None:
    question = bench.ask()
    bench.conversations.forget_messages(CHANNEL, {question.message_id})
    await bench.idle()
    assert bench.agent.requests == []
    assert bench.wire.calls == []
    assert bench.spent == [0]


async def test_a_conversation_forgotten_meanwhile_does_not_come_back(bench: Bench) -> None:
    gate = await running(bench)
    bench.conversations.end(CHANNEL)
    other = bench.conversations.start(CHANNEL, [])
    gate.set()
    await bench.idle()
    assert other.llm_history == []


async def test_a_question_whose_conversation_has_ended_is_not_answered(bench: Bench) -> None:
    bench.ask()
    bench.conversations.end(CHANNEL)
    await bench.idle()
    assert bench.agent.requests == []
    assert bench.wire.calls == []
