"""What happens at the wrong moment: stop, deletion and spent budgets while something else is going on."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from conversation import ConversationManager, MessageRecord
from discord_io.channel_wire import Problem
from state.prompts import Ask
from tests.support.clock import FakeClock
from tests.support.fake_agent import INTERRUPTED_TOKENS, Script
from tests.support.people import ANNA, BEN, CHANNEL, replied, said
from tests.support.turns_bench import Bench, answers, asked, running
from tests.support.virtual_time import settle, until
from turns.endings import OVER_BUDGET, STOPPED
from turns.turn import Turn

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def run_together(bench: Bench) -> asyncio.Event:
    """A turn that Anna and Ben asked for together, and the gate that it waits at."""
    first, gate = asyncio.Event(), asyncio.Event()
    bench.script(Script(gate=first), Script(first="To both", gate=gate))
    bench.ask(ANNA, "zero")
    await until(lambda: len(bench.agent.requests) == 1)
    bench.ask(ANNA, "one")
    bench.ask(BEN, "two")
    first.set()
    await until(lambda: len(bench.agent.requests) == 2 and len(bench.wire.texts) == 2)
    return gate


def is_being_posted(bench: Bench) -> bool:
    """Whether the agent is done and its answer on the way."""
    turn = bench.turns._queues[CHANNEL].turn
    return bool(turn and turn.work and turn.work.done())


async def test_one_who_says_stop_does_not_stop_what_another_asked_with_them(bench: Bench) -> None:
    gate = await run_together(bench)
    assert bench.turns.stop(said(ANNA, "stop"), CHANNEL)
    gate.set()
    await bench.idle()
    assert bench.wire.texts == ["the answer", "the answer"]
    bench = Bench()
    await run_together(bench)
    assert bench.turns.stop(said(ANNA, "stop"), CHANNEL)
    assert bench.turns.stop(said(BEN, "stop"), CHANNEL)
    await bench.idle()
    assert bench.wire.texts == ["the answer", f"To both\n\n-# {STOPPED}"]


async def test_stop_while_the_answer_is_being_posted_loses_no_question_that_waits(bench: Bench) -> None:
    bench.wire.gate = asyncio.Event()
    bench.ask(ANNA, "one")
    await until(lambda: is_being_posted(bench))
    bench.ask(ANNA, "two")
    assert bench.turns.stop(said(ANNA, "stop"), CHANNEL)
    bench.wire.gate.set()
    await bench.idle()
    await until(lambda: len(bench.wire.texts) == 2)
    assert sorted(bench.wire.texts) == [STOPPED, "the answer"]


@pytest.mark.parametrize("first", ["", "It is"])
async def test_stop_ends_an_answer_that_waits_for_discord_to_take_it(bench: Bench, first: str) -> None:
    gate = await running(bench, first=first)
    bench.wire.problems["edit" if first else "send"].extend([Problem.UNREACHABLE] * 6)
    gate.set()
    await asyncio.sleep(5)
    assert is_being_posted(bench)
    assert bench.turns.stop(said(ANNA, "stop"), CHANNEL)
    await bench.idle()
    assert bench.wire.texts == [f"{first}\n\n-# {STOPPED}".strip() if first else STOPPED]
    assert bench.history() == []


async def test_stop_ends_the_sentence_that_waits_to_tell_why_there_is_no_answer(bench: Bench) -> None:
    gate = await running(bench)
    bench.wire.problems["send"].extend([Problem.REJECTED, *[Problem.UNREACHABLE] * 1_000])
    gate.set()
    await asyncio.sleep(20)
    assert is_being_posted(bench)
    assert bench.turns.stop(said(ANNA, "stop"), CHANNEL)
    tried = len(bench.wire.done("send"))
    await bench.idle()
    assert len(bench.wire.done("send")) == tried


async def test_an_answer_whose_question_is_deleted_while_it_is_posted_is_taken_back(bench: Bench) -> None:
    bench.wire.gate = asyncio.Event()
    question = bench.ask(ANNA, "one")
    await until(lambda: is_being_posted(bench))
    bench.turns.withdraw(CHANNEL, lambda message: message.message_id == question.message_id)
    bench.wire.gate.set()
    await bench.idle()
    assert bench.wire.texts == []
    assert bench.history() == []


async def test_no_turn_begins_once_the_budget_is_spent(bench: Bench) -> None:
    gate = await running(bench)
    bench.ask(BEN, "two")
    bench.has_budget = False
    gate.set()
    await bench.idle()
    assert bench.wire.texts == ["the answer", OVER_BUDGET]
    assert len(bench.agent.requests) == 1


def told(bench: Bench) -> list[list[str]]:
    """What was new to the agent in each of its turns."""
    return [[m.content for m in request.transcript] for request in bench.agent.requests]


async def test_what_waits_for_a_turn_of_its_own_is_told_in_that_one_alone(bench: Bench) -> None:
    """Asked while the turn before it was being prepared; with it waits what was said behind it."""
    bench.history_takes = 1.0
    bench.ask(ANNA, "one", starts=True)
    bench.say(BEN, "I wonder too")
    await until(lambda: bench.recalled)
    bench.ask(BEN, "two")
    bench.say(ANNA, "good question")
    await bench.idle()
    assert told(bench) == [["one", "I wonder too"], ["two", "good question"]]


async def test_what_waits_between_a_resumed_turns_questions_is_told_in_a_turn_of_its_own(bench: Bench) -> None:
    """Taken up after a restart, it lies between what the earlier process had decided on at once."""
    one, two, three = (bench.say(who, text) for who, text in ((ANNA, "one"), (BEN, "two"), (ANNA, "three")))
    bench.say(BEN, "and so on")
    bench.turns.resume(CHANNEL, Turn([bench.question(one), bench.question(three)], adopted=[]), [])
    bench.turns.submit(bench.question(two))
    await bench.idle()
    assert told(bench) == [["one", "three", "and so on"], ["two"]]


async def test_what_was_passed_over_is_told_as_said_where_nobody_has_to_answer_it_any_more(bench: Bench) -> None:
    one, two, three = (bench.say(who, text) for who, text in ((ANNA, "one"), (BEN, "two"), (ANNA, "three")))
    gate = asyncio.Event()
    bench.script(Script(gate=gate), Script())
    bench.turns.resume(CHANNEL, Turn([bench.question(one), bench.question(three)], adopted=[]), [])
    bench.turns.submit(bench.question(two))
    await until(lambda: bench.agent.requests)
    bench.turns.stop(said(BEN, "stop"), CHANNEL)
    gate.set()
    await bench.answered(ANNA, "four")
    assert told(bench) == [["one", "three"], ["two", "four"]]


def test_what_it_said_before_the_conversation_is_told_and_what_it_says_in_it_is_not() -> None:
    manager = ConversationManager(60, clock=FakeClock())
    conversation = manager.start(CHANNEL, [said(ANNA, "and now?")])
    conversation.precede([said(ANNA, "the capital?"), earlier := replied(ANNA)])
    manager.record_message(CHANNEL, replied(ANNA))
    assert earlier in conversation.untold()
    assert len(conversation.untold()) == 3


def test_what_is_deleted_while_the_past_is_being_read_does_not_come_with_it() -> None:
    manager = ConversationManager(60, clock=FakeClock())
    conversation = manager.start(CHANNEL, [said(ANNA, "and now?")])
    secret = said(BEN, "my secret")
    manager.forget_messages(CHANNEL, {secret.message_id})
    conversation.precede([secret])
    assert secret not in conversation.messages


async def test_a_question_that_a_busy_channel_trimmed_is_answered_all_the_same() -> None:
    bench = Bench()
    bench.conversations = ConversationManager(60, clock=bench.clock, max_messages=3)
    bench.turns._conversations = bench.maker._conversations = bench.conversations
    gate = await running(bench)
    bench.ask(BEN, "two")
    for n in range(9):
        bench.say(ANNA, f"small talk {n}")
    gate.set()
    await bench.idle()
    assert bench.wire.texts == ["the answer", "the answer"]
    assert "two" in [message.content for message in bench.agent.requests[1].transcript]


async def test_where_the_newest_question_is_deleted_the_answer_replies_to_the_other(bench: Bench) -> None:
    first, gate = asyncio.Event(), asyncio.Event()
    bench.script(Script(gate=first), Script(gate=gate))
    bench.ask(ANNA, "zero")
    await until(lambda: bench.agent.requests)
    kept, deleted = bench.ask(ANNA, "one"), bench.ask(BEN, "two")
    first.set()
    await until(lambda: len(bench.agent.requests) == 2)
    bench.turns.withdraw(CHANNEL, lambda message: message.message_id == deleted.message_id)
    gate.set()
    await bench.idle()
    assert bench.wire.done("send")[-1].reply_to == kept.message_id


def test_what_was_deleted_stays_known_as_deleted_after_another_answer() -> None:
    manager = ConversationManager(60, clock=FakeClock())
    conversation = manager.start(CHANNEL, [said(BEN)])
    manager.record_message(CHANNEL, doubtful := said(ANNA, "my secret"))
    manager.forget_messages(CHANNEL, {doubtful.message_id})
    manager.record_bot_response(CHANNEL, [])
    assert conversation.is_deleted(doubtful.message_id)


def reword(bench: Bench, message: MessageRecord, text: str) -> None:
    edited = replace(message, content=text)
    bench.conversations.revise(CHANNEL, edited)
    bench.turns.reworded(CHANNEL, edited)


async def test_a_question_edited_before_anything_is_shown_is_asked_anew(bench: Bench) -> None:
    bench.script(Script(gate=asyncio.Event()))
    question = bench.ask(ANNA, "waht?")
    await until(lambda: bench.agent.requests)
    reword(bench, question, "what?")
    await bench.idle()
    assert asked(bench) == [["waht?"], ["what?"]]
    assert bench.wire.texts == ["the answer"]
    assert bench.spent == [INTERRUPTED_TOKENS, 10]


async def taken_back(bench: Bench) -> tuple[MessageRecord, asyncio.Event]:
    """A question that was edited while its answer was on its way; what lets it be asked anew, and posted."""
    going_on = bench.wire.gate = asyncio.Event()
    question = bench.ask(ANNA, "one")
    await until(lambda: is_being_posted(bench))
    await settle()
    bench.around.stored = going_on.wait  # type: ignore[assignment, method-assign]
    reword(bench, question, "two")
    await settle()
    return question, going_on


async def test_a_second_edit_before_it_is_asked_anew_costs_no_further_answer(bench: Bench) -> None:
    question, going_on = await taken_back(bench)
    reword(bench, question, "three")
    await settle()
    going_on.set()
    await bench.idle()
    assert asked(bench) == [["one"], ["three"]]
    assert bench.wire.texts == ["the answer"]


async def test_stop_before_it_is_asked_anew_ends_it(bench: Bench) -> None:
    _, going_on = await taken_back(bench)
    assert bench.turns.stop(said(ANNA, "stop"), CHANNEL)
    going_on.set()
    await bench.idle()
    assert asked(bench) == [["one"]]
    assert bench.wire.texts == [STOPPED]


async def test_an_edit_behind_the_first_words_changes_nothing(bench: Bench) -> None:
    gate = await running(bench, first="It is")
    reword(bench, bench.agent.requests[0].questions[0], "another")
    gate.set()
    await bench.idle()
    assert asked(bench) == [["one"]]
    assert bench.wire.texts == ["the answer"]


async def test_an_edit_of_what_is_not_asked_changes_nothing(bench: Bench) -> None:
    other = bench.say(BEN, "hello")
    gate = await running(bench)
    reword(bench, other, "hello all")
    gate.set()
    await bench.idle()
    assert asked(bench) == [["one"]]


async def test_whoever_edits_on_and_on_is_asked_anew_three_times(bench: Bench) -> None:
    gates = [asyncio.Event() for _ in range(4)]
    bench.script(*(Script(gate=gate) for gate in gates))
    question = bench.ask(ANNA, "what")
    for number in range(1, 6):
        await until(lambda: len(bench.agent.requests) == min(number, 4))  # noqa: B023 - awaited at once
        reword(bench, question, f"what {number}")
        await settle()
    gates[-1].set()
    await bench.idle()
    assert asked(bench) == [["what"], ["what 1"], ["what 2"], ["what 3"]]
    assert len(bench.wire.texts) == 1


async def test_what_is_stopped_while_it_is_asked_anew_stays_stopped(bench: Bench) -> None:
    bench.script(Script(gate=asyncio.Event()))
    question = bench.ask(ANNA, "waht?")
    await until(lambda: bench.agent.requests)
    reword(bench, question, "what?")
    assert bench.turns.stop(said(ANNA, "stop"), CHANNEL)
    await bench.idle()
    assert len(bench.agent.requests) == 1
    assert bench.wire.texts == [STOPPED]


async def test_without_budget_nothing_is_asked_anew(bench: Bench) -> None:
    bench.script(Script(gate=asyncio.Event()))
    question = bench.ask(ANNA, "waht?")
    await until(lambda: bench.agent.requests)
    bench.has_budget = False
    reword(bench, question, "what?")
    await bench.idle()
    assert bench.wire.texts == [OVER_BUDGET]


@pytest.mark.parametrize("is_whole", [False, True])
async def test_a_question_edited_while_discord_takes_nothing_yet_is_asked_anew(bench: Bench, is_whole: bool) -> None:
    bench.wire.gate, gate = asyncio.Event(), asyncio.Event()
    if is_whole:
        gate.set()
    ask = Ask.to_go_on("waht", "agent")
    bench.script(Script("You said waht", first="You said", gate=gate, ask=ask), Script("You said what"))
    question = bench.ask(ANNA, "waht?")
    await until(lambda: bench.agent.requests)
    await settle()
    turn = bench.pending.of(CHANNEL).turn
    assert turn
    assert bool(turn.ready) == is_whole
    reword(bench, question, "what?")
    bench.wire.gate.set()
    await bench.idle()
    assert asked(bench) == [["waht?"], ["what?"]]
    assert bench.wire.texts == answers(bench.history()) == ["You said what"]
    assert not bench.states.prompts(CHANNEL)
    assert bench.spent == [10 if is_whole else INTERRUPTED_TOKENS, 10]


async def test_a_turn_that_a_bug_breaks_off_leaves_nothing_running(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = await running(bench)
    await asyncio.sleep(1)
    assert bench.wire.typing
    turn = bench.turns._queues[CHANNEL].turn
    assert turn
    assert turn.post
    monkeypatch.setattr(bench.answering, "note", lambda *_: 1 / 0)
    gate.set()
    await bench.idle()
    await settle()
    assert not bench.wire.typing
    assert turn.post.broken.done()
