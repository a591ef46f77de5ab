"""Offers: an unanswered question is noticed, help is offered once, and what people answer to that counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from commands.offer_clicks import ALL_RIGHT, NOT_YOURS, TOO_LATE
from decider import Reason
from place_settings.fields import Level
from playground.errors import ApiError
from playground.model import Message
from setting_values import Period, Scope
from state.proactive import AgentStateV2
from state.spending import Spent
from tests.support.clock import FakeClock
from tests.support.lives import kill, life, on_disk, open_stage
from tests.support.scene import Scene
from tests.support.stub_model import Reply, StubModel
from turns.offer_turns import NEVER_HERE

SILENT, EPHEMERAL = 1 << 12, 1 << 6
QUESTION = "does anybody know how to renew a certificate with certbot?"
OTHER_QUESTION = "does anybody know how to reset the printer on the second floor?"
ANSWER = "Run certbot renew."
TIMEOUT, COOLDOWN = 600, 1_800
JUDGE_TOKENS, EVERYBODY = 7, (Scope.TOTAL, 0)


@pytest.fixture
async def stage(stub: StubModel, tmp_path: Path) -> AsyncIterator[Scene]:
    stub.default = lambda _: Reply(ANSWER)
    async with open_stage(stub, tmp_path / "state", clock=FakeClock()) as stage:
        yield stage


@pytest.fixture
async def scene(stage: Scene) -> AsyncIterator[Scene]:
    async with life(stage):
        await offers(stage, "on")
        yield stage


async def offers(scene: Scene, what: str, who: str = "Ada") -> str:
    """Uses /offers and returns the bot's answer."""
    options: dict[str, Any] = {what: {}}
    answer = await scene.use(who, "offers", **options)
    assert answer.flags & EPHEMERAL
    return answer.content


async def hear(scene: Scene, who: str, text: str, **how: Any) -> Message:
    """Somebody says something, and the bot has heard it."""
    message = scene.say(who, text, **how)
    await scene.decision(message)
    return message


def wait(scene: Scene, seconds: float) -> None:
    """Time passes, and at its end the pulse comes."""
    assert scene.clock
    scene.clock.advance(seconds)
    scene.bot.proactive_offers.pulse()


async def unanswered(scene: Scene) -> Message:
    """Ben asks something in a channel where people talk, and nobody answers."""
    assert scene.clock
    await hear(scene, "Chloe", "I am back from lunch")
    scene.clock.advance(60)
    return await hear(scene, "Ben", QUESTION)


async def offered(scene: Scene) -> tuple[Message, Message]:
    """A question of Ben's, and the offer that is made about it."""
    question = await unanswered(scene)
    wait(scene, 90)
    await scene.until(lambda: scene.journal.find("offered", about=question.id))
    return question, await scene.card("Shall I")


async def gone(scene: Scene, message: Message) -> None:
    await scene.until(lambda: message.id not in {m.id for m in scene.said()})


def outcomes(scene: Scene) -> list[str]:
    return [str(entry["outcome"]) for entry in scene.journal.find("offer_ended")]


async def test_an_unanswered_question_is_answered_once_its_author_clicks_yes(scene: Scene) -> None:
    question, card = await offered(scene)
    assert str(question.id) in card.content
    assert card.flags & SILENT
    assert not card.reference
    assert not scene.stub.requests
    shown = await scene.use("Ben", "Why?", target=card)
    assert shown.content.startswith("Offered: nobody had asked me, but offers are on in this channel")
    assert (await scene.pg.reply_to(scene.press("Chloe", card, "Yes, please"))).content == NOT_YOURS
    first, second = (scene.press("Ben", card, "Yes, please") for _ in range(2))
    answer = await scene.answer_to(question)
    assert answer.content == ANSWER
    assert QUESTION in scene.told()
    await scene.until(lambda: first.callback and second.callback)
    settled = await scene.shows("✓ Yes, please")
    assert settled.id == card.id
    assert not settled.components
    assert outcomes(scene) == ["accepted"]
    assert len(scene.stub.requests) == 1
    shown = await scene.use("Ben", "Why?", target=answer)
    assert shown.content == "Answered: I had offered it, and you said yes; the model was openai-chat:stub"
    shown = await scene.use("Ben", "why")
    assert shown.content.count(str(question.id)) == 1
    assert "I had offered it, and you said yes" in shown.content


async def test_an_offer_is_taken_up_in_words(scene: Scene) -> None:
    question, card = await offered(scene)
    assert not (await scene.decision(scene.say("Chloe", "<@1> yes please"))).respond
    yes = scene.say("Ben", "Yes, please!", reply_to=card.id)
    assert (await scene.decision(yes)).reason is Reason.OFFER_ACCEPTED
    assert (await scene.answer_to(question)).content == ANSWER
    assert (await scene.shows("✓ Yes, please")).id == card.id


@pytest.mark.parametrize("how", ["click", "words"])
async def test_not_now_has_the_offer_removed(scene: Scene, how: str) -> None:
    _, card = await offered(scene)
    if how == "click":
        assert (await scene.pg.reply_to(scene.press("Ben", card, "Not now"))).content == ALL_RIGHT
    else:
        assert (await scene.decision(scene.say("Ben", "no thanks"))).reason is Reason.OFFER_DECLINED
    await gone(scene, card)
    assert outcomes(scene) == ["declined"]
    assert not scene.stub.requests


async def test_nothing_is_offered_to_somebody_who_was_blocked_since_they_were_heard(scene: Scene) -> None:
    assert scene.clock
    await unanswered(scene)
    guild_id, blocked = scene.pg.guild_id, {"blocked_users": [scene.pg.person("Ben")]}
    settings = scene.bot.parts.guild_settings
    settings.change(guild_id, guild_id, Level.GUILD, blocked, by=scene.pg.person("Ada"), now=scene.clock())
    wait(scene, 90)
    other = await hear(scene, "Ada", OTHER_QUESTION)
    wait(scene, 90)
    await scene.until(lambda: scene.journal.find("offered", about=other.id))
    assert len(scene.journal.find("offered")) == 1


async def test_messages_are_not_all_read_again_for_errors_when_one_has_waited_long_enough(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which takes milliseconds for each that was made for it, and it is found out as each is posted."""
    assert scene.clock
    for number in range(40):
        scene.clock.advance(1)
        await hear(scene, "Ben", f"{number} {'0:00:00 ' * 240}error ERROR fatal")
    await scene.delete(await hear(scene, "Ben", "Traceback (most recent call last)"))
    read: list[str] = []
    monkeypatch.setattr("offers.triggers.pastes_error", read.append)
    wait(scene, 90)
    assert not read


@pytest.mark.parametrize("how", ["click", "words"])
async def test_not_in_this_channel_means_never_again(scene: Scene, how: str) -> None:
    _, card = await offered(scene)
    if how == "click":
        assert (await scene.pg.reply_to(scene.press("Ben", card, "Not in this"))).content == NEVER_HERE
    else:
        said = scene.say("Ben", "not in this channel please")
        assert (await scene.decision(said)).reason is Reason.OFFER_DECLINED
        await scene.shows(NEVER_HERE)
    stored = scene.bot.parts.guild_settings.stored(scene.pg.guild_id)
    assert stored
    assert stored["edits"][-1][2] == scene.pg.person("Ben")  # as whose change open cards are told it
    await gone(scene, card)
    for _ in range(3):
        wait(scene, 86_400)
        await scene.decision(scene.say("Ben", QUESTION))
        wait(scene, 90)
    assert len(scene.journal.find("offered")) == 1


@pytest.mark.usefixtures("rules_of_thumb")
async def test_a_question_counts_as_answered_once_the_agent_has_not_declined_it(stage: Scene) -> None:
    async with life(stage):
        await offers(stage, "on")
        await stage.ask("Ada", "hello")
        channel = stage.bot.parts.offer_channels.get(stage.pg.channel("general"))
        assert channel
        stage.stub.replies.append(Reply("[silent]"))
        declined = stage.say("Ben", "does the library lend laptops to guests?")
        await stage.outcome(declined)
        assert declined.id not in channel.recent.answered
        answered = stage.say("Chloe", "does the library lend laptops to guests?")
        await stage.outcome(answered)
        assert answered.id in channel.recent.answered


@pytest.mark.parametrize(("what", "ending"), [("answered", "overtaken"), ("deleted", "withdrawn")])
async def test_an_offer_goes_when_a_human_answers_or_the_question_goes(scene: Scene, what: str, ending: str) -> None:
    question, card = await offered(scene)
    if what == "answered":
        await hear(scene, "Chloe", "certbot renew should do", reply_to=question.id)
    else:
        await scene.delete(question)
    await gone(scene, card)
    assert outcomes(scene) == [ending]


@pytest.mark.parametrize("ending", ["told to", "killed"])
async def test_an_offer_outlives_a_restart(stage: Scene, ending: str) -> None:
    async with life(stage):
        await offers(stage, "on")
        question = await unanswered(stage)
        await stage.bot.snapshots.settled()
        assert not on_disk(stage.folder, "certbot")  # nothing of what is only heard is
        wait(stage, 90)
        card = await stage.card("Shall I")
        await stage.until(lambda: stage.journal.find("offered"))
        if ending == "killed":
            await kill(stage)
    async with life(stage):
        stage.press("Ben", card, "Yes, please")
        assert (await stage.answer_to(question)).content == ANSWER
        assert QUESTION in stage.told()
        await stage.shows("✓ Yes, please")


async def test_an_offer_that_was_left_behind_goes_with_the_first_click(scene: Scene) -> None:
    _, card = await offered(scene)
    scene.bot.parts.offer_channels.drop(card.channel_id)
    assert (await scene.pg.reply_to(scene.press("Ben", card, "Yes, please"))).content == TOO_LATE
    await gone(scene, card)


async def test_only_who_manages_the_channel_switches_offers(scene: Scene) -> None:
    general = scene.pg.channel("general")
    await offered(scene)
    status = await offers(scene, "status")
    assert "1 of at most 3 offers" in status
    assert "One is waiting for an answer." in status
    with pytest.raises(ApiError):
        await offers(scene, "off", "Ben")
    scene.pg.allow(general, "manage_channels", member=scene.pg.person("Ben"))
    assert "no longer" in await offers(scene, "off", "Ben")
    assert not scene.bot.proactive_offers.listens(general)
    wait(scene, 5)
    await offers(scene, "on")
    assert "1 of at most 3 offers" in await offers(scene, "status")


async def test_a_reaction_to_the_bot_counts_as_taking_notice(scene: Scene) -> None:
    _, card = await offered(scene)
    wait(scene, TIMEOUT - 10)
    machine = scene.bot.parts.offer_channels.open(card.channel_id).machine
    before = machine.last_interaction_at
    await scene.react(card, "Chloe", "👀")
    assert machine.last_interaction_at == before + TIMEOUT - 10
    wait(scene, 20)
    assert scene.bot.parts.offers.is_open(card.channel_id)


@pytest.mark.parametrize("why", ["may not write", "does not read its author"])
async def test_where_the_bot_may_not_write_or_read_nothing_is_offered(scene: Scene, why: str) -> None:
    if why == "may not write":
        changed = scene.bot.wait_for("guild_channel_update", timeout=5)
        scene.pg.deny(scene.pg.channel("general"), "send_messages")
        await changed
    else:
        await scene.use("Ben", "optout")
    await unanswered(scene)
    wait(scene, 90)
    wait(scene, 60)
    assert not scene.journal.find("offered")
    assert not scene.sent("POST", "/messages")


async def test_forget_takes_the_offer_and_the_question_with_it(scene: Scene) -> None:
    _, card = await offered(scene)
    await scene.bot.snapshots.settled()
    assert on_disk(scene.folder, "certbot")
    await scene.use("Ben", "forget")
    await gone(scene, card)
    await scene.bot.snapshots.settled()
    assert not on_disk(scene.folder, "certbot")
    assert "certbot" not in str(scene.bot.parts.offer_channels.open(card.channel_id))


async def test_a_mini_app_comes_back_to_what_it_did(scene: Scene) -> None:
    await scene.ask("Ben", "add tokyo skytree")
    wait(scene, TIMEOUT + 1)
    wait(scene, 4 * 3_600 - TIMEOUT)
    card = await scene.card("How was Tokyo Skytree")
    await scene.until(lambda: scene.journal.find("offered"))
    scene.press("Ben", card, "Yes, please")
    asked = await scene.card("What shall I note about Tokyo Skytree")
    assert asked.reference
    assert asked.reference.message_id == card.id
    await scene.answer_to(scene.say("Ben", f"<@{scene.pg.bot_id}> great for families"))
    assert "families" in str(scene.bot.parts.miniapps.stored(card.channel_id))
    wait(scene, TIMEOUT + 1)
    wait(scene, 86_400)
    assert len(scene.journal.find("offered")) == 1
    assert not scene.stub.requests


async def test_a_mini_app_does_not_come_back_to_words_that_were_edited_out(scene: Scene) -> None:
    added = await scene.ask("Ben", "add tokyo skytree")
    noted = scene.say("Ben", "get the certbot burger")
    await scene.answer_to(noted)
    assert "certbot" in str(scene.bot.parts.offer_channels.open(added.channel_id).notes)
    await scene.edit(noted, "never mind")
    assert "certbot" not in str(scene.bot.parts.offer_channels.open(added.channel_id).notes)


async def test_a_tour_is_a_talk_that_only_its_reader_sees(scene: Scene) -> None:
    card = await scene.use("Ben", "tour")
    assert "**Ask me**" in card.content
    assert card.flags & EPHEMERAL
    machine = scene.bot.parts.offer_channels.open(scene.pg.channel("general")).machine
    assert machine.current_state is AgentStateV2.REACTIVE


async def test_no_offer_is_made_while_a_tour_runs(scene: Scene) -> None:
    await scene.use("Ben", "tour")
    machine = scene.bot.parts.offer_channels.open(scene.pg.channel("general")).machine
    assert machine.visual_guidance_active
    await unanswered(scene)
    wait(scene, 90)
    assert machine.visual_guidance_active
    assert not scene.journal.find("offered")
    wait(scene, TIMEOUT + 1)
    assert not machine.visual_guidance_active


async def test_where_nothing_is_going_on_any_more_nothing_is_kept(stage: Scene) -> None:
    async with life(stage):
        await stage.ask("Ada", "hello")
        stage.bot.conversations.end(stage.pg.channel("general"))
        for seconds in (TIMEOUT + 1, COOLDOWN):
            wait(stage, seconds)
        stage.bot.states.sweep()
        assert not len(stage.bot.parts.offer_channels)
        await stage.bot.snapshots.settled()
        assert not stage.bot.snapshots.channels


async def test_what_the_budget_does_not_allow_is_not_offered(stage: Scene) -> None:
    async with life(stage, daily_tokens=100):
        await offers(stage, "on")
        stage.bot.parts.limits.spend(Spent(tokens_in=90), stage.bot._now())
        await unanswered(stage)
        wait(stage, 90)
        assert not stage.journal.find("offered")
        assert "may not write" not in await offers(stage, "status")


async def test_whoever_would_be_helped_pays_for_the_judge_until_four_fifths_of_their_budget(stage: Scene) -> None:
    """Else one person's questions, whoever they are for, would use up what the server has."""
    async with life(stage, use_llm_judge=True, person_tokens=3 * JUDGE_TOKENS):
        await offers(stage, "on")
        for number in range(4):
            await unanswered(stage)
            wait(stage, 90)
            await stage.until(lambda: len(stage.journal.find("offer_refused", reason="not_answerable")) > number)  # noqa: B023
        ledger = stage.bot.parts.limits.ledger
        spent = [ledger.used(one, Period.DAY).tokens for one in ((Scope.PERSON, stage.pg.person("Ben")), EVERYBODY)]
        assert spent == [3 * JUDGE_TOKENS] * 2
        assert len(stage.stub.judged) == 3
