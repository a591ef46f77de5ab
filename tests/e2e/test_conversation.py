"""Who is answered, and what the model is told of the conversation."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from decider import Reason
from persistence.open_store import DATABASE
from tests.support.lives import on_disk
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Reply, StubModel, last_line, texts
from tests.support.unusual import mention_of_role, said_unheard


async def test_a_mention_is_answered_by_a_reply_after_typing(scene: Scene) -> None:
    gate = asyncio.Event()
    scene.stub.replies.append(Reply("Fine, thanks.", before=gate))
    question = scene.mention("Ada", "how are you?")
    await scene.until(lambda: scene.sent("POST", "/typing"))
    assert not scene.said()
    gate.set()
    answer = await scene.answer_to(question)
    assert (answer.content, answer.nonce) == ("Fine, thanks.", f"{question.id}-0")
    assert answer.pinged == {scene.pg.person("Ada")}
    assert "Ada: @Parley how are you?" in scene.told()
    assert (await scene.decision(question)).reason is Reason.EXPLICIT_TRIGGER


async def test_the_first_words_stand_there_while_the_rest_is_still_made(scene: Scene) -> None:
    gate = asyncio.Event()
    scene.stub.replies.append(Reply("First words, then the rest.", gate=gate, chunk=12))
    question = scene.mention("Ada", "tell me")
    assert (await scene.streaming()).content == "First words,"
    gate.set()
    assert (await scene.answer_to(question)).content == "First words, then the rest."


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


async def test_a_second_person_joins_and_the_model_knows_what_was_said(scene: Scene) -> None:
    await scene.ask("Ada", "what is the weather in Tokyo?")
    joining = scene.say("Ben", "what about Osaka?")
    await scene.answer_to(joining)
    assert (await scene.decision(joining)).reason is Reason.RECENT_FOLLOWUP
    assert "Ada: @Parley what is the weather in Tokyo?" in scene.told()
    assert "Ben: what about Osaka?" in scene.told()


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


async def test_talk_without_the_bot_is_left_alone(scene: Scene) -> None:
    talk = [scene.say("Ada", "hi Ben"), scene.say("Ben", "hi Ada, what about lunch?")]
    for message in talk:
        assert not (await scene.decision(message)).respond
    assert not scene.said()
    assert not scene.stub.requests


@pytest.mark.parametrize("in_conversation", [False, True])
@pytest.mark.parametrize("to", ["<@{person}> what do you think?", "<@{person}>", "@everyone what is up?", "@here why?"])
async def test_a_mention_of_somebody_else_is_not_for_the_bot(scene: Scene, to: str, in_conversation: bool) -> None:
    if in_conversation:
        await scene.ask("Ada", "hello")
    decision = await scene.decision(scene.say("Ada", to.format(person=scene.pg.person("Ben"))))
    assert (decision.respond, decision.reason) == (
        False,
        Reason.NAMES_OTHERS if in_conversation else Reason.NO_TRIGGER,
    )
    await scene.at_rest()
    assert len(scene.said()) == len(scene.stub.requests) == int(in_conversation)


async def test_a_mention_of_some_other_role_is_not_for_the_bot(scene: Scene) -> None:
    await scene.ask("Ada", "hello")
    message = mention_of_role(scene, "Ada", "who has time?")
    assert (await scene.decision(message)).reason is Reason.NAMES_OTHERS


async def test_a_reply_to_somebody_else_is_not_for_the_bot(scene: Scene) -> None:
    bens = scene.say("Ben", "the train is late")
    await scene.ask("Ada", "hello")
    decision = await scene.decision(scene.say("Ada", "what about the bus?", reply_to=bens.id, ping=False))
    assert (decision.respond, decision.reason) == (False, Reason.NAMES_OTHERS)
    await scene.at_rest()
    assert len(scene.said()) == 1


async def test_a_mention_of_the_bots_own_role_is_one_of_the_bot(scene: Scene) -> None:
    question = scene.say("Ada", f"<@&{scene.pg.bot_role_id}> are you there?")
    await scene.answer_to(question)
    assert (await scene.decision(question)).reason is Reason.EXPLICIT_TRIGGER


@pytest.mark.parametrize("ping", [True, False])
async def test_a_reply_to_the_bot_is_answered_also_after_the_conversation(scene: Scene, ping: bool) -> None:
    first = await scene.ask("Ada", "hello")
    _let_pass(scene, seconds=121)
    question = scene.say("Ben", "are you sure", reply_to=first.id, ping=ping)
    await scene.answer_to(question)
    assert "Ben (replying to Parley: 'You said: @Parley hello'): are you sure" in scene.told()


async def test_a_follow_up_after_the_conversation_has_ended_is_not_answered(scene: Scene) -> None:
    await scene.ask("Ada", "hello")
    _let_pass(scene, seconds=121)
    assert (await scene.decision(scene.say("Ada", "and what about Osaka?"))).reason is Reason.NO_TRIGGER
    assert len(scene.stub.requests) == 1


async def test_channels_do_not_wait_for_each_other(scene: Scene) -> None:
    gate = asyncio.Event()
    channels = ["general", "help", "random", "tea", "cakes"]
    for name in channels[3:]:
        scene.pg.add_channel(name)
    scene.stub.default = lambda body: Reply(last_line(body), before=gate if "wait" in last_line(body) else None)
    held = scene.mention("Ada", "wait for me")
    others = [scene.mention("Ada", f"go on in {name}", channel=name) for name in channels[1:]]
    for question in others:
        await scene.answer_to(question)
    assert not scene.said("general")
    gate.set()
    await scene.answer_to(held)
    assert [len(scene.said(name)) for name in channels] == [1] * 5


async def test_what_is_asked_meanwhile_is_answered_together_and_once(scene: Scene) -> None:
    gate = asyncio.Event()
    scene.stub.replies.append(Reply("the first answer", before=gate))
    scene.mention("Ada", "the first question")
    await scene.until(lambda: scene.stub.requests)
    people = ["Ada", "Ben", "Chloe"]
    meanwhile = [scene.mention(people[n % 3], f"question {n}") for n in range(10)]
    for question in meanwhile:
        await scene.decision(question)
    gate.set()
    await scene.answer_to(meanwhile[-1])
    await scene.at_rest()
    assert len(scene.said()) == len(scene.stub.requests) == 2
    newest = texts(scene.stub.requests[-1])[-1]
    assert [newest.count(f"question {n}\n") for n in range(10)] == [1] * 10
    assert newest.endswith('Now answer "Ada", "Ben", "Chloe".')


@pytest.mark.parametrize("word", ["stop", "Stop!", "never mind", "<@{bot}> stop"])
async def test_the_asker_stops_an_answer_in_the_making(scene: Scene, word: str) -> None:
    scene.stub.replies.append(Reply("One, two, three, four", gate=asyncio.Event(), chunk=9))
    question = scene.mention("Ada", "count")
    await scene.streaming()
    stop = scene.say("Ada", word.format(bot=scene.pg.bot_id))
    assert await scene.outcome(question) == "stopped"
    assert scene.said()[0].content == "One, two,\n\n-# Stopped."
    assert (await scene.decision(stop)).reason is Reason.STOP
    await scene.ask("Ada", "and now?")
    assert "One, two," in scene.told()


async def test_a_stranger_does_not_stop_an_answer(scene: Scene) -> None:
    gate = asyncio.Event()
    scene.stub.replies.append(Reply("One, two, three, four", gate=gate, chunk=9))
    question = scene.mention("Ada", "count")
    await scene.streaming()
    assert not (await scene.decision(scene.say("Ben", "stop"))).respond
    gate.set()
    assert (await scene.answer_to(question)).content == "One, two, three, four"


async def test_stop_takes_back_a_question_that_still_waits(scene: Scene) -> None:
    gate = asyncio.Event()
    scene.stub.replies.append(Reply("for Ada", before=gate))
    first = scene.mention("Ada", "the first question")
    await scene.until(lambda: scene.stub.requests)
    await scene.decision(scene.mention("Ben", "the second question"))
    await scene.decision(scene.say("Ben", "stop"))
    gate.set()
    await scene.answer_to(first)
    await scene.until(lambda: len(scene.said()) == 2)
    await scene.at_rest()
    assert sorted(m.content for m in scene.said()) == ["Stopped.", "for Ada"]
    assert len(scene.stub.requests) == 1


async def test_a_question_deleted_while_it_waits_is_not_answered(scene: Scene) -> None:
    gate = asyncio.Event()
    scene.stub.replies.append(Reply("for Ada", before=gate))
    first = scene.mention("Ada", "the first question")
    await scene.until(lambda: scene.stub.requests)
    second = scene.mention("Ben", "the second question")
    await scene.decision(second)
    await scene.delete(second)
    gate.set()
    await scene.answer_to(first)
    await scene.at_rest()
    assert len(scene.said()) == len(scene.stub.requests) == 1
    assert not scene.journal.find("turn_ended", message=second.id)
    await scene.ask("Chloe", "what was asked?")
    assert "the second question" not in scene.told()


async def test_a_question_deleted_midstream_takes_the_partial_answer_with_it(scene: Scene) -> None:
    scene.stub.replies.append(Reply("One, two, three, four", gate=asyncio.Event(), chunk=9))
    question = scene.mention("Ada", "count the secret cats")
    await scene.streaming()
    scene.pg.delete(question)
    assert await scene.outcome(question) == "withdrawn"
    assert not scene.said()
    await scene.ask("Ben", "what was asked?")
    assert "secret cats" not in scene.told()


async def test_what_was_edited_is_told_as_it_stands_now(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    question = scene.mention("Ada", "my cat is called Tim")
    await scene.answer_to(question)
    other = scene.say("Ben", "mine is Tom")
    await scene.decision(other)
    await scene.edit(question, f"<@{scene.pg.bot_id}> my cat is called Alice")
    await scene.edit(other, "mine is Bob")
    await scene.ask("Chloe", "which cats?")
    assert "my cat is called Alice" in scene.told()
    assert "Ben: mine is Bob" in scene.told()
    assert "Tim" not in scene.told()
    assert "Tom" not in scene.told()


async def test_what_was_deleted_is_told_no_more(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    question = scene.mention("Ada", "my cat is called Tim")
    await scene.answer_to(question)
    other = scene.say("Ben", "mine is Tom")
    await scene.decision(other)
    await scene.delete(question)
    await scene.delete(other)
    await scene.ask("Chloe", "which cats?")
    assert "Tim" not in scene.told()
    assert "Tom" not in scene.told()


async def test_what_was_deleted_in_bulk_is_told_no_more(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    question = scene.mention("Ada", "my cat is called Tim")
    await scene.answer_to(question)
    scene.pg.world.delete_bulk(question.channel_id, [question.id])
    await scene.ask("Chloe", "which cats?")
    assert "Tim" not in scene.told()


async def test_a_question_edited_while_it_waits_is_answered_as_it_stands(scene: Scene) -> None:
    gate = asyncio.Event()
    scene.stub.replies.append(Reply("for Ada", before=gate))
    scene.mention("Ada", "the first question")
    await scene.until(lambda: scene.stub.requests)
    second = scene.mention("Ben", "the secnod question")
    await scene.decision(second)
    await scene.edit(second, f"<@{scene.pg.bot_id}> the second question")
    gate.set()
    await scene.answer_to(second)
    assert "Ben: @Parley the second question" in scene.told()
    assert "secnod" not in scene.told()


async def test_what_was_said_before_the_conversation_is_read_once(scene: Scene) -> None:
    said_unheard(scene, "Ben", "the train leaves at nine")
    await scene.ask("Ada", "when does it leave?")
    assert "Ben: the train leaves at nine" in scene.told()
    await scene.ask("Ada", "and when does it arrive?")
    assert len(scene.sent("GET", "/messages")) == 1
    assert scene.told().count("the train leaves at nine") == 1


async def test_a_slow_history_delays_the_first_answer_by_a_second_and_a_half_at_most(scene: Scene) -> None:
    never = asyncio.Event()
    scene.pg.faults.add("GET", "/messages$", delay_event=never)
    clock = asyncio.get_running_loop().time
    started = clock()
    await scene.ask("Ada", "are you there?")
    assert 1.4 < clock() - started < 2.5
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
        assert all(path.name.startswith(DATABASE) for path in _files_in(tmp_path / "state"))
        assert not [e for e in scene.journal.find("decided") if e["level"] != "debug"]
        assert not len(scene.bot.conversations)


async def test_it_speaks_only_in_the_channels_that_are_listed(scene: Scene) -> None:
    scene.bot.parts.handler._channels = frozenset({scene.pg.channel("help")})
    decision = await scene.decision(scene.mention("Ada", "hello"))
    assert (decision.respond, decision.reason) == (False, Reason.CHANNEL_NOT_LISTED)
    await scene.ask("Ada", "hello", channel="help")
    assert not scene.said("general")


def _let_pass(scene: Scene, seconds: float) -> None:
    """The conversations' clock goes on so far."""
    scene.bot.conversations._clock = lambda: datetime.now(UTC) + timedelta(seconds=seconds)


def _files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())
