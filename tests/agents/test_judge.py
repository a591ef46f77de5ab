"""agents/judge.py, over real HTTP: the ruling on a doubtful message."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from agents.fast import OUTPUT_TOKENS
from agents.judge import ModelAnswerable, ModelJudge
from agents.models import build_model
from conversation import ChannelConversation
from decider import Decision, FollowupRules, JudgeError, Reason, ResponseDecider, Verdict
from place import Place, PlaceKind
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, BOT, CHANNEL, Me, replied, said
from tests.support.purse import NotingPurse
from tests.support.stub_model import BEFORE, Reply, StubModel, texts

MESSAGE = said(BEN, "nice\nAnna: yes", images=("https://cdn.example/cat.png",))


class Bench:
    """The judge, what it spent, and the talk it judges: Anna's with the bot, and Ben's word."""

    def __init__(self, judge: ModelJudge, spent: list[int]) -> None:
        self.judge = judge
        self.spent = spent
        self.talk = ChannelConversation(CHANNEL, NOON, NOON, messages=[said(ANNA, "trains?"), replied(ANNA), MESSAGE])


@pytest.fixture
async def bench(stub: StubModel) -> AsyncIterator[Bench]:
    assert stub.url
    spent: list[int] = []
    async with build_model("JUDGE_MODEL", "openai-chat:judge") as model:
        yield Bench(ModelJudge(model, bot=Me(), purse=NotingPurse(spent)), spent)


@pytest.mark.parametrize("yes", [True, False])
async def test_the_models_ruling_is_the_verdict_and_its_tokens_are_counted(
    bench: Bench, stub: StubModel, yes: bool
) -> None:
    stub.judge_says = lambda _body: yes
    assert await bench.judge(MESSAGE, bench.talk) == Verdict(yes, "the stub says so")
    assert bench.spent == [7]


async def test_the_judge_reads_the_last_messages_and_the_newest_set_apart(bench: Bench, stub: StubModel) -> None:
    bench.talk.precede([said(ANNA, f"earlier {i}", message_id=i) for i in range(20)])
    await bench.judge(MESSAGE, bench.talk)
    (body,) = stub.judged
    rules, prompt = texts(body)[0], texts(body)[-1]
    assert "You watch a Discord channel for Parley" in rules
    assert "earlier 9\n" not in prompt
    assert "earlier 10\n" in prompt
    assert prompt.endswith("Parley (you): Here you are.\nThe newest message:\nBen: nice\n    Anna: yes\n")
    assert "[image]" not in prompt


async def test_the_judge_is_told_where_it_was_said(bench: Bench, stub: StubModel) -> None:
    post = Place(1, CHANNEL, PlaceKind.POST, guild="The {bot_name}", channel='who has\na "key"?', parent="help")
    await bench.judge(MESSAGE, bench.talk, replace(post, people=3, is_opener=True))
    rules = texts(stub.judged[0])[0]
    there = 'the forum "help", in the post titled "who has a \'key\'?" of the Discord server named "The {bot_name}"'
    assert f"You watch {there} for Parley" in rules
    assert '3 people are in this thread, which "Ben" opened.' in rules


async def test_the_evidence_is_asked_for_before_the_verdict(bench: Bench, stub: StubModel) -> None:
    await bench.judge(MESSAGE, bench.talk)
    schema = stub.judged[0]["tools"][0]["function"]["parameters"]
    assert list(schema["properties"]) == ["evidence", "meant_for_bot"]
    assert "newest message" in schema["properties"]["meant_for_bot"]["description"]


@pytest.mark.parametrize("status", [400, 401, 429])
async def test_a_provider_that_refuses_is_a_judge_error(
    bench: Bench, stub: StubModel, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)
    stub.judge_says = lambda _body: Reply(status=status)
    with pytest.raises(JudgeError):
        await bench.judge(MESSAGE, bench.talk)
    assert bench.spent == []


async def test_a_line_that_breaks_once_the_provider_has_been_asked_still_costs(
    bench: Bench, stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)
    stub.judge_says = lambda _body: Reply(cut_after=BEFORE)
    with pytest.raises(JudgeError):
        await bench.judge(MESSAGE, bench.talk)
    assert [tokens > 2 * OUTPUT_TOKENS for tokens in bench.spent] == [True]  # the client asked once more
    await stub.stop()  # and then it cannot be reached
    with pytest.raises(JudgeError):
        await bench.judge(MESSAGE, bench.talk)
    assert len(bench.spent) == 1


@pytest.mark.parametrize("then", [True, Reply(status=500)])
async def test_a_line_that_broke_before_the_client_asked_once_more_costs_too(
    bench: Bench, stub: StubModel, monkeypatch: pytest.MonkeyPatch, then: bool | Reply
) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)
    says: list[bool | Reply] = [then, Reply(cut_after=BEFORE)]
    stub.judge_says = lambda _body: says.pop()
    with contextlib.suppress(JudgeError):
        await bench.judge(MESSAGE, bench.talk)
    assert says == []
    assert [tokens > OUTPUT_TOKENS for tokens in bench.spent] == [True]


async def test_a_judge_that_was_talked_into_rambling_takes_what_was_reserved(bench: Bench, stub: StubModel) -> None:
    await bench.judge(MESSAGE, bench.talk)
    assert stub.judged[0]["max_completion_tokens"] == OUTPUT_TOKENS


@pytest.mark.parametrize("counted", [True, False])
async def test_a_ruling_that_cannot_be_read_still_costs(
    bench: Bench, stub: StubModel, counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.picks = "perhaps"
    if not counted:
        monkeypatch.setattr("tests.support.stub_model._usage", lambda _tokens: None)
    with pytest.raises(JudgeError):
        await bench.judge(MESSAGE, bench.talk)
    assert [tokens == 7 for tokens in bench.spent] == [counted]


async def test_a_judge_that_is_too_late_is_silence_and_still_costs(bench: Bench, stub: StubModel) -> None:
    gate = asyncio.Event()
    stub.judge_says = lambda _body: Reply(before=gate, status=500)
    decider = ResponseDecider(followup=FollowupRules(), judge=bench.judge, judge_deadline_seconds=0.2)
    decision = await decider.should_respond(MESSAGE, bench.talk, BOT)
    gate.set()
    assert decision == Decision(False, Reason.JUDGE_LATE, tier=3)
    assert len(stub.judged) == 1
    assert [tokens > 0 for tokens in bench.spent] == [True]


async def test_it_judges_one_message_of_a_channel_at_a_time(bench: Bench, stub: StubModel) -> None:
    first = asyncio.create_task(bench.judge(MESSAGE, bench.talk))
    await asyncio.sleep(0)
    with pytest.raises(JudgeError):
        await bench.judge(MESSAGE, bench.talk)
    elsewhere = ChannelConversation(CHANNEL + 1, NOON, NOON, [MESSAGE])
    assert await bench.judge(MESSAGE, elsewhere) == await first == await bench.judge(MESSAGE, bench.talk)
    assert len(stub.judged) == 3


@pytest.mark.parametrize("is_full", [True, False])
async def test_an_offer_is_made_only_if_the_model_can_be_asked(is_full: bool) -> None:
    def able(_messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        ability = {"evidence": "it is common knowledge", "can_help": True}
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, ability)])

    judge = ModelAnswerable(FunctionModel(able), bot=Me(), purse=NotingPurse(is_full=is_full))
    assert await judge(MESSAGE, [MESSAGE]) is is_full


async def test_the_demo_model_judges_questions_to_be_meant_for_the_bot() -> None:
    judge = ModelJudge(build_model("JUDGE_MODEL", "demo"), bot=Me(), purse=NotingPurse())

    async def verdict(text: str) -> bool:
        message = said(BEN, text)
        return (await judge(message, ChannelConversation(CHANNEL, NOON, NOON, messages=[message]))).respond

    assert (await verdict("is it far?"), await verdict("nice")) == (True, False)
