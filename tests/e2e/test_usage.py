"""/usage: one's own use, and the server's for those who manage it."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import aiohttp
from PIL import Image

from commands.usage import NO_SERVER, NOT_THEIRS
from playground.model import Message
from tests.support.clock import FakeClock
from tests.support.lives import life, open_stage
from tests.support.scene import open_scene
from tests.support.stub_model import Reply, StubModel

EPHEMERAL = 1 << 6
DAY = 86_400
PRICES = "[stub]\ninput = 100\noutput = 100\n"


async def picture(message: Message) -> tuple[Image.Image, str]:
    """What is attached, and its description."""
    (attached,) = message.attachments
    async with aiohttp.ClientSession() as http, http.get(attached["url"]) as response:
        return Image.open(BytesIO(await response.read())), attached["description"]


async def test_everybody_sees_their_own_use_and_those_who_manage_the_server_see_its(
    stub: StubModel, tmp_path: Path
) -> None:
    clock = FakeClock()
    budgets = "$0.1 a day, guild 1000 tokens a month, person $0.01 a day"
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage, budgets=budgets, prices=PRICES):
        general = stage.pg.channel("general")
        await stage.ask("Ada", "yesterday's question?")
        clock.advance(DAY)
        stub.replies.append(Reply("Here.", tokens=60))
        await stage.ask("Ben", "today's question?")
        await stage.ask("Ada", "mine?")
        mine = await stage.use("Ada", "usage")
        assert mine.flags & EPHEMERAL
        assert mine.content.splitlines()[:4] == [
            "**What you have used of my models** (days of UTC)",
            "- Today: $0.0015, 1 answer, 1 call, 15 tokens",
            "- Yesterday: $0.0015, 1 answer, 1 call, 15 tokens",
            "- This month: $0.003, 2 answers, 2 calls, 30 tokens",
        ]
        assert "- You: $0.0085 of $0.01 a day, renewed <t:" in mine.content
        assert "500,000 tokens a day" in mine.content
        image, alt = await picture(mine)
        assert (image.format, image.size) == ("PNG", (720, 260))
        assert f"{clock.now:%Y-%m-%d}: most on" in alt
        assert (await stage.use("Ben", "usage", of="server")).content == NOT_THEIRS
        stage.pg.allow(general, "manage_guild", member=stage.pg.person("Ben"))
        servers = await stage.use("Ben", "usage", of="server")
        assert servers.flags & EPHEMERAL
        lines = servers.content.splitlines()
        assert "- Today: $0.0075, 2 answers, 2 calls, 75 tokens" in lines
        assert "- openai:stub: $0.009, 3 answers, 3 calls, 90 tokens" in lines
        assert "- answers: $0.009, 3 answers, 3 calls, 90 tokens" in lines
        assert f"- <#{general}>: $0.009, 3 answers, 3 calls, 90 tokens" in lines
        assert any(line.startswith("- This server: 910 tokens of 1,000 tokens a month, renewed <t:") for line in lines)
        assert any(
            line.startswith("- My budget in money for everybody together: 7% of today's is used") for line in lines
        )
        assert "What this server has used a day" in (await picture(servers))[1]


async def test_who_used_nothing_is_told_so_without_a_picture(stub: StubModel) -> None:
    async with open_scene(stub, budgets="off", person_tokens=0, guild_tokens=0) as scene:
        mine = await scene.use("Chloe", "usage")
        assert mine.content.splitlines()[1:] == [
            "- Today: nothing",
            "- Yesterday: nothing",
            "- This month: nothing",
            "You have no budget of your own.",
        ]
        assert not mine.attachments
        servers = await scene.use("Ada", "usage", of="server")
        assert "This server has no budget of its own." in servers.content.splitlines()


async def test_tokens_without_a_price_are_told_apart(stub: StubModel) -> None:
    async with open_scene(stub) as scene:
        await scene.ask("Ada", "what does it cost?")
        told = (await scene.use("Ada", "usage")).content
        assert "- Today: 1 answer, 1 call, 15 tokens" in told
        assert "-# 15 of the tokens have no cost here" in told


async def test_there_is_no_server_in_a_direct_message(stub: StubModel) -> None:
    async with open_scene(stub, direct_messages="open") as scene:
        ada = scene.pg.person("Ada")
        asked = scene.pg.command(scene.pg.dm(ada), ada, "usage", {"of": "server"})
        assert (await scene.pg.reply_to(asked)).content == NO_SERVER
