"""Discord takes nothing for a while: what was answered is delivered once it does, or it is seen that it cannot be."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from discord_io import discord_wire, streamed_reply
from playground import limits
from playground.model import Message
from tests.support.lives import kill, life
from tests.support.scene import PATIENCE_SECONDS, Scene
from tests.support.stub_model import Reply
from turns.endings import INCOMPLETE, NOT_ALLOWED, UNKNOWN, UNPOSTABLE

SENDS, EDITS, LOOK_UPS = r"/messages$", r"/messages/\d+$", r"/messages$"
WHOLE = "First words, and the rest."
LONG = " ".join(f"word{number}" for number in range(900))
MANY = 10_000

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("impatient")]


@pytest.fixture
def no_nonces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Discord has forgotten every nonce, as it does after some minutes."""
    monkeypatch.setattr(limits, "_NONCE_SECONDS", 0.0)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Discord does not take is given up as soon as it is whole."""
    monkeypatch.setattr(streamed_reply, "DELIVERY_SECONDS", 0.0)


async def without_history(scene: Scene) -> None:
    heard = scene.bot.wait_for("guild_channel_update", timeout=PATIENCE_SECONDS)
    scene.pg.deny(scene.pg.channel("general"), "read_message_history")
    await heard


async def half_said(scene: Scene, fault: dict[str, Any], **how: Any) -> tuple[Message, Message]:
    """A question, and the beginning of its answer, whose rest is an edit that fails so."""
    gate = scene.halted(WHOLE)
    question = scene.mention("Ada", "hello", **how)
    stub = await scene.streaming()
    scene.pg.faults.add("PATCH", EDITS, **fault)
    gate.set()
    return question, stub


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500, "times": 5 * 6},
        {"status": 429, "retry_after": 3_600, "times": 6},
        {"status": 429, "retry_after": 0, "via": False, "times": 6},
    ],
)
async def test_an_edit_that_fails_for_long_is_made_once_discord_takes_it(scene: Scene, fault: dict[str, Any]) -> None:
    question, stub = await half_said(scene, fault)
    answer = await scene.answer_to(question)
    assert (answer.id, answer.content) == (stub.id, WHOLE)
    assert scene.said() == [answer]
    assert not scene.journal.find("post_failed")


@pytest.mark.usefixtures("no_nonces")
@pytest.mark.parametrize("part", [1, 2])
async def test_a_send_that_arrived_though_the_line_broke_is_looked_up_and_not_repeated(scene: Scene, part: int) -> None:
    for _ in range(part - 1):
        scene.pg.faults.add("POST", SENDS)
    scene.pg.faults.add("POST", SENDS, drop=True, after_effect=True)
    scene.pg.faults.add("GET", LOOK_UPS, status=500, times=5 * 6)  # nothing is sent before it is known what stands
    scene.stub.replies.append(Reply(LONG, chunk=10_000))
    question = scene.mention("Ada", "tell me all")
    await scene.answer_to(question)
    assert " ".join(message.content for message in scene.said()) == LONG
    assert len(scene.sent("POST", "/messages")) == len(scene.said())


@pytest.mark.usefixtures("no_nonces")
@pytest.mark.parametrize("looks", [1, 2])
async def test_it_is_looked_up_however_much_was_said_since_or_not_sent_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    monkeypatch.setattr(discord_wire, "MAX_LOOKS", looks)
    monkeypatch.setattr(discord_wire, "LOOK_BACK", 20)
    monkeypatch.setattr(streamed_reply, "NONCE_SECONDS", 0.0)
    much_was_said = asyncio.Event()
    gate = scene.held(WHOLE, chunk=10_000)
    question = scene.mention("Ada", "hello")
    await scene.until(lambda: scene.stub.requests)

    def chatter() -> None:
        for number in range(25):
            scene.say("Ben", f"<@{scene.pg.person('Chloe')}> {number}")

    chatter()
    scene.pg.faults.add("POST", SENDS, drop=True, after_effect=True)
    scene.pg.faults.add("GET", LOOK_UPS, delay_event=much_was_said)
    gate.set()
    await scene.streaming()
    chatter()
    much_was_said.set()
    is_found = looks > 1
    assert await scene.outcome(question) == ("answered" if is_found else "undelivered_unknown")
    assert [message.content for message in scene.said()] == [WHOLE] + [UNKNOWN] * (not is_found)
    assert len(scene.journal.find("look_up_cut")) == (not is_found)


@pytest.mark.usefixtures("no_nonces")
@pytest.mark.parametrize("arrived", [True, False])
async def test_where_the_history_may_not_be_read_the_gateway_tells_what_arrived(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, *, arrived: bool
) -> None:
    monkeypatch.setattr(streamed_reply, "NONCE_SECONDS", 0.0)
    await without_history(scene)
    scene.pg.faults.add("POST", SENDS, drop=True, after_effect=arrived)
    await scene.outcome(scene.mention("Ada", "hello"))
    assert [message.content for message in scene.said()] == ["You said: @Parley hello"]


async def test_where_nobody_can_tell_what_arrived_a_line_says_so(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_reply, "NONCE_SECONDS", 0.0)
    await without_history(scene)
    scene.pg.faults.add("POST", SENDS, status=500, times=MANY)
    question = scene.mention("Ada", "hello")
    await scene.until(lambda: scene.sent("POST", "/messages"))
    ready = scene.bot.wait_for("ready", timeout=PATIENCE_SECONDS)
    scene.pg.invalidate(resumable=False)
    await ready
    tried = len(scene.sent("POST", "/messages"))
    await scene.until(lambda: len(scene.sent("POST", "/messages")) > tried + 5 * 3)
    scene.pg.faults.clear()
    assert await scene.outcome(question) == "undelivered_unknown"
    assert [message.content for message in scene.said()] == [UNKNOWN]
    assert not scene.bot.parts.pending.of(question.channel_id).questions


async def test_a_line_that_breaks_at_every_send_costs_nothing(scene: Scene) -> None:
    scene.pg.faults.add("POST", SENDS, drop=True, times=6)
    assert (await scene.ask("Ada", "hello")).content == "You said: @Parley hello"
    assert len(scene.said()) == 1


@pytest.mark.usefixtures("no_nonces")
@pytest.mark.parametrize("arrived", [True, False])
async def test_a_send_that_hangs_is_given_up_and_looked_up(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, *, arrived: bool
) -> None:
    monkeypatch.setattr(discord_wire, "REQUEST_SECONDS", 0.2)
    scene.pg.faults.add("POST", SENDS, delay_event=asyncio.Event(), after_effect=arrived)
    assert (await scene.ask("Ada", "hello")).content == "You said: @Parley hello"
    assert len(scene.said()) == 1


async def test_a_429_of_a_proxy_means_not_now(scene: Scene) -> None:
    for _ in range(3):
        scene.pg.faults.add("POST", SENDS)
    fault = scene.pg.faults.add("POST", SENDS, status=429, retry_after=0, via=False, times=3)
    scene.stub.replies.append(Reply(LONG, chunk=10_000))
    await scene.answer_to(scene.mention("Ada", "tell me all"))
    assert fault.hits == 3
    assert len(scene.said()) == 4
    assert " ".join(message.content for message in scene.said()) == LONG


@pytest.mark.usefixtures("hasty")
async def test_an_answer_that_stays_cut_off_says_so_and_is_no_longer_owed(scene: Scene) -> None:
    question, stub = await half_said(scene, {"status": 500, "times": MANY})
    assert await scene.outcome(question) == "undelivered_unreachable"
    said = scene.said()
    assert [message.content for message in said] == [stub.content, INCOMPLETE]
    assert [message.reference and message.reference.message_id for message in said] == [question.id, question.id]
    assert not scene.bot.parts.pending.of(question.channel_id).questions
    await scene.ask("Ada", "and now?")


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("stands", [True, False])
async def test_where_not_even_that_can_be_posted_a_reaction_says_so(scene: Scene, *, stands: bool) -> None:
    if stands:
        question, _ = await half_said(scene, {"status": 500, "times": MANY})
    scene.pg.faults.add("POST", SENDS, status=500, times=MANY)
    if not stands:
        question = scene.mention("Ada", "hello")
    assert await scene.outcome(question) == "undelivered_unreachable"
    asked = scene.pg.world.message(question.channel_id, question.id)
    assert [reaction.emoji for reaction in asked.reactions] == [NOT_ALLOWED]
    assert not any(message.content in (INCOMPLETE, UNPOSTABLE) for message in scene.said())
    assert scene.bot.parts.pending.of(question.channel_id).questions  # the next start may tell Discord


async def test_what_waits_for_discord_outlives_a_kill(stage: Scene) -> None:
    async with life(stage):
        question, stub = await half_said(stage, {"status": 500, "times": MANY})
        await stage.until(lambda: len([r for r in stage.sent("PATCH", str(stub.id)) if r.status == 500]) > 5 * 4)
        await kill(stage)
    stage.pg.faults.clear()
    async with life(stage):
        answer = await stage.answer_to(question)
        assert (answer.id, answer.content) == (stub.id, WHOLE)
        assert stage.said() == [answer]
        assert not stage.stub.requests
