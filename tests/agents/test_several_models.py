"""agents/general.py with several models, over real HTTP: each turn is answered by one of them, from first to last."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta

import pytest
from aiohttp import web
from pydantic_ai.messages import ModelRequestAttempt, ModelResponse, ThinkingPart
from structlog.testing import capture_logs

from agents.asking import Suspended
from agents.gateway import Answer, Failure, FailureKind
from agents.general import GeneralAgent
from agents.models import Models, NamedModel, build_model
from place_settings.fields import Level, PlaceSettings
from place_settings.inheritance import Layer, in_force
from state.budget import Budget
from state.limits import Limits
from state.spending import NOBODY, Spent
from tests.agents.test_asking import WHICH, answer, asked, chosen, request
from tests.support.clock import NOON, FakeClock
from tests.support.people import ANNA, said
from tests.support.stub_model import Body, Call, Reply, StubModel

ELSE = {
    "id": "1", "object": "chat.completion.chunk", "created": 1, "model": "a name that is in no setting",
    "choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
}  # fmt: skip
FIRST, SECOND, THIRD = "openai-chat:first", "openai-chat:second", "openai-chat:third"


@pytest.fixture
async def models(stub: StubModel) -> AsyncIterator[Models]:
    assert stub.url
    built = Models.build(FIRST, [SECOND, FIRST, THIRD])
    async with AsyncExitStack() as stack:
        for model in built.all:
            await stack.enter_async_context(model)
        yield built


def asked_of(stub: StubModel) -> list[str]:
    return [body["model"] for body in stub.requests]


async def test_a_turn_is_answered_by_the_model_that_it_names_and_else_by_the_default(
    stub: StubModel, models: Models
) -> None:
    agent = GeneralAgent(models)
    assert models.names == [FIRST, SECOND, THIRD]
    assert (await answer(agent, request(said(ANNA, "hi")))).model == FIRST
    assert (await answer(agent, request(said(ANNA, "hi"), model=SECOND))).model == SECOND
    with capture_logs() as logs:
        assert (await answer(agent, request(said(ANNA, "hi"), model="openai-chat:gone"))).model == FIRST
    assert [(entry["event"], entry["model"]) for entry in logs] == [("model_not_listed", "openai-chat:gone")]
    assert asked_of(stub) == ["first", "second", "first"]


async def test_a_run_that_asks_somebody_goes_on_with_the_model_it_began_with(stub: StubModel, models: Models) -> None:
    agent = GeneralAgent(models)
    stub.replies.clear()
    first = await asked(agent, stub, Call("ask_choice", WHICH), model=SECOND)
    assert first.model == SECOND
    assert (await answer(agent, replace(chosen(first, "green"), model=THIRD))).model == SECOND
    assert asked_of(stub) == ["second", "second"]


async def test_it_goes_on_with_the_default_without_the_others_thoughts_where_its_model_is_gone(
    stub: StubModel, models: Models
) -> None:
    first = await asked(GeneralAgent(models), stub, Call("ask_choice", WHICH), model=SECOND)
    waiting = Suspended.model_validate(first.history[-1].metadata)
    thought = [
        replace(m, parts=[ThinkingPart("secret thought", signature="x"), *m.parts])
        if isinstance(m, ModelResponse)
        else m
        for m in waiting.said
    ]
    first.history[-1] = waiting.model_copy(update={"said": thought}).response(first.text)
    default = models.named(FIRST).model
    with capture_logs() as logs:
        last = await answer(GeneralAgent(Models({FIRST: default})), replace(chosen(first, "green"), model=SECOND))
    assert (last.model, asked_of(stub)) == (FIRST, ["second", "first"])
    assert "model_not_listed" in [entry["event"] for entry in logs]
    assert "secret thought" not in json.dumps(stub.requests[-1])


async def test_a_run_that_was_stored_by_an_earlier_version_goes_on_with_the_default(
    stub: StubModel, models: Models
) -> None:
    first = await asked(GeneralAgent(models), stub, Call("ask_choice", WHICH))
    assert first.history[-1].metadata
    del first.history[-1].metadata["model"]
    assert (await answer(GeneralAgent(models), chosen(first, "green"))).model == FIRST


async def test_of_models_that_stand_in_for_each_other_the_one_that_answered_is_named_and_billed(
    stub: StubModel,
) -> None:
    names = f"{FIRST}, {SECOND}"
    spent: list[Spent] = []
    async with build_model("MODEL", names) as model:
        agent = GeneralAgent(Models({names: model}))
        for status, expected in ((200, FIRST), (400, SECOND)):
            stub.replies.clear()
            if status != 200:
                stub.replies.append(Reply(status=status))
            stub.replies.append(Reply(raw=b"data: " + json.dumps(ELSE).encode() + b"\n\ndata: [DONE]\n\n"))
            budget = Budget(Limits(turns_per_user_minute=9, daily_tokens=None), FakeClock())
            allowance = budget.allowance(NOBODY)
            assert (await answer(agent, request(said(ANNA, "hi"), allowance=allowance))).model == expected
            spent += allowance.all_spent
    assert [one.model for one in spent] == ["openai:first", "openai:second"]


@pytest.mark.parametrize(("names", "asked"), [(FIRST, ["first"]), (f"{FIRST},{SECOND}", ["first", "second"])])
async def test_one_that_is_busy_for_long_is_not_waited_for(
    stub: StubModel, names: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(body: Body) -> web.Response | None:
        return web.Response(status=429, headers={"Retry-After": "100"}) if body["model"] == "first" else None

    monkeypatch.setattr(stub, "refused", refused)
    async with build_model("MODEL", names) as model:
        outcome = await GeneralAgent(model, stall_seconds=5.0).respond(request(said(ANNA, "hi")), lambda _: None)
    assert asked_of(stub) == asked
    assert isinstance(outcome, Answer if len(asked) > 1 else Failure)
    assert isinstance(outcome, Answer) or outcome.kind is FailureKind.BUSY


def test_a_run_that_waited_while_its_models_became_fewer_is_named_by_one_of_them(stub: StubModel) -> None:
    assert stub.url
    failed = ModelRequestAttempt(model_name="", outcome="error", timestamp=NOON, duration=timedelta())
    name = f"{FIRST}, {SECOND}"
    model = NamedModel(name, build_model("MODEL", name))
    assert model.that_said(ModelResponse(parts=[], failed_attempts=[failed] * 2)) == SECOND


def test_what_was_chosen_for_a_place_is_answered_there_as_long_as_it_is_listed(stub: StubModel) -> None:
    assert stub.url
    models = Models.build(FIRST, [SECOND])
    for chosen_there, answers in ((SECOND, SECOND), (THIRD, FIRST), (None, FIRST)):
        layers = Layer(Level.OWNER, 0, PlaceSettings()), Layer(Level.GUILD, 1, PlaceSettings(model=chosen_there))
        assert models.named(in_force(layers, ()).model).name == answers
