"""Posts of forums: threads with a title, which may be questions to the room."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from decider import Reason
from playground.model import FORUM, MEDIA, Message
from tests.e2e.test_offers import ANSWER, wait
from tests.support.clock import FakeClock
from tests.support.lives import life, on_disk, open_stage
from tests.support.scene import PATIENCE_SECONDS, Scene
from tests.support.stub_model import Call, Reply, StubModel

TITLE, WORDS = "printer on fire", "It smokes since this morning, and the lamp is red."


@pytest.fixture
async def stage(stub: StubModel, tmp_path: Path) -> AsyncIterator[Scene]:
    stub.default = lambda _: Reply(ANSWER)
    async with open_stage(stub, tmp_path / "state", clock=FakeClock()) as stage:
        yield stage


def forum(stage: Scene, kind: int = FORUM) -> int:
    return stage.pg.add_channel("printers", type=kind, tags=["question", "solved"])


def post(stage: Scene, title: str = TITLE, **how: Any) -> Message:
    """Ada's new post: what opens it."""
    opened = stage.pg.forum_post(stage.pg.channel("printers"), stage.pg.person("Ada"), title, WORDS, **how)
    return stage.pg.messages(opened)[0]


@pytest.mark.parametrize("kind", [FORUM, MEDIA])
async def test_a_mention_in_a_post_is_answered_with_what_the_post_asks_across_a_restart(
    stage: Scene, kind: int
) -> None:
    forum(stage, kind)
    opening = post(stage)
    assert stage.clock
    stage.clock.advance(600)  # its words are older than what else is read of a channel
    async with life(stage):
        await stage.ask("Ben", "what should she do?", channel=TITLE)
        assert f"{TITLE}\n    {WORDS}" in stage.told()
    async with life(stage):
        follow_up = stage.mention("Ben", "and then?", channel=TITLE)
        await stage.answer_to(follow_up)
        assert stage.told().count(WORDS) == 1
        assert not stage.decisions.get(opening.id)


@pytest.mark.parametrize("how", ["forget", "optout"])
async def test_the_title_of_a_post_is_told_and_kept_no_longer_than_what_opens_it(stage: Scene, how: str) -> None:
    forum(stage)
    async with life(stage):
        post(stage)
        await stage.ask("Ben", "what should she do?", channel=TITLE)
        assert f'the post titled "{TITLE}"' in stage.told()
        await stage.use("Ada", how)
        await stage.ask("Ben", "and now?", channel=TITLE)
        assert TITLE not in stage.told()
        assert WORDS not in stage.told()
    assert not on_disk(stage.folder, TITLE)


@pytest.mark.parametrize("when", ["in the conversation", "after the conversation", "while the bot is away"])
async def test_a_title_that_was_changed_is_neither_told_nor_kept(stage: Scene, when: str) -> None:
    forum(stage)
    assert stage.clock
    async with life(stage):
        opening = post(stage)
        stage.clock.advance(1)
        stage.stub.replies.append(Reply(calls=(Call("search_history", json.dumps({"words": TITLE})),)))
        await stage.ask("Ben", "what should she do?", channel=TITLE)
        assert f"{TITLE}\n    {WORDS}" in stage.told()
        if when == "after the conversation":
            stage.clock.advance(600)
            stage.bot.parts.sweep()
            await stage.bot.snapshots.settled()
            stage.pg.change_thread(opening.channel_id, name="smoke")
            await stage.ask("Ben", "and elsewhere?")
        if when == "in the conversation":
            stage.pg.change_thread(opening.channel_id, name="smoke")
            await stage.ask("Ben", "and now?", channel="smoke")
            assert TITLE not in stage.told()
    assert when == "while the bot is away" or not on_disk(stage.folder, TITLE)
    if when == "while the bot is away":
        stage.pg.change_thread(opening.channel_id, name="smoke")
    async with life(stage):
        await stage.ask("Ben", "and then?", channel="smoke")
        assert TITLE not in stage.told()
        assert f"smoke\n    {WORDS}" in stage.told()
    assert not on_disk(stage.folder, TITLE)


@pytest.mark.parametrize("when", ["a tool runs", "a request fails", "the question waits"])
@pytest.mark.parametrize("is_post", [True, False])
async def test_a_title_that_is_changed_while_an_answer_is_made_is_not_told_from_then_on(
    scene: Scene, when: str, *, is_post: bool
) -> None:
    scene.stub.default, gate = lambda _: Reply("I see."), asyncio.Event()
    forum(scene)
    general, ada, ben = scene.pg.channel("general"), scene.pg.person("Ada"), scene.pg.person("Ben")
    thread = post(scene).channel_id if is_post else scene.pg.open_thread(general, ada, TITLE)
    clock = (Call("current_time", "{}", "call-clock"),)
    scene.stub.replies.append(
        Reply("Let me see.", status=500 if when == "a request fails" else 200, before=gate, calls=clock)
    )
    if when == "the question waits":
        scene.stub.replies[0] = Reply("Here you are.", before=gate)
        scene.pg.post(thread, ada, f"<@{scene.pg.bot_id}> hello")
        await scene.until(lambda: scene.stub.requests)
    asked = scene.pg.post(thread, ben, f"<@{scene.pg.bot_id}> how late is it?")
    await scene.decision(asked)
    await scene.until(lambda: scene.stub.requests)
    assert TITLE in scene.told()
    heard = scene.bot.wait_for("thread_update", timeout=PATIENCE_SECONDS)
    scene.pg.change_thread(thread, name="smoke")
    await heard
    gate.set()
    await scene.outcome(asked)
    assert "how late is it?" in scene.told()
    assert len(scene.stub.requests) == 2
    assert f'titled "{TITLE}"' not in scene.told()
    assert f'named "{TITLE}"' not in scene.told()


@pytest.mark.parametrize("way", ["offers are on in the forum", "its tag is listed"])
async def test_a_post_that_nobody_answers_is_offered_an_answer_to(stage: Scene, way: str) -> None:
    """It need not read like a question, and nobody need have spoken before."""
    forum(stage)
    tags = frozenset({"Question"}) if way == "its tag is listed" else frozenset()
    async with life(stage, forum_tags=tags):
        if not tags:
            post(stage, "welcome")
            await stage.use("Ada", "offers", channel="welcome", on={})
        opening = post(stage, tags=["question"])
        await stage.decision(opening)
        wait(stage, 91)
        offer = await stage.card("Nobody has said anything", TITLE)
    async with life(stage, forum_tags=tags):
        stage.press("Ada", offer, "Yes")
        await stage.shows(ANSWER, TITLE)
        assert f"{TITLE}\n    {WORDS}" in stage.told()
        assert len(stage.said(TITLE)) == 2


@pytest.mark.parametrize("way", ["a click", "/offers off"])
async def test_where_it_is_not_wanted_no_tag_has_it_offer_anything(stage: Scene, way: str) -> None:
    forum(stage)
    tags = frozenset({"question"})
    async with life(stage, forum_tags=tags):
        await stage.decision(post(stage, tags=["question"]))
        wait(stage, 91)
        offer = await stage.card("Nobody has said anything", TITLE)
        if way == "a click":
            await stage.pg.reply_to(stage.press("Ada", offer, "Not in this channel"), timeout=10)
        else:
            await stage.use("Ada", "offers", channel=TITLE, off={})
    async with life(stage, forum_tags=tags):
        stage.say("Ada", "it still smokes, what now?", channel=TITLE)
        post(stage, "another one", tags=["question"])
        await stage.ask("Ben", "hello")  # behind it
        here = (stage.pg.channel(TITLE), stage.pg.channel("another one"))
        assert not any(stage.bot.proactive_offers.listens(place) for place in here)


async def test_of_a_post_that_somebody_answered_nothing_is_offered(stage: Scene) -> None:
    forum(stage)
    async with life(stage, forum_tags=frozenset({"question"})):
        await stage.decision(post(stage, tags=["question"]))
        await stage.decision(stage.say("Ben", "pull the plug", channel=TITLE))
        wait(stage, 91)
        assert not stage.bot.parts.offer_channels.get(stage.pg.channel(TITLE)).offer  # type: ignore[union-attr]
        other = stage.mention("Ben", "hello")
        assert (await stage.decision(other)).reason is Reason.EXPLICIT_TRIGGER
        await stage.answer_to(other)
        assert not stage.said(TITLE)


@pytest.mark.parametrize("what", ["its forum", "the server"])
async def test_of_an_archived_post_with_an_offer_nothing_stays_where_it_is_gone_with(stage: Scene, what: str) -> None:
    """The bot knows of it only what it has stored."""
    printers = forum(stage)
    listed = frozenset({"question"})
    async with life(stage, forum_tags=listed):
        await stage.decision(post(stage, tags=["question"]))
        wait(stage, 91)
        await stage.until(lambda: stage.journal.find("offered"))
    stage.pg.change_thread(stage.pg.channel(TITLE), archived=True)
    async with life(stage, forum_tags=listed):
        assert on_disk(stage.folder, WORDS)
        event = "guild_channel_delete" if what == "its forum" else "guild_remove"
        heard = stage.bot.wait_for(event, timeout=PATIENCE_SECONDS)
        if what == "its forum":
            stage.pg.delete_channel(printers)
        else:
            stage.pg.remove_bot()
        await heard
        async with stage.bot.privacy._at_a_time:  # which is held until all is gone
            pass
        assert not len(stage.bot.parts.offer_channels)
    assert not on_disk(stage.folder, WORDS)
