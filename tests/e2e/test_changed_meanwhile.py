"""Words that change while a question waits, or while it is answered: what the model is told then, and what not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from commands.ask import CHANGED
from playground.interactions import Interaction
from playground.model import Event, File, Message
from tests.e2e.test_who_may_read import newcomer
from tests.support import scene as support
from tests.support.lives import on_disk
from tests.support.samples import picture
from tests.support.scene import PATIENCE_SECONDS, Scene, open_scene
from tests.support.stub_model import Call, Reply, StubModel
from turns.preparing import RECENT_MESSAGES
from turns.private_answers import GONE

SECRET = "Bluebell"
CLOCK = (Call("current_time", "{}", "call-clock"),)


async def change(scene: Scene, said: Message, how: str) -> None:
    match how:
        case "edit":
            await scene.edit(said, "never mind")
        case "delete":
            await scene.delete(said)
        case command:
            await scene.use("Chloe", command)


@pytest.mark.parametrize("whose", ["Ada", "Ben", "Chloe"])
async def test_an_answer_with_a_note_goes_on_whatever_is_edited_while_tools_run(scene: Scene, whose: str) -> None:
    """The note goes where it is made of what was edited, and only there."""
    scene.stub.default, gate = lambda _: Reply("I see."), asyncio.Event()
    earlier = scene.mention("Ben", "hello")
    await scene.answer_to(earlier)
    for _ in range(RECENT_MESSAGES):
        scene.say("Ada", "hello everybody")
    asked = scene.mention("Chloe", "what is the weather in Osaka?")
    await scene.answer_to(asked)
    scene.stub.replies.append(Reply("Let me see.", before=gate, calls=CLOCK))
    followed = scene.mention("Chloe", "and on Tuesday?")
    await scene.until(lambda: "weather in Osaka on Tuesday" in scene.told())
    later = scene.say("Ada", "hello everybody")
    await scene.decision(later)
    await scene.edit({"Ada": later, "Ben": earlier, "Chloe": asked}[whose], "never mind")
    gate.set()
    assert (await scene.answer_to(followed)).content == "Let me see.\n\nI see."
    assert ("weather in Osaka on Tuesday" in scene.told()) == (whose != "Chloe")


@pytest.mark.parametrize("what", ["its words", "what it quotes"])
async def test_a_question_that_waits_is_completed_only_from_words_that_stand(stub: StubModel, what: str) -> None:
    completed, gate = list[str](), asyncio.Event()

    def complete(body: Any) -> Reply:
        completed.append(json.dumps(body))
        return Reply("and tomorrow?")

    stub.default, stub.rewriter_says = lambda _: Reply("I see."), complete
    async with open_scene(stub, rewrite_model="openai-chat:stub") as scene:
        told = scene.mention("Chloe", f"is {SECRET} fine?")
        await scene.answer_to(told)
        stub.replies.append(Reply("Here you are.", before=gate))
        scene.mention("Ada", "what is the time?")
        await scene.until(lambda: len(stub.requests) == 2)
        if what == "its words":
            asked = scene.mention("Ben", f"and tomorrow in {SECRET}?")
        else:
            asked = scene.mention("Ben", "and tomorrow?", reply_to=told.id)
        await scene.decision(asked)
        completed.clear()
        await scene.edit(told, "never mind")
        if what == "its words":
            await scene.edit(asked, f"<@{scene.pg.bot_id}> and on Sunday?")
        gate.set()
        await scene.answer_to(asked)
        assert SECRET not in "".join(completed)


async def test_what_is_deleted_while_an_answer_is_made_is_gone_also_if_thousands_go(scene: Scene) -> None:
    """As when those who manage the channel clear it."""
    scene.stub.default = lambda _: Reply("I see.")
    told = scene.mention("Chloe", f"my code is {SECRET}")
    await scene.answer_to(told)
    gate = scene.held("Here you are.")
    asked = scene.mention("Ada", "what is the time?")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    await scene.delete(told)
    channel, before = scene.pg.world.channel(told.channel_id), told.id - (1 << 40)
    for number in range(20):
        heard = scene.bot.wait_for("raw_bulk_message_delete", timeout=PATIENCE_SECONDS)
        ids = tuple(range(before - 100 * number, before - 100 * number - 100, -1))
        scene.pg.world.emit(Event(name="MESSAGE_DELETE_BULK", channel=channel, ids=ids))
        await heard
    gate.set()
    await scene.answer_to(asked)
    await scene.ask("Ben", "what did Chloe say?")
    assert SECRET not in scene.told()
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, SECRET)


@pytest.mark.parametrize("model", ["openai-chat:stub", "openai-chat:stub,openai-chat:other"])
@pytest.mark.parametrize("how", ["delete", "edit", "forget"])
async def test_what_goes_while_a_request_fails_is_not_told_as_it_is_sent_again(
    stub: StubModel, model: str, how: str
) -> None:
    """To the same model, or to the next one."""
    stub.default, gate = lambda _: Reply("I see."), asyncio.Event()
    async with open_scene(stub, model=model) as scene:
        told = scene.mention("Chloe", f"my code is {SECRET}")
        await scene.answer_to(told)
        tries = 1 + model.count(",")  # after the first of them the same model is asked again
        stub.replies.extend([*[Reply(status=500)] * (tries - 1), Reply(status=500, before=gate)])
        asked = scene.mention("Ada", "what is the time?")
        await scene.until(lambda: len(stub.requests) == 1 + tries)
        assert SECRET in scene.told()
        await change(scene, told, how)
        gate.set()
        assert (await scene.answer_to(asked)).content == "I see."
        assert len(stub.requests) == 2 + tries
        assert SECRET not in scene.told()


async def test_a_picture_is_shown_again_where_something_goes_while_the_first_request_with_it_fails(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As nobody has seen it yet."""
    monkeypatch.setattr(support, "PATIENCE_SECONDS", 120.0)  # a picture is read in a process of its own
    scene.stub.default, gate = lambda _: Reply("I see."), asyncio.Event()
    told = scene.mention("Chloe", f"my code is {SECRET}")
    await scene.answer_to(told)
    scene.stub.replies.append(Reply(status=500, before=gate))
    asked = scene.mention("Ada", "what is this?", attachments=[File("cat.png", "image/png", picture("PNG"))])
    await scene.until(lambda: len(scene.stub.requests) == 2)
    await scene.delete(told)
    gate.set()
    await scene.answer_to(asked)
    assert [("data:image/" in str(body), SECRET in str(body)) for body in scene.stub.requests[1:]] == [
        (True, True),
        (True, False),
    ]


async def test_who_is_forgotten_while_tools_run_is_left_out_also_of_what_was_trimmed_meanwhile(stub: StubModel) -> None:
    stub.default, gate = lambda _: Reply("I see."), asyncio.Event()
    async with open_scene(stub) as scene:
        scene.bot.conversations._max_messages = 4  # there is no setting
        await scene.ask("Ada", "hello")
        await scene.decision(scene.say("Chloe", f"my code is {SECRET}"))
        stub.replies.append(Reply("Let me see.", before=gate, calls=CLOCK))
        asked = scene.mention("Ada", "what is the time?")
        await scene.until(lambda: SECRET in scene.told())
        for _ in range(4):
            await scene.decision(scene.say("Ben", "hello everybody"))
        await scene.use("Chloe", "forget")
        gate.set()
        await scene.answer_to(asked)
        assert SECRET not in scene.told()
        await scene.ask("Ada", "what did Chloe say?")
        assert SECRET not in scene.told()


@pytest.mark.parametrize("then", ["nothing", "it is edited", "it is deleted", "its author is forgotten"])
async def test_a_question_that_was_trimmed_while_tools_run_stays_though_somebody_else_is_forgotten(
    stub: StubModel, then: str
) -> None:
    stub.default, gate = lambda _: Reply("I see."), asyncio.Event()
    async with open_scene(stub) as scene:
        scene.bot.conversations._max_messages = 4  # there is no setting
        await scene.decision(said := scene.mention("Chloe", f"my code is {SECRET}"))
        await scene.answer_to(said)
        before = scene.held("Hello.")
        first = scene.mention("Ben", "hello")
        await scene.until(lambda: len(stub.requests) == 2)
        asked = scene.mention("Ada", "what is the time?", reply_to=said.id)
        await scene.decision(asked)
        second = scene.mention("Ben", "and the day?")
        await scene.decision(second)
        stub.replies.append(Reply("Let me see.", before=gate, calls=CLOCK))
        before.set()
        await scene.answer_to(first)
        await scene.until(lambda: len(stub.requests) == 3)
        for _ in range(4):
            await scene.decision(scene.say("Ben", "hello everybody"))
        await scene.use("Chloe", "forget")
        if then == "it is edited":
            await scene.edit(asked, "what is the hour?")
        elif then == "it is deleted":
            await scene.delete(asked)
        elif then == "its author is forgotten":
            await scene.use("Ada", "forget")
        gate.set()
        await scene.answer_to(second)
        told = scene.told()
        assert "and the day?" in told
        assert SECRET not in told
        assert ("what is the time?" in told) == (then == "nothing")
        assert ("what is the hour?" in told) == (then == "it is edited")


# Of somebody who opted out, whose question is told from where it waits


@pytest.mark.parametrize("how", ["edit", "delete", "forget", "optout"])
async def test_what_a_private_question_quotes_goes_while_it_waits(scene: Scene, how: str) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.use("Ben", "optout")
    told = scene.mention("Chloe", f"is the weather fine in {SECRET}?")
    await scene.answer_to(told)
    gate = scene.held("Here you are.")
    scene.mention("Ada", "what is the time?")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    asked = scene.mention("Ben", "and tomorrow?", reply_to=told.id)
    await scene.decision(asked)
    await change(scene, told, how)
    gate.set()
    await scene.answer_to(asked)
    assert "and tomorrow?" in scene.told()
    assert SECRET not in scene.told()
    assert ("Chloe" in scene.told()) == (how == "edit")


async def test_a_private_question_that_is_edited_while_it_waits_is_not_told_in_its_old_words(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.use("Ben", "optout")
    await scene.ask("Chloe", "what is the weather in Osaka?")
    gate = scene.held("Here you are.")
    scene.mention("Ada", "what is the time?")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    asked = scene.mention("Ben", f"and in {SECRET}?")
    await scene.decision(asked)
    await scene.edit(asked, f"<@{scene.pg.bot_id}> and on Sunday?")
    gate.set()
    await scene.answer_to(asked)
    assert "and on Sunday?" in scene.told()
    assert SECRET not in scene.told()


async def test_a_private_question_that_is_edited_while_tools_run_is_told_in_its_new_words(scene: Scene) -> None:
    """A tool has run already, so that the answer cannot be begun anew."""
    scene.stub.default, gate = lambda _: Reply("I see."), asyncio.Event()
    await scene.use("Ben", "optout")
    await scene.ask("Chloe", "what is the weather in Osaka?")
    again = Call("current_time", "{}", "call-again")
    scene.stub.replies += [Reply("Let me see.", calls=CLOCK), Reply("Again.", before=gate, calls=(again,))]
    asked = scene.mention("Ben", f"and in {SECRET}?")
    await scene.until(lambda: len(scene.stub.requests) == 3)
    await scene.edit(asked, f"<@{scene.pg.bot_id}> and on Sunday?")
    gate.set()
    assert (await scene.answer_to(asked)).content == "Let me see.\n\nAgain.\n\nI see."
    assert "and on Sunday?" in scene.told()
    assert SECRET not in scene.told()


@pytest.mark.parametrize(
    ("how", "text", "is_newcomer"),
    [
        ("edit", "and on Tuesday?", False),
        ("delete", "and on Tuesday?", False),
        ("forget", "and on Tuesday?", False),
        ("edit", "what about Tuesday, I wonder?", True),
    ],
)
async def test_a_private_question_stays_while_tools_run_though_what_it_quotes_goes(
    scene: Scene, how: str, text: str, *, is_newcomer: bool
) -> None:
    """A newcomer is not told either what becomes of that."""
    scene.stub.default, gate = lambda _: Reply("I see."), asyncio.Event()
    if is_newcomer:
        newcomer(scene)
    await scene.use("Ben", "optout")
    told = scene.mention("Chloe", f"is the weather fine in {SECRET}?")
    await scene.answer_to(told)
    scene.stub.replies.append(Reply("Let me see.", before=gate, calls=CLOCK))
    asked = scene.mention("Ben", text, reply_to=told.id)
    await scene.until(lambda: len(scene.stub.requests) == 2)
    await change(scene, told, how)
    gate.set()
    assert (await scene.answer_to(asked)).content == "Let me see.\n\nI see."
    assert text in scene.told()
    assert SECRET not in scene.told()
    assert not (is_newcomer and "never mind" in scene.told())


@pytest.mark.parametrize("how", ["edit", "delete", "forget", "optout"])
@pytest.mark.parametrize("where", ["general", "help"])
async def test_what_a_private_answer_is_about_goes_while_it_waits(stub: StubModel, where: str, how: str) -> None:
    """In a channel of which the bot knows nothing, too. What is gone altogether is not answered."""
    stub.default = lambda _: Reply("I see.")
    async with open_scene(stub, turns_at_once=1) as scene:
        scene.pg.add_channel("help")
        gate = scene.held("Here you are.")
        scene.mention("Ada", "what is the time?")
        await scene.until(lambda: stub.requests)
        said = scene.say("Chloe", f"it is fine in {SECRET}", channel=where)
        made = await waiting_answer(scene, said)
        await change(scene, said, how)
        gate.set()
        await scene.at_rest()
        assert (await scene.pg.reply_to(made)).content == ("I see." if how == "edit" else GONE)
        assert ("Please answer the message above" in scene.told()) == (how == "edit")
        assert SECRET not in scene.told()


async def waiting_answer(scene: Scene, about: Message) -> Interaction:
    """Ben has a message answered in private, which waits for a slot."""
    made = scene.pg.command(about.channel_id, scene.pg.person("Ben"), "Answer this", {}, about.id)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not len(scene.bot.parts.slots):  # noqa: ASYNC110 - which nothing tells of
            await asyncio.sleep(0)
    return made


async def test_a_private_answer_ends_once_what_it_is_about_is_deleted(scene: Scene) -> None:
    scene.held(f"It is fine in {SECRET}.")
    said = scene.say("Chloe", f"it is fine in {SECRET}")
    made = scene.pg.command(said.channel_id, scene.pg.person("Ben"), "Answer this", {}, said.id)
    await scene.until(lambda: scene.stub.requests)
    await scene.delete(said)
    assert (await scene.pg.reply_to(made)).content == GONE
    assert scene.journal.find("answered_privately")[0]["outcome"] == "withdrawn"


@pytest.mark.parametrize("how", ["edit", "delete", "forget"])
async def test_what_a_private_answer_is_to_be_about_is_not_told_if_it_goes_before_that_begins(
    scene: Scene, how: str
) -> None:
    said, gate = scene.say("Chloe", f"it is fine in {SECRET}"), asyncio.Event()
    deferring = scene.pg.faults.add("POST", "/callback$", delay_event=gate)
    made = scene.pg.command(said.channel_id, scene.pg.person("Ben"), "Answer this", {}, said.id)
    await scene.until(lambda: deferring.hits)
    await change(scene, said, how)
    gate.set()
    assert (await scene.pg.reply_to(made)).content == CHANGED
    assert scene.stub.requests == []


@pytest.mark.parametrize("how", ["forget", "optout"])
@pytest.mark.parametrize("what", ["an answer", "an answer with those words", "a reply"])
async def test_what_a_private_answer_is_about_goes_with_whose_words_it_has(
    stub: StubModel, what: str, how: str
) -> None:
    stub.default = lambda _: Reply("I see.")
    async with open_scene(stub, turns_at_once=1) as scene:
        scene.pg.add_channel("help")
        stub.replies.append(Reply(f"It is fine in {SECRET}."))
        about = await scene.ask("Chloe", f"is the weather fine in {SECRET}?")
        if what == "an answer with those words":
            stub.replies.append(Reply(f"In {SECRET}."))
            about = await scene.ask("Ada", "where?")
        elif what == "a reply":
            said = scene.say("Chloe", f"it is fine in {SECRET}", channel="help")
            about = scene.say("Ada", "really?", channel="help", reply_to=said.id)
        gate = scene.held("Here you are.")
        scene.mention("Ada", "what is the time?", channel="help")
        await scene.until(lambda: "what is the time?" in scene.told())
        made = await waiting_answer(scene, about)
        await scene.use("Chloe", how)
        gate.set()
        await scene.at_rest()
        assert (await scene.pg.reply_to(made)).content == ("I see." if what == "a reply" else GONE)
        assert ("really?" in scene.told()) == (what == "a reply")
        assert SECRET not in scene.told()
        assert "Chloe" not in scene.told()


@pytest.mark.parametrize(
    "what", ["the answer is edited", "an earlier answer is deleted", "an earlier answer is edited"]
)
async def test_what_somebody_answered_the_agent_goes_from_the_run_that_goes_on_with_it(scene: Scene, what: str) -> None:
    """Also as the result of the tool that asked."""
    asks = [Reply(calls=(Call("ask_text", json.dumps({"question": f"Which {one}?"}), f"call-{one}"),)) for one in "ab"]
    is_earlier, gate = "earlier" in what, asyncio.Event()
    scene.stub.replies.append(asks[0])
    await scene.ask("Ada", "open the door")
    scene.stub.replies += [asks[1]] if is_earlier else [Reply("Let me see.", calls=CLOCK)]
    scene.stub.replies.append(Reply("Once more.", before=gate, calls=CLOCK))
    scene.stub.default = lambda _: Reply("I see.")
    answer = last = scene.say("Ada", f"the code is {SECRET}")
    if is_earlier:
        await scene.answer_to(answer)
        await scene.at_rest()
        last = scene.say("Ada", "the left one")
    await scene.until(lambda: len(scene.stub.requests) == 3)
    assert SECRET in scene.told()
    if "edited" in what:
        await scene.edit(answer, "never mind")
    else:
        await scene.delete(answer)
    gate.set()
    await scene.until(lambda: len(scene.stub.requests) == 4)
    assert SECRET not in scene.told()
    assert ("the left one" in scene.told()) == is_earlier
    assert (await scene.answer_to(last)).content.endswith("I see.")
