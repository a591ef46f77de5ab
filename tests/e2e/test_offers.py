"""Offers: an unanswered question is noticed, help is offered once, and what people answer to that counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commands.offer_clicks import ALL_RIGHT, NOT_YOURS, TOO_LATE
from decider import Reason
from playground.errors import ApiError
from playground.model import Message
from state.proactive import AgentStateV2
from tests.support.clock import FakeClock
from tests.support.lives import kill, life, on_disk, open_stage
from tests.support.scene import Scene
from tests.support.stub_model import Reply, StubModel
from turns.offer_turns import NEVER_HERE

SILENT, EPHEMERAL = 1 << 12, 1 << 6
QUESTION = "does anybody know how to renew a certificate with certbot?"
ANSWER = "Run certbot renew."
TIMEOUT, COOLDOWN = 600, 1_800


@pytest.fixture
async def stage(stub: StubModel, tmp_path: Path) -> AsyncIterator[Scene]:
    stub.default = lambda _: Reply(ANSWER)
    async with open_stage(stub, tmp_path / "state", clock=FakeClock()) as stage:
        yield stage


@pytest.fixture
async def scene(stage: Scene) -> AsyncIterator[Scene]:
    async with life(stage):
        await offers(stage, "on")
        yield stage


async def offers(scene: Scene, what: str, who: str = "Ada") -> str:
    """Uses /offers and returns the bot's answer."""
    pg = scene.pg
    answer = await pg.reply_to(pg.command(pg.channel("general"), pg.person(who), "offers", {what: {}}), timeout=10)
    assert answer.flags & EPHEMERAL
    return answer.content


async def hear(scene: Scene, who: str, text: str, **how: Any) -> Message:
    """Somebody says something, and the bot has heard it."""
    message = scene.say(who, text, **how)
    await scene.decision(message)
    return message


def wait(scene: Scene, seconds: float) -> None:
    """Time passes, and at its end the pulse comes."""
    assert scene.clock
    scene.clock.advance(seconds)
    scene.bot.proactive_offers.pulse()


async def unanswered(scene: Scene) -> Message:
    """Ben asks something in a channel where people talk, and nobody answers."""
    assert scene.clock
    await hear(scene, "Chloe", "I am back from lunch")
    scene.clock.advance(60)
    return await hear(scene, "Ben", QUESTION)


async def offered(scene: Scene) -> tuple[Message, Message]:
    """A question of Ben's, and the offer that is made about it."""
    question = await unanswered(scene)
    wait(scene, 90)
    await scene.until(lambda: scene.journal.find("offered", about=question.id))
    return question, await scene.card("Shall I")


async def gone(scene: Scene, message: Message) -> None:
    await scene.until(lambda: message.id not in {m.id for m in scene.said()})


def outcomes(scene: Scene) -> list[str]:
    return [str(entry["outcome"]) for entry in scene.journal.find("offer_ended")]


async def test_an_unanswered_question_is_answered_once_somebody_clicks_yes(scene: Scene) -> None:
    question, card = await offered(scene)
    assert str(question.id) in card.content
    assert card.flags & SILENT
    assert not card.reference
    assert not scene.stub.requests
    scene.press("Ben", card, "Yes, please")
    answer = await scene.answer_to(question)
    assert answer.content == ANSWER
    assert QUESTION in scene.told()
    settled = await scene.shows("✓ Yes, please")
    assert settled.id == card.id
    assert not settled.components
    assert outcomes(scene) == ["accepted"]


@pytest.mark.parametrize("words", ["yes please", "Yes!", "sure, go ahead"])
async def test_an_offer_is_taken_up_in_words(scene: Scene, words: str) -> None:
    question, card = await offered(scene)
    yes = scene.say("Ben", words)
    assert (await scene.decision(yes)).reason is Reason.OFFER_ACCEPTED
    assert (await scene.answer_to(question)).content == ANSWER
    assert (await scene.shows("✓ Yes, please")).id == card.id


async def test_what_others_say_to_an_offer_does_not_count(scene: Scene) -> None:
    _, card = await offered(scene)
    seen = scene.press("Chloe", card, "Yes, please")
    assert (await scene.pg.reply_to(seen)).content == NOT_YOURS
    assert not (await scene.decision(scene.say("Chloe", "<@1> yes please"))).respond
    assert scene.bot.parts.offers.is_open(scene.pg.channel("general"))


@pytest.mark.parametrize("how", ["click", "words"])
async def test_not_now_has_the_offer_removed(scene: Scene, how: str) -> None:
    _, card = await offered(scene)
    if how == "click":
        assert (await scene.pg.reply_to(scene.press("Ben", card, "Not now"))).content == ALL_RIGHT
    else:
        assert (await scene.decision(scene.say("Ben", "no thanks"))).reason is Reason.OFFER_DECLINED
    await gone(scene, card)
    assert outcomes(scene) == ["declined"]
    assert not scene.stub.requests


@pytest.mark.parametrize("how", ["click", "words"])
async def test_not_in_this_channel_means_never_again(scene: Scene, how: str) -> None:
    _, card = await offered(scene)
    if how == "click":
        assert (await scene.pg.reply_to(scene.press("Ben", card, "Not in this"))).content == NEVER_HERE
    else:
        said = scene.say("Ben", "not in this channel please")
        assert (await scene.decision(said)).reason is Reason.OFFER_DECLINED
        await scene.shows(NEVER_HERE)
    await gone(scene, card)
    for _ in range(3):
        wait(scene, 86_400)
        await scene.decision(scene.say("Ben", QUESTION))
        wait(scene, 90)
    assert len(scene.journal.find("offered")) == 1


async def test_an_ignored_offer_goes_and_the_cooldown_doubles(scene: Scene) -> None:
    _, card = await offered(scene)
    wait(scene, TIMEOUT)
    assert not outcomes(scene)
    wait(scene, 1)
    await gone(scene, card)
    assert outcomes(scene) == ["ignored"]
    await unanswered(scene)
    wait(scene, COOLDOWN)
    await unanswered(scene)
    wait(scene, 90)
    assert len(scene.journal.find("offered")) == 1
    wait(scene, COOLDOWN)
    await unanswered(scene)
    wait(scene, 90)
    await scene.until(lambda: len(scene.journal.find("offered")) == 2)


@pytest.mark.usefixtures("rules_of_thumb")
async def test_a_question_counts_as_answered_once_the_agent_has_not_declined_it(stage: Scene) -> None:
    async with life(stage):
        await offers(stage, "on")
        await stage.ask("Ada", "hello")
        channel = stage.bot.parts.offer_channels.get(stage.pg.channel("general"))
        assert channel
        stage.stub.replies.append(Reply("[silent]"))
        declined = stage.say("Ben", "does the library lend laptops to guests?")
        await stage.outcome(declined)
        assert declined.id not in channel.recent.answered
        answered = stage.say("Chloe", "does the library lend laptops to guests?")
        await stage.outcome(answered)
        assert answered.id in channel.recent.answered


async def test_who_is_answered_by_a_human_is_offered_nothing(scene: Scene) -> None:
    await unanswered(scene)
    scene.clock.advance(30)  # type: ignore[union-attr]
    await hear(scene, "Chloe", "certbot renew should do")
    wait(scene, 60)
    wait(scene, 300)
    assert not scene.journal.find("offered")


async def test_an_offer_is_withdrawn_when_a_human_answers_or_the_question_goes(scene: Scene) -> None:
    question, card = await offered(scene)
    await hear(scene, "Chloe", "certbot renew should do", reply_to=question.id)
    await gone(scene, card)
    assert outcomes(scene) == ["overtaken"]


async def test_an_offer_goes_with_its_question(scene: Scene) -> None:
    question, card = await offered(scene)
    await scene.delete(question)
    await gone(scene, card)
    assert outcomes(scene) == ["withdrawn"]


async def test_nothing_is_offered_where_nobody_asked_for_it(scene: Scene) -> None:
    await hear(scene, "Chloe", "I am back", channel="help")
    await hear(scene, "Ben", QUESTION, channel="help")
    wait(scene, 90)
    assert not scene.journal.find("offered")


@pytest.mark.parametrize("ending", ["told to", "killed"])
async def test_an_offer_outlives_a_restart(stage: Scene, ending: str) -> None:
    async with life(stage):
        await offers(stage, "on")
        question, card = await offered(stage)
        if ending == "killed":
            await kill(stage)
    async with life(stage):
        stage.press("Ben", card, "Yes, please")
        assert (await stage.answer_to(question)).content == ANSWER
        assert QUESTION in stage.told()
        await stage.shows("✓ Yes, please")


async def test_an_offer_that_was_ignored_over_a_restart_goes(stage: Scene) -> None:
    async with life(stage):
        await offers(stage, "on")
        _, card = await offered(stage)
    async with life(stage):
        wait(stage, TIMEOUT + 1)
        await gone(stage, card)


async def test_an_offer_that_was_left_behind_goes_with_the_first_click(scene: Scene) -> None:
    _, card = await offered(scene)
    scene.bot.parts.offer_channels.drop(card.channel_id)
    assert (await scene.pg.reply_to(scene.press("Ben", card, "Yes, please"))).content == TOO_LATE
    await gone(scene, card)


async def test_nothing_of_what_was_heard_is_written_to_disk(scene: Scene) -> None:
    await unanswered(scene)
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, "certbot")


async def test_why_it_offered(scene: Scene) -> None:
    _, card = await offered(scene)
    pg = scene.pg
    shown = await pg.reply_to(pg.command(card.channel_id, pg.person("Ben"), "Why?", {}, card.id))
    assert shown.content.startswith("Offered: nobody had asked me, but offers are on in this channel")


async def test_only_who_manages_the_channel_switches_offers(scene: Scene) -> None:
    general = scene.pg.channel("general")
    with pytest.raises(ApiError):
        await offers(scene, "off", "Ben")
    scene.pg.allow(general, "manage_channels", member=scene.pg.person("Ben"))
    assert "no longer" in await offers(scene, "off", "Ben")
    assert not scene.bot.proactive_offers.listens(general)
    assert not len(scene.bot.parts.offer_channels)


async def test_status_says_how_many_were_made_and_when_the_next_can_come(scene: Scene) -> None:
    await offered(scene)
    said = await offers(scene, "status")
    assert "1 of at most 3 offers" in said
    assert "One awaits an answer." in said
    assert "<t:" in said


async def test_a_talk_with_the_bot_keeps_it_from_offering(scene: Scene) -> None:
    await scene.ask("Chloe", "good morning")
    for seconds in (TIMEOUT, COOLDOWN - 300):
        wait(scene, seconds)
        await unanswered(scene)
        wait(scene, 90)
        assert not scene.journal.find("offered")
    wait(scene, COOLDOWN)
    await offered(scene)


async def test_a_reaction_to_the_bot_counts_as_taking_notice(scene: Scene) -> None:
    _, card = await offered(scene)
    wait(scene, TIMEOUT - 10)
    machine = scene.bot.parts.offer_channels.open(card.channel_id).machine
    before = machine.last_interaction_at
    scene.pg.react(card, scene.pg.person("Chloe"), "👀")
    heard = scene.bot.wait_for("raw_reaction_add", timeout=5)
    scene.pg.react(card, scene.pg.person("Chloe"), "❤️")
    await heard
    assert machine.last_interaction_at == before + TIMEOUT - 10
    wait(scene, 20)
    assert scene.bot.parts.offers.is_open(card.channel_id)


async def test_where_the_bot_may_not_write_nothing_is_offered(scene: Scene) -> None:
    changed = scene.bot.wait_for("guild_channel_update", timeout=5)
    scene.pg.deny(scene.pg.channel("general"), "send_messages")
    await changed
    await unanswered(scene)
    wait(scene, 90)
    wait(scene, 60)
    assert not scene.journal.find("offered")
    assert not scene.sent("POST", "/messages")


async def test_who_asked_not_to_be_read_is_offered_nothing(scene: Scene) -> None:
    await use(scene, "Ben", "optout")
    await unanswered(scene)
    wait(scene, 90)
    assert not scene.journal.find("offered")


async def test_forget_takes_the_offer_and_the_question_with_it(scene: Scene) -> None:
    _, card = await offered(scene)
    await scene.bot.snapshots.settled()
    assert on_disk(scene.folder, "certbot")
    await use(scene, "Ben", "forget")
    await gone(scene, card)
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, "certbot")
    assert "certbot" not in str(scene.bot.parts.offer_channels.open(card.channel_id))


async def test_no_more_than_the_days_number_is_offered(scene: Scene) -> None:
    for number in range(3):
        _, card = await offered(scene)
        scene.press("Ben", card, "Yes, please")
        await scene.until(lambda number=number: len(outcomes(scene)) > number)  # type: ignore[misc]
        await scene.at_rest()
        wait(scene, TIMEOUT + 1)
        wait(scene, COOLDOWN)
    await unanswered(scene)
    wait(scene, 90)
    assert len(scene.journal.find("offered")) == 3
    wait(scene, 86_400)
    await offered(scene)


async def test_a_mini_app_comes_back_to_what_it_did(scene: Scene) -> None:
    await scene.ask("Ben", "add tokyo skytree")
    wait(scene, TIMEOUT + 1)
    wait(scene, 4 * 3_600 - TIMEOUT)
    card = await scene.card("How was Tokyo Skytree")
    await scene.until(lambda: scene.journal.find("offered"))
    scene.press("Ben", card, "Yes, please")
    asked = await scene.card("What shall I note about Tokyo Skytree")
    assert asked.reference
    assert asked.reference.message_id == card.id
    await scene.answer_to(scene.say("Ben", f"<@{scene.pg.bot_id}> great for families"))
    assert "families" in str(scene.bot.parts.miniapps.stored(card.channel_id))
    wait(scene, TIMEOUT + 1)
    wait(scene, 86_400)
    assert len(scene.journal.find("offered")) == 1
    assert not scene.stub.requests


@pytest.mark.parametrize("can", [True, False])
async def test_the_judge_has_the_last_word(stage: Scene, can: bool) -> None:
    stage.stub.judge_says = lambda _: can
    async with life(stage, use_llm_judge=True):
        await offers(stage, "on")
        await unanswered(stage)
        wait(stage, 90)
        if can:
            await stage.card("Shall I")
        else:
            await stage.until(lambda: stage.journal.find("offer_refused", reason="not_answerable"))
            wait(stage, 60)
        assert len(stage.stub.judged) == 1
        assert can or not stage.said()


async def test_a_tour_is_a_talk_that_only_its_reader_sees(scene: Scene) -> None:
    card = await use(scene, "Ben", "tour")
    assert "**Ask me**" in card.content
    assert card.flags & EPHEMERAL
    assert (
        scene.bot.parts.offer_channels.open(scene.pg.channel("general")).machine.current_state is AgentStateV2.REACTIVE
    )


async def use(scene: Scene, who: str, name: str) -> Message:
    used = scene.pg.command(scene.pg.channel("general"), scene.pg.person(who), name)
    return await scene.pg.reply_to(used, timeout=10)


async def test_off_and_on_again_does_not_lift_the_days_number(scene: Scene) -> None:
    for number in range(3):
        question, card = await offered(scene)
        scene.press("Ben", card, "Yes, please")
        await scene.answer_to(question)
        await scene.until(lambda number=number: len(outcomes(scene)) > number)  # type: ignore[misc]
        wait(scene, TIMEOUT + 1)
        wait(scene, COOLDOWN)
    await offers(scene, "off")
    wait(scene, 5)
    await offers(scene, "on")
    await unanswered(scene)
    wait(scene, 90)
    await scene.at_rest()
    assert "3 of at most 3" in await offers(scene, "status")


async def test_a_second_click_on_yes_leaves_what_was_accepted(scene: Scene) -> None:
    question, card = await offered(scene)
    first, second = (scene.press("Ben", card, "Yes, please") for _ in range(2))
    await scene.until(lambda: first.callback and second.callback)
    await scene.answer_to(question)
    assert (await scene.shows("✓ Yes, please")).id == card.id


async def test_the_judge_may_take_its_time(stage: Scene) -> None:
    gate = asyncio.Event()
    stage.stub.judge_says, stage.stub.judge_gate = (lambda _: True), gate
    async with life(stage, use_llm_judge=True):
        await offers(stage, "on")
        await unanswered(stage)
        wait(stage, 90)
        await stage.until(lambda: stage.stub.judged)
        wait(stage, 2)
        gate.set()
        await stage.card("Shall I")
        assert len(stage.stub.judged) == 1


async def test_where_nothing_is_going_on_any_more_nothing_is_kept(stage: Scene) -> None:
    async with life(stage):
        await stage.ask("Ada", "hello")
        stage.bot.conversations.end(stage.pg.channel("general"))
        for seconds in (TIMEOUT + 1, COOLDOWN):
            wait(stage, seconds)
        stage.bot.states.sweep()
        assert not len(stage.bot.parts.offer_channels)
        await stage.bot.snapshots.settled()
        assert not stage.bot.snapshots.channels


async def test_after_a_restart_an_answer_still_ends_the_offer(stage: Scene) -> None:
    async with life(stage):
        await offers(stage, "on")
        question, card = await offered(stage)
    async with life(stage):
        await hear(stage, "Chloe", "certbot renew should do", reply_to=question.id)
        await gone(stage, card)
        assert outcomes(stage) == ["overtaken"]


async def test_an_offer_that_was_posted_just_before_a_kill_is_found_again(stage: Scene) -> None:
    async with life(stage):
        await offers(stage, "on")
        _, card = await offered(stage)
        channel = stage.bot.parts.offer_channels.open(card.channel_id)
        assert channel.offer
        channel.offer = replace(channel.offer, message_id=None)
        stage.bot.parts.offer_channels.changed(channel)
        await kill(stage)
    async with life(stage):
        wait(stage, 300)
        await stage.until(lambda: stage.journal.find("offered", message=card.id))
        wait(stage, TIMEOUT)
        await gone(stage, card)


async def test_what_the_budget_does_not_allow_is_not_offered(stage: Scene) -> None:
    async with life(stage, daily_tokens=100):
        await offers(stage, "on")
        stage.bot.parts.limits.spend(90, stage.bot._now())
        await unanswered(stage)
        wait(stage, 90)
        assert not stage.journal.find("offered")
        assert "may not write" not in await offers(stage, "status")


async def test_why_it_answered_what_was_not_said_to_it(scene: Scene) -> None:
    question, card = await offered(scene)
    scene.press("Ben", card, "Yes, please")
    answer = await scene.answer_to(question)
    pg = scene.pg
    shown = await pg.reply_to(pg.command(card.channel_id, pg.person("Ben"), "Why?", {}, answer.id))
    assert shown.content == "Answered: I had offered it, and you said yes"
