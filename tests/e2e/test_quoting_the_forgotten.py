"""What the bot answered to others out of somebody's words goes with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents.gateway import Asked
from conversation import MessageRecord
from discord_io.actions import NOT_TOLD, DiscordActions
from discord_io.channel_history import HISTORY_MESSAGES, UNREAD_FORWARD
from miniapps.venues import SampleVenues, Venue
from playground.model import Message
from tests.e2e.test_asking import tool_results
from tests.e2e.test_threads import open_thread
from tests.e2e.test_who_may_read import call, link
from tests.support.clock import FakeClock
from tests.support.lives import in_snapshots, kill, life, on_disk, open_stage, waking
from tests.support.scene import PATIENCE_SECONDS, Scene, open_scene
from tests.support.stub_model import Call, Reply, StubModel

pytestmark = pytest.mark.slow

SECRET = "bluebell"
QUOTING = f"Chloe's code is {SECRET}."


async def quoted(scene: Scene) -> Message:
    """Ben is told what Chloe said, and again, when the model is told nothing new of hers. Returns the second answer."""
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Chloe", f"my code is {SECRET}")
    scene.stub.replies.extend([Reply(QUOTING), Reply(QUOTING)])
    await scene.ask("Ben", "what did Chloe say?")
    return await scene.ask("Ben", "say that again")


async def forgotten(scene: Scene) -> None:
    await scene.use("Chloe", "forget")
    assert not on_disk(scene.folder, SECRET)


async def is_not_told(scene: Scene) -> None:
    await scene.ask("Ben", "and now?")
    assert SECRET not in scene.told()


async def is_not_kept(scene: Scene) -> None:
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, SECRET)


@pytest.mark.parametrize("when", ["in the conversation", "in the next one", "after a restart"])
async def test_answers_that_quote_the_forgotten_are_neither_kept_nor_told(stage: Scene, when: str) -> None:
    async with life(stage):
        answer = await quoted(stage)
        await stage.bot.snapshots.settled()
        assert on_disk(stage.folder, QUOTING)
        if when != "after a restart":
            await forgotten(stage)
        if when == "in the next one":
            stage.bot.conversations.end(answer.channel_id)
        if when != "after a restart":
            await is_not_told(stage)
            assert "say that again" in stage.told()
            await stage.ask("Ben", "and then?")
            assert "I see." in stage.told()  # what it answered since stays
            return
    async with life(stage):
        await forgotten(stage)
        await is_not_told(stage)


async def test_who_was_forgotten_is_not_named_as_who_asked(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Ben", "hello")
    await scene.ask("Chloe", f"my code is {SECRET}")
    assert scene.told().endswith('Now answer "Chloe".')
    await scene.use("Chloe", "forget")
    await scene.ask("Ben", "and now?")
    assert "Chloe" not in scene.told()
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, "Chloe")


@pytest.mark.parametrize("how", ["forget", "optout"])
async def test_a_reply_does_not_name_the_forgotten(scene: Scene, how: str) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Ben", "hello")
    said = scene.say("Chloe", f"my code is {SECRET}")
    await scene.ask("Ben", "really?", reply_to=said.id)
    assert "(replying to Chloe" in scene.told()
    await scene.use("Chloe", how)
    await scene.ask("Ben", "and now?")
    assert "really?" in scene.told()
    assert "Chloe" not in scene.told()
    assert scene.told().count('Now answer "Ben".') == 3
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, "Chloe")


async def test_an_answer_to_somebody_who_opted_out_goes_with_those_to_whom_they_replied(scene: Scene) -> None:
    """Of their question no quote is kept."""
    said = scene.say("Chloe", f"my code is {SECRET}")
    for number in range(HISTORY_MESSAGES):
        scene.say("Ada", f"number {number}")
    await scene.use("Ben", "optout")
    scene.stub.replies.append(Reply(QUOTING))
    await scene.ask("Ben", "what is it?", reply_to=said.id)
    await forgotten(scene)


@pytest.mark.parametrize("what", ["a forward", "an answer"])
async def test_an_answer_to_somebody_who_opted_out_goes_with_those_whom_what_they_replied_to_quotes(
    scene: Scene, what: str
) -> None:
    """Nothing else of theirs was told there."""
    scene.stub.default = lambda _: Reply("I see.")
    if what == "a forward":
        quoting = scene.say("Ada", forward=scene.say("Chloe", f"my code is {SECRET}", channel="random"))
    else:
        await scene.ask("Chloe", f"my code is {SECRET}")
        scene.stub.replies.append(Reply(QUOTING))
        quoting = await scene.ask("Ada", "what did Chloe say?")
        scene.bot.conversations.end(quoting.channel_id)
    for number in range(HISTORY_MESSAGES):
        scene.say("Ada", f"number {number}")
    await scene.use("Ben", "optout")
    scene.stub.replies.append(Reply(QUOTING))
    await scene.ask("Ben", "what is it?", reply_to=quoting.id)
    assert SECRET in scene.told()
    await forgotten(scene)
    await scene.ask("Ada", "and now?")
    assert SECRET not in scene.told()


@pytest.mark.parametrize("way", ["restarted", "summed up"])
async def test_an_answer_that_was_read_from_before_the_conversation_goes(stage: Scene, way: str) -> None:
    """Of those whose words it quotes nothing else was told there."""
    settings = {"session_tokens": 2_000} if way == "summed up" else {}
    async with life(stage, **settings):
        answer = await quoted(stage)
        stage.bot.conversations.end(answer.channel_id)
        for number in range(17):
            stage.say("Ben", f"by the way, number {number}")
        stage.stub.replies.append(Reply(QUOTING))
        await stage.ask("Ben", "what was that?")
        assert SECRET in stage.told()
        assert f"my code is {SECRET}" not in stage.told()
        if way == "summed up":
            stage.stub.rewriter_says = lambda _: Reply(QUOTING)
            for number in range(6):
                await stage.ask("Ben", f"{number} {'sheep ' * 300}")
            assert len(stage.stub.rewritten) == 1
            await forgotten(stage)
    async with life(stage, **settings):
        await forgotten(stage)
        await is_not_told(stage)
    assert not on_disk(stage.folder, SECRET)


async def test_a_waiting_question_of_somebody_who_opted_out_no_longer_quotes_an_answer_to_the_forgotten(
    scene: Scene,
) -> None:
    """It is not in the conversation, which knows whose words the answer has."""
    await scene.use("Ben", "optout")
    scene.stub.replies.append(Reply(QUOTING))
    answer = await scene.ask("Chloe", f"my code is {SECRET}")
    gate = scene.held("I see.")
    scene.mention("Ada", "hello")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    asked = scene.mention("Ben", "what is it?", reply_to=answer.id)
    await scene.use("Chloe", "forget")
    gate.set()
    await scene.answer_to(asked)
    assert "what is it?" in scene.told()
    assert SECRET not in scene.told()


@pytest.mark.parametrize("is_talking", [False, True], ids=["nothing was said", "others talk"])
async def test_a_waiting_question_of_somebody_who_opted_out_keeps_its_quote_when_others_are_forgotten(
    stub: StubModel, tmp_path: Path, *, is_talking: bool
) -> None:
    """Also where the conversation, if there is one, does not know what it quotes."""
    stub.default, clock = lambda _: Reply("I see."), FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage, turns_at_once=1):
        stage.pg.add_channel("help")
        said = stage.say("Ada", "it shows error 42", channel="help")
        await stage.use("Ben", "optout")
        clock.advance(7_200)  # so that it is told only as a quote
        if is_talking:
            await stage.ask("Ada", "hello", channel="help")
        known, gate = len(stub.requests), stage.held("I see.")
        stage.mention("Ada", "hello")
        await stage.until(lambda: len(stub.requests) == known + 1)
        asked = stage.mention("Ben", "what does that mean?", channel="help", reply_to=said.id)
        await stage.decision(asked)
        await forgotten(stage)
        gate.set()
        await stage.answer_to(asked)
        assert "it shows error 42" in stage.told()


async def test_a_summary_of_an_answer_goes_whose_question_they_had_deleted(stage: Scene) -> None:
    async with life(stage, session_tokens=2_000):
        stage.stub.replies.append(Reply(QUOTING))
        asked = stage.mention("Chloe", f"my code is {SECRET}")
        await stage.answer_to(asked)
        await stage.delete(asked)
        stage.stub.rewriter_says = lambda _: Reply(QUOTING)
        for number in range(6):
            await stage.ask("Ben", f"{number} {'sheep ' * 300}")
        assert len(stage.stub.rewritten) == 1
        await forgotten(stage)
        await is_not_told(stage)
    assert not on_disk(stage.folder, SECRET)


async def test_a_summary_of_an_answer_alone_goes_with_whoever_had_opted_out_and_deleted_its_question(
    stage: Scene,
) -> None:
    """Of what they asked only whom the answer is for is kept, and nothing that was said later is summed up with it."""
    async with life(stage, session_tokens=2_000):
        await stage.use("Chloe", "optout")
        stage.stub.replies.append(Reply(QUOTING))
        asked = stage.mention("Chloe", f"my code is {SECRET}")
        await stage.answer_to(asked)
        await stage.delete(asked)
        stage.stub.rewriter_says = lambda _: Reply(QUOTING)
        stage.stub.answer_tokens = 2_000
        for _ in range(2):
            await stage.ask("Ben", "how many sheep are there?")
        assert len(stage.stub.rewritten) == 1
        assert "sheep" not in str(stage.stub.rewritten)
        stage.stub.rewriter_says = lambda _: Reply("We counted.")
        await forgotten(stage)
        await is_not_told(stage)
    assert not on_disk(stage.folder, SECRET)


@pytest.mark.parametrize("tool", ["read_message", "search_history"])
async def test_answers_that_quote_the_forgotten_are_not_looked_up(scene: Scene, tool: str) -> None:
    answer = await quoted(scene)
    before = call("search_history", words="code") if tool == "search_history" else call(tool, link=link(scene, answer))
    scene.stub.replies.append(before)
    await scene.ask("Ben", f"look at {link(scene, answer)}")
    assert SECRET in tool_results(scene.stub.requests[-1])[-1]
    await forgotten(scene)
    scene.stub.replies.append(before)
    await scene.ask("Ben", f"look again at {link(scene, answer)}")
    found = tool_results(scene.stub.requests[-1])[-1]
    assert SECRET not in found
    assert found == NOT_TOLD or tool == "search_history"


async def test_an_answer_in_the_making_that_may_quote_the_forgotten_is_not_kept(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Chloe", f"my code is {SECRET}")
    gate = scene.held(QUOTING)
    asked = scene.mention("Ben", "what did Chloe say?")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    await scene.use("Chloe", "forget")
    gate.set()
    assert (await scene.answer_to(asked)).content == QUOTING
    await is_not_kept(scene)
    await is_not_told(scene)


@pytest.mark.parametrize("begun", [False, True], ids=["before its first words", "after its first words"])
async def test_an_answer_in_the_making_to_several_goes_with_who_of_them_had_opted_out(
    scene: Scene, *, begun: bool
) -> None:
    """Of their question, and so of whose words the answer has, the conversation keeps nothing."""
    scene.stub.default = lambda _: Reply("I see.")
    await scene.use("Chloe", "optout")
    waits, gate = scene.held("Hello."), asyncio.Event()
    scene.mention("Ada", "hello")
    await scene.until(lambda: len(scene.stub.requests) == 1)
    for who, text in (("Chloe", f"my code is {SECRET}"), ("Ben", "what is it?")):
        await scene.decision(asked := scene.mention(who, text))
    answer = f"{QUOTING} That is all."
    scene.stub.replies.append(Reply(answer, gate=gate, chunk=len(QUOTING)) if begun else Reply(answer, before=gate))
    waits.set()
    await scene.until(lambda: len(scene.stub.requests) == 2)
    assert all(text in scene.told() for text in (SECRET, "what is it?"))
    if begun:
        await scene.shows(SECRET)
    await scene.use("Chloe", "forget")
    gate.set()
    assert (await scene.answer_to(asked)).content == answer
    await is_not_told(scene)
    await is_not_kept(scene)


@pytest.mark.parametrize("parts", ["one message", "several"])
@pytest.mark.parametrize("whose", ["kept", "private"])
async def test_a_reply_to_an_answer_in_the_making_keeps_nothing_of_the_forgotten(
    scene: Scene, whose: str, parts: str
) -> None:
    """The answer itself is not stored yet when the reply to it is."""
    scene.stub.default = lambda _: Reply("I see.")
    if whose == "private":
        await scene.use("Ada", "optout")
    await scene.ask("Chloe", f"my code is {SECRET}")
    begun = f"{QUOTING} {'and so on ' * (250 if parts == 'several' else 1)}"
    gate = scene.halted(f"{begun}The end.", len(begun))
    asked = scene.mention("Ben", "tell me all about it")
    await scene.until(lambda: len(scene.said()) == (3 if parts == "several" else 2))
    first = scene.said()[1]
    assert SECRET in first.content
    reply = scene.mention("Ada", "what is that?", reply_to=first.id)
    await scene.decision(reply)
    await scene.use("Chloe", "forget")
    gate.set()
    await scene.answer_to(asked)
    await scene.answer_to(reply)
    assert "what is that?" in scene.told()
    assert SECRET not in scene.told()
    await is_not_kept(scene)


async def going_on(scene: Scene) -> tuple[Message, asyncio.Event]:
    """Chloe is forgotten while Ben is answered, and only then the model writes what it was told of hers. Returns what
    Ben asked, and what to set for the answer to end."""
    scene.stub.default, gate, end = lambda _: Reply("I see."), asyncio.Event(), asyncio.Event()
    await scene.ask("Chloe", f"my code is {SECRET}")
    begun = Reply(f"Well, {QUOTING}", gate=gate, chunk=6, calls=(Call("current_time", "{}", "call-clock"),))
    scene.stub.replies.extend([begun, Reply("The end.", before=end)])
    asked = scene.mention("Ben", "tell me all about it")
    await scene.until(lambda: len(scene.said()) == 2)
    await scene.use("Chloe", "forget")
    gate.set()
    await scene.until(lambda: SECRET in scene.said()[1].content and len(scene.stub.requests) == 3)
    return asked, end


@pytest.mark.parametrize("whose", ["kept", "private"])
async def test_a_reply_to_an_answer_that_goes_on_after_a_forgetting_keeps_nothing_of_it(
    scene: Scene, whose: str
) -> None:
    if whose == "private":
        await scene.use("Ada", "optout")
    asked, end = await going_on(scene)
    reply = scene.mention("Ada", "what is that?", reply_to=scene.said()[1].id)
    await scene.decision(reply)
    await is_not_kept(scene)
    end.set()
    await scene.answer_to(asked)
    await scene.answer_to(reply)
    assert "what is that?" in scene.told()
    assert SECRET not in scene.told()
    await is_not_kept(scene)
    await is_not_told(scene)


async def test_a_reply_to_an_answer_that_goes_on_after_a_forgetting_keeps_nothing_of_it_after_a_kill(
    stage: Scene,
) -> None:
    async with life(stage):
        await going_on(stage)
        await stage.decision(stage.say("Ada", "what is that?", reply_to=stage.said()[1].id))
        await stage.bot.snapshots.settled()
        await kill(stage)
    async with life(stage):
        await stage.at_rest()
        await is_not_kept(stage)


@pytest.mark.usefixtures("rules_of_thumb")
async def test_the_judge_is_told_nothing_of_an_answer_that_goes_on_after_a_forgetting(stub: StubModel) -> None:
    async with open_scene(stub, use_llm_judge=True) as scene:
        asked, end = await going_on(scene)
        await scene.decision(scene.say("Ada", "I would rather take the train"))
        end.set()
        await scene.answer_to(asked)
        assert SECRET not in json.dumps(stub.judged)


@pytest.mark.parametrize("forgets", ["before the answer comes", "once it has come"])
@pytest.mark.parametrize("what", ["deleted", "quoted, and deleted", "trimmed"])
async def test_an_answer_goes_with_what_was_gone_before_its_first_word(scene: Scene, what: str, forgets: str) -> None:
    """The model had been told it, though nothing in the conversation says so any more when the answer is recorded."""
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Ben", "hello")
    if what == "quoted, and deleted":
        scene.bot.conversations.end(scene.pg.channel("general"))
    said = scene.say("Chloe", f"my code is {SECRET}")
    for number in range(HISTORY_MESSAGES if what == "quoted, and deleted" else 1):
        await scene.decision(scene.say("Ada", f"number {number}"))
    asked, gate = len(scene.stub.requests), scene.held(QUOTING)
    question = scene.mention("Ben", "what is it?", reply_to=said.id if what == "quoted, and deleted" else None)
    await scene.until(lambda: len(scene.stub.requests) > asked)
    assert SECRET in scene.told()
    if what == "trimmed":
        conversation = scene.bot.conversations.get(said.channel_id)
        assert conversation
        conversation.trim(1, 1_000)
        assert conversation.find(said.id) is None
    else:
        await scene.delete(said)
    if forgets == "before the answer comes":
        await scene.use("Chloe", "forget")
    gate.set()
    await scene.answer_to(question)
    if forgets == "once it has come":
        await scene.use("Chloe", "forget")
    await is_not_kept(scene)
    await is_not_told(scene)


async def test_an_answer_to_a_reply_that_was_trimmed_while_it_waited_goes_with_whom_it_quotes(scene: Scene) -> None:
    """Nothing else of theirs is in the conversation."""
    scene.stub.default = lambda _: Reply("I see.")
    scene.bot.conversations._max_messages = 6  # there is no setting
    said = scene.say("Chloe", f"my code is {SECRET}")
    for number in range(HISTORY_MESSAGES):
        scene.say("Ada", f"number {number}")
    gate = scene.held("Here you are.")
    await scene.decision(scene.mention("Ada", "hello"))
    await scene.until(lambda: scene.stub.requests)
    asked = scene.mention("Ben", "what is it?", reply_to=said.id)
    await scene.decision(asked)
    await scene.flood()
    assert scene.bot.conversations.find(asked.channel_id, asked.id) is None
    scene.stub.replies.append(Reply(QUOTING))
    gate.set()
    await scene.answer_to(asked)
    assert SECRET in scene.told()
    await scene.bot.snapshots.settled()
    assert on_disk(scene.folder, QUOTING)
    await forgotten(scene)
    await is_not_told(scene)


@pytest.mark.parametrize("then", ["it is edited", "what it replies to is edited", "what it replies to is deleted"])
async def test_a_reply_that_was_trimmed_goes_with_its_author_whatever_changed_before(scene: Scene, then: str) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    scene.bot.conversations._max_messages = 6  # there is no setting
    await scene.decision(said := scene.mention("Ada", "what is your code?"))
    await scene.answer_to(said)
    replied = scene.mention("Chloe", f"it is {SECRET}", reply_to=said.id)
    await scene.answer_to(replied)
    if then == "it is edited":
        await scene.edit(replied, f"it is {SECRET}!")
    elif then == "what it replies to is edited":
        await scene.edit(said, "what is your number?")
    else:
        await scene.delete(said)
    await scene.flood()
    assert scene.bot.conversations.find(replied.channel_id, replied.id) is None
    await scene.ask("Ben", "what is it?")
    assert SECRET in scene.told()
    await forgotten(scene)
    await is_not_told(scene)


async def test_what_a_mini_app_answered_goes_though_it_was_trimmed_after_its_question_was_edited(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    scene.bot.conversations._max_messages = 6  # there is no setting
    asked = scene.mention("Chloe", f"plan a trip to {SECRET}")
    await scene.answer_to(asked)
    await scene.ask("Ben", "hello")
    await scene.edit(asked, "never mind")
    await scene.flood()
    await scene.ask("Ben", "what is planned?")
    assert SECRET in scene.told()
    await scene.use("Chloe", "forget")
    await is_not_told(scene)


async def test_an_answer_of_which_a_part_is_trimmed_while_the_rest_is_made_goes_with_whom_it_quotes(
    scene: Scene,
) -> None:
    """Its first message is complete long before the last one, and nobody edits it again."""
    scene.stub.default = lambda _: Reply("I see.")
    scene.bot.conversations._max_messages = 6  # there is no setting
    await scene.ask("Chloe", f"my code is {SECRET}")
    begun = f"{QUOTING} {'and so on ' * 250}"
    gate = scene.halted(f"{begun}The end.", len(begun))
    asked = scene.mention("Ben", "tell me all about it")
    await scene.until(lambda: len(scene.said()) == 3)
    first = scene.said()[1]
    await scene.flood()
    assert scene.bot.conversations.find(first.channel_id, first.id) is None
    gate.set()
    await scene.answer_to(asked)
    await scene.bot.snapshots.settled()
    assert on_disk(scene.folder, QUOTING)
    await forgotten(scene)
    await is_not_told(scene)


@pytest.mark.usefixtures("impatient")
async def test_an_answer_that_is_posted_after_a_kill_goes_with_what_was_gone_before_its_first_word(
    stage: Scene,
) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    async with life(stage):
        await stage.ask("Ben", "hello")
        said = stage.say("Chloe", f"my code is {SECRET}")
        await stage.decision(said)
        gate = stage.held(QUOTING)
        question = stage.mention("Ben", "what did Chloe say?")
        await stage.until(lambda: len(stage.stub.requests) == 2)
        await stage.delete(said)
        stage.pg.faults.add("POST", r"/messages$", status=500, times=10_000)
        gate.set()
        await stage.ready(question)
        await kill(stage)
        stage.pg.faults.clear()
    async with life(stage):
        assert (await stage.answer_to(question)).content == QUOTING
        await stage.use("Chloe", "forget")
        await is_not_kept(stage)
        await is_not_told(stage)


@pytest.mark.usefixtures("impatient")
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("how", ["posted", "not posted"])
async def test_an_answer_that_is_posted_after_a_kill_goes_with_those_whose_conversation_is_over_by_then(
    stub: StubModel, tmp_path: Path, how: str
) -> None:
    stub.default, clock = lambda _: Reply("I see."), FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage:
        async with life(stage):
            await stage.ask("Chloe", f"my code is {SECRET}")
            said = stage.say("Ada", "hello")
            await stage.decision(said)
            gate = stage.halted(QUOTING, len(QUOTING) - 1) if how == "posted" else stage.held(QUOTING)
            question = stage.mention("Ben", "what did Chloe say?")
            await stage.until(lambda: len(stage.said()) == 2 if how == "posted" else len(stub.requests) == 2)
            path = r"/messages/\d+$" if how == "posted" else r"/messages$"
            stage.pg.faults.add("*", path, status=500, after_effect=how == "posted", times=10_000)
            gate.set()
            await stage.ready(question)
            if how == "posted":
                await stage.until(lambda: stage.said()[1].content == QUOTING)
            await kill(stage)
            stage.pg.faults.clear()
        stage.pg.delete(said)  # so that the conversation is not gone on with
        clock.advance(200)
        async with life(stage):
            assert (await stage.answer_to(question)).content == QUOTING
            await stage.at_rest()
            await stage.use("Chloe", "forget")
            await is_not_kept(stage)
            await is_not_told(stage)


async def test_an_answer_that_stood_before_a_kill_goes_with_whom_it_quotes_though_it_ends_in_the_same_words(
    stub: StubModel, tmp_path: Path
) -> None:
    """What was read from before the conversation is read again, and only once that answer stands."""
    stub.default, clock = lambda _: Reply("I see."), FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage:
        async with life(stage):
            await stage.ask("Chloe", f"my code is {SECRET}")
            clock.advance(400)
            gate = stage.halted(f"{QUOTING} That is all.", len(QUOTING))
            question = stage.mention("Ben", "what did Chloe say?")
            await stage.shows(SECRET)
            await kill(stage)
            gate.set()
        stub.replies.append(Reply(QUOTING))
        async with life(stage):
            assert (await stage.answer_to(question)).content == QUOTING
            await stage.at_rest()
            await stage.use("Chloe", "forget")
            await is_not_kept(stage)
            await is_not_told(stage)


async def test_an_answer_made_over_a_forgetting_is_not_kept_while_it_waits_for_discord(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Chloe", f"my code is {SECRET}")
    gate = scene.held(QUOTING)
    asked = scene.mention("Ben", "what did Chloe say?")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    await scene.use("Chloe", "forget")
    scene.pg.faults.add("POST", r"/messages$", status=500, times=10_000)
    before = len(scene.sent("POST", "/messages"))
    gate.set()
    await scene.until(lambda: len(scene.sent("POST", "/messages")) > before + 2)
    await is_not_kept(scene)
    scene.pg.faults.clear()
    assert (await scene.answer_to(asked)).content == QUOTING


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("is_killed", [False, True])
async def test_an_answer_that_waits_for_discord_is_not_kept(stage: Scene, *, is_killed: bool) -> None:
    async with life(stage):
        stage.stub.default = lambda _: Reply("I see.")
        await stage.ask("Chloe", f"my code is {SECRET}")
        gate = stage.halted(f"First words, and {QUOTING}")
        question = stage.mention("Ben", "what did Chloe say?")
        await stage.shows("First words")
        stage.pg.faults.add("PATCH", r"/messages/\d+$", status=500, times=10_000)
        gate.set()
        await stage.ready(question)
        await forgotten(stage)
        if is_killed:
            await kill(stage)
        stage.pg.faults.clear()
        if not is_killed:
            await stage.answer_to(question)
            await is_not_kept(stage)
            return
    async with life(stage):
        assert (await stage.answer_to(question)).content == "I see."


@pytest.mark.parametrize("is_trimmed", [False, True])
async def test_a_question_that_quotes_the_forgotten_is_withdrawn(scene: Scene, *, is_trimmed: bool) -> None:
    """Also one so far back that the conversation does not know its card any more."""
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Chloe", f"my code is {SECRET}")
    scene.stub.replies.append(call("ask_confirmation", question=f"Shall I tell you that it is {SECRET}?"))
    await scene.ask("Ben", "what did Chloe say?")
    card = await scene.card("Shall I")
    await scene.bot.snapshots.settled()
    assert on_disk(scene.folder, SECRET)
    if is_trimmed:
        await scene.ask("Ada", "hello")
        conversation = scene.bot.conversations.get(card.channel_id)
        assert conversation
        conversation.trim(2, 1_000)
        assert conversation.find(card.id) is None
    await forgotten(scene)
    await scene.until(lambda: not scene.pg.world.message(card.channel_id, card.id).components)
    await is_not_told(scene)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("while_it", ["is made", "is posted"])
async def test_a_question_in_the_making_that_may_quote_the_forgotten_is_not_kept(scene: Scene, while_it: str) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Chloe", f"my code is {SECRET}")
    asking = call("ask_confirmation", question=f"Shall I tell you that it is {SECRET}?")
    gate = scene.held("", calls=asking.calls)
    asked = scene.mention("Ben", "what did Chloe say?")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    states = scene.bot.parts.states
    if while_it == "is posted":
        scene.pg.faults.add("POST", r"/messages$", status=500, times=10_000)
        gate.set()
        await scene.until(lambda: states.prompts(asked.channel_id))
    await scene.use("Chloe", "forget")
    scene.pg.faults.clear()
    gate.set()
    await scene.answer_to(asked)
    await scene.bot.snapshots.settled()
    assert not states.prompts(asked.channel_id)
    assert not on_disk(scene.folder, SECRET)


async def test_an_answer_out_of_what_was_read_elsewhere_goes_with_its_author(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    said = scene.say("Chloe", f"my code is {SECRET}", channel="random")
    scene.stub.replies.extend([call("read_message", link=link(scene, said)), Reply(QUOTING)])
    await scene.ask("Ben", f"what does {link(scene, said)} say?")
    await scene.bot.snapshots.settled()
    assert on_disk(scene.folder, QUOTING)
    await forgotten(scene)
    await is_not_told(scene)


@pytest.mark.parametrize("when", ["in the conversation", "in the next one", "after a restart", "while it is made"])
async def test_an_answer_out_of_what_was_read_elsewhere_goes_with_that_channel(stage: Scene, when: str) -> None:
    """Though whoever said it asks for nothing."""
    stage.stub.default = lambda _: Reply("I see.")
    async with life(stage):
        said = stage.say("Chloe", f"my code is {SECRET}", channel="random")
        stage.pg.allow(said.channel_id, "manage_channels", member=stage.pg.person("Ada"))
        stage.stub.replies.append(call("read_message", link=link(stage, said)))
        gate = stage.held(QUOTING)
        asked = stage.mention("Ben", f"what does {link(stage, said)} say?")
        await stage.until(lambda: len(stage.stub.requests) == 2)
        if when == "while it is made":
            await stage.use("Ada", "forget", channel="random", everything=True)
        gate.set()
        await stage.answer_to(asked)
        if when == "in the next one":
            stage.bot.conversations.end(asked.channel_id)
    async with life(stage):
        if when != "while it is made":
            await stage.use("Ada", "forget", channel="random", everything=True)
        await is_not_told(stage)
        await is_not_kept(stage)
        assert "what does" in stage.told()


async def test_an_answer_out_of_what_was_read_elsewhere_goes_though_other_tools_still_ran(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Her words were read already, and nothing of the answer was there yet to go with them."""
    scene.stub.default = lambda _: Reply("I see.")
    was_read, really_read = asyncio.Event(), DiscordActions.read

    async def read(actions: DiscordActions, asked: Asked, channel_id: int, message_id: int) -> MessageRecord | str:
        found = await really_read(actions, asked, channel_id, message_id)
        if message_id == said.id:
            was_read.set()
        return found

    monkeypatch.setattr(DiscordActions, "read", read)
    said = scene.say("Chloe", f"my code is {SECRET}", channel="random")
    other = scene.say("Ada", "hello there", channel="random")
    links, answered = [link(scene, said), link(scene, other)], asyncio.Event()
    held = scene.pg.faults.add("GET", rf"/messages/{other.id}$", delay_event=answered)
    calls = [Call("read_message", json.dumps({"link": one}), f"call-{one[-19:]}") for one in links]
    scene.stub.replies.extend([Reply(calls=tuple(calls)), Reply(QUOTING)])
    asked = scene.mention("Ben", f"what do these say? {' '.join(links)}")
    await scene.until(lambda: held.hits)
    await was_read.wait()
    await scene.use("Chloe", "forget")
    answered.set()
    assert (await scene.answer_to(asked)).content == QUOTING
    await is_not_kept(scene)
    await is_not_told(scene)


async def test_an_answer_with_what_a_mini_app_keeps_of_the_forgotten_goes(scene: Scene) -> None:
    """Of those whose words it has nothing else was told there."""
    scene.stub.default = lambda _: Reply("I see.")
    added = await scene.ask("Chloe", "add Shake Shack Shibuya")
    await scene.answer_to(scene.say("Chloe", f"get the {SECRET} burger"))
    scene.bot.conversations.end(added.channel_id)
    assert SECRET in (await scene.ask("Ben", "list our trip")).content
    await scene.bot.snapshots.settled()
    assert on_disk(scene.folder, SECRET)
    await forgotten(scene)
    await is_not_told(scene)


async def test_an_answer_out_of_what_a_mini_app_did_last_goes_with_whose_words_that_has(scene: Scene) -> None:
    """Also where nothing else of theirs was told: the conversation has ended, and others have written since."""
    scene.stub.default = lambda _: Reply("I see.")
    added = await scene.ask("Chloe", f"add {SECRET} bar to the trip")
    await scene.answer_to(scene.say("Chloe", "yes"))
    scene.bot.conversations.end(added.channel_id)
    for _ in range(HISTORY_MESSAGES):
        scene.say("Ada", "hello")
    scene.stub.replies.append(Reply(QUOTING))
    await scene.ask("Ben", "what was the last thing that you did?")
    assert SECRET in scene.told()
    await forgotten(scene)
    await is_not_told(scene)


@pytest.mark.parametrize("by", ["forgetting", "deleting"])
async def test_a_question_of_a_mini_apps_that_quotes_what_is_gone_is_withdrawn(scene: Scene, by: str) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Chloe", "start a trip")
    named = scene.say("Chloe", "London")
    await scene.answer_to(named)
    for district in ("Soho", "Mayfair"):
        added = scene.mention("Chloe", f"add {SECRET} bar {district} to the trip")
        await scene.answer_to(added)
        await scene.answer_to(scene.say("Chloe", "yes"))
    scene.bot.conversations.end(named.channel_id)
    card = await scene.ask("Ben", "remove bar from the trip")
    assert SECRET in card.content
    assert card.components
    if by == "forgetting":
        await forgotten(scene)
    else:
        await scene.delete(added)
    await scene.until(lambda: not scene.pg.world.message(card.channel_id, card.id).components)


@pytest.mark.parametrize("by", ["forgetting", "deleting", "editing"])
async def test_a_question_of_a_mini_apps_goes_with_what_it_quotes_though_the_list_has_it_no_more(
    scene: Scene, by: str
) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Ada", "start a trip")
    await scene.answer_to(scene.say("Ada", "London"))
    for district in ("Soho", "Mayfair"):
        added = scene.mention("Chloe", f"add {SECRET} bar {district} to the trip")
        await scene.answer_to(added)
        await scene.answer_to(scene.say("Chloe", "yes"))
    card = await scene.ask("Ben", "remove bar from the trip")
    assert SECRET in card.content
    await scene.ask("Ada", "delete all venues from the trip")
    await scene.answer_to(scene.say("Ada", "yes"))
    await scene.at_rest()
    match by:
        case "forgetting":
            await forgotten(scene)
        case "deleting":
            await scene.delete(added)
        case _:
            await scene.edit(added, "never mind")
    await scene.until(lambda: not scene.pg.world.message(card.channel_id, card.id).components)
    await scene.bot.snapshots.settled()
    assert not in_snapshots(scene.folder, SECRET)


@pytest.mark.parametrize("words", ["a note", "a name"])
async def test_a_mini_app_keeps_nothing_that_its_author_edited_out(scene: Scene, words: str) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    if words == "a note":
        await scene.ask("Chloe", "add Shake Shack Shibuya")
        said = scene.say("Chloe", f"get the {SECRET} burger")
        await scene.answer_to(said)
    else:
        said = scene.mention("Chloe", f"add {SECRET} bar to the trip")
        await scene.answer_to(said)
        await scene.answer_to(scene.say("Chloe", "yes"))
    await scene.edit(said, "never mind")
    scene.bot.conversations.end(said.channel_id)
    for _ in range(HISTORY_MESSAGES):  # else the bot's own words are read from the channel
        scene.say("Ada", "hello")
    await scene.ask("Ben", "what was the last thing that you did?")
    assert SECRET not in scene.told()
    assert SECRET not in (await scene.ask("Ben", "list our trip")).content
    await scene.bot.snapshots.settled()
    assert not in_snapshots(scene.folder, SECRET)


@pytest.mark.parametrize("how", ["edit", "delete"])
@pytest.mark.parametrize("what", ["a question", "a name"])
async def test_a_mini_app_keeps_nothing_of_any_message_of_a_burst_that_goes(
    stub: StubModel, what: str, how: str
) -> None:
    stub.default = lambda _: Reply("I see.")
    async with open_scene(stub, burst_seconds=2) as scene:
        said = scene.mention("Chloe", f"add {SECRET} bar")
        card = await scene.answer_to(scene.say("Chloe", "to the trip"))
        if what == "a name":
            await scene.answer_to(scene.say("Chloe", "yes"))
        await (scene.delete(said) if how == "delete" else scene.edit(said, "never mind"))
        if what == "a question":
            await scene.until(lambda: not scene.pg.world.message(card.channel_id, card.id).components)
        assert SECRET not in (await scene.ask("Ben", "list our trip")).content
        await scene.bot.snapshots.settled()
        assert not {"prompts", "miniapps"}.intersection(in_snapshots(scene.folder, SECRET))


async def test_a_question_of_a_mini_apps_goes_once_what_led_to_it_is_edited(scene: Scene) -> None:
    said = scene.mention("Chloe", f"add {SECRET} bar to the trip")
    card = await scene.answer_to(said)
    await scene.edit(said, "never mind")
    await scene.until(lambda: not scene.pg.world.message(card.channel_id, card.id).components)
    await scene.bot.snapshots.settled()
    assert "prompts" not in in_snapshots(scene.folder, SECRET)


@pytest.mark.parametrize("text", ["never mind", "add Hollow bar to the trip"])
@pytest.mark.parametrize("said_since", [0, 100])
async def test_what_is_edited_while_a_mini_app_looks_it_up_is_asked_anew_and_not_kept(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, said_since: int, text: str
) -> None:
    """Also once so much was said meanwhile that it is not in the conversation any more."""
    scene.stub.default = lambda _: Reply("I see.")
    find, looks, gate = SampleVenues.find, asyncio.Event(), asyncio.Event()

    async def slow(self: SampleVenues, query: str, limit: int) -> Sequence[Venue]:
        looks.set()
        await gate.wait()
        return await find(self, query, limit)

    monkeypatch.setattr(SampleVenues, "find", slow)
    said = scene.mention("Chloe", f"add {SECRET} bar to the trip")
    await looks.wait()
    for _ in range(said_since):
        last = scene.say("Ben", "hello everybody")
    if said_since:
        await scene.decision(last)
    await scene.edit(said, f"<@{scene.pg.bot_id}> {text}")
    gate.set()
    answer = (await scene.answer_to(said)).content
    assert "Hollow bar" in answer if "Hollow" in text else answer == "I see."
    await scene.at_rest()
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, SECRET)


@pytest.mark.parametrize("days", [0.1, 29, 31])
@pytest.mark.parametrize("how", ["forgotten", "not forgotten"])
@pytest.mark.parametrize("what", ["a thread", "a post"])
async def test_how_a_thread_began_is_not_told_once_it_is_forgotten_however_long_ago(
    stub: StubModel, tmp_path: Path, what: str, how: str, days: float
) -> None:
    """It is read from Discord where a conversation begins in the thread."""
    stub.default, clock = lambda _: Reply("I see."), FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage):
        ada, chloe, general = stage.pg.person("Ada"), stage.pg.person("Chloe"), stage.pg.channel("general")
        if what == "a thread":
            said = stage.say("Chloe", f"my code is {SECRET}")
            await stage.ask("Ada", "hello")
            opened = stage.bot.wait_for("thread_create", timeout=PATIENCE_SECONDS)
            thread = stage.pg.open_thread(general, ada, "names", message=said)
        else:
            opened = stage.bot.wait_for("thread_create", timeout=PATIENCE_SECONDS)
            thread = stage.pg.forum_post(stage.pg.add_channel("forum", type=15), chloe, "names", f"my code is {SECRET}")
        await opened
        if how == "forgotten":
            await forgotten(stage)
        clock.advance(days * 86_400)
        stage.bot.parts.sweep()
        await stage.answer_to(stage.pg.post(thread, ada, f"<@{stage.pg.bot_id}> what is this about?"))
        assert (SECRET in stage.told()) == (how == "not forgotten" and days < 30)


@pytest.mark.parametrize("when", ["after it was trimmed", "after a restart"])
async def test_how_a_thread_began_goes_with_the_channel_where_that_was_said_though_it_is_edited(
    stage: Scene, when: str
) -> None:
    """By then the conversation does not know any more from where it is."""
    stage.stub.default = lambda _: Reply("I see.")
    ada, random = stage.pg.person("Ada"), stage.pg.channel("random")
    stage.pg.allow(random, "manage_channels", member=ada)
    said = stage.say("Chloe", "my code is another", channel="random")
    thread = stage.pg.open_thread(random, ada, "names", message=said)

    async def ask(text: str) -> None:
        await stage.answer_to(stage.pg.post(thread, ada, f"<@{stage.pg.bot_id}> {text}"))

    async with life(stage):
        stage.bot.conversations._max_messages = 6  # there is no setting
        await ask("what is this about?")
        for number in range(8 if when == "after it was trimmed" else 0):
            await stage.decision(stage.pg.post(thread, ada, f"<@{stage.pg.person('Ben')}> number {number}"))
        if when == "after it was trimmed":
            await stage.edit(said, f"my code is {SECRET}")
    async with life(stage):
        if when == "after a restart":
            await stage.edit(said, f"my code is {SECRET}")
        await ask("and?")
        assert SECRET in stage.told()
        await stage.use("Ada", "forget", channel="random", everything=True)
        await ask("and now?")
        assert SECRET not in stage.told()
        await is_not_kept(stage)


async def test_an_answer_out_of_a_threads_title_goes_with_whoever_opened_it(scene: Scene) -> None:
    """In the thread itself they have said nothing."""
    scene.stub.default = lambda _: Reply("I see.")
    title = f"my code is {SECRET}"
    open_thread(scene, "Chloe", title, "Ben")
    scene.stub.replies.append(Reply(QUOTING))
    await scene.ask("Ben", "what is this thread about?", channel=title)
    assert title in scene.told()
    gate = scene.held("It is sunny.")
    scene.mention("Ben", "what is the weather?", channel=title)
    await scene.until(lambda: len(scene.stub.requests) == 2)
    asked = scene.mention("Ben", "and now?", channel=title)
    await scene.decision(asked)
    await scene.use("Chloe", "forget")
    assert not on_disk(scene.folder, SECRET)
    gate.set()
    await scene.answer_to(asked)
    assert SECRET not in scene.told()


# Replies, with which Discord sends what they reply to


@pytest.mark.parametrize("ended", [False, True])
async def test_a_reply_keeps_nothing_of_an_answer_that_is_forgotten(scene: Scene, *, ended: bool) -> None:
    answer = await quoted(scene)
    reply = scene.mention("Ben", "thanks, noted", reply_to=answer.id)
    await scene.answer_to(reply)
    await scene.bot.snapshots.settled()
    if ended:
        scene.bot.conversations.end(answer.channel_id)
    await forgotten(scene)
    await scene.edit(reply, "thanks, and noted")
    await is_not_kept(scene)
    await is_not_told(scene)
    assert "noted" in scene.told()


async def test_a_reply_to_what_is_forgotten_is_read_without_it(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    said = scene.say("Chloe", f"my code is {SECRET}")
    scene.say("Ben", "really?", reply_to=said.id)
    await scene.use("Chloe", "forget")
    await is_not_told(scene)
    assert "really" in scene.told()


@pytest.mark.parametrize("way", ["asked", "said before", "linked"])
async def test_a_new_reply_to_an_answer_that_is_forgotten_does_not_tell_it(scene: Scene, way: str) -> None:
    answer = await quoted(scene)
    await forgotten(scene)
    scene.bot.conversations.end(answer.channel_id)
    if way == "asked":
        await scene.ask("Ben", "and this one?", reply_to=answer.id)
    else:
        said = scene.say("Ben", "this one", reply_to=answer.id, channel="general")
        scene.bot.conversations.end(answer.channel_id)
        if way == "linked":
            scene.stub.replies.append(call("read_message", link=link(scene, said)))
        await scene.ask("Ben", f"what is {link(scene, said)}")
    assert "this one" in scene.told()
    assert SECRET not in scene.told()


@pytest.mark.parametrize("is_trimmed", [False, True])
async def test_a_reply_to_an_answer_that_is_being_made_keeps_nothing_of_it(scene: Scene, *, is_trimmed: bool) -> None:
    """It is stored before the answer."""
    scene.stub.default = lambda _: Reply("I see.")
    scene.bot.conversations._max_messages = 6  # there is no setting
    await scene.ask("Chloe", f"my code is {SECRET}")
    gate = scene.halted(f"{QUOTING} That is all.", chunk=len(QUOTING))
    asked = scene.mention("Ben", "what did Chloe say?")
    begun = await scene.shows(SECRET)
    await scene.decision(scene.say("Ada", "oh, is it?", reply_to=begun.id))
    if is_trimmed:
        await scene.flood()
        assert scene.bot.conversations.find(begun.channel_id, begun.id) is None
    await scene.bot.snapshots.settled()
    assert on_disk(scene.folder, QUOTING)
    await forgotten(scene)
    gate.set()
    await scene.answer_to(asked)
    await is_not_kept(scene)


async def test_a_new_reply_to_an_answer_that_was_begun_before_a_kill_does_not_tell_the_forgotten(stage: Scene) -> None:
    """It is written anew, and until it is longer than before its former words stand in Discord."""
    stage.stub.default = lambda _: Reply("I see.")
    async with life(stage):
        await stage.ask("Chloe", f"my code is {SECRET}")
        gate = stage.halted(f"{QUOTING} That is all.", chunk=len(QUOTING))
        asked = stage.mention("Ben", "what did Chloe say?")
        begun = await stage.shows(SECRET)
        await forgotten(stage)
        await kill(stage)
        gate.set()
    gate = stage.held("Chloe has had me forget what she said, so I cannot tell you.")
    async with waking(stage):
        await stage.until(lambda: stage.stub.requests)
        assert stage.pg.world.message(begun.channel_id, begun.id).content == QUOTING
        reply = stage.mention("Ada", "what is that?", reply_to=begun.id)
        await stage.until(lambda: stage.bot.turns.pending.waiting)
        await is_not_kept(stage)
        gate.set()
        await stage.answer_to(asked)
        await stage.answer_to(reply)
        assert "what is that?" in stage.told()
        assert SECRET not in str(stage.stub.requests)
        await is_not_kept(stage)


async def test_an_answer_out_of_a_quoted_answer_goes_with_those_whose_words_that_had(scene: Scene) -> None:
    answer = await quoted(scene)
    scene.bot.conversations.end(answer.channel_id)
    for number in range(25):  # so that of what was said before nothing else tells of her
        scene.say("Ben", f"by the way, number {number}")
    scene.stub.replies.append(Reply(QUOTING))
    await scene.ask("Ben", "what was that?", reply_to=answer.id)
    assert SECRET in scene.told()
    await forgotten(scene)
    await is_not_told(scene)


async def test_an_answer_out_of_a_reply_that_was_read_elsewhere_goes_with_those_it_quotes(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Chloe", f"my code is {SECRET}", channel="random")
    scene.stub.replies.append(Reply(QUOTING))
    answer = await scene.ask("Ada", "what did Chloe say?", channel="random")
    reply = scene.say("Ada", "thanks, noted", reply_to=answer.id, channel="random")
    await scene.answer_to(reply)
    scene.stub.replies.extend([call("read_message", link=link(scene, reply)), Reply(QUOTING)])
    await scene.ask("Ben", f"what does {link(scene, reply)} say?")
    assert SECRET in tool_results(scene.stub.requests[-1])[-1]
    await forgotten(scene)
    await is_not_told(scene)


async def test_a_question_that_waits_keeps_nothing_of_an_answer_that_is_forgotten_though_both_were_trimmed(
    scene: Scene,
) -> None:
    answer = await quoted(scene)
    scene.bot.conversations._max_messages = 6  # there is no setting
    gate = scene.held("Here you are.")
    begun = len(scene.stub.requests)
    await scene.decision(scene.mention("Ada", "hello"))
    await scene.until(lambda: len(scene.stub.requests) > begun)
    asked = scene.mention("Ben", "what is that?", reply_to=answer.id)
    await scene.decision(asked)
    await scene.flood()
    assert scene.bot.conversations.find(asked.channel_id, asked.id) is None
    await forgotten(scene)
    gate.set()
    await scene.answer_to(asked)
    assert "what is that?" in scene.told()
    assert SECRET not in scene.told()


async def test_a_question_that_waits_keeps_nothing_of_an_answer_that_is_forgotten(scene: Scene) -> None:
    answer = await quoted(scene)
    gate = scene.held("It is sunny.")
    asked = [scene.mention("Ben", words, reply_to=answer.id) for words in ("is it?", "and why?")]
    await scene.until(lambda: len(scene.bot.turns.pending.of(answer.channel_id).questions) == len(asked))
    await scene.use("Chloe", "forget")
    await scene.bot.snapshots.settled()
    try:
        assert not in_snapshots(scene.folder, SECRET)
    finally:
        gate.set()
    await scene.answer_to(asked[-1])


async def test_a_question_being_answered_quotes_no_answer_that_is_forgotten_though_both_were_trimmed(
    scene: Scene,
) -> None:
    answer = await quoted(scene)
    scene.bot.conversations._max_messages = 6  # there is no setting
    gate = scene.held("", calls=call("current_time").calls)
    begun = len(scene.stub.requests)
    asked = scene.mention("Ben", "what is that?", reply_to=answer.id)
    await scene.until(lambda: len(scene.stub.requests) > begun)
    await scene.flood()
    assert scene.bot.conversations.find(asked.channel_id, asked.id) is None
    await forgotten(scene)
    gate.set()
    await scene.answer_to(asked)
    assert len(scene.stub.requests) == begun + 2
    assert "what is that?" in scene.told()
    assert SECRET not in scene.told()


async def test_what_was_told_at_the_beginning_goes_while_it_is_answered_though_it_was_trimmed(
    stub: StubModel, tmp_path: Path
) -> None:
    """The bot's own answer in an earlier conversation, which quotes the forgotten."""
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage):
        await quoted(stage)
        clock.advance(200)
        stage.bot.conversations._max_messages = 6  # there is no setting
        gate = stage.held("", calls=call("current_time").calls)
        begun = len(stub.requests)
        asked = stage.mention("Ben", "what time is it?")
        await stage.until(lambda: len(stub.requests) > begun)
        assert SECRET in stage.told()
        await stage.flood()
        await forgotten(stage)
        gate.set()
        await stage.answer_to(asked)
        assert len(stub.requests) == begun + 2
        assert SECRET not in stage.told()


@pytest.mark.parametrize("by", ["forgetting", "deleting", "editing"])
async def test_a_question_that_waits_keeps_nothing_of_what_it_replied_to(scene: Scene, by: str) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    said = scene.mention("Chloe", f"my code is {SECRET}")
    await scene.answer_to(said)
    gate = scene.held("It is sunny.")
    asked = [scene.mention("Ben", words, reply_to=said.id) for words in ("what is it?", "and why?")]
    await scene.until(lambda: len(scene.bot.turns.pending.of(said.channel_id).questions) == len(asked))
    if by == "forgetting":
        await scene.use("Chloe", "forget")
    elif by == "deleting":
        await scene.delete(said)
    else:
        await scene.edit(said, "my code is another by now")
    await scene.bot.snapshots.settled()
    try:
        assert not in_snapshots(scene.folder, SECRET)
    finally:
        gate.set()
    await scene.answer_to(asked[-1])


# Forwards, of which Discord does not say whose words they have


def of_chloe(scene: Scene, answer: Message, whose: str) -> Message:
    """The message to forward: hers, or the answer that quotes her."""
    hers = next(m for m in scene.pg.messages(answer.channel_id) if SECRET in m.content)
    return hers if whose == "hers" else answer


@pytest.mark.parametrize("whose", ["hers", "the bot's"])
@pytest.mark.parametrize("when", ["in the conversation", "in the next one", "before a restart", "after a restart"])
async def test_a_forward_of_the_forgotten_goes_and_what_was_answered_out_of_it(
    stage: Scene, whose: str, when: str
) -> None:
    async with life(stage):
        answer = await quoted(stage)
        await stage.ask("Ada", "hello", channel="random")
        forward = stage.say("Ben", forward=of_chloe(stage, answer, whose), channel="random")
        await stage.decision(forward)
        stage.stub.replies.append(Reply(QUOTING))
        await stage.ask("Ben", "what is that?", channel="random")
        assert "[forwarded]" in stage.told()
        assert SECRET in stage.told()
        if when == "in the next one":
            stage.bot.conversations.end(forward.channel_id)
        if when == "before a restart":
            await forgotten(stage)
    async with life(stage):
        if when != "before a restart":
            await forgotten(stage)
        await stage.ask("Ben", "and now?", channel="random")
        await is_not_kept(stage)
        assert SECRET not in stage.told()
        assert "hello" in stage.told()


async def test_a_forward_out_of_direct_messages_is_looked_up_after_a_restart(stage: Scene) -> None:
    """They are not in the client's cache then."""
    ben = stage.pg.person("Ben")
    stage.stub.default = lambda _: Reply(QUOTING)
    async with life(stage, direct_messages="open"):
        said = await stage.ask("Chloe", f"my code is {SECRET}")
        told = await stage.answer_to(stage.pg.post(stage.pg.dm(ben), ben, forward=said))
    stage.stub.default = lambda _: Reply("I see.")
    async with life(stage, direct_messages="open"):
        await forgotten(stage)
        await stage.decision(stage.say("Ben", forward=told))
        await is_not_told(stage)
        assert UNREAD_FORWARD in stage.told()


@pytest.mark.parametrize("by", ["Ben", "Chloe"])
async def test_a_forward_goes_with_the_channel_from_which_it_is(scene: Scene, by: str) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    said = scene.say("Chloe", f"my code is {SECRET}", channel="random")
    scene.pg.allow(said.channel_id, "manage_channels", member=scene.pg.person("Ada"))
    await scene.ask("Ben", "hello")
    await scene.decision(scene.say(by, forward=said))
    await scene.use("Ada", "forget", channel="random", everything=True)
    await is_not_told(scene)
    await is_not_kept(scene)
    scene.bot.conversations.end(scene.pg.channel("general"))
    await is_not_told(scene)


@pytest.mark.parametrize("whose", ["hers", "the bot's"])
@pytest.mark.parametrize("way", ["said in the conversation", "said before", "linked", "answered in private"])
async def test_a_new_forward_of_the_forgotten_is_not_read(scene: Scene, whose: str, way: str) -> None:
    answer = await quoted(scene)
    await forgotten(scene)
    if way != "said in the conversation":
        scene.bot.conversations.end(answer.channel_id)
    forward = scene.say("Ben", forward=of_chloe(scene, answer, whose))
    if way == "answered in private":
        await scene.use("Ada", "Answer this", target=forward)
    else:
        if way == "linked":
            scene.stub.replies.append(call("read_message", link=link(scene, forward)))
        await scene.ask("Ben", f"what is {link(scene, forward)}")
    assert UNREAD_FORWARD in scene.told()
    assert SECRET not in scene.told()


async def test_a_forward_out_of_an_archived_thread_goes_with_whoever_said_it(stage: Scene) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    thread = stage.pg.open_thread(stage.pg.channel("random"), stage.pg.person("Chloe"), "a thread")
    hers = stage.say("Chloe", f"my code is {SECRET}", channel="a thread")
    stage.pg.change_thread(thread, archived=True)
    async with life(stage):
        await stage.ask("Ben", "hello")
        await stage.decision(stage.say("Ben", forward=hers))
        await stage.use("Chloe", "forget")
        await is_not_told(stage)
        assert not on_disk(stage.folder, SECRET)
        await stage.decision(stage.say("Ben", forward=hers))
        await is_not_told(stage)


@pytest.mark.parametrize("how", ["forget", "optout"])
async def test_a_reply_to_a_forward_quotes_nothing_of_who_is_forgotten(scene: Scene, how: str) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    forward = scene.say("Ben", forward=scene.say("Chloe", f"my code is {SECRET}", channel="random"))
    asked = scene.mention("Ada", "look", reply_to=forward.id)
    await scene.answer_to(asked)
    assert SECRET in scene.told()
    await scene.edit(asked, f"<@{scene.pg.bot_id}> look at this")
    await scene.use("Chloe", how)
    await is_not_told(scene)
    assert "look at this" in scene.told()
    await is_not_kept(scene)
    scene.bot.conversations.end(asked.channel_id)
    await scene.ask("Ada", "and look again", reply_to=forward.id)
    assert SECRET not in scene.told()


@pytest.mark.parametrize("since", ["this start", "the next"])
async def test_a_forward_of_somebody_who_opted_out_is_not_read(stage: Scene, since: str) -> None:
    """Nor where the message that it forwards has to be looked up, as it was posted before the bot was started."""
    async with life(stage):
        await stage.use("Chloe", "optout")
        hers = stage.say("Chloe", f"my code is {SECRET}", channel="random")
        if since == "this start":
            await is_not_read(stage, hers)
    if since == "the next":
        async with life(stage):
            await is_not_read(stage, hers)


async def is_not_read(scene: Scene, original: Message) -> None:
    scene.say("Ben", forward=original)
    await scene.ask("Ben", "what is that?")
    assert UNREAD_FORWARD in scene.told()
    assert SECRET not in scene.told()
