"""The judge where rules are unsure, and the caps on what it all costs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from agents.fast import OUTPUT_TOKENS, SHOWN_TOKENS
from decider import Reason
from setting_values import Period, Scope
from tests.e2e.test_changed_meanwhile import change
from tests.e2e.test_threads import open_thread
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import BEFORE, Reply, StubModel, texts

JUDGE_TOKENS, ANSWER_TOKENS = 7, 15
DOUBTFUL = "I would rather take the train"


@pytest.fixture
async def judged(stub: StubModel, rules_of_thumb: None) -> AsyncIterator[Scene]:  # noqa: ARG001
    """Ada has just been answered; what Ben says next is doubtful."""
    async with open_scene(stub, use_llm_judge=True) as scene:
        await scene.ask("Ada", "how do I get to Tokyo?")
        yield scene


async def test_the_judge_lets_it_answer(judged: Scene) -> None:
    judged.stub.judge_says = lambda _: True
    doubtful = judged.say("Ben", DOUBTFUL)
    await judged.answer_to(doubtful)
    decision = await judged.decision(doubtful)
    assert (decision.reason, decision.tier, decision.evidence) == (Reason.LLM_JUDGE, 3, "the stub says so")
    assert judged.bot.parts.limits.tokens_today == 2 * ANSWER_TOKENS + JUDGE_TOKENS


async def test_the_judge_knows_of_a_thread(judged: Scene) -> None:
    open_thread(judged, "Ada", "trains", "Ben")
    await judged.ask("Ada", "how do I get to Tokyo?", channel="trains")
    await judged.decision(judged.say("Ben", DOUBTFUL, channel="trains"))
    assert 'the channel named "general", in the thread named "trains" of the Discord server' in str(judged.stub.judged)


async def test_the_judge_keeps_it_silent(judged: Scene) -> None:
    limits, guild, ben = judged.bot.parts.limits, judged.pg.guild_id, judged.pg.person("Ben")
    decision = await judged.decision(judged.say("Ben", DOUBTFUL))
    assert (decision.respond, decision.reason) == (False, Reason.LLM_JUDGE)
    assert len(judged.stub.judged) == 1
    bens, guilds = (limits.ledger.used(one, Period.DAY) for one in ((Scope.PERSON, ben), (Scope.GUILD, guild)))
    assert (bens.tokens, guilds.tokens) == (JUDGE_TOKENS, ANSWER_TOKENS + JUDGE_TOKENS)
    assert judged.bot.parts.limits.tokens_today == ANSWER_TOKENS + JUDGE_TOKENS
    assert len(judged.said()) == 1


async def test_of_messages_of_rare_signs_the_judge_is_told_only_as_many_as_it_has_room_for(judged: Scene) -> None:
    limits = judged.bot.parts.limits
    await judged.decision(judged.say("Chloe", "oh, trains are fine"))
    for number in range(10):
        await judged.decision(judged.say("Chloe", f"{number} " + "\U0001f701" * 1_900))  # a token a byte
    judged.stub.judged.clear()
    judged.stub.judge_says = lambda _: Reply(cut_after=BEFORE)  # so that all that is sent counts
    before = limits.tokens_today
    await judged.decision(judged.say("Ben", DOUBTFUL))
    told = texts(judged.stub.judged[0])[-1]
    assert DOUBTFUL in told
    assert ("9 \U0001f701" in told, "trains are fine" in told) == (True, False)
    assert (limits.tokens_today - before) / len(judged.stub.judged) < SHOWN_TOKENS + 2 * OUTPUT_TOKENS


async def test_a_judge_that_is_late_or_fails_keeps_it_silent(judged: Scene) -> None:
    judged.bot.parts.decider._judge_deadline = 0.4  # seconds, within which its request must be on its way
    judged.stub.judge_says = lambda _: Reply(status=500, before=asyncio.Event())
    assert (await judged.decision(judged.say("Ben", DOUBTFUL))).reason is Reason.JUDGE_LATE
    assert judged.bot.parts.limits.tokens_today > ANSWER_TOKENS
    judged.bot.parts.decider._judge_deadline = 10
    judged.stub.judge_says = lambda _: Reply(status=500)
    assert (await judged.decision(judged.say("Chloe", DOUBTFUL))).reason is Reason.JUDGE_FAILED
    await judged.ask("Ben", "and now?")


@pytest.mark.parametrize("how", ["delete", "edit", "forget", "unfurl", ""])
async def test_a_judge_that_fails_is_asked_again_only_if_nothing_was_taken_back_meanwhile(
    judged: Scene, how: str
) -> None:
    gate = asyncio.Event()
    judged.bot.parts.decider._judge_deadline = 10
    told = judged.say("Chloe", "oh, trains are fine")
    await judged.decision(told)
    judged.stub.judged.clear()
    judged.stub.judge_says = lambda _: Reply(status=500, before=gate)
    doubtful = judged.say("Ben", DOUBTFUL)
    await judged.until(lambda: len(judged.stub.judged) == 1)
    if how == "unfurl":
        heard = judged.heard("raw_message_edit", told)
        judged.pg.world.replace_message(told)
        await heard
    elif how:
        await change(judged, told, how)
    gate.set()
    assert (await judged.decision(doubtful)).reason is Reason.JUDGE_FAILED
    assert len(judged.stub.judged) == (2 if how in ("unfurl", "") else 1)


async def test_one_person_who_asks_too_much_is_told_once_then_left_alone(stub: StubModel) -> None:
    async with open_scene(stub, turns_per_user_minute=2) as scene:
        await scene.ask("Ada", "one")
        await scene.ask("Ada", "two")
        for text in ("three", "four", "five"):
            assert (await scene.decision(scene.mention("Ada", text))).reason is Reason.USER_CAP
        await scene.until(lambda: len(scene.said()) == 3)
        await scene.ask("Ben", "does it still work?")
        assert len(scene.said()) == 4
        assert scene.said()[2].content.startswith("That was a lot at once.")
        assert len(stub.requests) == 3
        assert len(scene.journal.find("cap_reached", cap="user", level="warning")) == 1


async def test_when_the_days_tokens_run_low_it_answers_mentions_only_and_then_nothing(stub: StubModel) -> None:
    async with open_scene(stub, decline=False, daily_tokens=ANSWER_TOKENS + 3) as scene:
        first = await scene.ask("Ada", "one")
        line = (
            "-# For those who manage this server: four fifths of my budget for today are used. I now answer only "
            "those who call me"
        )
        assert first.content.splitlines()[-1].startswith(line)
        assert (await scene.decision(scene.say("Ada", "and two?"))).reason is Reason.DAILY_CAP
        third = await scene.ask("Ada", "three")
        assert third.content.endswith("three")  # those who manage the server are told once
        for who in ("Ada", "Ben", "Chloe"):
            assert (await scene.decision(scene.mention(who, "more"))).reason is Reason.DAILY_CAP
        await asyncio.gather(*scene.bot.turns._notices)
        assert len(scene.said()) == 3
        assert scene.said()[2].content.startswith("My budget is spent for today. It is renewed <t:")
        assert len(stub.requests) == 2
        assert len(scene.journal.find("cap_reached", cap="total")) == 1


@pytest.mark.usefixtures("rules_of_thumb")
async def test_the_judge_is_not_asked_when_the_days_tokens_run_low(stub: StubModel) -> None:
    async with open_scene(stub, use_llm_judge=True, daily_tokens=ANSWER_TOKENS + 3) as scene:
        await scene.ask("Ada", "how do I get to Tokyo?")
        assert (await scene.decision(scene.say("Ben", DOUBTFUL))).reason is Reason.JUDGE_FAILED
        assert not stub.judged


async def test_what_is_asked_at_once_in_many_channels_does_not_pass_the_cap_together(stub: StubModel) -> None:
    cap, each = 40_000, 9_000
    stub.default = lambda _: Reply("Here you are.", tokens=each)
    async with open_scene(stub, daily_tokens=cap) as scene:
        rooms = [scene.pg.add_channel(f"room-{number}") for number in range(10)]
        people = [scene.pg.add_person(f"Person {number}") for number in range(10)]
        mentions = [
            scene.pg.post(room, person, f"<@{scene.pg.bot_id}> what?")
            for room, person in zip(rooms, people, strict=True)
        ]
        answers = [await scene.answer_to(mention) for mention in mentions]
        used = scene.bot.parts.limits.tokens_today
    assert cap <= used < cap + each
    assert len(stub.requests) == used // each
    assert {answer.content.partition(" It is renewed")[0].partition("\n")[0] for answer in answers} == {
        "Here you are.",
        "My budget is spent for today.",
    }
