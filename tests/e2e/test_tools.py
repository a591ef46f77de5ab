"""The general agent's own tools, in Discord: what it looks up, what it does, and what it asks before it does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import discord
import pytest

from agents.asking import NOT_KEPT
from commands.clicks import NOT_YOURS, TOO_LATE
from playground.model import Message
from tests.e2e.test_asking import tool_results
from tests.support.clock import FakeClock
from tests.support.lives import in_snapshots, kill, life, on_disk, open_stage
from tests.support.scene import Scene
from tests.support.stub_model import Call, Reply, StubModel

MAY_I = "May I"


SURE = Reply(calls=(Call("ask_confirmation", '{"question": "Shall I say it here?"}'),))


def call(name: str, **arguments: Any) -> Reply:
    return Reply(calls=(Call(name, json.dumps(arguments)),))


POLL = call("create_poll", question="Lunch?", options=["noon", "one"], hours=2)


def link(message: Message, scene: Scene) -> str:
    return f"{scene.pg.url}/channels/{scene.pg.guild_id}/{message.channel_id}/{message.id}"


async def asked_to_pin(scene: Scene) -> tuple[Message, Message]:
    """A message of Chloe's, and the card by which Ben, who asked for it, is asked whether to pin it."""
    rules = scene.say("Chloe", "the rules of this channel")
    scene.stub.replies.extend([call("pin", link=link(rules, scene)), Reply("Done.")])
    await scene.ask("Ben", "pin what Chloe said")
    return rules, await scene.card(MAY_I)


def pinned(scene: Scene, message: Message) -> bool:
    return scene.pg.world.message(message.channel_id, message.id).pinned_at is not None


async def test_what_was_said_in_an_earlier_conversation_is_found(scene: Scene) -> None:
    said = scene.mention("Ada", "the wifi password is on the fridge")
    await scene.answer_to(said)
    scene.bot.conversations.end(said.channel_id)
    scene.stub.replies.extend([call("search_history", words="wifi password"), Reply("On the fridge.")])
    await scene.ask("Ben", "where is the wifi password?")
    (found,) = tool_results(scene.stub.requests[-1])
    assert "Ada: @Parley the wifi password is on the fridge" in found
    assert str(said.id) in found


async def test_a_message_is_read_by_its_link_and_to_nobody_who_cannot_read_it(scene: Scene) -> None:
    said = scene.say("Chloe", "lunch is at noon", channel="random")
    reading = call("read_message", link=link(said, scene))
    scene.stub.replies.extend([call("react", emoji="🎉"), reading, Reply("At noon.")])
    question = scene.mention("Ben", f"when is lunch? {link(said, scene)}")
    await scene.answer_to(question)
    assert "Chloe: lunch is at noon" in tool_results(scene.stub.requests[-1])[-1]
    (reaction,) = scene.pg.world.message(question.channel_id, question.id).reactions
    assert reaction.emoji == "🎉"
    scene.pg.deny(said.channel_id, "view_channel", member=scene.pg.person("Ben"))
    scene.stub.replies.extend([reading, Reply("I cannot say.")])
    await scene.ask("Ben", f"and where? {link(said, scene)}")
    assert "noon" not in tool_results(scene.stub.requests[-1])[-1]


async def test_it_pins_once_it_is_allowed_to_by_who_manages_messages(scene: Scene) -> None:
    rules, card = await asked_to_pin(scene)
    assert f"what Chloe said, “the rules of this channel”: {link(rules, scene)}" in card.content
    assert not pinned(scene, rules)
    stranger = scene.press("Chloe", card, "Yes")
    assert (await scene.pg.reply_to(stranger)).content == NOT_YOURS
    scene.press("Ada", card, "Yes")
    await scene.shows("Done.")
    assert pinned(scene, rules)


async def test_what_was_edited_since_it_was_shown_is_not_pinned_by_a_yes_to_other_words(scene: Scene) -> None:
    rules, card = await asked_to_pin(scene)
    await scene.edit(rules, "anything goes")
    scene.press("Ada", card, "Yes")
    await scene.shows("Done.")
    assert not pinned(scene, rules)


@pytest.mark.parametrize("click", ["Yes", "No"])
async def test_who_asked_but_may_not_pin_can_only_call_it_off(scene: Scene, click: str) -> None:
    rules, card = await asked_to_pin(scene)
    scene.press("Ben", card, click)
    await scene.shows("Done.")
    assert not pinned(scene, rules)
    assert ("lacks the permission" in tool_results(scene.stub.requests[-1])[-1]) == (click == "Yes")


@pytest.mark.parametrize("ending", ["told to", "killed"])
async def test_what_was_asked_before_a_restart_is_done_once_behind_it(stage: Scene, ending: str) -> None:
    async with life(stage):
        stage.stub.replies.extend([POLL, Reply("There it is.")])
        await stage.ask("Ada", "ask them when to have lunch")
        card = await stage.card(MAY_I)
        if ending == "killed":
            await kill(stage)
    async with life(stage):
        stage.stub.replies.append(Reply("There it is."))
        stage.press("Ada", card, "Yes")
        await stage.shows("There it is.")
        await stage.at_rest()
        assert len([m for m in stage.said() if m.poll]) == 1


@pytest.mark.parametrize("who", ["a stranger", "nobody in time", "somebody who denies it"])
async def test_what_was_asked_before_a_kill_and_nobody_allowed_is_never_done(
    stub: StubModel, tmp_path: Path, who: str
) -> None:
    stub.default = lambda _: Reply("Not done, then.")
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage:
        async with life(stage):
            stub.replies.append(POLL)
            await stage.ask("Ben", "ask them when to have lunch")
            card = await stage.card(MAY_I)
            await kill(stage)
        corrected = asyncio.Event()
        if who == "nobody in time":
            clock.advance(1_000)
            stage.pg.faults.add("PATCH", r"/messages/\d+$", delay_event=corrected)
        async with life(stage):
            if who == "somebody who denies it":
                stage.press("Ben", card, "No")
                await stage.shows("Not done, then.")
            else:
                click = stage.press("Ben" if who == "nobody in time" else "Chloe", card, "Yes")
                told = (await stage.pg.reply_to(click)).content
                assert told == (TOO_LATE if who == "nobody in time" else NOT_YOURS)
            corrected.set()
            await stage.at_rest()
            assert not [m for m in stage.said() if m.poll]
            assert stub.requests == [] or who == "somebody who denies it"


@pytest.mark.parametrize("ending", ["told to", "killed"])
async def test_what_a_tool_answered_is_given_back_in_later_turns(stage: Scene, ending: str) -> None:
    async with life(stage):
        stage.stub.replies.extend([call("current_time", timezone="Asia/Tokyo"), Reply("It is late there.")])
        await stage.ask("Ada", "how late is it in Tokyo?")
        [found] = tool_results(stage.stub.requests[-1])
        await stage.ask("Ada", "and in Lima?")
        assert tool_results(stage.stub.requests[-1]) == [found]
        if ending == "killed":
            await kill(stage)
    async with life(stage):
        await stage.ask("Ben", "and in Rome?")
        assert tool_results(stage.stub.requests[-1]) == [found]
        assert "JST" in found


async def test_what_was_read_is_not_kept_behind_the_answer(scene: Scene) -> None:
    said = scene.say("Chloe", "lunch is at bluebell", channel="random")
    scene.stub.replies.extend([call("read_message", link=link(said, scene)), Reply("I know.")])
    await scene.ask("Ben", f"when is lunch? {link(said, scene)}")
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, "bluebell")
    await scene.ask("Ben", "and now?")
    assert tool_results(scene.stub.requests[-1]) == [NOT_KEPT]


@pytest.mark.parametrize("when", ["while the model speaks", "while the answer is posted"])
@pytest.mark.parametrize("how", ["deleted", "edited", "forgotten"])
async def test_what_is_taken_back_comes_back_with_no_restart(stage: Scene, when: str, how: str) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    spoken, posted = asyncio.Event(), asyncio.Event()
    async with life(stage):
        first = stage.mention("Ada", "hello")
        await stage.answer_to(first)
        said = stage.say("Ben", "the wifi is bluebell", reply_to=first.id)
        await stage.decision(said)
        await stage.at_rest()
        held = stage.pg.faults.add("POST", r"/messages$", delay_event=posted)
        stage.stub.replies.append(Reply("He told us.", before=spoken))
        stage.mention("Ada", "what did Ben say?")
        await stage.until(lambda: len(stage.stub.requests) == 2)
        if when == "while the model speaks":
            await taken_back(stage, said, how)
        spoken.set()
        await stage.until(lambda: held.hits)
        if when == "while the answer is posted":
            await stage.ready(said)
            await stage.bot.snapshots.settled()
            assert in_snapshots(stage.folder, "bluebell")
            await taken_back(stage, said, how)
        await stage.bot.snapshots.settled()
        assert not in_snapshots(stage.folder, "bluebell")
        await kill(stage)
    posted.set()
    async with life(stage):
        await stage.at_rest()
        await stage.ask("Ada", "and now?")
        assert "bluebell" not in stage.told()


async def taken_back(scene: Scene, said: Message, how: str) -> None:
    match how:
        case "deleted":
            await scene.delete(said)
        case "edited":
            await scene.edit(said, "forget that")
        case "forgotten":
            await scene.bot.privacy.forget_person(said.author.id, said.id + 1)
        case "opted out":
            await scene.bot.privacy.opt_out(said.author.id, said.id + 1)
        case "with its channel":
            channel = scene.bot.get_channel(said.channel_id)
            assert isinstance(channel, discord.TextChannel)
            await scene.bot.on_guild_channel_delete(channel)
        case "with the channel's words":
            await scene.bot.privacy.forget_channel(said.channel_id, said.id + 1)


async def test_a_question_deleted_while_the_bot_is_away_comes_back_with_no_answer_to_others(
    stub: StubModel, tmp_path: Path
) -> None:
    clock = FakeClock()
    stub.default = lambda _: Reply("I see.")
    spoken, posted = asyncio.Event(), asyncio.Event()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage:
        async with life(stage):
            stub.replies.append(Reply("Hm.", before=spoken))
            stage.mention("Chloe", "hello")
            await stage.until(lambda: stub.requests)
            secret = stage.mention("Ben", "the wifi is bluebell, ok?")
            asked = stage.mention("Ada", "what is the weather?")
            await stage.decision(asked)
            spoken.set()
            await stage.until(lambda: len(stub.requests) == 2)
            stage.pg.faults.add("POST", r"/messages$", delay_event=posted)
            stage.pg.faults.add("PATCH", r"/messages/\d+$", delay_event=posted)
            await stage.ready(asked)
            await kill(stage)
        stage.pg.delete(secret)
        clock.advance(150)
        posted.set()
        async with life(stage):
            await stage.at_rest()
            await stage.ask("Ada", "and now?")
            assert "bluebell" not in stage.told()


async def test_what_waits_is_not_lost_by_a_pin_or_by_edits_of_others(scene: Scene) -> None:
    rules, aside = scene.say("Chloe", "the rulse of this channel"), scene.say("Chloe", "hm", channel="random")
    await scene.edit(rules, "the rules of this channel")
    first = scene.mention("Ben", "hello")
    await scene.answer_to(first)
    scene.stub.replies.extend([POLL, Reply("There it is.")])
    await scene.ask("Ben", "ask them when to have lunch")
    card = await scene.card(MAY_I)
    heard = scene.heard("raw_message_edit", rules)
    ada = scene.pg.world.users[scene.pg.person("Ada")]
    scene.pg.world.pin(scene.pg.world.message(rules.channel_id, rules.id), ada)
    await heard
    await scene.edit(aside, "hmm")
    scene.press("Ben", card, "Yes")
    await scene.shows("There it is.")
    assert len([m for m in scene.said() if m.poll]) == 1


GONE = ["deleted", "edited", "forgotten", "opted out", "with its channel", "with the channel's words"]


@pytest.mark.parametrize("what", GONE)
async def test_what_is_taken_back_elsewhere_while_the_model_speaks_is_not_kept(scene: Scene, what: str) -> None:
    said = scene.say("Chloe", "lunch is at bluebell", channel="random")
    gate = asyncio.Event()
    sure = Call("ask_confirmation", '{"question": "Shall I say it here?"}')
    scene.stub.replies.extend([
        call("read_message", link=link(said, scene)), Reply("I know. " * 50, gate=gate, calls=(sure,)),
    ])  # fmt: skip
    question = scene.mention("Ben", f"when is lunch? {link(said, scene)}")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    await taken_back(scene, said, what)
    gate.set()
    await scene.answer_to(question)
    await scene.bot.snapshots.settled()
    assert not in_snapshots(scene.folder, "bluebell")


@pytest.mark.parametrize("how", ["found and edited", "read and deleted"])
async def test_what_was_looked_up_and_is_taken_back_stays_nowhere(scene: Scene, how: str) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    said = scene.mention("Ada", "the wifi password is bluebell", channel="general" if "found" in how else "random")
    await scene.answer_to(said)
    scene.bot.conversations.end(said.channel_id)
    looks = call("search_history", words="wifi") if "found" in how else call("read_message", link=link(said, scene))
    scene.stub.replies.extend([looks, SURE])
    await scene.answer_to(scene.mention("Ben", f"where is the wifi password? {link(said, scene)}"))
    await scene.at_rest()
    await scene.bot.snapshots.settled()
    assert on_disk(scene.folder, "bluebell")
    await (scene.edit(said, "forget that") if "edited" in how else scene.delete(said))
    await scene.bot.snapshots.settled()
    assert not in_snapshots(scene.folder, "bluebell")
    assert not on_disk(scene.folder, "bluebell")


async def test_what_was_read_elsewhere_does_not_wait_with_a_question_for_its_answer(scene: Scene) -> None:
    """Who may read it can be others by then."""
    said = scene.say("Chloe", "the wifi password is bluebell", channel="random")
    scene.stub.replies.extend([call("read_message", link=link(said, scene)), SURE, Reply("Done.")])
    await scene.answer_to(scene.mention("Ben", f"where is the wifi password? {link(said, scene)}"))
    assert "bluebell" in str(scene.stub.requests[-1])
    await scene.bot.snapshots.settled()
    assert not in_snapshots(scene.folder, "bluebell")
    scene.press("Ben", await scene.card("Shall I say"), "Yes")
    await scene.shows("Done.")
    assert "bluebell" not in str(scene.stub.requests[-1])
    assert NOT_KEPT in tool_results(scene.stub.requests[-1])


@pytest.mark.parametrize("stops", [False, True])
async def test_what_it_is_doing_is_shown_until_it_speaks_or_is_stopped(scene: Scene, stops: bool) -> None:
    scene.stub.replies.append(call("search_history", words="wifi"))
    gate = scene.held("On the fridge.")
    question = scene.mention("Ada", "where is the wifi password?")
    await scene.shows("-# searching the history …")
    if stops:
        scene.say("Ada", "stop")
    else:
        gate.set()
    assert (await scene.answer_to(question)).content == ("Stopped." if stops else "On the fridge.")


async def test_whose_click_allows_one_thing_lends_their_rights_to_nothing_else(scene: Scene) -> None:
    secret = scene.say("Ada", "a secret", channel="random")
    scene.pg.deny(secret.channel_id, "view_channel", member=scene.pg.person("Ben"))
    rules = scene.say("Chloe", "the rules of this channel")
    scene.stub.replies.extend(
        [call("pin", link=link(rules, scene)), call("read_message", link=link(secret, scene)), Reply("Done.")]
    )
    await scene.ask("Ben", f"pin what Chloe said, and then read me {link(secret, scene)}")
    scene.press("Ada", await scene.card(MAY_I), "Yes")
    await scene.shows("Done.")
    await scene.at_rest()
    assert pinned(scene, rules)
    assert "a secret" not in scene.told()


async def test_what_one_of_two_may_not_read_neither_is_told(scene: Scene) -> None:
    secret = scene.say("Ada", "a secret", channel="random")
    scene.pg.deny(secret.channel_id, "view_channel", member=scene.pg.person("Ben"))
    gate = asyncio.Event()
    scene.stub.replies.extend(
        [Reply("Hm.", before=gate), call("read_message", link=link(secret, scene)), Reply("Done.")]
    )
    scene.mention("Chloe", "hello")
    await scene.until(lambda: scene.stub.requests)
    scene.mention("Ben", f"read me {link(secret, scene)}")
    last = scene.mention("Ada", "what is the weather?")
    await scene.decision(last)
    gate.set()
    await scene.outcome(last)
    assert "a secret" not in scene.told()
