"""Offers where something goes wrong: Discord fails, documents are damaged, a question changes while the bot is away."""

from __future__ import annotations

import asyncio

import pytest

from playground.model import Message
from tests.e2e.test_offers import (
    COOLDOWN,
    QUESTION,
    TIMEOUT,
    gone,
    hear,
    offered,
    offers,
    outcomes,
    scene,
    stage,
    unanswered,
    wait,
)
from tests.support.lives import life, on_disk
from tests.support.scene import Scene
from tests.support.stub_model import texts

__all__ = ["scene", "stage"]  # fixtures


@pytest.mark.usefixtures("impatient")
async def test_an_offer_that_could_not_be_removed_goes_with_a_click(scene: Scene) -> None:
    _, card = await offered(scene)
    scene.pg.faults.add("DELETE", "/messages/", status=500, times=5)
    wait(scene, TIMEOUT + 1)
    await scene.until(lambda: scene.journal.find("offer_left_behind"))
    scene.pg.faults.clear()
    scene.press("Ben", card, "Yes, please")
    await gone(scene, card)


async def test_an_accepted_offer_loses_its_buttons_though_the_click_took_no_answer(scene: Scene) -> None:
    question, card = await offered(scene)
    scene.pg.faults.add("POST", "/callback$", status=404, code=10062)
    scene.press("Ben", card, "Yes, please")
    await scene.answer_to(question)
    assert not (await scene.shows("✓ Yes, please")).components


async def test_words_that_were_edited_away_while_the_offer_was_posted_are_gone_from_disk(scene: Scene) -> None:
    gate = asyncio.Event()
    scene.pg.faults.add("POST", "/messages$", delay_event=gate)
    question = await unanswered(scene)
    wait(scene, 90)
    await scene.until(lambda: scene.bot.parts.offers.is_open(question.channel_id))
    await scene.bot.snapshots.settled()
    await scene.edit(question, "does anybody know how to bake bread with yeast?")
    gate.set()
    await scene.until(lambda: scene.journal.find("offered"))
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, "certbot")


async def test_what_an_edited_question_quotes_is_not_kept(scene: Scene) -> None:
    await hear(scene, "Chloe", "back")
    first = await hear(scene, "Ben", "the secret word is xyzzy")
    assert scene.clock
    scene.clock.advance(60)
    question = await hear(scene, "Ben", QUESTION, reply_to=first.id)
    wait(scene, 90)
    await scene.until(lambda: scene.journal.find("offered"))
    await scene.edit(question, f"{QUESTION} I am on Debian")
    await scene.delete(first)
    await scene.bot.snapshots.settled()
    assert "xyzzy" not in str(scene.bot.parts.offer_channels.open(question.channel_id))
    assert not on_disk(scene.folder, "xyzzy")


@pytest.mark.parametrize("what", ["deleted", "edited", "untouched"])
async def test_a_question_that_changed_while_the_bot_was_away_is_not_offered_about(stage: Scene, what: str) -> None:
    async with life(stage):
        await offers(stage, "on")
        question, card = await offered(stage)
    if what == "deleted":
        stage.pg.delete(question)
    elif what == "edited":
        stage.pg.edit(question, "does anybody know how to bake bread?")
    async with life(stage):
        wait(stage, 5)
        if what == "untouched":
            await asyncio.gather(*stage.bot.parts.offers._work)
            assert stage.bot.parts.offers.is_open(card.channel_id)
            wait(stage, COOLDOWN)
        await gone(stage, card)
        assert outcomes(stage) == ["ignored" if what == "untouched" else "withdrawn"]
        assert not any("certbot" in text for body in stage.stub.requests for text in texts(body))


@pytest.mark.parametrize("how", ["click", "words"])
async def test_a_late_yes_is_answered_too(scene: Scene, how: str) -> None:
    question, card = await offered(scene)
    assert scene.clock
    scene.clock.advance(TIMEOUT - 10)
    if how == "click":
        scene.press("Ben", card, "Yes, please")
    else:
        scene.say("Ben", "yes please")
    assert (await scene.answer_to(question)).content


@pytest.mark.parametrize("gap", ["restart", "resumed", "new session"])
@pytest.mark.parametrize(("seconds", "outcome"), [(-100, "accepted"), (50, "ignored")])
async def test_a_yes_that_is_read_late_counts_if_it_was_posted_in_time(
    stage: Scene, seconds: float, outcome: str, gap: str
) -> None:
    clock, pg = stage.clock, stage.pg
    assert clock

    async def say_yes() -> None:
        clock.advance(TIMEOUT + seconds)
        stage.say("Ben", "yes please")
        clock.advance(100 - seconds)

    async with life(stage):
        await offers(stage, "on")
        question, card = await offered(stage)
        if gap != "restart":
            pg.cut()
            while stage.bot.health.is_up():  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)
            if gap == "new session":
                pg._gateway.sessions.clear()
            await say_yes()
            stage.bot.proactive_offers.pulse()
            await ended(stage, question, card, outcome)
    if gap == "restart":
        await say_yes()
        async with life(stage):
            await ended(stage, question, card, outcome)


async def ended(stage: Scene, question: Message, card: Message, outcome: str) -> None:
    """An offer has ended so."""
    if outcome == "accepted":
        assert (await stage.answer_to(question)).content
    else:
        while not outcomes(stage):
            await asyncio.sleep(0.01)
            stage.bot.proactive_offers.pulse()
        await gone(stage, card)
        await stage.at_rest()
        assert not stage.journal.find("decided", decision="respond")
    assert outcomes(stage) == [outcome]
