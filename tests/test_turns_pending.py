"""turns/pending_turns.py: what a restart has to finish, and how it is finished. Time skips."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import orjson
import pytest
from pydantic_ai.messages import ModelResponse, TextPart

from decider import Decision, Reason
from discord_io.channel_wire import Posted, Problem
from llm_history import History
from state.optout import UNREAD
from tests.support.clock import NOON
from tests.support.fake_agent import Script
from tests.support.people import ANNA, BEN, CHANNEL, GUILD, replied, said
from tests.support.turns_bench import Bench, answers, asked, running
from tests.support.virtual_time import until
from turns.endings import STOPPED
from turns.pending_turns import NOTHING, TAKEN_BACK, UNFINISHED, Begun, PendingTurns, Unfinished, read_unfinished
from turns.turn import Question, Ready, Turn

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def bench() -> Bench:
    return Bench()


def stored(pending: PendingTurns) -> Unfinished:
    """What another process reads of it."""
    take = pending.taken(CHANNEL)
    return read_unfinished(orjson.loads(take())) if take else NOTHING


# What is kept


async def test_a_question_is_kept_from_its_acceptance_to_its_last_part(bench: Bench) -> None:
    question = bench.ask()
    assert [q.message for q in bench.pending.of(CHANNEL).questions] == [question]
    await bench.idle()
    before_the_model, before_the_post = bench.stored
    assert before_the_model.turn == Begun((question.message_id,))
    assert before_the_post.turn
    assert before_the_post.turn.ready
    assert before_the_post.turn.ready.text == "the answer"
    assert answers(before_the_post.turn.ready.history or []) == ["the answer"]
    assert bench.pending.of(CHANNEL) == NOTHING
    assert bench.kept == [(question.message_id, "the answer")]


async def test_what_was_posted_is_kept_too(bench: Bench) -> None:
    gate = await running(bench, first="Hello")
    await until(lambda: bench.wire.texts == ["Hello"])
    assert (turn := bench.pending.of(CHANNEL).turn)
    assert turn.posted == tuple(bench.wire.standing)
    gate.set()
    await bench.idle()


async def test_all_of_it_comes_back_as_it_was(bench: Bench) -> None:
    gate = await running(bench)
    bench.ask(BEN, "two")
    bench.pending.posted(CHANNEL, 77)
    bench.pending.ready(CHANNEL, Ready("Hello there", "a-prompt", []))
    assert stored(bench.pending) == bench.pending.of(CHANNEL)
    assert [q.message.content for q in stored(bench.pending).begun] == ["one"]
    assert [q.message.content for q in stored(bench.pending).waiting] == ["two"]
    gate.set()
    await bench.idle()


async def test_a_question_of_before_places_were_one_value_comes_back(bench: Bench) -> None:
    """Then the ids stood beside the names."""
    question = bench.question(said(ANNA))
    kept = UNFINISHED.dump_python(Unfinished((question,)), mode="json")
    (of_before,) = kept["questions"]
    of_before |= {
        "guild_id": GUILD,
        "channel_id": CHANNEL,
        "place": {"bot_name": "Parley", "guild": "The Guild", "channel": "general"},
    }
    assert read_unfinished(kept).questions == (question,)


@pytest.mark.parametrize("now", [None, [ModelResponse(parts=[TextPart("(gone)")])]])
async def test_what_a_turn_came_to_follows_where_words_are_taken_back(bench: Bench, now: History | None) -> None:
    gate = await running(bench)
    before: History = [ModelResponse(parts=[TextPart("Hello")])]
    bench.pending.ready(CHANNEL, Ready("Hello there", "a-prompt", before))
    assert bench.pending.follow(lambda _channel_id, history: history, bench.conversations.find) == []
    assert bench.pending.follow(lambda _channel_id, _history: now, bench.conversations.find) == [CHANNEL]
    assert (turn := stored(bench.pending).turn)
    assert (ready := turn.ready)
    assert (ready.text, ready.history) == ("Hello there", now)
    gate.set()
    await bench.idle()


async def test_what_cannot_be_read_beside_what_a_turn_came_to_goes_alone(bench: Bench) -> None:
    gate = await running(bench)
    answer = ModelResponse(parts=[TextPart("Hello")], metadata={"words_of": 5})
    bench.pending.ready(CHANNEL, Ready("Hello", None, [answer]))
    assert (turn := stored(bench.pending).turn)
    assert (ready := turn.ready)
    assert ready.history == [replace(answer, metadata=None)]
    gate.set()
    await bench.idle()


async def test_who_does_not_want_to_be_read_is_not_kept(bench: Bench) -> None:
    question = bench.question(said(ANNA, "my secret"))
    pending = PendingTurns()
    pending.asked(replace(question, is_private=True))
    (kept,) = stored(pending).questions
    assert (kept.message.content, kept.message.readable) == ("", UNREAD)
    assert kept.message.message_id == question.message.message_id
    assert b"secret" not in (pending.taken(CHANNEL) or bytes)()


@pytest.mark.parametrize("nonsense", [None, [], {"questions": 1}, {"questions": [{"message": {}}]}, "x"])
def test_nonsense_is_refused(nonsense: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - pydantic's own text
        read_unfinished(nonsense)


# What ends without an answer


async def test_stopped_questions_are_kept_no_more(bench: Bench) -> None:
    gate = await running(bench)
    bench.ask(ANNA, "two")
    other = bench.ask(BEN, "three")
    assert bench.turns.stop(said(ANNA, "stop"), CHANNEL)
    assert [q.message for q in bench.pending.of(CHANNEL).questions] == [other]
    gate.set()
    await bench.idle()
    assert bench.pending.of(CHANNEL) == NOTHING


async def test_of_withdrawn_questions_only_what_has_to_be_taken_back_is_kept(bench: Bench) -> None:
    gate = await running(bench, first="Hello")
    bench.ask(BEN, "two")
    bench.ask(ANNA, "three")
    bench.turns.withdraw(CHANNEL, lambda message: message.author_id == ANNA)
    assert [q.message.content for q in stored(bench.pending).questions] == ["", "two"]
    assert (turn := stored(bench.pending).turn)
    assert (turn.ready, turn.posted) == (TAKEN_BACK, tuple(bench.wire.standing))
    gate.set()
    await bench.idle()
    assert bench.pending.of(CHANNEL) == NOTHING


async def test_what_discord_could_not_be_told_is_kept_for_the_next_start(bench: Bench) -> None:
    bench.wire.problems["send"].extend([Problem.UNREACHABLE] * 99)
    question = await bench.answered()
    assert [q.message for q in bench.pending.of(CHANNEL).questions] == [question]


async def test_what_discord_refused_is_done(bench: Bench) -> None:
    bench.wire.problems["send"].extend([Problem.FORBIDDEN] * 10)
    await bench.answered()
    assert bench.pending.of(CHANNEL) == NOTHING


# Going on


def resumed(bench: Bench, *texts: str, posted: tuple[str, ...] = (), ready: Ready | None = None) -> list[Question]:
    """A turn that an earlier process began, of which these messages stand."""
    questions = [bench.question(bench.say(ANNA, text)) for text in texts]
    ids = [8_900_500 + n for n, _ in enumerate(posted)]
    bench.wire.standing.update(zip(ids, posted, strict=True))
    turn = Begun(tuple(q.message.message_id for q in questions), tuple(ids), ready)
    bench.pending.adopt(CHANNEL, Unfinished(tuple(questions), turn))
    adopted = [Posted(message_id, NOON, text) for message_id, text in zip(ids, posted, strict=True)]
    bench.turns.resume(CHANNEL, Turn(questions, adopted=adopted, ready=ready), [])
    return questions


async def test_a_turn_that_was_begun_is_made_anew(bench: Bench) -> None:
    (question,) = resumed(bench, "what?")
    await bench.idle()
    (call,) = bench.wire.done("send")
    assert (call.kind, call.text, call.reply_to) == ("send", "the answer", question.message.message_id)
    assert bench.pending.of(CHANNEL) == NOTHING


async def test_what_was_posted_of_it_is_taken_over_and_finished(bench: Bench) -> None:
    resumed(bench, "what?", posted=("the ans",))
    await bench.idle()
    assert bench.wire.texts == ["the answer"]
    assert [call.kind for call in bench.wire.calls] == ["edit"]
    assert bench.pending.of(CHANNEL) == NOTHING


async def test_what_was_posted_is_not_told_the_model_as_said_already(bench: Bench) -> None:
    resumed(bench, "what?", posted=("the whole answer, e1",))
    bench.conversations.record_message(
        CHANNEL, replied(ANNA, "the whole answer, e1", message_id=8_900_500), by_model=False
    )
    await bench.idle()
    (request,) = bench.agent.requests
    assert [message.content for message in request.transcript] == ["what?"]


async def test_what_was_taken_back_is_deleted(bench: Bench) -> None:
    resumed(bench, "what?", posted=("the ans", "wer"), ready=TAKEN_BACK)
    await bench.idle()
    assert bench.wire.texts == []
    assert bench.agent.requests == []


async def test_what_it_came_to_is_posted_without_asking_again(bench: Bench) -> None:
    resumed(bench, "what?", posted=("Hello",), ready=Ready("Hello there", history=[]))
    await bench.idle()
    assert bench.wire.texts == ["Hello there"]
    assert bench.agent.requests == []
    assert bench.pending.of(CHANNEL) == NOTHING


async def test_the_model_remembers_what_it_came_to(bench: Bench) -> None:
    first = await bench.answered(text="one")
    ready = bench.stored[-1].turn
    assert ready
    other = Bench()
    other.say(ANNA, first.content)
    question = other.question(first)
    other.pending.adopt(CHANNEL, Unfinished((question,), ready))
    other.turns.resume(CHANNEL, Turn([question], adopted=[], ready=ready.ready), [])
    await other.idle()
    assert answers(other.history()) == ["the answer"]


def came_to(text: str) -> Ready:
    """What an earlier process had ready, as the model remembers it."""
    return Ready(text, history=[ModelResponse(parts=[TextPart(text)])])


@pytest.mark.parametrize("why", ["stop", "shutdown"])
async def test_what_is_stopped_once_it_is_whole_is_posted_and_remembered(bench: Bench, why: str) -> None:
    bench.wire.seconds_per_call = 5
    resumed(bench, "what?", posted=("Hello",), ready=came_to("Hello there"))
    await asyncio.sleep(1)
    if why == "stop":
        assert bench.turns.stop(said(ANNA, "stop"), CHANNEL) is None
    else:
        await bench.turns.drain(0)
    await bench.idle()
    assert bench.wire.texts == ["Hello there"]
    assert answers(bench.history()) == ["Hello there"]


async def test_what_is_ready_and_waits_for_discord_to_take_it_can_be_stopped(bench: Bench) -> None:
    bench.wire.problems["send"].extend([Problem.UNREACHABLE] * 6)
    resumed(bench, "what?", ready=came_to("Hello there"))
    await asyncio.sleep(5)
    assert bench.turns.stop(said(ANNA, "stop"), CHANNEL)
    await bench.idle()
    assert bench.wire.texts == [STOPPED]
    assert answers(bench.history()) == []
    assert not bench.agent.requests


async def test_what_waited_behind_it_comes_next_and_by_itself(bench: Bench) -> None:
    bench.script(Script(), Script())
    begun = [bench.question(bench.say(ANNA, text)) for text in ("one", "two")]
    waiting = bench.question(bench.say(BEN, "three"))
    turn = Begun(tuple(q.message.message_id for q in begun))
    bench.pending.adopt(CHANNEL, Unfinished((*begun, waiting), turn))
    bench.turns.resume(CHANNEL, Turn(begun, adopted=[]), [waiting])
    await bench.idle()
    assert asked(bench) == [["one", "two"], ["three"]]
    assert [call.reply_to for call in bench.wire.done("send")] == [begun[-1].message.message_id, waiting.reply_to]
    assert bench.pending.of(CHANNEL) == NOTHING


async def test_what_stands_of_an_answer_to_what_waited_as_far_as_was_stored_is_finished_in_its_place(
    bench: Bench,
) -> None:
    bench.script(Script(), Script(), Script())
    first, second, third, last = (bench.question(bench.say(ANNA, text)) for text in ("one", "two", "three", "four"))
    bench.pending.adopt(CHANNEL, Unfinished((first, second, third, last), Begun((first.reply_to,))))
    bench.wire.standing[8_900_500] = "the ans"
    stood = {third.reply_to: [Posted(8_900_500, NOON, "the ans")]}
    bench.turns.resume(CHANNEL, Turn([first], adopted=[]), [second, third, last], stood)
    await bench.idle()
    assert asked(bench) == [["one"], ["two", "three"], ["four"]]
    assert [call.reply_to for call in bench.wire.done("send")] == [first.reply_to, last.reply_to]
    assert bench.wire.standing[8_900_500] == "the answer"
    assert bench.pending.of(CHANNEL) == NOTHING


async def test_another_process_that_answers_is_left_alone(bench: Bench) -> None:
    gate = asyncio.Event()
    bench.script(Script("Hello there", gate=gate))
    question = bench.ask()
    await until(lambda: bench.agent.requests)
    bench.turns.overheard(CHANNEL, 9_999, "I am quicker.", question.message_id)
    await bench.idle()
    assert bench.wire.calls == []
    assert bench.pending.of(CHANNEL) == NOTHING


async def test_why_a_question_is_answered_is_kept_without_what_a_judge_said_of_it(bench: Bench) -> None:
    decision = Decision(True, Reason.LLM_JUDGE, tier=3, score=1.0, evidence="he said: xyzzy", may_decline=True)
    bench.pending.asked(replace(bench.question(said(ANNA)), decision=decision))
    (question,) = stored(bench.pending).questions
    assert question.decision == replace(decision, evidence="")
    assert question.decision.is_unprompted
    assert question.decision.may_decline


@pytest.mark.parametrize("posted", [("Let me see.\n\n-# searching the history …",), ("Let me see.", "-# searching …")])
async def test_what_it_did_when_the_process_died_is_no_part_of_what_is_stopped(
    bench: Bench, posted: tuple[str, ...]
) -> None:
    bench.script(Script(gate=asyncio.Event()))
    resumed(bench, "what?", posted=posted)
    await until(lambda: bench.agent.requests)
    assert bench.turns.stop(said(ANNA, "stop"), CHANNEL)
    await bench.idle()
    assert bench.wire.texts == ["Let me see.\n\n-# Stopped."]
    assert answers(bench.history()) == ["Let me see."]
