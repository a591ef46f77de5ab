"""What other bots and webhooks post: a part of the conversation like people's words, but never a reason to speak."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from place_settings.fields import Level
from playground.model import Message
from tests.e2e.test_who_may_read import call
from tests.support.lives import kill, life, on_disk
from tests.support.scene import Scene
from tests.support.stub_model import Reply

BUILD = {"title": "Build 77 failed", "description": "undefined symbol frobnicate", "footer": {"text": "main"}}
FAILED = "CI (another bot): [embed] Build 77 failed\n    undefined symbol frobnicate"


def post(scene: Scene, text: str = "", channel: str = "general", **how: Any) -> Message:
    """Has the bot CI post something."""
    if not any(person.name == "CI" for person in scene.pg.world.people):
        scene.pg.add_person("CI")
    return scene.say("CI", text, channel=channel, **{"bot": True, **how})


async def test_it_is_told_with_what_is_asked_behind_it(scene: Scene) -> None:
    await scene.ask("Ada", "is the build running?")
    post(scene, embeds=[BUILD])
    post(scene, "77 is mine", webhook=True, bot=False)
    await scene.ask("Ben", "what does that error mean?")
    told = scene.told()
    assert told.index("is the build running?") < told.index(FAILED) < told.index("CI (another bot): 77 is mine")
    assert told.index("CI (another bot): 77 is mine") < told.index("what does that error mean?")


async def test_it_is_told_where_it_was_posted_before_the_conversation(scene: Scene) -> None:
    post(scene, embeds=[BUILD])
    await scene.ask("Ada", "what does that error mean?")
    assert scene.told().index(FAILED) < scene.told().index("what does that error mean?")


async def test_what_is_deleted_in_the_channel_from_which_it_came_is_gone_here(scene: Scene) -> None:
    """With what tools were asked once it was told. Discord replaces the words, and tells of no edit."""
    await scene.ask("Ada", "hello")
    announced = post(scene, "we meet at bluebell", webhook=True, bot=False)
    scene.stub.replies.extend([call("current_time", timezone="Europe/Berlin"), Reply("Noon.")])
    await scene.ask("Ada", "what time is it there?")
    await scene.bot.snapshots.settled()
    assert on_disk(scene.folder, "Europe/Berlin")
    heard = scene.heard("raw_message_edit", announced)
    scene.pg.world.replace_message(replace(announced, content="[Original Message Deleted]", flags=8))
    await heard
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, "Europe/Berlin")
    assert not on_disk(scene.folder, "bluebell")
    await scene.ask("Ada", "and now?")
    assert "bluebell" not in scene.told()


async def test_a_reply_to_it_quotes_what_its_embeds_say(scene: Scene) -> None:
    failed = post(scene, embeds=[BUILD])
    for number in range(25):  # more than is read of what was said before
        post(scene, f"{number} is queued")
    await scene.ask("Ada", "what does that error mean?", reply_to=failed.id)
    assert "Ada (replying to CI: '[embed] Build 77 failed undefined symbol frobnicate')" in scene.told()


@pytest.mark.parametrize("kind", [{"bot": True}, {"bot": False, "webhook": True}])
async def test_it_is_never_answered_and_answers_nothing(scene: Scene, kind: dict[str, Any]) -> None:
    await scene.use("Ada", "offers", on={})
    answer = await scene.ask("Ada", "hello")
    mention = f"<@{scene.pg.bot_id}>"
    for text in (f"{mention} hello?", "Parley, are you there?", "does anybody know how to fix it?", f"{mention} stop"):
        post(scene, text, **kind)
    last = post(scene, "and why?", reply_to=answer.id, **kind)
    await scene.ask("Ben", "hello")
    assert len(scene.stub.requests) == 2
    assert len(scene.said()) == 2
    assert last.id not in scene.decisions
    channel = scene.bot.parts.offer_channels.get(last.channel_id)
    assert channel
    assert last.author.id not in {message.author_id for message in channel.recent.messages}


async def test_where_the_bot_answers_nobody_any_more_it_is_not_kept(stage: Scene) -> None:
    async with life(stage):
        answer = await stage.ask("Ada", "is the build running?")
        guild_id, blocked = stage.pg.guild_id, {"blocked_channels": [answer.channel_id]}
        by, now = stage.pg.person("Ada"), datetime.now(UTC)
        stage.bot.parts.guild_settings.change(guild_id, guild_id, Level.GUILD, blocked, by=by, now=now)
        post(stage, "the key is 1234")
        await stage.decision(stage.say("Ada", "and now?"))
        conversation = stage.bot.conversations.get(answer.channel_id)
        assert conversation
        assert conversation.messages[-1].message_id == answer.id
        await stage.bot.snapshots.settled()
    assert not on_disk(stage.folder, "the key is 1234")


async def test_its_edits_and_deletions_are_followed_over_restarts(stage: Scene) -> None:
    stage.stub.default = lambda _: Reply("I see.")
    async with life(stage):
        await stage.ask("Ada", "is the build running?")
        secret = post(stage, "the key is 1234")
        failed = post(stage, embeds=[BUILD])
        await stage.ask("Ada", "what does that error mean?")
        assert "1234" in stage.told()
        await kill(stage)
    async with life(stage):
        heard = stage.heard("raw_message_edit", failed)
        passed = [{"type": "rich", "title": "Build 77 passed"}]
        stage.pg.world.edit(stage.pg.world.message(failed.channel_id, failed.id), {"embeds": passed})
        await heard
        await stage.delete(secret)
        await stage.ask("Ada", "and now?")
        told = stage.told()
        assert "CI (another bot): [embed] Build 77 passed" in told
        assert "frobnicate" not in told
        assert "1234" not in told
    assert on_disk(stage.folder, "Build 77 passed")
    assert not on_disk(stage.folder, "frobnicate")
    assert not on_disk(stage.folder, "key is 1234")


async def test_what_it_posted_while_the_bot_was_away_is_taken_up(stage: Scene) -> None:
    async with life(stage):
        await stage.ask("Ada", "is the build running?")
    post(stage, embeds=[BUILD])
    async with life(stage):
        assert not stage.stub.requests
        await stage.ask("Ada", "what does that error mean?")
    assert stage.told().count(FAILED) == 1
