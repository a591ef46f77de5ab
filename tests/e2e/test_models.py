"""Several models: which of them answers where, what each is shown, and that /why tells which it was."""

from __future__ import annotations

import pytest

from agents.models import UnusableModelError
from place_settings.fields import Level
from playground.model import File
from tests.support.clock import NOON
from tests.support.samples import picture
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Reply, StubModel

STUB, OTHER = "openai-chat:stub", "openai-chat:other"


def choose(scene: Scene, name: str, channel: str) -> None:
    """Chooses the model of one channel."""
    settings, ada = scene.bot.parts.guild_settings, scene.pg.person("Ada")
    settings.change(scene.pg.guild_id, scene.pg.channel(channel), Level.CHANNEL, {"model": name}, by=ada, now=NOON)


async def test_each_place_is_answered_by_its_model_and_why_tells_which(stub: StubModel) -> None:
    async with open_scene(stub, models=(OTHER,)) as scene:
        choose(scene, OTHER, "general")
        await scene.ask("Ada", "hello")
        assert stub.requests[-1]["model"] == "other"
        assert f"; the model was {OTHER}" in (await scene.use("Ada", "why")).content
        await scene.ask("Ada", "hello", channel="random")
        assert stub.requests[-1]["model"] == "stub"
        assert f"; the model was {STUB}" in (await scene.use("Ada", "why", channel="random")).content
        asked = scene.pg.command(
            scene.pg.channel("general"), scene.pg.person("Ada"), "ask", {"question": "alone?"}, None
        )
        await scene.pg.reply_to(asked)
        await scene.until(lambda: len(stub.requests) == 3)
        assert stub.requests[-1]["model"] == "other"


async def test_a_turn_keeps_the_model_it_began_with(stub: StubModel) -> None:
    async with open_scene(stub, models=(OTHER,)) as scene:
        gate = scene.held()
        question = scene.mention("Ada", "hello")
        await scene.until(lambda: stub.requests)
        choose(scene, OTHER, "general")
        await scene.edit(question, f"<@{scene.pg.bot_id}> hello again")
        gate.set()
        await scene.answer_to(question)
        await scene.ask("Ada", "and now?")
        assert [body["model"] for body in stub.requests] == ["stub", "stub", "other"]


async def test_a_model_that_is_no_longer_listed_gives_way_to_the_default(stub: StubModel) -> None:
    async with open_scene(stub) as scene:
        choose(scene, OTHER, "general")
        assert (await scene.ask("Ada", "hello")).content.startswith("You said: ")
        assert stub.requests[-1]["model"] == "stub"
        assert scene.journal.find("model_not_listed", model=OTHER, instead=STUB)


async def test_whether_pictures_are_shown_goes_by_the_model_that_answers(stub: StubModel) -> None:
    cat = File("cat.png", "image/png", picture("PNG"))
    async with open_scene(stub, models=("demo",)) as scene:
        await scene.ask("Ada", "look", attachments=[cat])
        assert "image_url" in str(stub.requests[-1])
        choose(scene, "demo", "random")
        answer = await scene.ask("Ada", "look", channel="random", attachments=[cat])
        assert "demo model" in answer.content
        assert len(stub.requests) == 1


async def test_a_name_in_models_that_cannot_be_used_ends_the_start(stub: StubModel) -> None:
    with pytest.raises(UnusableModelError, match=r"^MODELS 'openrouter:x/y' cannot be used without its key"):
        async with open_scene(stub, models=("openrouter:x/y",)):
            pass


async def test_a_cut_answer_is_still_named(stub: StubModel) -> None:
    async with open_scene(stub) as scene:
        stub.replies.append(Reply("so far", finish="length"))
        await scene.ask("Ada", "hello")
        assert f"; the model was {STUB}" in (await scene.use("Ada", "why")).content
