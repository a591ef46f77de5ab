"""What is offered, and what is heard where something may be: nothing of it keeps the forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from playground.model import Message
from tests.e2e.test_offers import TIMEOUT, gone, hear, offered, offers, wait
from tests.e2e.test_quoting_the_forgotten import SECRET, forgotten
from tests.e2e.test_threads import open_thread
from tests.support.clock import FakeClock
from tests.support.lives import life, on_disk, open_stage
from tests.support.scene import Scene
from tests.support.stub_model import Call, Reply, StubModel


@pytest.fixture
async def offering(stub: StubModel, tmp_path: Path) -> AsyncIterator[Scene]:
    stub.default = lambda _: Reply("I see.")
    async with open_stage(stub, tmp_path / "state", clock=FakeClock()) as stage, life(stage):
        await offers(stage, "on")
        yield stage


async def test_what_was_heard_in_a_thread_is_forgotten(offering: Scene) -> None:
    open_thread(offering, "Ada", "servers", "Ben", "Chloe")
    await hear(offering, "Ben", "I am back from lunch", channel="servers")
    said = await hear(offering, "Chloe", f"does anybody know how to renew {SECRET} with certbot?", channel="servers")
    heard = offering.bot.parts.offer_channels.get(said.channel_id)
    assert heard
    assert said.id in {m.message_id for m in heard.recent.messages}
    await offering.use("Chloe", "forget")
    assert said.id not in {m.message_id for m in heard.recent.messages}


async def test_a_forward_that_was_heard_goes_with_the_channel_from_which_it_is(offering: Scene) -> None:
    """Also where no conversation draws on that channel."""
    said = offering.say("Chloe", f"does anybody know how to renew {SECRET} with certbot?", channel="random")
    offering.pg.allow(said.channel_id, "manage_channels", member=offering.pg.person("Ada"))
    forward = offering.say("Ben", forward=said)
    await offering.decision(forward)
    heard = offering.bot.parts.offer_channels.get(forward.channel_id)
    assert heard
    assert forward.id in {m.message_id for m in heard.recent.messages}
    await offering.use("Ada", "forget", channel="random", everything=True)
    assert forward.id not in {m.message_id for m in heard.recent.messages}


async def offered_a_note(scene: Scene) -> Message:
    """Ben noted what is a must in a venue of Chloe's, and hours later is asked how it was."""
    await scene.ask("Chloe", f"add {SECRET} bar to the trip")
    await scene.answer_to(scene.say("Chloe", "yes"))
    await scene.ask("Ben", "add a must try: the toast")
    wait(scene, TIMEOUT + 1)
    wait(scene, 4 * 3_600 - TIMEOUT)
    card = await scene.card(f"How was the toast at {SECRET}")
    await scene.until(lambda: scene.journal.find("offered"))
    return card


async def test_an_offer_goes_with_the_words_that_it_is_about(offering: Scene) -> None:
    card = await offered_a_note(offering)
    await offering.use("Chloe", "forget")
    await gone(offering, card)
    await offering.bot.snapshots.settled()
    assert not on_disk(offering.folder, SECRET)


async def test_an_offer_that_was_taken_up_goes_with_the_words_that_it_has(offering: Scene) -> None:
    card = await offered_a_note(offering)
    offering.press("Ben", card, "Yes, please")
    await offering.card("What shall I note")
    await offering.at_rest()
    await offering.bot.snapshots.settled()
    assert on_disk(offering.folder, f"How was the toast at {SECRET}")
    await forgotten(offering)
    await offering.ask("Ben", "and now?")
    assert SECRET not in offering.told()


@pytest.mark.parametrize("while_it", ["waits", "is answered"])
async def test_a_question_that_was_offered_an_answer_is_told_as_it_stands(offering: Scene, while_it: str) -> None:
    asked, card = await offered(offering)
    gate = asyncio.Event()
    if while_it == "waits":
        offering.stub.replies.append(Reply("Here you are.", before=gate))
        offering.mention("Ada", "what is the time?")
        await offering.until(lambda: offering.stub.requests)
        offering.press("Ben", card, "Yes, please")
        await offering.until(lambda: offering.bot.turns.pending.waiting)
    else:
        offering.stub.replies.append(Reply("Let me see.", before=gate, calls=(Call("current_time", "{}", "call-1"),)))
        offering.press("Ben", card, "Yes, please")
        await offering.until(lambda: offering.stub.requests)
        assert "certificate" in offering.told()
    await offering.edit(asked, "does anybody know how to renew a passport?")
    gate.set()
    assert "I see." in (await offering.answer_to(asked)).content
    assert "renew a passport" in offering.told()
    assert "certificate" not in offering.told()
