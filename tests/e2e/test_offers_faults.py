"""Offers where something goes wrong: Discord fails, documents are damaged, a question changes while the bot is away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from offers.offer_channels import StoredChannel
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
from tests.support.lives import kill, life, on_disk
from tests.support.scene import Scene
from tests.support.stub_model import texts
from wiring import OFFERS

__all__ = ["scene", "stage"]  # fixtures

Change = Callable[[dict[str, Any]], object]
STANDS_STILL: dict[str, Any] = {"cooldown_active": True, "active_cooldown_period_s": 1e300}
BAD: dict[str, Change] = {
    "a time without a zone": lambda kept: kept["offer"]["occasion"]["subject"].update(timestamp="2026-03-02T12:01:00"),
    "an offer of a year far away": lambda kept: kept["offer"].update(made_at="9999-12-31T23:59:59Z"),
    "one made in a year far away": lambda kept: kept.update(made=["9999-12-31T23:59:59Z"]),
    "an interaction of a time far away": lambda kept: kept["machine"].update(last_interaction_at=1e300),
    "a cooldown without end": lambda kept: (
        kept.update(offer=None),
        kept["machine"].update(current_state="thinking"),
        kept["machine"]["thinking"].update(STANDS_STILL),
    ),
}


async def pulses(scene: Scene, count: int = 3) -> None:
    """Timeouts pass, each with its pulse; what was begun by one has ended before the next."""
    for _ in range(count):
        wait(scene, TIMEOUT + 1)
        await asyncio.gather(*scene.bot.parts.offers._work)


@pytest.mark.parametrize("name", BAD)
async def test_a_document_that_cannot_be_used_keeps_the_bot_from_nothing(stage: Scene, name: str) -> None:
    async with life(stage):
        await offers(stage, "on")
        _, card = await offered(stage)
        stored = stage.bot.parts.offer_channels.stored(card.channel_id)
        assert stored
        kept = json.loads(stored.to_json())
        BAD[name](kept)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StoredChannel, "to_json", lambda _: json.dumps(kept).encode())
            stage.bot.snapshots.touch(OFFERS, card.channel_id)
            await stage.bot.snapshots.settled()
    async with life(stage):
        await stage.ask("Ada", "hello")
        assert stage.journal.find("snapshot_refused") or stage.journal.find("machine_refused")


@pytest.mark.usefixtures("impatient")
async def test_an_offer_that_could_not_be_removed_goes_with_a_click(scene: Scene) -> None:
    _, card = await offered(scene)
    scene.pg.faults.add("DELETE", "/messages/", status=500, times=5)
    wait(scene, TIMEOUT + 1)
    await scene.until(lambda: scene.journal.find("offer_left_behind"))
    scene.pg.faults.clear()
    scene.press("Ben", card, "Yes, please")
    await gone(scene, card)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [{"status": 500}, {"drop": True}])
async def test_an_offer_that_arrived_although_discord_failed_is_found_again(
    scene: Scene, fault: dict[str, Any]
) -> None:
    scene.pg.faults.add("POST", "/messages$", after_effect=True, times=5, **fault)
    await unanswered(scene)
    wait(scene, 90)
    await scene.until(lambda: scene.journal.find("offer_failed"))
    scene.pg.faults.clear()
    wait(scene, 30)
    await scene.until(lambda: scene.journal.find("offered"))
    await pulses(scene)
    assert not scene.said()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("status", [403, 500])
async def test_an_offer_from_before_a_kill_is_found_once_the_history_can_be_read(stage: Scene, status: int) -> None:
    async with life(stage):
        await offers(stage, "on")
        _, card = await offered(stage)
        channel = stage.bot.parts.offer_channels.open(card.channel_id)
        assert channel.offer
        channel.offer = replace(channel.offer, message_id=None)
        stage.bot.parts.offer_channels.changed(channel)
        await kill(stage)
    async with life(stage):
        stage.pg.faults.add("GET", "/messages", status=status, times=5)
        wait(stage, 300)
        await stage.until(lambda: stage.journal.find("offer_not_read"))
        stage.pg.faults.clear()
        wait(stage, 30)
        await stage.until(lambda: stage.journal.find("offered", message=card.id))
        await pulses(stage)
        assert not stage.said()


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


@pytest.mark.parametrize("what", ["deleted", "edited"])
async def test_a_question_that_changed_while_the_bot_was_away_is_not_offered_about(stage: Scene, what: str) -> None:
    async with life(stage):
        await offers(stage, "on")
        question, card = await offered(stage)
    _change(stage, question, what)
    async with life(stage):
        wait(stage, 5)
        await gone(stage, card)
        assert outcomes(stage) == ["withdrawn"]
        assert not any("certbot" in text for body in stage.stub.requests for text in texts(body))


def _change(scene: Scene, question: Message, what: str) -> None:
    if what == "deleted":
        scene.pg.delete(question)
    else:
        scene.pg.edit(question, "does anybody know how to bake bread?")


async def test_a_question_that_stands_as_it_did_is_still_offered_about(stage: Scene) -> None:
    async with life(stage):
        await offers(stage, "on")
        _, card = await offered(stage)
    async with life(stage):
        wait(stage, 5)
        await asyncio.gather(*stage.bot.parts.offers._work)
        assert stage.bot.parts.offers.is_open(card.channel_id)
        wait(stage, COOLDOWN)
        await gone(stage, card)
        assert outcomes(stage) == ["ignored"]


async def test_a_channel_that_was_left_does_not_take_its_successor_away(scene: Scene) -> None:
    general, offer_channels = scene.pg.channel("general"), scene.bot.parts.offer_channels
    before = offer_channels.open(general)
    before.is_busy = True  # the judge thinks
    scene.bot.proactive_offers.leave(general)
    await offers(scene, "on")
    before.is_busy = False
    offer_channels.plan(before)
    assert scene.bot.proactive_offers.listens(general)


async def test_why_after_an_offer_was_taken_up(scene: Scene) -> None:
    question, card = await offered(scene)
    scene.press("Ben", card, "Yes, please")
    await scene.answer_to(question)
    shown = await scene.pg.reply_to(scene.pg.command(card.channel_id, scene.pg.person("Ben"), "why"))
    assert shown.content.count(str(question.id)) == 1
    assert "I had offered it, and you said yes" in shown.content


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
