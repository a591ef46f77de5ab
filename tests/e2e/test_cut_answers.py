"""An answer that the provider cut or withheld says so, and whoever asked can have it gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.gateway import FailureKind
from commands.clicks import NOT_YOURS, TOO_LATE
from discord_io.prompt_cards import GO_ON_SECONDS
from tests.e2e.test_trip import current
from tests.support.clock import FakeClock
from tests.support.lives import kill, life, on_disk, open_stage
from tests.support.scene import PATIENCE_SECONDS, Scene, choices
from tests.support.stub_model import Call, Reply, StubModel
from turns.endings import CUT, SENTENCES

HALF = "The ten longest rivers are the Nile, the Ama"
CUT_REPLY = Reply(HALF, finish="length")
REST = "zon, and eight more."


async def test_an_answer_cut_at_its_length_says_so_and_its_asker_has_it_gone_on_with(scene: Scene) -> None:
    scene.stub.replies.extend([CUT_REPLY, Reply("Hello Ben."), Reply(REST)])
    card = await scene.ask("Ada", "the ten longest rivers?")
    assert card.content == f"{HALF}\n\n-# {CUT}"
    assert [label for label, _, _ in choices(card)] == ["Go on"]
    await scene.ask("Ben", "hello")
    refused = await scene.pg.reply_to(scene.press("Ben", card, "Go on"), timeout=PATIENCE_SECONDS)
    assert refused.content == NOT_YOURS
    scene.press("Ada", card, "Go on")
    rest = await scene.shows(REST)
    assert rest.reference
    assert rest.reference.message_id == card.id
    assert not rest.components
    assert f"repeat nothing: {HALF}" in scene.told()
    settled = await current(scene, card, "✓ Go on")
    assert settled.content.startswith(card.content)
    assert not settled.components


@pytest.mark.parametrize("seconds", [-100, 100])
async def test_it_is_gone_on_with_if_that_was_asked_for_in_time_however_late_it_is_read(
    stub: StubModel, tmp_path: Path, seconds: float
) -> None:
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage:
        async with life(stage):
            stub.replies.append(CUT_REPLY)
            await stage.ask("Ada", "the ten longest rivers?")
        clock.advance(GO_ON_SECONDS + seconds)
        said = stage.say("Ada", "go on")
        clock.advance(150)
        async with life(stage):
            stub.replies.append(Reply(REST))
            if seconds < 0:
                await stage.answer_to(said)
            await stage.at_rest()
            assert len(stub.requests) == (seconds < 0)


async def test_it_is_gone_on_with_after_a_kill_and_no_more_once_it_is_too_late(stub: StubModel, tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage:
        async with life(stage):
            stub.replies.append(CUT_REPLY)
            card = await stage.ask("Ada", "the ten longest rivers?")
            await kill(stage)
        async with life(stage):
            clock.advance(GO_ON_SECONDS - 1)
            stub.replies.append(Reply(REST, finish="length"))
            stage.press("Ada", card, "Go on")
            rest = await stage.card(REST)
            await stage.at_rest()
            clock.advance(GO_ON_SECONDS)
            refused = await stage.pg.reply_to(stage.press("Ada", rest, "Go on"), timeout=PATIENCE_SECONDS)
            assert refused.content == TOO_LATE


LONG = "word " * 390 + "bluebell " + "and " * 20  # two messages, with the word at the end of the first


@pytest.mark.parametrize("which", [0, -1])
async def test_an_answer_of_which_a_part_was_deleted_is_not_gone_on_with(scene: Scene, which: int) -> None:
    scene.stub.replies.append(Reply(LONG, finish="length"))
    await scene.ask("Ada", "the ten longest rivers?")
    parts = scene.said()
    assert len(parts) == 2
    await scene.delete(parts[which])
    await scene.at_rest()
    await scene.bot.snapshots.settled()
    assert bool(on_disk(scene.folder, "bluebell")) is (which == -1)  # in the message that stands
    await scene.answer_to(scene.mention("Ada", "go on"))
    assert "bluebell" not in scene.told()


@pytest.mark.parametrize("which", [0, -1])
async def test_an_answer_that_is_deleted_while_going_on_with_it_waits_is_not_told(scene: Scene, which: int) -> None:
    scene.stub.replies.append(Reply(LONG, finish="length"))
    await scene.ask("Ada", "the ten longest rivers?")
    parts = scene.said()
    gate = scene.held("Hello Ben.")
    scene.mention("Ben", "hello")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    scene.press("Ada", parts[-1], "Go on")
    await scene.until(lambda: scene.bot.turns.pending.waiting)
    await scene.delete(parts[which])
    gate.set()
    await scene.until(lambda: len(scene.stub.requests) == 3)
    assert "bluebell" not in scene.told()


async def test_go_on_can_be_typed_and_what_else_is_said_leaves_the_offer_alone(scene: Scene) -> None:
    scene.stub.replies.append(CUT_REPLY)
    card = await scene.ask("Ada", "the ten longest rivers?")
    for words in ("the first one", "never mind", "and 1 more thing"):
        assert HALF not in (await scene.ask("Ada", words)).content
    assert (await current(scene, card, CUT)).components
    scene.stub.replies.append(Reply(REST))
    assert (await scene.answer_to(scene.say("Ada", "please go on!"))).content == REST
    await current(scene, card, "✓ Go on")


async def test_an_answer_that_is_withheld_says_so(scene: Scene) -> None:
    scene.stub.replies.extend([Reply("It is", finish="content_filter"), Reply(finish="content_filter")])
    sentence = SENTENCES[FailureKind.WITHHELD]
    assert (await scene.ask("Ada", "how?")).content == f"It is\n\n-# {sentence}"
    assert (await scene.ask("Ada", "and why?")).content == sentence


@pytest.mark.parametrize("calls", [(), (Call("current_time", '{"ti'),)])
async def test_where_there_was_no_room_for_a_word_it_says_so(scene: Scene, calls: tuple[Call, ...]) -> None:
    scene.stub.replies.append(Reply(finish="length", calls=calls))
    assert (await scene.ask("Ada", "what time is it?")).content == SENTENCES[FailureKind.OUT_OF_ROOM]
    assert len(scene.stub.requests) == 1


async def test_a_question_that_is_open_is_not_overtaken_by_the_offer_to_go_on(scene: Scene) -> None:
    drink = Call("ask_choice", '{"question": "Which drink?", "options": ["tea", "coffee"]}')
    scene.stub.replies.extend([Reply(calls=(drink,)), CUT_REPLY, Reply("Tea it is.")])
    card = await scene.ask("Ada", "something to drink")
    assert not (await scene.ask("Ada", "the ten longest rivers?")).components
    scene.press("Ada", card, "1. tea")
    await scene.shows("Tea it is.")
