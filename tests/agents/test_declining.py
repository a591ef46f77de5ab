"""How the general agent declines, by its tool or by a token; and that it does so only where it may."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from agents.declining import REFUSED
from agents.gateway import AgentRequest, Answer, Declined, Failure, FailureKind, Outcome
from agents.general import GeneralAgent
from agents.turn_input import MAY_DECLINE, as_sent
from place import Place
from tests.support.clock import NOON
from tests.support.people import ANNA, said

PLACE = Place(bot_name="Parley", guild="The Guild", channel="general")
SILENT = {0: DeltaToolCall("stay_silent", '{"why": "they talk to Ben"}', tool_call_id="call-1")}

Piece = str | DeltaToolCalls


class Talker:
    """A model that says these pieces, in one response after the other, and keeps what it was sent."""

    def __init__(self, *responses: Sequence[Piece]) -> None:
        self.responses = list(responses)
        self.sent: list[list[ModelMessage]] = []
        self.tools: list[list[str]] = []
        self.pieces_said = 0

    async def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Piece]:
        self.sent.append(messages)
        self.tools.append([tool.name for tool in info.function_tools])
        for piece in self.responses.pop(0):
            self.pieces_said += 1
            yield piece


async def respond(talker: Talker, *, may_decline: bool = True) -> tuple[Outcome, list[str]]:
    asked, shown = [said(ANNA, "shall we go?")], list[str]()
    request = AgentRequest([], asked, asked, PLACE, NOON, may_decline=may_decline)
    agent = GeneralAgent(FunctionModel(stream_function=talker))
    return await agent.respond(request, shown.append), shown


async def test_it_declines_by_the_tool_and_says_why() -> None:
    talker = Talker([SILENT])
    outcome, shown = await respond(talker)
    assert isinstance(outcome, Declined)
    assert (outcome.why, shown) == ("they talk to Ben", [])
    assert outcome.tokens > 0


async def test_whatever_else_it_calls_with_that_does_not_run() -> None:
    ask = DeltaToolCall("ask_text", '{"question": "To me?"}', tool_call_id="call-2")
    outcome, shown = await respond(Talker([{1: ask, **SILENT}]))
    assert isinstance(outcome, Declined)
    assert not shown


@pytest.mark.parametrize("arguments", ["", "{}", "[]", "{broken", '{"why": null}', '{"why": ["a"]}'])
async def test_it_declines_whatever_it_makes_of_the_arguments(arguments: str) -> None:
    outcome, _ = await respond(Talker([{0: DeltaToolCall("stay_silent", arguments, tool_call_id="call-1")}]))
    assert isinstance(outcome, Declined)


async def test_where_it_was_called_the_tool_is_refused_and_it_answers() -> None:
    talker = Talker([SILENT], ["Yes, ", "let us go."])
    outcome, shown = await respond(talker, may_decline=False)
    assert isinstance(outcome, Answer)
    assert (outcome.text, shown[-1]) == ("Yes, let us go.", "Yes, let us go.")
    assert REFUSED in str(talker.sent[-1])


async def test_one_that_was_called_and_declines_again_and_again_is_not_asked_for_ever() -> None:
    talker = Talker(*[[SILENT]] * 10)
    outcome, shown = await respond(talker, may_decline=False)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, shown, len(talker.sent)) == (FailureKind.EMPTY, [], 2)


async def test_behind_words_that_were_shown_the_tool_is_refused_too() -> None:
    outcome, _ = await respond(Talker(["Well.", SILENT], ["Let us go."]))
    assert isinstance(outcome, Answer)
    assert outcome.text == "Well.\n\nLet us go."


async def test_the_tool_is_always_in_the_list_and_the_sentence_only_where_it_may() -> None:
    sentences, tools = [], []
    for may_decline in (True, False):
        talker = Talker(["Yes."])
        await respond(talker, may_decline=may_decline)
        sentences.append(MAY_DECLINE in str(talker.sent))
        tools += talker.tools
    assert sentences == [True, False]
    assert tools[0] == tools[1]
    assert "stay_silent" in tools[0]


async def test_the_prompt_of_an_answered_turn_stays_as_it_was_sent() -> None:
    talker = Talker(["Yes."])
    outcome, _ = await respond(talker)
    assert isinstance(outcome, Answer)
    assert [m.parts[0].content for m in as_sent(outcome.history)[:1]] == [  # type: ignore[union-attr]
        talker.sent[0][0].parts[0].content  # type: ignore[union-attr]
    ]


TOKENS = [
    ["[silent]"],
    ["[", "sil", "ent", "]"],
    ["[SILENT]", "\n"],
    [" \n", "`[silent]`"],
    ['"[silent]".', " They", " talk to Ben."],
    ["**[silent]** I say nothing."],
]


@pytest.mark.parametrize("pieces", TOKENS)
async def test_the_token_at_the_beginning_declines_and_is_never_shown(pieces: list[str]) -> None:
    talker = Talker(pieces)
    outcome, shown = await respond(talker)
    assert isinstance(outcome, Declined)
    assert not shown
    assert outcome.tokens > 0


async def test_a_stream_that_talks_on_behind_the_token_is_stopped() -> None:
    talker = Talker(["[silent]", *[" They talk to Ben."] * 100])
    outcome, _ = await respond(talker)
    assert isinstance(outcome, Declined)
    assert talker.pieces_said < 10


async def test_where_it_was_called_the_token_is_left_out() -> None:
    outcome, shown = await respond(Talker(["[silent]", " Let us", " go."]), may_decline=False)
    assert isinstance(outcome, Answer)
    assert (outcome.text, shown) == ("Let us go.", ["Let us", "Let us go."])


@pytest.mark.parametrize("pieces", TOKENS[:4])
async def test_where_it_was_called_the_token_alone_is_no_answer(pieces: list[str]) -> None:
    outcome, shown = await respond(Talker(pieces), may_decline=False)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, shown) == (FailureKind.EMPTY, [])


@pytest.mark.parametrize(
    "pieces",
    [
        ["[si", "mple]"],
        ["**", "Bold** words"],
        ["silent"],
        ["I was [silent]"],
        ["`", "[", "x", "]`"],
        ["[silen"],
        ["* " * 60],
    ],
)
async def test_what_only_begins_like_the_token_is_shown_whole(pieces: list[str]) -> None:
    outcome, shown = await respond(Talker(pieces))
    assert isinstance(outcome, Answer)
    assert outcome.text == shown[-1] == "".join(pieces)


async def test_nothing_is_said_yet_where_a_model_only_broke_the_line_before_it_used_a_tool() -> None:
    react = {0: DeltaToolCall("no_such_tool", "{}", tool_call_id="call-1")}
    outcome, _ = await respond(Talker(["\n", react], ["[silent]"]))
    assert isinstance(outcome, Declined)
