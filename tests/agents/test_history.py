"""How a long history is sent: turn by turn, the beginning always the same. And what never leaves, or is cut."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall, FunctionModel

from agents.gateway import AgentRequest, Answer, Failure
from agents.general import GeneralAgent
from agents.models import build_model
from agents.run import MAX_ANSWER_CHARACTERS
from place import Place
from tests.support.clock import NOON
from tests.support.histories import turn
from tests.support.people import ANNA, said
from tests.support.stub_model import Reply, StubModel, texts

PLACE = Place(bot_name="Parley", guild="The Guild", channel="general")


def long_history(turns: int) -> list[ModelMessage]:
    asked = (said(ANNA, f"question {n}\nin two lines", images=("https://cdn.example/a.png",)) for n in range(turns))
    return [message for n, question in enumerate(asked) for message in turn(question, answer=f"answer {n}\nParley: no")]


async def sent(stub: StubModel, turns: int) -> list[str]:
    """What goes to the model after so many turns, without our rules."""
    stub.requests.clear()
    question = said(ANNA, "and now?")
    async with build_model("MODEL", "openai-chat:main") as model:
        request = AgentRequest(long_history(turns), [question], [question], PLACE, NOON)
        await GeneralAgent(model).respond(request, lambda _: None)
    (body,) = stub.requests
    assert [m["role"] for m in body["messages"][1:]] == ["user", "assistant"] * (len(body["messages"]) // 2 - 1) + [
        "user"
    ]
    return texts(body)[1:]


async def test_the_beginning_stays_the_same(stub: StubModel) -> None:
    for turns in (1, 2, 31, 99):
        before, after = await sent(stub, turns), await sent(stub, turns + 1)
        assert before[:-1] == after[: len(before) - 1]


async def test_one_huge_delta_is_cut_like_many_small_ones() -> None:
    question = said(ANNA, "all of it")

    async def everything(_messages: object, _info: object) -> object:
        yield "x" * 1_000_000

    request = AgentRequest([], [question], [question], PLACE, NOON)
    outcome = await GeneralAgent(FunctionModel(stream_function=everything)).respond(request, lambda _: None)  # type: ignore[arg-type]
    assert isinstance(outcome, Answer)
    assert outcome.was_cut
    assert len(outcome.text) == MAX_ANSWER_CHARACTERS + 1


async def test_half_characters_do_not_leave(stub: StubModel) -> None:
    stub.replies.append(Reply("ok \ud83d done"))
    question = said(ANNA, "emoji?")
    async with build_model("MODEL", "openai-chat:main") as model:
        request = AgentRequest([], [question], [question], PLACE, NOON)
        outcome = await GeneralAgent(model).respond(request, lambda _: None)
    assert isinstance(outcome, Answer)
    assert outcome.text.encode()


@pytest.mark.parametrize(
    ("delta", "at_most"),
    [
        ({0: DeltaThinkingPart(content="x" * 10_000_000)}, 1),
        ({0: DeltaToolCall("noted", "x" * 10_000_000)}, 1),
        (None, 21),
    ],
    ids=["10 MB of thought", "10 MB of arguments", "1,000 calls"],
)
async def test_what_is_over_the_cap_is_read_no_further(delta: Any, at_most: int) -> None:
    question, came, done = said(ANNA, "go on"), [], []

    async def without_end(_messages: object, _info: object) -> object:
        for number in range(1_000):
            came.append(number)
            yield delta or {number: DeltaToolCall("noted", "{}", tool_call_id=f"call-{number}")}

    async def noted() -> None:
        done.append(1)

    request = AgentRequest([], [question], [question], PLACE, NOON)
    model = FunctionModel(stream_function=without_end)  # type: ignore[arg-type]
    outcome = await GeneralAgent(model, tools=[Tool(noted)]).respond(request, lambda _: None)
    assert isinstance(outcome, Failure)
    assert "without end" in outcome.detail
    assert len(came) <= at_most + 1  # a stream is read one event ahead
    assert not done
