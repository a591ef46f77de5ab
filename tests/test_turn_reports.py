"""What those who run the bot are told of turns: how each ended, and what went wrong."""

from __future__ import annotations

import asyncio

import pytest

from activity import Ending, Fault, FaultKind, Observer, TurnEnded
from agents.gateway import FailureKind
from discord_io.channel_wire import Problem
from tests.support.fake_agent import Script
from tests.support.observed import Observed
from tests.support.people import ANNA, CHANNEL, GUILD
from tests.support.turns_bench import Bench, running
from turns.endings import AGENT_FAULTS, POST_FAULTS, ending_of
from turns.turn import Cancel

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def bench() -> Bench:
    return Bench()


@pytest.fixture
def observed(bench: Bench) -> Observed:
    bench.activity.watch(observed := Observed())
    return observed


def test_every_word_by_which_a_turn_ends_comes_to_an_ending() -> None:
    words = [*FailureKind, *Cancel, *(f"undelivered_{problem}" for problem in Problem)]
    assert {ending_of(word) for word in (*words, "answered", "finished", "declined")} == set(Ending)
    assert AGENT_FAULTS.keys() == set(FailureKind)
    assert POST_FAULTS.keys() == set(Problem) - {Problem.ELSEWHERE, Problem.TAKEN_BACK}  # which are no faults


async def test_an_answer_is_told_with_when_its_first_text_stood_and_when_it_was_whole(
    bench: Bench, observed: Observed
) -> None:
    gate = asyncio.Event()
    bench.wire.seconds_per_call = 0.5
    bench.script(Script("So it is.", first="So", gate=gate))
    message = bench.ask()
    await asyncio.sleep(3)
    gate.set()
    await bench.idle()
    (turn,) = observed.turns
    assert (turn.guild_id, turn.channel_id, turn.message_ids) == (GUILD, CHANNEL, (message.message_id,))
    assert (turn.ending, turn.outcome, turn.agent, turn.model) == (Ending.ANSWERED, "answered", "general", "demo")
    assert turn.first_text == pytest.approx(0.5, abs=0.1)
    assert turn.seconds == pytest.approx(3.5, abs=0.1)


async def test_a_failure_is_told_in_a_sentence_of_ours(bench: Bench, observed: Observed) -> None:
    bench.script(Script(failure=FailureKind.NO_CREDIT))
    await bench.answered()
    (turn,), (fault,) = observed.turns, observed.faults
    assert (turn.ending, turn.outcome, turn.first_text) == (Ending.FAILED, "no_credit", None)
    assert (fault.kind, fault.code, fault.guild_id, fault.channel_id) == (FaultKind.MODEL, "no_credit", GUILD, CHANNEL)
    assert fault.says == AGENT_FAULTS[FailureKind.NO_CREDIT]


async def test_a_broken_off_answer_is_told_with_when_its_first_text_stood(bench: Bench, observed: Observed) -> None:
    gate = asyncio.Event()
    bench.script(Script(first="So it", gate=gate, failure=FailureKind.UNAVAILABLE))
    bench.ask()
    await asyncio.sleep(3)
    gate.set()
    await bench.idle()
    (turn,) = observed.turns
    assert turn.ending is Ending.FAILED
    assert turn.first_text == pytest.approx(0, abs=0.1)


async def test_a_lost_permission_is_told(bench: Bench, observed: Observed) -> None:
    bench.wire.problems["send"].append(Problem.FORBIDDEN)
    await bench.answered()
    (turn,), (fault,) = observed.turns, observed.faults
    assert (turn.ending, turn.outcome, turn.first_text) == (Ending.UNDELIVERED, "undelivered_forbidden", None)
    assert (fault.kind, fault.code) == (FaultKind.PERMISSION, "forbidden")


async def test_a_stop_ends_a_turn_and_is_no_fault(bench: Bench, observed: Observed) -> None:
    gate = await running(bench)
    bench.turns.stop(bench.say(ANNA, "stop"), CHANNEL)
    gate.set()
    await bench.idle()
    assert [turn.ending for turn in observed.turns] == [Ending.STOPPED]
    assert not observed.faults


async def test_a_bug_is_told_as_an_error_of_ours(bench: Bench, observed: Observed) -> None:
    bench.script(Script(error=ZeroDivisionError("with somebody's words")))
    await bench.answered()
    (fault,) = observed.faults
    assert fault.kind is FaultKind.INTERNAL
    assert "words" not in fault.says


class Raising(Observer):
    """Breaks the promise that observers make."""

    def turn_ended(self, _turn: TurnEnded) -> None:
        raise ZeroDivisionError

    def failed(self, _fault: Fault) -> None:
        raise ZeroDivisionError


async def test_an_observer_that_raises_costs_no_question_and_no_other_observer(bench: Bench) -> None:
    bench.activity.watch(Raising())
    bench.activity.watch(observed := Observed())
    bench.script(Script(failure=FailureKind.LATE), Script("So it is."))
    await bench.answered()
    await bench.answered(text="and now?")
    assert [turn.ending for turn in observed.turns] == [Ending.FAILED, Ending.ANSWERED]
    assert [fault.kind for fault in observed.faults] == [FaultKind.MODEL]


async def test_a_turn_that_a_bug_breaks_off_is_told_as_one_that_failed(
    bench: Bench, observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.around, "ended", lambda *_: 1 / 0)
    bench.script(Script("So it is."))
    await bench.answered()
    (turn,), (fault,) = observed.turns, observed.faults
    assert (turn.ending, turn.outcome, fault.code) == (Ending.FAILED, "internal", "turn_broken")
