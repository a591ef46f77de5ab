"""A whole flow in the channel: the trip planner typed, clicked, and both in turn; two people at once."""

from __future__ import annotations

import asyncio
import threading

import pytest

from commands.clicks import NOT_YOURS, TOO_LATE
from decider import Reason
from discord_io.prompt_cards import ANSWERED, ASKED_AGAIN, LET_GO, WITHDRAWN
from playground.interactions import Interaction
from playground.model import Message
from tests.support.scene import Scene, choices, open_scene
from tests.support.stub_model import StubModel
from tests.support.virtual_time import settle, until
from turns.endings import RESTARTING

WHICH = "Which one?\n1. Shibuya\n2. Shinjuku\n3. Harajuku"
ADDED = "Added Shake Shack Shibuya! ✓"


async def whisper(scene: Scene, click: Interaction) -> str:
    """What only the person who clicked is told."""
    reply = await scene.until(lambda: click.reply)
    assert reply
    assert reply.flags & (1 << 6)
    return reply.content


async def asked_which(scene: Scene, who: str = "Ada") -> Message:
    return await scene.ask(who, "add shake shack")


async def current(scene: Scene, card: Message, text: str) -> Message:
    """The message as it stands, once it contains this."""
    return await scene.shows(text, also=lambda message: message.id == card.id)


async def test_the_whole_trip_typed(scene: Scene) -> None:
    asked = await scene.ask("Ada", "start a trip")
    assert "What's your trip name?" in asked.content
    named = scene.say("Ada", "Tokyo Trip 2024")
    assert "Tokyo Trip 2024" in (await scene.answer_to(named)).content
    assert (await scene.decision(named)).reason is Reason.AWAITED
    which = await scene.answer_to(scene.mention("Ada", "add shake shack"))
    assert which.content == WHICH
    places = ["1. Shake Shack (Shibuya)", "2. Shake Shack (Shinjuku)", "3. Shake Shack (Harajuku)"]
    assert [label for label, _, _ in choices(which)] == places
    added = await scene.answer_to(scene.say("Ada", "in Shibuya"))
    assert added.content.startswith(ADDED)
    assert not (await current(scene, which, "✓ Shake Shack (Shibuya)")).components
    noted = await scene.answer_to(scene.say("Ada", "get the shroom burger"))
    assert noted.content == "noted - must try the shroom burger!"
    exported = await scene.ask("Ada", "export the trip")
    assert "Tokyo Trip 2024" in exported.content
    assert "shroom burger" in exported.content
    sure = await scene.ask("Ada", "delete all venues")
    assert not scene.stub.requests
    assert (await scene.decision(scene.say("Ben", "yes"))).reason is not Reason.AWAITED
    assert await whisper(scene, scene.press("Ben", sure, "Yes")) == NOT_YOURS
    assert "Shibuya" in (await scene.ask("Ben", "list our trip")).content
    await scene.answer_to(scene.say("Ada", "yes"))
    await current(scene, sure, "✓ Yes")
    assert "shroom" not in (await scene.ask("Ada", "list our trip")).content


async def test_the_whole_trip_clicked(scene: Scene) -> None:
    scene.mention("Ada", "start a trip")
    opener = scene.press("Ada", await scene.card("What's your trip name?"), "Answer")
    form = await scene.until(lambda: opener.form)
    assert form
    scene.pg.submit(opener, {"text": "Tokyo Trip 2024"})
    await scene.shows(ANSWERED)
    await scene.at_rest()
    card = await asked_which(scene)
    scene.press("Ada", card, "1.")
    settled = await current(scene, card, "✓ Shake Shack (Shibuya)")
    assert not settled.components
    tips = await scene.card(ADDED)
    opener = scene.press("Ada", tips, "Add a note")
    form = await scene.until(lambda: opener.form)
    assert form
    assert form["components"][0]["label"] == "What shall I note about Shake Shack Shibuya?"
    scene.pg.submit(opener, {"text": "get the shroom burger"})
    await scene.shows("noted - must try the shroom burger!")
    await scene.at_rest()
    scene.mention("Ada", "delete all venues")
    scene.press("Ada", await scene.card("Delete all"), "No")
    await scene.shows("✓ No")
    await scene.at_rest()
    assert not scene.stub.requests


async def test_two_people_have_a_prompt_each_in_one_channel(scene: Scene) -> None:
    adas = await asked_which(scene)
    scene.mention("Ben", "start a trip")
    bens = await scene.card("What's your trip name?")
    assert await whisper(scene, scene.press("Ben", adas, "1.")) == NOT_YOURS
    scene.say("Ben", "Kyoto in spring")
    await current(scene, bens, ANSWERED)
    scene.say("Ada", "the Harajuku one")
    await scene.shows("Added Shake Shack Harajuku! ✓")


async def test_ten_clicks_at_once_add_one_venue(scene: Scene) -> None:
    card = await asked_which(scene)
    clicks = [scene.press("Ada", card, f"{1 + number % 3}.") for number in range(10)]
    tips = await scene.card("Added Shake Shack")
    await scene.until(lambda: all(click.callback for click in clicks))
    await scene.at_rest()
    late = [click for click in clicks if click.reply and click.reply.id != card.id]
    assert [await whisper(scene, click) for click in late] == [TOO_LATE] * 9
    assert [m.id for m in scene.said() if "Added" in m.content] == [tips.id]


async def test_typing_gives_its_user_more_time_and_nobody_else(stub: StubModel) -> None:
    async with open_scene(stub, awaiting_ttl_seconds=8) as scene:
        card = await asked_which(scene)
        [asked] = scene.bot.states.prompts(card.channel_id)
        for who, gains in (("Ben", False), ("Ada", True)):
            heard = scene.bot.wait_for("raw_typing", timeout=5)
            scene.pg.typing(card.channel_id, scene.pg.person(who))
            await heard
            await settle()  # the bot may be told of it behind those who wait for it
            [prompt] = scene.bot.states.prompts(card.channel_id)
            assert (prompt.deadline > asked.deadline) == gains


async def test_a_click_is_stored_before_its_card_says_that_it_counts(scene: Scene) -> None:
    """After a kill nobody could read it again."""
    card = await asked_which(scene)
    await scene.bot.snapshots.settled()
    disk = threading.Event()
    scene.bot.snapshots._writer._queue(disk.wait)
    click = scene.press("Ada", card, "2.")
    await until(lambda: scene.bot.parts.pending.of(card.channel_id).questions, rounds=20_000)  # nothing tells of it
    await settle()
    assert click.callback is None
    disk.set()
    await current(scene, card, "✓ Shake Shack (Shinjuku)")
    assert click.callback is not None


async def test_a_click_or_cancel_over_the_cap_or_at_the_end_is_refused_and_the_question_stays(stub: StubModel) -> None:
    async with open_scene(stub, turns_per_user_minute=1) as scene:
        card = await asked_which(scene)
        assert "That was a lot at once" in await whisper(scene, scene.press("Ada", card, "1."))
        refused = scene.say("Ada", "nevermind")
        assert (await scene.decision(refused)).reason is Reason.USER_CAP
        scene.bot.parts.gate.is_shutting_down = True
        assert await whisper(scene, scene.press("Ada", card, "1.")) == RESTARTING
        assert scene.bot.states.prompts(card.channel_id)


async def test_what_was_clicked_or_written_does_not_come_back_after_forget(scene: Scene) -> None:
    scene.press("Ada", await asked_which(scene), "1.")
    opener = scene.press("Ada", await scene.card(ADDED), "Add a note")
    await scene.until(lambda: opener.form)
    scene.pg.submit(opener, {"text": "hunter2 is the secret"})
    newest = await scene.shows("noted")
    await scene.at_rest()
    await scene.bot.privacy.forget_person(scene.pg.person("Ada"), newest.id)
    scene.bot.conversations.end(newest.channel_id)
    await scene.ask("Ben", "what did we plan?")
    assert "hunter2" not in scene.told()


@pytest.mark.parametrize("over_by", ["expiry", "words"])
async def test_a_click_on_a_card_that_is_over_but_still_stands_is_told(stub: StubModel, over_by: str) -> None:
    async with open_scene(stub, awaiting_ttl_seconds=0.3 if over_by == "expiry" else 60) as scene:
        gate = asyncio.Event()
        settling = scene.pg.faults.add("PATCH", r"/messages/\d+$", delay_event=gate)
        card = await asked_which(scene)
        if over_by == "words":
            scene.say("Ada", "2")
        await scene.until(lambda: settling.hits)
        assert await whisper(scene, scene.press("Ada", card, "1.")) == TOO_LATE
        gate.set()
        await scene.at_rest()
        assert len([m for m in scene.said() if "Added" in m.content]) == (over_by == "words")


async def test_what_is_written_into_a_form_too_late_is_given_back(scene: Scene) -> None:
    opener = scene.press("Ada", await scene.ask("Ada", "start a trip"), "Answer")
    await scene.until(lambda: opener.form)
    await scene.answer_to(scene.say("Ada", "Kyoto"))
    late = await whisper(scene, scene.pg.submit(opener, {"text": "Tokyo Trip 2024"}))
    assert late == f"{TOO_LATE} You wrote:\nTokyo Trip 2024"


@pytest.mark.parametrize("answered", [False, True])
async def test_it_asks_once_more_after_two_misses_and_then_lets_go(scene: Scene, answered: bool) -> None:
    first = await asked_which(scene)
    await scene.ask("Ada", "what is two and two?")
    answer = await scene.ask("Ada", "and what is three and three?")
    assert answer.content.endswith(WHICH)
    await current(scene, first, ASKED_AGAIN)
    if answered:
        scene.press("Ada", answer, "1.")
        await scene.shows(ADDED)
        assert not (await current(scene, answer, "✓ Shake Shack (Shibuya)")).components
        return
    await scene.ask("Ada", "and what is four and four?")
    assert not (await current(scene, answer, LET_GO)).components
    late = scene.say("Ada", "2")
    assert (await scene.decision(late)).reason is not Reason.AWAITED


async def test_never_mind_goes_to_the_agent_which_knows_of_what(scene: Scene) -> None:
    card = await asked_which(scene)
    called_off = scene.say("Ada", "nevermind")
    assert (await scene.decision(called_off)).reason is Reason.AWAITED
    await scene.outcome(called_off)
    assert not (await current(scene, card, "Called off.")).components
    assert "called this question" in scene.told()
    assert "Which one?" in scene.told()


async def test_a_message_to_somebody_else_resolves_nothing(scene: Scene) -> None:
    await asked_which(scene)
    await scene.decision(scene.say("Ben", "lunch, anybody?"))
    for text in (f"<@{scene.pg.person('Ben')}> 2", "Ben, 2"):
        aside = scene.say("Ada", text)
        assert (await scene.decision(aside)).reason is not Reason.AWAITED
    scene.say("Ada", "2")
    await scene.shows("Added Shake Shack Shinjuku! ✓")


@pytest.mark.parametrize("who", ["Ada", None])
async def test_forgetting_ends_the_prompt(scene: Scene, who: str | None) -> None:
    card = await asked_which(scene)
    if who:
        await scene.bot.privacy.forget_person(scene.pg.person(who), card.id)
    else:
        await scene.bot.privacy.forget_channel(card.channel_id, card.id)
    assert not (await current(scene, card, WITHDRAWN)).components
