"""turns/: what is edited or deleted while it waits or is answered, and is for a mini-app or answers a prompt."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from discord_io.prompt_cards import LET_GO
from state.prompts import ResolutionType
from tests.support.fake_agent import Script
from tests.support.people import ANNA, BEN, BOT, CHANNEL, said
from tests.support.turns_bench import asked
from tests.support.virtual_time import settle, until
from tests.test_turns_prompts import WANTS_SOAP, Stage
from turns.endings import STOPPED
from turns.turn import MAX_REWORDED_MINIAPP, Question, Turn

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def stage() -> Stage:
    return Stage()


async def busy(stage: Stage) -> asyncio.Event:
    """A turn of Ben's runs until this is set."""
    gate, earlier = asyncio.Event(), len(stage.agent.requests)
    stage.script(Script(gate=gate))
    stage.ask(BEN, "what is the time?")
    await until(lambda: len(stage.agent.requests) > earlier)
    return gate


def edit(stage: Stage, question: Question, text: str) -> None:
    message = replace(question.message, content=text)
    stage.conversations.revise(CHANNEL, message)
    stage.turns.reworded(CHANNEL, message)


async def test_a_mini_app_is_given_the_words_as_edited(stage: Stage) -> None:
    gate = await busy(stage)
    edit(stage, stage.take_in("paint the door"), "paint the floor")
    gate.set()
    await stage.idle()
    assert [context.text for context in stage.paint.seen] == ["paint the floor"]


async def test_what_is_edited_to_something_else_is_answered_by_the_agent(stage: Stage) -> None:
    gate = await busy(stage)
    edit(stage, stage.take_in("paint the door"), "what is a door?")
    stage.take_in("and a floor?")
    gate.set()
    await stage.idle()
    assert not stage.paint.seen
    assert asked(stage) == [["what is the time?"], ["what is a door?", "and a floor?"]]


async def test_a_reply_to_a_prompt_counts_as_edited(stage: Stage) -> None:
    prompt = await stage.prompt()
    gate = await busy(stage)
    edit(stage, stage.take_in("red"), "blue")
    gate.set()
    await stage.idle()
    assert [(context.focus_resolution or {}).get("selected_option") for context in stage.paint.seen] == [None, "blue"]
    assert stage.wire.standing[prompt.message_id or 0] == "Which colour?\n\n-# ✓ blue"


async def test_a_reply_that_is_edited_to_something_else_lets_the_prompt_go(stage: Stage) -> None:
    prompt = await stage.prompt()
    gate = await busy(stage)
    edit(stage, stage.take_in("red"), "which ones do you have?")
    gate.set()
    await stage.idle()
    assert len(stage.paint.seen) == 1
    assert asked(stage)[-1] == ["which ones do you have?"]
    assert stage.wire.standing[prompt.message_id or 0] == f"Which colour?\n\n-# {LET_GO}"


async def test_a_yes_to_the_agent_that_is_edited_to_a_no_is_a_no(stage: Stage) -> None:
    prompt = stage.states.set_awaiting(CHANNEL, WANTS_SOAP, user_id=ANNA, question="Shall I?")
    gate = await busy(stage)
    stage.states.shown(prompt, 1, "Shall I?")
    edit(stage, stage.take_in("yes"), "no")
    gate.set()
    await stage.idle()
    reply = stage.agent.requests[-1].reply
    assert reply
    assert (reply.type, reply.data["confirmed"]) == (ResolutionType.CONFIRMATION, False)


async def test_a_reply_to_what_the_agent_asks_counts_though_that_is_still_being_written(stage: Stage) -> None:
    card = stage.say(BOT, "May")
    prompt = stage.states.set_awaiting(CHANNEL, WANTS_SOAP, user_id=ANNA, question="May I?")
    stage.states.shown(prompt, card.message_id, "May I?")
    gate = await busy(stage)
    reply = said(ANNA, "yes", reply_to_id=card.message_id, reply_to_author_id=BOT, reply_to_text="May")
    stage.conversations.record_message(CHANNEL, reply)
    stage.intake.submit(stage.question(reply))
    stage.conversations.record_message(CHANNEL, replace(card, content="May I?"))
    gate.set()
    await stage.idle()
    assert stage.agent.requests[-1].reply


@pytest.mark.parametrize("what", ["edited", "deleted", "trimmed"])
async def test_of_what_was_said_in_one_go_every_part_counts_as_it_stands(stage: Stage, what: str) -> None:
    gate = await busy(stage)
    parts = [stage.question(stage.say(ANNA, text)) for text in ("please paint", "the door", "and the floor")]
    stage.intake.submit(*parts)
    if what == "edited":
        edit(stage, parts[1], "the wall")
    elif what == "deleted":
        stage.conversations.forget_messages(CHANNEL, {parts[1].message.message_id})
    else:  # or not restored: it is not known any more, but still said
        stage.conversation.messages.remove(parts[1].message)
    gate.set()
    await stage.idle()
    left = {"edited": ["the wall"], "deleted": [], "trimmed": ["the door"]}[what]
    assert [context.text for context in stage.paint.seen] == ["\n".join(["please paint", *left, "and the floor"])]


@pytest.mark.parametrize("text", ["paint the floor", "what is a door?"])
async def test_what_is_edited_while_a_mini_app_is_at_it_is_asked_anew(stage: Stage, text: str) -> None:
    stage.paint.does.append(asyncio.Event())
    question = stage.take_in("paint the door")
    await until(lambda: stage.paint.seen)
    edit(stage, question, text)
    await stage.idle()
    app = [context.text for context in stage.paint.seen]
    assert (app, asked(stage)) == (["paint the door", text], []) if "paint" in text else (app[:1], [[text]])
    assert len(stage.wire.done("send")) == 1
    assert len(stage.conversation.own) == ("paint" not in text)  # what the model wrote it is not told once more


def _is_asked(stage: Stage, times: int) -> bool:
    return len(stage.paint.seen) == times


@pytest.mark.parametrize("times", [MAX_REWORDED_MINIAPP, MAX_REWORDED_MINIAPP + 1])
async def test_what_is_edited_again_and_again_reaches_the_mini_app_in_its_last_words_or_ends(
    stage: Stage, times: int
) -> None:
    """Whoever else asked there does not wait for as long as somebody edits."""
    stage.paint.does.extend(asyncio.Event() for _ in range(times))
    question = stage.take_in("paint the door")
    stage.ask(BEN, "what is the time?")
    for number in range(times):
        await until(partial(_is_asked, stage, number + 1))
        edit(stage, question, f"paint door {number}")
    await stage.idle()
    is_over = times > MAX_REWORDED_MINIAPP
    assert stage.paint.seen[-1].text == f"paint door {MAX_REWORDED_MINIAPP - 1}"
    assert stage.wire.texts == [STOPPED if is_over else "Which colour?", "the answer"]


@pytest.mark.parametrize("what", ["edited", "deleted", "edited behind a trimmed one", "edited, itself trimmed"])
async def test_of_what_was_said_in_one_go_nothing_old_is_left_to_a_mini_app_that_is_at_it(
    stage: Stage, what: str
) -> None:
    stage.paint.does.append(asyncio.Event())
    parts = [stage.question(stage.say(ANNA, text)) for text in ("please paint", "the door", "and the floor")]
    stage.intake.submit(*parts)
    await until(lambda: stage.paint.seen)
    if "trimmed" in what:
        stage.conversation.messages.remove(parts["itself" in what].message)
    if what == "deleted":
        stage.conversations.forget_messages(CHANNEL, {parts[1].message.message_id})
        stage.turns.changed(CHANNEL, parts[1].message.message_id)
    else:
        edit(stage, parts[1], "paint the wall")
    await stage.idle()
    left = ["please paint"] if what != "edited behind a trimmed one" else []
    left += ["paint the wall"] if what != "deleted" else []
    assert [context.text for context in stage.paint.seen[1:]] == ["\n".join([*left, "and the floor"])]


async def test_a_yes_that_is_edited_to_a_no_while_the_agent_is_at_it_is_a_no(stage: Stage) -> None:
    prompt = stage.states.set_awaiting(CHANNEL, WANTS_SOAP, user_id=ANNA, question="Shall I?")
    stage.say(BEN, "hello")
    stage.states.shown(prompt, 1, "Shall I?")
    stage.script(Script(gate=asyncio.Event()))
    yes = stage.take_in("yes")
    await until(lambda: stage.agent.requests)
    edit(stage, yes, "no")
    await stage.idle()
    replies = [request.reply for request in stage.agent.requests]
    assert [reply and reply.data["confirmed"] for reply in replies] == [True, False]


async def test_a_turn_that_is_made_again_after_a_kill_is_for_the_words_as_edited(stage: Stage) -> None:
    gate = await busy(stage)
    question = stage.take_in("paint the door")
    [waiting] = stage.pending.of(CHANNEL).waiting
    stage.turns.withdraw(CHANNEL, lambda message: message.message_id == question.message.message_id)
    gate.set()
    await stage.idle()
    stage.conversations.revise(CHANNEL, replace(question.message, content="paint the floor"))
    stage.turns.resume(CHANNEL, Turn([waiting]), [])
    await stage.idle()
    assert [context.text for context in stage.paint.seen] == ["paint the floor"]


@pytest.mark.parametrize("what", ["deleted", "stopped"])
async def test_a_card_does_not_show_a_reply_that_came_to_nothing(stage: Stage, what: str) -> None:
    prompt = await stage.prompt()
    gate = await busy(stage)
    reply = stage.take_in("red").message
    if what == "deleted":
        stage.turns.withdraw(CHANNEL, lambda message: message.message_id == reply.message_id)
    else:
        assert stage.turns.stop(said(ANNA, "stop"), CHANNEL)
    gate.set()
    await stage.idle()
    assert len(stage.paint.seen) == 1
    assert stage.wire.standing[prompt.message_id or 0] == f"Which colour?\n\n-# {LET_GO}"


async def test_a_card_shows_its_last_ending_though_discord_takes_longer_for_an_earlier_one(stage: Stage) -> None:
    prompt = await stage.prompt()
    gate = await busy(stage)
    stage.wire.seconds_per_call = 5
    reply = stage.take_in("red").message
    await settle()
    stage.wire.seconds_per_call = 0
    stage.turns.withdraw(CHANNEL, lambda message: message.message_id == reply.message_id)
    gate.set()
    await asyncio.sleep(6)
    assert stage.wire.standing[prompt.message_id or 0] == f"Which colour?\n\n-# {LET_GO}"
