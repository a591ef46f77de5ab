"""What the log says each hour, and at the end, of messages and of decisions."""

from __future__ import annotations

import pytest

import bot
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import StubModel


async def test_at_the_end_each_message_has_been_counted_once(scene: Scene) -> None:
    for number in range(3):
        await scene.decision(scene.say("Ben", f"nothing to do with the bot {number}"))
    await scene.ask("Ada", "hello")
    await scene.answer_to(scene.mention("Ada", "and tomorrow?"))
    await scene.bot.shut_down()
    [report] = scene.journal.find("metrics")
    assert (report["total_processed"], report["routed_to_agent"], report["routed_to_gpt5"]) == (2, 2, 2)
    assert report["not_started"] == {"no_trigger": 3}


async def test_each_hour_tells_what_began_no_conversation_since_the_last(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot, "REPORT_SECONDS", 0.01)
    async with open_scene(stub) as scene:
        for count in (1, 2):
            await scene.decision(scene.say("Ben", "hm"))
            assert await _told(scene, count) == [{"no_trigger": 1}] * count


async def _told(scene: Scene, count: int) -> list[dict[str, int]]:
    """What was told so far, once that is so much."""

    def told() -> list[dict[str, int]]:
        return [report["not_started"] for report in scene.journal.find("metrics") if report["not_started"]]

    await scene.until(lambda: len(told()) >= count)
    return told()
