"""agents/demo.py: what the demo model says."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from pydantic_ai.messages import ModelMessage

from agents.demo import HINT, LABEL, demo_model
from agents.gateway import AgentRequest, Answer, Place
from agents.general import GeneralAgent
from conversation import MessageRecord
from delivery.split import split
from tests.support.clock import NOON
from tests.support.people import ANNA, BEN, replied, said

pytestmark = pytest.mark.virtual_time


async def answers(*turns: list[MessageRecord]) -> list[str]:
    """The demo model's answer to each turn, every turn given the history of the one before."""
    agent = GeneralAgent(demo_model())
    history: list[ModelMessage] = []
    texts = []
    for transcript in turns:
        request = AgentRequest(history, transcript, transcript[-1:], Place("Parley", "Guild", "general"), NOON)
        outcome = await agent.respond(request, lambda _text: None)
        assert isinstance(outcome, Answer)
        history = outcome.history
        texts.append(outcome.text)
    return texts


async def test_it_says_that_it_is_the_demo_model_and_repeats_what_was_said() -> None:
    (text,) = await answers([said(ANNA, "@Parley my colour\nis teal")])
    assert text == f"{LABEL} Anna, you said “my colour is teal”.\n\n{HINT}"


async def test_it_remembers_what_was_said_in_earlier_turns_by_whom() -> None:
    *_, text = await answers(
        [said(ANNA, "I like teal")], [replied(ANNA, "noted"), said(BEN, "I like tea")], [said(BEN, "what did we say?")]
    )
    assert "Ben, you said “what did we say?”." in text
    assert "Before that, Anna said “I like teal”; Ben said “I like tea”." in text
    assert "noted" not in text


async def test_it_is_deterministic() -> None:
    assert await answers([said(ANNA, "hi")]) == await answers([said(ANNA, "hi")])


async def test_it_streams_line_by_line() -> None:
    shown: list[tuple[float, str]] = []
    clock = asyncio.get_running_loop().time
    message = said(ANNA, "some code")
    request = AgentRequest([], [message], [message], Place("Parley", "Guild", "general"), NOON)
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
    assert len(text) < 500
