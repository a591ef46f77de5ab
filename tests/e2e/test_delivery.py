"""How an answer gets into the channel, and what becomes of it where Discord refuses."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from decider import Reason
from playground.limits import Limits, Rate
from playground.model import Message
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Reply, StubModel
from tests.support.unusual import removed_unheard
from turns.endings import NOT_ALLOWED

SENDS, EDITS = r"/messages$", r"/messages/\d+$"
CODE = "```python\n" + "\n".join(f"line_{n} = {n} * 'abcdefghij'" for n in range(60)) + "\n```"
PROSE = "A sentence of some length that is said again and again. " * 20
LONG = "\n\n".join([PROSE, CODE, PROSE, PROSE, CODE, PROSE, CODE])


async def test_an_answer_of_9000_characters_comes_in_parts_that_each_stand_alone(scene: Scene) -> None:
    assert len(LONG) > 9_000
    scene.stub.replies.append(Reply(LONG))
    question = scene.mention("Ada", "tell me all")
    await scene.answer_to(question)
    parts = scene.said()
    assert len(parts) >= 5
    assert all(len(part.content) <= 2_000 for part in parts)
    assert all(part.content.count("```") % 2 == 0 for part in parts)
    assert [part.reference is not None for part in parts] == [True] + [False] * (len(parts) - 1)
    assert [part.nonce for part in parts] == [f"{question.id}-{n}" for n in range(len(parts))]
    assert _words("\n".join(part.content for part in parts)) == _words(LONG)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("status", [429, 500])
async def test_a_send_that_fails_for_the_moment_is_made_again(scene: Scene, status: int) -> None:
    scene.pg.faults.add("POST", SENDS, status=status)
    assert (await scene.ask("Ada", "hello")).content == "You said: @Parley hello"
    assert [request.status for request in scene.sent("POST", "/messages")] == [status, 200]
    assert len(scene.said()) == 1


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [{"status": 500}, {"drop": True}])
async def test_a_send_that_took_effect_but_was_not_confirmed_is_not_doubled(
    scene: Scene, fault: dict[str, Any]
) -> None:
    scene.pg.faults.add("POST", SENDS, after_effect=True, **fault)
    question = scene.mention("Ada", "hello")
    await scene.outcome(question)
    await scene.at_rest()
    assert [message.content for message in scene.said()] == ["You said: @Parley hello"]
    await scene.ask("Ada", "and now?")
    assert len(scene.said()) == 2


@pytest.mark.usefixtures("impatient")
async def test_an_edit_that_fails_for_the_moment_is_made_again(scene: Scene) -> None:
    fault = scene.pg.faults.add("PATCH", EDITS, status=429)
    gate = scene.halted()
    question = scene.mention("Ada", "hello")
    await scene.streaming()
    gate.set()
    assert (await scene.answer_to(question)).content == "First words, and the rest."
    assert fault.hits == 1
    assert len(scene.said()) == 1


async def test_discords_own_rate_limits_delay_an_answer_and_lose_nothing(stub: StubModel) -> None:
    tight = Limits(sends=Rate(2, 0.1), edits=Rate(2, 0.1), reactions=None, everything=None)
    async with open_scene(stub, limits=tight) as scene:
        stub.replies.append(Reply(LONG, chunk=900))
        question = scene.mention("Ada", "tell me all")
        await scene.answer_to(question)
        assert _words("\n".join(part.content for part in scene.said())) == _words(LONG)


async def test_no_typing_permission_is_no_reason_not_to_answer(scene: Scene) -> None:
    scene.pg.faults.add("POST", "/typing$", status=403, code=50013, times=99)
    gate = scene.held("Yes.")
    question = scene.mention("Ada", "hello")
    await scene.pg.wait_for(lambda: scene.sent("POST", "/typing"))
    gate.set()
    await scene.answer_to(question)
    assert scene.sent("POST", "/typing")[0].status == 403


async def test_where_it_may_not_write_no_model_is_asked(scene: Scene) -> None:
    heard = scene.bot.wait_for("guild_channel_update", timeout=10)
    scene.pg.deny(scene.pg.channel("general"), "send_messages")
    await heard
    question = scene.mention("Ada", "hello")
    assert (await scene.decision(question)).reason is Reason.MISSING_PERMISSION
    await scene.until(lambda: _reactions(scene, question) == [NOT_ALLOWED])
    assert not scene.stub.requests
    assert not scene.said()
    await scene.ask("Ada", "hello", channel="help")


async def test_an_answer_that_may_not_be_a_reply_becomes_a_plain_message(scene: Scene) -> None:
    heard = scene.bot.wait_for("guild_channel_update", timeout=10)
    scene.pg.deny(scene.pg.channel("general"), "read_message_history")
    await heard
    await scene.outcome(scene.mention("Ada", "hello"))
    assert [(m.content, m.reference) for m in scene.said()] == [("You said: @Parley hello", None)]


async def test_an_answer_that_a_moderator_deletes_midstream_is_ended_and_not_posted_anew(scene: Scene) -> None:
    deleted, never = asyncio.Event(), asyncio.Event()

    async def pace(so_far: str) -> None:
        await (deleted if so_far == "First words," else never).wait()

    scene.stub.replies.append(Reply("First words, and the rest.", pace=pace, chunk=12))
    question = scene.mention("Ada", "hello")
    scene.pg.delete(await scene.streaming())
    deleted.set()
    assert await scene.outcome(question) == "undelivered_gone"
    assert not scene.said()
    await scene.ask("Ada", "and now?")
    assert len(scene.said()) == 1


async def test_the_answer_to_a_question_that_is_gone_unheard_is_a_plain_message(scene: Scene) -> None:
    gate = scene.held("Here you are.")
    question = scene.mention("Ada", "hello")
    await scene.until(lambda: scene.stub.requests)
    removed_unheard(scene, question)
    gate.set()
    await scene.outcome(question)
    assert [(m.content, m.reference) for m in scene.said()] == [("Here you are.", None)]
    assert len(scene.sent("POST", "/messages")) == 1


async def test_nobody_but_the_asker_is_pinged_whatever_the_model_writes(scene: Scene) -> None:
    shout = f"@everyone @here <@{scene.pg.person('Ben')}> <@&{scene.pg.bot_role_id}> look!"
    gate = scene.halted(f"{shout} {shout}", chunk=len(shout))
    question = scene.mention("Ada", "shout")
    await scene.streaming()
    gate.set()
    answer = await scene.answer_to(question)
    assert answer.content == f"{shout} {shout}"
    assert answer.pinged == {scene.pg.person("Ada")}
    assert not answer.mention_everyone
    assert answer.mentions == (scene.pg.person("Ada"),)
    for request in [*scene.sent("POST", "/messages"), *scene.sent("PATCH", str(answer.id))]:
        assert request.body["allowed_mentions"] == {"parse": [], "replied_user": True}


def _words(text: str) -> list[str]:
    """The words, without the lines that open and close code blocks."""
    return re.sub(r"```\w*", " ", text).split()


def _reactions(scene: Scene, message: Message) -> list[str]:
    return [reaction.emoji for reaction in scene.pg.world.message(message.channel_id, message.id).reactions]
