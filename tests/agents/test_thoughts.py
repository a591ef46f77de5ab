"""agents/thoughts.py: what is left of a model's words when its thoughts are taken out, however they are cut."""

from __future__ import annotations

from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import PartStartEvent, TextPart
from pydantic_ai.models.test import TestModel

from agents.models import NamedModel
from agents.run import Run
from agents.thoughts import BareThoughts, without_bare_thoughts

RESPONSES = [
    ("Hello.", "Hello."),
    ("<think>hm</think>Hello.", "Hello."),
    ("<think>\nhm\n</think>\n\nHello.", "Hello."),
    ("<THINK>hm</Think>Hello.", "Hello."),
    ("<thinking>hm</thinking>Hello.", "Hello."),
    ("<thought>hm</thought>Hello.", "Hello."),
    ("< think >hm</ think>Hello.", "Hello."),
    ("Well, <think>hm</think>hello.", "Well, hello."),
    ("<think>a</think>One <think>b</think>two.", "One two."),
    ("<think>a < b and <b>bold</b></think>Hello.", "Hello."),
    ("<think>never closed", ""),
    ("Hello. <think>never closed", "Hello. "),
    ("hm, they greet me</think>Hello.", "Hello."),
    ("<think>what does <think> mean</think>Hello.</think>", "Hello."),
    ("2 < 3, and <thin ice>, and <", "2 < 3, and <thin ice>, and <"),
    ("Hello <thi", "Hello <thi"),
    ("Models write `<think>` first, and `</think>` last.", "Models write `<think>` first, and `</think>` last."),
    ("Write ``<think>`` first, ``x`` and ``</think>``.", "Write ``<think>`` first, ``x`` and ``</think>``."),
    ("``x``<think>hm</think> Hello.", "``x`` Hello."),
    ("```xml\n<think>x</think>\n```\nSo.", "```xml\n<think>x</think>\n```\nSo."),
    ("<think>`</think>Hello.", "Hello."),
    ("```py\na()\n```<think>hm</think>Hello.", "```py\na()\n```Hello."),
]


def in_pieces(text: str, cuts: list[int], *, may_begin: bool = False) -> BareThoughts:
    heard, at = BareThoughts(may_begin=may_begin), 0
    for cut in [*sorted(cut % (len(text) + 1) for cut in cuts), len(text)]:
        heard.hear(text[at:cut])
        at = cut
    heard.end()
    return heard


@pytest.mark.parametrize(("response", "words"), RESPONSES)
def test_words_are_told_from_thoughts(response: str, words: str) -> None:
    assert without_bare_thoughts(response) == words
    assert in_pieces(response, [*range(len(response))]).words == words


@given(
    st.sampled_from([told for told in RESPONSES if "`" not in told[0]]),
    st.lists(st.integers(0, 100), max_size=8),
    st.booleans(),
)
def test_however_it_is_cut_and_whatever_may_have_come_before(
    told: tuple[str, str], cuts: list[int], may_begin: bool
) -> None:
    assert in_pieces(told[0], cuts, may_begin=may_begin).words == told[1]


@given(st.text(alphabet="<>/thinkgou` \n", max_size=60), st.lists(st.integers(0, 60), max_size=6))
def test_where_a_stream_is_cut_makes_no_difference(text: str, cuts: list[int]) -> None:
    assert in_pieces(text, cuts).words == without_bare_thoughts(text)


def test_nothing_of_a_thought_is_a_word_meanwhile() -> None:
    heard, seen = BareThoughts(), set[str]()
    for character in "So <thinking>secret</thinking>be it.":
        heard.hear(character)
        seen.add(heard.words)
    assert not [words for words in seen if "secret" in words or "<" in words]


def test_one_that_may_have_begun_before_shows_nothing_until_that_is_known() -> None:
    heard = BareThoughts(may_begin=True)
    heard.hear("secret")
    assert heard.words == ""
    heard.hear("</think>Hello.")
    assert (heard.words, heard.were_unopened) == ("Hello.", True)


@pytest.mark.parametrize("told", ["`<think>\n", "`<think>`", "<think>", "</think>", "x<think></think>"])
def test_many_tags_at_once_keep_the_others_from_nothing(told: str) -> None:
    shown: list[str] = []
    run = Run(shown.append, NamedModel("test", TestModel()))
    run.begin_paragraph()
    event, began = PartStartEvent(index=0, part=TextPart(told * (500_000 // len(told)))), thread_time()
    run.hear(event)
    assert thread_time() - began < 0.15
    assert run.output > 499_000
