"""Who may read changes while a question waits, while a turn runs, or while the bot is away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import discord
import pytest

from discord_io import members
from playground.model import VOICE
from tests.e2e.test_who_may_read import SECRET, call, changed, newcomer
from tests.support.lives import caught_up, kill, life, waking
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Reply, StubModel
from turns import turn_slots


async def lose_history(scene: Scene, who: str = "Ben") -> None:
    """Somebody may not read the channel's history any more."""
    await changed(scene, "guild_channel_update", lambda: newcomer(scene, who))


@pytest.mark.parametrize("by", ["an overwrite", "a role"])
@pytest.mark.parametrize("it_waits", ["for the answer before it", "for a slot", "for its budget"])
async def test_who_may_read_counts_when_a_question_is_told_and_not_when_it_was_asked(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch, it_waits: str, by: str
) -> None:
    """A role that somebody lost shows once they say something, wherever that is."""
    stub.default = lambda _: Reply("I see.")
    monkeypatch.setattr(turn_slots, "TOLD_SECONDS", 0.01)
    limits: dict[str, Any] = {"for a slot": {"turns_at_once": 1}, "for its budget": {"guild_tokens": 30_000}}
    async with open_scene(stub, **limits.get(it_waits, {})) as scene:
        pg, general, ben = scene.pg, scene.pg.channel("general"), scene.pg.person("Ben")
        pg.add_channel("help")
        if by == "a role":
            role = pg.add_role("Reading", "read_message_history", members=[ben])
            pg.deny(general, "read_message_history", member=pg.guild_id)
            for one in (role, pg.person("Ada"), pg.bot_id):
                pg.allow(general, "read_message_history", member=one)
        await scene.ask("Ada", SECRET)
        gate = scene.held("Here you are.")
        scene.mention("Ada", "what?", channel="general" if it_waits == "for the answer before it" else "help")
        await scene.until(lambda: len(stub.requests) == 2)
        asked = scene.mention("Ben", "what is the code?")
        await scene.decision(asked)
        if it_waits != "for the answer before it":
            await scene.shows("…")
        if by == "an overwrite":
            await lose_history(scene)
        else:
            pg.take_role(ben, role)
            await changed(scene, "message", lambda: scene.say("Ben", "hm", channel="random"))
        gate.set()
        await scene.answer_to(asked)
        await scene.at_rest()
        assert "what is the code?" in scene.told()
        assert "bluebell" not in json.dumps(stub.requests[-1])


async def test_who_loses_the_history_again_and_again_restarts_an_answer_once(scene: Scene) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    pg, general, ben = scene.pg, scene.pg.channel("general"), scene.pg.person("Ben")
    role = pg.add_role("Reading", "read_message_history", members=[ben])
    pg.deny(general, "read_message_history", member=pg.guild_id)
    for one in (role, pg.person("Ada"), pg.bot_id):
        await changed(scene, "guild_channel_update", partial(pg.allow, general, "read_message_history", member=one))
    await scene.ask("Ada", SECRET)
    gates = [scene.held("Here you are.") for _ in range(4)]
    asked = scene.mention("Ben", "what is the code?")
    await scene.until(lambda: len(scene.stub.requests) == 2)
    for _ in range(3):
        pg.take_role(ben, role)
        scene.say("Ben", "hm", channel="random")
        pg.give_role(ben, role)
        await changed(scene, "message", lambda: scene.say("Ben", "hm", channel="random"))
        await scene.until(lambda: len(scene.stub.requests) > 2)
    for gate in gates:
        gate.set()
    assert (await scene.answer_to(asked)).content == "Here you are."
    assert ["bluebell" in json.dumps(request) for request in scene.stub.requests] == [True, True, False]


@pytest.mark.parametrize("by", ["whoever was asked, typed", "whoever was asked, clicked", "a moderator"])
async def test_who_may_read_counts_when_the_agents_question_is_answered(scene: Scene, by: str) -> None:
    scene.stub.default = lambda _: Reply("I see.")
    await scene.ask("Chloe", SECRET)
    is_allowed = by == "a moderator"
    asks = call("create_poll", question="Lunch?", options=["noon", "one"])
    scene.stub.replies.append(asks if is_allowed else call("ask_choice", question="Which?", options=["this", "that"]))
    card = await scene.ask("Ben", "ask me something")
    await lose_history(scene)
    begun = len(scene.stub.requests)
    if by == "whoever was asked, typed":
        scene.say("Ben", "this")
    else:
        scene.press("Ada" if is_allowed else "Ben", card, "Yes" if is_allowed else "1.")
    await scene.until(lambda: len(scene.stub.requests) > begun)
    await scene.at_rest()
    assert "bluebell" not in json.dumps(scene.stub.requests[begun:])


async def test_a_question_that_waits_is_told_though_more_was_said_since_and_others_may_see_the_channel(
    stub: StubModel,
) -> None:
    """Of what was said since, which its author may not have seen, nothing is told."""
    stub.default = lambda _: Reply("I see.")
    async with open_scene(stub, turns_at_once=1) as scene:
        general, ben = scene.pg.channel("general"), scene.pg.person("Ben")
        scene.pg.add_channel("help")
        newcomer(scene)
        hello, calls = scene.mention("Ben", "hello"), asyncio.Event()
        await scene.answer_to(hello)
        gate = scene.held("Here you are.")
        scene.mention("Ada", "what?", channel="help")
        await scene.until(lambda: len(stub.requests) == 2)
        stub.replies.append(replace(call("current_time"), before=calls))
        asked = scene.mention("Ben", "how late is it?")
        await scene.decision(asked)
        await changed(scene, "guild_channel_update", lambda: scene.pg.deny(general, "view_channel", member=ben))
        await scene.decision(scene.say("Ada", SECRET))
        await changed(scene, "guild_channel_update", lambda: scene.pg.allow(general, "view_channel", member=ben))
        gate.set()
        await scene.until(lambda: len(stub.requests) == 3)
        await scene.edit(hello, "never mind")
        calls.set()
        await scene.answer_to(asked)
        assert ["how late is it?" in json.dumps(request) for request in stub.requests[-2:]] == [True, True]
        assert "bluebell" not in json.dumps(stub.requests)


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("asks", ["meanwhile", "afterwards"])
@pytest.mark.parametrize("away", ["process", "gateway"])
async def test_what_was_said_while_the_bot_was_away_is_told_only_who_reads_the_history_or_was_there_after(
    stage: Scene, away: str, asks: str, *, reads: bool
) -> None:
    """The channel was hidden from Ben and opened again meanwhile, which nothing shows afterwards."""
    stage.stub.default = lambda _: Reply("I see.")
    general, ben = stage.pg.channel("general"), stage.pg.person("Ben")

    def meanwhile() -> None:
        stage.pg.deny(general, "view_channel", member=ben)
        stage.say("Ada", SECRET)
        stage.pg.allow(general, "view_channel", member=ben)

    async def told() -> bool:
        question = asked or stage.mention("Ben", "back again. What was said?")
        await stage.answer_to(question)
        assert "back again" in stage.told()
        return "bluebell" in stage.told()

    async with life(stage):
        if not reads:
            newcomer(stage)
        await stage.ask("Ben", "hello, I am here")
        if away == "gateway":
            ready = stage.bot.wait_for("ready")
            stage.pg.invalidate(resumable=False)
            meanwhile()
            asked = stage.mention("Ben", "back again. What was said?") if asks == "meanwhile" else None
            await ready
            await stage.at_rest()
            assert await told() == reads
    if away == "process":
        meanwhile()
        asked = stage.mention("Ben", "back again. What was said?") if asks == "meanwhile" else None
        async with life(stage):
            assert await told() == reads


@pytest.mark.parametrize("away", ["process", "gateway"])
async def test_what_was_edited_while_the_bot_was_away_is_told_only_who_reads_the_history_or_was_there_after(
    stage: Scene, away: str
) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    general, ben = stage.pg.channel("general"), stage.pg.person("Ben")

    def meanwhile() -> None:
        stage.pg.deny(general, "view_channel", member=ben)
        stage.pg.edit(said, SECRET)
        stage.pg.allow(general, "view_channel", member=ben)

    async def asks() -> None:
        await stage.ask("Ben", "back again. What was said?")
        assert "back again" in stage.told()
        assert "bluebell" not in stage.told()

    async with life(stage):
        newcomer(stage)
        await stage.ask("Ben", "hello, I am here")
        await stage.decision(said := stage.say("Ada", "what a day"))
        if away == "gateway":
            ready = stage.bot.wait_for("ready")
            stage.pg.invalidate(resumable=False)
            meanwhile()
            await ready
            await caught_up(stage)
            await asks()
    if away == "process":
        meanwhile()
        async with life(stage):
            await asks()


async def test_after_a_kill_who_may_read_counts_anew_for_a_question_that_waited(stage: Scene) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    async with life(stage):
        await stage.ask("Chloe", SECRET)
        stage.held()
        asked = stage.mention("Ben", "what is the code?")
        await stage.until(lambda: len(stage.stub.requests) == 2)
        await kill(stage)
    stage.stub.replies.clear()
    newcomer(stage)
    async with life(stage):
        await stage.answer_to(asked)
        assert "what is the code?" in stage.told()
        assert "bluebell" not in stage.told()


@pytest.mark.parametrize("away", ["process", "gateway"])
async def test_whoever_waits_while_the_bot_is_away_and_may_read_is_told_all(stage: Scene, away: str) -> None:
    """Their roles, of which that depends, are looked up, as events that told of them may have been missed."""
    stage.stub.default = lambda _: Reply("I see.")
    newcomer(stage)
    async with life(stage):
        await stage.ask("Chloe", SECRET)
        gate = stage.held("Here you are.")
        stage.mention("Chloe", "what?")
        await stage.until(lambda: len(stage.stub.requests) == 2)
        asked = stage.mention("Ada", "what is the code?")
        await stage.decision(asked)
        if away == "process":
            await kill(stage)
        else:
            ready = stage.bot.wait_for("ready")
            stage.pg.invalidate(resumable=False)
            await ready
            gate.set()
            await stage.answer_to(asked)
    stage.stub.replies.clear()
    if away == "process":
        async with life(stage):
            await stage.answer_to(asked)
    assert "what is the code?" in stage.told()
    assert "bluebell" in stage.told()


@pytest.mark.parametrize("by", ["somebody who is seen", "an edit", "other rights"])
async def test_whoever_is_being_answered_while_the_gateway_is_away_and_may_read_is_told_all(
    stage: Scene, by: str
) -> None:
    """That their roles may have changed unseen makes them no newcomers."""
    stage.stub.default = lambda _: Reply("I see.")
    newcomer(stage)
    async with life(stage):
        await stage.ask("Chloe", SECRET)
        gate = stage.held("Here you are.")
        asked = stage.mention("Ada", "what is the code?")
        await stage.until(lambda: len(stage.stub.requests) == 2)
        ready = stage.bot.wait_for("ready")
        stage.pg.invalidate(resumable=False)
        await ready
        await caught_up(stage)
        match by:
            case "somebody who is seen":
                await changed(stage, "message", lambda: stage.say("Chloe", "hm", channel="random"))
            case "an edit":
                await stage.edit(asked, f"<@{stage.pg.bot_id}> what is the code, please?")
            case "other rights":
                await lose_history(stage, "Chloe")
        gate.set()
        await stage.answer_to(asked)
    assert all("bluebell" in json.dumps(request) for request in stage.stub.requests)


@pytest.mark.parametrize("answering", ["nothing", "another question"])
async def test_whoever_is_being_looked_up_and_may_read_is_told_all_though_others_are_seen_meanwhile(
    stage: Scene, answering: str
) -> None:
    """In a busy server somebody is seen for the first time at any moment after the bot was away."""
    stage.stub.default = lambda _: Reply("I see.")
    newcomer(stage)
    stage.pg.add_channel("help")
    stage.pg.deny(stage.pg.channel("help"), "read_message_history", member=stage.pg.person("Ben"))
    async with life(stage):
        for channel in ("general", "help"):
            await stage.ask("Chloe", SECRET, channel=channel)
        gate = stage.held("Here you are.")
        stage.mention("Chloe", "what?")
        await stage.until(lambda: len(stage.stub.requests) == 3)
        if answering != "nothing":
            other_gate = stage.held("There you are.")
            other = stage.mention("Ada", "and the code here?", channel="help")
            await stage.until(lambda: len(stage.stub.requests) == 4)
        await stage.decision(asked := stage.mention("Ada", "what is the code?"))
        ready = stage.bot.wait_for("ready")
        stage.pg.invalidate(resumable=False)
        await ready
        await caught_up(stage)
        found = asyncio.Event()
        looking = stage.pg.faults.add("GET", "/members/[0-9]+$", delay_event=found)
        gate.set()
        await stage.until(lambda: looking.hits)
        await changed(stage, "message", lambda: stage.say("Ben", "hm", channel="random"))
        found.set()
        await stage.answer_to(asked)
        if answering != "nothing":
            other_gate.set()
            await stage.answer_to(other)
    assert any("what is the code?" in json.dumps(request) for request in stage.stub.requests)
    assert all("bluebell" in json.dumps(request) for request in stage.stub.requests)


async def test_after_a_kill_whoever_is_being_looked_up_and_may_read_is_told_all_though_others_are_seen_meanwhile(
    stage: Scene,
) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    newcomer(stage)
    async with life(stage):
        await stage.ask("Chloe", SECRET)
        stage.held()
        asked = stage.mention("Ada", "what is the code?")
        await stage.until(lambda: len(stage.stub.requests) == 2)
        await kill(stage)
    stage.stub.replies.clear()
    found = asyncio.Event()
    looking = stage.pg.faults.add("GET", "/members/[0-9]+$", delay_event=found)
    async with waking(stage):
        await stage.until(lambda: looking.hits)
        await changed(stage, "message", lambda: stage.say("Ben", "hm", channel="random"))
        found.set()
        await stage.answer_to(asked)
        assert "what is the code?" in stage.told()
        assert "bluebell" in stage.told()


async def test_where_discord_does_not_tell_roles_an_answer_to_many_waits_for_it_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "MOST_KNOWN", 0)
    monkeypatch.setattr(members, "LOOK_UP_SECONDS", 0.1)
    scene.stub.default = lambda _: Reply("I see.")
    newcomer(scene)
    everyone = "Ada", "Ben", "Chloe"
    for who in everyone:
        await scene.ask(who, "hello")
    gate = scene.held("Here you are.")
    scene.mention("Chloe", "what?")
    await scene.until(lambda: len(scene.stub.requests) == len(everyone) + 1)
    for who in everyone:
        await scene.decision(asked := scene.mention(who, "what is the code?"))
    stalled = scene.pg.faults.add("GET", "/members/", delay_event=asyncio.Event(), times=len(everyone))
    gate.set()
    await scene.answer_to(asked)
    assert scene.told().count("what is the code?") == len(everyone)
    assert stalled.hits == 1


async def needs_role(scene: Scene, permission: str, channel: str) -> int:
    """A role that Ben has, without which he does not see the channel, whose history he may not read."""
    pg, there, ben = scene.pg, scene.pg.channel(channel), scene.pg.person("Ben")
    role = pg.add_role("Seeing", permission, members=[ben])
    await changed(scene, "guild_channel_update", lambda: pg.deny(there, permission, member=pg.guild_id))
    for one in (role, pg.person("Ada"), pg.bot_id):
        pg.allow(there, permission, member=one)
    await changed(scene, "guild_channel_update", lambda: pg.deny(there, "read_message_history", member=ben))
    return role


@pytest.mark.parametrize(
    "shown_by",
    ["a message elsewhere", "an edit elsewhere", "a click elsewhere", "a reaction elsewhere", "typing elsewhere", ""],
)
async def test_who_is_seen_without_the_role_that_shows_a_channel_is_told_nothing_of_meanwhile(
    scene: Scene, shown_by: str
) -> None:
    """That somebody loses a role and gets it back unseen, nothing tells the bot without the members intent."""
    scene.stub.default = lambda _: Reply("I see.")
    pg, ben, elsewhere = scene.pg, scene.pg.person("Ben"), scene.say("Ada", "hm", channel="random")
    own = scene.say("Ben", "hm", channel="random")
    role = await needs_role(scene, "view_channel", "general")
    await scene.ask("Ben", "hello, I am here")
    pg.take_role(ben, role)
    match shown_by:
        case "a message elsewhere":
            await changed(scene, "message", lambda: scene.say("Ben", "hm", channel="random"))
        case "an edit elsewhere":
            await scene.edit(own, "oh")
        case "a click elsewhere":
            await scene.use("Ben", "privacy", channel="random")
        case "a reaction elsewhere":
            await scene.react(elsewhere, "Ben", "👍")
        case "typing elsewhere":
            await changed(scene, "raw_typing", lambda: pg.typing(elsewhere.channel_id, ben))
    await scene.ask("Ada", f"now that he is out: {SECRET}")
    pg.give_role(ben, role)
    await scene.ask("Ben", "back again. What was said?")
    assert "back again" in scene.told()
    assert ("bluebell" in scene.told()) == (not shown_by)


async def test_who_is_looked_up_without_that_role_is_told_nothing_of_meanwhile(stage: Scene) -> None:
    """As their question waited while the gateway was away."""
    stage.stub.default = lambda _: Reply("I see.")
    pg, ben = stage.pg, stage.pg.person("Ben")
    async with life(stage):
        role = await needs_role(stage, "view_channel", "general")
        gate = stage.held("Here you are.")
        stage.mention("Ada", "what?")
        await stage.until(lambda: stage.stub.requests)
        await stage.decision(asked := stage.mention("Ben", "hello, I am here"))
        ready = stage.bot.wait_for("ready")
        pg.invalidate(resumable=False)
        await ready
        await caught_up(stage)
        pg.take_role(ben, role)
        gate.set()
        await stage.answer_to(asked)
        await stage.ask("Ada", f"now that he is out: {SECRET}")
        pg.give_role(ben, role)
        await stage.ask("Ben", "back again. What was said?")
        assert "back again" in stage.told()
        assert "bluebell" not in stage.told()


async def test_whoever_is_hidden_a_channel_and_shown_it_again_while_the_gateway_is_away_is_told_nothing_of_meanwhile(
    stage: Scene,
) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    pg, ben = stage.pg, stage.pg.person("Ben")

    async def changes_while_away(change: Callable[..., None]) -> None:
        ready = stage.bot.wait_for("ready")
        pg.invalidate(resumable=False)
        change(pg.channel("general"), "view_channel", member=ben)
        await ready
        await caught_up(stage)

    async with life(stage):
        pg.deny(pg.channel("general"), "read_message_history", member=ben)
        await stage.ask("Ben", "hello, I am here")
        await changes_while_away(pg.deny)
        await stage.ask("Ada", f"now that he is out: {SECRET}")
        await changes_while_away(pg.allow)
        await stage.ask("Ben", "back again. What was said?")
        assert "back again" in stage.told()
        assert "bluebell" not in stage.told()


async def test_of_a_large_server_only_where_somebody_spoke_is_looked_at_as_their_roles_change(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    pg, ben, looked_at = scene.pg, scene.pg.person("Ben"), list[str]()
    for number in range(50):
        pg.add_channel(f"room-{number}")
    role = pg.add_role("Seeing", "view_channel", members=[ben])
    await scene.ask("Ben", "hello")
    permissions_for = discord.TextChannel.permissions_for

    def look(channel: discord.TextChannel, who: discord.Member) -> discord.Permissions:
        if who.id == ben:
            looked_at.append(channel.name)
        return permissions_for(channel, who)

    monkeypatch.setattr(discord.TextChannel, "permissions_for", look)
    pg.take_role(ben, role)
    scene.say("Ben", "hm", channel="random")
    await scene.ask("Ada", "and you?")
    assert "general" in looked_at
    assert {*looked_at} <= {"general", "random"}


@pytest.mark.parametrize(("permission", "channel"), [("view_channel", "general"), ("connect", "lounge")])
@pytest.mark.parametrize("since", ["others did more", "it was started again"])
async def test_who_is_seen_without_that_role_is_told_nothing_also_if_their_roles_were_not_known_any_more(
    stage: Scene, monkeypatch: pytest.MonkeyPatch, since: str, permission: str, channel: str
) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    monkeypatch.setattr(members, "MOST_KNOWN", 2)
    stage.pg.add_channel("lounge", type=VOICE)
    ben = stage.pg.person("Ben")

    async def comes_and_goes(role: int) -> None:
        stage.pg.take_role(ben, role)
        await changed(stage, "message", lambda: stage.say("Ben", "hm", channel="random"))
        await stage.ask("Ada", f"now that he is out: {SECRET}", channel=channel)
        stage.pg.give_role(ben, role)
        await stage.ask("Ben", "back again. What was said?", channel=channel)
        assert "back again" in stage.told()
        assert "bluebell" not in stage.told()

    async with life(stage):
        role = await needs_role(stage, permission, channel)
        await stage.ask("Ben", "hello, I am here", channel=channel)
        if since == "others did more":
            for who in ("Ada", "Chloe"):
                await changed(stage, "message", partial(stage.say, who, "hm", channel="random"))
            await comes_and_goes(role)
    if since == "it was started again":
        async with life(stage):
            await comes_and_goes(role)
