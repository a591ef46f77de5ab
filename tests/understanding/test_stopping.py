"""understanding/stopping.py: what calls the bot off, and what only sounds like it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.phrases import labelled
from understanding.stopping import CALL_OFF, KEEP_OUT, Stop, read_stop, stops_person


def test_the_table_of_stops_and_near_misses_holds() -> None:
    wrong = {
        text: (read_stop(text, "Parley"), label)
        for text, label in labelled(Path(__file__).with_name("stops.txt"))
        if (read_stop(text, "Parley") or "none") != label
    }
    assert wrong == {}


def test_both_kinds_are_known_in_the_same_languages() -> None:
    assert KEEP_OUT.keys() == CALL_OFF.keys()
    assert len(KEEP_OUT) >= 12


def test_a_person_may_be_meant_by_it() -> None:
    for text in ("stop it ben", "Ben shut up", "ben, stop!", "shut up @Ben"):
        assert stops_person(text, ["Anna", "Ben"])
    for text in ("stop it", "stop it cleo", "ben stop the server", "ben"):
        assert not stops_person(text, ["Anna", "Ben"])


def test_somebody_whose_name_is_a_courtesy_takes_no_stop() -> None:
    assert not stops_person("stop please", ["Please", "Now"])
    assert not stops_person("shut up now", ["Please", "Now"])


def test_the_bots_name_may_be_of_several_words_or_none() -> None:
    assert read_stop("Robo Cat, shut up", "Robo Cat") is Stop.KEEP_OUT
    assert read_stop("Robo Cat, shut up", "Parley") is None
    assert read_stop("shut up", "") is Stop.KEEP_OUT
    assert read_stop("shut up", "🤖") is Stop.KEEP_OUT


@pytest.mark.parametrize("piece", ["stop ", "stop it ", "not ", "you ", "!", "ok stop ", "😀\u200d"])
@pytest.mark.parametrize("times", [20, 100_000])
def test_hostile_length_is_no_stop_and_takes_no_time(piece: str, times: int) -> None:
    assert read_stop(piece * times, "Parley") is None


@given(st.text(max_size=120), st.text(max_size=40))
def test_any_text_and_any_name_can_be_read(text: str, name: str) -> None:
    assert read_stop(text, name) in (None, *Stop)
