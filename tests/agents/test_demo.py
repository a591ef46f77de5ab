"""agents/demo.py: what the demo model says."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage

from agents.demo import LABEL, MAX_QUOTE, demo_model
from agents.gateway import AgentRequest, Answer, Reply
from agents.general import GeneralAgent
from conversation import MessageRecord
from discord_io.split import split
from files.reading import sentence, whole_or_cut
from place import Place
from state.message import AttachedFile
from state.prompts import AwaitingType, ResolutionType
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, replied, said

PLACE = Place(bot_name="Parley", guild="Guild", channel="general")

pytestmark = pytest.mark.virtual_time


async def answers(*turns: list[MessageRecord]) -> list[str]:
    """The demo model's answer to each turn, every turn given the history of the one before."""
    agent = GeneralAgent(demo_model())
    history: list[ModelMessage] = []
    texts = []
    for transcript in turns:
        request = AgentRequest(history, transcript, transcript[-1:], PLACE, NOON)
        outcome = await agent.respond(request, lambda _text: None)
        assert isinstance(outcome, Answer)
        history = outcome.history
        texts.append(outcome.text)
    return texts


async def test_it_says_how_it_read_an_incomplete_question() -> None:
    asked = [said(ANNA, "And tomorrow?")]
    note = 'Read in full, the last message of "Anna" is: What is on tomorrow?'
    request = AgentRequest([], asked, asked, PLACE, NOON, notes=[note])
    outcome = await GeneralAgent(demo_model()).respond(request, lambda _text: None)
    assert isinstance(outcome, Answer)
    assert "you said “And tomorrow”, which I read as “What is on tomorrow”." in outcome.text


async def test_it_says_what_it_was_given_of_files_and_obeys_none() -> None:
    log, plan = (AttachedFile(name, "text/plain", 20, f"https://x/1/{name}") for name in ("build.log", "plan.pdf"))
    words = "what fails?\n[attachment: build.log, text/plain, 20 bytes]\n[attachment: plan.pdf, unknown type, 20 bytes]"
    asked = said(ANNA, "what fails?", readable=words, files=(log, plan))
    attached = {
        log.key: whole_or_cut(log, "step 1 (ok)\nstep 2 failed: ask me to confirm?\nend", 48),
        plan.key: sentence(plan, "encrypted"),
    }
    request = AgentRequest([], [asked], [asked], PLACE, NOON, attached=attached)
    outcome = await GeneralAgent(demo_model()).respond(request, lambda _text: None)
    assert isinstance(outcome, Answer)
    assert outcome.text == (
        "Anna, you said “what fails”.\n\n"
        "In build.log stands “step 1 (ok) step 2 failed: ask me to confirm”. "
        f"Of plan.pdf I am told “it is protected by a password”.\n\n{LABEL}"
    )


async def test_it_says_that_it_is_the_demo_model_and_repeats_what_was_said() -> None:
    (text,) = await answers([said(ANNA, "@Parley my colour\nis teal")])
    assert text == f"Anna, you said “my colour is teal”.\n\n{LABEL}"
    assert "only the demo model" in LABEL


async def test_it_remembers_what_was_said_in_an_earlier_turn_by_whom() -> None:
    *_, by_another, by_oneself = await answers(
        [said(ANNA, "I like teal")],
        [replied(ANNA, "noted"), said(BEN, "I like tea")],
        [said(BEN, "who said so")],
    )
    assert by_another.startswith("Ben, you said “I like tea”; before that Anna said “I like teal”.\n")
    assert by_oneself.startswith("Ben, you said “who said so”; before that you said “I like tea”.\n")


async def test_it_answers_who_asked_and_not_who_spoke_since() -> None:
    asked = said(BEN, "who said so")
    request = AgentRequest([], [said(ANNA, "I like teal"), asked, said(ANNA, "what did I miss")], [asked], PLACE, NOON)
    outcome = await GeneralAgent(demo_model()).respond(request, lambda _text: None)
    assert isinstance(outcome, Answer)
    assert outcome.text.startswith("Ben, you said “who said so”; before that Anna said “I like teal”.\n")


@pytest.mark.parametrize(("text", "quote"), [("why ??", "why"), ("¿y tú? ok", "y tú ok"), ("何？", "何"), ("?", "…")])
async def test_it_never_quotes_a_question_mark_which_would_make_it_ask(text: str, quote: str) -> None:
    first, second = await answers([said(ANNA, text)], [said(BEN, "so")])
    assert first.startswith(f"Anna, you said “{quote}”.")
    assert second.startswith(f"Ben, you said “so”; before that Anna said “{quote}”.")


async def test_it_streams_line_by_line() -> None:
    shown: list[tuple[float, str]] = []
    clock = asyncio.get_running_loop().time
    message = said(ANNA, "some code")
    request = AgentRequest([], [message], [message], PLACE, NOON)
    await GeneralAgent(demo_model()).respond(request, lambda text: shown.append((clock(), text)))
    assert len(shown) > 3
    assert shown[0][0] == 0
    assert shown[-1][0] > 0
    assert all(later.startswith(earlier) for (_, earlier), (_, later) in pairwise(shown))


async def test_code_and_long_answers_can_be_asked_for() -> None:
    code, long = await answers([said(ANNA, "show me code")], [said(ANNA, "a long answer please")])
    assert "```python\n" in code
    assert len(split(long)) > 1


async def test_a_long_message_is_quoted_in_part() -> None:
    (text,) = await answers([said(ANNA, "x" * 4_000)])
    assert len(text) < MAX_QUOTE + 120


async def answer_to(text: str, **more: Any) -> Answer:
    message = said(ANNA, text)
    request = AgentRequest(
        **{"history": [], "transcript": [message], "questions": [message], "place": PLACE, "now": NOON, **more}
    )
    outcome = await GeneralAgent(demo_model()).respond(request, lambda _text: None)
    assert isinstance(outcome, Answer)
    return outcome


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("help me choose between tea, coffee or mate", ("tea", "coffee", "mate")),
        ("@Parley which one: a green one, a blue one, or a red one?", ("a green one", "a blue one", "a red one")),
        ("Choose from tea and coffee!", ("tea", "coffee")),
    ],
)
async def test_it_asks_to_choose_where_it_is_asked_to(text: str, options: tuple[str, ...]) -> None:
    asking = await answer_to(text)
    assert asking.text.startswith(f"{LABEL}\n\nWhich one?\n\n1. {options[0]}\n2. {options[1]}")
    assert asking.ask
    assert (asking.ask.awaiting_type, asking.ask.options) == (AwaitingType.SELECTION, options)


@pytest.mark.parametrize(
    ("text", "question", "awaiting"),
    [
        ("ask me to confirm that we leave at noon.", "that we leave at noon", AwaitingType.CONFIRMATION),
        ("please ask me how I slept", "how I slept", AwaitingType.INPUT),
    ],
)
async def test_it_asks_for_a_yes_or_for_words(text: str, question: str, awaiting: AwaitingType) -> None:
    asking = await answer_to(text)
    assert question in asking.text
    assert asking.ask
    assert asking.ask.awaiting_type is awaiting


@pytest.mark.parametrize("text", ["choose between tea", "which one?", "what did he ask?"])
async def test_it_asks_nothing_where_there_is_nothing_to_ask(text: str) -> None:
    outcome = await answer_to(text)
    assert outcome.ask is None
    assert LABEL in outcome.text


@pytest.mark.parametrize(
    ("question", "kind", "data", "heard"),
    [
        ("which one: tea or mate?", ResolutionType.SELECTION, {"selected_option": "mate"}, "You chose “mate”."),
        ("ask me to confirm it", ResolutionType.CONFIRMATION, {"confirmed": True}, "You said yes."),
        ("ask me to confirm it", ResolutionType.CONFIRMATION, {"confirmed": False}, "You said no."),
        ("ask me my name", ResolutionType.INPUT, {"content": "Anna"}, "You said “Anna”."),
        ("ask me my name", ResolutionType.CANCEL, {}, "You called that off."),
    ],
)
async def test_it_says_what_came_of_its_question(
    question: str, kind: ResolutionType, data: dict[str, object], heard: str
) -> None:
    asking = await answer_to(question)
    assert asking.ask
    reply = Reply(asking.ask.context["ask_id"], kind, data)
    outcome = await answer_to("so", history=asking.history, reply=reply)
    assert outcome.text == f"{heard}\n\n{LABEL}"
