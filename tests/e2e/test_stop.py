"""Stop means stop: an answer ends at once for whoever may end it, and `/why` says what happened."""

from __future__ import annotations

from typing import Any

import pytest

from decider import Reason
from playground.model import Message
from tests.support.scene import Scene

COUNT = "One, two, three, four"


async def _begun(scene: Scene, question: Message) -> Message:
    """The beginning of the answer to a question."""

    def answer() -> list[Message]:
        return [m for m in scene.said() if m.reference and m.reference.message_id == question.id]

    return (await scene.until(answer))[0]


async def _halved(scene: Scene, question: Message) -> Message:
    """The question, the answer to which has stopped in its middle."""
    await _begun(scene, question)
    return question


async def _unprompted(scene: Scene) -> Message:
    """Chloe's question, which nobody put to the bot and which it is answering."""
    await scene.ask("Ben", "what is the weather in Tokyo?")
    scene.halted(COUNT, chunk=9)
    question = await _halved(scene, scene.say("Chloe", "and what about Osaka?"))
    assert (await scene.decision(question)).is_unprompted
    return question


@pytest.mark.parametrize("words", ["ok stop it please", "halt die Klappe!", "<@{bot}> basta"])
async def test_whoever_is_answered_ends_it_and_is_left_alone_until_they_mention_the_bot(
    scene: Scene, words: str
) -> None:
    scene.halted(COUNT, chunk=9)
    question = await _halved(scene, scene.mention("Ben", "count"))
    stop = scene.say("Ben", words.format(bot=scene.pg.bot_id))
    assert await scene.outcome(question) == "stopped"
    assert [m.content for m in scene.said()] == ["One, two,\n\n-# Stopped."]
    assert (await scene.decision(stop)).in_words() == "silent: I was told to stop (I ended the answer to you)"
    later = await scene.decision(scene.say("Ben", "what about three?"))
    assert (later.respond, later.reason) == (False, Reason.TOLD_OFF)
    await scene.ask("Ben", "count again")
    assert "One, two," in scene.told()
    assert (await scene.decision(scene.say("Ben", "what about three?"))).respond


async def test_whoever_does_not_want_to_be_read_ends_what_is_answered_to_them(scene: Scene) -> None:
    await scene.ask("Ben", "hello")
    await scene.bot.privacy.opt_out(scene.pg.person("Ben"), at=scene.said()[-1].id)
    scene.halted(COUNT, chunk=9)
    question = await _halved(scene, scene.mention("Ben", "count"))
    stop = scene.say("Ben", "stop")
    assert await scene.outcome(question) == "stopped"
    conversation = scene.bot.conversations.get(scene.pg.channel("general"))
    assert conversation
    recorded = conversation.find(stop.id)
    assert recorded
    assert (recorded.content, recorded.tells_off) == ("", True)


async def test_whoever_manages_messages_ends_it_and_what_waits(scene: Scene) -> None:
    scene.pg.allow(scene.pg.channel("general"), "manage_messages", member=scene.pg.person("Chloe"))
    scene.halted(COUNT, chunk=9)
    question = await _halved(scene, scene.mention("Ben", "count"))
    waiting = scene.mention("Ada", "and me?")
    await scene.decision(waiting)
    stop = scene.say("Chloe", "shut up")
    assert await scene.outcome(question) == "stopped"
    words = (await scene.decision(stop)).in_words()
    assert words == "silent: I was told to stop (I ended the answers to Ben and Ada)"
    await scene.at_rest()
    await scene.until(lambda: len(scene.said()) == 2)
    assert sorted(m.content for m in scene.said()) == ["One, two,\n\n-# Stopped.", "Stopped."]
    assert len(scene.stub.requests) == 1
    assert (await scene.decision(scene.say("Chloe", "why?"))).reason is Reason.TOLD_OFF


async def test_another_person_does_not_end_what_was_asked_for_and_is_told_what_that_meant(scene: Scene) -> None:
    gate = scene.halted(COUNT, chunk=9)
    question = await _halved(scene, scene.mention("Ben", "count"))
    words = (await scene.decision(scene.say("Chloe", "shut up"))).in_words()
    assert words == "silent: you told me to keep out, so I wait until you call me"
    gate.set()
    assert (await scene.answer_to(question)).content == "One, two, three, four"


async def test_anybody_ends_what_nobody_had_asked_for_and_following_ends_there(scene: Scene) -> None:
    question = await _unprompted(scene)
    stop = scene.say("Ben", "not now")
    assert await scene.outcome(question) == "stopped"
    words = (await scene.decision(stop)).in_words()
    assert words == "silent: I was told to stop (I ended the answer to Chloe)"
    assert (await scene.decision(scene.say("Chloe", "and Kyoto?"))).reason is Reason.UNWELCOME


async def test_what_ends_before_anything_of_it_is_shown_was_not_answered(scene: Scene) -> None:
    await scene.ask("Ben", "what is the weather in Tokyo?")
    scene.held("Too late.")
    question = scene.say("Ben", "and what about Osaka?")
    decision = await scene.decision(question)
    assert decision.is_unprompted
    assert not decision.may_decline
    await scene.until(lambda: len(scene.stub.requests) == 2)
    scene.say("Ben", "never mind")
    assert await scene.outcome(question) == "stopped"
    assert scene.decisions[question.id][-1].in_words() == "silent: I was told to stop"
    assert len(scene.said()) == 1


@pytest.mark.usefixtures("rules_of_thumb")  # by which the agent may decline this
async def test_who_stops_what_nobody_sees_ends_no_following(scene: Scene) -> None:
    await scene.ask("Ben", "what is the weather in Tokyo?")
    scene.held("Too late.")
    question = scene.say("Chloe", "and what about Osaka?")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    scene.say("Chloe", "stop")
    assert await scene.outcome(question) == "stopped"
    assert (await scene.decision(scene.say("Ben", "and Kyoto?"))).reason is not Reason.UNWELCOME
    assert (await scene.decision(scene.say("Chloe", "and Kyoto?"))).reason is Reason.TOLD_OFF


@pytest.mark.parametrize("words", ["Ben, stop", "<@{ben}> stop", "stop"])
async def test_a_stop_said_to_a_person_ends_nothing(scene: Scene, words: str) -> None:
    bens = scene.say("Ben", "look at me")
    await scene.decision(bens)
    gate = scene.halted(COUNT, chunk=9)
    question = await _halved(scene, scene.mention("Ada", "count"))
    reply: dict[str, Any] = {"reply_to": bens.id, "ping": False} if words == "stop" else {}
    stop = scene.say("Ada", words.format(ben=scene.pg.person("Ben")), **reply)
    assert (await scene.decision(stop)).reason in (Reason.NAMES_OTHERS, Reason.NO_TRIGGER)
    gate.set()
    assert (await scene.answer_to(question)).content == COUNT


async def test_a_mention_that_only_tells_it_off_is_not_answered(scene: Scene) -> None:
    await scene.ask("Ben", "hello")
    assert (await scene.decision(scene.mention("Ben", "shut up"))).reason is Reason.TOLD_OFF
    assert len(scene.stub.requests) == 1


# What nobody had asked for and was not welcome


@pytest.mark.parametrize("how", ["told off", "deleted", "disliked"])
async def test_an_unprompted_answer_that_is_not_welcome_ends_following_until_a_mention(scene: Scene, how: str) -> None:
    await scene.ask("Ben", "what is the weather in Tokyo?")
    answer = await scene.answer_to(scene.say("Chloe", "and what about Osaka?"))
    if how == "told off":
        await scene.decision(scene.say("Ada", "not you"))
    elif how == "deleted":
        await scene.delete(answer)
    else:
        await scene.react(answer, "Ada", "👎")
    for who in ("Ben", "Chloe"):
        decision = await scene.decision(scene.say(who, "and Kyoto?"))
        assert (decision.respond, decision.reason) == (False, Reason.UNWELCOME)
        assert decision.in_words().startswith("silent: my last answer, which came without a call, was not welcome")
    await scene.ask("Ben", "are you there?")
    assert (await scene.decision(scene.say("Chloe", "and Kyoto?"))).respond


async def test_an_answer_that_was_asked_for_may_be_disliked_and_following_goes_on(scene: Scene) -> None:
    answer = await scene.ask("Ben", "what is the weather in Tokyo?")
    await scene.react(answer, "Ada", "👎")
    assert (await scene.decision(scene.say("Chloe", "and what about Osaka?"))).respond


async def test_what_becomes_of_an_answer_of_an_earlier_conversation_ends_no_following_in_this_one(scene: Scene) -> None:
    await scene.ask("Ben", "what is the weather in Tokyo?")
    answer = await scene.answer_to(scene.say("Chloe", "and what about Osaka?"))
    scene.bot.conversations.end(scene.pg.channel("general"))
    await scene.ask("Ben", "what is the weather in Rome?")
    await scene.delete(answer)
    assert (await scene.decision(scene.say("Ben", "and what about Milan?"))).respond
