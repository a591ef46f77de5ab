"""agents/server_state.py, over real HTTP: a conversation that OpenAI remembers is not sent again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from aiohttp import web
from pydantic_ai import Tool
from pydantic_ai.models.openai import OpenAIResponsesModel
from structlog.testing import capture_logs

from agents import gateway, server_state
from agents.asking import NOT_KEPT
from agents.gateway import AgentRequest, Answer, Asked, Failure, FailureKind
from agents.general import GeneralAgent
from agents.models import Models, UnusableModelError, build_model
from agents.server_state import Kind, ServerState
from bot import create_bot
from config import Settings
from conversation import ChannelConversation, MessageRecord
from place import Place
from state.prompts import ResolutionType
from tests.agents.test_tool_use import find, python_run, run
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, CHANNEL, said
from tests.support.stub_model import Body, Call, Reply
from tests.support.stub_responses import StubResponses

PLACE = Place(bot_name="Parley", guild="The Guild", channel="general")
SECRET = "the wifi is bluebell"


@pytest.fixture
async def model(openai: StubResponses) -> AsyncIterator[OpenAIResponsesModel]:
    assert openai.url
    async with build_model("MODEL", "openai:gpt-5") as model:
        assert isinstance(model, OpenAIResponsesModel)
        yield model


class Talk:
    """A conversation with the agent, in which OpenAI remembers what was said."""

    def __init__(self, openai: StubResponses, model: OpenAIResponsesModel, kind: Kind, **options: Any) -> None:
        self.openai = openai
        tools = [Tool(python_run), Tool(find, name="find")]
        self.agent = GeneralAgent(model, tools=tools, server_state=ServerState(kind, model), **options)
        self.conversation = ChannelConversation(CHANNEL, NOON, NOON)

    @property
    def sent(self) -> Body:
        return self.openai.requests[-1]

    @property
    def known(self) -> str | None:
        """The id of what the last request went on with."""
        conversation = self.sent.get("conversation")
        return self.sent.get("previous_response_id") or conversation

    @property
    def remembered(self) -> str:
        """All that the model saw for its last answer."""
        return "\n".join(self.openai.seen[-1])

    def request(self, question: MessageRecord, **more: Any) -> AgentRequest:
        self.conversation.add(question)
        self.conversation.begin_turn()
        asked = Asked(1, CHANNEL, question.author_id, question.message_id)
        return AgentRequest(self.conversation.llm_history, [question], [question], PLACE, NOON, asked=asked, **more)

    async def say(self, text: str, *replies: Reply, author: int = ANNA, **more: Any) -> Answer:
        self.openai.replies.extend(replies)
        outcome = await self.agent.respond(self.request(said(author, text), **more), lambda _: None)
        assert isinstance(outcome, Answer), outcome
        self.conversation.answered(outcome.history)
        return outcome


@pytest.fixture(params=list(Kind))
def talk(openai: StubResponses, model: OpenAIResponsesModel, request: pytest.FixtureRequest) -> Talk:
    return Talk(openai, model, request.param)


def question_of(talk: Talk, number: int = 0) -> MessageRecord:
    return talk.conversation.messages[number]


# Gone on with


async def test_a_turn_sends_what_is_new_alone(talk: Talk) -> None:
    await talk.say(SECRET, Reply("I see."))
    await talk.say("and the password?", Reply("I do not know."))
    await talk.say("really?", Reply("Yes."))
    assert talk.known
    assert SECRET not in str(talk.sent["input"])
    assert "I see." not in str(talk.sent["input"])
    assert [talk.remembered.count(words) for words in (SECRET, "I see.", "password", "really")] == [1, 1, 1, 1]


async def test_a_picture_is_not_left_where_each_later_request_would_be_billed_for_it(talk: Talk) -> None:
    question = said(ANNA, "what is that?", images=("https://cdn.discordapp.com/attachments/1/2/cat.png",))
    talk.openai.replies += [Reply(calls=(run("1"),)), Reply("A cat.")]
    outcome = await talk.agent.respond(talk.request(question), lambda _: None)
    assert isinstance(outcome, Answer)
    talk.conversation.answered(outcome.history)
    await talk.say("sure?", Reply("Yes."))
    assert ["input_image" in str(body["input"]) for body in talk.openai.requests] == [True, False, False]
    assert [body.get("store") for body in talk.openai.requests[:2]] == [False, False]
    assert "A cat." in str(talk.sent["input"])


async def test_another_model_neither_goes_on_with_it_nor_has_any_and_is_told_everything(
    openai: StubResponses, model: OpenAIResponsesModel
) -> None:
    talk = Talk(openai, model, Kind.RESPONSE)
    other = build_model("MODELS", "openai:gpt-5-mini")
    talk.agent = GeneralAgent(
        Models({"openai:gpt-5": model, "openai:gpt-5-mini": other}), server_state=ServerState(Kind.RESPONSE, model)
    )
    async with other:
        await talk.say(SECRET, Reply("I see."))
        await talk.say("and now?", Reply("Still."), model="openai:gpt-5-mini")
        assert (talk.known, talk.sent["store"], talk.sent["model"]) == (None, False, "gpt-5-mini")
        assert SECRET in str(talk.sent["input"])
        await talk.say("and again?", Reply("Yes."))
        assert (talk.known, talk.sent["model"]) == (None, "gpt-5")
        assert SECRET in str(talk.sent["input"])
        talk.agent = GeneralAgent(other, server_state=ServerState(Kind.RESPONSE, cast("OpenAIResponsesModel", other)))
        await talk.say("after another start?", Reply("Yes."))
        assert (talk.known, talk.sent["model"]) == (None, "gpt-5-mini")


async def test_so_it_does_while_tools_are_used_and_behind_that(talk: Talk) -> None:
    await talk.say(SECRET, Reply("I see."))
    await talk.say("calculate", Reply(calls=(run("1"),)), Reply(calls=(run("2", id_="call-2"),)), Reply("Done."))
    assert [item["type"] for item in talk.sent["input"]] == ["function_call_output"]
    assert SECRET in talk.remembered
    await talk.say("and?", Reply("That was it."))
    assert len(talk.sent["input"]) == 1
    assert [talk.remembered.count(words) for words in (SECRET, "ran 1", "ran 2")] == [1, 1, 1]


async def test_two_channels_share_nothing(openai: StubResponses, model: OpenAIResponsesModel) -> None:
    for kind in Kind:
        one, other = Talk(openai, model, kind), Talk(openai, model, kind)
        await one.say(SECRET, Reply("I see."))
        await other.say("hello", Reply("Hello."))
        await one.say("and?", Reply("Well."))
        await other.say("and?", Reply("Well."))
        assert SECRET not in other.remembered


@pytest.mark.parametrize("more", [{}, {"is_private": True}, {"said": {}}])
async def test_it_is_told_to_keep_what_may_be_kept(talk: Talk, more: dict[str, Any]) -> None:
    await talk.say(SECRET, Reply("I see."), **more)
    assert talk.sent["store"] is not bool(more)


async def test_without_the_setting_it_is_told_to_keep_nothing(
    openai: StubResponses, model: OpenAIResponsesModel
) -> None:
    question = said(ANNA, SECRET)
    openai.replies.extend([Reply(calls=(run("1"),)), Reply("Done.")])
    request = AgentRequest([], [question], [question], PLACE, NOON)
    answer = await GeneralAgent(model, tools=[Tool(python_run)]).respond(request, lambda _: None)
    assert isinstance(answer, Answer)
    assert [body["store"] for body in openai.requests] == [False, False]
    assert openai.responses == {}


# Begun anew

Change = Callable[[Talk], object]
CHANGES: dict[str, Change] = {
    "edited": lambda talk: talk.conversation.revise(replace(question_of(talk), content="something else")),
    "deleted": lambda talk: talk.conversation.remove({question_of(talk).message_id}),
    "forgotten": lambda talk: talk.conversation.forget(ANNA),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_what_is_gone_here_is_gone_for_the_model(talk: Talk, change: Change) -> None:
    await talk.say(SECRET, Reply("I see."))
    await talk.say("hello", Reply("Hello."), author=BEN)
    change(talk)
    await talk.say("and?", Reply("Well."), author=BEN)
    assert "bluebell" not in talk.remembered
    assert "Ben: hello" in talk.remembered
    await talk.say("really?", Reply("Yes."), author=BEN)
    assert "bluebell" not in talk.remembered
    assert "Ben: hello" not in str(talk.sent["input"]), "it goes on with the new one"


async def test_what_is_trimmed_is_not_remembered_for_ever(talk: Talk) -> None:
    await talk.say(SECRET, Reply("I see."))
    for number in range(3):
        await talk.say(f"{number} " + "x" * 2_000, Reply("Hm."))
        if made := talk.conversation.cut(1_000):
            talk.conversation.shorten(made)
    assert "bluebell" not in talk.remembered


async def test_what_was_looked_up_is_not_remembered(talk: Talk) -> None:
    await talk.say("the wifi?", Reply(calls=(Call("find", json.dumps({"words": "wifi"})),)), Reply("I know it."))
    await talk.say("and?", Reply("Hm."), author=BEN)
    assert "bluebell" not in talk.remembered
    assert NOT_KEPT in talk.remembered


async def test_what_is_pruned_is_not_remembered(openai: StubResponses, model: OpenAIResponsesModel) -> None:
    for kind in Kind:
        talk = Talk(openai, model, kind, keep_turns=0)
        await talk.say("calculate", Reply(calls=(run("1"),)), Reply("Done."))
        await talk.say("and?", Reply("Hm."))
        assert "ran 1" not in talk.remembered
        assert "Done." in talk.remembered


@pytest.mark.parametrize("more", [{"notes": ["a note"]}, {"shared": {"last_mentioned_user": "John"}}])
async def test_what_was_told_for_one_turn_is_not_remembered(talk: Talk, more: dict[str, Any]) -> None:
    await talk.say("hello", Reply("Hello."), **more)
    await talk.say("and?", Reply("Hm."))
    assert "Note" not in talk.remembered
    assert "Hello." in talk.remembered


async def test_what_nobody_is_to_keep_is_told_to_no_memory(talk: Talk) -> None:
    await talk.say("hello", Reply("Hello."))
    await talk.say(SECRET, Reply("I see."), is_private=True)
    assert talk.known is None
    assert "Hello." in talk.remembered
    assert not any("bluebell" in str(items) for items in talk.openai.conversations.values())


async def test_a_turn_that_was_not_recorded_is_not_remembered(talk: Talk) -> None:
    await talk.say("hello", Reply("Hello."))
    talk.openai.replies.append(Reply("I see."))
    withdrawn = talk.request(said(ANNA, SECRET))
    await talk.agent.respond(withdrawn, lambda _: None)
    await talk.say("and?", Reply("Hm."))
    assert "bluebell" not in talk.remembered
    assert "Hello." in talk.remembered


async def test_an_answer_that_was_stopped_is_remembered_as_far_as_it_came(talk: Talk) -> None:
    gate = asyncio.Event()
    talk.openai.replies.append(Reply("one two three", chunk=4, gate=gate))
    request = talk.request(said(ANNA, "count"))
    shown: list[str] = []
    turn = asyncio.create_task(talk.agent.respond(request, shown.append))
    await talk.openai.arrived.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    talk.conversation.answered(talk.agent.interrupted(request, "one").history)
    await talk.say("go on", Reply("two"))
    assert ["count" in talk.remembered, "one\n" in talk.remembered, "three" in talk.remembered] == [True, True, False]


@pytest.mark.parametrize("with_a_tool", [False, True])
async def test_what_openai_has_forgotten_is_sent_once_more(talk: Talk, *, with_a_tool: bool) -> None:
    calls = [Reply(calls=(run("1"),))] if with_a_tool else []
    await talk.say(SECRET, *calls, Reply("I see."))
    talk.openai.forget_all()
    with capture_logs() as logs:
        await talk.say("and?", *calls, Reply("Well."))
    assert [entry["event"] for entry in logs if entry["event"] == "openai_state_lost"] == ["openai_state_lost"]
    assert SECRET in talk.remembered
    await talk.say("really?", Reply("Yes."))
    assert SECRET not in str(talk.sent["input"])
    assert SECRET in talk.remembered


async def test_what_openai_forgets_while_a_tool_runs_is_sent_once_more(talk: Talk) -> None:
    await talk.say(SECRET, Reply("I see."))

    async def forget(_text: str) -> None:
        talk.openai.forget_all()

    done = await talk.say("calculate", Reply("Let me see. ", calls=(run("1"),), pace=forget), Reply("Done."))
    assert done.text == "Let me see. \n\nDone."
    assert [talk.remembered.count(words) for words in (SECRET, "ran 1")] == [1, 1]


async def test_a_turn_that_failed_midway_leaves_nothing_that_cannot_be_gone_on_with(talk: Talk) -> None:
    await talk.say(SECRET, Reply("I see."))
    talk.openai.replies.extend([Reply(calls=(run("1"),)), *2 * [Reply(status=500)]])
    outcome = await talk.agent.respond(talk.request(said(ANNA, "calculate")), lambda _: None)
    assert isinstance(outcome, Failure)
    await talk.say("and?", Reply("Well."))
    assert SECRET in talk.remembered


async def test_what_fails_otherwise_is_no_loss_of_memory(talk: Talk) -> None:
    await talk.say(SECRET, Reply("I see."))
    before = len(talk.openai.requests)
    talk.openai.replies.append(Reply(status=429))
    talk.openai.replies.append(Reply(status=429))
    outcome = await talk.agent.respond(talk.request(said(ANNA, "and?")), lambda _: None)
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.BUSY
    assert len(talk.openai.requests) == before + 2


async def test_a_question_of_its_own_is_gone_on_with(talk: Talk) -> None:
    ask = Call("ask_text", '{"question": "Which code?"}', "ask-1")
    await talk.say(SECRET, Reply("I see."))
    asking = await talk.say("run it", Reply(calls=(ask,)))
    assert asking.ask
    reply = gateway.Reply(asking.ask.context["ask_id"], ResolutionType.INPUT, {"content": "2+2"})
    await talk.say("2+2", Reply(calls=(run("2+2"),)), Reply("It is 4."), reply=reply)
    assert [talk.remembered.count(words) for words in (SECRET, "run it", "It is 4.")][:2] == [1, 1]
    await talk.say("thanks", Reply("Welcome."))
    assert SECRET in talk.remembered
    assert "It is 4." in talk.remembered


REFUSED = {"error": {"message": "You have insufficient permissions for this operation.", "type": "x"}}
CREATIONS: dict[str, Callable[[], web.Response]] = {
    "refused": lambda: web.json_response(REFUSED, status=403),
    "html": lambda: web.Response(text="<html>", content_type="text/html"),
    "no object": lambda: web.json_response([]),
    "no id": lambda: web.json_response({"object": "conversation"}),
    "half a character": lambda: web.json_response({"id": "conv_\ud800"}),
    "nested too deep": lambda: web.Response(text="[" * 9_000, content_type="application/json"),
    "a long id": lambda: web.json_response({"id": "x" * 300}),
}


@pytest.mark.parametrize("creation", CREATIONS.values(), ids=CREATIONS)
async def test_without_a_conversation_of_openais_all_is_sent(
    openai: StubResponses, model: OpenAIResponsesModel, creation: Callable[[], web.Response]
) -> None:
    openai.creation = creation
    talk = Talk(openai, model, Kind.CONVERSATION)
    with capture_logs() as logs:
        await talk.say(SECRET, Reply("I see."))
        await talk.say("and?", Reply("Well."))
    assert SECRET in str(talk.sent["input"])
    assert talk.known is None
    assert talk.sent["store"] is False
    assert [entry["event"] for entry in logs] == ["openai_state_unavailable"] * 2


async def test_a_conversation_of_openais_that_comes_a_byte_at_a_time_is_not_waited_for(
    openai: StubResponses, model: OpenAIResponsesModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_state, "BEGIN_SECONDS", 0.1)
    openai.drips = True
    async with asyncio.timeout(5):
        await Talk(openai, model, Kind.CONVERSATION).say(SECRET, Reply("I see."))


async def test_an_id_that_cannot_be_read_is_none(talk: Talk) -> None:
    await talk.say(SECRET, Reply("I see."))
    for known in ("x", [1], None, {"id": "x"}, {"id": "half an id", "digest": ""}, {"id": 5, "digest": 5}):
        last = talk.conversation.llm_history[-1]
        talk.conversation.llm_history[-1] = replace(last, metadata={"openai_state": known})
        await talk.say("and?", Reply("Well."))
        assert SECRET in str(talk.sent["input"]), known


# The setting


@pytest.mark.parametrize("name", ["demo", "openai-chat:main", "openai:gpt-5,openai-chat:main"])
def test_a_model_that_cannot_do_it_ends_the_start_with_a_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobodys")
    with pytest.raises(UnusableModelError, match="use one openai: model"):
        create_bot(Settings(model=name, openai_state="response"))
