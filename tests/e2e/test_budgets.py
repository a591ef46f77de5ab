"""Budgets, as those who share a server meet them: what they cost at most, who is told what, and what kills leave."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from agents.gateway import FailureKind
from decider import Reason
from persistence.open_store import open_stores
from playground.limits import Limits
from playground.model import File
from playground.server import Playground
from setting_values import Period, Scope
from state import budget
from state.budget import LIMITS
from state.ledger import total
from state.spending import LONG_ANSWER, Amount
from tests.support import samples
from tests.support.clock import FakeClock
from tests.support.ears import listening
from tests.support.lives import kill, life, open_stage
from tests.support.process import program
from tests.support.scene import Scene, notify, open_scene, recorded
from tests.support.stub_model import Reply, StubModel
from turns.endings import SENTENCES

USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")
WHO = ("Ada", "Ben")
ANSWER = 15  # tokens, and, as each costs one, micro-dollars
PRICES = "[stub]\ninput = 1\noutput = 1\n"
MANAGERS = "-# For those who manage this server: four fifths of my budget for this server for today are used."
REFUSED = "My budget for this server is spent for today. It is renewed <t:"


def used(scene: Scene, period: Period = Period.DAY) -> Amount:
    return scene.bot.parts.limits.ledger.used((Scope.TOTAL, 0), period)


async def test_a_hundred_turns_at_once_do_not_pass_a_budget_in_money_by_more_than_an_answer(stub: StubModel) -> None:
    cap, each, turns = 30_000, 1_000, 100
    stub.default = lambda _: Reply("Here you are.", tokens=each)
    async with open_scene(stub, budgets="$0.03 a day", prices=PRICES, turns_at_once=turns) as scene:
        rooms = [scene.pg.add_channel(f"room-{number}") for number in range(turns)]
        people = [scene.pg.add_person(f"Person {number}") for number in range(turns)]
        mentions = [
            scene.pg.post(room, person, f"<@{scene.pg.bot_id}> what?")
            for room, person in zip(rooms, people, strict=True)
        ]
        answers = [(await scene.answer_to(mention)).content for mention in mentions]
        assert used(scene).micros == len(stub.requests) * each == cap
        assert sum(answer.startswith("Here you are.") for answer in answers) == cap // each
        assert sum(answer.startswith("My budget is spent for today. It is renewed") for answer in answers) == 70
        assert not scene.bot.parts.limits._reserved


async def test_once_it_is_ready_it_says_once_which_models_have_no_price(scene: Scene) -> None:
    await scene.until(lambda: scene.journal.find("price_unknown"))
    events = [entry["event"] for entry in scene.journal.entries]
    assert events.index("ready") < events.index("price_unknown")
    assert events.count("price_unknown") == 1


async def test_a_budget_that_ends_in_a_conversation_degrades_survives_kills_and_recovers(
    stub: StubModel, tmp_path: Path
) -> None:
    clock, settings = FakeClock(), {"budgets": "guild $0.00005 a day", "prices": PRICES, "decline": False}
    async with open_stage(stub, tmp_path / "state", clock=clock) as stage:
        async with life(stage, **settings):
            for number in range(3):  # 45 of 50
                answer = await stage.ask("Ada", f"question {number}?")
                assert (MANAGERS in answer.content) == (number == 2)
            assert "For those" not in str(stage.bot.conversations.get(answer.channel_id).llm_history)  # type: ignore[union-attr]
            followed = await stage.decision(stage.say("Ada", "and the next?"))
            assert followed.reason is Reason.DAILY_CAP
            assert followed.in_words() == (
                "silent: four fifths of my budget for this server for today were used, so I answered only those who "
                "called me"
            )
            await kill(stage)
        async with life(stage, **settings):
            assert used(stage) == Amount(3 * ANSWER, 3 * ANSWER)
            last = await stage.ask("Ben", "mentions are answered?")
            assert "manage" not in last.content
            refused = stage.mention("Ben", "and now?")
            spent = "silent: my budget for this server was spent for today"
            assert (await stage.decision(refused)).in_words() == spent
            assert (await stage.shows(REFUSED)).reference.message_id == refused.id  # type: ignore[union-attr]
            told = len(stage.said())
            assert (await stage.decision(stage.mention("Chloe", "me?"))).reason is Reason.DAILY_CAP
            assert (await stage.use("Chloe", "ask", question="me?")).content.startswith(REFUSED)
            await asyncio.gather(*stage.bot.turns._notices)
            assert len(stage.said()) == told
            await kill(stage)
        async with life(stage, **settings):
            assert used(stage).micros == 4 * ANSWER
            assert (await stage.decision(stage.mention("Ben", "still?"))).reason is Reason.DAILY_CAP
            clock.advance(86_400)
            await stage.ask("Ada", "a new day?")
            assert used(stage).micros == ANSWER
            assert used(stage, Period.MONTH).micros == 5 * ANSWER


async def test_whoever_has_spent_their_own_budget_since_keeps_no_answer_from_those_who_asked_with_them(
    stub: StubModel,
) -> None:
    async with open_scene(stub, person_tokens=30_000) as scene:
        gate = scene.held("To Chloe.")
        scene.pg.add_channel("other")
        first = scene.mention("Chloe", "first?")
        await scene.until(lambda: stub.requests)
        for who in WHO:
            await scene.decision(last := scene.mention(who, "and then?"))
        stub.replies.append(Reply("That was much.", tokens=30_000))
        await scene.ask("Ada", "what?", channel="other")
        stub.replies.append(Reply("To both of you."))
        gate.set()
        await scene.answer_to(first)
        assert (await scene.answer_to(last)).content == "To both of you."
        ledger = scene.bot.parts.limits.ledger
        charged = [ledger.charged((Scope.PERSON, scene.pg.person(who)), Period.DAY, in_money=False) for who in WHO]
        assert charged == [30_000, ANSWER]
        assert (await scene.decision(scene.mention("Ada", "and now?"))).reason is Reason.DAILY_CAP


async def test_people_who_are_answered_together_in_many_channels_have_no_more_than_their_own_budgets(
    stub: StubModel,
) -> None:
    async with open_scene(stub, person_tokens=12_000) as scene:
        channels, gates, together = [f"c{number}" for number in range(4)], [], []
        for channel in channels:
            scene.pg.add_channel(channel)
            scene.pg.add_person(first := f"the first in {channel}")
            gates.append(scene.held("To them."))
            scene.mention(first, "first?", channel=channel)
        await scene.until(lambda: len(stub.requests) == len(channels))
        for channel in channels:
            for who in WHO:
                await scene.decision(last := scene.mention(who, "and then?", channel=channel))
            together.append(last)
        scene.pg.add_channel("other")
        stub.replies.append(Reply("That was much.", tokens=12_000))
        await scene.ask("Ada", "what?", channel="other")
        asked = len(stub.requests)
        stub.default = lambda _body: Reply("To both of you.", tokens=24_000)  # in equal shares
        for gate in gates:
            gate.set()
        for question in together:
            await scene.answer_to(question)
        assert len(stub.requests) == asked + 1


@pytest.mark.parametrize("asks", ["alone", "with another"])
async def test_whoever_is_being_answered_elsewhere_with_what_is_left_of_their_budget_holds_up_no_channel(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch, asks: str
) -> None:
    monkeypatch.setattr(budget, "OWN_SECONDS", 0.3)
    async with open_scene(stub, person_tokens=12_000) as scene:
        scene.pg.add_channel("other")
        elsewhere, before = scene.held("There."), scene.held("Before.")
        scene.mention("Ada", "a long story?", channel="other")
        await scene.until(lambda: len(stub.requests) == 1)
        stub.default = lambda _body: Reply("Here.")
        scene.mention("Ben", "hello")
        await scene.until(lambda: len(stub.requests) == 2)
        theirs = scene.mention("Ada", "and here?")
        await scene.decision(theirs)
        if asks == "with another":
            await scene.decision(others := scene.mention("Ben", "me, too?"))
            before.set()
            assert (await scene.answer_to(others)).content == "Here."
        else:
            before.set()
            assert (await scene.answer_to(theirs)).content == SENTENCES[FailureKind.WAITED]
        elsewhere.set()


@pytest.mark.parametrize("by", ["words", "a file"])
async def test_what_one_person_asks_at_length_takes_no_room_from_others_who_wait_with_them(
    stub: StubModel, by: str
) -> None:
    async with open_scene(stub) as scene:
        gate = scene.held("Here you are.")
        scene.mention("Ada", "first?")
        await scene.until(lambda: stub.requests)
        much = "\U0001f701" * 1_900 + "?"  # a token a byte
        if by == "a file":
            file = File("a.txt", "text/plain", ("\U0001f701" * 60_000).encode())
            await scene.decision(scene.mention("Ben", "what is that?", attachments=[file]))
        for _ in range(14 if by == "words" else 0):
            await scene.decision(scene.mention("Ben", much))
        await scene.decision(asked := scene.mention("Ada", "what is tea?"))
        gate.set()
        assert (await scene.answer_to(asked)).content.endswith("what is tea?")
        assert bool(scene.journal.find("agent_failed")) == (by == "a file")  # Ben's own


async def test_whoever_is_answered_with_somebody_whose_budget_other_answers_have_reserved_pays_for_all_of_it(
    stub: StubModel,
) -> None:
    cap, each = 12_000, 4_000
    async with open_scene(stub, person_tokens=cap) as scene:
        scene.pg.add_channel("other")
        elsewhere = scene.held("There.")
        scene.mention("Ada", "a long story?", channel="other")
        await scene.until(lambda: stub.requests)
        stub.default = lambda _body: Reply("Here.", tokens=each)
        for turns in range(1, 9):
            scene.pg.add_channel(channel := f"c{turns}")
            scene.pg.add_person(first := f"the first in {channel}")
            gate, asked = scene.held("To them."), len(stub.requests)
            scene.mention(first, "first?", channel=channel)
            await scene.until(lambda asked=asked: len(stub.requests) > asked)  # type: ignore[misc]
            for who in WHO:
                decision = await scene.decision(last := scene.mention(who, "and then?", channel=channel))
            gate.set()
            if not decision.respond:
                break
            await scene.answer_to(last)
        assert decision.reason is Reason.DAILY_CAP
        assert turns == cap // each + 1
        elsewhere.set()


@pytest.mark.parametrize("what", ["sounds", "incomplete questions"])
async def test_what_a_turn_asks_beside_its_answer_counts_towards_what_a_turn_may_use(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    cap, of_each = 30_000, 2_400
    stub.rewriter_says = lambda _body: Reply("What is the weather in Berlin tomorrow?", tokens=of_each)
    async with listening() as (ears, url):
        ears.usage = None
        monkeypatch.setenv("VLLM_BASE_URL", url)
        monkeypatch.setenv("VLLM_API_KEY", "key-of-the-stub")
        helpers: dict[str, Any] = {"transcribe_model": "vllm:whisper", "rewrite_model": "openai-chat:fast"}
        async with open_scene(stub, turn_tokens=cap, **helpers) as scene:
            if what == "sounds":
                sound = samples.ogg(b"\x08", 9_000)  # of 180 s, so of some 1,800 tokens
                files = [File(f"{number}.ogg", "audio/ogg", sound) for number in range(10)]
                await scene.ask("Ada", "what do they say?", attachments=files)
                assert len(ears.heard) == 4
                assert scene.told().count("buy some milk") == 4
                assert "do not allow to listen to it" in scene.told()
            else:
                gate = scene.held("First.")
                scene.mention("Ada", "what is tea?")
                await scene.until(lambda: stub.requests)
                for _ in range(15):
                    await scene.decision(last := scene.mention("Ada", "and this?"))
                gate.set()
                await scene.answer_to(last)
                assert 1 < len(stub.rewritten) < 5
            assert not scene.journal.find("agent_failed")
            assert used(scene).tokens < cap // 2


async def test_what_an_edited_question_has_used_is_not_there_for_calls_beside_its_answer(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    cap = 100_000
    long = File("a.txt", "text/plain", ("word " * 9_000).encode())
    sound = File("a.ogg", "audio/ogg", samples.ogg(b"\x08", 20_000))  # of 400 s, so of some 4,000 tokens
    async with listening() as (ears, url):
        ears.usage = None
        monkeypatch.setenv("VLLM_BASE_URL", url)
        monkeypatch.setenv("VLLM_API_KEY", "key-of-the-stub")
        async with open_scene(stub, turn_tokens=cap, transcribe_model="vllm:whisper") as scene:
            scene.held()
            question = scene.mention("Ada", "what does it say?", attachments=[long])
            await scene.until(lambda: stub.requests)
            for times in range(2, 4):
                scene.held()
                await scene.edit(question, f"<@{scene.pg.bot_id}> what does it say, {times}?")
                await scene.until(lambda times=times: len(stub.requests) == times)  # type: ignore[misc]
            for _ in range(8):
                await scene.decision(scene.say("Ada", "listen", attachments=[sound]))
            scene.held()
            await scene.edit(question, f"<@{scene.pg.bot_id}> what?")
            await scene.outcome(question)
            assert cap // 2 < used(scene).tokens <= cap
            assert ears.heard


async def test_sounds_that_are_transcribed_at_once_do_not_pass_a_cap_together_by_their_transcripts(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    cap, heard, written = 12_000, 5_800, 2_000
    sound = File("a.ogg", "audio/ogg", samples.ogg(b"\x08", 29_000))  # of 580 s
    async with listening() as (ears, url):
        ears.usage = {"input_tokens": heard, "output_tokens": written, "total_tokens": heard + written}
        ears.usage["type"], ears.gate = "tokens", asyncio.Event()
        monkeypatch.setenv("VLLM_BASE_URL", url)
        monkeypatch.setenv("VLLM_API_KEY", "key-of-the-stub")
        async with open_scene(stub, daily_tokens=cap, transcribe_model="vllm:whisper") as scene:
            asked = scene.mention("Ada", "what do they say?", attachments=[sound])
            while not ears.heard:  # noqa: ASYNC110 - which nothing tells of
                await asyncio.sleep(0.005)
            other = scene.mention("Ben", "what do they say?", channel="help", attachments=[sound])
            await scene.until(lambda: scene.journal.find("file_unread") or len(ears.heard) == 2)
            ears.gate.set()
            for question in (asked, other):
                await scene.answer_to(question)
            assert heard + written < used(scene).tokens < cap


async def test_answers_that_are_thought_of_in_chinese_at_once_do_not_pass_a_cap_together(stub: StubModel) -> None:
    cap, of_each, gate = 200_000, 32_000, asyncio.Event()
    thoughts = "今日は天気がいいので散歩した。" * 3_000  # 45,000 characters, so some 30,000 tokens
    stub.default = lambda _: Reply("Yes.", thoughts=thoughts, tokens=of_each, before=gate)
    async with open_scene(stub, daily_tokens=cap) as scene:
        rooms = [scene.pg.add_channel(f"room-{number}") for number in range(14)]
        people = [scene.pg.add_person(f"Person {number}") for number in range(14)]
        asked = [
            scene.pg.post(room, person, f"<@{scene.pg.bot_id}> what?")
            for room, person in zip(rooms, people, strict=True)
        ]
        await scene.until(lambda: len(stub.requests) * of_each > cap + of_each)
        gate.set()
        for question in asked:
            await scene.outcome(question)
        assert cap < used(scene).tokens < cap + of_each


@pytest.mark.parametrize("by", ["sounds", "an edit"])
async def test_a_question_that_used_much_before_its_answer_ends_nobodys_conversation(
    stub: StubModel, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    sound = File("a.ogg", "audio/ogg", samples.ogg(b"\x08", 18_000))  # of 360 s, so of some 3,600 tokens
    async with listening() as (ears, url):
        ears.usage = None
        monkeypatch.setenv("VLLM_BASE_URL", url)
        monkeypatch.setenv("VLLM_API_KEY", "key-of-the-stub")
        async with open_scene(stub, turn_tokens=38_000, transcribe_model="vllm:whisper") as scene:
            await scene.ask("Ada", "the code is bluebell")
            for number in range(3):
                await scene.ask("Ada", f"{number} " + "words of a longer story that goes on " * 100)
            asked = len(stub.requests)
            scene.held()
            question = scene.mention("Ben", "what is tea?", attachments=[sound] * 4 if by == "sounds" else [])
            if by == "an edit":
                await scene.until(lambda: len(stub.requests) > asked)
                await scene.edit(question, f"<@{scene.pg.bot_id}> what is the tea that you drink?")
            refused = await scene.answer_to(question)
            assert refused.content.startswith("That takes more than I may use for one answer.")
            scene.stub.replies.clear()
            await scene.ask("Ada", "what is it?")
            assert "bluebell" in scene.told()


async def test_a_question_that_is_too_long_by_itself_ends_nobodys_conversation(scene: Scene) -> None:
    await scene.ask("Ada", "the code is bluebell")
    file = File("a.txt", "text/plain", ("\U0001f701" * 60_000).encode())
    refused = await scene.ask("Ben", "what is that?", attachments=[file])
    assert refused.content.startswith("That takes more than I may use for one answer.")
    await scene.ask("Ada", "what is it?")
    assert "bluebell" in scene.told()


@pytest.mark.parametrize("thoughts", [4, 5_000])
async def test_for_a_model_that_was_found_to_hide_thoughts_they_are_reserved_from_then_on(
    stub: StubModel, thoughts: int
) -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": thoughts}}
    stub.used = lambda tokens: dict.fromkeys(USAGE, tokens) | details  # type: ignore[method-assign]
    async with open_scene(stub, turn_tokens=50_000) as scene:
        await scene.ask("Ada", "what do you think of tea?")
        gate = scene.halted()
        question = scene.mention("Ada", "and of coffee?")
        await scene.shows("First")
        reserved = scene.bot.parts.limits._reserved[(Scope.TOTAL, 0), False]
        assert (reserved == 50_000) is (thoughts == 5_000)
        gate.set()
        await scene.answer_to(question)


async def test_every_call_is_counted_by_what_it_was_for(stub: StubModel, rules_of_thumb: None) -> None:  # noqa: ARG001
    async with open_scene(stub, use_llm_judge=True, prices=PRICES) as scene:
        await scene.ask("Ada", "how do I get to Tokyo?")
        await scene.decision(scene.say("Ben", "I would rather take the train"))
        ledger = scene.bot.parts.limits.ledger
        rows = {row: (f.calls, f.answers, f.micros) for row, f in ledger.today.guilds[scene.pg.guild_id].items()}
        assert rows == {("openai:stub", "answers"): (1, 1, ANSWER), ("openai:stub", "judging"): (1, 0, 7)}
        assert {who: f.micros for who, f in ledger.today.people.items()} == {
            scene.pg.person("Ada"): ANSWER,
            scene.pg.person("Ben"): 7,
        }
        await scene.use("Ada", "forget")
        assert [*ledger.today.people] == [scene.pg.person("Ben")]
        assert used(scene).micros == ANSWER + 7


async def test_counts_that_cannot_be_break_no_store_and_spend_no_budget(stage: Scene) -> None:
    stub = stage.stub
    async with life(stage):
        for absurd in (10**30, 10**18, 10**8, 1.5):
            stub.used = lambda _, absurd=absurd: dict.fromkeys(USAGE, absurd)  # type: ignore[misc,method-assign]
            await stage.ask("Ada", "what does this cost?")
        del stub.used
        await stage.ask("Ada", "and this?")
        assert not stage.journal.find("store_broken")
        charged = used(stage)
        assert 4 * ANSWER < charged.tokens < 10_000
    async with life(stage):
        assert used(stage) == charged
        assert not stage.journal.find("message_refused")


async def test_a_model_without_a_price_is_counted_in_tokens_which_is_said_once(stub: StubModel) -> None:
    async with open_scene(stub, budgets="$0.00001 a day") as scene:
        await scene.ask("Ada", "what does this cost?")
        await scene.ask("Ada", "and this?")
        assert used(scene) == Amount(2 * ANSWER, 0)
        assert total(scene.bot.parts.limits.ledger.today.people.values()).unpriced == 2 * ANSWER


async def test_what_a_dear_model_wrote_in_place_of_a_cheap_one_costs_as_much_when_it_is_stopped_or_killed(
    stub: StubModel, tmp_path: Path
) -> None:
    prices = "".join(f"[{name}]\ninput = {price}\noutput = {price}\n" for name, price in (("cheap", 1), ("dear", 100)))
    settings = {"model": "openai-chat:cheap,openai-chat:dear", "prices": prices, "budgets": "$100 a day"}
    busy = Reply(status=429, words="rate limit")
    async with open_stage(stub, tmp_path / "state") as stage:
        async with life(stage, **settings):
            stub.replies.append(busy)
            stub.replies.append(busy)  # it is asked once more
            gate = stage.halted()
            question = stage.mention("Ada", "what?")
            await stage.shows("First")
            stage.say("Ada", "stop")
            assert await stage.outcome(question) == "stopped"
            gate.set()
            assert [body["model"] for body in stub.requests] == ["cheap", "cheap", "dear"]
            assert used(stage).micros == 100 * used(stage).tokens > 0
            stopped = used(stage)
            stub.replies.extend((busy, busy))
            gate = stage.halted()
            stage.mention("Ben", "and what?")
            await stage.shows("First words", "general", lambda message: message.reference is not None)
            await stage.until(lambda: len(stub.requests) == 6)
            await kill(stage)
            gate.set()
        stub.default = lambda _: Reply("The whole.")
        async with life(stage, **settings):
            await stage.shows("The whole.")
            killed = used(stage).tokens - stopped.tokens - ANSWER
            assert killed > LONG_ANSWER
            assert used(stage).micros == 100 * (stopped.tokens + killed) + ANSWER


@pytest.mark.slow
async def test_kills_of_the_program_lose_no_count_and_double_none(stub: StubModel, tmp_path: Path) -> None:
    async with Playground(limits=Limits.off()) as pg, recorded(pg) as journal:
        stub.on_request = lambda: notify(pg)
        scene = Scene(pg, stub, journal, tmp_path)
        at = {"DISCORD_API_BASE": pg.api_base, "DISCORD_GATEWAY_URL": pg.gateway_url, "DISCORD_TOKEN": pg.token}
        model = {"MODEL": "openai-chat:stub", "OPENAI_BASE_URL": stub.url, "OPENAI_API_KEY": "key", "PRICES": PRICES}
        interrupted, answered = 0, 0
        for moment in ("asked", "answered", "begun"):
            async with program(tmp_path, **at, **model, DECISION_LOG="off") as running:
                await running.logged("ready")
                # The question that a kill interrupted is answered.
                await scene.until(lambda: sum("whole" in m.content for m in scene.said()) == answered)  # noqa: B023
                asked = len(stub.requests)
                gate = asyncio.Event()
                held = {"asked": {"before": gate}, "begun": {"gate": gate}, "answered": {}}[moment]
                stub.replies.append(Reply("A beginning, and then the whole.", chunk=12, **held))  # type: ignore[arg-type]
                scene.mention("Ada", f"{moment}?")
                await scene.until(lambda: len(stub.requests) > asked)  # noqa: B023
                answered += 1
                if moment == "answered":
                    await scene.until(lambda: sum("whole" in m.content for m in scene.said()) == answered)  # noqa: B023
                elif moment == "begun":
                    await scene.until(lambda: scene.said()[-1].content.startswith("A beginning"))
                running.process.kill()
                await running.process.wait()
                gate.set()
                stub.default = lambda _: Reply("The whole.")
                killed = stored(tmp_path)["calls"]
                assert len(killed) == (moment != "answered")
                interrupted += sum(call["tokens"] - max(0, call["output"] - LONG_ANSWER) for call in killed)
        async with program(tmp_path, **at, **model, DECISION_LOG="off") as running:
            await running.logged("ready")
            await scene.until(lambda: sum("whole" in m.content for m in scene.said()) == answered)
            running.terminate()
            assert await running.ended() == 0
        day = stored(tmp_path)
        (row,) = day["today"]["rows"]
        calls, answers = row[3][:2]
        assert (calls, day["calls"]) == (len(stub.requests), [])
        assert answers == answered == 3
        assert day["tokens"] == interrupted + answered * ANSWER


def stored(folder: Path) -> dict[str, Any]:
    """What is stored of the limits."""
    store = open_stores(folder / ".parley", None, None)()
    (row,) = store.read(LIMITS)
    store.close()
    read: dict[str, Any] = orjson.loads(row.value or b"")
    return read
