"""Direct messages: answered where the owner wants that, in a memory of their own, apart from all servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from agents.tools import OTHER_GUILD
from commands.privacy_commands import CHANNEL_FORGOTTEN, EXPORTED, FORGOTTEN, OPTED_OUT
from decider import Reason
from discord_io.actions import CANNOT_READ
from playground.model import Message
from tests.e2e.test_asking import DRINK, tool_results
from tests.e2e.test_threads import open_thread
from tests.support.lives import kill, life, on_disk
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Call, Reply, StubModel, texts
from turns.admission import DIRECT_MESSAGES_OF_SOME, NO_DIRECT_MESSAGES


@pytest.fixture
async def scene(stub: StubModel) -> AsyncIterator[Scene]:
    async with open_scene(stub, direct_messages="open") as opened:
        yield opened


def write(scene: Scene, who: str, text: str, **how: Any) -> Message:
    """Somebody writes to the bot directly."""
    person = scene.pg.person(who)
    return scene.pg.post(scene.pg.dm(person), person, text, **how)


def own(scene: Scene, who: str) -> list[str]:
    """What the bot has written to somebody directly."""
    there = scene.pg.messages(scene.pg.dm(scene.pg.person(who)))
    return [message.content for message in there if message.author.id == scene.pg.bot_id]


async def use(scene: Scene, who: str, name: str, **options: Any) -> Message:
    """Somebody uses a command in their direct messages."""
    person = scene.pg.person(who)
    used = scene.pg.command(scene.pg.dm(person), person, name, options)
    return await scene.pg.reply_to(used)


async def test_everything_is_answered_without_a_mention_and_says_why(scene: Scene) -> None:
    question = write(scene, "Ada", "my cat is called Tim")
    assert (await scene.answer_to(question)).content == "You said: my cat is called Tim"
    decision = await scene.decision(question)
    assert decision.reason is Reason.DIRECT_MESSAGE
    assert decision.in_words() == "answered: you wrote to me in a direct message"
    await scene.answer_to(write(scene, "Ada", "lunch was good today"))
    assert "Tim" in scene.told()
    assert "in a direct message, which nobody reads" in scene.told()
    assert (await scene.decision(write(scene, "Ada", "thanks!"))).reason is Reason.ACKNOWLEDGEMENT
    shown = (await use(scene, "Ada", "why")).content
    assert f"“my cat is called Tim”: [answered]({scene.bot.parts._settings.site}/channels/@me/" in shown
    assert "you wrote to me in a direct message" in shown


async def test_no_words_of_a_server_get_there_nor_any_from_there_into_one(scene: Scene) -> None:
    secret = await scene.ask("Ada", "the server's word is bluebell")
    link = f"https://discord.com/channels/{scene.pg.guild_id}/{secret.channel_id}/{secret.id}"
    scene.stub.replies += [
        Reply(calls=(Call("search_history", '{"words": "bluebell"}'),)),
        Reply(calls=(Call("read_message", f'{{"link": "{link}"}}'),)),
        Reply("I do not know."),
    ]
    await scene.answer_to(write(scene, "Ada", f"my own word is foxglove. What did I say in the server, at {link}?"))
    assert "bluebell" not in "".join(texts(scene.stub.requests[1]))
    results = tool_results(scene.stub.requests[-1])
    assert len(results) == 2
    assert "bluebell" not in str(results)
    scene.stub.replies += [
        Reply(calls=(Call("search_history", '{"words": "foxglove"}'),)),
        Reply("I do not know."),
    ]
    await scene.ask("Ada", "what is my own word?")
    assert "foxglove" not in "".join(texts(scene.stub.requests[-2]))
    assert "foxglove" not in str(tool_results(scene.stub.requests[-1]))
    # But what was said there is found there.
    scene.stub.replies += [Reply(calls=(Call("search_history", '{"words": "foxglove"}'),)), Reply("Foxglove.")]
    await scene.answer_to(write(scene, "Ada", "which word did I tell you?"))
    assert "/channels/@me/" in tool_results(scene.stub.requests[-1])[-1]
    assert "foxglove" in tool_results(scene.stub.requests[-1])[-1]


async def test_a_link_to_what_was_said_there_is_read(scene: Scene) -> None:
    word = write(scene, "Ada", "my word is foxglove")
    await scene.answer_to(word)
    link = f"https://discord.com/channels/@me/{word.channel_id}/{word.id}"
    for who, told in (("Ada", "Ada: my word is foxglove\n"), ("Ben", CANNOT_READ)):
        scene.stub.replies += [Reply(calls=(Call("read_message", f'{{"link": "{link}"}}'),)), Reply("I see.")]
        await scene.answer_to(write(scene, who, f"what stands in {link} ?"))
        assert tool_results(scene.stub.requests[-1]) == [told]
    scene.stub.replies += [Reply(calls=(Call("read_message", f'{{"link": "{link}"}}'),)), Reply("I see.")]
    await scene.ask("Ada", f"what stands in {link} ?")
    assert tool_results(scene.stub.requests[-1]) == [OTHER_GUILD]


@pytest.mark.parametrize("is_click", [False, True])
async def test_a_question_of_the_bots_is_answered_there(scene: Scene, is_click: bool) -> None:
    scene.stub.replies += [Reply(calls=(DRINK,)), Reply("Coming.")]
    card = await scene.answer_to(write(scene, "Ada", "bring me a drink"))
    if is_click:
        scene.press("Ada", card, "1. tea")
    else:
        write(scene, "Ada", "tea")
    await scene.until(lambda: "Coming." in own(scene, "Ada"))
    assert not scene.journal.find("interaction_failed")


async def test_stop_ends_an_answer_there(scene: Scene) -> None:
    scene.halted("First words, and the rest.")
    question = write(scene, "Ada", "tell me a story")
    await scene.until(lambda: own(scene, "Ada"))
    assert (await scene.decision(write(scene, "Ada", "stop"))).reason is Reason.STOP
    assert await scene.outcome(question) == "stopped"
    await scene.answer_to(write(scene, "Ada", "another one, please"))


async def test_what_is_kept_there_goes_by_the_commands_used_there(stage: Scene) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    async with life(stage, direct_messages="open"):
        await stage.answer_to(write(stage, "Ada", "my cat is called Tim"))
        await stage.bot.snapshots.settled()
        assert on_disk(stage.folder, "called Tim")
        assert (exported := await use(stage, "Ada", "export")).content == EXPORTED
        assert len(exported.attachments) == 1
        assert (await use(stage, "Ada", "forget")).content == FORGOTTEN
        assert not on_disk(stage.folder, "called Tim")
        await stage.answer_to(write(stage, "Ada", "my dog is called Rex"))
        assert "Tim" not in stage.told()
        assert (await use(stage, "Ada", "forget", everything=True)).content == CHANNEL_FORGOTTEN
        assert not on_disk(stage.folder, "called Rex")
        assert (await use(stage, "Ada", "optout")).content == OPTED_OUT
        await stage.answer_to(write(stage, "Ada", "my bird is called Pip"))  # said to it, so answered, and not kept
        assert "Pip" in stage.told()
        await stage.bot.snapshots.settled()
        assert not on_disk(stage.folder, "called Pip")


async def test_edits_and_deletions_there_are_followed(stage: Scene) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    async with life(stage, direct_messages="open"):
        await stage.answer_to(cat := write(stage, "Ada", "my cat is called Tim"))
        await stage.answer_to(dog := write(stage, "Ada", "my dog is called Rex"))
        await stage.edit(cat, "my cat is called Tom")
        await stage.delete(dog)
        await stage.answer_to(write(stage, "Ada", "which pets?"))
        assert "called Tom" in stage.told()
        assert "called Tim" not in stage.told()
        assert "called Rex" not in stage.told()


# Who is not answered


@pytest.mark.parametrize("mode", ["off", "listed"])
async def test_who_is_not_answered_is_told_so_once_a_day_over_restarts(stage: Scene, mode: Any) -> None:
    ben = stage.pg.person("Ben")
    sentence = NO_DIRECT_MESSAGES if mode == "off" else DIRECT_MESSAGES_OF_SOME
    settings: dict[str, Any] = {"direct_messages": mode, "users": frozenset({ben})}
    async with life(stage, **settings):
        first, again = write(stage, "Ada", "are you there?"), write(stage, "Ada", "hello?")
        assert (await stage.decision(first)).reason is Reason.DIRECT_MESSAGES_OFF
        assert (await stage.decision(again)).in_words() == "silent: I am not set up to answer your direct messages"
        await stage.until(lambda: own(stage, "Ada"))
        if mode == "listed":
            await stage.answer_to(write(stage, "Ben", "are you there?"))
        await stage.at_rest()
    requests = len(stage.stub.requests)
    async with life(stage, **settings):
        await stage.decision(write(stage, "Ada", "and now?"))
        await stage.answer_to(stage.mention("Ada", "hello"))  # in a server as ever
    assert own(stage, "Ada") == [sentence]
    assert len(stage.stub.requests) == 1
    assert requests == (1 if mode == "listed" else 0)
    assert not on_disk(stage.folder, "are you there") or mode == "listed"


async def test_who_is_answered_no_more_is_not_kept_in_what_had_begun_either(stage: Scene) -> None:
    async with life(stage, direct_messages="open"):
        await stage.answer_to(write(stage, "Ada", "hello"))
    async with life(stage, direct_messages="off", decision_log="content"):
        await stage.decision(write(stage, "Ada", "my cat is called Tim"))
        await stage.at_rest()
    assert not on_disk(stage.folder, "called Tim")


async def test_who_takes_no_messages_of_the_bot_is_tried_once(scene: Scene) -> None:
    channel = scene.pg.dm(scene.pg.person("Ada"))
    answer: dict[str, Any] = {"status": 403, "code": 50007, "message": "Cannot send messages to this user"}
    scene.pg.faults.add("POST", f"/channels/{channel}/", times=9, **answer)
    assert await scene.outcome(write(scene, "Ada", "hello")) == "undelivered_blocked"
    entries = [entry for entry in scene.journal.entries if "50007" in str(entry)]
    assert [entry["event"] for entry in entries] == ["post_failed"]
    assert len(scene.sent("POST", f"/channels/{channel}/messages")) == 1


# Over restarts


async def test_a_conversation_there_goes_on_after_a_kill_with_what_was_missed(stage: Scene) -> None:
    async with life(stage, direct_messages="open"):
        await stage.answer_to(write(stage, "Ada", "my cat is called Tim"))
        gate = stage.held("Never seen.")
        cut = write(stage, "Ada", "and my dog Rex")
        await stage.until(lambda: len(stage.stub.requests) == 2)
        await kill(stage)
        gate.set()
    missed = write(stage, "Ada", "and my bird Pip")
    async with life(stage, direct_messages="open"):
        await stage.answer_to(cut)
        await stage.answer_to(missed)
        assert "called Tim" in stage.told()
    there = stage.pg.messages(stage.pg.dm(stage.pg.person("Ada")))
    replied_to = [m.reference.message_id for m in there if m.reference and m.author.id == stage.pg.bot_id]
    assert replied_to[1:] == [cut.id, missed.id]


@pytest.mark.parametrize("place", ["direct message", "channel", "thread"])
async def test_what_a_kill_cut_off_is_not_answered_where_the_settings_of_now_leave_its_place_out(
    stage: Scene, place: str
) -> None:
    if place == "thread":
        open_thread(stage, "Ada", "names")
    channel = {"direct message": None, "channel": "general", "thread": "names"}[place]
    async with life(stage, direct_messages="open"):
        gate = stage.held("Never seen.")
        cut = write(stage, "Ada", "hello") if channel is None else stage.mention("Ada", "hello", channel=channel)
        await stage.until(lambda: stage.stub.requests)
        await kill(stage)
        gate.set()
    settings: dict[str, dict[str, Any]] = {
        "direct message": {"direct_messages": "listed", "users": frozenset({1})},
        "channel": {"channels": frozenset({stage.pg.channel("random")})},
        "thread": {"threads": "off"},
    }
    async with life(stage, **settings[place]):
        await stage.until(lambda: stage.journal.find("question_dropped", message=cut.id))
        await stage.at_rest()
        assert not stage.stub.requests
    assert [m for m in stage.pg.messages(cut.channel_id) if m.author.id == stage.pg.bot_id] == []


async def test_a_channel_that_is_not_found_any_more_is_forgotten(stage: Scene) -> None:
    async with life(stage, direct_messages="open"):
        await stage.answer_to(write(stage, "Ada", "hello"))
    channel = stage.pg.dm(stage.pg.person("Ada"))
    del stage.pg.world.dms[channel]
    async with life(stage, direct_messages="open"):
        await stage.bot.parts.gate.wait(channel, 0)
        assert stage.journal.find("channel_gone", channel=channel)
    assert not on_disk(stage.folder, "hello")
