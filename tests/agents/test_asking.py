"""agents/asking.py and general.py, over real HTTP: the agent asks somebody, waits, and goes on with what they said."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import structlog
from pydantic_ai import Tool
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from structlog.testing import capture_logs

from agents import gateway
from agents.asking import CALLED_OFF, MAX_ARGUMENTS, MAX_QUESTIONS, REFUSED, TOO_LONG, TOO_MANY
from agents.bounded_client import asks_another
from agents.gateway import AgentRequest, Answer, Failure, FailureKind
from agents.general import MAX_CALLS, GeneralAgent
from conversation import ChannelConversation, MessageRecord
from place import Place
from state.prompts import AwaitingType, ResolutionType
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, CHANNEL, said
from tests.support.stub_model import Body, Call, Reply, StubModel, texts

PLACE = Place(bot_name="Parley", guild="The Guild", channel="general")
IMAGE = "https://cdn.example/cat.png"
WHICH = json.dumps({"question": "Which tea?", "options": ["green", "black"]})


class Cellar:
    """An owner's tools, and what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.tools = [Tool(self.count, name="count"), Tool(self.empty, name="empty", requires_approval=True)]

    async def count(self, shelf: int) -> int:
        """Counts the bottles on a shelf."""
        self.done.append(f"count {shelf}")
        return 7 * shelf

    async def empty(self, shelf: int) -> str:
        """Empties a shelf."""
        self.done.append(f"empty {shelf}")
        return f"shelf {shelf} is empty"


def request(*transcript: MessageRecord, history: Sequence[ModelMessage] = (), **more: Any) -> AgentRequest:
    return AgentRequest(history, transcript, transcript[-1:], PLACE, NOON, **more)


async def answer(agent: GeneralAgent, turn: AgentRequest, shown: list[str] | None = None) -> Answer:
    outcome = await agent.respond(turn, (shown if shown is not None else []).append)
    assert isinstance(outcome, Answer), outcome
    return outcome


async def asked(agent: GeneralAgent, stub: StubModel, *calls: Call, text: str = "", **more: Any) -> Answer:
    """Anna's question, which the model answers by these calls."""
    stub.replies.append(Reply(text, calls=calls))
    first = await answer(agent, request(said(ANNA, "make tea"), **more))
    assert first.ask
    return first


def resolved(
    asking: Answer,
    kind: ResolutionType,
    word: str = "that one",
    *,
    history: Sequence[ModelMessage] | None = None,
    images: tuple[str, ...] = (),
    **data: Any,
) -> AgentRequest:
    """Anna's reply to what was asked. history: where it is not the one of the question."""
    assert asking.ask
    reply = gateway.Reply(asking.ask.context["ask_id"], kind, data)
    before = asking.history if history is None else history
    return request(said(ANNA, word, images=images), history=before, reply=reply)


def chosen(asking: Answer, option: str, word: str = "that one", **more: Any) -> AgentRequest:
    return resolved(asking, ResolutionType.SELECTION, word, selected_option=option, selection_index=1, **more)


def results(body: Body) -> list[tuple[str, str]]:
    """What a request tells the model of its calls: id and result."""
    return [(m["tool_call_id"], m["content"]) for m in body["messages"] if m["role"] == "tool"]


def roles(body: Body) -> list[str]:
    return [m["role"] for m in body["messages"]]


# Asking


async def test_what_would_be_kept_for_too_long_an_answer_is_a_failure(
    stub: StubModel, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.asking.MAX_KEPT", 10_000)
    first = await asked(GeneralAgent(model), stub, Call("ask_choice", WHICH))
    stub.replies.append(Reply(calls=(Call("ask_choice", WHICH), Call("count", "x" * 10_000))))
    outcome = await GeneralAgent(model).respond(chosen(first, "black"), lambda _text: None)
    assert isinstance(outcome, Failure)
    assert "too much to wait" in outcome.detail


async def test_commas_in_what_a_tool_said_are_no_parts_of_what_is_kept(
    stub: StubModel, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.asking.MAX_KEPT", 10_000)
    first = await asked(GeneralAgent(model), stub, Call("ask_choice", WHICH))
    stub.replies.append(Reply(calls=(Call("count", json.dumps({"of": "a,b," * 200})), Call("ask_choice", WHICH))))
    outcome = await GeneralAgent(model).respond(chosen(first, "black"), lambda _text: None)
    assert isinstance(outcome, Answer)


async def test_who_may_not_know_what_a_run_has_does_not_go_on_with_it(stub: StubModel, model: Model) -> None:
    asking = await asked(GeneralAgent(model), stub, Call("ask_choice", WHICH))
    stub.replies.append(Reply("What?"))
    by = said(BEN, "black")
    turn = chosen(asking, "black", history=asking.history)
    asks = gateway.Asked(1, 2, BEN, 3, newcomers=frozenset({BEN}))
    turn = replace(turn, transcript=[by], questions=[by], said={by.message_id: by}, asked=asks)
    assert (await answer(GeneralAgent(model), turn)).text == "What?"
    assert "make tea" not in json.dumps(stub.requests[-1]["messages"])
    assert results(stub.requests[-1]) == []


async def test_a_choice_is_asked_in_words_that_anybody_can_answer(stub: StubModel, model: Model) -> None:
    stub.replies.append(Reply("Gladly.", calls=(Call("ask_choice", WHICH),)))
    shown: list[str] = []
    asking = await answer(GeneralAgent(model), request(said(ANNA, "make tea")), shown)
    assert asking.text == "Gladly.\n\nWhich tea?\n\n1. green\n2. black"
    assert shown == ["Gladly.", asking.text]
    assert asking.ask
    assert (asking.ask.awaiting_type, asking.ask.options) == (AwaitingType.SELECTION, ("green", "black"))
    assert (asking.ask.source_handler, asking.ask.anyone) == ("agent", False)
    assert (asking.tokens, len(stub.requests)) == (15, 1)


UNASKABLE: list[tuple[str, dict[str, Any]]] = [
    ("ask_choice", {"question": "Which?", "options": ["tea"]}),
    ("ask_choice", {"question": "Which?", "options": [f"tea {n}" for n in range(26)]}),
    ("ask_choice", {"question": "Which?", "options": ["tea", "Tea "]}),
    ("ask_choice", {"question": "Which?", "options": ["tea", "\u200b"]}),
    ("ask_choice", {"question": "Which?", "options": ["tea", "https://discord.com/channels/70/700/900"]}),
    ("ask_text", {"question": "\n"}),
    ("ask_confirmation", {"question": "\u2060"}),
    ("ask_nobody", {"question": "Why?"}),
]


async def test_a_question_that_cannot_be_asked_goes_back_to_the_model(stub: StubModel, model: Model) -> None:
    agent = GeneralAgent(model)
    for tool, arguments in UNASKABLE:
        stub.replies += [Reply(calls=(Call(tool, json.dumps(arguments)),)), Reply("Black it is.")]
        outcome = await answer(agent, request(said(ANNA, "make tea")))
        assert (outcome.text, outcome.ask, outcome.tokens) == ("Black it is.", None, 30), arguments
        assert [call for call, _ in results(stub.requests[-1])] == ["call-1"], arguments


async def test_a_model_that_calls_too_much_at_once_is_stopped_before_it_does(stub: StubModel, model: Model) -> None:
    done: list[int] = []

    async def note(number: int) -> str:
        done.append(number)
        return "noted"

    calls = [Call("note", json.dumps({"number": n}), f"call-{n}") for n in range(MAX_CALLS + 1)]
    stub.replies += [Reply(calls=tuple(calls[:1])), Reply(calls=tuple(calls[1:]))]
    outcome = await GeneralAgent(model, tools=[Tool(note)]).respond(request(said(ANNA)), lambda _: None)
    assert isinstance(outcome, Failure)
    assert done == [0]


# While the question is open


async def test_others_are_answered_meanwhile_by_any_provider(stub: StubModel, model: Model) -> None:
    agent = GeneralAgent(model)
    asking = await asked(agent, stub, Call("ask_choice", WHICH))
    other = await answer(agent, request(said(BEN, "what time is it?"), history=asking.history))
    body = stub.requests[-1]
    assert roles(body) == ["system", "user", "assistant", "user"]
    assert body["messages"][2] == {"role": "assistant", "content": asking.text}
    assert other.history[:2] == asking.history


# Going on


async def test_the_run_goes_on_with_the_choice_and_with_what_was_said_since(stub: StubModel, model: Model) -> None:
    agent = GeneralAgent(model)
    asking = await asked(agent, stub, Call("ask_choice", WHICH), text="Gladly.")
    stub.replies.append(Reply("It is noon."))
    other = await answer(agent, request(said(BEN, "what time is it?"), history=asking.history))
    stub.replies.append(Reply("Green tea, then."))
    final = await answer(agent, chosen(asking, "green", "the first", history=other.history))
    body = stub.requests[-1]
    assert roles(body) == ["system", "user", "assistant", "tool", "user"]
    assert body["messages"][2]["content"] == "Gladly."
    assert body["messages"][2]["tool_calls"][0]["function"]["name"] == "ask_choice"
    assert results(body) == [("call-1", "green")]
    since = texts(body)[-1]
    assert since.index("Ben: what time") < since.index("Parley (you): It is noon.") < since.index("Anna: the first")
    assert since.endswith('Now answer "Anna".')
    assert (final.text, final.ask) == ("Green tea, then.", None)


async def test_what_is_kept_afterwards_are_the_words_alone(stub: StubModel, model: Model) -> None:
    agent = GeneralAgent(model)
    asking = await asked(agent, stub, Call("ask_choice", WHICH))
    stub.replies.append(Reply("Green tea, then."))
    final = await answer(agent, chosen(asking, "green"))
    responses = [m for m in final.history if isinstance(m, ModelResponse)]
    assert [m.parts for m in responses] == [[TextPart(asking.text)], [TextPart("Green tea, then.")]]
    assert [m.metadata for m in responses] == [None, None]
    assert len(final.history) == 4


@pytest.mark.parametrize(
    ("tool", "kind", "data", "told"),
    [
        ("ask_confirmation", ResolutionType.CONFIRMATION, {"confirmed": True}, "true"),
        ("ask_confirmation", ResolutionType.CONFIRMATION, {"confirmed": False}, "false"),
        ("ask_confirmation", ResolutionType.CANCEL, {}, CALLED_OFF),
        ("ask_text", ResolutionType.INPUT, {"content": "two spoons"}, "two spoons"),
        ("ask_text", ResolutionType.CANCEL, {}, CALLED_OFF),
    ],
)
async def test_the_model_is_told_what_they_said(
    stub: StubModel, model: Model, tool: str, kind: ResolutionType, data: dict[str, Any], told: str
) -> None:
    agent = GeneralAgent(model)
    asking = await asked(agent, stub, Call(tool, '{"question": " Sugar? "}'))
    assert asking.ask
    awaiting = {"ask_confirmation": AwaitingType.CONFIRMATION, "ask_text": AwaitingType.INPUT}[tool]
    assert (asking.text, asking.ask.awaiting_type, asking.ask.options) == ("Sugar?", awaiting, ())
    stub.replies.append(Reply("Right."))
    assert (await answer(agent, resolved(asking, kind, **data))).text == "Right."
    assert results(stub.requests[-1]) == [("call-1", told)]


async def test_the_run_can_ask_again(stub: StubModel, model: Model) -> None:
    agent = GeneralAgent(model)
    first = await asked(agent, stub, Call("ask_choice", WHICH))
    stub.replies.append(Reply(calls=(Call("ask_text", '{"question": "How strong?"}', "call-2"),)))
    second = await answer(agent, chosen(first, "green"))
    assert second.text == "How strong?"
    assert first.ask
    assert second.ask
    assert second.ask.context != first.ask.context
    stub.replies.append(Reply("Done."))
    final = await answer(agent, resolved(second, ResolutionType.INPUT, content="very"))
    assert results(stub.requests[-1]) == [("call-1", "green"), ("call-2", "very")]
    assert roles(stub.requests[-1])[-5:] == ["assistant", "tool", "assistant", "tool", "user"]
    assert (final.text, len(final.history)) == ("Done.", 6)


async def test_what_people_said_stands_in_the_history_once_where_they_can_be_deleted(
    stub: StubModel, model: Model
) -> None:
    agent = GeneralAgent(model)
    first = await asked(agent, stub, Call("ask_choice", WHICH))
    stub.replies.append(Reply(calls=(Call("ask_text", '{"question": "How strong?"}', "call-2"),)))
    second = await answer(agent, chosen(first, "green", "the first, I am parched"))
    assert ModelMessagesTypeAdapter.dump_json(second.history).count(b"parched") == 1


async def test_several_questions_are_asked_one_after_the_other(stub: StubModel, model: Model) -> None:
    agent = GeneralAgent(model)
    sugar = Call("ask_confirmation", '{"question": "Sugar?"}', "call-2")
    first = await asked(agent, stub, Call("ask_choice", WHICH), sugar)
    shown: list[str] = []
    second = await answer(agent, chosen(first, "green"), shown)
    assert (second.text, second.tokens, shown) == ("Sugar?", 0, ["Sugar?"])
    assert len(stub.requests) == 1
    stub.replies.append(Reply("Sweet."))
    final = await answer(agent, resolved(second, ResolutionType.CONFIRMATION, confirmed=True))
    assert results(stub.requests[-1]) == [("call-1", "green"), ("call-2", "true")]
    assert final.text == "Sweet."


async def test_more_than_five_questions_at_once_are_not_asked(stub: StubModel, model: Model) -> None:
    agent = GeneralAgent(model)
    calls = [Call("ask_text", json.dumps({"question": f"{n}?"}), f"call-{n}") for n in range(7)]
    asking = await asked(agent, stub, *calls)
    for number in range(1, MAX_QUESTIONS):
        asking = await answer(agent, resolved(asking, ResolutionType.INPUT, content="so"))
        assert asking.text == f"{number}?"
    stub.replies.append(Reply("Enough."))
    final = await answer(agent, resolved(asking, ResolutionType.INPUT, content="so"))
    assert final.text == "Enough."
    assert [told for _, told in results(stub.requests[-1])] == ["so"] * MAX_QUESTIONS + [TOO_MANY] * 2


class Writer:
    """A tool that people have to allow, and what it wrote."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.tool = Tool(self.write, requires_approval=True)

    async def write(self, text: str) -> str:
        """Writes."""
        self.written.append(text)
        return "written"


@pytest.fixture
def writer() -> Writer:
    return Writer()


async def test_what_is_too_long_to_be_shown_does_not_keep_the_rest_from_being_asked(
    stub: StubModel, model: Model, writer: Writer
) -> None:
    agent = GeneralAgent(model, tools=[writer.tool])
    long, short = (json.dumps({"text": text}) for text in ("x" * MAX_ARGUMENTS, "short"))
    asking = await asked(agent, stub, Call("write", long, "call-1"), Call("write", short, "call-2"))
    assert asking.text == 'May I run `write` with `{"text": "short"}`?'
    stub.replies.append(Reply("Done."))
    await answer(agent, resolved(asking, ResolutionType.CONFIRMATION, confirmed=True))
    assert writer.written == ["short"]
    assert results(stub.requests[-1]) == [("call-1", TOO_LONG), ("call-2", "written")]


async def test_who_calls_one_question_off_is_asked_none_of_the_others(stub: StubModel, model: Model) -> None:
    agent = GeneralAgent(model)
    sugar = Call("ask_confirmation", '{"question": "Sugar?"}', "call-2")
    first = await asked(agent, stub, Call("ask_choice", WHICH), sugar)
    stub.replies.append(Reply("As you like."))
    assert (await answer(agent, resolved(first, ResolutionType.CANCEL))).text == "As you like."
    assert results(stub.requests[-1]) == [("call-1", CALLED_OFF), ("call-2", CALLED_OFF)]


async def test_a_question_that_was_trimmed_or_forgotten_makes_an_ordinary_turn(stub: StubModel, model: Model) -> None:
    left = [ModelRequest(parts=[UserPromptPart("Anna: tea\n")]), ModelResponse(parts=[TextPart("(forgotten)")])]
    agent = GeneralAgent(model)
    asking = await asked(agent, stub, Call("ask_choice", WHICH))
    stub.replies.append(Reply("The first of what?"))
    outcome = await answer(agent, chosen(asking, "green", history=left))
    assert outcome.text == "The first of what?"
    assert results(stub.requests[-1]) == []
    assert "Anna: that one" in texts(stub.requests[-1])[-1]
    assert outcome.history[:-2] == left


BROKEN: dict[str, dict[str, Any]] = {
    "no calls": {"calls": []},
    "other calls": {"calls": [{"call_id": "x", "text": "?", "awaiting": "awaiting_input"}]},
    "nothing said": {"said": []},
    "garbage said": {"said": "x"},
    "garbage people": {"people": ["x"]},
    "garbage sources": {"words_of": 5},
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_a_run_that_cannot_be_read_makes_an_ordinary_turn(
    stub: StubModel, model: Model, broken: dict[str, Any]
) -> None:
    agent = GeneralAgent(model)
    asking = await asked(agent, stub, Call("ask_choice", WHICH))
    *before, last = asking.history
    assert isinstance(last, ModelResponse)
    history = [*before, replace(last, metadata={**(last.metadata or {}), **broken})]
    stub.replies.append(Reply("Green tea, then?"))
    with capture_logs() as logs:
        final = await answer(agent, chosen(asking, "green", history=history))
    assert final.text == "Green tea, then?"
    assert "tool" not in roles(stub.requests[-1])
    assert [entry["event"] for entry in logs] == ["suspended_run_refused"]


# What is edited or deleted meanwhile


@pytest.fixture
def conversation() -> ChannelConversation:
    return ChannelConversation(CHANNEL, NOON, NOON)


NAME, DATE = (Call("ask_text", json.dumps({"question": question}), question) for question in ("Name?", "Date?"))


async def take(
    agent: GeneralAgent, conversation: ChannelConversation, message: MessageRecord, asking: Answer | None = None
) -> Answer:
    """A turn as the channel makes it. asking: what the message replies to."""
    conversation.add(message)
    reply = None
    if asking and asking.ask:
        data = {"content": message.content}
        reply = gateway.Reply(asking.ask.context["ask_id"], ResolutionType.INPUT, data)
    outcome = await answer(agent, request(message, history=conversation.llm_history, reply=reply))
    conversation.answered(outcome.history)
    return outcome


Going = tuple[GeneralAgent, MessageRecord, Answer]


@pytest.fixture(params=["one after the other", "at once"])
async def half_answered(
    stub: StubModel, model: Model, conversation: ChannelConversation, request: pytest.FixtureRequest
) -> Going:
    """The agent has asked two questions, the first is answered: that answer, and the agent's second question."""
    at_once = request.param == "at once"
    agent, name = GeneralAgent(model), said(ANNA, "bluebell")
    stub.replies.append(Reply(calls=(NAME, DATE) if at_once else (NAME,)))
    first = await take(agent, conversation, said(ANNA, "plan a trip"))
    if not at_once:
        stub.replies.append(Reply(calls=(DATE,)))
    return agent, name, await take(agent, conversation, name, first)


async def test_a_run_goes_on_though_something_else_was_deleted(
    stub: StubModel, conversation: ChannelConversation, half_answered: Going
) -> None:
    agent, name, second = half_answered
    conversation.add(other := said(BEN, "hello"))
    conversation.remove({other.message_id})
    # Discord sends an edit for each link that it unfurls.
    conversation.revise(replace(name, readable="bluebell (a picture of a flower)"))
    await take(agent, conversation, said(ANNA, "in May"), second)
    assert [told for _, told in results(stub.requests[-1])] == ["bluebell", "in May"]


@pytest.mark.parametrize("how", ["deleted", "edited", "forgotten"])
async def test_an_answer_that_is_taken_back_is_told_no_more(
    stub: StubModel, conversation: ChannelConversation, half_answered: Going, how: str
) -> None:
    agent, name, second = half_answered
    if how == "deleted":
        conversation.remove({name.message_id})
    elif how == "edited":
        conversation.revise(replace(name, content="cowslip"))
    else:
        conversation.forget(ANNA)
    stub.replies.append(Reply("In May."))
    final = await take(agent, conversation, said(ANNA, "in May"), second)
    body = json.dumps(stub.requests[-1])
    assert "bluebell" not in body
    assert ("cowslip" in body) is (how == "edited")
    assert "Anna: in May" in body
    assert final.text == "In May."
    assert b"bluebell" not in ModelMessagesTypeAdapter.dump_json(conversation.llm_history)


async def test_an_answer_that_is_taken_back_while_the_run_goes_on_is_told_no_more(
    stub: StubModel, model: Model, conversation: ChannelConversation
) -> None:
    agent, name = GeneralAgent(model), said(ANNA, "bluebell")
    stub.replies += [Reply(calls=(NAME,)), Reply(calls=(DATE,))]
    first = await take(agent, conversation, said(ANNA, "plan a trip"))
    stub.on_request = lambda: conversation.remove({name.message_id})
    await take(agent, conversation, name, first)
    assert b"bluebell" not in ModelMessagesTypeAdapter.dump_json(conversation.llm_history)


async def test_a_run_goes_with_the_question_it_was_begun_for(
    stub: StubModel, model: Model, conversation: ChannelConversation
) -> None:
    """What it calls tools with may be words of it."""
    agent, wish = GeneralAgent(model), said(ANNA, "find my bluebell")
    stub.replies.append(Reply(calls=(Call("ask_text", '{"question": "Which bluebell?"}'),)))
    await take(agent, conversation, wish)
    assert conversation.waits
    conversation.remove({wish.message_id})
    assert not any(m.metadata for m in conversation.llm_history if isinstance(m, ModelResponse))


# The owner's tools


async def test_an_owners_tool_is_run_and_its_result_told(stub: StubModel, model: Model) -> None:
    cellar = Cellar()
    stub.replies += [Reply("Let me see.", calls=(Call("count", '{"shelf": 2}'),)), Reply("There are 14.")]
    shown: list[str] = []
    outcome = await answer(GeneralAgent(model, tools=cellar.tools), request(said(ANNA, "how many?")), shown)
    assert outcome.text == shown[-1] == "Let me see.\n\nThere are 14."
    assert outcome.tokens == 30
    assert results(stub.requests[1]) == [("call-1", "14")]
    assert [m.parts for m in outcome.history if isinstance(m, ModelResponse)] == [[TextPart(outcome.text)]]


@pytest.mark.parametrize(
    ("kind", "data", "told", "done"),
    [
        (ResolutionType.CONFIRMATION, {"confirmed": True}, "shelf 3 is empty", ["empty 3"]),
        (ResolutionType.CONFIRMATION, {"confirmed": False}, REFUSED, []),
        (ResolutionType.CANCEL, {}, CALLED_OFF, []),
    ],
)
async def test_a_tool_that_needs_approval_runs_after_a_yes_only(
    stub: StubModel, model: Model, kind: ResolutionType, data: dict[str, Any], told: str, done: list[str]
) -> None:
    cellar = Cellar()
    agent = GeneralAgent(model, tools=cellar.tools)
    asking = await asked(agent, stub, Call("empty", '{"shelf": 3}'))
    assert asking.text == 'May I run `empty` with `{"shelf": 3}`?'
    assert asking.ask
    assert asking.ask.awaiting_type is AwaitingType.CONFIRMATION
    assert cellar.done == []
    stub.replies.append(Reply("So be it."))
    await answer(agent, resolved(asking, kind, **data))
    assert results(stub.requests[-1]) == [("call-1", told)]
    assert cellar.done == done


async def test_what_is_called_beside_a_question_runs_once(stub: StubModel, model: Model) -> None:
    cellar = Cellar()
    agent = GeneralAgent(model, tools=cellar.tools)
    asking = await asked(
        agent,
        stub,
        Call("ask_choice", WHICH),
        Call("count", '{"shelf": 1}', "call-2"),
        Call("empty", '{"shelf": 1}', "call-3"),
    )
    second = await answer(agent, chosen(asking, "green"))
    assert second.text.startswith("May I run `empty`")
    stub.replies.append(Reply("Done."))
    await answer(agent, resolved(second, ResolutionType.CONFIRMATION, confirmed=True))
    assert cellar.done == ["count 1", "empty 1"]
    assert dict(results(stub.requests[-1])) == {"call-1": "green", "call-2": "7", "call-3": "shelf 1 is empty"}
    assert roles(stub.requests[-1])[-5:] == ["assistant", "tool", "tool", "tool", "user"]


async def test_what_was_allowed_is_told_as_done_also_where_something_else_was_called_beside_it(
    stub: StubModel, model: Model
) -> None:
    """By that it is known that nothing of it may be done twice."""
    agent = GeneralAgent(model, tools=Cellar().tools)
    calls = (Call("count", '{"shelf": 1}'), Call("empty", '{"shelf": 1}', "call-2"))
    asking = await asked(agent, stub, *calls)
    stub.replies.append(Reply("Done."))
    stages: list[str] = []
    used: list[str] = []
    turn = resolved(asking, ResolutionType.CONFIRMATION, confirmed=True)
    await answer(agent, replace(turn, tell_stage=stages.append, used=used.extend))
    assert (stages, used) == (["using empty"], ["empty"])


async def test_requests_and_responses_take_turns_whatever_ran_when(stub: StubModel, model: Model) -> None:
    cellar = Cellar()
    calls = (Call("ask_choice", WHICH), Call("count", '{"shelf": 1}', "call-2"))
    asking = await asked(GeneralAgent(model, tools=cellar.tools), stub, *calls)
    kinds: list[str] = []

    async def look(messages: list[ModelMessage], _info: object) -> AsyncIterator[str]:
        kinds.extend(message.kind for message in messages)
        yield "Done."

    await answer(GeneralAgent(FunctionModel(stream_function=look), tools=cellar.tools), chosen(asking, "green"))
    assert kinds == ["request", "response", "request"]


async def test_an_approved_tool_runs_once_though_the_model_takes_no_pictures(stub: StubModel, model: Model) -> None:
    cellar = Cellar()
    agent = GeneralAgent(model, tools=cellar.tools)
    asking = await asked(agent, stub, Call("empty", '{"shelf": 3}'))
    turn = resolved(asking, ResolutionType.CONFIRMATION, "yes, like this", images=(IMAGE,), confirmed=True)
    stub.default = lambda body: Reply(status=400) if "[image]" in "".join(texts(body)) else Reply("It is empty.")
    assert (await answer(agent, turn)).text == "It is empty."
    assert cellar.done == ["empty 3"]
    assert results(stub.requests[-1]) == [("call-1", "shelf 3 is empty")]
    assert "Anna: yes, like this" in texts(stub.requests[-1])[-1]


async def test_a_tool_that_hangs_makes_the_answer_late(stub: StubModel, model: Model) -> None:
    async def wait_for_ever() -> None:
        """Waits."""
        await asyncio.Event().wait()

    stub.replies.append(Reply("One moment.", calls=(Call("wait_for_ever", "{}"),)))
    agent = GeneralAgent(model, tools=[Tool(wait_for_ever)], stall_seconds=0.4)
    outcome = await agent.respond(request(said(ANNA)), lambda _: None)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.text) == (FailureKind.LATE, "One moment.")
    assert outcome.tokens == 15


async def test_a_request_that_cannot_be_made_is_no_fault_of_the_models() -> None:
    async def refuse(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
        raise UserError("such a schema cannot be sent")
        yield ""

    with structlog.testing.capture_logs():
        outcome = await GeneralAgent(FunctionModel(stream_function=refuse)).respond(request(said(ANNA)), lambda _: None)
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.INTERNAL
    assert not asks_another(UserError("such a schema cannot be sent"))


async def test_a_tool_that_raises_ends_the_answer_which_costs_what_it_cost(stub: StubModel, model: Model) -> None:
    async def spill() -> None:
        """Spills."""
        raise RuntimeError("all over the floor")

    stub.replies.append(Reply("One moment.", calls=(Call("spill", "{}"),), tokens=100))
    with structlog.testing.capture_logs() as logs:
        outcome = await GeneralAgent(model, tools=[Tool(spill)]).respond(request(said(ANNA)), lambda _: None)
    assert outcome == Failure(FailureKind.INTERNAL, "RuntimeError: all over the floor", "One moment.", 100)
    assert [(entry["event"], entry["exc_info"]) for entry in logs] == [("run_failed", True)]


async def stopped(agent: GeneralAgent, turn: AgentRequest, when: asyncio.Event) -> int:
    """The tokens of an answer that is stopped then."""
    running = asyncio.create_task(agent.respond(turn, lambda _: None))
    await when.wait()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    return agent.interrupted(turn, "").tokens


async def test_an_answer_stopped_in_its_third_request_costs_all_three(stub: StubModel, model: Model) -> None:
    agent = GeneralAgent(model, tools=Cellar().tools)
    arrived = asyncio.Event()
    stub.on_request = lambda: arrived.set() if len(stub.requests) == 3 else None
    count = Reply(calls=(Call("count", '{"shelf": 2}'),), tokens=10_000)
    stub.replies += [count, count, Reply(before=asyncio.Event())]
    tokens = await stopped(agent, request(said(ANNA, "x" * 8_000)), arrived)
    assert 24_000 < tokens < 26_000


async def test_an_answer_stopped_while_a_tool_runs_costs_its_requests_alone(stub: StubModel, model: Model) -> None:
    began = asyncio.Event()

    async def wait_for_ever() -> None:
        """Waits."""
        began.set()
        await asyncio.Event().wait()

    stub.replies.append(Reply(calls=(Call("wait_for_ever", "{}"),), tokens=10_000))
    agent = GeneralAgent(model, tools=[Tool(wait_for_ever)])
    assert await stopped(agent, request(said(ANNA)), began) == 10_000


async def test_a_stopped_answer_is_not_kept_for_ever(stub: StubModel, model: Model) -> None:
    gc.freeze()  # what other tests have left need not be walked through
    agent = GeneralAgent(model)
    stub.replies.append(Reply(before=asyncio.Event()))
    assert await stopped(agent, request(said(ANNA)), stub.arrived)
    gc.collect()
    assert not agent._used


# Without tools


# Notes
