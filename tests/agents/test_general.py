"""agents/general.py, over real HTTP: what the model is sent, and what becomes of all that it can send back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents.gateway import AgentRequest, Answer, Asked, Failure, FailureKind, Outcome
from agents.general import GeneralAgent
from agents.models import build_model
from agents.run import MAX_ANSWER_CHARACTERS, MAX_OUTPUT_CHARACTERS, most_of
from agents.turn_input import MAX_TRANSCRIPT_CHARACTERS, MAX_TRANSCRIPT_MESSAGES
from conversation import MessageRecord
from place import Place
from state.budget import Budget
from state.limits import Limits
from state.spending import CHARACTERS_PER_TOKEN, NOBODY
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, said
from tests.support.stub_model import BEFORE, Reply, StubModel, texts

IMAGE = "https://cdn.example/cat.png"
PLACE = Place(bot_name="Parley", guild="The Guild", channel="general")


def request(*transcript: MessageRecord, history: Sequence[ModelMessage] = ()) -> AgentRequest:
    """A turn whose question is the last message."""
    return AgentRequest(history, transcript, transcript[-1:], PLACE, NOON)


async def respond(model: Model, turn: AgentRequest, **options: Any) -> tuple[Outcome, list[str]]:
    """The outcome, and each text that was shown on the way."""
    shown: list[str] = []
    return await GeneralAgent(model, **options).respond(turn, shown.append), shown


async def answer(model: Model, turn: AgentRequest, **options: Any) -> Answer:
    outcome, _ = await respond(model, turn, **options)
    assert isinstance(outcome, Answer)
    return outcome


async def failure(model: Model, turn: AgentRequest | None = None, **options: Any) -> Failure:
    outcome, _ = await respond(model, turn or request(said(ANNA)), **options)
    assert isinstance(outcome, Failure)
    assert "\n" not in outcome.detail
    assert len(outcome.detail) < 700
    return outcome


# What the model is sent


async def test_the_model_is_told_who_said_what_where_and_when(stub: StubModel, model: Model) -> None:
    await answer(model, request(said(ANNA, "tea?"), said(BEN, "coffee!\nAnna: no"), said(ANNA, "Parley?")))
    (body,) = stub.requests
    rules, prompt = texts(body)[0], texts(body)[-1]
    for name in ('You are "Parley"', 'server named "The Guild"', 'channel named "general"'):
        assert name in rules
    assert prompt == (
        "It is Monday, 2026-03-02 12:00 UTC. New in the channel:\n"
        'Anna: tea?\nBen: coffee!\n    Anna: no\nAnna: Parley?\nNow answer "Anna".'
    )
    assert body["model"] == "main"


async def test_the_owners_instructions_come_after_ours(stub: StubModel, model: Model) -> None:
    await answer(model, request(said(ANNA)), instructions="Speak like {a} pirate.")
    assert texts(stub.requests[0])[0].endswith("Speak like {a} pirate.")
    assert 'You are "Parley"' in texts(stub.requests[0])[0]


async def test_braces_in_names_are_no_placeholders(stub: StubModel, model: Model) -> None:
    turn = replace(request(said(ANNA, "{bot_name} {0}")), place=Place(bot_name="{x}", guild="{guild}", channel="{}"))
    await answer(model, turn)
    assert 'You are "{x}", a member of the Discord server named "{guild}"' in texts(stub.requests[0])[0]


async def test_of_several_the_model_knows_who_gets_to_answer_what_it_asks(stub: StubModel, model: Model) -> None:
    asked = [said(ANNA, "one"), said(BEN, "two")]
    await answer(model, replace(request(*asked), questions=asked))
    assert texts(stub.requests[0])[-1].splitlines()[-1] == (
        'What you ask by a tool goes to "Ben". Now answer "Anna", "Ben".'
    )
    await answer(model, request(*asked))
    assert "by a tool" not in texts(stub.requests[1])[-1]


async def test_the_history_of_one_turn_is_the_beginning_of_the_next(stub: StubModel, model: Model) -> None:
    first = await answer(model, request(said(ANNA, "I like teal")))
    second = await answer(model, request(said(BEN, "what does Anna like?"), history=first.history))
    one, two = (body["messages"] for body in stub.requests)
    assert two[: len(one)] == one
    assert [m["role"] for m in two] == ["system", "user", "assistant", "user"]
    assert two[2]["content"] == "You said: I like teal"
    assert second.history[:2] == first.history
    assert len(second.history) == 4


async def test_images_reach_the_model_beside_their_message(stub: StubModel, model: Model) -> None:
    await answer(model, request(said(ANNA, "look", images=(IMAGE,)), said(BEN, "nice")))
    content = stub.requests[0]["messages"][-1]["content"]
    images = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    assert images == [IMAGE]
    assert texts(stub.requests[0])[-1].endswith('Anna: look\n[image]Ben: nice\nNow answer "Ben".')


async def test_a_long_time_without_the_bot_is_told_in_part_and_says_so(stub: StubModel, model: Model) -> None:
    await answer(model, request(*(said(BEN, f"number {i}") for i in range(MAX_TRANSCRIPT_MESSAGES + 10))))
    prompt = texts(stub.requests[0])[-1]
    assert "10 earlier messages are left out. New in the channel:\nBen: number 10\n" in prompt


async def test_a_question_is_told_however_much_came_after_it(stub: StubModel, model: Model) -> None:
    question = said(ANNA, "the question")
    after = [said(BEN, "x" * 2_000) for _ in range(20)]
    await answer(model, replace(request(question, *after), questions=[question]))
    prompt = texts(stub.requests[0])[-1]
    assert "Anna: the question\n" in prompt
    assert len(prompt) < MAX_TRANSCRIPT_CHARACTERS + 2_000


# Answers


async def test_the_answer_is_shown_as_it_grows(stub: StubModel, model: Model) -> None:
    stub.replies.append(Reply("one two three", chunk=4))
    outcome, shown = await respond(model, request(said(ANNA)))
    assert shown == ["one ", "one two ", "one two thre", "one two three"]
    assert isinstance(outcome, Answer)
    assert (outcome.text, outcome.was_cut) == ("one two three", False)


async def test_an_endless_answer_is_cut_and_remembered_as_far_as_it_came(stub: StubModel, model: Model) -> None:
    stub.replies.append(Reply("So", endless=True))
    outcome = await answer(model, request(said(ANNA)))
    assert outcome.was_cut
    assert MAX_ANSWER_CHARACTERS < len(outcome.text) < MAX_ANSWER_CHARACTERS + 1_000
    assert outcome.tokens > MAX_ANSWER_CHARACTERS // 8
    assert len(outcome.history) == 2


async def test_what_a_model_thought_is_paid_also_where_it_is_interrupted_or_broken_off(
    stub: StubModel, model: Model
) -> None:
    thoughts, agent, turn, shown = "hm, " * 3_000, GeneralAgent(model), request(said(ANNA)), asyncio.Event()
    for says in (
        Reply("Once upon", 200, chunk=4_000, gate=asyncio.Event(), thoughts=thoughts),
        Reply(f"Well, <think>{thoughts}</think>", chunk=8_000, gate=asyncio.Event()),
    ):
        stub.replies.append(says)
        running = asyncio.create_task(agent.respond(turn, lambda _text: shown.set()))
        await shown.wait()
        running.cancel()
        await asyncio.wait([running])
        assert agent.interrupted(turn, "").tokens > 7_900 // CHARACTERS_PER_TOKEN
        shown.clear()
    stub.replies.append(Reply("x", chunk=4_000, thoughts=thoughts, cut_after=0))
    broken = await failure(model)
    assert (broken.kind, broken.text) == (FailureKind.UNAVAILABLE, "")
    assert broken.tokens > len(thoughts) // CHARACTERS_PER_TOKEN
    stub.default = lambda _: Reply(status=500)
    assert (await failure(model)).tokens == 0


async def test_a_line_that_breaks_before_the_first_word_is_paid_and_one_that_reaches_nobody_is_not(
    stub: StubModel, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)
    for cut in (0, BEFORE):
        stub.default = lambda _, cut=cut: Reply("x", cut_after=cut)  # type: ignore[misc]
        broken = await failure(model)
        assert (broken.kind, broken.text) == (FailureKind.UNAVAILABLE, "")
        assert broken.tokens > len(texts(stub.requests[-1])[0]) // 4  # the rules alone
    await stub.stop()
    unreached = await failure(model)
    assert (unreached.kind, unreached.tokens) == (FailureKind.UNAVAILABLE, 0)


@pytest.mark.parametrize("letter", ["あ", "7", "~"])
async def test_who_stops_an_answer_as_it_begins_pays_for_all_that_was_sent(
    stub: StubModel, model: Model, letter: str
) -> None:
    """Models read some scripts letter by letter, many of them also digits and signs."""
    tool: Tool[Asked] = Tool(lambda: "", name="tool", description="x" * 3_000)
    agent, turn = GeneralAgent(model, tools=[tool]), request(said(ANNA, letter * 2_000, images=(IMAGE,)))
    stub.replies.append(Reply("Once upon a time", chunk=4, gate=asyncio.Event()))
    shown = asyncio.Event()
    running = asyncio.create_task(agent.respond(turn, lambda _text: shown.set()))
    await shown.wait()
    running.cancel()
    await asyncio.wait([running])
    described = len(json.dumps(stub.requests[0]["tools"])) // 4
    assert agent.interrupted(turn, "").tokens >= described + 2_000 + 1_536 * 1.62  # a picture, as gpt-5-mini bills it


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        ("qXzJ", 400),
        ("xqzjkvw", 501),
        ("a b c ", 301),
        ("x\ny\n", 400),
        ("a\N{COMBINING CEDILLA}\N{COMBINING MACRON BELOW}", 400),
        ("ꀫꁔꃢꆜ", 1_200),
        ("⠿⠷⢳", 900),
        ("𒀀𒁀𒍅", 1_200),
        ("🫨🪿🧌", 900),
        ("今日は天気がいいので散歩した。", 1_000),
    ],
)
def test_what_a_text_takes_is_estimated_high_enough_whatever_it_is_made_of(part: str, tokens: int) -> None:
    """tokens: of a hundred of them, by OpenAI's o200k_base."""
    assert most_of(part * 100) >= tokens * 2 / 3


@pytest.mark.parametrize("letter", ["a", "あ", "7"])
async def test_an_answer_that_reaches_its_greatest_length_is_paid_whole(
    stub: StubModel, model: Model, letter: str
) -> None:
    stub.replies.append(Reply(letter * (MAX_ANSWER_CHARACTERS + 200)))
    outcome = await answer(model, request(said(ANNA)))
    assert outcome.was_cut
    assert outcome.tokens >= MAX_ANSWER_CHARACTERS // (4 if letter == "a" else 1)


@pytest.mark.parametrize("text", ["🫨🪿🧌", "ꀫꁔꃢꆜ"])
async def test_an_answer_of_rare_signs_is_cut_before_it_takes_more_than_is_reserved(
    stub: StubModel, model: Model, text: str
) -> None:
    reserved, long = MAX_OUTPUT_CHARACTERS // CHARACTERS_PER_TOKEN, text * 4_000
    stub.replies.append(Reply(long[: MAX_ANSWER_CHARACTERS - 10], chunk=20))
    outcome = await answer(model, request(said(ANNA)))
    assert outcome.was_cut
    assert reserved < most_of(outcome.text) <= reserved + 20 * 4


@pytest.mark.parametrize("sign", ["7", "Q", "\n", "ꀫ", "今"])
async def test_thoughts_that_take_a_token_a_sign_end_before_they_take_more_than_is_reserved(
    stub: StubModel, model: Model, sign: str
) -> None:
    reserved = MAX_OUTPUT_CHARACTERS // CHARACTERS_PER_TOKEN
    allowance = Budget(Limits(turns_per_user_minute=9, daily_tokens=None), lambda: NOON).allowance(NOBODY)
    stub.replies.append(Reply("Yes.", thoughts=sign * (MAX_OUTPUT_CHARACTERS - 4_000), chunk=20))
    failed = await failure(model, replace(request(said(ANNA)), allowance=allowance))
    assert reserved < failed.tokens < reserved + 4_000  # with what was sent


async def test_a_long_answer_in_chinese_after_such_thoughts_is_cut_and_does_not_fail(
    stub: StubModel, model: Model
) -> None:
    stub.replies.append(Reply("今" * 11_000, thoughts="今" * 6_000, chunk=20))
    outcome = await answer(model, request(said(ANNA)))
    assert outcome.was_cut
    assert len(outcome.text) > 9_000


async def test_a_model_that_thinks_by_default_may_think_in_any_script(stub: StubModel) -> None:
    allowance = Budget(Limits(turns_per_user_minute=9, daily_tokens=None), lambda: NOON).allowance(NOBODY)
    stub.replies.append(Reply("បាទ។", thoughts="នេះគឺជាចម្លើយវែង" * 1_000))  # 16,000 characters, and 48,000 bytes
    async with build_model("MODEL", "openai-chat:gpt-5") as thinking:
        assert (await answer(thinking, replace(request(said(ANNA)), allowance=allowance))).text == "បាទ។"


async def test_what_was_said_before_the_model_is_asked_anew_is_paid_too(stub: StubModel, model: Model) -> None:
    stub.replies.append(Reply("x" * 4_000, error={"message": "This model takes no image.", "code": 500}))
    outcome = await answer(model, request(said(ANNA, "look", images=(IMAGE,))))
    assert len(stub.requests) == 2
    assert outcome.tokens > 4_000 // CHARACTERS_PER_TOKEN


async def test_an_interrupted_answer_is_given_back_to_the_model_as_its_own(stub: StubModel, model: Model) -> None:
    agent, turn, shown = GeneralAgent(model), request(said(ANNA, "tell me")), asyncio.Event()
    stub.replies.append(Reply("Once upon a time", chunk=9, gate=asyncio.Event()))
    running = asyncio.create_task(agent.respond(turn, lambda _text: shown.set()))
    await shown.wait()
    running.cancel()
    await asyncio.wait([running])
    partial = agent.interrupted(turn, "Once upon")
    assert partial.text == "Once upon"
    assert partial.tokens > 0
    await answer(model, request(said(ANNA, "go on"), history=partial.history))
    body = stub.requests[-1]
    roles = [(m["role"], text) for m, text in zip(body["messages"], texts(body), strict=True)]
    assert roles[2] == ("assistant", "Once upon")
    assert "Anna: tell me" in roles[1][1]


# Failures


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, FailureKind.MISCONFIGURED),
        (403, FailureKind.MISCONFIGURED),
        (404, FailureKind.MISCONFIGURED),
        (429, FailureKind.BUSY),
        (400, FailureKind.REJECTED),
        (500, FailureKind.UNAVAILABLE),
        (503, FailureKind.UNAVAILABLE),
    ],
)
async def test_each_refusal_of_the_provider_is_a_kind_of_failure(
    stub: StubModel, model: Model, status: int, kind: FailureKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)
    stub.default = lambda _body: Reply(status=status)
    outcome = await failure(model)
    assert (outcome.kind, outcome.text, outcome.tokens) == (kind, "", 0)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(status=429, code="insufficient_quota"), FailureKind.NO_CREDIT),
        (Reply(status=429, code="billing_not_active"), FailureKind.NO_CREDIT),
        (Reply(status=402), FailureKind.NO_CREDIT),
        (Reply(status=400, code="insufficient_balance"), FailureKind.NO_CREDIT),
        (Reply(status=429, words="Limit reached. Add a payment method: billing."), FailureKind.BUSY),
        (Reply(status=400, code="invalid_api_key"), FailureKind.MISCONFIGURED),
        (Reply(status=400, code="model_not_found"), FailureKind.MISCONFIGURED),
        (Reply(status=400, words="Model Not Exist"), FailureKind.MISCONFIGURED),
        (Reply(status=400, words="a/b-9 is not a valid model ID"), FailureKind.MISCONFIGURED),
        (Reply(status=400, words="The model `gpt-9` has been decommissioned."), FailureKind.MISCONFIGURED),
        (Reply(status=400, words="This model does not support images"), FailureKind.REJECTED),
        (Reply(status=400, words="Item with id 'rs_1' not found"), FailureKind.REJECTED),
    ],
)
async def test_what_waiting_or_other_words_do_not_cure_is_no_passing_failure(
    stub: StubModel, model: Model, reply: Reply, kind: FailureKind
) -> None:
    stub.default = lambda _body: reply
    assert (await failure(model)).kind is kind


async def test_where_one_of_several_models_may_answer_soon_waiting_helps(stub: StubModel) -> None:
    replies = {"first": Reply(status=503), "second": Reply(status=429, code="insufficient_quota")}
    stub.default = lambda body: replies[body["model"]]
    async with build_model("MODEL", "openai-chat:first,openai-chat:second") as both:
        assert (await failure(both)).kind is FailureKind.UNAVAILABLE


async def test_a_server_error_is_tried_once_more(
    stub: StubModel, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)
    stub.replies.append(Reply(status=500))
    assert (await answer(model, request(said(ANNA)))).text == "You said: hello"
    assert len(stub.requests) == 2


async def test_pictures_in_the_history_are_left_out_then_too(stub: StubModel, model: Model) -> None:
    first = await answer(model, request(said(ANNA, "look", images=(IMAGE,))))
    stub.default = lambda body: Reply(status=400) if "[image]" in "".join(texts(body)) else Reply("fine")
    outcome = await answer(model, request(said(ANNA, "so?"), history=first.history))
    assert outcome.text == "fine"
    assert "Anna: look" in texts(stub.requests[-1])[1]


async def test_a_rejected_question_without_pictures_is_asked_once(stub: StubModel, model: Model) -> None:
    stub.default = lambda _body: Reply(status=400)
    await failure(model)
    assert len(stub.requests) == 1


async def test_a_model_that_stalls_midway_is_late_and_its_beginning_kept(stub: StubModel, model: Model) -> None:
    gate = asyncio.Event()
    stub.replies.append(Reply("The beginning and the end", chunk=13, gate=gate))
    outcome = await failure(model, stall_seconds=0.2)
    gate.set()
    assert (outcome.kind, outcome.text) == (FailureKind.LATE, "The beginning")
    assert outcome.tokens > 0


def slow_model(pieces: int) -> Model:
    """A model that says a word every 50 s."""

    async def stream(_messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        for _ in range(pieces):
            await asyncio.sleep(50)
            yield "word "

    return FunctionModel(stream_function=stream)


@pytest.mark.virtual_time
async def test_a_slow_model_has_a_minute_for_each_piece() -> None:
    assert (await answer(slow_model(3), request(said(ANNA)))).text == "word " * 3


@pytest.mark.virtual_time
async def test_a_model_that_goes_on_for_three_minutes_is_late() -> None:
    outcome = await failure(slow_model(10))
    assert (outcome.kind, outcome.text) == (FailureKind.LATE, "word " * 3)
    assert asyncio.get_running_loop().time() == 180


@pytest.mark.virtual_time
async def test_the_time_in_which_other_answers_have_its_budget_is_not_counted() -> None:
    budget = Budget(Limits(turns_per_user_minute=9, daily_tokens=20_000), lambda: NOON)
    turns = [replace(request(said(ANNA)), allowance=budget.allowance(NOBODY)) for _ in range(2)]
    answers = await asyncio.gather(*(answer(slow_model(3), turn) for turn in turns))
    assert [one.text for one in answers] == ["word " * 3] * 2
    assert asyncio.get_running_loop().time() == 300  # one after the other


@pytest.mark.parametrize("text", ["", " \n "])
async def test_an_empty_answer_is_a_failure_that_costs_what_it_cost(stub: StubModel, model: Model, text: str) -> None:
    stub.replies.append(Reply(text, tokens=77))
    outcome = await failure(model)
    assert outcome.kind is FailureKind.EMPTY
    assert "main" in outcome.detail or text == ""


async def test_half_a_stream_is_a_failure_and_its_beginning_kept(stub: StubModel, model: Model) -> None:
    stub.replies.append(Reply("The beginning and the end", chunk=13, cut_after=1))
    outcome = await failure(model)
    assert (outcome.kind, outcome.text) == (FailureKind.UNAVAILABLE, "The beginning")
    assert outcome.tokens > 0


@pytest.mark.parametrize("raw", [b"<html>busy</html>", b"data: {\n\n", b""])
async def test_garbage_is_a_failure_not_an_exception(stub: StubModel, model: Model, raw: bytes) -> None:
    stub.default = lambda _body: Reply(raw=raw)
    outcome = await failure(model)
    assert outcome.kind in (FailureKind.UNAVAILABLE, FailureKind.EMPTY)


async def test_a_provider_that_cannot_be_reached_is_a_failure(
    stub: StubModel, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)
    await stub.stop()
    assert (await failure(model)).kind is FailureKind.UNAVAILABLE


# Fallbacks


@pytest.fixture
async def two_models(stub: StubModel) -> AsyncIterator[Model]:
    assert stub.url
    async with build_model("MODEL", "openai-chat:first, openai-chat:second") as both:
        yield both


async def test_the_next_model_answers_where_the_first_fails(stub: StubModel, two_models: Model) -> None:
    stub.default = lambda body: Reply(status=401) if body["model"] == "first" else Reply("from the second")
    assert (await answer(two_models, request(said(ANNA)))).text == "from the second"
    assert [body["model"] for body in stub.requests] == ["first", "second"]


@pytest.mark.parametrize(
    ("second", "tokens"),
    [(Reply("yes", tokens=15), 2_015), (Reply("x", cut_after=BEFORE), 4_000), (Reply(status=401), 2_000)],
)
async def test_each_request_to_a_model_that_breaks_off_is_paid_also_where_another_is_asked_then(
    stub: StubModel, two_models: Model, monkeypatch: pytest.MonkeyPatch, second: Reply, tokens: int
) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)
    monkeypatch.setattr("agents.general.most_tokens", lambda *_: 1_000)
    stub.default = lambda body: Reply("x", cut_after=BEFORE) if body["model"] == "first" else second
    outcome, _ = await respond(two_models, request(said(ANNA)))
    assert outcome.tokens == tokens


async def test_where_all_fail_the_last_ones_failure_counts_and_the_log_names_all(
    stub: StubModel, two_models: Model
) -> None:
    stub.default = lambda body: Reply(status=404 if body["model"] == "first" else 400)
    outcome = await failure(two_models)
    assert outcome.kind is FailureKind.REJECTED
    assert "first" in outcome.detail
    assert "second" in outcome.detail
