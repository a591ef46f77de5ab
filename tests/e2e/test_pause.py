"""Whoever runs the bot pauses it in a server, and has it go on."""

from __future__ import annotations

import asyncio

import pytest

from decider import Reason
from tests.e2e.test_place_settings import QUESTION, set_channel
from tests.support.controls import run
from tests.support.lives import kill, life
from tests.support.scene import Scene
from tests.support.stub_model import Reply


async def test_a_paused_server_is_silent_over_a_kill_says_why_and_goes_on_as_before(stage: Scene) -> None:
    stage.stub.default = lambda _: Reply("Miso.")
    async with life(stage):
        set_channel(stage, "general", persona="A pirate.", answers="follow")
        stage.bot.parts.guild_settings.pause(stage.pg.guild_id)
        assert (await stage.decision(stage.mention("Ada", QUESTION))).reason is Reason.PAUSED
        await kill(stage)
    async with life(stage):
        assert (await stage.decision(stage.mention("Ada", QUESTION))).reason is Reason.PAUSED
        assert "my owner has paused me in this server" in (await stage.use("Ada", "why")).content
        shown = (await stage.pg.reply_to(run(stage.pg, "Ada", "parley show"))).embeds[0]
        assert shown["description"] == "I answer nobody here: the pause that my owner has set."
        card = (await stage.pg.reply_to(run(stage.pg, "Ada", "parley settings"))).embeds[0]
        assert "paused me" in card["fields"][-1]["value"]
        assert not stage.stub.requests
        stage.bot.parts.guild_settings.pause(stage.pg.guild_id, on=False)
        assert (await stage.ask("Ada", QUESTION)).content == "Miso."
        assert "A pirate." in stage.told()


@pytest.mark.parametrize("is_away", [False, True])
async def test_a_pause_holds_where_the_bot_is_removed_and_invited_again(stage: Scene, is_away: bool) -> None:
    stage.stub.default = lambda _: Reply("Miso.")
    async with life(stage):
        set_channel(stage, "general", persona="A pirate.")
        stage.bot.parts.guild_settings.pause(stage.pg.guild_id)
        if not is_away:
            left = asyncio.ensure_future(stage.bot.wait_for("guild_remove", timeout=10))
            stage.pg.remove_bot()
            await left
    if is_away:
        stage.pg.remove_bot()
        async with life(stage):
            await stage.until(lambda: stage.journal.find("guild_left"))
    stage.pg.invite_bot()
    async with life(stage):
        assert (await stage.decision(stage.mention("Ada", QUESTION))).reason is Reason.PAUSED
        stage.bot.parts.guild_settings.pause(stage.pg.guild_id, on=False)
        await stage.ask("Ada", QUESTION)
        assert "A pirate." not in stage.told()
