"""An agent that may decline: what it is asked without having been called, and what people see of that."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import discord_io.streamed_reply
from agents.gateway import FailureKind
from decider import Decision, Reason
from followup.decision_file import FILE_NAME, DecisionFile
from persistence.open_store import find_seal
from playground.body import SUPPRESS_EMBEDS
from playground.model import Message
from tests.support.lives import kill, life
from tests.support.remote_agent import RemoteAgent, RemoteReply, whole
from tests.support.scene import Scene, open_scene
from tests.support.stub_model import Call, Reply, StubModel
from turns.endings import SENTENCES

DOUBTFUL = "I would rather take the train"
WHY = "they talk to each other"
SILENT = Reply(calls=(Call("stay_silent", f'{{"why": "{WHY}"}}'),), tokens=11)
ANSWER_TOKENS = 15

pytestmark = pytest.mark.usefixtures("rules_of_thumb")


@pytest.fixture
async def scene(stub: StubModel) -> AsyncIterator[Scene]:
    """Ada has just been answered: whatever Ben says next is doubtful."""
    async with open_scene(stub, decision_log="on") as scene:
        with pytest.MonkeyPatch.context() as patched:
            # On a busy machine it would be shown typing by then, or only once the requests are cleared.
            patched.setattr(discord_io.streamed_reply, "TYPING_DELAY_SECONDS", 3_600)
            await scene.ask("Ada", "how do I get to Tokyo?")
        scene.pg.requests.clear()
        yield scene


async def asked(scene: Scene, *replies: Reply, who: str = "Ben", text: str = DOUBTFUL) -> Message:
    """Says something doubtful, to which the model replies so, and waits until the turn has ended."""
    scene.stub.replies.extend(replies)
    message = scene.say(who, text)
    await scene.outcome(message)
    await scene.at_rest()
    return message


def last_decision(scene: Scene, message: Message) -> Decision:
    return scene.decisions[message.id][-1]


async def test_what_a_mini_app_answers_was_not_left_to_a_model(scene: Scene) -> None:
    await scene.ask("Ada", "start a trip called Rome")
    requests = len(scene.stub.requests)
    message = scene.say("Ben", "list our trip")
    await scene.answer_to(message)
    assert len(scene.stub.requests) == requests
    assert "did not decline" not in last_decision(scene, message).in_words()


async def test_a_decline_posts_nothing_and_shows_no_typing(scene: Scene) -> None:
    message = await asked(scene, SILENT)
    assert len(scene.said()) == 1
    assert not scene.sent("POST", "/typing")
    decision = last_decision(scene, message)
    assert (decision.respond, decision.reason, decision.evidence) == (False, Reason.DECLINED, WHY)
    assert decision.in_words().endswith(f"({WHY})")
    assert scene.bot.parts.limits.tokens_today == ANSWER_TOKENS + 11
    assert await scene.outcome(message) == "declined"
    # The next message is decided and told as if this one had not been asked.
    conversation = scene.bot.conversations.get(scene.pg.channel("general"))
    assert conversation
    assert len(conversation.llm_history) == 2
    assert "stay_silent" not in str(conversation.llm_history)
    message = await asked(scene, Reply("The train takes 3 hours."), who="Chloe")
    assert scene.said()[-1].content == "The train takes 3 hours."
    assert last_decision(scene, message) == Decision(True, Reason.FOLLOWUP, tier=2, score=0.5, may_decline=True)
    assert "You were not mentioned" in scene.told()
    assert f"Ben: {DOUBTFUL}\n" in scene.told()


async def test_an_address_in_why_it_declined_is_not_opened_by_discord_for_a_preview(scene: Scene) -> None:
    """Or a message could have the model tell its author there what it was told, once anybody asks for the reason."""
    told = "https://evil.example/?q=Tokyo"
    message = await asked(scene, Reply(calls=(Call("stay_silent", json.dumps({"why": told})),)))
    for answer in (await scene.use("Ada", "why"), await scene.use("Ada", "Why?", target=message)):
        assert told in answer.content
        assert answer.flags & SUPPRESS_EMBEDS


async def test_a_model_that_takes_no_tools_declines_by_the_token_whatever_it_goes_on_to_say(scene: Scene) -> None:
    refused = Reply(status=400, words="tools are not supported")
    message = await asked(scene, refused, Reply(" `[SILENT]`\n\nSo I wait.", chunk=3))
    assert "tools" not in scene.stub.requests[-1]
    assert len(scene.said()) == 1
    assert not scene.sent("POST", "/messages")
    assert last_decision(scene, message).reason is Reason.DECLINED
    assert scene.bot.parts.limits.tokens_today > ANSWER_TOKENS


async def test_a_mention_is_answered_or_fails_audibly_though_the_model_would_rather_stay_silent(scene: Scene) -> None:
    scene.stub.replies.extend([SILENT, Reply("Fine: 3 hours.")])
    assert (await scene.ask("Ben", DOUBTFUL)).content == "Fine: 3 hours."
    assert "Refused" in scene.told()
    assert "You were not mentioned" not in scene.told()
    scene.stub.default = lambda _: SILENT
    assert (await scene.ask("Ben", DOUBTFUL)).content == SENTENCES[FailureKind.EMPTY]
    scene.stub.default = lambda _: Reply("[silent]")
    assert (await scene.ask("Ben", DOUBTFUL)).content == SENTENCES[FailureKind.EMPTY]
    scene.stub.default = lambda _: Reply("[silent] Well: 3 hours.", chunk=1)
    assert (await scene.ask("Ben", DOUBTFUL)).content == "Well: 3 hours."


@pytest.mark.parametrize("ends", ["stop", "delete"])
async def test_what_is_called_off_while_it_is_asked_leaves_nothing(scene: Scene, ends: str) -> None:
    gate = scene.held("Too late.")
    message = scene.say("Ben", DOUBTFUL)
    await scene.until(lambda: len(scene.stub.requests) == 2)
    if ends == "stop":
        scene.say("Ben", "stop")
        await scene.until(lambda: last_decision(scene, message).reason is Reason.STOP)
    else:
        await scene.delete(message)
    await scene.at_rest()
    gate.set()
    assert len(scene.said()) == 1
    assert not scene.sent("POST", "/messages")


@pytest.mark.parametrize("how", ["deleted", "edited", "forgotten", "another's"])
async def test_why_it_declined_is_not_told_in_words_that_went_while_it_thought(scene: Scene, how: str) -> None:
    if how == "another's":
        other = scene.say("Chloe", "swordfish", channel="random")
    else:
        other = await asked(scene, SILENT, who="Chloe", text="swordfish")
    requests, gate = len(scene.stub.requests), scene.held("", calls=SILENT.calls)
    message = scene.say("Ben", DOUBTFUL)
    await scene.until(lambda: len(scene.stub.requests) > requests)
    if how == "edited":
        await scene.edit(other, "herring")
    elif how == "forgotten":
        await scene.use("Chloe", "forget")
    else:
        await scene.delete(other)
    gate.set()
    await scene.at_rest()
    decision = last_decision(scene, message)
    assert (decision.reason, decision.evidence) == (Reason.DECLINED, WHY if how == "another's" else "")


async def test_why_it_declined_is_not_told_in_words_that_tools_may_have_given(scene: Scene) -> None:
    search = Reply(calls=(Call("search_history", '{"words": "swordfish"}', id="call-0"),))
    decision = last_decision(scene, await asked(scene, search, SILENT))
    assert (decision.reason, decision.evidence) == (Reason.DECLINED, "")


async def test_what_was_declined_is_a_silence_and_hides_no_answer_that_is_told_off_behind_it(scene: Scene) -> None:
    answered = await asked(scene, Reply("By train."))
    declined = await asked(scene, SILENT, who="Chloe")
    await scene.decision(scene.mention("Chloe", "shut up"))
    assert (await scene.decision(scene.say("Ben", DOUBTFUL))).reason is Reason.UNWELCOME
    await scene.ask("Chloe", "I meant you")
    await scene.bot.decision_log.flush()
    written = DecisionFile(scene.folder / FILE_NAME, find_seal(scene.folder, None, None)).read()
    rows = {entry.message_id: entry for entry in written}
    assert rows[answered.id].outcome == "told_off"
    assert (rows[declined.id].respond, rows[declined.id].reason) == (False, "declined")
    assert WHY not in str(rows)


@pytest.mark.parametrize("setting", [{"decline": False}, {"model": "demo"}, {"use_llm_judge": True}])
async def test_where_nobody_may_decline_doubt_is_silence(stub: StubModel, setting: dict[str, Any]) -> None:
    async with open_scene(stub, **setting) as scene:
        await scene.ask("Ada", "how do I get to Tokyo?")
        decision = await scene.decision(scene.say("Ben", DOUBTFUL))
        assert decision.reason is (Reason.LLM_JUDGE if "use_llm_judge" in setting else Reason.NO_TRIGGER)
        assert len(scene.said()) == 1


async def test_three_declines_in_a_row_count_until_somebody_calls_in_the_next_life_too(stage: Scene) -> None:
    for name in ("Dan", "Eve"):
        stage.pg.add_person(name)
    async with life(stage):
        await stage.ask("Ada", "how do I get to Tokyo?")
        for who in ("Ben", "Chloe", "Dan"):
            await asked(stage, SILENT, who=who)
        await kill(stage)
    async with life(stage):
        assert (await stage.decision(stage.say("Eve", DOUBTFUL))).reason is Reason.NO_TRIGGER
        await stage.ask("Ada", "are you there?")
        await kill(stage)
    async with life(stage):
        assert last_decision(stage, await asked(stage, SILENT, who="Eve")).reason is Reason.DECLINED


@pytest.mark.parametrize("then", [SILENT, Reply("By train, then.")])
async def test_killed_while_it_is_asked_it_may_decline_in_the_next_life(stage: Scene, then: Reply) -> None:
    async with life(stage):
        await stage.ask("Ada", "how do I get to Tokyo?")
        stage.halted("[silent]", chunk=3)
        message = stage.say("Ben", DOUBTFUL)
        await stage.until(lambda: len(stage.stub.requests) == 2)
        await kill(stage)
    stage.stub.replies.append(then)
    async with life(stage):
        await stage.outcome(message)
        assert "You were not mentioned" in stage.told()
    assert [m.content for m in stage.said()][1:] == ([then.text] if then.text else [])


async def test_a_remote_agent_may_decline_though_its_file_says_nothing_of_that(
    stub: StubModel, docs: RemoteAgent, tmp_path: Path
) -> None:
    agents = tmp_path / "agents.toml"
    agents.write_text(f'[[agent]]\nname = "docs"\nkind = "ums"\nurl = "{docs.url}"\nabout = "The handbook."\n')
    async with open_scene(stub, agents=agents) as scene:
        await scene.ask("Ada", "docs: how many holidays are there?")
        docs.answers.append(RemoteReply(status=204))
        message = await asked(scene, who="Ada", text="what about Monday?")
        assert last_decision(scene, message).reason is Reason.DECLINED
        assert [body.get("may_decline") for body in docs.chats] == [None, True]
        assert len(scene.said()) == 1
        docs.answers.append(whole("It is one."))
        assert (await scene.ask("Ada", "docs: and Monday?")).content == "It is one."
        assert not stub.requests
