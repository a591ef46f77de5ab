"""THREADS=open: a longer conversation goes on in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import discord
import pytest

from channel_conversation import LONG_ANSWERS
from commands.thread_clicks import ASKED, BUSY, NOT_YOURS, REFUSED, TOO_LATE, UNTITLED
from decider import Reason
from playground.model import Message
from tests.e2e.test_asking import DRINK
from tests.e2e.test_bursts import say
from tests.e2e.test_threads import open_thread
from tests.e2e.test_who_may_read import newcomer
from tests.support.lives import kill, life, on_disk, waking
from tests.support.scene import PATIENCE_SECONDS, Scene, choices
from tests.support.stub_model import Reply
from turns.endings import RESTARTING

QUESTIONS = ["what is a good name for a cat?", *(f"and another one, number {n}?" for n in range(2, LONG_ANSWERS + 1))]
BUTTON = "Go on in a thread"


async def long_talk(scene: Scene) -> list[Message]:
    """Ada's questions are answered, so many that it asks whether to go on elsewhere. Returns its answers."""
    scene.stub.replies.extend(Reply(f"Miso {number}.") for number in range(1, LONG_ANSWERS + 1))
    return [await scene.ask("Ada", text) for text in QUESTIONS]


def buttons(message: Message) -> list[str]:
    return [label for label, *_ in choices(message)]


def now(scene: Scene, message: Message) -> Message:
    return scene.pg.world.find_message(message.id)


async def test_a_longer_conversation_goes_on_in_a_thread_and_nothing_is_said_twice(stage: Scene) -> None:
    async with life(stage, threads="open"):
        answers = await long_talk(stage)
        assert [buttons(now(stage, answer)) for answer in answers] == [[]] * (LONG_ANSWERS - 1) + [[BUTTON]]
        stage.stub.replies.append(Reply("Miso, once more."))
        assert not buttons(await stage.ask("Ada", "and a last one?"))  # it is asked once
        said = len(stage.said())
        card = answers[-1]
        stage.press("Ada", now(stage, card), BUTTON)
        await stage.until(lambda: card.id in stage.pg.world.threads)
        thread = stage.pg.world.threads[card.id]
        assert thread.name == QUESTIONS[0]
        assert not buttons(now(stage, card))
        await stage.until(lambda: stage.pg.person("Ada") in stage.pg.world.thread(thread).members)
        stage.stub.replies.append(Reply("For a dog: Rex."))
        follow_up = stage.say("Ada", "and for a dog?", channel=thread.name)
        assert (await stage.answer_to(follow_up)).content == "For a dog: Rex."
        assert [stage.told().count(f"@Parley {text}") for text in QUESTIONS] == [1] * LONG_ANSWERS
        assert [m.content for m in stage.said(thread.name) if m.content] == ["For a dog: Rex."]
        assert len(stage.said()) == said
        elsewhere = stage.say("Ada", "I go for a walk")
        assert not (await stage.decision(elsewhere)).respond
        await stage.delete(next(m for m in stage.pg.messages(card.channel_id) if QUESTIONS[1] in m.content))
    async with life(stage, threads="open"):
        stage.stub.replies.append(Reply("For a fish: Fin."))
        await stage.answer_to(stage.say("Ada", "and for a fish?", channel=thread.name))
        assert "For a dog: Rex." in stage.told()
        assert QUESTIONS[1] not in stage.told()
        removed = stage.bot.wait_for("thread_remove", timeout=PATIENCE_SECONDS)
        stage.pg.leave_thread(card.id, stage.pg.bot_id, by=stage.pg.person("Ada"))
        await removed
        walk = stage.say("Ada", "I go for a walk", channel=thread.name)
        assert (await stage.decision(walk)).reason is not Reason.ALONE_TOGETHER
    assert not on_disk(stage.folder, QUESTIONS[1])


@pytest.mark.parametrize("who", ["Ben", "Ada"])
async def test_who_may_not_read_the_history_gets_no_title_out_of_it(stage: Scene, who: str) -> None:
    """Whoever clicks: all who see the channel read it."""
    newcomer(stage)
    async with life(stage, threads="open"):
        stage.stub.replies.extend(Reply(f"Miso {number}.") for number in range(LONG_ANSWERS))
        asked = [await stage.ask(who, text) for who, text in zip(["Ada", "Ben", "Ada", "Ada"], QUESTIONS, strict=True)]
        card = asked[-1]
        stage.press(who, now(stage, card), BUTTON)
        await stage.until(lambda: card.id in stage.pg.world.threads)
        assert stage.pg.world.threads[card.id].name == UNTITLED


async def test_what_is_deleted_in_the_channel_goes_from_a_thread_that_is_archived(stage: Scene) -> None:
    async with life(stage, threads="open"):
        card = (await long_talk(stage))[-1]
        stage.press("Ada", now(stage, card), BUTTON)
        await stage.until(lambda: card.id in stage.pg.world.threads)
        thread = stage.pg.world.threads[card.id]
        stage.stub.replies.append(Reply("For a dog: Rex."))
        await stage.answer_to(stage.say("Ada", "and for a dog?", channel=thread.name))
        heard = stage.bot.wait_for("thread_update", timeout=PATIENCE_SECONDS)
        stage.pg.change_thread(thread.id, archived=True)
        await heard
        assert stage.bot.get_channel(thread.id) is None
        await stage.delete(next(m for m in stage.pg.messages(card.channel_id) if QUESTIONS[1] in m.content))
        stage.stub.replies.append(Reply("For a fish: Fin."))
        await stage.answer_to(stage.say("Ada", "and for a fish?", channel=thread.name))
        assert QUESTIONS[1] not in stage.told()
    assert not on_disk(stage.folder, QUESTIONS[1])


@pytest.mark.parametrize("how", ["forget", "delete"])
async def test_a_question_that_is_gone_does_not_stay_as_the_title_of_the_thread(stage: Scene, how: str) -> None:
    async with life(stage, threads="open"):
        card = (await long_talk(stage))[-1]
        stage.press("Ada", now(stage, card), BUTTON)
        await stage.until(lambda: card.id in stage.pg.world.threads)
        thread = stage.pg.world.threads[card.id]
        await stage.ask("Ben", "and for a dog?", channel=thread.name)
        if how == "forget":
            await stage.use("Ada", "forget")
        else:
            await stage.delete(next(m for m in stage.pg.messages(card.channel_id) if QUESTIONS[0] in m.content))
        await stage.ask("Ben", "and for a fish?", channel=thread.name)
        assert QUESTIONS[0] not in stage.told()
    assert not on_disk(stage.folder, QUESTIONS[0])


async def test_whose_words_an_answer_of_before_has_is_known_in_the_thread(stage: Scene) -> None:
    secret = "Chloe's code is bluebell."
    async with life(stage, threads="open"):
        stage.stub.replies.extend([Reply("I see."), Reply(secret)])
        await stage.ask("Chloe", "my code is bluebell")
        answer = await stage.ask("Ben", "what did Chloe say?")
        stage.bot.conversations.end(answer.channel_id)
        for number in range(25):  # so that of what was said before nothing else tells of her
            stage.say("Ben", f"by the way, number {number}")
        await stage.answer_to(stage.mention("Ben", "so that is it?", reply_to=answer.id))
        assert secret in stage.told()
        card = (await long_talk(stage))[-2]
        stage.press("Ada", now(stage, card), BUTTON)
        await stage.until(lambda: card.id in stage.pg.world.threads)
        await stage.use("Chloe", "forget")
        await stage.ask("Ben", "and for a dog?", channel=stage.pg.world.threads[card.id].name)
        assert "so that is it?" in stage.told()
        assert secret not in stage.told()


async def test_another_bots_post_is_no_question_that_a_thread_is_named_by(stage: Scene) -> None:
    async with life(stage, threads="open"):
        stage.stub.default = lambda _: Reply("Miso.")
        await stage.answer_to(first := stage.mention("Ada", "hello"))
        stage.say("Ben", "Build 77 failed", webhook=True)
        card = (await long_talk(stage))[-2]
        await stage.delete(first)
        stage.press("Ada", now(stage, card), BUTTON)
        await stage.until(lambda: card.id in stage.pg.world.threads)
        assert stage.pg.world.threads[card.id].name == QUESTIONS[0]


@pytest.mark.parametrize("missing", ["create_public_threads", "send_messages_in_threads"])
async def test_where_it_may_not_it_does_not_ask(stage: Scene, missing: str) -> None:
    stage.pg.deny(stage.pg.channel("general"), missing)
    async with life(stage, threads="open"):
        assert not any(buttons(now(stage, answer)) for answer in await long_talk(stage))


async def test_a_click_that_cannot_be_followed_says_why(stage: Scene) -> None:
    async with life(stage, threads="open"):
        card = now(stage, (await long_talk(stage))[-1])
        assert await said_to(stage, "Ben", card) == NOT_YOURS
        gate = stage.held()
        question = stage.mention("Ada", "wait, what?")
        await stage.until(lambda: len(stage.stub.requests) == LONG_ANSWERS + 1)
        assert await said_to(stage, "Ada", card) == BUSY
        gate.set()
        await stage.answer_to(question)
        stage.pg.deny(stage.pg.channel("general"), "create_public_threads")
        stage.press("Ada", card, BUTTON)
        await stage.until(lambda: [sent for sent in stage.pg.requests if REFUSED in str(sent.body)])
        stage.stub.replies.append(Reply("Still here."))
        await stage.ask("Ada", "so we stay?")
        assert QUESTIONS[0] in stage.told()


async def test_a_click_after_the_conversation_is_over_says_so(stage: Scene) -> None:
    async with life(stage, threads="open"):
        card = now(stage, (await long_talk(stage))[-1])
        stage.bot.conversations.end(card.channel_id)
        assert await said_to(stage, "Ada", card) == TOO_LATE
        stage.stub.replies.append(Reply("Sushi."))
        answer = await stage.ask("Ada", "what shall I eat?")
        assert QUESTIONS[0] in stage.told()  # the new one is told what was said before it, and is short all the same
        assert not buttons(now(stage, answer))


async def test_what_was_said_in_the_channel_is_known_in_the_thread_after_a_restart(stage: Scene) -> None:
    async with life(stage, threads="open"):
        card = now(stage, (await long_talk(stage))[-1])
        stage.press("Ada", card, BUTTON)
        await stage.until(lambda: card.id in stage.pg.world.threads)
    async with life(stage, threads="open"):
        stage.stub.replies.append(Reply("Rex."))
        await stage.answer_to(stage.say("Ada", "and for a dog?", channel=stage.pg.world.threads[card.id].name))
        assert [stage.told().count(f"@Parley {text}") for text in QUESTIONS] == [1] * LONG_ANSWERS


async def test_what_is_still_heard_out_or_was_asked_is_not_lost_by_a_click(stage: Scene) -> None:
    async with life(stage, threads="open", burst_seconds=60):
        card = now(stage, (await long_talk(stage))[-1])
        question = await say(stage, "Ada", "@Parley tell me more of it")
        assert await said_to(stage, "Ada", card) == BUSY
        stage.stub.replies.extend([Reply(calls=(DRINK,)), Reply("Coffee it is.")])
        await stage.bot.bursts.end()
        prompt = await stage.answer_to(question)
        await stage.at_rest()
        assert await said_to(stage, "Ada", card) == ASKED
        stage.press("Ada", prompt, "2.")
        await stage.shows("Coffee it is.")


async def test_what_was_missed_in_the_channel_is_answered_there_before_a_click_counts(
    stage: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commands.items.CLICK_PATIENCE_SECONDS", 0.05)
    async with life(stage, threads="open"):
        card = now(stage, (await long_talk(stage))[-1])
    missed = stage.say("Ada", "and for a dog?")
    gate = asyncio.Event()
    reading = stage.pg.faults.add("GET", r"/messages$", delay_event=gate)
    async with waking(stage, threads="open"):
        await stage.until(lambda: reading.hits)
        assert await said_to(stage, "Ada", card) == RESTARTING
        gate.set()
        await stage.answer_to(missed)


async def test_what_was_begun_in_the_channel_while_no_thread_could_be_opened_goes_on(stage: Scene) -> None:
    async with life(stage, threads="open"):
        card = now(stage, (await long_talk(stage))[-1])
        stage.pg.deny(stage.pg.channel("general"), "create_public_threads")
        gate = asyncio.Event()
        interrupt(stage, "/threads", gate.wait, is_first=True)
        stage.press("Ada", card, BUTTON)
        await stage.until(lambda: stage.bot.conversations.get(card.channel_id) is None)
        stage.stub.replies.append(Reply("Polly."))
        await stage.ask("Ben", "a name for a parrot?")
        gate.set()
        await stage.until(lambda: [sent for sent in stage.pg.requests if REFUSED in str(sent.body)])
        await stage.answer_to(stage.mention("Ben", "and another one?"))
        assert "parrot" in stage.told()


@pytest.mark.parametrize("how", ["deleted", "edited"])
async def test_what_goes_from_the_channel_while_the_thread_is_opened_goes_from_there(stage: Scene, how: str) -> None:
    async with life(stage, threads="open"):
        card = now(stage, (await long_talk(stage))[-1])
        gone = next(m for m in stage.pg.messages(card.channel_id) if QUESTIONS[1] in m.content)
        gate = asyncio.Event()
        interrupt(stage, "/threads", gate.wait, is_first=True)
        stage.press("Ada", card, BUTTON)
        await stage.until(lambda: stage.bot.conversations.get(card.channel_id) is None)
        if how == "deleted":
            await stage.delete(gone)
        else:
            await stage.edit(gone, "never mind")
        gate.set()
        await stage.until(lambda: card.id in stage.pg.world.threads)
        await stage.answer_to(stage.say("Ada", "and for a dog?", channel=stage.pg.world.threads[card.id].name))
        assert QUESTIONS[2] in stage.told()
        assert QUESTIONS[1] not in stage.told()
        await stage.bot.snapshots.settled()
        assert not on_disk(stage.folder, QUESTIONS[1])


async def test_a_kill_before_the_thread_is_opened_leaves_the_conversation_where_it_was(stage: Scene) -> None:
    async with life(stage, threads="open"):
        card = now(stage, (await long_talk(stage))[-1])
        interrupt(stage, "/threads", asyncio.Event().wait, is_first=True)
        stage.press("Ada", card, BUTTON)
        await stage.until(lambda: not buttons(now(stage, card)))
        await kill(stage)
    async with life(stage, threads="open"):
        assert stage.bot.conversations.get(card.id) is None
        stage.stub.replies.append(Reply("Rex."))
        await stage.answer_to(stage.say("Ada", "Parley, and for a dog?"))
        assert [stage.told().count(f"@Parley {text}") for text in QUESTIONS] == [1] * LONG_ANSWERS


@pytest.mark.parametrize(
    ("part", "event"), [("/thread-members/", "thread_member_not_added"), ("/threads", "thread_not_opened")]
)
async def test_a_thread_that_stands_keeps_the_conversation_whatever_discord_answers(
    stage: Scene, monkeypatch: pytest.MonkeyPatch, part: str, event: str
) -> None:
    """Also where the bot has not been told of it yet."""

    async def cut() -> NoReturn:
        raise OSError("the line is cut")

    monkeypatch.setattr(discord.Guild, "get_thread", lambda *_: None)
    async with life(stage, threads="open"):
        card = now(stage, (await long_talk(stage))[-1])
        interrupt(stage, part, cut)
        stage.press("Ada", card, BUTTON)
        await stage.until(lambda: stage.journal.find(event))
        await stage.at_rest()
        assert stage.bot.conversations.get(card.id)
        assert stage.bot.conversations.get(card.channel_id) is None


@pytest.mark.parametrize("is_known", ["it goes on", "it has ended", "nothing was said there"])
async def test_what_went_on_in_a_thread_is_forgotten_with_its_channel(stage: Scene, is_known: str) -> None:
    other = open_thread(stage, "Ben", "of its own")
    stage.pg.allow(stage.pg.channel("general"), "manage_channels", member=stage.pg.person("Ada"))
    async with life(stage, threads="open"):
        stage.stub.default = lambda _: Reply("Rex.")
        await stage.ask("Ben", "this is about Xanadu", channel="of its own")
        card = now(stage, (await long_talk(stage))[-1])
        stage.press("Ada", card, BUTTON)
        await stage.until(lambda: card.id in stage.pg.world.threads)
        name = stage.pg.world.threads[card.id].name
        if is_known != "nothing was said there":
            await stage.answer_to(stage.say("Ada", "and for the dog Ulysses?", channel=name))
    async with life(stage, threads="open"):
        if is_known == "it has ended":
            stage.bot.conversations.end(card.id)
        await stage.use("Ada", "forget", everything=True)
        assert stage.bot.conversations.get(card.id) is None
        assert stage.bot.conversations.get(other)
    assert not on_disk(stage.folder, "Ulysses")
    assert not on_disk(stage.folder, QUESTIONS[0])
    assert on_disk(stage.folder, "Xanadu")


def interrupt(scene: Scene, part: str, happens: Callable[[], Awaitable[object]], *, is_first: bool = False) -> None:
    """When the bot asks for this of Discord, something happens: behind it, or before."""
    request = scene.bot.http.request

    async def held(route: Any, **how: Any) -> Any:
        if part not in route.path:
            return await request(route, **how)
        if is_first:
            await happens()
        answer = await request(route, **how)
        if not is_first:
            await happens()
        return answer

    scene.bot.http.request = held  # type: ignore[method-assign]


async def said_to(scene: Scene, who: str, card: Message) -> str:
    return (await scene.pg.reply_to(scene.press(who, card, BUTTON), timeout=10)).content
