"""A server's own managers set it up in Discord, and the bot does as they set: commands, cards, restarts."""

from __future__ import annotations

from typing import Any

import pytest

from commands.place_edge import NOT_THE_CHANNELS, NOT_THE_SERVERS
from place_settings.fields import Level
from playground.errors import ApiError
from tests.commands.support import line_of, words_of
from tests.support.controls import fill, pick, run
from tests.support.lives import life
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import StubModel

OTHER = "openai-chat:other"


async def said(scene: Scene, who: str, words: str, **options: Any) -> str:
    return words_of(await scene.pg.reply_to(run(scene.pg, who, words, **options)))


async def test_a_persona_for_one_channel_is_set_on_the_card_and_obeyed(scene: Scene) -> None:
    card = await scene.pg.reply_to(run(scene.pg, "Ada", "parley settings"))
    await scene.pg.reply_to(
        await fill(scene.pg, pick(scene.pg, "Ada", card, "Change", "Persona"), {"For": "A pirate."})
    )
    await scene.ask("Ben", "who are you?")
    assert "A pirate." in scene.told()
    await scene.ask("Ben", "who are you?", channel="random")
    assert "A pirate." not in scene.told()


async def test_one_role_only_is_answered_and_the_others_see_why_not(scene: Scene) -> None:
    scene.pg.add_role("Helpers", members=[scene.pg.person("Ben")])
    await said(scene, "Ada", "parley set", setting="Allowed roles", value="@Helpers", where=int(Level.GUILD))
    await scene.ask("Ben", "hello?")
    refused = await scene.decision(scene.mention("Chloe", "hello?"))
    assert not refused.respond
    assert "I do not answer you here: “Allowed roles”, set for this server." in await said(
        scene, "Chloe", "parley show"
    )


async def test_a_card_from_before_a_restart_still_sets_what_it_is_of(stage: Scene) -> None:
    async with life(stage):
        assert await said(stage, "Ada", "parley set", setting="eagerness", value="eager", where=int(Level.GUILD))
        card = await stage.pg.reply_to(run(stage.pg, "Ada", "parley settings"))
        form = pick(stage.pg, "Ada", card, "Change", "Judge")
        await stage.pg.form_of(form)
    async with life(stage):
        card = await stage.pg.reply_to(await fill(stage.pg, form, {"For": "on"}))
        assert line_of(card, "Judge: ") == "**on** · set here"
        assert line_of(card, "Eagerness: ") == "eager · from this server"
        page = await stage.pg.reply_to(pick(stage.pg, "Ada", card, "Change", "Blocked members"))
        await stage.pg.reply_to(pick(stage.pg, "Ada", page, "Pick members", "Chloe"))
        assert (await stage.decision(stage.mention("Chloe", "hello?"))).respond is False


async def test_a_thread_and_a_category_have_settings_of_their_own(scene: Scene) -> None:
    pg, ada = scene.pg, scene.pg.person("Ada")
    pg.move_channel(pg.channel("general"), pg.add_category("Help"))
    await said(scene, "Ada", "parley set", setting="eagerness", value="quiet", where=int(Level.CATEGORY))
    pg.open_thread(pg.channel("general"), ada, "a thread")
    options: dict[str, Any] = {"channel": "a thread", "where": int(Level.THREAD)}
    await said(scene, "Ada", "parley set", setting="judge", value="off", **options)
    card = await pg.reply_to(run(pg, "Ada", "parley settings", **options))
    assert line_of(card, "Eagerness: ") == "quiet · from this category"
    assert line_of(card, "Judge: ") == "**off** · set here"
    assert "Settings of this thread, #a thread" in words_of(card)
    refused = await said(scene, "Ben", "parley settings", **options)
    assert refused == NOT_THE_CHANNELS


async def test_the_model_that_is_chosen_answers_from_the_next_question_on(stub: StubModel) -> None:
    async with open_scene(stub, models=(OTHER,)) as scene:
        assert "The model here is openai-chat:stub (default)." in await said(scene, "Ada", "model")
        assert "use openai-chat:stub or openai-chat:other" in await said(scene, "Ada", "model", name="openai-chat:none")
        gate = scene.held()
        question = scene.mention("Ben", "hello")
        await scene.until(lambda: stub.requests)
        await said(scene, "Ada", "model", name=OTHER)
        gate.set()
        await scene.answer_to(question)
        await scene.ask("Ben", "and now?")
        assert [body["model"] for body in stub.requests] == ["stub", "other"]


async def test_a_model_that_is_taken_away_gives_way_to_the_default_and_is_named(stage: Scene) -> None:
    async with life(stage, models=(OTHER,)):
        await said(stage, "Ada", "model", name=OTHER)
    async with life(stage):
        gone = "“openai-chat:other” can no longer be chosen, so the default answers: openai-chat:stub."
        assert gone in await said(stage, "Ada", "model")
        assert gone in await said(stage, "Ben", "parley show")
        await stage.ask("Ben", "hello")
        assert stage.stub.requests[-1]["model"] == "stub"


async def test_each_command_by_one_who_may_and_one_who_may_not(scene: Scene) -> None:
    setting = {"setting": "judge"}
    for words, options, done in (
        ("parley settings", {}, "Settings of this channel, #general"),
        ("parley set", setting | {"value": "on"}, "Judge, for this channel: on."),
        ("parley reset", setting, "Judge, for this channel: inherited again, "),
    ):
        assert done in await said(scene, "Ada", words, **options)
        assert await said(scene, "Ben", words, **options) == NOT_THE_CHANNELS
        assert await said(scene, "Ben", words, **options, where=int(Level.GUILD)) == NOT_THE_SERVERS
    for who in ("Ada", "Ben"):
        assert "What applies in #general" in await said(scene, who, "parley show")
    with pytest.raises(ApiError):  # Discord does not show it to them
        run(scene.pg, "Ben", "model")
