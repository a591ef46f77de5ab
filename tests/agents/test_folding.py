"""How a long history is sent: older turns as text, the newest ones as turns, the beginning always the same."""

from __future__ import annotations

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import FunctionModel

from agents.demo import demo_model
from agents.gateway import AgentRequest, Answer, Place
from agents.general import GeneralAgent
from agents.history import FOLDED_AT_ONCE, UNFOLDED_TURNS
from agents.models import build_model
from agents.run import MAX_ANSWER_CHARACTERS
from tests.support.clock import NOON
from tests.support.histories import turn
from tests.support.people import ANNA, said
from tests.support.stub_model import Reply, StubModel, texts

PLACE = Place("Parley", "The Guild", "general")


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


FOLDED = UNFOLDED_TURNS + FOLDED_AT_ONCE


@pytest.mark.parametrize("turns", [1, 3, FOLDED - 1, FOLDED, FOLDED + 1, 2 * FOLDED, 100])
async def test_few_messages_are_sent_however_long_the_history_is(stub: StubModel, turns: int) -> None:
    messages = await sent(stub, turns)
    assert len(messages) <= 2 * (UNFOLDED_TURNS + FOLDED_AT_ONCE - 1) + 1
    everything = "".join(messages)
    for n in range(turns):
        assert f"question {n}\n" in everything
        assert f"answer {n}\n" in everything


async def test_what_was_said_stands_in_its_order_and_marked(stub: StubModel) -> None:
    first = (await sent(stub, FOLDED))[0]
    assert first.index("question 0") < first.index("Parley (you): answer 0\n    Parley: no") < first.index("question 1")


async def test_the_beginning_stays_the_same_until_more_is_folded(stub: StubModel) -> None:
    for turns in range(1, FOLDED - 1):
        before, after = await sent(stub, turns), await sent(stub, turns + 1)
        assert before[:-1] == after[: len(before) - 1]


async def test_the_text_only_grows_at_its_end(stub: StubModel) -> None:
    shorter = (await sent(stub, FOLDED))[0]
    longer = (await sent(stub, FOLDED + FOLDED_AT_ONCE))[0]
    assert longer.startswith(shorter.rpartition("[image]")[0])


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


async def test_the_demo_model_remembers_what_was_folded() -> None:
    question = said(ANNA, "what did I say?")
    history = long_history(FOLDED + 1)
    request = AgentRequest(history, [question], [question], PLACE, NOON)
    outcome = await GeneralAgent(demo_model()).respond(request, lambda _: None)
    assert isinstance(outcome, Answer)
    assert f"question {FOLDED}" in outcome.text
