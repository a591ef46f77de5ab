"""Offers: an unanswered question is noticed, help is offered once, and what people answer to that counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from commands.offer_clicks import ALL_RIGHT, NEVER_HERE, NOT_YOURS, TOO_LATE
from decider import Reason
from playground.model import Message
from tests.support.clock import FakeClock
from tests.support.lives import kill, life, on_disk, open_stage
from tests.support.scene import Scene
from tests.support.stub_model import Reply, StubModel

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


async def offers(scene: Scene, what: str) -> str:
    """Uses /offers and returns the bot's answer."""
    pg = scene.pg
    answer = await pg.reply_to(pg.command(pg.channel("general"), pg.person("Ada"), "offers", {what: {}}), timeout=10)
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
    scene.bot.initiative.pulse()


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
    assert scene.bot.offers.is_open(scene.pg.channel("general"))


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
    scene.bot.book.open(card.channel_id).offer = None
    assert (await scene.pg.reply_to(scene.press("Ben", card, "Yes, please"))).content == TOO_LATE
    await gone(scene, card)


async def test_nothing_of_what_was_heard_is_written_to_disk(scene: Scene) -> None:
    await unanswered(scene)
    await scene.bot.keeper.settled()
    assert not on_disk(scene.folder, "certbot")


async def test_why_it_offered(scene: Scene) -> None:
    _, card = await offered(scene)
    pg = scene.pg
    shown = await pg.reply_to(pg.command(card.channel_id, pg.person("Ben"), "Why?", {}, card.id))
    assert shown.content.startswith("Answered: nobody had asked me, but offers are on in this channel")
