"""Whoever runs the bot pauses it in a server, and has it go on."""

from __future__ import annotations

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
        assert "whoever runs me has paused me in this server" in (await stage.use("Ada", "why")).content
        shown = (await stage.pg.reply_to(run(stage.pg, "Ada", "parley show"))).embeds[0]
        assert shown["description"] == "I answer nobody here: the pause that whoever runs me has set."
        card = (await stage.pg.reply_to(run(stage.pg, "Ada", "parley settings"))).embeds[0]
        assert "paused me" in card["fields"][-1]["value"]
        assert not stage.stub.requests
        stage.bot.parts.guild_settings.pause(stage.pg.guild_id, on=False)
        assert (await stage.ask("Ada", QUESTION)).content == "Miso."
        assert "A pirate." in stage.told()
