"""A call by its name is a mention, also where it begins a conversation."""

from __future__ import annotations

import pytest

from decider import Reason
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import StubModel


@pytest.mark.parametrize("words", ["Parley are you there?", "what do you think, parley?", "hey parley"])
async def test_a_call_by_its_name_begins_a_conversation(scene: Scene, words: str) -> None:
    question = scene.say("Ben", words)
    assert (await scene.answer_to(question)).pinged == {scene.pg.person("Ben")}
    decision = await scene.decision(question)
    assert decision.reason is Reason.EXPLICIT_TRIGGER
    assert decision.in_words().endswith("(you called me by my name)")


@pytest.mark.parametrize("words", ["Parley is nice", "i asked parley", "> Parley, are you there?", "thanks parley"])
async def test_to_be_talked_about_begins_none(scene: Scene, words: str) -> None:
    assert (await scene.decision(scene.say("Ben", words))).reason is Reason.NO_TRIGGER
    assert not scene.stub.requests


async def test_where_names_do_not_call_a_mention_does(stub: StubModel) -> None:
    async with open_scene(stub, name_calls=False) as scene:
        assert (await scene.decision(scene.say("Ben", "Parley are you there?"))).reason is Reason.NO_TRIGGER
        await scene.ask("Ben", "are you there?")


async def test_its_nickname_calls_it_as_soon_as_it_has_one(scene: Scene) -> None:
    assert not (await scene.decision(scene.say("Ben", "Nicky, are you there?"))).respond
    guild = scene.bot.get_guild(scene.pg.guild_id)
    assert guild
    guild.me.nick = "Nicky"
    for words in ("Nicky, are you there?", "Parley, are you there?"):
        await scene.answer_to(scene.say("Ben", words))
    guild.me.nick = None
    assert (await scene.decision(scene.say("Ben", "Nicky, are you there?"))).evidence != "you called me by my name"


async def test_whoever_told_it_off_calls_it_back_by_its_name(scene: Scene) -> None:
    await scene.ask("Ben", "hello")
    assert (await scene.decision(scene.say("Ben", "shut up parley"))).reason is Reason.TOLD_OFF
    assert (await scene.decision(scene.say("Ben", "and what about Osaka?"))).reason is Reason.TOLD_OFF
    await scene.answer_to(scene.say("Ben", "Parley, what about Osaka?"))
    assert (await scene.decision(scene.say("Ben", "and what about Kyoto?"))).respond


async def test_a_thanks_with_its_name_stays_one(scene: Scene) -> None:
    await scene.ask("Ben", "hello")
    assert (await scene.decision(scene.say("Ben", "thanks, Parley"))).reason is Reason.ACKNOWLEDGEMENT
