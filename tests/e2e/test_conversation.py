"""Who is answered, and what the model is told of the conversation."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conversation import MessageRecord
from decider import Reason
from persistence.open_store import DATABASE
from storage.state_key import KEY_FILE
from storage.store import StoreError
from tests.support.lives import on_disk
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Reply, StubModel, texts
from tests.support.unusual import mention_of_role, said_unheard


async def test_a_mention_is_answered_by_a_reply_after_typing(scene: Scene) -> None:
    gate = scene.held("Fine, thanks.")
    question = scene.mention("Ada", "how are you?")
    await scene.until(lambda: scene.sent("POST", "/typing"))
    assert not scene.said()
    gate.set()
    answer = await scene.answer_to(question)
    assert (answer.content, answer.nonce) == ("Fine, thanks.", f"{question.id}-0")
    assert answer.pinged == {scene.pg.person("Ada")}
    assert "Ada: @Parley how are you?" in scene.told()
    assert (await scene.decision(question)).reason is Reason.EXPLICIT_TRIGGER


async def test_a_follow_up_without_a_mention_is_answered_from_memory(scene: Scene) -> None:
    await scene.ask("Ada", "my cat is called Tim")
    follow_up = scene.say("Ada", "what is my cat called")
    await scene.answer_to(follow_up)
    roles = [message["role"] for message in scene.stub.requests[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    _, first, answer, second = texts(scene.stub.requests[-1])
    assert "Ada: @Parley my cat is called Tim" in first
    assert "my cat is called Tim" in answer
    assert "Ada: what is my cat called" in second
    assert "Tim" not in second


async def test_two_people_who_talk_to_each_other_are_left_alone(stub: StubModel) -> None:
    async with open_scene(stub, decline=False) as scene:
        pg = scene.pg
        await scene.ask("Ada", "hello")
        talk = [
            scene.say("Ben", f"<@{pg.person('Chloe')}> lunch at noon?"),
            scene.say("Chloe", "yes, let us take the new place"),
            scene.say("Ben", "good, at the corner then"),
        ]
        for message in talk:
            assert not (await scene.decision(message)).respond
        await scene.ask("Chloe", "are you there?")
        assert len(scene.said()) == len(scene.stub.requests) == 2
        assert "Ben: good, at the corner then" in scene.told()


@pytest.mark.parametrize("in_conversation", [False, True])
async def test_what_is_said_to_somebody_else_is_not_for_the_bot(scene: Scene, in_conversation: bool) -> None:
    ben = f"<@{scene.pg.person('Ben')}>"
    bens = scene.say("Ben", "the train is late")
    if in_conversation:
        await scene.ask("Ada", "hello")
    talk = [
        scene.say("Ada", text) for text in (f"{ben} what do you think?", ben, "@everyone what is up?", "@here why?")
    ]
    talk.append(scene.say("Ada", "what about the bus?", reply_to=bens.id, ping=False))
    talk.append(mention_of_role(scene, "Ada", "who has time?"))
    for message in talk:
        decision = await scene.decision(message)
        assert not decision.respond
        assert decision.reason is (Reason.NAMES_OTHERS if in_conversation else Reason.NO_TRIGGER)
    await scene.at_rest()
    assert len(scene.said()) == len(scene.stub.requests) == int(in_conversation)


async def test_a_mention_of_the_bots_own_role_is_one_of_the_bot(scene: Scene) -> None:
    question = scene.say("Ada", f"<@&{scene.pg.bot_role_id}> are you there?")
    await scene.answer_to(question)
    assert (await scene.decision(question)).reason is Reason.EXPLICIT_TRIGGER


@pytest.mark.parametrize("ping", [True, False])
async def test_after_the_conversation_a_reply_is_answered_and_a_follow_up_is_not(scene: Scene, ping: bool) -> None:
    first = await scene.ask("Ada", "hello")
    scene.bot.conversations._clock = lambda: datetime.now(UTC) + timedelta(seconds=121)
    assert (await scene.decision(scene.say("Ada", "and what about Osaka?"))).reason is Reason.NO_TRIGGER
    question = scene.say("Ben", "are you sure", reply_to=first.id, ping=ping)
    await scene.answer_to(question)
    assert "Ben (replying to Parley: 'You said: @Parley hello'): are you sure" in scene.told()
    assert len(scene.stub.requests) == 2


async def test_a_question_deleted_midstream_takes_the_partial_answer_with_it(scene: Scene) -> None:
    scene.halted()
    question = scene.mention("Ada", "count the secret cats")
    assert (await scene.streaming()).content == "First words,"
    scene.pg.delete(question)
    assert await scene.outcome(question) == "withdrawn"
    assert not scene.said()
    await scene.ask("Ben", "what was asked?")
    assert "secret cats" not in scene.told()


async def test_what_was_edited_is_told_as_it_stands_now_and_what_was_deleted_no_more(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    edited, deleted, bulk = (scene.mention("Ada", f"my pet is called {name}") for name in ("Tim", "Tom", "Rex"))
    await scene.answer_to(bulk)
    others = [scene.say("Ben", f"mine is {name}") for name in ("Max", "Sam")]
    for message in others:
        await scene.decision(message)
    await scene.at_rest()
    await scene.edit(edited, f"<@{scene.pg.bot_id}> my pet is called Alice")
    await scene.edit(others[0], "mine is Bob")
    await scene.delete(deleted)
    await scene.delete(others[1])
    scene.pg.world.delete_bulk(bulk.channel_id, [bulk.id])
    await scene.ask("Chloe", "which pets?")
    assert "my pet is called Alice" in scene.told()
    assert "Ben: mine is Bob" in scene.told()
    assert not [name for name in ("Tim", "Tom", "Rex", "Max", "Sam") if name in scene.told()]


async def test_what_was_said_before_the_conversation_is_read_once(scene: Scene) -> None:
    said_unheard(scene, "Ben", "the train leaves at nine")
    await scene.ask("Ada", "when does it leave?")
    assert "Ben: the train leaves at nine" in scene.told()
    await scene.ask("Ada", "and when does it arrive?")
    assert len(scene.sent("GET", "/messages")) == 1
    assert scene.told().count("the train leaves at nine") == 1


async def test_a_history_that_never_comes_keeps_nobody_waiting_for_ever(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turns.preparing.HISTORY_DEADLINE_SECONDS", 0.1)
    never = asyncio.Event()
    reading = scene.pg.faults.add("GET", "/messages$", delay_event=never)
    await scene.ask("Ada", "are you there?")
    assert reading.hits
    never.set()


async def test_an_ignored_message_costs_nothing(
    stub: StubModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_scene(stub, state_dir=tmp_path / "state") as scene:
        before = list(scene.pg.requests)
        for text in ("good morning", "what about lunch?", f"<@{scene.pg.person('Ben')}> hi"):
            assert (await scene.decision(scene.say("Ada", text))).reason is Reason.NO_TRIGGER
        await scene.at_rest()
        assert list(scene.pg.requests) == before
        assert not stub.requests
        await scene.bot.snapshots.settled()
        # When it was alive is noted by the clock, whatever is said.
        assert not on_disk(tmp_path / "state", "lunch")
        assert all(path.name.startswith((DATABASE, KEY_FILE)) for path in (tmp_path / "state").iterdir())
        assert not [e for e in scene.journal.find("decided") if e["level"] != "debug"]
        assert not len(scene.bot.conversations)


async def test_where_its_own_answers_cannot_be_read_no_question_looks_unanswered(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.ask("Ada", "which cats are the largest?")
    scene.bot.conversations.end(scene.pg.channel("general"))
    scene.say("Ben", "mine is rather large")

    async def kept(*_: object) -> dict[int, MessageRecord]:
        raise StoreError("What is kept could not be read.")

    monkeypatch.setattr(scene.bot.snapshots, "kept", kept)
    await scene.ask("Chloe", "and dogs?")
    assert "rather large" in scene.told()
    assert "which cats" not in scene.told()
