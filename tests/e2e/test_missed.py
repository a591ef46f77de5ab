"""What was said while the bot was away, or while it came back: it is taken up once, in order, and not too late."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from commands.clicks import TOO_LATE
from commands.privacy_commands import CHANNEL_FORGOTTEN
from decider import Reason
from discord_io.backlog import LIMIT, Backlog
from discord_io.prompt_cards import EXPIRED
from persistence.lifecycle import ALIVE
from playground.gateway import Session
from playground.model import Message
from tests.e2e.test_trip import ADDED, asked_which, whisper
from tests.support.clock import FakeClock
from tests.support.lives import caught_up, kill, life, on_disk, open_stage, waking
from tests.support.scene import PATIENCE_SECONDS, Scene
from tests.support.stub_model import StubModel
from turns.endings import RESTARTING

pytestmark = pytest.mark.slow


class Wall:
    """The playground's clock, which can be turned."""

    def __init__(self) -> None:
        self.behind = 0.0

    def __call__(self) -> float:
        return time.time() - self.behind


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
async def scene(stub: StubModel, tmp_path: Path, wall: Wall) -> AsyncIterator[Scene]:
    async with open_stage(stub, tmp_path / "state", wall=wall) as stage:
        yield stage


def read_channels(scene: Scene) -> list[int]:
    """Those of which the bot asked for messages since its start."""
    return [int(sent.path.split("/")[-2]) for sent in scene.sent("GET", "/messages")]


async def left(scene: Scene) -> None:
    """The bot was there, and is gone."""
    async with life(scene):
        await scene.ask("Ben", "hello", channel="random")


async def test_a_followup_is_answered_and_talk_between_others_is_not(scene: Scene) -> None:
    async with life(scene):
        await scene.ask("Ada", "my cat is called Tim")
    scene.say("Ben", "lunch, Chloe?", reply_to=scene.say("Chloe", f"<@{scene.pg.person('Ben')}> hungry?").id)
    followup = scene.say("Ada", "Parley, what is it called?", reply_to=scene.said()[-1].id)
    async with life(scene):
        await scene.answer_to(followup)
        await scene.at_rest()
    assert len(scene.stub.requests) == 1
    assert scene.told().index("Tim") < scene.told().index("lunch, Chloe?") < scene.told().index("what is it called?")


def turn_back(scene: Scene, wall: Wall, seconds: float) -> None:
    """From now on people speak so long ago."""
    wall.behind = seconds
    scene.pg.world._last_id = 0  # its ids never go back by themselves


async def left_long_ago(scene: Scene, wall: Wall, seconds: float, forwarding: Message | None = None) -> None:
    """The bot was there so long ago, and answered, and is gone. forwarding: what was forwarded there then."""
    async with life(scene):
        bot = scene.bot
        bot.conversations._clock = bot.catch_up.of(0)._clock = lambda: datetime.now(UTC) - timedelta(seconds=seconds)
        turn_back(scene, wall, seconds)
        await scene.ask("Ada", "my cat is called Tim")
        if forwarding:
            await scene.decision(scene.say("Ada", forward=forwarding))
            await scene.ask("Ada", "what is that?")
        bot.catch_up.beat()
        bot.snapshots.touch(ALIVE)


async def test_a_followup_to_a_conversation_that_has_expired_by_now_is_answered(scene: Scene, wall: Wall) -> None:
    await left_long_ago(scene, wall, 200)
    turn_back(scene, wall, 190)
    followup = scene.say("Ada", "and what is it called?")
    wall.behind = 0
    async with life(scene):
        await scene.answer_to(followup)
    assert scene.told().index("Tim") < scene.told().index("and what is it called?")


async def test_what_was_forwarded_from_a_channel_that_is_forgotten_meanwhile_does_not_come_back(
    scene: Scene, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    hers = scene.say("Chloe", "my code is bluebell", channel="random")
    scene.pg.allow(hers.channel_id, "manage_channels", member=scene.pg.person("Ada"))
    await left_long_ago(scene, wall, 200, forwarding=hers)
    turn_back(scene, wall, 190)
    followup = scene.mention("Ada", "and what was that?")
    wall.behind, may_read, newest = 0, asyncio.Event(), Backlog.newest

    async def newest_in_the_end(backlog: Backlog, guild_id: int, channel_id: int) -> Any:
        await may_read.wait()
        return await newest(backlog, guild_id, channel_id)

    monkeypatch.setattr(Backlog, "newest", newest_in_the_end)
    async with waking(scene):
        assert (await scene.use("Ada", "forget", channel="random", everything=True)).content == CHANNEL_FORGOTTEN
        assert not on_disk(scene.folder, "bluebell")
        may_read.set()
        await scene.answer_to(followup)
    assert "bluebell" not in scene.told()
    assert not on_disk(scene.folder, "bluebell")


async def test_a_question_is_answered_though_others_spoke_long_after_it(scene: Scene, wall: Wall) -> None:
    await left_long_ago(scene, wall, 290)
    turn_back(scene, wall, 280)
    question = scene.mention("Ben", "what is a good name for a dog?", channel="random")
    turn_back(scene, wall, 100)
    scene.say("Chloe", "anybody for lunch?", channel="random")
    wall.behind = 0
    async with life(scene):
        await scene.answer_to(question)


@pytest.mark.parametrize(("seconds", "shown"), [(60, ADDED), (130, EXPIRED)])
async def test_what_it_asked_is_answered_by_what_was_said_in_time(
    stub: StubModel, tmp_path: Path, seconds: float, shown: str
) -> None:
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage:
        async with life(stage):
            await asked_which(stage)
        clock.advance(seconds)
        stage.say("Ada", "1")
        clock.advance(200 - seconds)
        async with life(stage):
            await stage.shows(shown)
            await stage.at_rest()
            assert not stage.journal.find("decided", decision="respond") or shown == ADDED


@pytest.mark.parametrize("how", ["click", "words"])
@pytest.mark.parametrize("seconds", [-0.5, 0.5])
async def test_what_is_answered_at_the_last_moment_counts_by_when_that_was(
    stub: StubModel, tmp_path: Path, seconds: float, how: str
) -> None:
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage):
        card = await asked_which(stage)
        clock.advance(stage.bot.states.AWAITING_TTL_SECONDS + seconds)
        clicked = stage.press("Ada", card, "1") if how == "click" else None
        said = stage.say("Ada", "1") if how == "words" else None
        clock.advance(1)  # while it is on its way
        stage.bot.prompts.settle(stage.bot.states.expire(), EXPIRED)
        if seconds < 0:
            await stage.shows(ADDED)
        elif clicked:
            assert (await stage.pg.reply_to(clicked)).content == TOO_LATE
        elif said:
            assert (await stage.decision(said)).reason is not Reason.AWAITED


async def test_several_in_one_channel_are_taken_up_in_order(scene: Scene) -> None:
    await left(scene)
    said = [scene.mention(who, text) for who, text in (("Ada", "one"), ("Ben", "two"), ("Chloe", "three"))]
    async with life(scene):
        await scene.until(lambda: scene.journal.find("turn_ended", message=said[-1].id))
        await scene.at_rest()
    decided = [entry["message"] for entry in scene.journal.find("decided", decision="respond")]
    assert decided == [message.id for message in said]
    told = scene.told()
    assert told.index("one") < told.index("two") < told.index("three")


async def test_what_was_deleted_or_edited_while_away_is_as_it_stands_now(scene: Scene) -> None:
    await left(scene)
    scene.pg.delete(scene.mention("Ada", "my secret is Tim"))
    question = scene.mention("Ben", "is Tim a cat?")
    scene.pg.edit(question, f"<@{scene.pg.bot_id}> is Tom a cat?")
    async with life(scene):
        await scene.answer_to(question)
        await scene.at_rest()
    assert len(scene.said()) == 1
    assert "Tom" in scene.told()
    assert "Tim" not in scene.told()


async def test_a_session_that_is_lost_costs_no_question(scene: Scene) -> None:
    """op 9 false after messages were posted to a connection that was dead already."""
    async with life(scene):
        await scene.ask("Ada", "hello")
        deaf = scene.pg._gateway.sessions
        connections, kept = scene.pg._gateway.connections, dict(deaf)
        deaf.clear()
        missed = [scene.say("Ada", "and what do you think?"), scene.mention("Ben", "hello", channel="help")]
        deaf.update(kept)
        assert connections
        scene.pg.invalidate(resumable=False)
        for message in missed:
            await scene.answer_to(message)
        await scene.at_rest()
        assert len(scene.said()) == 2
        assert len(scene.said("help")) == 1
        assert len(scene.stub.requests) == 3


async def test_a_line_that_drops_before_the_servers_are_told_costs_no_question(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await left(scene)
    question = scene.mention("Ada", "hello")
    push = Session.push

    def drops(session: Session, name: str, body: bytes) -> None:
        if name == "GUILD_CREATE" and session.connection:
            line, session.connection = session.connection, None
            asyncio.get_running_loop().call_later(0.1, line.cut)  # on_ready has come by then
        push(session, name, body)

    monkeypatch.setattr(Session, "push", drops)
    async with waking(scene):
        await scene.until(lambda: scene.journal.find("resumed"))
        await scene.answer_to(question)
        await scene.until(scene.bot.catch_up.beat)


# A busy server


MENTIONED, CHATTY = 10, 60


@pytest.fixture
async def busy(stub: StubModel, tmp_path: Path) -> AsyncIterator[Scene]:
    channels = ["general", *(f"asked-{n}" for n in range(MENTIONED)), *(f"chatty-{n}" for n in range(CHATTY))]
    async with open_stage(stub, tmp_path / "state", channels=channels) as stage:
        yield stage


async def missed_mentions(scene: Scene) -> list[Message]:
    """It was there; then it is asked in ten channels, in one of them behind much else, and others talk in sixty."""
    async with life(scene):
        await scene.ask("Ada", "hello")
    for number in range(2 * LIMIT):
        scene.say("Ben", f"one more thing: {number}", channel="asked-0")
    asked = [scene.mention("Ada", "and you?", channel=f"asked-{n}") for n in range(MENTIONED)]
    for number in range(CHATTY):
        scene.say("Ben", "nothing of interest", channel=f"chatty-{number}")
    return asked


async def answered_once(scene: Scene, asked: list[Message]) -> None:
    """All of them; within a life."""
    await scene.until(lambda: all(scene.said(f"asked-{n}") for n in range(MENTIONED)))
    await scene.at_rest()
    replies = [m.reference and m.reference.message_id for n in range(MENTIONED) for m in scene.said(f"asked-{n}")]
    assert replies == [question.id for question in asked]


async def test_what_it_is_asked_is_found_among_many_channels_with_newer_talk(busy: Scene) -> None:
    asked = await missed_mentions(busy)
    async with life(busy):
        await answered_once(busy, asked)
        assert len(busy.sent("GET", "/messages")) < 2 * (MENTIONED + CHATTY)
    assert not busy.journal.find("catch_up_cut")


@pytest.mark.parametrize("ending", ["killed", "told to stop"])
async def test_one_that_ends_while_it_catches_up_leaves_the_rest_to_the_next(busy: Scene, ending: str) -> None:
    asked = await missed_mentions(busy)
    channel = busy.pg.channel(f"asked-{MENTIONED // 2}")
    reading = busy.pg.faults.add("GET", f"/channels/{channel}/messages$", delay_event=asyncio.Event())
    async with waking(busy):
        await busy.until(lambda: reading.hits)
        await busy.at_rest()  # anyio loses the socket of a call that is cancelled the moment it is connected
        await (kill(busy) if ending == "killed" else busy.bot.shut_down())
    async with life(busy):
        await answered_once(busy, asked)


# While it comes back


async def test_what_is_said_meanwhile_waits_for_what_was_missed_in_its_channel_alone(scene: Scene) -> None:
    await left(scene)
    missed = scene.mention("Ada", "one")
    gate = asyncio.Event()
    reading = scene.pg.faults.add("GET", r"/messages$", delay_event=gate)
    async with waking(scene):
        await scene.until(lambda: reading.hits)
        live = scene.mention("Ben", "two")
        await scene.ask("Chloe", "hello", channel="help")
        assert live.id not in scene.decisions
        gate.set()
        await scene.decision(live)
        await scene.at_rest()
    decided = [
        e["message"] for e in scene.journal.find("decided", decision="respond") if e["channel"] == live.channel_id
    ]
    assert decided == [missed.id, live.id]
    told = "\n".join(str(request["messages"]) for request in scene.stub.requests[1:])
    assert told.index("one") < told.index("two")


async def test_what_is_said_meanwhile_waits_also_where_the_channel_is_read_at_the_second_try_alone(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("persistence.unfinished_questions.RETRY_SECONDS", (0.1,))
    await left(scene)
    talk = scene.say("Ada", "what is the capital of France?")
    missed = scene.mention("Ben", "one")
    gate = asyncio.Event()
    reading = scene.pg.faults.add("GET", f"/channels/{talk.channel_id}/messages$", status=403, delay_event=gate)
    async with waking(scene):
        await scene.until(lambda: reading.hits)
        live = scene.mention("Chloe", "two")
        gate.set()
        await scene.decision(live)
        await scene.at_rest()
        assert not (await scene.decision(talk)).respond
    assert [one for one in scene.decisions if one in (missed.id, live.id)] == [missed.id, live.id]
    assert scene.told().count("@Parley one") == 1


async def test_what_is_deleted_while_it_waits_is_not_answered(scene: Scene) -> None:
    await left(scene)
    missed = scene.mention("Ada", "one")
    gate = asyncio.Event()
    reading = scene.pg.faults.add("GET", r"/messages$", delay_event=gate)
    async with waking(scene):
        await scene.until(lambda: reading.hits)
        live = scene.mention("Ben", "my secret is Tim")
        await scene.delete(live)
        gate.set()
        await scene.answer_to(missed)
        await scene.at_rest()
        await scene.ask("Chloe", "hello")
        assert "Tim" not in scene.told()
    assert len(scene.said()) == 2
    assert not on_disk(scene.folder, "Tim")


async def test_what_is_edited_after_it_was_read_is_answered_and_kept_as_it_stands(scene: Scene) -> None:
    await left(scene)
    missed = scene.mention("Ada", "my secret is Tim")
    gate = asyncio.Event()
    reading = scene.pg.faults.add("GET", r"/messages$", delay_event=gate, after_effect=True)
    async with waking(scene):
        await scene.until(lambda: reading.hits)
        await scene.edit(missed, f"<@{scene.pg.bot_id}> is Tom a cat?")
        gate.set()
        await scene.answer_to(missed)
        assert "Tom" in scene.told()
        assert "Tim" not in scene.told()
    assert not on_disk(scene.folder, "Tim")


async def test_a_click_while_it_comes_back_is_taken_when_that_is_done_or_told(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commands.items.CLICK_PATIENCE_SECONDS", 0.05)
    async with life(scene):
        card = await asked_which(scene)
    scene.say("Ben", "nothing of interest")
    gate = asyncio.Event()
    reading = scene.pg.faults.add("GET", r"/messages$", delay_event=gate)
    async with waking(scene):
        await scene.until(lambda: reading.hits)
        assert await whisper(scene, scene.press("Ada", card, "1.")) == RESTARTING
        monkeypatch.setattr("commands.items.CLICK_PATIENCE_SECONDS", 10)
        scene.press("Ada", card, "1.")
        gate.set()
        await caught_up(scene)
        await scene.shows(ADDED)


async def test_a_server_that_invites_it_again_meanwhile_is_not_forgotten(scene: Scene) -> None:
    elsewhere = scene.pg.channel("general", scene.pg.add_guild("Elsewhere"))
    async with life(scene):
        await scene.ask("Ada", "hello")
    scene.pg.remove_bot()
    scene.pg.post(elsewhere, scene.pg.person("Ben"), "hello")
    gate = asyncio.Event()
    reading = scene.pg.faults.add("GET", r"/messages$", delay_event=gate)
    async with waking(scene):
        await scene.until(lambda: reading.hits)
        back = scene.bot.wait_for("guild_join", timeout=PATIENCE_SECONDS)
        scene.pg.invite_bot()
        await back
        await scene.ask("Ada", "my cat is called Tim")
        catching_up = next(t for t in asyncio.all_tasks() if getattr(t.get_coro(), "__name__", "") == "catch_up")
        gate.set()
        await catching_up
        await scene.ask("Ada", "what is it called?")
        assert "Tim" in scene.told()


async def test_what_is_said_while_it_shuts_down_is_answered_by_the_next(scene: Scene) -> None:
    async with life(scene):
        await scene.ask("Ada", "hello")
        scene.bot.parts.gate.is_shutting_down = True
        late = [scene.mention("Ada", "and now?"), scene.mention("Ben", "hello", channel="help")]
        for message in late:
            assert (await scene.decision(message)).reason is Reason.SHUTTING_DOWN
    async with life(scene):
        for message in late:
            await scene.answer_to(message)
        await scene.at_rest()
    assert len(scene.said()) == 2
    assert len(scene.said("help")) == 1


async def test_an_answer_of_another_process_counts(scene: Scene, tmp_path: Path) -> None:
    await left(scene)
    here, scene.folder = scene.folder, tmp_path / "elsewhere"
    async with life(scene):
        await scene.ask("Ada", "hello")
    scene.folder = here
    async with life(scene):
        await scene.ask("Ben", "and you?", channel="help")
    assert len(scene.said()) == 1
