"""understanding/name_calls.py: who is called by name, and who is only talked about."""

from __future__ import annotations

from pathlib import Path
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.phrases import labelled
from understanding.name_calls import called_as, may_call


def test_the_table_of_calls_and_near_misses_holds() -> None:
    table = labelled(Path(__file__).with_name("name_calls.txt"))
    wrong = [(text, label) for text, label in table if _label(text.replace("\\n", "\n")) != label]
    assert wrong == [], "\n".join(map(str, wrong))


def _label(text: str) -> str:
    return "call" if called_as(text, ("Parley",)) else "none"


def test_a_name_that_is_a_common_word_needs_its_comma() -> None:
    calls: tuple[str, ...] = (
        "so, what do you think",
        "so: help me",
        "Will, are you there?",
        "are you there, will?",
        "art, what is it",
    )
    calls += ("stop, art", "are you there, today?")
    talk: tuple[str, ...] = (
        "so what do you think",
        "will you come?",
        "will",
        "will?",
        "hey will",
        "are you there will?",
        "Art is long",
    )
    talk += ("art what is it", "I do not like modern art?", "are you there today?")
    assert [bool(called_as(text, ("so", "Will", "art", "Today"))) for text in (*calls, *talk)] == [True] * 7 + [
        False
    ] * 10


def test_a_name_may_be_of_several_words() -> None:
    for text in ("Robo Cat are you there?", "robo-cat, help", "robocat what is this", "are you there, robo cat?"):
        assert called_as(text, ("Robo Cat",)) == "Robo Cat"
    assert not called_as("robo are you there?", ("Robo Cat",))


def test_any_of_its_names_counts_and_one_without_words_does_not() -> None:
    assert called_as("Nicky, help me", ("Parley", "Nicky")) == "Nicky"
    assert called_as("🤖, help me", ("🤖",)) == ""
    assert called_as("Parley, help me", ()) == ""


def test_of_a_long_text_only_its_ends_are_looked_at() -> None:
    filling = "word " * 400
    assert called_as(f"Parley, read this: {filling}", ("Parley",))
    assert called_as(f"{filling}. what do you think, parley?", ("Parley",))
    assert not may_call(f"{filling} parley, {filling}", ("Parley",))


@pytest.mark.parametrize("piece", ["parley, ", "what parley? ", '"', "`", "> ", "„", "“", "«", "„a“"])
def test_hostile_texts_and_quotes_that_are_never_closed_take_no_time(piece: str) -> None:
    text, spent = piece * (4_000 // len(piece)) + " parley", []
    for _ in range(5):
        began = thread_time()
        called_as(text, ("Parley",))
        spent.append(thread_time() - began)
    assert min(spent) < 0.004


@given(st.text(max_size=120), st.text(max_size=40))
def test_any_text_and_any_name_can_be_read(text: str, name: str) -> None:
    assert called_as(text, (name,)) in ("", name)
