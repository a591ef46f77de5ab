"""understanding/confirmation.py: what is a yes, what is a no, and what is neither."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support.phrases import labelled
from understanding.confirmation import confirm

QUESTIONS = (
    "",
    "Delete all venues?",
    "Please confirm: a table for two at the Lantern on Friday at 7 pm.",
    "Would you like me to reserve a seat?",
)
ANSWERS = {"yes": True, "no": False, "neither": None}


def test_the_table_of_answers_holds() -> None:
    for reply, label in labelled(Path(__file__).with_name("answers.txt")):
        answer, _, asked = label.partition(" to ")
        for question in (asked.removeprefix("nothing"),) if asked else QUESTIONS:
            assert confirm(reply, question) is ANSWERS[answer], (reply, question)


def test_what_says_nothing_is_neither() -> None:
    assert [confirm(reply, question) for reply in ("", "   ") for question in QUESTIONS] == [None] * 8


def test_no_long_text_is_an_answer() -> None:
    assert confirm("yes " * 1_000) is None


def test_only_the_end_of_a_long_question_is_read() -> None:
    assert confirm("2", "(1) Yes or (2) No" + " ..." * 1_000) is None


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_has_one_of_three_answers_and_always_the_same(reply: str, question: str) -> None:
    assert confirm(reply, question) in (True, False, None)
    assert confirm(reply, question) is confirm(reply, question)


def test_whatever_takes_back_a_yes_leaves_none() -> None:
    for back in ("but not now", "but I'm not sure", "unless it rains", "and no", "no", "maybe", "never mind"):
        assert confirm(f"yes {back}") is not True
        assert confirm(f"sounds good, {back}") is not True
