"""The commands: why it spoke or did not, and forgetting."""

from __future__ import annotations

from typing import Any

import pytest

from commands.privacy_commands import CHANNEL_FORGOTTEN, FORGOTTEN
from commands.why import NOTHING_KNOWN, UNNAMED, WHOSE_YOU
from decider import Decision, Reason
from decision import WITH_SOMEBODY
from playground.model import VOICE
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Reply, StubModel

EPHEMERAL = 1 << 6
MODEL = "the model was openai-chat:stub"


async def test_why_lists_the_last_decisions_newest_first(scene: Scene) -> None:
    answered = scene.mention("Ada", "hello")
    await scene.answer_to(answered)
    silent = scene.say("Ben", f"<@{scene.pg.person('Chloe')}> lunch?")
    await scene.decision(silent)
    answer = await scene.use("Ben", "why")
    first, second, whose = answer.content.splitlines()
    assert whose == WHOSE_YOU
    link = f"{scene.pg.url}/channels/{scene.pg.guild_id}/{answered.channel_id}"
    ada, ben, chloe = map(scene.pg.person, ("Ada", "Ben", "Chloe"))
    assert first == f"- <@{ben}> “<@{chloe}> lunch?”: [silent]({link}/{silent.id}), it was addressed to somebody else"
    told, _, reason = second.partition(": ")
    assert (told.startswith(f"- <@{ada}> “"), "hello”" in told) == (True, True)
    assert reason == f"[answered]({link}/{answered.id}), you mentioned me or replied to me; {MODEL}"


@pytest.mark.parametrize(("channel", "lacking"), [("general", "read_message_history"), ("lounge", "connect")])
async def test_why_quotes_nobody_to_those_who_may_not_read_the_history(
    scene: Scene, channel: str, lacking: str
) -> None:
    scene.pg.add_channel("lounge", type=VOICE)
    asked = scene.mention("Ada", "the word is **swordfish**", channel=channel)
    await scene.answer_to(asked)
    assert "swordfish" in (await scene.use("Ben", "why", channel=channel)).content
    scene.pg.deny(asked.channel_id, lacking, member=scene.pg.person("Ben"))
    told = (await scene.use("Ben", "why", channel=channel)).content
    assert str(asked.id) in told
    assert "swordfish" not in told


async def test_why_tells_no_models_words_to_those_who_may_not_read_the_history(scene: Scene) -> None:
    said = scene.say("Chloe", "and the second one?")
    judged = Decision(True, Reason.LLM_JUDGE, tier=3, evidence="Ada's word is swordfish")
    scene.bot.parts.decisions.add(said.id, said.channel_id, said.author.id, judged)
    scene.bot.parts.decisions.assigned(said.id, "by fishes, which fits best (swordfish)")
    for may_read in (True, False):
        if not may_read:
            scene.pg.deny(said.channel_id, "read_message_history", member=scene.pg.person("Ben"))
        told = [await scene.use("Ben", "why"), await scene.use("Ben", "Why?", target=said)]
        assert ["swordfish" in words.content for words in told] == [may_read, may_read]
        assert all("by fishes" in words.content for words in told)


MARKED = "so\n# [read](https://a_b.example) **and** [verify](https://evil.example)"


async def test_why_tells_a_models_words_as_words_and_not_as_a_link_or_a_heading(scene: Scene) -> None:
    said = scene.say("Chloe", "and the second one?")
    judged = Decision(True, Reason.LLM_JUDGE, tier=3, evidence=MARKED)
    scene.bot.parts.decisions.add(said.id, said.channel_id, said.author.id, judged)
    for told in (await scene.use("Ben", "why"), await scene.use("Ben", "Why?", target=said)):
        assert r"(so # \[read](https://a_b.example) \*\*and\*\* \[verify](https://evil.example))" in told.content


@pytest.mark.parametrize("way", ["forget", "optout"])
async def test_why_names_and_quotes_nobody_who_asked_not_to_be_read(scene: Scene, way: str) -> None:
    ada = f"<@{scene.pg.person('Ada')}>"
    said = scene.say("Ben", "and the swordfish?")
    noted = Decision(True, Reason.LLM_JUDGE, tier=3, evidence="Ada asked for swordfish")
    scene.bot.parts.decisions.add(said.id, said.channel_id, said.author.id, noted)
    scene.bot.parts.decisions.assigned(said.id, "by fishes, which fits best (Ada asked for swordfish)")
    await scene.use("Ada", way)
    told = [await scene.use("Ben", "why"), await scene.use("Ben", "Why?", target=said)]
    assert ["Ada" in words.content for words in told] == [False, False]
    assert told[1].content == "Answered: the judge, a second model, took it as meant for me; by fishes, which fits best"
    if way == "optout":
        await scene.answer_to(called := scene.mention("Ada", "is swordfish healthy?"))
        newest = (await scene.use("Ben", "why")).content.splitlines()[0]
        assert str(called.id) in newest
        assert newest.startswith(f"- {UNNAMED}: [answered](")
        partner = Decision(False, Reason.NO_TRIGGER, evidence=WITH_SOMEBODY, partner=scene.pg.person("Ada"))
        scene.bot.parts.decisions.add(said.id, said.channel_id, said.author.id, partner)
        for words in (await scene.use("Ben", "why"), await scene.use("Ben", "Why?", target=said)):
            assert WITH_SOMEBODY in words.content
            assert ada not in words.content


async def test_why_of_a_message(scene: Scene) -> None:
    question = scene.mention("Ada", "hello", channel="help")
    answer = await scene.answer_to(question)
    assert (await scene.use("Ben", "why")).content == NOTHING_KNOWN  # of another channel
    silent = scene.say("Ben", f"<@{scene.pg.person('Chloe')}> lunch?", channel="help")
    await scene.decision(silent)
    for target in (question, answer):
        shown = await scene.use("Ben", "Why?", target=target, channel="help")
        assert shown.content == f"Answered: you mentioned me or replied to me; {MODEL}\n{WHOSE_YOU}"
        assert shown.flags & EPHEMERAL
        assert shown.id not in {message.id for message in scene.pg.messages(question.channel_id)}
    shown = await scene.use("Ben", "Why?", target=silent, channel="help")
    assert shown.content == "Silent: it was addressed to somebody else"
    webhooks = scene.say("Chloe", "the build is green", webhook=True)
    assert (await scene.use("Ben", "Why?", target=webhooks)).content == NOTHING_KNOWN


async def test_why_of_the_end_of_a_long_answer(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("one two three " * 200)
    await scene.ask("Ada", "count")
    first, last = scene.said()
    assert (bool(first.reference), bool(last.reference)) == (True, False)
    told = (await scene.use("Ada", "Why?", target=last)).content
    assert told == f"Answered: you mentioned me or replied to me; {MODEL}"


async def test_forget_drops_what_one_person_said_in_all_channels(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Ada", "my cat is called Tim", channel="help")
    await scene.ask("Ben", "mine is called Tom", channel="help")
    assert (await scene.use("Ada", "forget")).content == FORGOTTEN
    await scene.ask("Ada", "which cat?", channel="help")
    assert "Tim" not in scene.told()
    assert "Tom" in scene.told()


async def test_forget_cancels_the_persons_running_answer(scene: Scene) -> None:
    scene.halted("Tim is a fine name for a cat.")
    question = scene.mention("Ada", "my cat is called Tim")
    await scene.streaming()
    await scene.use("Ada", "forget")
    assert await scene.outcome(question) == "withdrawn"
    assert not scene.said()
    await scene.ask("Ben", "which cat?")
    assert "Tim" not in scene.told()


async def test_forget_everything_drops_what_was_said_and_is_answered_in_this_channel(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    earlier = await scene.ask("Ada", "my cat is called Tim")
    await scene.ask("Ada", "my cat is called Tim", channel="help")
    refused = await scene.use("Ben", "forget", everything=True)
    assert refused.content.startswith("Only those who manage this channel")
    await scene.ask("Ada", "which cat?")
    assert "Tim" in scene.told()
    scene.pg.allow(scene.pg.channel("general"), "manage_channels", member=scene.pg.person("Ben"))
    scene.halted("Tom is a fine name too.")
    question = scene.mention("Chloe", "and mine Tom")
    await scene.until(lambda: len(scene.said()) == 3)
    assert (await scene.use("Ben", "forget", everything=True)).content == CHANNEL_FORGOTTEN
    assert await scene.outcome(question) == "withdrawn"
    assert scene.said()[0].id == earlier.id
    assert len(scene.said()) == 2
    assert (await scene.decision(scene.say("Ada", "and which cat?"))).reason is Reason.NO_TRIGGER
    await scene.ask("Ada", "which cat?", channel="help")
    assert "Tim" in scene.told()


@pytest.mark.parametrize("everything", [False, True])
async def test_what_was_forgotten_does_not_come_back_from_the_channels_history(scene: Scene, everything: bool) -> None:
    scene.pg.allow(scene.pg.channel("general"), "manage_channels", member=scene.pg.person("Ada"))
    scene.stub.default = lambda _: Reply("I see.")
    for n in range(20):
        await scene.decision(scene.say("Chloe", f"small talk {n}"))
    await scene.ask("Ada", "my cat is called Tim")
    await scene.use("Ada", "forget", everything=everything)
    await scene.decision(scene.say("Chloe", "this came later"))
    scene.bot.conversations.end(scene.pg.channel("general"))  # as after a silence
    await scene.ask("Chloe", "which cats?")
    assert ("small talk 19" in scene.told()) is not everything
    assert "this came later" in scene.told()
    assert "Tim" not in scene.told()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("answer", [{"status": 403}, {"status": 500}, {"status": 200, "body": {"no": "commands"}}])
async def test_a_failing_command_sync_is_logged_and_no_more(stub: StubModel, answer: dict[str, Any]) -> None:
    async with open_scene(stub, prepare=lambda pg: pg.faults.add("PUT", "/commands$", times=9, **answer)) as scene:
        await scene.until(lambda: scene.journal.find("command_sync_failed", level="warning"))
        await scene.ask("Ada", "hello")
