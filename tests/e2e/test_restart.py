"""The bot ends, or is killed, and starts anew: what was going on goes on, and what was begun is finished once."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from decider import Reason
from discord_io.prompt_cards import EXPIRED
from playground.limits import Nonces
from playground.model import Message
from tests.e2e.test_asking import DRINK, tool_results
from tests.e2e.test_trip import ADDED, asked_which, current
from tests.support.clock import FakeClock
from tests.support.lives import kill, life, on_disk
from tests.support.scene import Scene
from tests.support.stub_model import Call, Reply

pytestmark = pytest.mark.slow

SURE = Call("ask_confirmation", '{"question": "Are you sure?"}')
NAME = Call("ask_text", '{"question": "What is it called?"}')
Answers = Callable[[Scene, Message, str], Awaitable[None]]
LONG = " ".join(f"word{number}" for number in range(900))
OLDEST_FIRST = {"newest_first": False}


# Conversations


@pytest.fixture
def scene(stage: Scene) -> Scene:
    return stage


# Conversations


@pytest.mark.parametrize("ending", ["told to", "killed"])
async def test_a_conversation_goes_on(scene: Scene, ending: str) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    async with life(scene):
        await scene.ask("Ada", "my cat is called Tim")
        await scene.decision(scene.say("Ben", "mine has no name", reply_to=scene.said()[-1].id))
        await scene.at_rest()
        if ending == "killed":
            await kill(scene)
    async with life(scene):
        followup = scene.say("Ada", "and what is it called?")
        await scene.answer_to(followup)
    told = scene.told()
    assert told.index("Tim") < told.index("I see.") < told.index("mine has no name") < told.index("and what is it")
    assert told.count("Tim") == told.count("mine has no name") == 1


async def test_edits_and_deletions_reach_what_was_said_before(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    async with life(scene):
        cat = scene.mention("Ada", "my cat is called Tim")
        await scene.answer_to(cat)
        dog = scene.mention("Ada", "my dog is called Rex")
        await scene.answer_to(dog)
    async with life(scene):
        await scene.edit(cat, f"<@{scene.pg.bot_id}> my cat is called Tom")
        await scene.delete(dog)
        await scene.ask("Ben", "which pets?")
        assert "Tom" in scene.told()
        assert "Tim" not in scene.told()
        assert "Rex" not in scene.told()
    assert not on_disk(scene.folder, "Tim")
    assert not on_disk(scene.folder, "Rex")
    assert on_disk(scene.folder, "Tom")


# Prompts


async def click(scene: Scene, card: Message, label: str) -> None:
    scene.press("Ada", card, label)


async def write(scene: Scene, card: Message, words: str) -> None:
    opener = scene.press("Ada", card, "Answer")
    await scene.until(lambda: opener.form)
    scene.pg.submit(opener, {"text": words})


async def speak(scene: Scene, _card: Message, words: str) -> None:
    scene.say("Ada", words)


@pytest.mark.parametrize(
    ("call", "answer", "words", "result"),
    [
        (DRINK, click, "2.", "coffee"),
        (SURE, click, "Yes", ""),
        (NAME, write, "Bluebell", "Bluebell"),
    ],
)
async def test_what_the_agent_asked_can_still_be_answered(
    scene: Scene, call: Call, answer: Answers, words: str, result: str
) -> None:
    scene.stub.replies.append(Reply(calls=(call,)))
    async with life(scene):
        card = await scene.ask("Ada", "please")
        await kill(scene)
    scene.stub.replies.append(Reply("It is done."))
    async with life(scene):
        await answer(scene, card, words)
        await scene.shows("It is done.")
        await scene.until(lambda: not scene.pg.world.message(card.channel_id, card.id).components)
        await scene.at_rest()
    assert len(scene.stub.requests) == 1
    assert result in tool_results(scene.stub.requests[0])[-1]


@pytest.mark.parametrize("answer", [click, speak])
async def test_a_trip_goes_on_with_its_list(scene: Scene, answer: Answers) -> None:
    async with life(scene):
        await scene.ask("Ada", "start a trip")
        await scene.answer_to(scene.say("Ada", "Tokyo Trip 2024"))
        card = await asked_which(scene)
    async with life(scene):
        await answer(scene, card, "1")
        await scene.shows(ADDED)
        await current(scene, card, "✓ Shake Shack (Shibuya)")
        await kill(scene)
    async with life(scene):
        exported = await scene.ask("Ada", "export the trip")
    assert "Tokyo Trip 2024" in exported.content
    assert exported.content.count("Shake Shack") == 1
    assert not scene.stub.requests


async def test_a_card_that_expires_is_corrected_by_the_next_process(scene: Scene) -> None:
    async with life(scene):
        then = datetime.now(UTC) - timedelta(hours=1)
        scene.bot.states._clock = scene.bot.prompts._clock = lambda: then
        card = await asked_which(scene)
        await kill(scene)
    async with life(scene):
        assert not (await current(scene, card, EXPIRED)).components
        typed = scene.say("Ada", "2", reply_to=card.id)
        assert (await scene.decision(typed)).reason is not Reason.AWAITED


# What was begun


async def test_an_answer_half_streamed_is_finished_in_its_place(scene: Scene) -> None:
    scene.halted()
    async with life(scene):
        question = scene.mention("Ada", "hello")
        half = await scene.streaming()
        await kill(scene)
    assert [m.content for m in scene.said()] == ["First words,"]
    scene.stub.default = lambda _: Reply("Now all of the words.")
    async with life(scene):
        answer = await scene.answer_to(question)
        assert (answer.id, answer.content) == (half.id, "Now all of the words.")
        await scene.answer_to(scene.say("Ada", "and now?"))
    assert len(scene.said()) == 2
    assert scene.told().count("Now all of the words.") == 1
    assert "First words" not in scene.told()


@pytest.mark.parametrize("meanwhile", ["nothing", "edited", "deleted"])
async def test_a_question_before_any_word_of_its_answer_is_answered_as_it_stands(scene: Scene, meanwhile: str) -> None:
    scene.held()
    async with life(scene):
        question = scene.mention("Ada", "is Timothy a cat?")
        await scene.until(lambda: scene.stub.requests)
        await kill(scene)
    if meanwhile == "edited":
        scene.pg.edit(question, f"<@{scene.pg.bot_id}> is Tom a cat?")
    elif meanwhile == "deleted":
        scene.pg.delete(question)
    async with life(scene):
        await (scene.ask("Ben", "hello") if meanwhile == "deleted" else scene.answer_to(question))
    assert len(scene.said()) == 1
    assert ("Timothy" in scene.told()) == (meanwhile == "nothing")
    assert ("Tom" in scene.told()) == (meanwhile == "edited")
    assert bool(on_disk(scene.folder, "Timothy")) == (meanwhile == "nothing")


@pytest.mark.parametrize(("part", "stage"), [(1, {}), (2, {}), (4, {}), (4, OLDEST_FIRST)], indirect=["stage"])
async def test_a_long_answer_that_is_ready_is_posted_to_its_end_without_the_model(scene: Scene, part: int) -> None:
    sent = scene.pg.faults
    scene.stub.replies.append(Reply(LONG, chunk=10_000))
    async with life(scene):
        earlier = [sent.add("POST", "/messages$") for _ in range(part - 1)]
        held = sent.add("POST", "/messages$", delay_event=asyncio.Event())
        question = scene.mention("Ada", "tell me all")
        await scene.until(lambda: held.hits and all(fault.hits for fault in earlier))
        await scene.ready(question)
        await kill(scene)
    async with life(scene):
        await scene.answer_to(question)
        assert not scene.stub.requests
        assert " ".join(m.content for m in scene.said()) == LONG
        scene.stub.default = lambda _: Reply("Yes.")
        await scene.answer_to(scene.say("Ada", "was that all?"))
    assert scene.told().count("word599") == 1


async def test_a_part_behind_a_hundred_others_messages_is_not_posted_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, gate = scene.pg.faults, asyncio.Event()
    scene.stub.replies.append(Reply(LONG, chunk=10_000))
    async with life(scene):
        first = sent.add("POST", "/messages$")
        second = sent.add("POST", "/messages$", delay_event=gate)
        third = sent.add("POST", "/messages$", delay_event=asyncio.Event())
        question = scene.mention("Ada", "tell me all")
        await scene.until(lambda: first.hits and second.hits)
        for number in range(110):
            scene.pg.post(question.channel_id, scene.pg.person("Chloe"), f"<@{scene.pg.person('Ben')}> {number}")
        gate.set()
        await scene.until(lambda: third.hits)
        await scene.ready(question)
        await kill(scene)
    monkeypatch.setattr(Nonces, "find", lambda *_: None)  # as Discord does after some minutes
    async with life(scene):
        await scene.answer_to(question)
        await scene.at_rest()
    assert " ".join(m.content for m in scene.said()) == LONG


@pytest.mark.parametrize("stage", [{"clock": FakeClock()}], indirect=True)
async def test_a_ready_answer_is_told_with_its_question_where_something_was_deleted_meanwhile(
    scene: Scene,
) -> None:
    assert scene.clock
    async with life(scene):
        earlier = scene.mention("Ada", "hello")
        await scene.answer_to(earlier)
        held = scene.pg.faults.add("POST", "/messages$", delay_event=asyncio.Event())
        scene.stub.replies.append(Reply("What a name."))
        question = scene.mention("Ada", "my cat is called Tim")
        await scene.until(lambda: held.hits)
        await scene.ready(question)
        await kill(scene)
    scene.pg.delete(earlier)
    scene.clock.advance(150)  # its conversation has expired by then, and goes on with the answer
    async with life(scene):
        await scene.answer_to(question)
        assert not scene.stub.requests
        await scene.answer_to(scene.say("Ada", "and how old is it?"))
    told = scene.told()
    assert told.count("Tim") == told.count("What a name.") == 1
    assert told.index("Tim") < told.index("What a name.") < told.index("and how old is it?")


async def test_a_ready_answer_stays_told_where_only_a_question_behind_it_was_deleted_meanwhile(scene: Scene) -> None:
    """Told as new to the model, the question would be answered once more with the next one."""
    async with life(scene):
        held = scene.pg.faults.add("POST", "/messages$", delay_event=asyncio.Event())
        scene.stub.replies.append(Reply("What a name."))
        question = scene.mention("Ada", "my cat is called Tim")
        await scene.until(lambda: held.hits)
        await scene.ready(question)
        await scene.decision(later := scene.mention("Ben", "hello"))
        await kill(scene)
    scene.pg.delete(later)
    async with life(scene):
        await scene.answer_to(question)
        await scene.answer_to(scene.say("Ada", "and how old is it?"))
    assert "Tim" not in json.dumps(scene.stub.requests[-1]["messages"][-1])
    assert scene.told().count("Tim") == scene.told().count("What a name.") == 1


async def test_an_answer_that_was_begun_behind_what_was_stored_last_is_finished_in_its_place(scene: Scene) -> None:
    async with life(scene):
        first, second = scene.held("One."), scene.halted()
        asked = [scene.mention("Ada", "one")]
        await scene.until(lambda: scene.stub.requests)
        asked.append(scene.mention("Ben", "two"))
        await scene.decision(asked[1])
        await scene.bot.snapshots.settled()
        before = scene.folder.with_name("before")
        shutil.copytree(scene.folder, before)
        first.set()
        await scene.until(lambda: len(scene.said()) == 2)
        await kill(scene)
        second.set()
    scene.folder = before
    scene.stub.default = lambda _: Reply("Here you are.")
    async with life(scene):
        for question in asked:
            await scene.answer_to(question)
    assert len(scene.said()) == 2
    assert scene.said()[1].content == "Here you are."


@pytest.mark.parametrize("stage", [OLDEST_FIRST], indirect=True)
async def test_what_was_said_is_told_in_its_order_whatever_the_servers_is(scene: Scene) -> None:
    for word in ("first", "second", "third"):
        scene.say("Ben", word)
    async with life(scene):  # whose cache has none of them
        await scene.ask("Ada", "what did he say?")
    told = scene.told()
    assert told.index("first") < told.index("second") < told.index("third") < told.index("what did he say?")


async def test_an_unfinished_question_that_is_too_old_is_dropped_and_logged(scene: Scene) -> None:
    scene.halted()
    async with life(scene):
        question = scene.mention("Ada", "hello")
        await scene.streaming()
        await kill(scene)
    async with life(scene, catch_up_seconds=0):
        await scene.ask("Ben", "hello", channel="help")
        (dropped,) = scene.journal.find("question_dropped", level="warning")
        assert (dropped["message"], dropped["channel"]) == (question.id, question.channel_id)
    async with life(scene):
        await scene.ask("Ben", "hello", channel="help")
    assert [m.content for m in scene.said()] == ["First words,"]


async def test_what_a_flow_does_is_done_once(scene: Scene) -> None:
    async with life(scene):
        await asked_which(scene)
        held = scene.pg.faults.add("POST", "/messages$", delay_event=asyncio.Event())
        chosen = scene.say("Ada", "1")
        await scene.until(lambda: held.hits)
        await kill(scene)
    async with life(scene):
        assert (await scene.answer_to(chosen)).content.startswith(ADDED)
        exported = await scene.ask("Ada", "export the trip")
    assert exported.content.count("Shake Shack") == 1
    assert len([m for m in scene.said() if "Added" in m.content]) == 1


async def test_what_was_said_before_a_question_is_not_lost_to_later_prompts(scene: Scene) -> None:
    """Soft context outlives a restart in which a question was unfinished, and nothing was deleted."""
    async with life(scene):
        await asked_which(scene)
        scene.press("Ada", scene.said()[-1], "1.")
        await scene.shows(ADDED)
        await scene.at_rest()
        before = scene.bot.states.soft_context(scene.pg.channel("general"))
        assert before
        scene.held()
        scene.mention("Ben", "what is two and two?")
        await scene.until(lambda: scene.stub.requests)
        await kill(scene)
    async with life(scene):
        await scene.at_rest()
        assert scene.bot.states.soft_context(scene.pg.channel("general")) == before


async def test_two_processes_with_one_token_give_one_answer(scene: Scene, tmp_path: Path) -> None:
    gate = asyncio.Event()
    answers = ["One says these words, and the rest.", "The other says something else, and more."]
    scene.stub.replies.extend(Reply(text, chunk=12, gate=gate) for text in answers)
    async with life(scene), life(scene, state_dir=tmp_path / "another"):
        question = scene.mention("Ada", "hello")
        # The slower one may give way before it has asked its model.
        await scene.until(
            lambda: len(scene.stub.requests) == 2 or scene.journal.find("turn_ended", message=question.id)
        )
        await scene.streaming()
        gate.set()
        await scene.until(lambda: len(scene.journal.find("turn_ended", message=question.id)) == 2)
        (answer,) = scene.said()
    assert answer.content in answers
    outcomes = sorted(entry["outcome"] for entry in scene.journal.find("turn_ended", message=question.id))
    assert outcomes == ["answered", "undelivered_elsewhere"]
