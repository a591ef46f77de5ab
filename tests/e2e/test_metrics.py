"""What the log says each hour, and at the end, of messages and of decisions."""

from __future__ import annotations

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

import running_bot
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import StubModel
from web.site import Site


async def test_at_the_end_each_message_that_was_answered_has_been_counted_once(scene: Scene) -> None:
    for number in range(3):
        await scene.decision(scene.say("Ben", f"nothing to do with the bot {number}"))
    await scene.ask("Ada", "hello")
    await scene.decision(scene.say("Ben", f"<@{scene.pg.person('Ada')}> shall we go there?"))
    await scene.answer_to(scene.mention("Ada", "and tomorrow?"))
    await scene.bot.shut_down()
    [report] = scene.journal.find("metrics")
    assert (report["total_processed"], report["routed_to_agent"], report["routed_to_gpt5"]) == (2, 2, 2)
    assert report["not_started"] == {"no_trigger": 3}


async def test_each_hour_tells_what_began_no_conversation_since_the_last(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_bot, "REPORT_SECONDS", 0.01)
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


async def test_prometheus_reads_what_a_running_bot_did(scene: Scene) -> None:
    site = Site(scene.bot.health, is_local=True)
    site.show(scene.bot.shown)
    await scene.decision(scene.say("Ben", "nothing to do with the bot"))
    await scene.ask("Ada", "does the secret word get out?")
    async with (
        site.served(0, "127.0.0.1") as address,
        aiohttp.ClientSession() as client,
        client.get(f"{address}/metrics") as response,
    ):
        text = await response.text()
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert values["parley_decisions_total", "no_trigger", "false"] == 1
    assert values["parley_decisions_total", "explicit_trigger", "true"] == 1
    assert values["parley_messages_routed_to_agent_total",] == values["parley_message_read_seconds_count",] == 1
    assert values["parley_turns_total", "answered"] == 1
    assert 0 < values["parley_first_text_seconds_sum",] <= values["parley_answer_seconds_sum",]
    tokens = {name[1:]: value for name, value in values.items() if name[0] == "parley_model_tokens_total"}
    assert tokens == {("in", "openai:stub", "answers"): 10, ("out", "openai:stub", "answers"): 5}
    assert values["parley_conversations",] == values["parley_healthy",] == 1
    assert values["parley_shards_held",] == values["parley_shards",] == 1
    assert values["parley_store_seconds_count", "write"] >= 1
    assert values["process_resident_memory_bytes",] > 0
    people = [str(scene.pg.person(name)) for name in ("Ada", "Ben")]
    assert not [word for word in ("Ada", "secret word", "general", *people) if word in text]
