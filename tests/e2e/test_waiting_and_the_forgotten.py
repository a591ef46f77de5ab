"""What was clicked, and what is told of or with a question that waits: nothing of it keeps the forgotten."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from discord_io.channel_history import HISTORY_MESSAGES
from files.reading import FileReader, Reading
from playground.model import File, Message
from tests.e2e.test_asking import tool_results
from tests.e2e.test_quoting_the_forgotten import QUOTING, SECRET, forgotten
from tests.e2e.test_who_may_read import call, link, newcomer
from tests.support.lives import in_snapshots, kill, life, on_disk
from tests.support.scene import PATIENCE_SECONDS, Scene, choices, open_scene
from tests.support.stub_model import Call, Reply, StubModel
from turns import turn_slots
from turns.preparing import Preparing

CLOCK = (Call("current_time", "{}", "call-clock"),)
CODES = [f"{SECRET} it is", "daffodil"]


async def take_back(scene: Scene, said: Message, by: str) -> None:
    """Has a message of Chloe's go."""
    match by:
        case "forgetting" | "opting out":
            await scene.use("Chloe", "forget" if by == "forgetting" else "optout")
        case "deleting":
            await scene.delete(said)
        case _:
            await scene.edit(said, "never mind")


async def chosen_from(scene: Scene) -> Message:
    """The agent asks Ben which of Chloe's codes he means."""
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Chloe", f"my code is {SECRET}")
    scene.stub.replies.append(call("ask_choice", question=f"Which one, {SECRET} or what?", options=CODES))
    return await scene.ask("Ben", "what are the codes?")


async def listed(scene: Scene) -> Message:
    """The trip planner asks Ben which of two venues of Chloe's he means, which she had typed."""
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Chloe", "start a trip")
    await scene.answer_to(scene.say("Chloe", "London"))
    for district in ("Soho", "Mayfair"):
        await scene.ask("Chloe", f"add {SECRET} bar {district} to the trip")
        await scene.answer_to(scene.say("Chloe", "yes"))
    return await scene.ask("Ben", "remove bar from the trip")


async def cut(scene: Scene) -> Message:
    """An answer to Ben out of what Chloe said was cut, and can be gone on with."""
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Chloe", f"my code is {SECRET}")
    scene.stub.replies.append(Reply(f"Chloe says {SECRET} and", finish="length"))
    return await scene.ask("Ben", "what did Chloe say?")


async def test_the_words_of_a_button_go_with_whoever_said_them(scene: Scene) -> None:
    card = await chosen_from(scene)
    scene.stub.replies.append(Reply("That one."))
    scene.press("Ben", card, "1.")
    await scene.shows("That one.")
    await scene.at_rest()
    await scene.bot.snapshots.settled()
    assert on_disk(scene.folder, CODES[0])
    await forgotten(scene)
    await scene.ask("Ben", "and now?")
    assert SECRET not in scene.told()


async def test_the_words_of_a_button_go_with_its_card(scene: Scene) -> None:
    card = await chosen_from(scene)
    scene.stub.replies.append(Reply("That one."))
    scene.press("Ben", card, "1.")
    await scene.shows("That one.")
    await scene.at_rest()
    for message in scene.pg.messages(card.channel_id):
        if SECRET in message.content:
            scene.pg.delete(message)
    await scene.ask("Ben", "and now?")
    assert SECRET not in scene.told()
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, SECRET)


@pytest.mark.parametrize("what", ["a choice", "a mini-app's", "a mini-app's called off", "go on"])
async def test_what_waits_to_be_answered_keeps_nothing_of_the_forgotten(scene: Scene, what: str) -> None:
    ask = {"a choice": chosen_from, "go on": cut}.get(what, listed)
    card = await ask(scene)
    assert SECRET in card.content
    gate, asked = scene.held("It is sunny."), len(scene.stub.requests)
    scene.mention("Ada", "what is the weather?")
    await scene.until(lambda: len(scene.stub.requests) > asked)
    if what == "a mini-app's called off":
        scene.mention("Ben", "never mind")
    else:
        scene.press("Ben", card, "Go on" if what == "go on" else "1.")
    await scene.until(lambda: scene.bot.turns.pending.waiting)
    await scene.use("Chloe", "forget")
    await scene.bot.snapshots.settled()
    try:
        assert not on_disk(scene.folder, SECRET)
    finally:
        gate.set()
    await scene.until(lambda: len(scene.journal.find("turn_ended")) > 1)
    await scene.at_rest()
    assert {entry["outcome"] for entry in scene.journal.find("turn_ended")} == {"answered"}
    await scene.ask("Ben", "and now?")
    assert SECRET not in str(scene.stub.requests[asked + 1 :])


async def test_what_a_mini_app_had_just_done_is_not_kept_with_a_question_that_waits(scene: Scene) -> None:
    await scene.ask("Chloe", f"add {SECRET} bar to the trip")
    await scene.answer_to(scene.say("Chloe", "yes"))
    gate = scene.held("It is sunny.")
    scene.mention("Ada", "what is the weather?")
    await scene.until(lambda: scene.stub.requests)
    waits = scene.mention("Ben", "what about tomorrow?")
    await scene.until(lambda: scene.bot.turns.pending.waiting)
    await scene.use("Chloe", "forget")
    await scene.bot.snapshots.settled()
    try:
        assert not in_snapshots(scene.folder, SECRET)
    finally:
        gate.set()
    await scene.answer_to(waits)


async def test_a_mini_apps_question_that_is_asked_again_goes_with_those_whom_the_answer_above_it_quotes(
    scene: Scene,
) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Chloe", f"my code is {SECRET}")
    await scene.ask("Ben", "start a trip")
    await scene.ask("Ben", "what is two and two?")
    scene.stub.replies.append(Reply(f"Chloe says {SECRET}."))
    again = await scene.ask("Ben", "and what did Chloe say?")
    assert choices(again)
    await scene.use("Chloe", "forget")
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, SECRET)


async def test_what_people_were_to_allow_goes_with_those_it_quotes(scene: Scene) -> None:
    """Of whose words nothing else was told there."""
    scene.stub.default = lambda _: Reply("I see.")
    said = scene.say("Chloe", f"my code is {SECRET}")
    for number in range(25):
        scene.say("Ben", f"by the way, number {number}")
    scene.stub.replies.append(call("pin", link=link(scene, said)))
    card = await scene.ask("Ben", f"pin {link(scene, said)}")
    assert SECRET in card.content
    assert SECRET not in scene.told()
    await scene.bot.snapshots.settled()
    await forgotten(scene)
    await scene.ask("Ben", "and now?")
    assert SECRET not in scene.told()


@pytest.mark.parametrize("by", ["deleting", "editing"])
async def test_what_people_were_to_allow_is_not_done_once_earlier_words_that_it_may_quote_go(
    scene: Scene, by: str
) -> None:
    """Also those that the agent was told before the question that led to it."""
    scene.stub.default = lambda _: Reply("I see.")
    await scene.answer_to(said := scene.mention("Chloe", f"my code is {SECRET}"))
    await scene.at_rest()
    scene.stub.replies.append(call("create_poll", question=f"Is it {SECRET}?", options=["yes", "no"]))
    card = await scene.ask("Ben", "make a poll of it")
    assert SECRET in card.content
    await scene.at_rest()
    await take_back(scene, said, by)
    await is_not_done(scene, card)


@pytest.mark.parametrize("by", ["deleting", "editing"])
async def test_what_people_were_to_allow_is_not_done_once_what_a_mini_app_kept_of_a_message_goes(
    scene: Scene, by: str
) -> None:
    """The agent was told what was last done in the channel, and not the message: others have written since."""
    scene.stub.default = lambda _: Reply("I see.")
    await scene.answer_to(said := scene.mention("Chloe", f"add {SECRET} bar to the trip"))
    await scene.answer_to(scene.say("Chloe", "yes"))
    scene.bot.conversations.end(said.channel_id)
    for _ in range(HISTORY_MESSAGES):
        scene.say("Ada", "hello")
    scene.stub.replies.append(call("create_poll", question=f"Who goes to {SECRET}?", options=["me", "not me"]))
    card = await scene.ask("Ben", "make a poll of what you did last")
    assert SECRET in scene.told()
    await take_back(scene, said, by)
    await is_not_done(scene, card)


@pytest.mark.parametrize("when", ["at once", "over a restart"])
async def test_what_people_were_to_allow_is_not_done_once_an_answer_that_it_may_quote_is_deleted(
    stage: Scene, when: str
) -> None:
    async with life(stage):
        stage.stub.replies.append(Reply(f"The word is {SECRET}."))
        answer = await stage.ask("Ben", "tell me a word")
        stage.stub.replies.append(call("create_poll", question=f"Is it {SECRET}?", options=["yes", "no"]))
        card = await stage.ask("Ben", "make a poll of that")
        if when == "at once":
            await stage.delete(answer)
            await is_not_done(stage, card)
            return
        await stage.at_rest()
        await kill(stage)
    stage.pg.delete(answer)
    async with life(stage):
        await is_not_done(stage, card)


async def answered_but_for_a_withdrawn_question(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Message:
    """The answer to Ben. Ada's question was withdrawn before the model was told any of them, as while files are read or
    another model picks the agent."""
    read, is_reading, may_read = Preparing.attached, asyncio.Event(), asyncio.Event()

    async def late(*given: Any) -> Mapping[str, Reading]:
        is_reading.set()
        await may_read.wait()
        return await read(*given)

    gate = scene.held("Hello Chloe.")
    scene.mention("Chloe", "hello")
    await scene.until(lambda: len(scene.stub.requests) == 1)
    scene.stub.replies.append(Reply(f"The word is {SECRET}."))
    for who in ("Ben", "Ada"):
        await scene.decision(question := scene.mention(who, f"{who} wants a word"))
    with monkeypatch.context() as patch:
        patch.setattr(Preparing, "attached", late)
        gate.set()
        await is_reading.wait()
    await scene.delete(question)
    may_read.set()
    await scene.until(lambda: SECRET in scene.said()[-1].content)
    assert "Ben wants" in scene.told()
    assert "Ada wants" not in scene.told()
    await scene.at_rest()
    return scene.said()[-1]


@pytest.mark.parametrize("when", ["at once", "after a kill", "over a kill"])
async def test_an_answer_that_is_deleted_is_not_told_though_one_question_of_several_was_withdrawn(
    stage: Scene, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    async with life(stage):
        answer = await answered_but_for_a_withdrawn_question(stage, monkeypatch)
        if when == "at once":
            await stage.delete(answer)
            await is_neither_told_nor_kept(stage)
            return
        await kill(stage)
    if when == "over a kill":
        stage.pg.delete(answer)
    async with life(stage):
        if when == "after a kill":
            await stage.delete(answer)
        await is_neither_told_nor_kept(stage)


@pytest.mark.parametrize("when", ["afterwards", "while they run"])
async def test_what_tools_were_asked_goes_with_an_answer_that_it_may_quote(scene: Scene, when: str) -> None:
    scene.stub.replies.append(Reply(f"The word is {SECRET}."))
    answer, gate = await scene.ask("Ben", "tell me a word"), asyncio.Event()
    scene.stub.replies.extend([call("current_time", timezone=SECRET), Reply("There is no such zone.", before=gate)])
    asked = scene.mention("Ben", "what time is it there?")
    await scene.until(lambda: len(scene.stub.requests) == 3)
    if when == "while they run":
        await scene.delete(answer)
    gate.set()
    await scene.answer_to(asked)
    if when == "afterwards":
        await scene.delete(answer)
    await is_neither_told_nor_kept(scene)


@pytest.mark.parametrize("when", ["at once", "after a restart", "over a restart"])
async def test_an_answer_that_is_deleted_is_not_told_though_it_was_trimmed(stage: Scene, when: str) -> None:
    async with life(stage):
        stage.bot.conversations._max_messages = 4  # there is no setting
        stage.stub.replies.append(Reply(f"The word is {SECRET}."))
        answer = await stage.ask("Ben", "tell me a word")
        for _ in range(4):
            await stage.decision(stage.say("Ada", "hello everybody"))
        await stage.ask("Ben", "and what else?")
        assert SECRET in stage.told()
        if when == "at once":
            await stage.delete(answer)
            await is_neither_told_nor_kept(stage)
            return
        await kill(stage)
    if when == "over a restart":
        stage.pg.delete(answer)
    async with life(stage):
        if when == "after a restart":
            await stage.delete(answer)
        await is_neither_told_nor_kept(stage)


@pytest.mark.parametrize("by", ["deleting", "editing"])
async def test_what_was_allowed_is_not_done_once_what_it_may_quote_goes_while_it_waits_for_its_budget(
    stub: StubModel, by: str
) -> None:
    # What one answer may take is reserved of it, so that only one is made at once.
    async with open_scene(stub, guild_tokens=30_000) as scene:
        scene.pg.add_channel("help")
        stub.default = lambda _: Reply("I see.")
        await scene.answer_to(said := scene.mention("Chloe", f"my code is {SECRET}"))
        stub.replies.append(call("create_poll", question=f"Is it {SECRET}?", options=["yes", "no"]))
        card = await scene.ask("Ben", "make a poll of that")
        gate, asked = scene.held("Here you are."), len(stub.requests)
        scene.mention("Ada", "what?", channel="help")
        await scene.until(lambda: len(stub.requests) > asked)
        scene.press("Ben", card, "Yes")
        queues = scene.bot.turns._queues
        await scene.until(lambda: (queue := queues.get(card.channel_id)) and queue.turn and queue.turn.request)
        await take_back(scene, said, by)
        gate.set()
        await scene.until(lambda: len(stub.requests) > asked + 1)
        await scene.at_rest()
        assert not [m for m in scene.said() if m.poll]
        await scene.bot.snapshots.settled()
        assert not in_snapshots(scene.folder, "create_poll")


async def is_neither_told_nor_kept(scene: Scene) -> None:
    await scene.ask("Ben", "and now?")
    assert SECRET not in scene.told()
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, SECRET)


async def is_not_done(scene: Scene, card: Message) -> None:
    """What people were to allow is not done any more, and not kept."""
    await scene.at_rest()
    before = len(scene.stub.requests)
    scene.press("Ben", card, "Yes")
    await scene.until(lambda: len(scene.stub.requests) > before)
    await scene.at_rest()
    assert not [m for m in scene.said() if m.poll]
    await scene.bot.snapshots.settled()
    assert not in_snapshots(scene.folder, "create_poll")


@pytest.mark.parametrize("is_edited", [False, True])
@pytest.mark.parametrize("what", ["a link is unfurled", "a pin", "a flag"])
async def test_what_waits_is_not_lost_by_what_is_no_edit_of_a_message_that_was_trimmed(
    scene: Scene, what: str, *, is_edited: bool
) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    scene.bot.conversations._max_messages = 6  # there is no setting
    await scene.answer_to(said := scene.mention("Chloe", "see https://example.org"))
    if is_edited:
        await scene.edit(said, "look at https://example.org")
    scene.stub.replies.append(call("create_poll", question="Is it good?", options=["yes", "no"]))
    card = await scene.ask("Ben", "make a poll of it")
    for _ in range(6):
        await scene.decision(scene.say("Ada", "hello everybody"))
    assert scene.bot.conversations.find(said.channel_id, said.id) is None
    now, heard = scene.pg.world.message(said.channel_id, said.id), scene.heard("raw_message_edit", said)
    match what:
        case "a link is unfurled":
            scene.pg.world.replace_message(replace(now, embeds=({"type": "link", "title": "An example"},)))
        case "a pin":
            scene.pg.world.pin(now, scene.pg.world.users[scene.pg.person("Ada")])
        case _:
            scene.pg.world.replace_message(replace(now, flags=4))
    await heard
    await scene.at_rest()
    scene.stub.replies.append(Reply("There it is."))
    scene.press("Ben", card, "Yes")
    await scene.shows("There it is.")
    assert len([m for m in scene.said() if m.poll]) == 1


async def test_a_reply_that_is_heard_out_keeps_nothing_of_an_answer_that_is_forgotten(stub: StubModel) -> None:
    """It begins the conversation, in which nothing else tells of whom the answer quotes."""
    async with open_scene(stub, burst_seconds=PATIENCE_SECONDS) as scene:
        stub.default = lambda _: Reply("I see.")
        await scene.ask("Chloe", f"my code is {SECRET}?")
        stub.replies.append(Reply(QUOTING))
        answer = await scene.ask("Ben", "what did Chloe say?")
        scene.bot.conversations.end(answer.channel_id)
        for number in range(25):
            scene.say("Ben", f"by the way, number {number}")
        scene.mention("Ben", "tell me of that", reply_to=answer.id)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not len(scene.bot.parts.bursts):  # noqa: ASYNC110 - which nothing tells of
                await asyncio.sleep(0)
        await scene.use("Chloe", "forget")
        await scene.answer_to(scene.mention("Ben", "really?"))
        assert "tell me of that" in scene.told()
        assert SECRET not in scene.told()


@pytest.mark.parametrize("by", ["forgetting", "deleting", "editing"])
@pytest.mark.parametrize("while_it", ["is completed", "is shown a file", "waits for its budget"])
async def test_a_question_in_full_says_nothing_of_what_goes_meanwhile(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch, while_it: str, by: str
) -> None:
    """It was completed out of what somebody had said, by a model or by rules, before that went."""
    began, gate = asyncio.Event(), asyncio.Event()

    def complete(_: Any) -> Reply:
        began.set()
        return Reply(f"and is {SECRET} safe?", before=gate)

    async def read(reader: FileReader, *what: Any) -> Mapping[str, Reading]:
        if what[0][-1].files:
            began.set()
            await gate.wait()
        return await real(reader, *what)

    real = FileReader.read
    monkeypatch.setattr(FileReader, "read", read)
    stub.default, stub.rewriter_says = lambda _: Reply("I see."), complete
    monkeypatch.setattr(turn_slots, "TOLD_SECONDS", 0.01)
    async with open_scene(stub, rewrite_model="openai-chat:stub", guild_tokens=30_000) as scene:
        said = scene.mention("Chloe", f"what is the weather in {SECRET.title()}?")
        await scene.answer_to(said)
        if while_it == "is completed":
            asked = scene.mention("Ben", "and is it safe?")
        elif while_it == "waits for its budget":  # so much is reserved of it that only one answer is made at once
            stub.replies.append(Reply("Here you are.", before=gate))
            stub.rewriter_says = lambda _: Reply()
            scene.pg.add_channel("help")
            scene.mention("Ada", "what?", channel="help")
            await scene.until(lambda: len(stub.requests) == 2)
            asked = scene.mention("Ben", "and tomorrow?")
            await scene.shows(turn_slots.FOR_BUDGET)
            began.set()
        else:
            asked = scene.mention("Ben", "and tomorrow?", attachments=[File("plan.txt", "text/plain", b"hello")])
        await asyncio.wait_for(began.wait(), PATIENCE_SECONDS)
        match by:
            case "forgetting":
                await scene.use("Chloe", "forget")
            case "deleting":
                await scene.delete(said)
            case _:
                await scene.edit(said, "never mind")
        gate.set()
        await scene.answer_to(asked)
        assert asked.content in scene.told().replace("@Parley", f"<@{scene.pg.bot_id}>")
        assert SECRET not in scene.told().lower()


@pytest.mark.parametrize("by", ["forgetting", "opting out", "deleting", "editing"])
@pytest.mark.parametrize("told", ["by the history", "by a tool", "with the question"])
async def test_what_goes_while_an_answer_is_made_is_not_told_in_its_next_request(
    scene: Scene, told: str, by: str
) -> None:
    """A model that uses tools is sent all anew with their results."""
    scene.stub.default, gate = lambda _: Reply("I see."), asyncio.Event()
    where = "random" if told == "by a tool" else "general"
    if told == "by the history":
        await scene.answer_to(said := scene.mention("Chloe", f"my code is {SECRET}"))
        scene.stub.replies.append(Reply("Let me see.", gate=gate, chunk=4, calls=CLOCK))
    else:
        said = scene.say("Chloe", f"my code is {SECRET}", channel=where)
        if told == "by a tool":
            scene.stub.replies.append(call("read_message", link=link(scene, said)))
        scene.stub.replies.append(Reply("Let me see.", gate=gate, chunk=4, calls=CLOCK))
    asked = scene.mention("Ben", f"what does {link(scene, said)} say, and how late is it?")
    await scene.shows("Let")
    assert SECRET in scene.told() + "".join(tool_results(scene.stub.requests[-1]))
    await take_back(scene, said, by)
    known = len(scene.stub.requests)
    gate.set()
    await scene.outcome(asked)
    assert len(scene.stub.requests) == known + 1
    assert "how late is it?" in scene.told()
    assert SECRET not in json.dumps(scene.stub.requests[-1])


@pytest.mark.parametrize("by", ["forgetting", "opting out", "deleting", "editing"])
@pytest.mark.parametrize("said_to", ["the bot", "Ben"])
async def test_what_was_said_before_its_question_was_answered_goes_while_it_uses_tools(
    scene: Scene, said_to: str, by: str
) -> None:
    scene.stub.default, gate = lambda _: Reply("I see."), asyncio.Event()
    scene.stub.replies.append(call("ask_text", question="Which city?"))
    await scene.ask("Ben", "what is the weather like?")
    to = scene.pg.bot_id if said_to == "the bot" else scene.pg.person("Ben")
    said = scene.say("Chloe", f"<@{to}> my code is {SECRET}")
    await scene.decision(said)
    await scene.at_rest()
    scene.stub.replies.append(Reply("Let me see.", gate=gate, chunk=4, calls=CLOCK))
    replied = scene.say("Ben", "in Paris")
    await scene.shows("Let")
    assert SECRET in json.dumps(scene.stub.requests[-1])
    await take_back(scene, said, by)
    known = len(scene.stub.requests)
    gate.set()
    await scene.outcome(replied)
    assert len(scene.stub.requests) == known + 1
    assert "in Paris" in tool_results(scene.stub.requests[-1])
    assert 'Now answer "Ben".' in scene.stub.requests[-1]["messages"][-3]["content"]
    assert SECRET not in json.dumps(scene.stub.requests[-1])


async def test_what_a_newcomer_may_not_read_does_not_come_with_an_edit_while_they_are_answered(scene: Scene) -> None:
    scene.stub.default, gate = lambda _: Reply("I see."), asyncio.Event()
    newcomer(scene)
    old = scene.say("Chloe", f"my code is {SECRET}")
    await scene.answer_to(reply := scene.mention("Ben", "is that safe?", reply_to=old.id))
    scene.stub.replies.append(Reply("Let me see.", gate=gate, chunk=4, calls=CLOCK))
    asked = scene.mention("Ben", "how late is it?")
    await scene.shows("Let")
    await scene.edit(reply, "is that very safe?")
    gate.set()
    await scene.outcome(asked)
    assert "is that very safe?" in scene.told()
    assert SECRET not in json.dumps(scene.stub.requests[-1])


@pytest.mark.parametrize("by", ["deleting", "editing"])
@pytest.mark.parametrize("is_burst", [False, True])
async def test_a_question_that_waits_keeps_nothing_that_its_author_took_out(
    stage: Scene, by: str, *, is_burst: bool
) -> None:
    """Neither on the disk nor in what the next process has it completed from."""
    stage.stub.default = lambda _: Reply("I see.")
    async with life(stage, burst_seconds=0.05 * is_burst):
        await stage.ask("Ben", "what is the weather in Osaka?")
        stage.held()
        stage.mention("Chloe", "hello")
        await stage.until(lambda: len(stage.stub.requests) == 2)
        said = stage.mention("Ben", f"and in {SECRET.title()}?")
        last = stage.say("Ben", "and tomorrow?") if is_burst else said
        await stage.decision(last)
        await stage.bot.snapshots.settled()
        assert in_snapshots(stage.folder, SECRET.title())
        if by == "editing":
            await stage.edit(said, f"<@{stage.pg.bot_id}> never mind")
        else:
            await stage.delete(said)
        await stage.bot.snapshots.settled()
        assert not on_disk(stage.folder, SECRET.title())
        await kill(stage)
    async with life(stage):
        await stage.at_rest()
        assert len(stage.stub.requests) == 1 + (is_burst or by == "editing")
        assert SECRET not in json.dumps(stage.stub.requests).lower()


@pytest.mark.parametrize("status", [200, 500])
async def test_a_threads_title_goes_with_whoever_gave_it_while_an_answer_is_made(scene: Scene, status: int) -> None:
    """While a tool runs, or until a request that failed is made again."""
    scene.stub.default, gate = lambda _: Reply("I see."), asyncio.Event()
    thread = scene.pg.open_thread(scene.pg.channel("general"), scene.pg.person("Chloe"), f"about {SECRET}")
    begun = Reply("Let me see.", gate=gate, chunk=4, calls=CLOCK) if status == 200 else Reply(status=500, before=gate)
    scene.stub.replies.append(begun)
    asked = scene.pg.post(thread, scene.pg.person("Ben"), f"<@{scene.pg.bot_id}> how late is it?")
    await scene.until(lambda: scene.stub.requests)
    if status == 200:
        await scene.until(lambda: [m for m in scene.pg.messages(thread) if "Let" in m.content])
    assert SECRET in json.dumps(scene.stub.requests[-1])
    await scene.use("Chloe", "forget")
    gate.set()
    await scene.outcome(asked)
    assert "how late is it?" in scene.told()
    assert len(scene.stub.requests) == 2
    assert SECRET not in json.dumps(scene.stub.requests[-1])


@pytest.mark.parametrize("how", ["delete", "forget"])
async def test_what_goes_while_a_question_waits_for_its_budget_is_not_told(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(turn_slots, "TOLD_SECONDS", 0.01)
    # What one answer may take is reserved of it, so that only one is made at once.
    async with open_scene(stub, guild_tokens=30_000) as scene:
        scene.pg.add_channel("help")
        stub.default = lambda _: Reply("I see.")
        told = scene.mention("Chloe", f"my code is {SECRET}")
        await scene.answer_to(told)
        gate = scene.held("Here you are.")
        first = scene.mention("Ada", "what?", channel="help")
        await scene.until(lambda: len(stub.requests) == 2)
        untold = scene.say("Chloe", f"{SECRET} it is")
        later = scene.mention("Ben", "what are the codes?")
        await scene.shows(turn_slots.FOR_BUDGET)
        if how == "delete":
            for message in (told, untold):
                await scene.delete(message)
        else:
            await scene.use("Chloe", "forget")
        conversation = scene.bot.conversations.get(told.channel_id)
        assert conversation
        await scene.until(lambda: not any(SECRET in message.content for message in conversation.messages))
        gate.set()
        await scene.answer_to(first)
        assert (await scene.answer_to(later)).content == "I see."
        assert SECRET not in scene.told()
