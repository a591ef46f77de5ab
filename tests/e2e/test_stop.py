"""Stop means stop: an answer ends at once for whoever may end it, and `/why` says what happened."""

from __future__ import annotations

import asyncio

import pytest

from decider import Reason
from playground.model import Message
from tests.support.scene import Scene
from tests.support.stub_model import Reply


def _slow(scene: Scene) -> asyncio.Event:
    """The next answer stops in its middle until the gate opens."""
    gate = asyncio.Event()
    scene.stub.replies.append(Reply("One, two, three, four", gate=gate, chunk=9))
    return gate


async def _begun(scene: Scene, question: Message) -> Message:
    """The beginning of the answer to a question."""

    def answer() -> list[Message]:
        return [m for m in scene.said() if m.reference and m.reference.message_id == question.id]

    return (await scene.until(answer))[0]


async def _unprompted(scene: Scene) -> Message:
    """Chloe's question, which nobody put to the bot and which it is answering."""
    await scene.ask("Ben", "what is the weather in Tokyo?")
    _slow(scene)
    question = scene.say("Chloe", "and what about Osaka?")
    await _begun(scene, question)
    assert (await scene.decision(question)).is_unprompted
    return question


@pytest.mark.parametrize("words", ["ok stop it please", "that's enough", "halt die Klappe!", "<@{bot}> basta"])
async def test_whoever_is_answered_ends_it_and_is_left_alone_until_they_mention_the_bot(
    scene: Scene, words: str
) -> None:
    _slow(scene)
    question = scene.mention("Ben", "count")
    await _begun(scene, question)
    stop = scene.say("Ben", words.format(bot=scene.pg.bot_id))
    assert await scene.outcome(question) == "stopped"
    assert [m.content for m in scene.said()] == ["One, two,\n\n-# Stopped."]
    assert (await scene.decision(stop)).in_words() == "silent: I was told to stop (I ended the answer to you)"
    later = await scene.decision(scene.say("Ben", "what about three?"))
    assert (later.respond, later.reason) == (False, Reason.TOLD_OFF)
    await scene.ask("Ben", "count again")
    assert (await scene.decision(scene.say("Ben", "what about three?"))).respond


async def test_whoever_does_not_want_to_be_read_ends_what_is_answered_to_them(scene: Scene) -> None:
    await scene.ask("Ben", "hello")
    await scene.bot.privacy.opt_out(scene.pg.person("Ben"), at=scene.said()[-1].id)
    _slow(scene)
    question = scene.mention("Ben", "count")
    await _begun(scene, question)
    stop = scene.say("Ben", "stop")
    assert await scene.outcome(question) == "stopped"
    conversation = scene.bot.conversations.get(scene.pg.channel("general"))
    assert conversation
    recorded = conversation.find(stop.id)
    assert recorded
    assert (recorded.content, recorded.tells_off) == ("", True)


async def test_a_never_mind_ends_it_and_its_author_may_go_on(scene: Scene) -> None:
    _slow(scene)
    question = scene.mention("Ben", "count")
    await _begun(scene, question)
    scene.say("Ben", "never mind")
    assert await scene.outcome(question) == "stopped"
    assert (await scene.decision(scene.say("Ben", "what about three?"))).respond


async def test_whoever_manages_messages_ends_it_and_what_waits(scene: Scene) -> None:
    scene.pg.allow(scene.pg.channel("general"), "manage_messages", member=scene.pg.person("Chloe"))
    _slow(scene)
    question = scene.mention("Ben", "count")
    await _begun(scene, question)
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
    gate = _slow(scene)
    question = scene.mention("Ben", "count")
    await _begun(scene, question)
    words = (await scene.decision(scene.say("Chloe", "shut up"))).in_words()
    assert words == "silent: you told me to keep out, so I wait until you mention me"
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
    scene.stub.replies.append(Reply("Too late.", before=asyncio.Event()))
    question = scene.say("Ben", "and what about Osaka?")
    decision = await scene.decision(question)
    assert decision.is_unprompted
    assert not decision.may_decline
    await scene.until(lambda: len(scene.stub.requests) == 2)
    scene.say("Ben", "never mind")
    assert await scene.outcome(question) == "stopped"
    assert scene.decisions[question.id][-1].in_words() == "silent: I was told to stop"
    assert len(scene.said()) == 1


async def test_what_waits_and_nobody_had_asked_for_was_not_answered(scene: Scene) -> None:
    question = await _unprompted(scene)
    waiting = scene.say("Ada", "what about Kyoto?")
    assert (await scene.decision(waiting)).is_unprompted
    scene.say("Ada", "never mind")
    await scene.until(lambda: len(scene.decisions[waiting.id]) == 2)
    assert scene.decisions[waiting.id][-1].reason is Reason.STOP
    scene.say("Ben", "stop")
    await scene.outcome(question)
    assert len(scene.decisions[waiting.id]) == 2


async def test_who_stops_what_nobody_sees_ends_no_following(scene: Scene) -> None:
    await scene.ask("Ben", "what is the weather in Tokyo?")
    scene.stub.replies.append(Reply("Too late.", before=asyncio.Event()))
    question = scene.say("Chloe", "and what about Osaka?")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    scene.say("Chloe", "stop")
    assert await scene.outcome(question) == "stopped"
    assert (await scene.decision(scene.say("Ben", "and Kyoto?"))).reason is not Reason.UNWELCOME
    assert (await scene.decision(scene.say("Chloe", "and Kyoto?"))).reason is Reason.TOLD_OFF


@pytest.mark.parametrize("words", ["stop it ben", "Ben, stop", "<@{ben}> stop"])
async def test_a_stop_said_to_a_person_ends_nothing(scene: Scene, words: str) -> None:
    await scene.decision(scene.say("Ben", "look at me"))
    gate = _slow(scene)
    question = scene.mention("Ada", "count")
    await _begun(scene, question)
    stop = scene.say("Ada", words.format(ben=scene.pg.person("Ben")))
    assert (await scene.decision(stop)).reason in (Reason.NAMES_OTHERS, Reason.NO_TRIGGER)
    gate.set()
    assert (await scene.answer_to(question)).content == "One, two, three, four"


async def test_a_stop_in_reply_to_a_person_ends_nothing(scene: Scene) -> None:
    bens = scene.say("Ben", "look at me")
    gate = _slow(scene)
    question = scene.mention("Ada", "count")
    await _begun(scene, question)
    stop = scene.say("Ada", "stop", reply_to=bens.id, ping=False)
    assert (await scene.decision(stop)).reason is Reason.NAMES_OTHERS
    gate.set()
    assert (await scene.answer_to(question)).content == "One, two, three, four"


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
        heard = scene.heard("raw_reaction_add", answer)
        scene.pg.react(answer, scene.pg.person("Ada"), "👎")
        await heard
    for who in ("Ben", "Chloe"):
        decision = await scene.decision(scene.say(who, "and Kyoto?"))
        assert (decision.respond, decision.reason) == (False, Reason.UNWELCOME)
        assert decision.in_words().startswith("silent: my last unasked answer was not welcome")
    await scene.ask("Ben", "are you there?")
    assert (await scene.decision(scene.say("Chloe", "and Kyoto?"))).respond


async def test_an_answer_that_was_asked_for_may_be_disliked_and_following_goes_on(scene: Scene) -> None:
    answer = await scene.ask("Ben", "what is the weather in Tokyo?")
    heard = scene.heard("raw_reaction_add", answer)
    scene.pg.react(answer, scene.pg.person("Ada"), "👎")
    await heard
    assert (await scene.decision(scene.say("Chloe", "and what about Osaka?"))).respond


async def test_what_becomes_of_an_answer_of_an_earlier_conversation_ends_no_following_in_this_one(scene: Scene) -> None:
    await scene.ask("Ben", "what is the weather in Tokyo?")
    answer = await scene.answer_to(scene.say("Chloe", "and what about Osaka?"))
    scene.bot.conversations.end(scene.pg.channel("general"))
    await scene.ask("Ben", "what is the weather in Rome?")
    await scene.delete(answer)
    assert (await scene.decision(scene.say("Ben", "and what about Milan?"))).respond
