"""A call by its name is a mention, also where it begins a conversation."""

from __future__ import annotations

from decider import Reason
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import StubModel


async def test_a_call_by_its_name_begins_a_conversation(scene: Scene) -> None:
    question = scene.say("Ben", "what do you think, parley?")
    assert (await scene.answer_to(question)).pinged == {scene.pg.person("Ben")}
    decision = await scene.decision(question)
    assert decision.reason is Reason.EXPLICIT_TRIGGER
    assert decision.in_words() == "answered: you called me by my name"
    assert (await scene.decision(scene.say("Ben", "thanks, Parley"))).reason is Reason.ACKNOWLEDGEMENT


async def test_to_be_talked_about_begins_none(scene: Scene) -> None:
    for words in ("Parley is nice", "i asked parley", "> Parley, are you there?", "thanks parley"):
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
