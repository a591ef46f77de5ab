"""Several short messages are answered together, and a question that is edited early is asked anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from decider import Reason
from persistence.lifecycle import ALIVE
from playground.model import Message
from tests.support.clock import FakeClock
from tests.support.followups import FixedTier
from tests.support.lives import kill, life, open_stage
from tests.support.scene import PATIENCE_SECONDS, Scene
from tests.support.stub_model import Call, Reply, StubModel
from tests.support.virtual_time import settle
from turns.bursts import WITH_A_CALL

LONG = 60  # seconds in which everything here happens: who is heard out goes on when the test says so


@pytest.fixture
async def scene(stage: Scene) -> AsyncIterator[Scene]:
    async with life(stage, burst_seconds=LONG):
        yield stage


async def say(scene: Scene, who: str, text: str) -> Message:
    """Posts a message, in which @Parley is the bot, and waits until the bot has taken it in."""
    text = text.replace("@Parley", f"<@{scene.pg.bot_id}>")
    heard = scene.bot.wait_for("message", check=lambda message: message.content == text, timeout=PATIENCE_SECONDS)
    message = scene.say(who, text)
    await heard
    await settle()
    return message


async def test_three_short_messages_get_one_answer_that_was_told_all(scene: Scene) -> None:
    first = await say(scene, "Ada", "@Parley find me a train")
    second = await say(scene, "Ada", "to Lisbon")
    third = await say(scene, "Ada", "tomorrow")
    assert not scene.decisions
    assert not scene.stub.requests
    await scene.bot.bursts.end()
    await scene.answer_to(third)
    await scene.at_rest()
    assert len(scene.said()) == len(scene.stub.requests) == 1
    assert "Ada: @Parley find me a train\n" in scene.told()
    assert scene.told().index("to Lisbon") < scene.told().index("tomorrow")
    for message in (first, second, third):
        assert (await scene.decision(message)).reason is Reason.EXPLICIT_TRIGGER
        assert len(scene.journal.find("decided", message=message.id)) == 1
    assert (await scene.decision(first)).in_words() == "answered: you mentioned me or replied to me"
    assert (await scene.decision(second)).in_words() == f"answered: {WITH_A_CALL}"


async def test_who_stops_their_call_as_they_are_heard_out_ends_no_following_of_others(scene: Scene) -> None:
    await scene.ask("Ben", "what is the weather in Tokyo?")
    follow_up = await say(scene, "Ben", "and what about Osaka?")
    await scene.bot.bursts.end()
    await scene.answer_to(follow_up)
    call = await say(scene, "Ada", "@Parley tell me everything")
    await say(scene, "Ada", "stop")
    await scene.bot.bursts.end()
    assert (await scene.decision(call)).reason is Reason.STOP
    follow_up = await say(scene, "Ben", "and what about Kyoto?")
    await scene.bot.bursts.end()
    assert (await scene.decision(follow_up)).respond


async def test_a_pause_ends_it_and_a_question_mark_at_once(stage: Scene) -> None:
    async with life(stage, burst_seconds=0.05):
        await stage.ask("Ada", "find me a train")
    async with life(stage, burst_seconds=LONG):
        await stage.ask("Ada", "when does the train leave?")


async def test_whoever_is_typing_is_given_longer(scene: Scene) -> None:
    await say(scene, "Ada", "@Parley find me a train")
    [burst] = scene.bot.bursts._open.values()
    assert burst.timer
    pause_ends = burst.timer.when()
    heard = scene.bot.wait_for("raw_typing", timeout=PATIENCE_SECONDS)
    scene.pg.typing(scene.pg.channel("general"), scene.pg.person("Ada"))
    await heard
    await settle()
    assert burst.timer.when() > pause_ends + LONG / 4


@pytest.mark.parametrize("how", ["deleted", "forgotten"])
async def test_what_is_taken_back_while_it_waits_is_not_answered(scene: Scene, how: str) -> None:
    question = await say(scene, "Ada", "@Parley find the secret cats")
    if how == "deleted":
        await scene.delete(question)
    else:
        await scene.bot.privacy.forget_person(scene.pg.person("Ada"), at=question.id)
    await scene.bot.bursts.end()
    if how == "deleted":
        assert (await scene.decision(question)).reason is Reason.DELETED
    assert (question.id in scene.decisions) == (how == "deleted")
    await scene.ask("Ben", "what was asked?")
    assert len(scene.stub.requests) == 1
    assert "secret cats" not in scene.told()


async def test_stop_calls_off_what_waits_and_tells_the_bot_to_keep_out(scene: Scene) -> None:
    question = await say(scene, "Ada", "@Parley find me a train")
    stop = await say(scene, "Ada", "stop")
    assert (await scene.decision(question)).in_words() == "silent: I was told to stop"
    assert (await scene.decision(stop)).in_words() == "silent: I was told to stop (I ended the answer to you)"
    await scene.until(lambda: [m.content for m in scene.said()] == ["Stopped."])
    assert (await scene.decision(scene.say("Ada", "and to Porto?"))).reason is Reason.TOLD_OFF
    assert not scene.stub.requests


async def test_only_whoever_manages_messages_calls_off_what_waits_of_others(scene: Scene) -> None:
    scene.pg.allow(scene.pg.channel("general"), "manage_messages", member=scene.pg.person("Chloe"))
    question = await say(scene, "Ada", "@Parley find me a train")
    await scene.decision(scene.say("Ben", "stop"))
    assert question.id not in scene.decisions
    stop = scene.say("Chloe", "stop")
    assert (await scene.decision(question)).in_words() == "silent: I was told to stop"
    assert (await scene.decision(stop)).in_words() == "silent: I was told to stop (I ended the answer to Ada)"


@pytest.mark.usefixtures("rules_of_thumb")
async def test_what_is_declined_together_is_given_back_to_its_author_as_the_one_answer_it_was_counted_as(
    stage: Scene,
) -> None:
    async with life(stage, burst_seconds=LONG, turns_per_user_minute=2):
        ben, general = stage.pg.person("Ben"), stage.pg.channel("general")
        await stage.ask("Ada", "how do I get to Tokyo?")
        stage.bot.parts.limits.admit(ben, general, explicit=True, now=stage.bot._now())
        stage.stub.replies.append(Reply("[silent]"))
        messages = [await say(stage, "Ben", text) for text in ("I would rather take the train", "or walk")]
        await stage.bot.bursts.end()
        await stage.outcome(messages[-1])
        await stage.ask("Ben", "and by ship?")
        assert (await stage.decision(stage.mention("Ben", "is it far?"))).reason is Reason.USER_CAP


async def test_what_waits_at_the_end_is_answered_before_it(stage: Scene) -> None:
    async with life(stage, burst_seconds=LONG):
        question = await say(stage, "Ada", "@Parley find me a train")
        await stage.bot.shut_down()
        await stage.answer_to(question)


async def test_killed_while_it_waits_what_begins_a_conversation_begins_it_in_the_next_life(stage: Scene) -> None:
    async with life(stage, burst_seconds=LONG):
        await say(stage, "Ben", "the blue cats are 7 years old")
        question = await say(stage, "Ada", "@Parley how old are they")
        await kill(stage)
    async with life(stage, burst_seconds=LONG):
        await stage.answer_to(question)
        assert "the blue cats are 7 years old" in stage.told()


async def test_who_is_heard_out_for_long_is_found_again_after_a_kill(stub: StubModel, tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage:
        async with life(stage, burst_seconds=LONG):
            await stage.ask("Ben", "hello?")
            clock.advance(LONG)
            question = await say(stage, "Ada", "@Parley find me a train")
            clock.advance(LONG / 2)
            assert stage.bot.catch_up.beat()
            stage.bot.snapshots.touch(ALIVE)
            await kill(stage)
        async with life(stage, burst_seconds=LONG):
            await stage.answer_to(question)


async def test_a_question_edited_before_the_first_token_is_asked_anew_and_answered_once(scene: Scene) -> None:
    scene.held("Which cats?")
    question = scene.mention("Ada", "how old do catz get?")
    await scene.until(lambda: scene.stub.requests)
    await scene.edit(question, f"<@{scene.pg.bot_id}> how old do cats get?")
    answer = await scene.answer_to(question)
    assert answer.content == "You said: @Parley how old do cats get?"
    assert len(scene.stub.requests) == 2
    assert "catz" not in scene.told()
    assert len(scene.said()) == 1


@pytest.mark.parametrize("acts", [False, True])
async def test_a_question_edited_while_discord_takes_nothing_is_asked_anew_unless_a_tool_was_used(
    scene: Scene, acts: bool
) -> None:
    discord_takes = asyncio.Event()
    post = scene.pg.faults.add("POST", r"/messages$", delay_event=discord_takes)
    if acts:
        scene.stub.replies.append(Reply(calls=(Call("react", '{"emoji": "👍"}'),)))
    scene.stub.replies.append(Reply("You said catz."))
    question = scene.mention("Ada", "how old do catz get?")
    await scene.until(lambda: post.hits and (not acts or len(scene.stub.requests) == 2))
    await scene.edit(question, f"<@{scene.pg.bot_id}> how old do cats get?")
    discord_takes.set()
    answer = await scene.answer_to(question)
    assert len(scene.stub.requests) == 2
    assert len(scene.said()) == 1
    assert ("catz" in answer.content) == acts
    assert len(scene.sent("PUT", "/@me")) == acts


async def test_who_opted_out_is_answered_as_their_edited_question_stands(scene: Scene) -> None:
    await scene.use("Ada", "optout")
    scene.held()
    question = scene.mention("Ada", "how old do catz get?")
    await scene.until(lambda: scene.stub.requests)
    await scene.edit(question, f"<@{scene.pg.bot_id}> how old do cats get?")
    assert (await scene.answer_to(question)).content == "You said: @Parley how old do cats get?"


async def test_a_link_that_is_unfurled_asks_nothing_anew(scene: Scene) -> None:
    gate = scene.held("It is about trains.")
    question = scene.mention("Ada", "what is https://trains.example about?")
    await scene.until(lambda: scene.stub.requests)
    heard = scene.heard("raw_message_edit", question)
    scene.pg.world.replace_message(question)
    await heard
    gate.set()
    assert (await scene.answer_to(question)).content == "It is about trains."
    assert len(scene.stub.requests) == 1


@pytest.mark.usefixtures("rules_of_thumb")
@pytest.mark.parametrize("taken_back", ["deleted", "edited", "forgotten"])
async def test_the_judge_of_a_following_message_is_told_nothing_that_was_taken_back_meanwhile(
    stage: Scene, taken_back: str
) -> None:
    stage.stub.judge_says = lambda _: True
    async with life(stage, burst_seconds=LONG, use_llm_judge=True):
        await stage.ask("Ada", "what is the weather in Tokyo?")
        first = await say(stage, "Ben", "I would rather take the bluebell")
        while not stage.bot.bursts.heard_out(first.channel_id):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        match taken_back:
            case "deleted":
                await stage.delete(first)
            case "edited":
                await stage.edit(first, "I would rather take the iris")
            case "forgotten":
                await stage.use("Ben", "forget")
        known = len(stage.stub.judged)
        await say(stage, "Ben", "or the night train")
        await stage.until(lambda: len(stage.stub.judged) > known)
        await stage.bot.bursts.end()
        await stage.at_rest()
        assert "bluebell" not in str(stage.stub.judged[known:])


async def test_the_judge_of_a_burst_is_told_nothing_of_it_that_was_forgotten_though_it_was_trimmed(
    stage: Scene,
) -> None:
    stage.stub.judge_says = lambda _: True
    async with life(stage, burst_seconds=LONG, use_llm_judge=True):
        decider, bursts = stage.bot.parts.decider, stage.bot.bursts
        decider._tiers, decider._followup = {}, FixedTier(score=0.5)
        await stage.ask("Ada", "what is the weather in Tokyo?")
        first = await say(stage, "Ben", "I would rather take the bluebell")
        while not bursts.heard_out(first.channel_id):  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        await say(stage, "Ben", "or the night train")
        while len(bursts.heard_out(first.channel_id)) < 2:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        stage.bot.conversations._max_messages = 3  # there is no setting
        await stage.decision(stage.say("Ada", f"<@{stage.pg.person('Ben')}> so do I"))
        assert stage.bot.conversations.find(first.channel_id, first.id) is None
        known = len(stage.stub.judged)
        await stage.use("Ben", "forget")
        await bursts.end()
        while not bursts.is_idle:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        assert "bluebell" not in str(stage.stub.judged[known:])
