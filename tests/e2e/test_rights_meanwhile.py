"""Who may read the history changes while a question waits, or while the bot is away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from discord_io import readers
from playground.model import FORUM
from tests.e2e.test_who_may_read import SECRET, call, changed, newcomer, reader
from tests.support.lives import kill, life
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Reply, StubModel
from turns import answering, turn_slots

# What one answer may take is reserved of such a budget, so that only one is made at once.
WAITS: Mapping[str, Mapping[str, Any]] = {
    "for the answer before it": {},
    "for a slot": {"turns_at_once": 1},
    "for its budget": {"guild_tokens": 30_000},
}


@pytest.mark.parametrize("by", ["an overwrite", "a role"])
@pytest.mark.parametrize("it_waits", WAITS)
async def test_who_may_read_counts_when_a_question_is_told_and_not_when_it_was_asked(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch, it_waits: str, by: str
) -> None:
    """Also by a role, of which nothing tells the bot."""
    monkeypatch.setattr(answering, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(turn_slots, "TOLD_SECONDS", 0.01)
    stub.default = lambda _: Reply("I see.")
    async with open_scene(stub, **WAITS[it_waits]) as scene:
        scene.pg.add_channel("help")
        lose = reader(scene) if by == "a role" else partial(newcomer, scene)
        await scene.ask("Ada", SECRET)
        gate = scene.held("Here you are.")
        scene.mention("Ada", "what?", channel="general" if it_waits == "for the answer before it" else "help")
        await scene.until(lambda: len(stub.requests) == 2)
        asked = scene.mention("Ben", "what is the code?")
        await scene.decision(asked)
        if it_waits == "for its budget":
            await scene.shows(turn_slots.FOR_BUDGET)
        if by == "an overwrite":
            await changed(scene, "guild_channel_update", lose)
        else:
            lose()
        gate.set()
        await scene.answer_to(asked)
        assert "what is the code?" in scene.told()
        assert "bluebell" not in scene.told()


@pytest.mark.parametrize("where", ["thread", "post"])
async def test_who_may_read_counts_also_in_a_thread_that_its_opener_archives_while_their_question_waits(
    stub: StubModel, where: str
) -> None:
    """The bot does not know such a thread any more."""
    stub.default = lambda _: Reply("I see.")
    async with open_scene(stub, turns_at_once=1) as scene:
        pg, ben = scene.pg, scene.pg.person("Ben")
        above = pg.channel("general")
        if where == "post":
            await changed(scene, "guild_channel_create", lambda: pg.add_channel("ideas", type=FORUM))
            above = pg.channel("ideas")
            there = pg.forum_post(above, ben, "The codes", "What about the codes?")
        else:
            there = pg.open_thread(above, ben, "The codes", members=[pg.person("Ada"), ben])
        await scene.answer_to(pg.post(there, pg.person("Ada"), f"<@{pg.bot_id}> {SECRET}"))
        begun = len(stub.requests)
        gate = scene.held("Here you are.")
        scene.mention("Ada", "what?", channel="random")
        await scene.until(lambda: len(stub.requests) > begun)
        asked = pg.post(there, ben, f"<@{pg.bot_id}> what is the code?")
        await scene.decision(asked)
        await changed(scene, "guild_channel_update", lambda: pg.deny(above, "read_message_history", member=ben))
        await changed(scene, "thread_update", lambda: pg.change_thread(there, ben, archived=True))
        gate.set()
        await scene.answer_to(asked)
        assert "what is the code?" in scene.told()
        assert "bluebell" not in scene.told()


@pytest.mark.parametrize("by", ["whoever was asked, typed", "whoever was asked, clicked", "a moderator"])
async def test_who_may_read_counts_when_the_agents_question_is_answered(scene: Scene, by: str) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Chloe", SECRET)
    is_allowed = by == "a moderator"
    asks = call("create_poll", question="Lunch?", options=["noon", "one"])
    scene.stub.replies.append(asks if is_allowed else call("ask_choice", question="Which?", options=["this", "that"]))
    card = await scene.ask("Ben", "ask me something")
    await changed(scene, "guild_channel_update", lambda: newcomer(scene))
    begun = len(scene.stub.requests)
    if by == "whoever was asked, typed":
        scene.say("Ben", "this")
    else:
        scene.press("Ada" if is_allowed else "Ben", card, "Yes" if is_allowed else "1.")
    await scene.until(lambda: len(scene.stub.requests) > begun)
    await scene.at_rest()
    assert "bluebell" not in json.dumps(scene.stub.requests[begun:])


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("away", ["process", "gateway"])
async def test_of_who_waits_while_the_bot_is_away_counts_what_they_may_read_afterwards(
    stage: Scene, away: str, *, reads: bool
) -> None:
    """By their roles, which the messages that the bot reads afterwards do not tell."""
    stage.stub.default = lambda _: Reply("I see.")
    lose_role = reader(stage)
    async with life(stage):
        await stage.ask("Chloe", SECRET)
        gate = stage.held("Here you are.")
        stage.mention("Chloe", "what?")
        await stage.until(lambda: len(stage.stub.requests) == 2)
        asked = stage.mention("Ben", "what is the code?")
        await stage.decision(asked)
        if away == "process":
            await kill(stage)
        else:
            ready = stage.bot.wait_for("ready")
            stage.pg.invalidate(resumable=False)
        if not reads:
            lose_role()
        if away == "gateway":
            await ready
            gate.set()
            await stage.answer_to(asked)
    if away == "process":
        stage.stub.replies.clear()
        async with life(stage):
            await stage.answer_to(asked)
    assert "what is the code?" in stage.told()
    assert ("bluebell" in stage.told()) == reads


async def test_whose_roles_discord_does_not_tell_in_time_is_answered_as_a_newcomer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer to many waits for that once."""
    monkeypatch.setattr(readers, "LOOK_UP_SECONDS", 0.1)
    scene.stub.default = lambda _: Reply("I see.")
    reader(scene)
    await scene.ask("Chloe", SECRET)
    gate = scene.held("Here you are.")
    scene.mention("Chloe", "what?")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    everyone = "Ada", "Ben", "Chloe"
    for who in everyone:
        await scene.decision(asked := scene.mention(who, "what is the code?"))
    stalled = scene.pg.faults.add("GET", "/members/", delay_event=asyncio.Event(), times=len(everyone))
    gate.set()
    await scene.answer_to(asked)
    assert scene.told().count("what is the code?") == len(everyone)
    assert stalled.hits == 1  # discord.py sends such requests one after another
    assert "bluebell" not in scene.told()
