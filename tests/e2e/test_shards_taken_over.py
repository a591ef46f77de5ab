"""What was open on a shard when its process died goes on in the one that takes it, which has been running meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import discord_io.sharded_client
from bot import Parley
from playground.model import FORUM, Message
from shards import Shards
from tests.e2e.test_asking import DRINK, tool_results
from tests.e2e.test_forum import TITLE, WORDS
from tests.e2e.test_offers import ANSWER, offers, unanswered, wait
from tests.e2e.test_threads import open_thread
from tests.support.clock import FakeClock
from tests.support.lives import kill, open_stage
from tests.support.scene import Scene, make_bot
from tests.support.stub_model import Reply, StubModel

COUNT = 2


@pytest.fixture
async def scene(stub: StubModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr(discord_io.sharded_client, "IDENTIFY_SECONDS", 0.0)
    stub.default = lambda _: Reply(ANSWER)
    async with open_stage(stub, tmp_path / "state", clock=FakeClock(), shards=COUNT) as stage:
        stage.pg.add_guild("elsewhere")
        yield stage


@asynccontextmanager
async def process(scene: Scene, *, takes_over: bool) -> AsyncIterator[Parley]:
    """One that has the shard of the server, or takes it once it has the other."""
    scene.journal.entries.clear()
    scene.decisions.clear()
    scene.stub.requests.clear()
    shard = (scene.pg.guild_id >> 22) % COUNT
    first = 1 - shard if takes_over else shard
    bot = scene.bot = make_bot(scene, shards=Shards(COUNT, [first]))
    connection = asyncio.create_task(bot.start(scene.pg.token))
    try:
        await scene.until(lambda: bot.is_up(first))
        if takes_over:
            await bot.add_shard(shard)
        await scene.until(lambda: bot.is_up(shard))
        yield bot
    finally:
        await bot.close()
        await asyncio.gather(connection, return_exceptions=True)


@pytest.mark.parametrize("how", ["clicked", "typed"])
async def test_what_it_had_asked_is_answered(scene: Scene, how: str) -> None:
    scene.stub.replies.append(Reply(calls=(DRINK,)))
    async with process(scene, takes_over=False):
        card = await scene.ask("Ada", "something to drink, please")
        await kill(scene)
    async with process(scene, takes_over=True):
        if how == "clicked":
            scene.press("Ada", card, "2.")
        else:
            scene.say("Ada", "the second one")
        await scene.shows(ANSWER)
        await scene.until(lambda: not scene.pg.world.message(card.channel_id, card.id).components)
        assert [tool_results(request)[-1] for request in scene.stub.requests] == ["coffee"]
    assert len(scene.said()) == 2


async def test_what_it_had_offered_is_taken_up(scene: Scene) -> None:
    async with process(scene, takes_over=False):
        await offers(scene, "on")
        question = await unanswered(scene)
        wait(scene, 90)
        card = await scene.card("Shall I")
        await scene.until(lambda: scene.journal.find("offered"))
        await kill(scene)
    async with process(scene, takes_over=True):
        scene.press("Ben", card, "Yes, please")
        assert (await scene.answer_to(question)).content == ANSWER
        await scene.shows("✓ Yes, please")


@pytest.mark.parametrize("kind", ["thread", "post"])
async def test_a_conversation_in_a_thread_goes_on_and_an_answer_half_said_is_finished_in_its_place(
    scene: Scene, kind: str
) -> None:
    async with process(scene, takes_over=False):
        if kind == "post":
            place = scene.pg.forum_post(
                scene.pg.add_channel("printers", type=FORUM), scene.pg.person("Ada"), TITLE, WORDS
            )
        else:
            place = open_thread(scene, "Ada", "names")

        def own() -> list[Message]:
            return [message for message in scene.pg.messages(place) if message.author.id == scene.pg.bot_id]

        def say(text: str) -> Message:
            return scene.pg.post(place, scene.pg.person("Ada"), text)

        await scene.answer_to(say(f"<@{scene.pg.bot_id}> my bicycle is called Xanadu"))
        scene.halted()
        asked = say(f"<@{scene.pg.bot_id}> and what is it called?")
        await scene.until(lambda: len(own()) == 2)
        half = own()[-1]
        await kill(scene)
    async with process(scene, takes_over=True):
        answer = await scene.answer_to(asked)
        assert (answer.id, answer.content) == (half.id, ANSWER)
        await scene.answer_to(say("and what is yours called?"))
        assert scene.told().count("Xanadu") == 1
    assert len(own()) == 3
