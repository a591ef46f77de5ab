"""Threads, posts and direct messages: what holds in a channel holds there, with a kill or a restart in the middle."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from commands.privacy_commands import EXPORTED, FORGOTTEN, OPTED_OUT
from decider import Reason
from discord_io.actions import CANNOT_READ, READ_BY_FEWER
from discord_io.prompt_cards import EXPIRED
from persistence import catchup
from playground.model import FORUM, Message
from tests.e2e.test_asking import DRINK, tool_results
from tests.e2e.test_forum import TITLE, WORDS
from tests.e2e.test_other_bots import BUILD, FAILED, post
from tests.e2e.test_threads import open_thread
from tests.e2e.test_who_may_read import call, link
from tests.support.lives import kill, life, on_disk
from tests.support.scene import PATIENCE_SECONDS, Scene
from tests.support.stub_model import Reply

pytestmark = pytest.mark.slow

SETTINGS = {"direct_messages": "open", "decision_log": "content"}
SECRET = "Xanadu"
TELLS = f"my bicycle is called {SECRET}"


@pytest.fixture
def scene(stage: Scene) -> Scene:
    stage.stub.default = lambda _: Reply("I see.")
    return stage


def begin(scene: Scene, kind: str) -> int:
    """The place, which Ada opens."""
    if kind == "direct message":
        return scene.pg.dm(scene.pg.person("Ada"))
    if kind == "post":
        forum = scene.pg.add_channel("printers", type=FORUM)
        return scene.pg.forum_post(forum, scene.pg.person("Ada"), TITLE, WORDS)
    thread = open_thread(scene, "Ada", "names", private=kind == "private thread")
    scene.pg.add_to_thread(thread, scene.pg.bot_id)
    return thread


def say(scene: Scene, place: int, text: str, who: str = "Ada") -> Message:
    return scene.pg.post(place, scene.pg.person(who), f"<@{scene.pg.bot_id}> {text}")


async def use(scene: Scene, place: int, name: str) -> Message:
    """Ada uses a command."""
    return await scene.pg.reply_to(scene.pg.command(place, scene.pg.person("Ada"), name, {}))


def own(scene: Scene, place: int) -> list[Message]:
    return [m for m in scene.pg.messages(place) if m.author.id == scene.pg.bot_id]


@pytest.mark.parametrize(
    ("kind", "is_archived"), [("private thread", True), ("post", False), ("direct message", False)]
)
async def test_an_answer_that_a_kill_cuts_off_is_finished_once_where_it_was_asked(
    scene: Scene, kind: str, is_archived: bool
) -> None:
    place = begin(scene, kind)
    async with life(scene, **SETTINGS):
        await scene.answer_to(say(scene, place, TELLS))
        scene.halted()
        question = say(scene, place, "and what is it called?")
        await scene.until(lambda: len(own(scene, place)) == 2)
        half = own(scene, place)[-1]
        await kill(scene)
    if is_archived:
        scene.pg.change_thread(place, archived=True)
    async with life(scene, **SETTINGS):
        answer = await scene.answer_to(question)
        assert (answer.id, answer.content) == (half.id, "I see.")
        await scene.answer_to(say(scene, place, "and mine?"))
        assert scene.told().count(SECRET) == 1
    assert len(own(scene, place)) == 3


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("private thread", "typed"),
        ("post", "clicked"),
        ("thread", "too late"),
        ("direct message", "typed"),
        ("direct message", "clicked"),
        ("direct message", "too late"),
    ],
)
async def test_what_it_asks_there_is_answered_over_a_restart_or_expires(scene: Scene, kind: str, how: str) -> None:
    place = begin(scene, kind)
    scene.stub.replies.append(Reply(calls=(DRINK,)))
    async with life(scene, **SETTINGS):
        if how == "too late":
            then = datetime.now(UTC) - timedelta(hours=1)
            scene.bot.states._clock = scene.bot.prompts._clock = lambda: then
        card = await scene.answer_to(say(scene, place, "something to drink, please"))
        await kill(scene)
    async with life(scene, **SETTINGS):
        if how == "clicked":
            scene.press("Ada", card, "2.")
        elif how == "typed":
            scene.pg.post(place, scene.pg.person("Ada"), "the second one")
        if how == "too late":
            await scene.until(lambda: EXPIRED in scene.pg.world.message(place, card.id).content)
        else:
            await scene.until(lambda: "I see." in [m.content for m in own(scene, place)])
            assert tool_results(scene.stub.requests[-1]) == ["coffee"]
        await scene.until(lambda: not scene.pg.world.message(place, card.id).components)
        await scene.at_rest()


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("thread", "forgotten"),
        ("thread", "expired"),
        ("thread", "left"),
        ("private thread", "opted out"),
        ("direct message", "forgotten"),
        ("direct message", "expired"),
    ],
)
async def test_what_goes_there_goes_from_every_file_after_a_kill(scene: Scene, kind: str, what: str) -> None:
    place = begin(scene, kind)
    async with life(scene, **SETTINGS):
        await scene.answer_to(say(scene, place, TELLS))
        scene.held()
        question = say(scene, place, f"is {SECRET} a good name?")
        await scene.until(lambda: len(scene.stub.requests) == 2)
        await kill(scene)
    assert on_disk(scene.folder, SECRET)
    if kind == "thread":
        scene.pg.change_thread(place, archived=True)
    async with life(scene, **SETTINGS):
        await scene.answer_to(question)
        if kind == "thread":
            heard = scene.bot.wait_for("thread_update", timeout=PATIENCE_SECONDS)
            scene.pg.change_thread(place, archived=True)
            await heard
        where = scene.pg.channel("general") if kind == "thread" else place
        if what == "forgotten":
            exported = await use(scene, where, "export")
            assert exported.content == EXPORTED
            assert len(exported.attachments) == 1
            assert (await use(scene, where, "forget")).content == FORGOTTEN
        elif what == "opted out":
            assert (await use(scene, where, "optout")).content == OPTED_OUT
        elif what == "expired":
            await scene.bot.privacy.expire(datetime.now(UTC) + timedelta(seconds=1))
        else:
            left = scene.bot.wait_for("guild_remove", timeout=PATIENCE_SECONDS)
            scene.pg.remove_bot()
            await left
            async with scene.bot.privacy._at_a_time:  # which is held until all is gone
                pass
            scene.bot.snapshots.purge(place)
            assert not scene.bot.conversations.get(place)
        await scene.bot.snapshots.settled()
        assert not on_disk(scene.folder, SECRET)
    assert not on_disk(scene.folder, SECRET)


async def test_a_third_person_ends_what_two_had_over_a_restart(scene: Scene) -> None:
    """Whom somebody adds or removes Discord tells; who comes alone is known after a start. It may be removed, too."""
    place = begin(scene, "thread")

    async def reason(who: str, text: str) -> str:
        decision = await scene.decision(scene.pg.post(place, scene.pg.person(who), text))
        await scene.at_rest()
        return decision.reason

    async with life(scene):
        await scene.answer_to(say(scene, place, "hello"))
        assert await reason("Ada", "my cat is grey, by the way") is Reason.ALONE_TOGETHER
        await kill(scene)
    async with life(scene):
        assert await reason("Ada", "it sleeps all day long") is Reason.ALONE_TOGETHER
        scene.pg.add_to_thread(place, scene.pg.person("Ben"), by=scene.pg.person("Ada"))
        assert await reason("Ada", "it is really cold today") is not Reason.ALONE_TOGETHER
        scene.pg.leave_thread(place, scene.pg.person("Ben"), by=scene.pg.person("Ada"))
        assert await reason("Ada", "my dog is brown, by the way") is Reason.ALONE_TOGETHER
        gone = scene.bot.wait_for("thread_remove", timeout=PATIENCE_SECONDS)
        scene.pg.leave_thread(place, scene.pg.bot_id)
        await gone
        assert await reason("Ada", "my bird is red, by the way") is not Reason.ALONE_TOGETHER
        scene.pg.add_to_thread(place, scene.pg.bot_id)
        await kill(scene)
    scene.pg.add_to_thread(place, scene.pg.person("Chloe"))
    async with life(scene):
        assert await reason("Ada", "it is really warm today") is not Reason.ALONE_TOGETHER


async def test_of_more_threads_than_it_may_read_it_says_which_are_left(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catchup, "MAX_REQUESTS", 10)
    names = [f"thread {number}" for number in range(30)]
    threads = [open_thread(scene, "Ada", name) for name in names]
    async with life(scene):
        await scene.ask("Ada", "hello", channel=names[3])
        await kill(scene)
    asked = [say(scene, thread, "what is a good name for a cat?", "Ben") for thread in threads]
    async with life(scene, turns_per_user_minute=100):
        answered = [asked[3], *asked[21:]]
        for question in answered:
            await scene.answer_to(question)
        (cut,) = scene.journal.find("catch_up_cut")
        assert (cut["channels_with_news"], cut["read_whole"], cut["requests"]) == (
            31,
            10,
            10,
        )  # in their channel, too, Discord says that they were opened
        await scene.at_rest()
        assert sum(bool(own(scene, thread)) for thread in threads) == 10


async def test_what_another_bot_posts_there_is_told_over_a_restart(scene: Scene) -> None:
    place = begin(scene, "private thread")
    scene.pg.add_to_thread(place, scene.pg.add_person("CI"))
    async with life(scene):
        await scene.answer_to(say(scene, place, "is the build running?"))
        before = post(scene, embeds=[BUILD], channel="names")
        await kill(scene)
    behind = post(scene, "77 is mine", channel="names")
    async with life(scene):
        await scene.answer_to(say(scene, place, "what does that error mean?"))
        told = scene.told()
        assert told.index("is the build running?") < told.index(FAILED) < told.index("77 is mine")
        assert told.index("77 is mine") < told.index("what does that error mean?")
        assert {before.id, behind.id}.isdisjoint(scene.decisions)
    assert len(own(scene, place)) == 2


@pytest.mark.parametrize("is_private", [False, True])
async def test_a_link_into_an_archived_thread_is_followed_as_into_an_active_one(scene: Scene, is_private: bool) -> None:
    place = begin(scene, "private thread" if is_private else "thread")
    said = scene.pg.post(place, scene.pg.person("Ada"), TELLS)
    scene.pg.change_thread(place, archived=True)
    async with life(scene):
        expected = (READ_BY_FEWER, CANNOT_READ) if is_private else (TELLS, TELLS)
        for who, told in zip(("Ada", "Ben"), expected, strict=True):
            scene.stub.replies.extend([call("read_message", link=link(scene, said)), Reply("Noted.")])
            await scene.ask(who, f"what does {link(scene, said)} say?")
            assert told in tool_results(scene.stub.requests[-1])[-1], who


async def test_a_place_that_vanishes_between_decision_and_answer_costs_no_other_its_answer(scene: Scene) -> None:
    place = begin(scene, "post")
    async with life(scene):
        await scene.ask("Ben", "hello")
        scene.held()
        say(scene, place, TELLS)
        await scene.until(lambda: len(scene.stub.requests) == 2)
        await kill(scene)
    scene.pg.delete_channel(place)
    async with life(scene):
        await scene.ask("Ben", "hello again")
        await scene.at_rest()
        assert not scene.journal.find("turn_broken")
        assert SECRET not in scene.told()
    async with life(scene):
        await scene.ask("Ben", "and now?")
        assert len(scene.stub.requests) == 1
    assert len(own(scene, scene.pg.channel("general"))) == 3


async def test_what_was_said_in_a_thread_before_it_came_was_not_said_to_it(scene: Scene) -> None:
    async with life(scene):
        await scene.ask("Ben", "hello")
    thread = open_thread(scene, "Ada", "names", private=True)
    note = scene.pg.post(thread, scene.pg.person("Ada"), "a surprise party for Ben would be good")
    await asyncio.sleep(0.01)
    scene.pg.add_to_thread(thread, scene.pg.bot_id, by=scene.pg.person("Ada"))
    question = scene.pg.post(thread, scene.pg.person("Ada"), "what can we give him?")
    async with life(scene):
        await scene.answer_to(question)
        assert (await scene.decision(note)).reason is Reason.NO_TRIGGER
        assert (await scene.decision(question)).reason is Reason.ALONE_TOGETHER
    assert len(own(scene, thread)) == 1
