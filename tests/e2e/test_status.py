"""/status: how the bot is in a server, for those who manage it."""

from __future__ import annotations

from pathlib import Path

import pytest

from activity import FaultKind
from commands.status import PAUSED
from decision import NOTHING
from playground.errors import ApiError
from tests.support.clock import FakeClock
from tests.support.lives import life, open_stage
from tests.support.scene import Scene
from tests.support.stub_model import Reply, StubModel

EPHEMERAL = 1 << 6


async def status(scene: Scene) -> list[str]:
    """What a manager is told."""
    scene.pg.allow(scene.pg.channel("general"), "manage_guild", member=scene.pg.person("Ada"))
    told = await scene.use("Ada", "status")
    assert told.flags & EPHEMERAL
    return told.content.splitlines()


async def test_managers_see_health_answers_silences_cost_and_the_last_errors(stub: StubModel, tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage, life(stage):
        assert await status(stage) == [
            "**How I am doing in this server** (today is a day of UTC)",
            f"- Health: well. I was started <t:{int(clock().timestamp())}:R>.",
            "- The model here is openai-chat:stub (default). "
            "There is no other to choose: my owner can add more in MODELS.",
            "- Today: 0 answers, 0 questions declined, 0 failures",
            "- Kept silent: never",
            "- Models used today: nothing",
            "- Nothing went wrong lately.",
        ]
        await stage.ask("Ada", "hello")
        await stage.decision(stage.say("Ben", "nice weather", channel="random"))
        for _ in range(4):
            stub.replies.append(Reply(status=401))
            await stage.ask("Ben", "and now?", channel="random")
            clock.advance(60)
        _, _, _, today, silent, used, title, *faults = await status(stage)
        assert today.startswith("- Today: 1 answer, 0 questions declined, 4 failures; half began within ")
        assert silent == "- Kept silent: 1 × I did not think it was meant for me"
        assert used.endswith("1 answer, 1 call, 15 tokens")
        assert title == "**What went wrong last**"
        at, where = int(clock().timestamp()) - 60, stage.pg.channel("random")
        assert faults[0] == (
            f"- <t:{at}:R> in <#{where}>: The model's provider refused the key or the model's name: "
            "check MODEL and its key."
        )
        assert len(faults) == 3


async def test_others_may_not_use_it_and_what_is_wrong_now_comes_first(scene: Scene) -> None:
    with pytest.raises(ApiError):
        await scene.use("Ben", "status")
    scene.bot.parts.guild_settings.pause(scene.pg.guild_id)
    scene.bot.health.gateway_down()
    assert f"- Health: {PAUSED} the gateway has not been connected for 0 s." in (await status(scene))[1]


async def test_of_other_servers_and_of_the_process_nothing_is_shown(scene: Scene) -> None:
    for elsewhere in (1, 0):
        scene.bot.parts.activity.fault(FaultKind.MODEL, "busy", "The model was overloaded.", elsewhere)
        scene.bot.decisions.add(1, 2, 3, NOTHING, elsewhere)
    lines = await status(scene)
    assert {"- Kept silent: never", "- Nothing went wrong lately."} <= {*lines}
