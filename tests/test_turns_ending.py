"""turns.py: how a turn ends that does not simply succeed, and how all of them do. Time skips."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from agents.failures import PASSING
from agents.gateway import FailureKind
from discord_io.channel_wire import Problem
from place import Place
from tests.support.fake_agent import INTERRUPTED_TOKENS, Script
from tests.support.people import ANNA, BEN, CHANNEL, GUILD, said
from tests.support.turns_bench import Bench, answers, asked, running
from tests.support.virtual_time import settle, until
from turns.endings import CUT, NOT_ALLOWED, REMOTE_SENTENCES, RESTARTING, SENTENCES, UNPOSTABLE
from turns.turn import Question

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def bench() -> Bench:
    return Bench()


# Failures


def test_every_failure_has_its_sentence_but_a_mini_apps_which_brings_its_own() -> None:
    assert SENTENCES.keys() | {FailureKind.MINIAPP} == set(FailureKind)


@pytest.mark.parametrize("kind", SENTENCES)
async def test_each_failure_costs_one_short_sentence(bench: Bench, kind: FailureKind) -> None:
    bench.script(Script(failure=kind))
    with capture_logs() as logs:
        await bench.answered()
    assert bench.wire.texts == [SENTENCES[kind]]
    assert len(SENTENCES[kind]) < 100
    assert bench.spent == [10]
    assert bench.history() == []
    failed = [entry for entry in logs if entry["event"] == "agent_failed"]
    assert [(entry["kind"], entry["detail"]) for entry in failed] == [(kind, "the script says so")]
    assert [len(entry["messages"]) for entry in failed] == [1]


async def test_another_failure_leaves_the_history_as_it_was(bench: Bench) -> None:
    bench.script(Script("yes"), Script(failure=FailureKind.BUSY))
    for _ in range(2):
        await bench.answered()
    assert answers(bench.history()) == ["yes"]


async def test_a_bug_in_the_agent_costs_one_sentence_and_not_the_queue(bench: Bench) -> None:
    bench.script(Script(first="So", error=ZeroDivisionError("a bug")))
    await bench.answered()
    await bench.answered()
    assert bench.wire.texts == [f"So\n\n-# {SENTENCES[FailureKind.INTERNAL]}", "the answer"]


async def test_an_answer_that_was_cut_says_so(bench: Bench) -> None:
    bench.script(Script("So much", was_cut=True))
    await bench.answered()
    assert bench.wire.texts == [f"So much\n\n-# {CUT}"]
    assert answers(bench.history()) == ["So much"]


# Undeliverable


async def test_where_it_may_not_write_a_reaction_says_so_and_the_model_is_stopped(bench: Bench) -> None:
    bench.wire.problems["send"].append(Problem.FORBIDDEN)
    bench.script(Script(first="Hello", gate=asyncio.Event()))
    question = await bench.answered()
    reaction = bench.wire.calls[-1]
    assert (reaction.kind, reaction.message_id, reaction.text) == ("react", question.message_id, NOT_ALLOWED)
    assert bench.spent == [INTERRUPTED_TOKENS]
    assert bench.history() == []


async def test_an_answer_that_discord_rejects_is_reported_in_the_channel(bench: Bench) -> None:
    bench.wire.problems["send"].append(Problem.REJECTED)
    question = await bench.answered()
    report = bench.wire.calls[-1]
    assert (report.text, report.reply_to) == (UNPOSTABLE, question.message_id)
    assert bench.wire.texts == [UNPOSTABLE]
    assert bench.spent == [10]


async def test_a_report_that_fails_too_is_logged_and_the_queue_goes_on(bench: Bench) -> None:
    bench.wire.problems["send"].extend([Problem.REJECTED] * 2)
    with capture_logs() as logs:
        await bench.answered()
    assert {"post_failed", "report_failed"} <= {entry["event"] for entry in logs}
    await bench.answered()
    assert bench.wire.texts == ["the answer"]


@pytest.mark.parametrize("arrived", [True, False])
async def test_a_question_that_is_taken_back_while_discord_takes_nothing_is_not_answered_later(
    bench: Bench, *, arrived: bool
) -> None:
    bench.wire.problems["send"].extend([Problem.UNREACHABLE] * 99)
    bench.wire.problems["find"].extend([Problem.UNREACHABLE] * 99)
    bench.wire.arrives_anyway = arrived
    question = bench.ask()
    await asyncio.sleep(60)
    for problems in bench.wire.problems.values():
        problems.clear()
    bench.turns.withdraw(CHANNEL, lambda message: message is question)
    await bench.idle()
    assert bench.wire.texts == []
    assert len(bench.wire.done("send")) == 1


async def test_each_turn_is_logged_once_with_its_outcome_and_tokens(bench: Bench) -> None:
    bench.script(Script(), Script(failure=FailureKind.BUSY))
    with capture_logs() as logs:
        for _ in range(2):
            await bench.answered()
        await running(bench)
        bench.turns.stop(said(ANNA, "stop"), CHANNEL)
        await bench.idle()
    ended = [(entry["outcome"], entry["tokens"]) for entry in logs if entry["event"] == "turn_ended"]
    assert ended == [("answered", 10), ("busy", 10), ("stopped", INTERRUPTED_TOKENS)]


# Notices and the end


async def test_a_notice_is_one_reply_without_a_turn(bench: Bench) -> None:
    message = bench.say(ANNA, "again")
    bench.turns.announce(Question(message, Place(GUILD, CHANNEL)), "Enough.")
    await until(lambda: bench.wire.texts == ["Enough."])
    assert bench.wire.calls[0].reply_to == message.message_id
    assert bench.agent.requests == []


async def test_a_notice_that_cannot_be_posted_is_logged(bench: Bench) -> None:
    bench.wire.problems["send"].append(Problem.FORBIDDEN)
    with capture_logs() as logs:
        bench.turns.announce(Question(said(ANNA), Place(GUILD, CHANNEL)), "Enough.")
        await until(lambda: logs)
    assert [entry["event"] for entry in logs] == ["notice_failed"]


async def test_draining_waits_for_what_is_being_answered(bench: Bench) -> None:
    gate = await running(bench, first="The beginning")
    drained = asyncio.create_task(bench.turns.drain(25))
    await settle()
    gate.set()
    await drained
    assert bench.wire.texts == ["the answer"]
    assert asyncio.get_running_loop().time() < 25


async def test_who_is_cut_off_or_still_waits_at_the_end_is_told(bench: Bench) -> None:
    await running(bench, first="The beginning")
    bench.ask(BEN, "two")
    await bench.turns.drain(25)
    assert bench.wire.texts == [f"The beginning\n\n-# {RESTARTING}", RESTARTING]
    assert answers(bench.history()) == ["The beginning"]
    assert asked(bench) == [["one"]]
    assert len(bench.turns) == 0
    assert bench.spent == [INTERRUPTED_TOKENS, 0]


async def test_a_question_that_comes_as_the_rest_is_left_to_another_process_leaves_nothing_open(bench: Bench) -> None:
    await running(bench, first="The beginning")
    drained = asyncio.create_task(bench.turns.drain(25, leaves=True))
    await settle()
    late = Question(said(BEN), Place(GUILD, CHANNEL + 1))
    asyncio.get_running_loop().call_later(25, bench.turns.submit, late)
    await drained
    assert len(bench.turns) == 0


async def test_draining_waits_for_notices_too(bench: Bench) -> None:
    bench.wire.seconds_per_call = 2
    bench.turns.announce(Question(said(ANNA), Place(GUILD, CHANNEL)), "Enough.")
    await bench.turns.drain(25)
    assert bench.wire.texts == ["Enough."]


@pytest.mark.parametrize("sentences", [SENTENCES, REMOTE_SENTENCES])
def test_only_where_it_passes_by_itself_people_are_told_to_ask_again_in_a_moment(
    sentences: Mapping[FailureKind, str],
) -> None:
    assert {kind for kind, text in sentences.items() if "in a moment" in text} == set(PASSING)
