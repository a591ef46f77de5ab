"""agents/tool_use.py, over real HTTP: what tools were asked and answered is given back, as long as it may be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson
import pytest
from pydantic_ai import ModelRetry, RunContext, Tool, ToolReturn
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.models.wrapper import WrapperModel
from structlog.testing import capture_logs

from agents import gateway
from agents.asking import NOT_KEPT
from agents.cutting import MAX_BYTES
from agents.gateway import AgentRequest, Answer, Asked, Failure, FailureKind
from agents.general import MAX_REQUESTS, GeneralAgent
from agents.models import NamedModel
from agents.run import BYTES_PER_TOKEN, MAX_OUTPUT_CHARACTERS
from agents.tool_use import KEEP_BYTES, KEEP_TURNS
from agents.turn_input import SEEN
from conversation import ChannelConversation, MessageRecord
from llm_history import uses_tools
from place import Place
from state.agent_state import GPAState, read_agent_state
from state.budget import Allowance, Budget
from state.limits import Limits
from state.message import sources_of_reading
from state.prompts import ResolutionType
from state.spending import CHARACTERS_PER_TOKEN, NOBODY, Amount, Reserved, Spent
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, CHANNEL, said
from tests.support.stub_model import BEFORE, Body, Call, Reply, StubModel, texts

PLACE = Place(bot_name="Parley", guild="The Guild", channel="general")
USED = ["system", "user", "assistant", "tool", "assistant", "user"]
READ = said(BEN, "the wifi password is bluebell")


async def python_run(code: str) -> str:
    """Runs Python."""
    if "import" in code:
        raise ModelRetry("Nothing can be imported.")
    return {"2+2": "4", "big": "x" * MAX_BYTES}.get(code, f"ran {code}")


async def find(_ctx: RunContext[Asked], words: str) -> ToolReturn:
    """Finds what people said."""
    return ToolReturn(f"{words}: {READ.content}", metadata={"words_of": sources_of_reading(READ, CHANNEL)})


def allowance(limits: Limits) -> Allowance:
    return Allowance(Budget(limits, lambda: NOON), NOBODY)


class Talk:
    """A conversation with the agent, whose history is what a channel's conversation makes of it."""

    def __init__(self, stub: StubModel, model: Model, **options: Any) -> None:
        self.stub = stub
        self.agent = GeneralAgent(model, tools=[Tool(python_run), Tool(find, name="find")], **options)
        self.conversation = ChannelConversation(CHANNEL, NOON, NOON)

    @property
    def history(self) -> list[ModelMessage]:
        return self.conversation.llm_history

    @property
    def sent(self) -> Body:
        return self.stub.requests[-1]

    async def say(self, text: str, *replies: Reply, author: int = ANNA, **more: Any) -> Answer:
        return await self.ask(said(author, text), *replies, **more)

    async def ask(self, question: MessageRecord, *replies: Reply, **more: Any) -> Answer:
        """A turn, in which the model replies so."""
        self.stub.replies.extend(replies)
        self.conversation.add(question)
        outcome = await self.agent.respond(self.request(question, **more), lambda _: None)
        assert isinstance(outcome, Answer), outcome
        self.conversation.answered(outcome.history)
        return outcome

    async def tell(self, *turn: MessageRecord | Reply, **more: Any) -> Answer:
        """A turn that tells these messages, of which the last is the question, and in which the model replies so."""
        told = [one for one in turn if isinstance(one, MessageRecord)]
        self.stub.replies.extend(one for one in turn if isinstance(one, Reply))
        for message in told:
            self.conversation.add(message)
        self.conversation.begin_turn()
        outcome = await self.agent.respond(replace(self.request(told[-1], **more), transcript=told), lambda _: None)
        assert isinstance(outcome, Answer), outcome
        self.conversation.answered(outcome.history)
        return outcome

    def request(self, question: MessageRecord, **more: Any) -> AgentRequest:
        asked = Asked(1, CHANNEL, question.author_id, question.message_id)
        return AgentRequest(self.history, [question], [question], PLACE, NOON, asked=asked, **more)


@pytest.fixture
def talk(stub: StubModel, model: Model) -> Talk:
    return Talk(stub, model)


def run(code: str, *, id_: str = "call-1") -> Call:
    return Call("python_run", json.dumps({"code": code}), id_)


def calling(*calls: Call, text: str = "") -> Reply:
    return Reply(text, calls=calls)


def roles(body: Body) -> list[str]:
    return [m["role"] for m in body["messages"]]


def results(body: Body) -> list[str]:
    return [m["content"] for m in body["messages"] if m["role"] == "tool"]


def using(history: Sequence[ModelMessage]) -> list[int]:
    """Which turns of a history have their tool use yet, by their numbers."""
    answers = [message for message in history if isinstance(message, ModelResponse)]
    return [number for number, answer in enumerate(answers) if uses_tools(answer)]


def size(history: Sequence[ModelMessage]) -> int:
    return sum(len(orjson.dumps(message.metadata)) for message in history if uses_tools(message))


# Given back


async def test_a_call_and_its_result_stand_before_the_answer_in_the_next_turn(talk: Talk) -> None:
    await talk.say("Calculate 2+2", calling(run("2+2")), Reply("It is 4."))
    in_the_turn = talk.sent["messages"]
    await talk.say("Now calculate 3+3", Reply("6, then."))
    assert roles(talk.sent) == USED
    assert talk.sent["messages"][: len(in_the_turn)] == in_the_turn
    assert texts(talk.sent)[4] == "It is 4."


async def test_the_state_is_document_004s(talk: Talk) -> None:
    answer = await talk.say("Calculate 2+2", calling(run("2+2")), Reply("It is 4."))
    assert answer.state
    state = answer.state.model_dump(exclude={"v"})
    assert state == {
        "is_gpa": True,
        "gpa_messages": {
            "tool_calls": [{"tool_name": "python_run", "tool_call_id": "call-1", "args": '{"code":"2+2"}'}],
            "tool_responses": [{"tool_call_id": "call-1", "content": "4"}],
            "messages": [{"calls": 1}],
        },
    }
    assert read_agent_state(talk.history[-1].metadata) == answer.state


async def test_an_answer_without_tools_has_an_empty_state_which_is_not_kept(talk: Talk) -> None:
    answer = await talk.say("hello", Reply("Hello."))
    assert isinstance(answer.state, GPAState)
    assert answer.state.gpa_messages.tool_calls == []
    assert talk.history[-1].metadata is None


async def test_calls_at_once_and_calls_after_one_another_stay_so(talk: Talk) -> None:
    both = calling(run("1", id_="a"), run("2", id_="b"))
    await talk.say("go on", both, calling(run("3", id_="c")), Reply("Done."))
    in_the_turn = talk.sent["messages"]
    await talk.say("and?", Reply("That was it."))
    assert roles(talk.sent) == ["system", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "user"]
    assert talk.sent["messages"][: len(in_the_turn)] == in_the_turn


async def test_servers_that_number_their_calls_anew_each_time_are_understood(talk: Talk) -> None:
    for number in range(3):
        await talk.say("again", calling(run(str(number))), Reply(f"That was {number}."))
    await talk.say("and?", Reply("Done."))
    assert results(talk.sent) == ["ran 0", "ran 1", "ran 2"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [('{"code": "import os"}', "Nothing can be imported."), ("{broken", "Invalid JSON"), ("[1]", "error")],
)
async def test_a_call_that_was_refused_is_given_back_too(talk: Talk, arguments: str, told: str) -> None:
    await talk.say("go on", calling(Call("python_run", arguments)), Reply("It cannot be done."))
    await talk.say("why?", Reply("Well."))
    assert roles(talk.sent) == USED
    assert told in results(talk.sent)[0]
    [call] = talk.sent["messages"][2]["tool_calls"]
    assert isinstance(json.loads(call["function"]["arguments"]), dict)


async def test_what_was_said_before_a_call_is_said_once(talk: Talk) -> None:
    answer = await talk.say("go on", calling(run("1"), text="Let me see."), Reply("Done."))
    assert answer.text == "Let me see.\n\nDone."
    await talk.say("and?", Reply("That was it."))
    assert str(talk.sent["messages"]).count("Let me see.") == 1


async def test_what_was_asked_by_a_tool_stands_in_the_history_in_words_alone(talk: Talk) -> None:
    ask = Call("ask_text", '{"question": "Which code?"}', "ask-1")
    asking = await talk.say("run it", calling(run("1"), ask))
    assert asking.ask
    reply = gateway.Reply(asking.ask.context["ask_id"], ResolutionType.INPUT, {"content": "2+2"})
    await talk.say("2+2", calling(run("2+2", id_="call-2")), Reply("It is 4."), reply=reply)
    await talk.say("thanks", Reply("Welcome."))
    assert results(talk.sent) == ["ran 1", "4"]
    assert "ask_text" not in str(talk.sent["messages"])
    assert str(talk.sent["messages"]).count("Which code?") == 1


# Not given back


async def test_what_people_said_is_told_in_the_turn_and_kept_no_longer(talk: Talk) -> None:
    look = Call("find", '{"words": "wifi"}', "call-2")
    await talk.say("the wifi?", calling(run("1"), look), calling(run("bluebell")), Reply("I know it."))
    assert results(talk.sent) == ["ran 1", "wifi: the wifi password is bluebell", "ran bluebell"]
    assert "bluebell" not in str(talk.history)
    await talk.say("and?", Reply("Hm."))
    assert results(talk.sent) == ["ran 1", NOT_KEPT]


@pytest.mark.parametrize("whose", ["the question", "what was said before it"])
@pytest.mark.parametrize("how", ["deleted", "edited", "forgotten", "deleted meanwhile"])
async def test_it_goes_with_the_words_that_it_may_hold(talk: Talk, whose: str, how: str) -> None:
    before, question = said(BEN, "my code is bluebell"), said(ANNA, "run Ben's code")
    meant = question if whose == "the question" else before
    for message in (before, question):
        talk.conversation.add(message)
    talk.conversation.begin_turn()
    talk.stub.replies.extend([calling(run("bluebell")), Reply("Done.")])
    turn = replace(talk.request(question), transcript=[before, question])
    outcome = await talk.agent.respond(turn, lambda _: None)
    assert isinstance(outcome, Answer)
    if how == "deleted meanwhile":
        talk.conversation.remove({meant.message_id})
    talk.conversation.answered(outcome.history)
    if how == "deleted":
        talk.conversation.remove({meant.message_id})
    elif how == "edited":
        talk.conversation.revise(replace(meant, content="nothing"))
    elif how == "forgotten":
        talk.conversation.forget(meant.author_id)
    assert using(talk.history) == []
    assert "bluebell" not in repr(talk.history) or meant is question
    await talk.say("and?", Reply("Hm."))
    assert roles(talk.sent) == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("how", ["deleted", "edited", "forgotten"])
@pytest.mark.parametrize("when", ["a run that waits", "a run that was resumed", "a later turn"])
async def test_what_was_told_before_may_be_quoted_later(talk: Talk, when: str, how: str) -> None:
    told, question = said(BEN, "the wifi is bluebell"), said(ANNA, "run what Ben said")
    if when == "a later turn":
        await talk.tell(told, said(ANNA, "hi"), Reply("Hello."))
        await talk.tell(question, calling(run("bluebell")), Reply("Done."))
    else:
        sure = calling(Call("ask_confirmation", '{"question": "Sure?"}', "ask-1"))
        asking = await talk.tell(told, question, calling(run("bluebell")), sure)
        assert asking.ask
        if when == "a run that was resumed":
            reply = gateway.Reply(asking.ask.context["ask_id"], ResolutionType.CONFIRMATION, {"confirmed": True})
            await talk.tell(said(ANNA, "yes"), Reply("Done."), reply=reply)
    if how == "deleted":
        talk.conversation.remove({told.message_id})
    elif how == "edited":
        talk.conversation.revise(replace(told, content="nothing"))
    else:
        talk.conversation.forget(BEN)
    assert "bluebell" not in ModelMessagesTypeAdapter.dump_json(talk.history).decode()


async def test_what_was_changed_before_the_turn_does_no_harm(talk: Talk) -> None:
    first, question = said(BEN, "hm"), said(ANNA, "run it")
    talk.conversation.add(first)
    talk.conversation.revise(edited := replace(first, content="hmm"))
    talk.conversation.begin_turn()
    talk.stub.replies.extend([calling(run("1")), Reply("Done.")])
    turn = replace(talk.request(question), transcript=[edited, question])
    outcome = await talk.agent.respond(turn, lambda _: None)
    assert isinstance(outcome, Answer)
    talk.conversation.answered(outcome.history)
    assert using(talk.history) == [0]


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"is_gpa": "yes"},
        {"gpa_messages": None},
        {"gpa_messages": {"tool_calls": [], "tool_responses": [], "messages": [{"calls": 1}]}},
        {"gpa_messages": {"tool_calls": ["python_run"], "tool_responses": ["4"], "messages": [{"calls": 1}]}},
        {"gpa_messages": {"tool_calls": [], "tool_responses": [], "messages": [{"calls": "x" * 99}]}},
    ],
)
async def test_a_state_that_cannot_be_read_costs_the_tool_use_alone(talk: Talk, change: dict[str, Any]) -> None:
    await talk.say("Calculate 2+2", calling(run("2+2")), Reply("It is 4."))
    talk.history[-1] = replace(talk.history[-1], metadata={**(talk.history[-1].metadata or {}), **change})
    with capture_logs() as logs:
        await talk.say("and?", Reply("Hm."))
    assert texts(talk.sent)[2:3] == ["It is 4."]
    assert [entry["event"] for entry in logs] == ["agent_state_refused"]
    assert "xxx" not in str(logs)


@pytest.mark.parametrize(("refusals", "has_tools"), [(1, True), (2, False)])
async def test_a_model_that_takes_no_tools_is_sent_none_of_the_history(
    talk: Talk, refusals: int, *, has_tools: bool
) -> None:
    await talk.say("Calculate 2+2", calling(run("2+2")), Reply("It is 4."))
    await talk.say("and?", *refusals * [Reply(status=400, words="tools are not supported")], Reply("Hm."))
    assert roles(talk.sent) == ["system", "user", "assistant", "user"]
    assert ("tools" in talk.sent) == has_tools


@pytest.mark.parametrize("id_", ["same", "x" * 900, "half \ud800", "\x00", "two\nlines"])
async def test_calls_get_ids_that_can_be_told_apart_and_stored(talk: Talk, id_: str) -> None:
    await talk.say("go on", calling(run("1", id_=id_), run("2", id_=id_)), Reply("Done."))
    assert results(talk.sent) == ["ran 1", "ran 2"]
    ids = [m["tool_call_id"] for m in talk.sent["messages"] if m["role"] == "tool"]
    assert len(set(ids)) == 2
    assert all(len(one) < 100 and one.isascii() for one in ids)


HALF = """data: {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0,
 "delta": {"content": "hi \\ud83d "}, "finish_reason": null}]}

data: {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0,
 "delta": {"tool_calls": [{"index": 0, "id": "c1", "type": "function",
 "function": {"name": "NAME", "arguments": ARGS}}]}, "finish_reason": "tool_calls"}]}

data: [DONE]

""".replace("\n ", " ")


@pytest.mark.parametrize(
    ("name", "arguments"), [("python_run", {"code": "1"}), ("ask_confirmation", {"question": "Sure?"})]
)
async def test_half_a_character_before_a_call_can_be_sent_and_stored(
    talk: Talk, name: str, arguments: dict[str, str]
) -> None:
    raw = HALF.replace("NAME", name).replace("ARGS", json.dumps(json.dumps(arguments)))
    answer = await talk.say("go on", Reply(raw=raw.encode()), Reply("Done."))
    assert answer.text.startswith("hi \ufffd ")
    assert ModelMessagesTypeAdapter.dump_json(talk.history)


async def test_a_name_that_is_no_tools_is_not_shown(talk: Talk) -> None:
    stages: list[str] = []
    await talk.say(
        "go on", calling(Call("n\n# OBEY" * 5_000, "{}"), run("1")), Reply("Done."), tell_stage=stages.append
    )
    assert stages == ["using python_run"]
    assert len(str(talk.sent["messages"])) < 5_000


# Pruned


async def test_of_so_many_turns_it_is_kept_and_in_blocks(talk: Talk) -> None:
    kept = []
    for number in range(9):
        await talk.say("go on", calling(run(str(number))), Reply("Yes."))
        kept.append(using(talk.history))
    assert kept[KEEP_TURNS - 1] == [0, 1, 2, 3, 4]
    assert kept[KEEP_TURNS:] == [[3, 4, 5], [3, 4, 5, 6], [3, 4, 5, 6, 7], [6, 7, 8]]


@pytest.mark.parametrize(("keep", "kept"), [(0, []), (1, [3]), (2, [2, 3]), (3, [2, 3]), (4, [0, 1, 2, 3])])
async def test_how_many_is_a_setting(stub: StubModel, model: Model, keep: int, kept: list[int]) -> None:
    talk = Talk(stub, model, keep_turns=keep)
    for number in range(4):
        await talk.say("go on", calling(run(str(number))), Reply("Yes."))
    assert using(talk.history) == kept


async def test_big_results_stay_under_the_bound() -> None:
    async def reply(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        """Without HTTP: the client looks through all that it sends, which by then is a lot."""
        if isinstance(messages[-1].parts[-1], ToolReturnPart):
            yield "Yes."
        else:
            yield {0: DeltaToolCall("python_run", '{"code": "big"}', tool_call_id="call-1")}

    talk = Talk(StubModel(), FunctionModel(stream_function=reply), keep_turns=100)
    sizes = []
    for _ in range(12):
        await talk.say("go on")
        sizes.append(size(talk.history))
    assert max(sizes) <= KEEP_BYTES
    assert min(sizes) > MAX_BYTES


async def test_a_turn_that_is_too_big_alone_is_kept_in_words(talk: Talk) -> None:
    await talk.say("go on", calling(run("1")), Reply("Yes."))
    await talk.say("go on", calling(*(run("big", id_=str(n)) for n in range(5))), Reply("Yes."))
    assert using(talk.history) == [0]


# Limits


async def test_a_model_that_thinks_or_calls_without_end_is_stopped(talk: Talk) -> None:
    talk.stub.replies.append(calling(run("x" * (MAX_OUTPUT_CHARACTERS + 1))))
    outcome = await talk.agent.respond(talk.request(said(ANNA, "go on")), lambda _: None)
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.EMPTY
    assert "went on without end" in outcome.detail
    assert outcome.tokens > 0


async def test_an_answer_makes_eight_requests_whatever_is_refused(talk: Talk) -> None:
    rounds = [calling(run(str(number))) for number in range(7)]
    talk.stub.replies.extend([*rounds, Reply(status=400, words="tools?"), *rounds])
    outcome = await talk.agent.respond(talk.request(said(ANNA, "go on")), lambda _: None)
    assert isinstance(outcome, Failure)
    assert len(talk.stub.requests) == MAX_REQUESTS


async def test_what_was_allowed_is_not_done_once_the_budget_that_would_tell_of_it_is_spent(
    stub: StubModel, model: Model
) -> None:
    talk, limits = Talk(stub, model), Limits(turns_per_user_minute=20, daily_tokens=100)
    ask = Call("ask_text", '{"question": "Which code?"}', "ask-1")
    asking = await talk.say("run it", calling(ask))
    assert asking.ask
    reply = gateway.Reply(asking.ask.context["ask_id"], ResolutionType.INPUT, {"content": "2+2"})
    limits.spend(Spent(tokens_in=100), NOON)
    going_on = talk.request(said(ANNA, "2+2"), reply=reply, allowance=allowance(limits))
    outcome = await talk.agent.respond(going_on, lambda _: None)
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.OVER_BUDGET
    assert len(stub.requests) == 1


async def test_no_request_is_made_once_the_budget_is_spent(stub: StubModel, model: Model) -> None:
    talk, limits = Talk(stub, model), Limits(turns_per_user_minute=20, daily_tokens=30)
    stub.replies.extend([calling(run("1"), text="Let me see."), calling(run("2")), Reply("Never said.")])
    outcome = await talk.agent.respond(talk.request(said(ANNA, "go on"), allowance=allowance(limits)), lambda _: None)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.text, outcome.tokens) == (FailureKind.OVER_BUDGET, "Let me see.", 30)
    assert len(stub.requests) == 2


async def test_an_answer_ends_where_its_next_request_could_take_more_than_one_may(
    stub: StubModel, model: Model
) -> None:
    talk, limits = Talk(stub, model), Limits(turns_per_user_minute=20, daily_tokens=None, turn_tokens=100_000)
    stub.replies.extend([replace(calling(run("1"), text="Let me see."), tokens=90_000), Reply("Never said.")])
    outcome = await talk.agent.respond(talk.request(said(ANNA, "go on"), allowance=allowance(limits)), lambda _: None)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.text, outcome.tokens) == (FailureKind.TURN_CAP, "Let me see.", 90_000)
    much = [said(ANNA, "x" * 4_000) for _ in range(150)]
    asked = replace(talk.request(much[-1], allowance=allowance(limits)), transcript=much, questions=much)
    outcome = await talk.agent.respond(asked, lambda _: None)
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.TURN_CAP
    assert len(stub.requests) == 1


@pytest.mark.parametrize(("name", "tokens"), [("gpt-4o-mini", 2 * 48_169), ("claude-opus-4-7", 2 * 4_784)])
async def test_pictures_are_reserved_at_what_the_model_that_sees_them_is_billed(
    stub: StubModel, model: Model, monkeypatch: pytest.MonkeyPatch, name: str, tokens: int
) -> None:
    monkeypatch.setattr("agents.models.names_of", lambda _: ("openrouter:main", f"openrouter:vendor/{name}"))
    question = said(ANNA, "which of them?", images=("https://cdn.example/a.png", "https://cdn.example/b.png"))
    most = tokens + MAX_OUTPUT_CHARACTERS // CHARACTERS_PER_TOKEN
    talk, limits = Talk(stub, model), Limits(turns_per_user_minute=20, daily_tokens=None, turn_tokens=most)
    await talk.ask(question, Reply("I cannot see them."), allowance=allowance(limits))
    assert "image_url" not in str(stub.requests)
    assert "You cannot see this picture" in str(talk.sent)


async def test_a_picture_for_which_a_long_conversation_leaves_no_room_begins_a_new_one(
    stub: StubModel, model: Model
) -> None:
    talk, limits = Talk(stub, model), Limits(turns_per_user_minute=20, daily_tokens=None, turn_tokens=25_000)
    await talk.say("\U0001f701" * 1_000, Reply("I see."))
    question = said(ANNA, "what is that?", images=("https://cdn.example/a.png",))
    outcome = await talk.agent.respond(talk.request(question, allowance=allowance(limits)), lambda _: None)
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.TOO_LONG
    talk.conversation = ChannelConversation(CHANNEL, NOON, NOON)
    await talk.ask(question, Reply("A cat."), allowance=allowance(limits))


async def test_what_a_model_may_think_unseen_is_reserved_as_far_as_a_turn_may_go(
    stub: StubModel, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NamedModel, "thinks", True)
    talk = Talk(stub, model)
    limits = Limits(turns_per_user_minute=20, daily_tokens=100_000, turn_tokens=100_000)
    gate, asked = asyncio.Event(), asyncio.Event()
    stub.replies.append(Reply("4", before=gate))
    stub.on_request = asked.set
    turn = talk.request(said(ANNA, "2+2"), allowance=allowance(limits))
    answering = asyncio.create_task(talk.agent.respond(turn, lambda _: None))
    await asked.wait()
    assert not limits.reserve(Reserved(NOBODY, Amount(1)), NOON)
    gate.set()
    assert isinstance(await answering, Answer)
    assert limits.tokens_today < 1_000


@pytest.mark.parametrize("then", [Reply("4"), Reply(status=400)])
async def test_a_request_whose_line_broke_costs_beside_the_one_that_the_client_sent_in_its_place(
    stub: StubModel, model: Model, monkeypatch: pytest.MonkeyPatch, then: Reply
) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)
    talk, limits = Talk(stub, model), Limits(turns_per_user_minute=20, daily_tokens=None, turn_tokens=100_000)
    stub.replies.extend([Reply(cut_after=BEFORE), then])
    outcome = await talk.agent.respond(talk.request(said(ANNA, "2+2"), allowance=allowance(limits)), lambda _: None)
    sent = sum(len(text) for text in texts(stub.requests[0])) // BYTES_PER_TOKEN
    assert len(stub.requests) == 2
    assert limits.tokens_today == outcome.tokens > sent


async def test_a_request_that_is_refused_costs_nothing_whatever_was_said_before_it(
    stub: StubModel, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NamedModel, "thinks", True)
    talk, limits = Talk(stub, model), Limits(turns_per_user_minute=20, daily_tokens=None, turn_tokens=100_000)
    stub.replies.extend([calling(run("1"), text="Let me see."), Reply(status=400)])
    outcome = await talk.agent.respond(talk.request(said(ANNA, "go on"), allowance=allowance(limits)), lambda _: None)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.text, outcome.tokens) == (FailureKind.REJECTED, "Let me see.", 15)
    assert limits.tokens_today == 15


async def test_what_was_used_is_paid_where_the_answer_is_stopped_as_its_stream_ends(
    stub: StubModel, model: Model
) -> None:
    ending = asyncio.Event()

    class Ending(WrapperModel):
        @asynccontextmanager
        async def request_stream(self, *given: Any, **more: Any) -> AsyncIterator[Any]:
            async with super().request_stream(*given, **more) as stream:
                yield stream
            ending.set()
            await asyncio.Event().wait()

    talk, limits = Talk(stub, Ending(model)), Limits(turns_per_user_minute=20, daily_tokens=None)
    turn = talk.request(said(ANNA, "2+2"), allowance=allowance(limits))
    answering = asyncio.create_task(talk.agent.respond(turn, lambda _: None))
    await ending.wait()
    answering.cancel()
    await asyncio.wait([answering])
    assert turn.allowance
    assert turn.allowance.settle(talk.agent.interrupted(turn, "4").tokens) == limits.tokens_today == 15


async def test_pictures_are_sent_once_in_a_run(talk: Talk) -> None:
    shown = "https://cdn.example/cat.png"
    await talk.ask(said(ANNA, "who is this?", images=(shown,)), calling(run("1")), calling(run("2")), Reply("A cat."))
    assert [shown in str(body["messages"]) for body in talk.stub.requests] == [True, False, False]
    assert SEEN.strip() in str(talk.sent["messages"])
    await talk.say("and now?", Reply("A cat still."))
    assert shown not in str(talk.sent["messages"])
